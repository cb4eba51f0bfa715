"""Files that hypothesis makes up, from plain bytes to nearly right ones: read or refused at every door."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from doors import ALL_DOORS, DOORS, SLOW_DOORS, good_files, knock
from tallies import Tally

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QUICK, LONG = 25, 2000  # examples at each door
CELL = st.one_of(
    st.floats(width=32).map(str),
    st.integers().map(str),
    st.text(max_size=8),
    st.sampled_from(["", "a", "NA"]),
)
NAME = st.sampled_from(["a", "b", "c", "re:.*", "re:(", "target", ""]) | st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAME, inner, max_size=4),
    max_leaves=12,
)
TABLE = st.lists(st.lists(CELL, min_size=1, max_size=5), min_size=1, max_size=8).map(
    lambda rows: "\n".join(",".join(row) for row in rows)
)
EDGES = st.lists(st.tuples(NAME, NAME), max_size=5)
KNOWLEDGE = st.fixed_dictionaries(
    {},
    optional={
        "required": EDGES,
        "forbidden": EDGES,
        "tiers": st.lists(st.lists(NAME, max_size=3), max_size=4),
    },
).map(lambda parts: "\n".join(f"{key} = {json.dumps(value)}" for key, value in parts.items()))
WORD = st.sampled_from(
    ["network", "variable", "probability", "type", "discrete", "table", "a", "b", "yes", "no"]
)
MARK = st.sampled_from([*"{}()[]|;,", "2", "0.5", "1e999", "/*", "//"])
NETWORK = st.lists(WORD | MARK, max_size=60).map(" ".join)
CONFIG = st.dictionaries(
    st.sampled_from(["data", "method", "samples", "seed", "knowledge", "truth", "budget"]), JSON
).map(json.dumps)
LINES = st.lists(st.dictionaries(st.sampled_from(["step", "loss"]), JSON).map(json.dumps), max_size=6).map(
    "\n".join
)
ROWS = st.lists(
    st.dictionaries(
        st.sampled_from(
            ["name", "kind", "subject", "num_variables", "num_rows", "to_0.05_s", "rungs", "device"]
        ),
        JSON | st.sampled_from(["quality", "mc3", 5, 100, 1.0, [{"seconds": 1, "work": 1, "error": 0}]]),
    ),
    max_size=3,
).map(lambda rows: json.dumps({"schema": 2, "rows": rows}))
# Files in the language of a door; archives are cut from the intact one below.
SPOKEN = {
    "csv": TABLE,
    "labels": TABLE.map(lambda text: "a,b,c,target\n" + text),
    "truth": TABLE.map(lambda text: "source,target\n" + text),
    "toml": KNOWLEDGE,
    "bif": NETWORK,
    "config": CONFIG,
    "metrics": LINES,
    "bench": ROWS,
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return good_files(tmp_path_factory.mktemp("good"))


def _files(door: str, intact: bytes) -> st.SearchStrategy[bytes]:
    """Plain bytes, the intact file with a stretch replaced, and files in the language of the door."""
    place = st.integers(0, len(intact))
    patched = st.tuples(place, st.binary(max_size=40), place).map(
        lambda cut: intact[: cut[0]] + cut[1] + intact[cut[2] :]
    )
    files = st.one_of(st.binary(max_size=300), patched)
    if door in SPOKEN:
        files = files | SPOKEN[door].map(lambda text: text.encode("utf-8", "surrogatepass"))
    return files


def _present(door: str, good: dict[str, bytes], folder: Path, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(_files(door, good[door]))
    def present(content: bytes) -> None:
        knock(door, content, good, folder)

    present()


@pytest.mark.parametrize("door", ALL_DOORS)
def test_made_up_files_are_read_or_refused(door: str, good: dict[str, bytes], tmp_path: Path) -> None:
    _present(door, good, tmp_path, QUICK)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("door", ALL_DOORS)
def test_thousands_of_made_up_files_are_read_or_refused(
    door: str, good: dict[str, bytes], tmp_path: Path, tally: Tally
) -> None:
    examples = LONG if door in DOORS else LONG // len(SLOW_DOORS)
    _present(door, good, tmp_path, examples)
    tally("made-up files", door, tried=examples)
