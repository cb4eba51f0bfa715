"""A browser for the tests of the report, and a report opened in it."""

from __future__ import annotations

import os
import shutil

import pytest
from report_browser import FLAGS, network_requests, wait_until_ready

from gflowdag.posterior.posterior import Posterior


@pytest.fixture(scope="package")
def browser(tmp_path_factory):
    """A headless Chromium that logs its console and its network; missing it is an error in CI alone."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        chromium = None
    if chromium is None or driver is None:
        message = "needs Debian's chromium and chromium-driver, and the Python package selenium"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    folder = tmp_path_factory.mktemp("browser")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1280,1000"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    session = webdriver.Chrome(options=options, service=Service(driver))
    session.downloads = folder
    yield session
    session.quit()


@pytest.fixture
def open_report(browser, tmp_path):
    """Open the report of a posterior; after the test nothing may have been logged or requested."""
    page = (tmp_path / "report.html").as_uri()

    def open_(posterior: Posterior, **context):
        browser.get_log("performance")
        posterior.report(tmp_path / "report.html", **context)
        browser.get(page)
        wait_until_ready(browser)
        return browser

    yield open_
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.get_log("browser") == []
    assert network_requests(browser, page) == []
