"""Little memory, a disk that is really full, a user without rights: one line, and nothing is half."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from forked import Forker
from tallies import Tally

from gflowdag.cli import commands
from gflowdag.data.contents import read_bytes
from gflowdag.errors import DataError, FileWriteError
from gflowdag.posterior import runs
from gflowdag.posterior.posterior import Posterior

NOBODY = 65534
ABORTED = (-6, 127)  # by XLA or the C library, which say so and do not ask us
MOUNT = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
_can_mount = shutil.which("unshare") is not None and not subprocess.run(MOUNT, capture_output=True).returncode
LIMITS = (8, 24, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # MiB beyond what the imports take
SIZES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # KiB of a disk


@pytest.mark.parametrize("limits", [(8, 256), pytest.param(LIMITS, marks=pytest.mark.long)], ids=str)
def test_a_fit_with_little_memory_is_whole_or_can_be_done_again(
    limits: tuple[int, ...], tmp_path: Path, forker: Forker, tally: Tally
) -> None:
    table, stopped = tmp_path / "table.csv", 0
    commands.run_simulation(table, "linear-gaussian", 15, 60, 1.0, "erdos-renyi", 3)
    command = ("fit", table, "--method", "exact", "--samples", "40", "-q", "--out")
    assert forker.run(*command, tmp_path / "enough") == 0
    expected = (tmp_path / "enough" / "posterior.npz").read_bytes()
    for limit in limits:
        folder = tmp_path / f"run{limit}"
        code = forker.run(*command, folder, first=_no_more_memory(limit))
        errors = forker.errors.read_text()
        assert code in (0, 1, *ABORTED), errors
        stopped += code != 0
        if code == 1:
            assert errors.startswith("gflowdag: not enough memory")
            assert errors.count("\n") == 1
            # There may not even be memory to write that it stopped.
            assert not folder.exists() or runs.read_manifest(folder)["status"] in ("stopped", "running")
        assert not list(folder.glob(".*.part"))
        if code != 0:
            assert not (folder / "posterior.npz").exists()
            assert forker.run(*command, folder, "--resume") == 0
        assert (folder / "posterior.npz").read_bytes() == expected
    assert stopped
    if limits is LIMITS:
        tally("too little memory", "fit, exact, 15 variables", tried=len(limits), struck=stopped)


def test_reading_takes_memory_for_the_file_and_not_for_the_largest_one(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"a,b\n1,2\n")
    tracemalloc.start()
    content = read_bytes(tmp_path / "table.csv", DataError)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert content == b"a,b\n1,2\n"
    assert peak < 2**26


@pytest.mark.parametrize(
    "words",
    [
        "SystemError('error return without exception set')",  # numba's compiled code
        'RuntimeError("can\'t start new thread")',
        "RuntimeError('RESOURCE_EXHAUSTED: Out of memory')",
    ],
)
def test_however_a_lack_of_memory_is_said_it_is_one_line(
    words: str, table: Path, tmp_path: Path, forker: Forker
) -> None:
    fault = (
        "from gflowdag.exact import marginals\n"
        f"def fail(*_, **__): raise {words}\n"
        "marginals.subset_sums = fail\n"
    )
    command = ("fit", table, "--method", "exact", "-q", "--out", tmp_path / "run")
    assert forker.run(*command, first=fault) == 1
    errors = forker.errors.read_text()
    assert errors.startswith("gflowdag: not enough memory")
    assert errors.count("\n") == 1


def _no_more_memory(megabytes: int) -> str:
    """Code that lets the process grow by so much and no more."""
    return (
        "import os, resource\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * os.sysconf('SC_PAGE_SIZE')\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (size + {megabytes} * 2**20,) * 2)\n"
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach: those of pytest are closed to all others."""
    folder = Path(tempfile.mkdtemp(prefix="gflowdag-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(not _can_mount, reason="needs a file system of its own")
@pytest.mark.parametrize("sizes", [(8,), pytest.param(SIZES, marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize("command", ["fit", "export", "report", "compare"])
def test_a_disk_that_is_full_is_one_line(
    command: str, sizes: tuple[int, ...], table: Path, open_folder: Path, forker: Forker, tally: Tally
) -> None:
    disk, answer = open_folder / "disk", open_folder / "answer"
    disk.mkdir()
    graphs = np.triu(np.random.default_rng(0).random((40, 30, 30)) < 0.1, 1)
    Posterior(graphs, [f"V{number}" for number in range(30)]).save(answer / "posterior.npz")
    arguments = {
        "fit": ("fit", table, "--method", "exact", "--samples", "2000", "-q", "--out", disk / "run"),
        "export": ("export", answer, "--to", disk / "file.json"),
        "report": ("report", answer, "--to", disk / "file.html"),
        "compare": ("compare", table, "--methods", "exact", "-q", "--report", disk / "file.html"),
    }[command]
    full = 0
    for size in sizes:
        code = forker.run(*arguments, first=_small_disk(disk, size))
        errors = forker.errors.read_text()
        assert code in (0, 2), errors
        if code == 2:
            full += 1
            assert errors.startswith(f"gflowdag: cannot write {disk}/")
            assert errors.endswith(": No space left on device\n")
            assert errors.count("\n") == 1
    assert full
    if sizes is SIZES:
        tally("full disk", command, tried=len(sizes), struck=full)


def _small_disk(folder: Path, kilobytes: int) -> str:
    """Code that puts a new disk at `folder`, for this process alone, in which it is an ordinary user."""
    return f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
user, group = os.geteuid(), os.getegid()
NEW_USERS, NEW_MOUNTS = 0x10000000, 0x20000
assert libc.unshare(NEW_USERS | NEW_MOUNTS) == 0, ctypes.get_errno()
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {{user}} 1"), ("gid_map", f"0 {{group}} 1")):
    with open(f"/proc/self/{{name}}", "w") as stream:
        stream.write(text)
options = b"size={kilobytes}k,mode=755"
assert libc.mount(b"tmpfs", {str(folder)!r}.encode(), b"tmpfs", 0, options) == 0, ctypes.get_errno()
"""


def test_an_ordinary_user_is_told_of_a_folder_that_is_read_only(open_folder: Path) -> None:
    closed, own = open_folder / "read-only", open_folder / "own"
    closed.mkdir(mode=0o555)
    own.mkdir()
    is_root = os.geteuid() == 0
    if is_root:  # who may write everywhere
        os.chown(own, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        with runs.Run.start(own / "run", {}):
            pass
        for act in (
            lambda: runs.Run.start(closed / "run", {}),
            lambda: runs.Run.start_new(closed, "run", {}),
            lambda: Posterior(np.zeros((1, 2, 2)), "ab").save(closed / "posterior.npz"),
        ):
            with pytest.raises(FileWriteError, match=r"cannot write .*read-only.*: Permission denied"):
                act()
    finally:
        if is_root:
            os.seteuid(0)
    assert not list(closed.iterdir())
