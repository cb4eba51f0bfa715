"""The command line in processes that begin where its imports have ended: two seconds less for each."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

LONGEST = 840  # seconds after which a command hangs, on a machine that leaves it a tenth of a core too

_SERVER = """
import json, os, sys
import jax, numba, pandas, scipy.stats, gflowdag.cli.commands, gflowdag_lab.commands
from gflowdag.cli import app as cli
from gflowdag.estimators import REGISTRY, estimator_class
methods = [estimator_class(name) for name in REGISTRY]
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()  # imports what the first compiled function needs
{settings}
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
for number, path in enumerate([os.devnull, request["output"], request["errors"]]):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
os.environ["COLUMNS"] = request["columns"]
os.chdir(request["folder"])
exec(request["first"])
sys.argv[1:] = request["arguments"]
cli.main()
"""


class ForkServer:
    """A process that has imported everything, and forks for each command.

    Args:
        folder: where standard output and standard error of the last command are written.
        settings: code that runs once, after the imports.
    """

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.output, self.errors = folder / "output.txt", folder / "errors.txt"
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER.format(settings=settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what is read ahead could not be waited for
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()

    def run(
        self,
        *arguments: str | Path,
        kill_after: float | None = None,
        first: str = "",
        folder: Path | None = None,
        columns: int = 100,
    ) -> int:
        """Exit code of `gflowdag ARGUMENTS`, after the code `first`; killed after some seconds if at all."""
        assert self._server.stdin is not None
        request = {
            "arguments": [*map(str, arguments)],
            "first": first,
            "output": str(self.output),
            "errors": str(self.errors),
            "folder": str(folder or Path.cwd()),
            "columns": str(columns),
        }
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        child = int(self._line())
        if kill_after is not None and not self._has_line(kill_after):
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(child, signal.SIGKILL)
        if not self._has_line(LONGEST):
            os.kill(child, signal.SIGKILL)  # the server waits for it, and so would the next test
            self._line()
            raise AssertionError("the command did not end")
        return int(self._line())

    def ask(
        self, *arguments: str | Path, first: str = "", folder: Path | None = None, columns: int = 100
    ) -> subprocess.CompletedProcess[str]:
        """Exit code, standard output and standard error of `gflowdag ARGUMENTS`."""
        code = self.run(*arguments, first=first, folder=folder, columns=columns)
        return subprocess.CompletedProcess(
            arguments, code, self.output.read_text(), self.errors.read_text(errors="replace")
        )

    def _has_line(self, seconds: float) -> bool:
        assert self._server.stdout is not None
        return bool(select.select([self._server.stdout], [], [], seconds)[0])

    def _line(self) -> bytes:
        assert self._server.stdout is not None
        return self._server.stdout.readline()
