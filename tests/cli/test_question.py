"""A run remembers what it was asked, by content: files that change later change nothing about it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tallies import Tally
from typer.testing import CliRunner

from gflowdag.cli import commands
from gflowdag.cli.app import app
from gflowdag.data import Knowledge
from gflowdag.data.read_options import ReadOptions
from gflowdag.errors import GFlowDAGError
from gflowdag.posterior import runs
from gflowdag.posterior.posterior import Posterior

FILES = Path(__file__).parent / "files"  # a table, and a run folder that version 0.2 made of it
METHODS = {"exact": {}, "order-mcmc": {"iterations": 30}, "order-gflownet": {"iterations": 2}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("table.csv", "k.toml", "truth.csv"):
        shutil.copy(FILES / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(method: str = "exact", *, resume: bool = False, **settings: object) -> Posterior:
    config = {
        "data": "table.csv",
        "method": method,
        "score": "auto",
        "prior": "uniform",
        **ReadOptions().to_dict(),
        "knowledge_file": Path("k.toml"),
        "truth_file": Path("truth.csv"),
        "samples": 20,
        "seed": 0,
        **METHODS.get(method, {}),
        **settings,
    }
    config = {"budget": None, "iterations": None, "preset": None, **config}
    return commands.run_fit(config, out=Path("run"), resume=resume, verbose=False)[0]


def test_the_question_is_stored_by_content(folder: Path) -> None:
    fit()
    config = json.loads((folder / "run" / runs.CONFIG).read_text(encoding="utf-8"))
    assert Knowledge.from_dict(config["knowledge"]) == Knowledge(forbidden=[("x", "y")])
    assert config["truth"] == [["x", "y"], ["y", "z"]]
    assert config["score_parameters"]["alpha_mu"] == 1.0
    assert config["prior_parameters"] == {}
    assert {"kinds", "transform", "interventions", "data_sha256"} <= config.keys()
    assert len(config["question_sha256"]) == 64


def test_the_parameters_that_are_stored_are_those_of_the_fit(folder: Path) -> None:
    fit(alpha_mu=5.0)
    assert runs.read_config(folder / "run")["score_parameters"]["alpha_mu"] == 5.0


def test_every_setting_that_decides_the_answer_changes_the_hash(folder: Path, tally: Tally) -> None:
    def asked(name: str, **settings: object) -> str:
        (folder / "k.toml").write_text(settings.pop("knowledge", 'forbidden = [["x", "y"]]'))
        (folder / "truth.csv").write_text(settings.pop("truth", "source,target\nx,y\n"))
        shutil.rmtree(folder / "run", ignore_errors=True)
        fit(**settings)
        return runs.read_config(folder / "run")["question_sha256"]

    first = asked("same")
    assert asked("same", command="other words") == first
    others = {
        "knowledge": {"knowledge": 'forbidden = [["y", "x"]]'},
        "truth": {"truth": "source,target\nx,z\n"},
        "prior": {"prior": "fair"},
        "scaling": {"standardize": False},
        "kinds": {"discretize": "quantile"},
        "samples": {"samples": 21},
        "score": {"alpha_mu": 2.0},
    }
    for name, settings in others.items():
        assert asked(name, **settings) != first, name
    tally("other questions", "settings that decide the answer", tried=len(others))


@pytest.mark.parametrize("method", METHODS)
def test_resuming_with_other_knowledge_is_refused_and_named(method: str, folder: Path, tally: Tally) -> None:
    fit(method)
    before = (folder / "run" / "posterior.npz").read_bytes()
    (folder / "k.toml").write_text('required = [["x", "y"]]')
    with pytest.raises(GFlowDAGError) as refusal:
        fit(method, resume=True)
    assert "knowledge.forbidden was [['x', 'y']] and is [] now" in str(refusal.value)
    assert "knowledge.required was [] and is [['x', 'y']] now" in str(refusal.value)
    assert (folder / "run" / "posterior.npz").read_bytes() == before
    tally("other questions", f"--resume, {method}", tried=1)


def test_resuming_with_another_truth_is_refused_and_the_same_question_is_not(folder: Path) -> None:
    fit()
    assert fit(resume=True).edge_probabilities().loc["x", "y"] == 0
    (folder / "truth.csv").write_text("source,target\nz,y\n")
    with pytest.raises(GFlowDAGError, match=r"truth was \[\['x', 'y'\], \['y', 'z'\]\] and is"):
        fit(resume=True)


def test_a_report_shows_what_was_known_then_not_what_the_file_says_now(folder: Path) -> None:
    fit()
    (folder / "k.toml").write_text('required = [["x", "y"]]')
    (folder / "truth.csv").write_text("source,target\nz,x\nz,y\n")
    page = commands.rewrite_report(folder / "run", None).read_text(encoding="utf-8")
    assert "Forbidden edges" in page
    assert "x → y" in page
    assert "Required edges" not in page
    assert '"edges":[[0,1],[1,2]],"base"' in page  # the true graph of then


def test_a_run_folder_of_version_0_2_opens_and_what_its_files_say_now_is_not_believed(folder: Path) -> None:
    shutil.copytree(FILES / "run-0.2", folder / "run")
    assert Posterior.load(folder / "run").edge_probabilities().loc["x", "y"] == 0
    page = commands.rewrite_report(folder / "run", None).read_text(encoding="utf-8")
    assert "SHA-256 of the data" in page
    assert "Forbidden edges" not in page
    assert "the knowledge that was given holds" in page
    with pytest.raises(GFlowDAGError, match=r"knowledge was k\.toml and is not given now"):
        fit("auto", resume=True, devices=None, deterministic=False)


def test_a_limit_on_the_parents_is_an_option_and_a_part_of_the_question(folder: Path) -> None:
    asked = {}
    for name, settings in {
        "file": {"max_parents": None, "knowledge": "max_parents = 1"},
        "option": {"max_parents": 1, "knowledge": ""},
        "other": {"max_parents": 2, "knowledge": ""},
    }.items():
        (folder / "k.toml").write_text(settings.pop("knowledge"))
        shutil.rmtree(folder / "run", ignore_errors=True)
        posterior = fit(**settings)
        assert posterior.samples.sum(axis=1).max() <= (1 if name != "other" else 2)
        asked[name] = runs.read_config(folder / "run")["question_sha256"]
    assert asked["file"] == asked["option"] != asked["other"]
    assert commands.load_knowledge(None, 3) == Knowledge(max_parents=3)
    (folder / "k.toml").write_text("max_parents = 1")
    with pytest.raises(GFlowDAGError, match=r"max_parents is 1 in k\.toml and 2 in --max-parents"):
        commands.load_knowledge(Path("k.toml"), 2)


def test_no_parents_at_all_is_another_question_than_no_limit(folder: Path) -> None:
    fit(knowledge_file=None)
    with pytest.raises(GFlowDAGError, match=r"knowledge\.max_parents was not given and is 0 now"):
        fit(knowledge_file=None, max_parents=0, resume=True)


def test_local_scores_are_a_part_of_the_question_by_content(folder: Path) -> None:
    file = folder / "scores.jkl"
    commands.write_scores("table.csv", file, "auto", ReadOptions(), None, 2)
    fit(scores_file=file)
    file.rename(folder / "renamed.jkl")
    fit(scores_file=folder / "renamed.jkl", resume=True)
    commands.write_scores("table.csv", file, "auto", ReadOptions(), None, 1)
    with pytest.raises(GFlowDAGError, match="the file of local scores was a different one"):
        fit(scores_file=file, resume=True)


def test_the_report_of_a_comparison_says_how_the_table_was_read(folder: Path) -> None:
    options = ["--methods", "exact", "--samples", "5", "--no-standardize", "--max-parents", "1"]
    answer = CliRunner().invoke(app, ["compare", "table.csv", *options, "--report", "c.html", "-q"])
    assert answer.exit_code == 0, answer.output
    page = (folder / "c.html").read_text(encoding="utf-8")
    settings = page.partition("<dt>Settings</dt>")[2].partition("</dd>")[0]
    assert "standardize = False" in settings
    assert "max_parents = 1" in settings
    assert "missing = impute" in settings
    assert "= ()" not in settings  # what was not given is left out
