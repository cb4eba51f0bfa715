"""The rooms import in one direction, and no approximate method looks at the judge."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "gflowdag"
EVERYWHERE = {
    "errors",
    "files",
    "progress",
    "precision",
    "diagnostics",
    "devices",
    "processes",
    "wording",
    "__init__",
}
METHODS = {"exact", "gflownet", "mcmc", "baseline"}
ALLOWED = {
    "graph": set(),
    "data": {"graph"},
    "score": {"graph", "data"},
    **{room: {"graph", "data", "score"} for room in METHODS},
}


def _imported_rooms(room: str) -> dict[str, set[str]]:
    rooms: dict[str, set[str]] = {}
    for path in (SOURCE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
                if node.module == "gflowdag":
                    modules = [f"gflowdag.{alias.name}" for alias in node.names]
            found = {name.split(".")[1] for name in modules if name.startswith("gflowdag.")}
            rooms.setdefault(path.name, set()).update(found)
    return rooms


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_only_from_its_left(room: str) -> None:
    allowed = ALLOWED[room] | EVERYWHERE | {room}
    for name, imported in _imported_rooms(room).items():
        assert imported <= allowed, f"{room}/{name} imports {sorted(imported - allowed)}"


def test_no_approximate_estimator_uses_the_exact_engine() -> None:
    for path in (SOURCE / "estimators").glob("*.py"):
        if path.stem in {"exact", "auto", "cost", "__init__"}:  # cost: only what it would take
            continue
        assert "gflowdag.exact" not in path.read_text(encoding="utf-8"), path.name


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "{'jax', 'pandas', 'sklearn', 'numba'}"
    code = f"import sys, gflowdag, gflowdag.cli; print(sorted({heavy} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_nothing_is_ever_unpickled() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text, path
        assert "allow_pickle=True" not in text, path
