"""The rooms import in one direction, and no approximate method looks at the judge."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fork_server import LONGEST
from rooms import ALLOWED, BELOW, HAND_OVER

SOURCE = Path(__file__).resolve().parent.parent / "src" / "gflowdag"
LAB = SOURCE.parent / "gflowdag_lab"


def _imported_modules(path: Path) -> set[str]:
    """What a file imports, inside functions and for type checkers too."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "gflowdag":
            modules.update(f"gflowdag.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return modules


def _imported_rooms(path: Path) -> set[str]:
    return {name.split(".")[1] for name in _imported_modules(path) if name.startswith("gflowdag.")}


def _room(path: Path) -> str:
    inside = path.relative_to(SOURCE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def test_every_room_has_its_place() -> None:
    assert {_room(path) for path in SOURCE.rglob("*.py")} == set(ALLOWED)


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_only_from_its_left(room: str) -> None:
    for path in SOURCE.rglob("*.py"):
        if _room(path) != room:
            continue
        name = path.relative_to(SOURCE).as_posix()
        passed = {target for source, target in HAND_OVER if source == name}
        wrong = _imported_rooms(path) - ALLOWED[room] - BELOW - {room} - passed
        assert not wrong, f"{name} imports {sorted(wrong)}"


def test_the_rooms_have_no_cycle() -> None:
    order: list[str] = []
    rest = dict(ALLOWED)
    while rest:
        ready = [room for room, needs in rest.items() if needs <= {*order, *BELOW}]
        assert ready, f"a cycle among {sorted(rest)}"
        order += ready
        rest = {room: needs for room, needs in rest.items() if room not in ready}


def test_the_package_does_not_import_the_laboratory() -> None:
    for path in SOURCE.rglob("*.py"):
        assert not any(name.startswith("gflowdag_lab") for name in _imported_modules(path)), path


def _names_taken(path: Path) -> set[tuple[str, str]]:
    """Every module of the package that a file imports from, with the name that it takes."""
    taken: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            taken |= {(alias.name, "") for alias in node.names if alias.name.startswith("gflowdag.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gflowdag":
            taken |= {(str(node.module), alias.name) for alias in node.names}
    return taken


def test_the_laboratory_takes_public_names_alone() -> None:
    """Public is what the package, a room or `gflowdag.errors` names in `__all__`."""
    from gflowdag import errors

    for path in LAB.rglob("*.py"):
        for module, name in sorted(_names_taken(path)):
            assert module.removeprefix("gflowdag.").split(".")[0] in {"gflowdag", *ALLOWED}, (path, module)
            assert module.count(".") <= 1, f"{path.name} looks into {module}"
            public = dir(errors) if module == "gflowdag.errors" else importlib.import_module(module).__all__
            public = [*public, *ALLOWED] if module == "gflowdag" else public
            assert name in public, f"{path.name} takes {name} from {module}"


def test_the_laboratory_touches_nothing_private() -> None:
    own = {"self", "os", "process_executor"}  # the last is loky's
    for path in LAB.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr[1:2] != "_":
                named = isinstance(node.value, ast.Name) and node.value.id in own
                assert named or node.attr in {"_asdict", "_replace", "_fields"}, f"{path.name}: {node.attr}"


@pytest.mark.parametrize("room", sorted(path.parent.name for path in SOURCE.glob("*/__init__.pyi")))
def test_every_public_name_of_a_room_is_there(room: str) -> None:
    module = importlib.import_module(f"gflowdag.{room}")
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_no_approximate_estimator_uses_the_exact_engine() -> None:
    for path in (SOURCE / "estimators").glob("*.py"):
        if path.stem in {"exact", "auto", "cost", "compare"}:  # cost: only what it would take
            continue
        assert "exact" not in _imported_rooms(path), path.name


def test_no_approximate_method_keeps_what_the_exact_engine_sums() -> None:
    """Statements are summed over all DAGs where a posterior holds `local_scores`, and only there."""
    for path in SOURCE.rglob("*.py"):
        calls = [
            node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.keyword)
        ]
        given = [node for node in calls if node.arg == "local_scores" and ast.unparse(node.value) != "None"]
        name = path.relative_to(SOURCE).as_posix()
        assert not given or name in {"estimators/exact.py", "posterior/archive.py"}, name


def test_the_version_is_the_same_everywhere() -> None:
    import gflowdag

    root = SOURCE.parent.parent
    citation = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text("utf-8"), re.M)
    changes = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text("utf-8"), re.M)
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation
    assert changes
    assert {gflowdag.__version__, project["version"], citation[1]} == {changes[1]}


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "{'jax', 'pandas', 'sklearn', 'numba'}"
    code = f"import sys, gflowdag, gflowdag.cli.app; print(sorted({heavy} & set(sys.modules)))"
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
    assert {name for _, name in estimators.REGISTRY.values()} <= set(estimators.__all__)


def test_type_checkers_know_the_posterior_and_no_misspelt_name(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "import gflowdag as gd\n"
        'sachs = gd.load_dataset("sachs")\n'
        "post = gd.fit(sachs.frame)\n"
        "reveal_type(post)\n"
        "gd.metrics.auroc(post, sachs.truth)\n"
        "gd.fitt\n"
        'gd.fit(sachs.frame, method="bootstrap-pc", alpha=0.1, missing="drop", num_samples=10)\n'
        'gd.fit(sachs.frame, metod="mc3")\n'
        "gd.fit(sachs.frame, aplha=0.1)\n"
        "gd.MC3(num_chain=4)\n"
    )
    config = {"extraPaths": [str(SOURCE.parent)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    answer = subprocess.run([*command, "-p", str(tmp_path)], capture_output=True, text=True, timeout=LONGEST)
    if not answer.stdout.startswith("{"):
        pytest.skip("pyright fetches its engine when it first runs, and could not")
    told = {
        row["range"]["start"]["line"]: row["message"]
        for row in json.loads(answer.stdout)["generalDiagnostics"]
    }
    assert told.pop(3) == 'Type of "post" is "Posterior"'
    assert "fitt" in told.pop(5)
    for line, misspelt in ((7, "metod"), (8, "aplha"), (9, "num_chain")):
        assert f'No parameter named "{misspelt}"' in told.pop(line)
    assert not told


def test_a_module_does_not_take_the_place_of_a_function_of_its_name() -> None:
    import gflowdag

    modules = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(gflowdag._LAZY)


def test_nothing_is_ever_unpickled() -> None:
    for path in [*SOURCE.rglob("*.py"), *LAB.rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text, path
        assert "allow_pickle=True" not in text, path
