"""The command line in processes that begin where its imports have ended, so that hundreds can be killed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from command_line import LONGEST, SMALL_SETTINGS

_SERVER = f"""
import json, os, sys
import jax, numba, pandas, scipy.stats, gflowdag.cli.commands, gflowdag_lab.commands
from gflowdag.estimators import REGISTRY, estimator_class
methods = [estimator_class(name) for name in REGISTRY]
{SMALL_SETTINGS}
assert len(os.listdir("/proc/self/task")) == 1  # threads do not survive a fork
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    os._exit(0)
for number, path in enumerate([os.devnull, os.devnull, request["errors"]]):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
exec(request["first"])
sys.argv[1:] = request["arguments"]
cli.main()
"""


class Forker:
    """A process that has imported everything, and forks for each command.

    Args:
        folder: where the standard error of the commands is written.
    """

    def __init__(self, folder: Path) -> None:
        self.errors = folder / "errors.txt"
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what is read ahead could not be waited for
            env={**os.environ, "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1"},
        )

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()

    def run(self, *arguments: str | Path, kill_after: float | None = None, first: str = "") -> int:
        """Exit code of `gflowdag ARGUMENTS`, after the code `first`; killed after some seconds if at all."""
        assert self._server.stdin is not None
        request = {"arguments": [*map(str, arguments)], "first": first, "errors": str(self.errors)}
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        child = int(self._line())
        if kill_after is not None and not self._has_line(kill_after):
            os.kill(child, signal.SIGKILL)
        assert self._has_line(LONGEST), "the command did not end"
        return int(self._line())

    def kill_at_deed(self, moment: int, folder: Path, *arguments: str | Path) -> bool:
        """Kill -9 in the middle of the `moment`-th deed to files below `folder`; whether it came to that."""
        return self.run(*arguments, first=killing_disk(moment, folder)) == -signal.SIGKILL

    def _has_line(self, seconds: float) -> bool:
        assert self._server.stdout is not None
        return bool(select.select([self._server.stdout], [], [], seconds)[0])

    def _line(self) -> bytes:
        assert self._server.stdout is not None
        return self._server.stdout.readline()


def killing_disk(moment: int, folder: Path) -> str:
    """Code that has the process killed in the middle of the `moment`-th deed to files below `folder`."""
    return (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path; from faulty_disk import faulty_disk\n"
        f"disk = faulty_disk(Path({str(folder)!r}), 'kill', {moment}); disk.__enter__()\n"
    )
