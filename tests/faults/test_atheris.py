"""Coverage-guided fuzzing finds nothing either; needs the package atheris."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from doors import ALL_DOORS, SLOW_DOORS
from tallies import Tally


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("door", ALL_DOORS)
def test_inputs_that_reach_new_lines_are_read_or_refused(door: str, tally: Tally) -> None:
    pytest.importorskip("atheris")
    script = Path(__file__).with_name("atheris_doors.py")
    runs = 200 if door in SLOW_DOORS else 2000
    options = [
        f"-runs={runs}",
        "-max_len=4096",
        "-timeout=20",
        "-rss_limit_mb=4096",
    ]
    answer = subprocess.run(
        [sys.executable, script, door, *options], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    tally("guided fuzzing", door, tried=runs)
