"""How much a test has tried, kept in the file that `GFLOWDAG_TALLIES` names, for the page on trust."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from gflowdag import __version__
from gflowdag_lab.paper.fits import commit

COLUMNS: tuple[str, ...] = ("kind", "of", "tried", "struck", "test", "version", "commit")


class Tally:
    """The row of one test: it calls this when all has held. The row of an earlier run goes at the start."""

    def __init__(self, test: str) -> None:
        self._test = test
        named = os.environ.get("GFLOWDAG_TALLIES")
        self._path = Path(named) if named else None
        self._keep([])

    def __call__(self, kind: str, of: str, *, tried: int, struck: int | None = None) -> None:
        """Keep the row.

        Args:
            kind: of the faults. of: what they were tried on. tried: how many. struck: of these, how many
            came while the program was at work; None where that is all of them.
        """
        numbers = {"tried": str(tried), "struck": str(tried if struck is None else struck)}
        source = {"test": self._test, "version": __version__, "commit": commit()}
        self._keep([{"kind": kind, "of": of, **numbers, **source}])

    def _keep(self, own: list[dict[str, str]]) -> None:
        if self._path is None:
            return
        rows: list[dict[str, str]] = []
        if self._path.exists():
            with self._path.open(newline="", encoding="utf-8") as stream:
                rows = [row for row in csv.DictReader(stream) if row["test"] != self._test]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted(rows + own, key=lambda row: (row["kind"], row["of"], row["test"])))
