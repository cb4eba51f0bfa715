"""Test settings: a persistent compilation cache, single-threaded pools, and where the real data are."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tallies import Tally

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Most tests compile programs that run for a moment: two fifths of their time are saved.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
os.environ.setdefault("MPLBACKEND", "Agg")
_KEPT = 1 << 30  # bytes of a process up to which nothing is given back
_SHARED = ROOT.parent / "shared" / "data"
if "GFLOWDAG_DATA" not in os.environ and _SHARED.is_dir():
    os.environ["GFLOWDAG_DATA"] = str(_SHARED)


def pytest_configure(config: pytest.Config) -> None:
    """Where no long test is asked for, XLA's former emitters: they compile in half of the time."""
    if config.option.markexpr == "not long" and version("jaxlib").startswith("0.10."):  # others end here
        before = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{before} --xla_cpu_use_fusion_emitters=false".strip()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the real data; its absence is an error in CI and a skip elsewhere."""
    folder = os.environ.get("GFLOWDAG_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    message = "real data not found: point GFLOWDAG_DATA at the folder that holds them"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="module", autouse=True)
def compiled_programs_given_back() -> Iterator[None]:
    """A file of tests leaves up to a gigabyte of XLA programs behind, which no other file runs."""
    yield
    if "jax" not in sys.modules or _resident() < _KEPT:
        return
    sys.modules["jax"].clear_caches()
    gc.collect()
    with suppress(OSError, AttributeError):  # glibc alone keeps what was freed, and has this
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _resident() -> int:
    """Bytes of this process in memory; where nobody tells, as many as must be given back."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _KEPT


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """Counts what a test tries."""
    from tallies import Tally  # it imports JAX, whose settings are made above

    return Tally(request.node.nodeid)


@pytest.fixture(autouse=True)
def compiled_as_for_users(request: pytest.FixtureRequest) -> Iterator[None]:
    """What runs for minutes, and what compares bits with a file, is compiled with all optimisations."""
    if request.node.get_closest_marker("long") is None and request.path.parent.name != "golden":
        yield
        return
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    jax.clear_caches()
