"""Messages name options as they are typed where the user is, and never both ways."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.runtime.place import option, speaking, typed

SOURCE = Path(gd.__file__).parent
OF_COMMANDS = re.compile(r"(?<![\w-])--[a-z]|on the command line")
OF_PYTHON = re.compile(r"\b[a-z_]+=['\"\[{]|\bDataset\.|\bdf[.\[]|\bgd\.|\b(Knowledge|BGe|BDeu|MC3)\(")
# Reached from one place alone.
BY_COMMANDS = {"posterior/runs.py", "runtime/devices.py"}
BY_PYTHON = {
    "data/dataset.py": "Dataset.from_file",  # a path in place of a table
    "estimators/base.py": "Knowledge(forbidden",  # knowledge that is no Knowledge
    "estimators/compare.py": "MC3()",
    "estimators/dag_gflownet.py": "PaperRecipe(",
    "posterior/effects.py": "score='bge'",
    "score/priors.py": "Knowledge(max_parents=...)",  # a prior object of one's own
    "score/registry.py": "BGe(alpha_mu=2.0)",  # a score that is no name
}
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(40, 3)), columns=["a", "b", "c"])
UNREADY = {
    "gaps": (NUMBERS.assign(d=[np.nan, 1.5] * 20), {}, ()),
    "constant": (NUMBERS.assign(d=1.0), {}, ()),
    "dates": (NUMBERS.assign(d="2021-03-01"), {}, ()),
    "identifiers": (NUMBERS.assign(d=[f"P{row}" for row in range(40)]), {}, ()),
    "copies": (NUMBERS.assign(d=NUMBERS["a"]), {}, ()),
    "combination": (NUMBERS.assign(d=NUMBERS["a"] + NUMBERS["b"]), {}, ()),
    "numbers as text": (NUMBERS.assign(d=["12%", "5 %"] * 20), {}, ()),
    "no numbers": (NUMBERS, {"discrete": ["a"]}, ("--discrete", "a")),
    "no logarithm": (NUMBERS, {"transform": "log"}, ("--transform", "log")),
    "unknown column": (NUMBERS, {"drop": ["x"]}, ("--drop", "x")),
    "wrong kind": (NUMBERS.assign(d=["u", "v"] * 20), {"continuous": ["d"]}, ("--continuous", "d")),
    "wrong score": (NUMBERS, {"score": "bdeu"}, ("--score", "bdeu")),
    "other score": (NUMBERS.round().astype(int), {"score": "bge"}, ("--score", "bge")),
    "numbers for targets": (
        NUMBERS.assign(target=[0, 1] * 20),
        {"interventions": "target"},
        ("--interventions", "target"),
    ),
    "method": (NUMBERS.round().astype(int), {"method": "bcd-nets"}, ("--method", "bcd-nets")),
}


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Texts of a file that may reach a user: no docstrings, nothing in `typed` or `option`."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("typed", "option"):
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def raised(path: Path) -> Iterator[tuple[int, str]]:
    """Texts inside `raise` statements."""
    tree = ast.parse(path.read_text("utf-8"))
    lines = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
    ]
    for line, text in sentences(path):
        if any(line in block for block in lines):
            yield line, text


@pytest.mark.parametrize("room", sorted(path.name for path in SOURCE.iterdir() if path.is_dir()))
def test_no_message_speaks_two_languages(room: str) -> None:
    for path in (SOURCE / room).rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if room != "cli" and name not in BY_COMMANDS and name != "runtime/place.py":
            for line, text in sentences(path):
                assert not OF_COMMANDS.search(text), f"{name}:{line}: use option() or typed(): {text}"
        for line, text in raised(path):
            if not (name in BY_PYTHON and BY_PYTHON[name] in text):
                assert not OF_PYTHON.search(text), f"{name}:{line}: use option() or typed(): {text}"


@pytest.mark.parametrize("name", UNREADY)
def test_an_error_speaks_the_language_of_the_place(name: str, tmp_path: Path) -> None:
    frame, options, typed_options = UNREADY[name]
    with pytest.raises(gd.errors.GFlowDAGError) as in_python:
        gd.fit(frame, **options)
    assert not OF_COMMANDS.search(str(in_python.value))
    frame.to_csv(tmp_path / "t.csv", index=False)
    answer = CliRunner().invoke(
        app, ["fit", str(tmp_path / "t.csv"), *typed_options, "--out", str(tmp_path / "r")]
    )
    assert isinstance(answer.exception, gd.errors.GFlowDAGError), answer.output
    assert not OF_PYTHON.search(str(answer.exception))
    assert not re.search(r"\b(MC3|OrderMCMC|ExactPosterior)\b", str(answer.exception))


def test_notes_speak_the_language_of_the_place(tmp_path: Path) -> None:
    frame = NUMBERS.assign(row=range(40), sex=[1, 2] * 20)
    frame.to_csv(tmp_path / "t.csv", index=False)
    in_python = " ".join(gd.Dataset.from_frame(frame).notes)
    shown = " ".join(CliRunner().invoke(app, ["check", str(tmp_path / "t.csv")]).output.split())
    assert "drop=['row']" in in_python
    assert "continuous=['sex']" in in_python
    assert not OF_COMMANDS.search(in_python)
    assert "--drop row" in shown
    assert "--continuous sex" in shown
    assert not OF_PYTHON.search(shown)


def test_options_are_written_as_they_are_typed() -> None:
    assert option("drop", ["a b", "c"]) == "drop=['a b', 'c']"
    assert option("max_parents", 2) == "knowledge=gd.Knowledge(max_parents=2)"
    with speaking("command line"):
        assert option("drop", ["a b", "c"]) == "--drop 'a b,c'"
        assert option("drop", ["a,b", "c"]) == "--drop a,b --drop c"  # a name with a comma stands alone
        assert option("transform", {"a": "log"}) == "--transform a=log"
        assert option("standardize", False) == "--no-standardize"
        assert option("max_levels") == "--max-levels"
        assert option("num_samples") == "--samples"
        assert option("random_state", 1) == "--seed 1"
        assert typed(python="p", command_line="c") == "c"
    assert typed(python="p", command_line="c") == "p"
