"""The command line in processes that are quick to start, so that hundreds can be killed."""

from __future__ import annotations

import signal
from pathlib import Path

from command_line import SMALL_SETTINGS
from fork_server import ForkServer


class Forker(ForkServer):
    """A fork server whose runs are short, and can be killed in the middle of a deed.

    Args:
        folder: where standard output and standard error of the commands are written.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, SMALL_SETTINGS)

    def kill_at_deed(self, moment: int, folder: Path, *arguments: str | Path) -> bool:
        """Kill -9 in the middle of the `moment`-th deed to files below `folder`; whether it came to that."""
        return self.run(*arguments, first=killing_disk(moment, folder)) == -signal.SIGKILL


def killing_disk(moment: int, folder: Path) -> str:
    """Code that has the process killed in the middle of the `moment`-th deed to files below `folder`."""
    return (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path; from faulty_disk import faulty_disk\n"
        f"disk = faulty_disk(Path({str(folder)!r}), 'kill', {moment}); disk.__enter__()\n"
    )
