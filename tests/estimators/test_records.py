"""One record a method: the registry, the options of `fit` and the messages follow from it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from fork_server import LONGEST

import gflowdag as gd
import gflowdag.estimators
from gflowdag.data.read_options import READ_OPTIONS, ColumnKeywords, ReadKeywords
from gflowdag.errors import DataError, GFlowDAGError, KnowledgeError
from gflowdag.estimators import REGISTRY, estimator_class, method_names, registry
from gflowdag.estimators.base import StructureLearner
from gflowdag.estimators.fit_keywords import MethodOptions
from gflowdag.estimators.fitting import fit
from gflowdag.estimators.registry import estimator_classes

SHARED = {field.name for field in dataclasses.fields(StructureLearner)}


def test_the_registry_finds_every_record_of_this_package_in_the_order_of_their_ranks() -> None:
    found = {}
    for module in pkgutil.iter_modules(gflowdag.estimators.__path__):
        for name, kind in vars(importlib.import_module(f"gflowdag.estimators.{module.name}")).items():
            if (
                isinstance(kind, type)
                and kind.__module__.endswith(f".{module.name}")
                and "record" in vars(kind)
            ):
                found[kind.record.name] = (kind.record.rank, (module.name, name))
    by_rank = sorted(found.items(), key=lambda entry: entry[1])
    assert list(REGISTRY.items()) == [(method, place) for method, (_, place) in by_rank]
    assert len({rank for rank, *_ in found.values()}) == len(found)


def test_a_new_method_is_one_file(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "own.py").write_text(textwrap.dedent(OWN))
    monkeypatch.setattr(gflowdag.estimators, "__path__", [*gflowdag.estimators.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "REGISTRY", registry.own_methods())
    assert method_names() == [*REGISTRY, "own"]
    post = gd.fit(np.random.default_rng(0).normal(size=(30, 3)), method="own", num_samples=4)
    assert post.method == "own"
    assert "Own" in dir(gd)
    assert gd.Own is type(gd.Own()) is estimator_class("own")  # pyright: ignore
    del gd.Own, sys.modules["gflowdag.estimators.own"]  # what was asked for once is kept


def test_type_checkers_know_every_method() -> None:
    """The lines for a new method; programs do without them."""
    missing = {}
    for module, kind in REGISTRY.values():
        lines = {
            "__init__.py": f"    from gflowdag.estimators import {kind} as {kind}\n",
            "estimators/__init__.pyi": f"from gflowdag.estimators.{module} import {kind} as {kind}\n",
        }
        for file, line in lines.items():
            if line not in (Path(str(gd.__file__)).parent / file).read_text(encoding="utf-8"):
                missing[file] = line
    assert not missing, "for type checkers to know the method, write these lines"


@pytest.mark.parametrize("name", REGISTRY)
def test_a_record_has_the_name_under_which_its_class_is_registered(name: str) -> None:
    kind = estimator_class(name)
    assert kind.record.name == kind.method == name
    assert kind.__name__ == REGISTRY[name][1]
    assert getattr(gd, kind.__name__) is kind
    assert kind.record.label
    assert kind.record.gives


def test_the_signature_of_fit_names_every_option_of_every_method() -> None:
    own = {field.name for name in REGISTRY for field in dataclasses.fields(estimator_class(name))} - SHARED
    assert set(MethodOptions.__annotations__) == own
    assert set(inspect.signature(fit).parameters) - {"X", "method", "interventions", "options"} == SHARED


def test_type_checkers_know_every_reading_option() -> None:
    assert set(ReadKeywords.__annotations__) == set(READ_OPTIONS)
    apart = {"interventions", "standardize"}  # parameters of their own
    assert set(READ_OPTIONS) - set(ColumnKeywords.__annotations__) == {
        *apart,
        "sheet",
    }  # a file's, not a table's
    assert apart <= set(inspect.signature(fit).parameters)


def test_fit_and_the_estimators_have_the_same_defaults() -> None:
    defaults = {name: parameter.default for name, parameter in inspect.signature(fit).parameters.items()}
    for field in dataclasses.fields(StructureLearner):
        if field.name != "random_state":  # `fit` repeats itself unless told otherwise
            assert defaults[field.name] == field.default


@pytest.mark.parametrize("name", REGISTRY)
def test_no_default_is_outside_of_its_limits(name: str) -> None:
    from gflowdag.estimators.parameters import check_parameters

    check_parameters(estimator_class(name)())


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("mc3", {"thinning": 0}, r"thinning must be 1 or more, got 0 \(whole numbers only\)"),
        ("mc3", {"num_chains": 2.5}, "num_chains must be 1 or more, got 2.5"),
        ("order-mcmc", {"num_records": 3}, "num_records must be 4 or more, got 3"),
        ("order-mcmc", {"hottest": 0}, "hottest must be a number between 0 and 1, got 0"),
        ("order-gflownet", {"learning_rate": -1.0}, "learning_rate must be a positive number, got -1.0"),
        (
            "dag-gflownet",
            {"preset": "slow"},
            """preset must be "auto", "fast", "paper", "retuned", "chains" or "canonical", got 'slow'""",
        ),
        ("exact", {"max_variables": "20"}, "max_variables must be 1 or more, got '20'"),
    ],
)
def test_a_parameter_outside_of_its_limits_is_told_in_words(method: str, options: dict, message: str) -> None:
    with pytest.raises(GFlowDAGError, match=message):
        gd.fit(np.random.default_rng(0).normal(size=(20, 3)), method=method, **options)


def test_who_refuses_a_table_names_the_methods_that_take_it() -> None:
    drawn = gd.simulate.linear_gaussian(4, 40, interventions=15, random_state=1)
    with pytest.raises(DataError, match=r"cannot use interventional data: .* or use one of") as told:
        gd.BootstrapGES().fit(drawn.frame, interventions=drawn.intervened)
    able = [kind.__name__ for kind in estimator_classes() if kind.record.uses_interventions]
    assert str(told.value).endswith(", ".join(able))
    knowledge = gd.Knowledge(required=[("X1", "X2")])
    with pytest.raises(KnowledgeError, match=r"cannot use required or forbidden edges") as told:
        gd.BCDNets(knowledge=knowledge).fit(drawn.frame)
    assert "BootstrapPC" in str(told.value)
    assert "BootstrapGES" not in str(told.value)


def test_a_report_of_a_method_without_a_prior_does_not_speak_of_one() -> None:
    from gflowdag.display.report.words import question

    frame = gd.simulate.linear_gaussian(3, 60, random_state=0).frame
    config = {"prior": "fair"}
    without = gd.fit(frame, method="bootstrap-ges", num_bootstraps=2, n_jobs=1, num_samples=5)
    assert "fair prior" not in question(without, config, None)
    assert "fair prior" in question(gd.fit(frame, method="exact", num_samples=5), config, None)


OWN = '''
    from dataclasses import dataclass

    import numpy as np

    from gflowdag.estimators.base import StructureLearner
    from gflowdag.estimators.method import Method
    from gflowdag.estimators.parameters import whole
    from gflowdag.posterior.diagnostics import Diagnostics
    from gflowdag.posterior.posterior import Posterior


    @dataclass(kw_only=True, eq=False, repr=False)
    class Own(StructureLearner):
        """Random empty graphs."""

        record = Method(name="own", label="an own method", answer="unverified", gives="nothing")

        num_steps: int = whole(3)

        def _infer(self, score, seed, progress):
            graphs = np.zeros((self.num_samples, score.num_variables, score.num_variables), bool)
            diagnosis = Diagnostics("unverified", f"After {self.num_steps} steps.")
            return Posterior(graphs, score.names, method=self.method, diagnosis=diagnosis)
'''


@pytest.fixture
def another_package(tmp_path: Path) -> Path:
    """A folder for `sys.path` with an installed package that brings the method `own`, and a broken one."""
    (tmp_path / "own_package.py").write_text(textwrap.dedent(OWN))
    folder = tmp_path / "own_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    lines = [
        "[gflowdag.methods]",
        "own = own_package:Own",
        "mc3 = own_package:Own",
        "broken = no_package:None",
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def test_another_package_brings_a_method(another_package, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(another_package))
    table = np.random.default_rng(0).normal(size=(30, 3))
    post = gd.fit(table, method="own", num_steps=7, num_samples=4)  # pyright: ignore
    assert post.method == "own"
    assert post.diagnostics()["explanation"] == "After 7 steps."
    assert method_names()[-2:] == ["broken", "own"]
    assert gd.fit(table, method="exact", num_samples=4).method == "exact"
    assert estimator_class("mc3") is gd.MC3  # nobody takes the place of a method of ours
    with pytest.raises(GFlowDAGError, match="own has no option 'num_step': did you mean num_steps"):
        gd.fit(table, method="own", num_step=7)
    with pytest.raises(
        GFlowDAGError, match=r"'broken' of own-package .* cannot be loaded: ModuleNotFoundError"
    ):
        gd.fit(table, method="broken")
    with pytest.raises(GFlowDAGError, match="did you mean own"):
        estimator_class("owm")


def test_the_command_line_knows_the_method_of_another_package(another_package, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(another_package))
    gd.simulate.linear_gaussian(4, 30, random_state=0).frame.to_csv(
        another_package / "table.csv", index=False
    )
    code = """
import os, sys, subprocess
sys.path.insert(0, os.getcwd())
from gflowdag.cli.app import main
main()
"""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=another_package, capture_output=True, text=True, timeout=LONGEST)

    fitted = run("fit", "table.csv", "--method", "own", "--json")
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["method"] == "own"
    checked = run("check", "table.csv", "--json")
    assert checked.returncode == 0, checked.stderr
    assert "'broken' of own-package" in checked.stderr
    rows = {row["method"]: row for row in json.loads(checked.stdout)["methods"]}
    assert rows["own"]["answer"] == "unverified"
    assert rows["own"]["seconds"] is None
    assert "own" in run("fit", "--help").stdout
