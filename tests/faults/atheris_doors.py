"""Coverage-guided fuzzing of one door, with atheris: `python tests/faults/atheris_doors.py DOOR [-runs=N]`.

The options behind the door are those of libFuzzer. The fuzzer starts from the intact file and keeps every
input that reaches new lines of this package; whatever is raised but a `GFlowDAGError` stops it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris  # pyright: ignore[reportMissingImports]

with atheris.instrument_imports(include=["gflowdag"]):
    from doors import good_files, knock


def main() -> None:
    """Fuzz the door named by the first argument."""
    door, *options = sys.argv[1:]
    folder = Path(tempfile.mkdtemp())
    good = good_files(folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    (corpus / "intact").write_bytes(good[door])
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda content: knock(door, content, good, folder))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
