"""The rooms import in one direction, and no approximate method looks at the judge."""

from __future__ import annotations

import ast
import json
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


def _typed_names(path: Path) -> set[str]:
    """What a module imports for type checkers to find in it."""
    branches = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    first = next(node for node in branches if ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in first.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname for node in imports for alias in node.names if alias.asname}


def test_type_checkers_see_the_names_that_users_have() -> None:
    import gflowdag
    from gflowdag import estimators

    assert _typed_names(SOURCE / "__init__.py") == set(gflowdag.__all__) - {"__version__"}
    defined = {"REGISTRY", "estimator_class", "fit"}
    assert _typed_names(SOURCE / "estimators" / "__init__.py") == set(estimators.__all__) - defined


def test_type_checkers_know_the_posterior_and_no_misspelt_name(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "import gflowdag as gd\n"
        'sachs = gd.load_dataset("sachs")\n'
        "post = gd.fit(sachs.frame)\n"
        "reveal_type(post)\n"
        "gd.metrics.auroc(post, sachs.truth)\n"
        "gd.fitt\n"
    )
    config = {"extraPaths": [str(SOURCE.parent)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    answer = subprocess.run([*command, "-p", str(tmp_path)], capture_output=True, text=True, timeout=200)
    if not answer.stdout.startswith("{"):
        pytest.skip("pyright fetches its engine when it first runs, and could not")
    told = {
        row["range"]["start"]["line"]: row["message"]
        for row in json.loads(answer.stdout)["generalDiagnostics"]
    }
    assert told.pop(3) == 'Type of "post" is "Posterior"'
    assert "fitt" in told.pop(5)
    assert not told


def test_a_module_does_not_take_the_place_of_a_function_of_its_name() -> None:
    import gflowdag

    modules = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(gflowdag._LAZY)


def test_nothing_is_ever_unpickled() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text, path
        assert "allow_pickle=True" not in text, path
