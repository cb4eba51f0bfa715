"""The command line, as a user calls it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fork_server import LONGEST, ForkServer
from typer.testing import CliRunner

from gflowdag import __version__
from gflowdag.cli import commands, export
from gflowdag.cli.app import app
from gflowdag.errors import GFlowDAGError
from gflowdag.estimators import estimator_class
from gflowdag.posterior import runs
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.checkpoints import CHECKPOINT

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "table.csv"
    commands.run_simulation(path, "linear-gaussian", 4, 60, 1.0, "erdos-renyi", 3)
    return path


@pytest.fixture(scope="module")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    command = [sys.executable, "-m", "gflowdag", "fit", table, "--out", folder, "--samples", "50", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["diagnostics"]["verdict"] == "exact"
    return folder


@pytest.fixture(scope="module")
def gflowdag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """Ask the command line: exit code, standard output and standard error."""
    server = ForkServer(tmp_path_factory.mktemp("commands"))
    yield server.ask
    server.close()


def test_help_is_quick() -> None:
    # A quarter of a second, measured; what would make it seconds is one of these.
    program = (
        "import sys; from gflowdag.cli.app import app; app(['--help'], standalone_mode=False); "
        "print('loaded:', *sorted({'jax', 'numpy', 'scipy', 'pandas', 'numba', 'matplotlib', 'networkx', "
        "'sklearn', 'equinox', 'optax'} & sys.modules.keys()))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LONGEST)
    assert "gflowdag check TABLE.csv" in answer.stdout, answer.stderr
    assert answer.stdout.splitlines()[-1].split() == ["loaded:"]


def test_a_run_folder_holds_question_answer_and_circumstances(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {
        "config.json",
        "manifest.json",
        "posterior.npz",
        "report.html",
    }
    assert runs.read_manifest(run)["status"] == "done"
    assert runs.read_config(run)["samples"] == 50
    assert Posterior.load(run).num_samples == 50


def test_the_same_seed_gives_the_same_bytes(
    gflowdag: Command, run: Path, table: Path, tmp_path: Path
) -> None:
    assert gflowdag("fit", table, "--out", tmp_path / "again", "--samples", "50", "-q").returncode == 0
    assert (tmp_path / "again" / "posterior.npz").read_bytes() == (run / "posterior.npz").read_bytes()


def test_a_run_folder_is_not_overwritten(gflowdag: Command, run: Path, table: Path) -> None:
    before = (run / "posterior.npz").read_bytes()
    answer = gflowdag("fit", table, "--out", run)
    assert answer.returncode == 2
    assert "already holds a run" in answer.stderr
    assert (run / "posterior.npz").read_bytes() == before


def test_query_agrees_with_the_posterior(gflowdag: Command, run: Path) -> None:
    post = Posterior.load(run)
    answer = gflowdag("query", run, "edge", "X1", "X2", "--json")
    row = json.loads(answer.stdout)[0]
    assert row["probability"] == pytest.approx(post.edge_probabilities().loc["X1", "X2"])
    assert len(json.loads(gflowdag("query", run, "blanket", "X1", "--json").stdout)) == 3
    unknown = gflowdag("query", run, "edge", "X1", "nobody")
    assert unknown.returncode == 2
    assert "X1, X2, X3, X4" in unknown.stderr


@pytest.mark.parametrize("format", ["csv", "json", "graphml", "dot"])
def test_export_writes_every_edge(run: Path, format: str) -> None:
    post = Posterior.load(run)
    text = export.export_text(post, format, 0.2)
    kept = int((post.edge_probabilities().to_numpy() >= 0.2).sum())
    marker = {"csv": "\n", "json": '"source"', "graphml": "<edge", "dot": "->"}[format]
    assert text.count(marker) == kept + (format == "csv")


def test_dot_quotes_hostile_names() -> None:
    post = Posterior(np.array([[[0, 1], [0, 0]]]), ('a"; evil', "b\\"))
    assert '"a\\"; evil" -> "b\\\\"' in export.export_text(post, "dot", 0.0)


def test_simulated_tables_come_with_their_truth(table: Path) -> None:
    truth = pd.read_csv(table.with_suffix(".truth.csv"))
    assert list(truth.columns) == ["source", "target"]
    assert set(truth.source) | set(truth.target) <= set(pd.read_csv(table).columns)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1.5,2\n1.5,3\n1.5,5\n", "'a'"),
        ("a,b\n1.5,\n2.5,\n1.0,\n", "'b' has 0 values in 3 rows"),
        ("", "empty"),
    ],
)
def test_bad_tables_end_in_one_line_and_code_2(
    gflowdag: Command, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    answer = gflowdag("fit", path, "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "run").exists()


def test_check_datasets_and_doctor_answer(gflowdag: Command, table: Path) -> None:
    facts = json.loads(gflowdag("check", table, "--json").stdout)
    assert (facts["rows"], facts["variables"]) == (60, 4)
    assert {row["method"] for row in facts["methods"]} >= {"exact", "dag-gflownet", "order-gflownet", "mc3"}
    assert "sachs" in gflowdag("datasets").stdout
    assert "jax" in gflowdag("doctor").stdout


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_durations(text: str, seconds: float) -> None:
    assert commands.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-3m", "0s", "5 days"])
def test_unreadable_durations_are_refused(text: str) -> None:
    with pytest.raises(GFlowDAGError, match="duration"):
        commands.parse_duration(text)


def test_compare_writes_one_report_of_all_methods(gflowdag: Command, table: Path, tmp_path: Path) -> None:
    methods = ("--methods", "exact,auto", "--samples", "20")
    truth = ("--truth", table.with_suffix(".truth.csv"))
    answer = gflowdag("compare", table, *methods, *truth, folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.rstrip().endswith("Report: runs/table-compare.html")
    html = (tmp_path / "runs" / "table-compare.html").read_text()
    assert "Methods side by side" in html
    assert '<th scope="row">auto</th>' in html


@pytest.mark.parametrize("how", ["--quiet", "--json"])
def test_compare_tells_what_failed_however_it_is_called(gflowdag: Command, how: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.choice(["u", "v"], (40, 3)), columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    answer = gflowdag("compare", "t.csv", "--methods", "exact,bcd-nets", how, folder=tmp_path)
    assert answer.returncode == 1
    assert "bcd-nets failed: " in answer.stderr
    if how == "--json":
        exact, failed = json.loads(answer.stdout, parse_constant=pytest.fail)  # NaN is not JSON
        assert failed["failure"] in answer.stderr
        assert failed["log_evidence"] is None
        assert exact["failure"] is None
    else:
        assert not answer.stdout
    none = gflowdag("compare", "t.csv", "--methods", "bcd-nets", how, folder=tmp_path)
    assert none.returncode == 1
    assert "bcd-nets failed: " in none.stderr


def test_a_cyclic_truth_is_refused_by_its_edges(gflowdag: Command, table: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text("source,target\nX1,X2\nX2,X3\nX3,X1\nX1,X4\n")
    answer = gflowdag("fit", table, "--truth", truth, "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert "cycle: X1 → X2, X2 → X3, X3 → X1; remove" in answer.stderr
    assert not (tmp_path / "run").exists()


def test_a_column_of_many_levels_is_refused_with_the_option_that_allows_it(
    gflowdag: Command, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    letters = [f"level {code}" for code in range(40)]
    frame = pd.DataFrame({"many": rng.permutation(letters * 10), "few": rng.choice(["u", "v"], 400)})
    frame.to_csv(tmp_path / "levels.csv", index=False)
    refused = gflowdag("fit", "levels.csv", "--out", "run", folder=tmp_path)
    assert refused.returncode == 2
    assert "40 levels" in refused.stderr
    assert "--max-levels" in refused.stderr
    allowed = gflowdag("fit", "levels.csv", "--out", "run", "--max-levels", "40", "--json", folder=tmp_path)
    assert json.loads(allowed.stdout)["diagnostics"]["verdict"] == "exact"


def test_options_that_a_method_lacks_are_refused(gflowdag: Command, table: Path, tmp_path: Path) -> None:
    answer = gflowdag("fit", table, "--method", "exact", "--iterations", "5", "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert "--iterations does not apply" in answer.stderr
    assert "choose one of" in gflowdag("fit", table, "--method", "oracle").stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("exat", "exact"),
        ("MC3", "mc3"),
        ("dag_gflownet", "dag-gflownet"),
        ("DiBS", "dibs"),
        ("ExactPosterio", "exact"),
    ],
)
def test_a_misspelt_method_is_answered_with_the_right_one(typed: str, meant: str) -> None:
    with pytest.raises(GFlowDAGError, match=rf"did you mean {meant}\?"):
        estimator_class(typed)


def test_a_narrow_terminal_shows_every_method_by_its_whole_name(gflowdag: Command, table: Path) -> None:
    lines = gflowdag("check", table, columns=40).stdout.splitlines()
    names = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert {"bootstrap-ges", "bootstrap-pc", "order-gflownet"} <= set(names)


def test_the_list_of_data_sets_promises_only_downloads_that_exist(gflowdag: Command) -> None:
    text = gflowdag("datasets", columns=200).stdout
    told = {line.split()[0]: line for line in text.splitlines()}
    assert "or downloaded" in told["sachs-interventional"]
    for name in ("asia-5000", "gaussian-test"):
        assert "downloaded" not in told[name]
        assert "once you have made it" in told[name]
    assert told["alarm"].rstrip().endswith("of 37 variables")


def test_an_export_with_an_unknown_ending_is_refused(gflowdag: Command, run: Path, tmp_path: Path) -> None:
    answer = gflowdag("export", run, "--to", tmp_path / "x.png")
    assert answer.returncode == 2
    assert ".csv, .graphml, .dot, .json" in answer.stderr
    assert not (tmp_path / "x.png").exists()
    assert gflowdag("export", run, "--to", tmp_path / "x.png", "--format", "csv").returncode == 0


def test_a_table_of_which_every_column_is_dropped_is_refused_in_a_sentence(table: Path) -> None:
    with pytest.raises(GFlowDAGError, match="--drop names every column"):
        commands.load_table(str(table), drop=["X1,X2", "X3,X4"])


def test_a_run_is_resumed_with_its_settings_or_told_which_differ(
    gflowdag: Command, run: Path, table: Path
) -> None:
    answer = gflowdag("fit", table, "--out", run, "--samples", "60", "--seed", "2", "--resume")
    assert answer.returncode == 2
    assert "samples was 50 and is 60 now, seed was 0 and is 2 now; resume" in answer.stderr


def test_a_setting_that_is_left_out_on_resuming_is_said_to_be_not_given(tmp_path: Path) -> None:
    with runs.Run.start(tmp_path, {"iterations": 3, "budget": None}):
        (tmp_path / CHECKPOINT).touch()
    expected = "budget was not given and is 9s now, iterations was 3 and is not given now; resume"
    with pytest.raises(GFlowDAGError, match=expected):
        runs.Run.start(tmp_path, {"iterations": None, "budget": "9s"}, resume=True)


def test_an_empty_knowledge_file_is_no_knowledge(gflowdag: Command, table: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.toml").touch()
    command = ("fit", table, "--knowledge", "empty.toml", "--out", "run", "--samples", "5", "-q")
    assert gflowdag(*command, folder=tmp_path).returncode == 0
    report = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "no prior knowledge was given" in report
    assert "Graphs that the data cannot tell apart" in report
    assert "Here prior knowledge" not in report


def test_a_run_that_is_not_there_is_begun_and_not_in_silence(
    gflowdag: Command, table: Path, tmp_path: Path
) -> None:
    command = ("fit", table, "--out", tmp_path / "new", "--samples", "5", "--resume")
    begun = gflowdag(*command)
    assert begun.returncode == 0
    assert "a new one starts" in begun.stderr
    assert not gflowdag(*command).stderr


def test_a_pipe_is_told_of_no_progress(gflowdag: Command, table: Path, tmp_path: Path) -> None:
    assert not gflowdag("fit", table, "--out", tmp_path / "run", "--samples", "5").stderr


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("fi", "fit"),
        ("fit --method order", "order-gflownet\norder-mcmc"),
        ("fit tab", "table.csv\ntable.truth.csv"),
    ],
)
def test_the_shell_completes_commands_methods_and_tables(typed: str, completions: str, table: Path) -> None:
    words = f"gflowdag {typed}"
    request = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    environment = {**os.environ, **request, "_GFLOWDAG_COMPLETE": "complete_bash"}
    program = "import sys; sys.argv = ['gflowdag']; from gflowdag.cli.app import main; main()"
    command = [sys.executable, "-c", program]
    answer = subprocess.run(
        command, capture_output=True, text=True, cwd=table.parent, env=environment, timeout=LONGEST
    )
    assert answer.stdout.strip() == completions


def test_the_version_is_told() -> None:
    answer = CliRunner().invoke(app, ["--version"])
    assert answer.exit_code == 0
    assert answer.output == f"gflowdag {__version__}\n"


def test_an_option_that_would_be_ignored_is_refused(table: Path) -> None:
    with pytest.raises(GFlowDAGError, match="--interventions COLUMN"):
        commands.load_table(str(table), intervention_base=1)


def test_hyper_parameters_of_the_score_are_options_and_foreign_ones_are_refused():
    from gflowdag import Dataset, GeneralizedLinear
    from gflowdag.cli.commands import configured_score
    from gflowdag.score import BDeu, BGe

    frame = pd.DataFrame({"a": ["x", "y"] * 5, "b": ["u", "u", "v", "v", "w"] * 2, "n": np.arange(10) ** 2.0})
    discrete, mixed = Dataset.from_frame(frame[["a", "b"]]), Dataset.from_frame(frame)
    continuous = Dataset.from_frame(frame[["n"]])
    config = {"score": "auto", "alpha_mu": None, "alpha_w": None, "ess": None}
    assert configured_score(config, mixed) == "auto"
    assert configured_score(config | {"ess": 10.0}, discrete) == BDeu(ess=10)
    both = configured_score(config | {"ess": 10.0, "alpha_w": 9.0}, mixed)
    assert both == GeneralizedLinear(ess=10, alpha_w=9)
    named = configured_score(config | {"score": "bge", "alpha_mu": 2.0, "alpha_w": 20.0}, continuous)
    assert named == BGe(alpha_mu=2, alpha_w=20)
    with pytest.raises(GFlowDAGError, match="--alpha-w is not an option of the score bde, which has --ess"):
        configured_score(config | {"score": "bde", "alpha_w": 20.0}, discrete)
    with pytest.raises(GFlowDAGError, match="--ess is not an option of the score bge"):
        configured_score(config | {"ess": 10.0}, continuous)


def test_the_limit_on_cells_is_told_and_its_absence_warned_of_in_words(
    gflowdag: Command, tmp_path: Path
) -> None:
    rows = [f"{i % 2},{i % 3},{i % 5 % 2}" for i in range(60)]
    (tmp_path / "codes.csv").write_text("a,b,c\n" + "\n".join(rows) + "\n")
    for score, said in (("auto", "as many cells as rows (60)"), ("bde", "Nothing limits the cells")):
        answer = gflowdag("fit", "codes.csv", "--score", score, "--out", score, folder=tmp_path)
        assert answer.returncode == 0, answer.stderr
        assert said in " ".join(answer.stdout.split())
        assert "Warning" not in answer.stderr
        assert json.loads((tmp_path / score / "config.json").read_text())["prior"] == "fair"
