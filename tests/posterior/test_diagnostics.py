"""`Diagnostics`: typed for the package, a dictionary for users, and whole after a journey through a file."""

from __future__ import annotations

import ast
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from gflowdag.posterior.diagnostics import DIAGNOSTIC_NAMES, Diagnostics
from gflowdag.posterior.imputation import Imputation
from gflowdag.posterior.model_fit import Finding, ModelFit
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.files import read_npz

SOURCE = Path(__file__).resolve().parents[2] / "src" / "gflowdag"
FILES = Path(__file__).parent / "files"


def test_users_read_diagnostics_as_a_dictionary() -> None:
    diagnostics = Diagnostics("trusted", "Because.", ess=0.5, extra={"num_chains": 4, "elbo_gain": None})
    assert diagnostics["verdict"] == "trusted"
    assert diagnostics.get("pareto_k") is None
    assert diagnostics.get("pareto_k", 3) == 3
    assert list(diagnostics.keys()) == ["verdict", "explanation", "notes", "ess", "num_chains"]
    assert dict(diagnostics)["num_chains"] == 4
    assert "elbo_gain" not in diagnostics
    with pytest.raises(KeyError):
        diagnostics["r_hat"]


def test_a_verdict_is_one_of_four() -> None:
    with pytest.raises(ValueError, match="exact, trusted, not converged, unverified"):
        Diagnostics("excellent")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="give ess under that name"):
        Diagnostics(extra={"ess": 1.0})


def test_no_module_reads_diagnostics_by_string() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            keys: list[ast.expr] = []
            if isinstance(node, ast.Subscript):
                owner, keys = node.value, [node.slice]
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "get"
            ):
                owner, keys = node.func.value, node.args[:1]
            if keys and isinstance(keys[0], ast.Constant):
                assert "diagnos" not in ast.unparse(owner), f"{path}:{node.lineno}"


def _full() -> Diagnostics:
    """A value for every attribute; timings are not stored."""
    values = dict.fromkeys(DIAGNOSTIC_NAMES - {"seconds", "phases"}, 0.25) | {
        "verdict": "not converged",
        "explanation": "So.",
        "notes": ("one", "two"),
        "chosen": "mc3: it is quick",
        "interventional": True,
        "knowledge": True,
        "uses_prior": False,
        "iterations": 7,
        "pareto_k": -np.inf,
        "r_hat": np.inf,
        "acceptance": {"add": 0.1, "remove": 0.2},
        "assumed_directions": np.array([[False, True], [False, False]]),
        "score_traces": np.array([[1.0, -np.inf, np.nan]]),
        "imputation": Imputation(3, 400, 4, 1.01, 0.25),
        "model_fit": ModelFit(
            (Finding("tails", ("a",), "excess kurtosis", (3.0,), "heavy"),), ("rows",), True
        ),
    }
    matrices = ("edge_errors", "raw_edge_probabilities", "weighted_edge_probabilities")
    values |= dict.fromkeys(matrices, np.array([[0.0, 0.1], [0.2, 0.0]]))
    return Diagnostics(**values, extra={"num_chains": 4})


def test_every_diagnostic_survives_a_file(tmp_path: Path) -> None:
    given = _full()
    Posterior(np.zeros((3, 2, 2)), ("a", "b"), diagnosis=given).save(tmp_path / "p.npz")
    loaded = Posterior.load(tmp_path / "p.npz").diagnosis
    assert loaded.keys() == given.keys()
    for part in fields(Diagnostics):
        np.testing.assert_equal(getattr(loaded, part.name), getattr(given, part.name), err_msg=part.name)


def test_the_description_in_a_file_is_json_for_every_parser(tmp_path: Path) -> None:
    diagnostics = Diagnostics(pareto_k=-np.inf, ess=np.nan, r_hat=np.inf, extra={"elbo": -np.inf})
    Posterior(np.zeros((3, 2, 2)), ("a", "b"), log_evidence=np.nan, diagnosis=diagnostics).save(
        tmp_path / "p.npz"
    )
    meta = str(read_npz(tmp_path / "p.npz", max_bytes=1 << 20)["meta"])

    def refuse(word: str) -> None:
        raise AssertionError(word)

    read = json.loads(meta, parse_constant=refuse)
    assert read["diagnostics"]["pareto_k"] == "-Infinity"
    assert read["extra"]["elbo"] == "-Infinity"
    loaded = Posterior.load(tmp_path / "p.npz")
    assert (loaded.diagnosis.pareto_k, loaded.diagnosis.ess, loaded.log_evidence) == (-np.inf, None, None)


def test_a_file_of_version_0_2_by_a_method_without_a_prior_is_known_as_such(tmp_path) -> None:
    arrays = read_npz(FILES / "version-0.2-mc3.npz", max_bytes=1 << 20)
    meta = str(arrays["meta"]).replace('"mc3"', '"bootstrap-ges"')
    np.savez(tmp_path / "old.npz", **{**arrays, "meta": np.array(meta)})
    assert Posterior.load(tmp_path / "old.npz").diagnosis.uses_prior is False
    assert Posterior.load(FILES / "version-0.2-mc3.npz").diagnosis.uses_prior is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mc3", {"verdict": "not converged", "effective_samples": 56.742556917688255, "iterations": 2200}),
        ("order-gflownet", {"verdict": "trusted", "pareto_k": -np.inf, "ess": 0.9999998949069544}),
    ],
)
def test_files_of_version_0_2_are_read(name: str, expected: dict) -> None:
    posterior = Posterior.load(FILES / f"version-0.2-{name}.npz")
    assert posterior.method == name
    for key, value in expected.items():
        assert getattr(posterior.diagnosis, key) == value
    assert posterior.edge_errors().shape == (3, 3)
    assert posterior.edge_errors()[0, 1] > 0
    note = "3 variables taken as continuous, standardised (ddof = 1): x, y, z."
    assert posterior.diagnosis.notes == (note,)
    if name == "mc3":
        assert posterior.diagnosis.acceptance["reverse"] == pytest.approx(0.6456641766807405, abs=1e-15)
        assert posterior.diagnosis.score_traces.shape == (4, 20)
        assert posterior.diagnosis.extra == {"num_chains": 4}
    else:
        assert posterior.diagnosis.raw_edge_probabilities[0, 1] == pytest.approx(0.35418936, abs=1e-8)
        assert posterior.diagnosis.extra == {"weighted_orders": 32768, "dead_ends": 0}
