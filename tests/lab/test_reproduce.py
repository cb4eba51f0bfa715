"""`gflowdag reproduce`: no row is left out, failures show, results merge, nothing is computed twice."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from typer.testing import CliRunner

from gflowdag.cli.app import app
from gflowdag.errors import GFlowDAGError
from gflowdag.graph import all_dags
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import methods
from gflowdag_lab.paper.fits import fit_task, fit_tasks, load_posterior, posterior_path
from gflowdag_lab.paper.judge import log_joint_of_graphs
from gflowdag_lab.paper.kept import updated
from gflowdag_lab.paper.methods import METHODS, OF_THE_PAPER
from gflowdag_lab.paper.page import write_page
from gflowdag_lab.paper.problems import Spec, load
from gflowdag_lab.paper.reproduce import EXPERIMENTS, run
from gflowdag_lab.paper.results import Results
from gflowdag_lab.paper.study import run_tasks, store_row, stored_row

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "laboratory"

SMALL = Spec("linear-gaussian", 5, 100, 0)


def _reproduce(*arguments: str | Path) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    return answer.exit_code, answer.output


@pytest.mark.parametrize("quick", [True, False])
def test_no_experiment_leaves_out_a_row_of_the_paper(quick: bool) -> None:
    for name, experiment in EXPERIMENTS.items():
        tasks = fit_tasks(experiment.problems(quick, None), experiment.methods, quick=quick)
        assert len({task.name for task in tasks}) == len(tasks)
        assert json.loads(json.dumps([task.arguments for task in tasks]))
        if name not in ("limitations", "sachs-interventional", "lingauss20-erdos-renyi"):
            assert set(OF_THE_PAPER) <= set(experiment.methods)
    refused = set(OF_THE_PAPER) - set(EXPERIMENTS["sachs-interventional"].methods)
    assert refused == {name for name in OF_THE_PAPER if not METHODS[name].uses_interventions}


def test_every_setting_is_a_parameter_of_its_estimator() -> None:
    for name in METHODS:
        for quick in (True, False):
            for d in (5, 50):
                methods.make_estimator(name, methods.settings(name, quick=quick, num_variables=d), 0)


def test_a_budget_is_for_the_networks_that_are_trained_edge_by_edge() -> None:
    def changed(name: str, num_variables: int) -> dict[str, object]:
        both = [
            methods.settings(name, quick=False, num_variables=num_variables, budget=budget)
            for budget in (None, 600.0)
        ]
        return {key: value for key, value in both[1].items() if value != both[0].get(key)}

    assert changed("dag-gflownet-paper", 5) == {"iterations": 100_000, "budget": 600.0}
    assert changed("dag-gflownet-paper", 20) == {"iterations": 100_000, "budget": 600.0}
    assert changed("dag-gflownet", 20) == {"iterations": 2000, "budget": 600.0}
    assert changed("plain-policy", 10) == {"iterations": 2000, "budget": 600.0}
    for name in ("exact", "mc3", "order-gflownet"):
        assert changed(name, 20) == {}


def test_a_problem_has_the_same_table_wherever_it_is_loaded() -> None:
    first, second = load(SMALL), load(Spec(**SMALL._asdict()))
    assert first.data.sha256 == second.data.sha256
    assert load(SMALL._replace(seed=1)).data.sha256 != first.data.sha256


def test_a_run_writes_page_tables_and_figures_and_is_not_repeated(tmp_path: Path) -> None:
    arguments = ("small-graphs", "--quick", "--datasets", "1", "--methods", "exact", "--out", tmp_path)
    code, output = _reproduce(*arguments)
    assert code == 0
    assert "d5-n100-s0-raw--exact" in output
    page = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert "| Exact posterior | raw |" in page
    assert "40 at full size. *Quick size:* Exact posterior (2). *Not run:* MC3, Gadget," in page
    assert (tmp_path / "reproduction" / "small-graphs.csv").exists()
    stored = posterior_path(tmp_path / "quick" / "small-graphs", "d5-n100-s0-raw", "exact")
    before = stored.stat().st_mtime_ns
    assert _reproduce(*arguments)[0] == 0
    assert stored.stat().st_mtime_ns == before


def test_rows_from_two_machines_merge_by_copying_files(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    experiment = EXPERIMENTS["small-graphs"]
    run(experiment, here, quick=True, methods=["exact"], num_datasets=1)
    run(experiment, there, quick=True, methods=["mc3"], num_datasets=1)
    shutil.copytree(there, here, dirs_exist_ok=True)
    outcome = run(experiment, here, quick=True, methods=["exact", "mc3"], num_datasets=1)
    assert not outcome.faults
    assert sorted(row["method"] for row in outcome.rows) == ["exact", "exact", "mc3", "mc3"]
    assert all(np.isfinite(row["edge_r"]) for row in outcome.rows)


def test_a_missing_extra_is_a_row_that_names_the_remedy_and_the_exit_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "sumu"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sumu", None)
    code, output = _reproduce(
        "small-graphs", "--quick", "--datasets", "1", "--methods", "exact,gadget", "--out", tmp_path
    )
    assert code == 1
    assert 'pip install "gflowdag[gadget]"' in output
    assert "gflowdag[gadget]" in (tmp_path / "reproduction.md").read_text(encoding="utf-8")


def test_what_a_chain_leaves_is_read_back_and_judged(tmp_path: Path) -> None:
    outcome = run(EXPERIMENTS["small-graphs"], tmp_path, quick=True, methods=["exact", "mc3"], num_datasets=1)
    assert not outcome.faults
    # 4 000 kept steps of 16 chains on five variables: correlations of 0.99 and more were seen.
    assert all(row["edge_r"] > 0.9 for row in outcome.rows)


def test_an_experiment_under_another_prior_is_fitted_and_judged_under_it(tmp_path: Path) -> None:
    """Edges, evidence and the joint of the true graph are those of the prior; a stored uniform fit stays."""
    sparse = EXPERIMENTS["lingauss20-erdos-renyi"]
    assert sparse.prior == "erdos-renyi"
    sparse = sparse._replace(problems=lambda quick, count: [SMALL], methods=("exact",))
    assert "prior" not in fit_task(SMALL, "exact", quick=True).arguments
    (row,) = run(sparse, tmp_path, quick=True).rows
    assert row["options"] == "num_samples=1000, prior=erdos-renyi"
    data = load(SMALL).data
    graphs = all_dags(5)
    scores = {name: paper_score(data, prior=name).log_score(graphs) for name in ("uniform", "erdos-renyi")}
    for name, folder in (("uniform", "other"), ("erdos-renyi", sparse.study)):
        run_tasks([fit_task(SMALL, "exact", quick=True, prior=name)], tmp_path / folder)
        stored = load_posterior(tmp_path / folder, SMALL.name, "exact")
        # Both are sums over the 29,281 graphs in double precision.
        assert np.isclose(stored.log_evidence, logsumexp(scores[name]), rtol=0, atol=1e-8)
    held_out = [
        log_joint_of_graphs(load(SMALL), graphs[:100], name) - log_joint_of_graphs(load(SMALL), graphs[:100])
        for name in ("uniform", "erdos-renyi")
    ]
    assert np.array_equal(held_out[0], np.zeros(100))
    assert np.allclose(held_out[1], (scores["erdos-renyi"] - scores["uniform"])[:100], rtol=0, atol=1e-8)


def test_full_rows_take_the_place_of_quick_ones(tmp_path: Path) -> None:
    for quick in (True, False):
        folder = tmp_path / ("quick" if quick else "full") / "small-graphs"
        run_tasks([fit_task(SMALL, "exact", quick=quick)], folder)
    run_tasks([fit_task(SMALL._replace(seed=1), "exact", quick=True)], tmp_path / "quick" / "small-graphs")
    fits = Results(tmp_path).fits("small-graphs")
    assert list(fits["size"]) == ["full"]


def test_a_quick_run_is_judged_by_its_own_rows_where_full_ones_exist(tmp_path: Path) -> None:
    run_tasks([fit_task(SMALL, "exact", quick=False)], tmp_path / "full" / "small-graphs")
    outcome = run(EXPERIMENTS["small-graphs"], tmp_path, quick=True, methods=["exact"], num_datasets=1)
    assert [(row["size"], np.isfinite(row["e_shd"])) for row in outcome.rows] == [("quick", True)] * 2


def test_a_posterior_that_cannot_be_read_is_a_row_with_an_error(tmp_path: Path) -> None:
    experiment = EXPERIMENTS["small-graphs"]
    run(experiment, tmp_path, quick=True, methods=["exact"], num_datasets=1)
    damaged = posterior_path(tmp_path / "quick" / "small-graphs", "d5-n100-s0-raw", "exact")
    damaged.write_bytes(b"half a fi")
    outcome = run(experiment, tmp_path, quick=True, methods=["exact"], num_datasets=1)
    assert len(outcome.faults) == 1
    assert str(damaged) in outcome.faults[0]
    assert _reproduce("page", "--out", tmp_path)[0] == 0
    assert damaged.name in (tmp_path / "reproduction.md").read_text(encoding="utf-8")


def test_rows_that_an_experiment_does_not_have_run_nothing(tmp_path: Path) -> None:
    assert run(EXPERIMENTS["limitations"], tmp_path, quick=True, methods=["mc3"]).rows == []


def test_new_fits_go_into_the_tables_of_a_page_and_its_other_rows_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    small = ("small-graphs", "--quick", "--datasets", "1", "--page", page)
    _reproduce(*small, "--methods", "exact,mc3", "--out", tmp_path / "first")
    before = page.read_text(encoding="utf-8")
    fresh = tmp_path / "second"
    assert _reproduce("page", "--page", page, "--out", fresh, "--keep")[0] == 0
    assert page.read_text(encoding="utf-8") == before

    _reproduce(*small, "--methods", "bootstrap-ges,mc3", "--out", fresh, "--keep")
    points = pd.read_csv(tmp_path / "page" / "small-graphs-points.csv")
    assert list(points["method"].unique()) == ["exact", "mc3", "bootstrap-ges"]
    assert (points.groupby("method").size() == 2 * 3 * 20).all()  # scalings, features, pairs
    said = page.read_text(encoding="utf-8")
    assert "*Quick size:* Exact posterior (2), MC3 (2), Bootstrap GES (2)." in said

    _reproduce("page", "--page", page, "--out", fresh)
    assert "Exact posterior" not in page.read_text(encoding="utf-8").split("## What was run")[1]


def test_a_fit_without_its_reference_does_not_replace_one_that_has_it() -> None:
    key = {"fits": ("method", "task")}
    row = {"method": "mc3", "task": "s0--mc3", "size": "full"}
    kept, new = pd.DataFrame([row | {"edge_r": 0.9}]), pd.DataFrame([row])
    with pytest.raises(GFlowDAGError, match="s0--mc3 has no reference"):
        updated({"fits": kept}, {"fits": new}, key)
    better = new.assign(edge_r=0.8)
    assert updated({"fits": kept}, {"fits": better}, key)["fits"]["edge_r"].tolist() == [0.8]


def test_fewer_data_sets_do_not_replace_more() -> None:
    row = {"method": "mc3", "scaling": "raw", "size": "full"}
    kept, new = pd.DataFrame([row | {"fits": 20}]), pd.DataFrame([row | {"fits": 1}])
    with pytest.raises(GFlowDAGError, match="1 new fits of mc3, raw, and 20 on the page"):
        updated({"runs": kept}, {"runs": new}, {"runs": ("method", "scaling")})


def test_a_page_is_not_emptied_by_a_forgotten_option(tmp_path: Path) -> None:
    small = (
        "small-graphs",
        "--quick",
        "--datasets",
        "1",
        "--methods",
        "exact",
        "--page",
        tmp_path / "page.md",
    )
    _reproduce(*small, "--out", tmp_path / "first")
    table = tmp_path / "page" / "small-graphs.csv"
    before = table.read_bytes()
    with pytest.raises(GFlowDAGError, match="--keep"):
        _reproduce("page", "--page", tmp_path / "page.md", "--out", tmp_path / "second")
    assert table.read_bytes() == before


def test_a_stored_fit_of_an_earlier_recipe_is_run_again(tmp_path: Path) -> None:
    task = fit_task(SMALL, "dag-gflownet", quick=True)
    former = task._replace(since=None)
    store_row(former, tmp_path, {"iterations": 1}, 0.0)
    assert stored_row(former, tmp_path) is not None
    assert stored_row(task, tmp_path) is None


@pytest.mark.parametrize("first", ["full", "quick"])
def test_quick_and_full_rows_of_a_method_are_never_mixed(first: str) -> None:
    fits = {
        size: pd.DataFrame({"method": "mc3", "task": [f"s{seed}--mc3" for seed in seeds], "size": size})
        for size, seeds in (("full", (0, 1)), ("quick", (1, 2)))
    }
    second = "quick" if first == "full" else "full"
    tables = updated({"fits": fits[first]}, {"fits": fits[second]}, {"fits": ("method", "task")})
    pd.testing.assert_frame_equal(tables["fits"], fits["full"])


def test_the_page_of_the_documentation_is_what_its_tables_say(tmp_path: Path) -> None:
    shutil.copytree(DOCUMENTATION / "reproduction", tmp_path / "reproduction")
    write_page(tmp_path / "nothing", tmp_path / "reproduction.md", keep=True)
    said = [folder / "reproduction.md" for folder in (DOCUMENTATION, tmp_path)]
    assert said[0].read_text(encoding="utf-8") == said[1].read_text(encoding="utf-8")
    for table in (DOCUMENTATION / "reproduction").glob("*.csv"):
        assert table.read_bytes() == (tmp_path / "reproduction" / table.name).read_bytes()


def test_rows_whose_training_the_clock_ended_stand_in_a_section_of_their_own() -> None:
    page = (DOCUMENTATION / "reproduction.md").read_text(encoding="utf-8")
    results, unfinished = page.split("\n## Training not finished\n")
    unfinished = unfinished.split("\n## ")[0]
    cut_short = re.compile(r"^\|.*full, .*\d of [\d,]+ iterations", re.MULTILINE)
    assert cut_short.search(results.split("\n## Figure 3")[1]) is None
    rows = [line for line in unfinished.splitlines() if line.startswith("| ") and "method" not in line]
    assert rows
    assert all(cut_short.match(row) for row in rows)


def test_the_answer_has_ten_lines_at_most_and_names_no_row_that_was_not_trained() -> None:
    page = (DOCUMENTATION / "reproduction.md").read_text(encoding="utf-8")
    answer = page.split("## The answer\n\n")[1].split("\n\n")[0].splitlines()
    assert len(answer) <= 10
    assert "cut short" not in "".join(answer)


def test_a_table_that_is_missing_among_the_others_of_its_experiment_is_named(tmp_path: Path) -> None:
    shutil.copytree(DOCUMENTATION / "reproduction", tmp_path / "reproduction")
    (tmp_path / "reproduction" / "small-graphs-points.csv").unlink()
    with pytest.raises(GFlowDAGError, match=r"small-graphs-points\.csv is missing beside small-graphs\.csv"):
        write_page(tmp_path / "nothing", tmp_path / "reproduction.md", keep=True)


def test_an_unknown_experiment_or_row_is_refused_with_the_choices() -> None:
    with pytest.raises(GFlowDAGError, match="small-graphs"):
        _reproduce("figure-7")
    with pytest.raises(GFlowDAGError, match="order-gflownet"):
        _reproduce("small-graphs", "--quick", "--methods", "mc4")
