"""The report of many variables in Chromium: size of the file, time to open, time of each frame in use.

What has to hold, from before anything was measured: the file of 500 variables is smaller than 5 MB; at 100
variables the frames of panning and zooming need less than 16.7 ms of the page's thread in the median, which
is what 60 frames a second allow. That time is CPU time (`Performance.getMetrics`, thread ticks), so a busy
machine does not count; the time between frames does not leave it out. Without a GPU Chromium paints on
the CPU, in other threads.

It needs Debian's chromium and chromium-driver, and the Python package selenium.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gflowdag as gd
from gflowdag.graph import erdos_renyi
from gflowdag_lab.measurements.harness import Options, Row, case

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000")
_FRAMES = 120
# One event a frame; `done` gets the times between frames, in milliseconds.
_USE = """
const [frames, kind, done] = arguments, picture = document.getElementById("graph-picture"), times = [];
picture.scrollIntoView({ block: "center", behavior: "instant" });
const key = (name) => picture.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const slider = document.getElementById("threshold");
const events = {
  pan: (k) => key(["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"][Math.floor(k / 8) % 4]),
  zoom: (k) => key(Math.floor(k / 6) % 2 ? "-" : "+"),
  threshold: (k) => { slider.value = 0.3 + 0.004 * k; slider.dispatchEvent(new Event("input")); },
};
key("0");
if (kind === "pan") { key("+"); key("+"); key("+"); }
let before = null, k = 0;
requestAnimationFrame(function frame(now) {
  if (before !== null) times.push(now - before);
  before = now;
  if (k === frames) return done(times);
  events[kind](k++);
  requestAnimationFrame(frame);
});
"""


@case
def report_frames(options: Options) -> Iterator[Row]:
    """Size of reports, and frames of panning, zooming and moving the threshold; `sizes`."""
    sizes = "20" if options.quick else options.extra.get("sizes", "30,100,223,500")
    with tempfile.TemporaryDirectory() as folder:
        browser = _browser(Path(folder) / "profile")
        try:
            for size in map(int, sizes.split(",")):
                yield from _rows(browser, size, Path(folder) / f"{size}.html", options)
        finally:
            browser.quit()


def _rows(browser: Any, size: int, path: Path, options: Options) -> Iterator[Row]:
    rng = np.random.default_rng([options.seed, size])
    base = erdos_renyi(size, 1.3 * size, rng)
    samples = base & (rng.random((100, size, size)) > 0.2)
    names = [f"variable_{k}" for k in range(size)]
    started = time.process_time()
    gd.Posterior(samples, names).report(path)
    written = time.process_time() - started
    browser.get(path.as_uri())
    while not browser.execute_script("return document.documentElement.dataset.ready"):
        time.sleep(0.02)
    for kind in ("pan", "zoom", "threshold"):
        before = _thread_seconds(browser)
        times = np.array(browser.execute_async_script(_USE, 10 if options.quick else _FRAMES, kind))
        yield {
            "variables": size,
            "action": kind,
            "frames": len(times),
            "thread_ms_a_frame": 1000 * (_thread_seconds(browser) - before) / len(times),
            "median_ms_between": float(np.median(times)),
            "p95_ms_between": float(np.quantile(times, 0.95)),
            "megabytes": path.stat().st_size / 1e6,
            "cpu_seconds_to_write": written,
        }


def _browser(profile: Path) -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    settings = webdriver.ChromeOptions()
    settings.binary_location = shutil.which("chromium") or "chromium"
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        settings.add_argument(flag)
    session = webdriver.Chrome(options=settings, service=Service(shutil.which("chromedriver")))
    session.set_script_timeout(300)
    session.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def _thread_seconds(browser: Any) -> float:
    """CPU time of the page's thread in tasks so far: scripts, style, layout, recording of what to paint."""
    found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(entry["value"] for entry in found if entry["name"] == "TaskDuration")
