"""Exact probabilities of statements, against sums over all DAGs that are listed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.errors import FileFormatError
from gflowdag.exact import given_edges, log_evidence
from gflowdag.exact import posterior as exact_posterior
from gflowdag.graph import all_dags
from gflowdag.posterior.exact_statements import all_graphs, by_parts
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.statement_language import parse_statement
from gflowdag.runtime.files import read_npz, write_npz

ROUNDING = 1e-10  # sums over sets against sums over graphs
DECIDED = (  # by sums over the DAGs with some edges and without others
    "X1 -> X2 -> X3",
    "X1 -> X2 or X2 -> X3 or X3 -> X1",
    "not (X1 - X2 and not X2 -> X3)",
    "X1 -> X2 and X2 -> X3 and X3 -> X1",
    "(X1 - X2 or X2 - X3) and not (X1 -> X3 or X3 -> X2)",
    "X1 ~> X3 and not X1 -> X3",
    "X1 -> X2 and not X2 ~> X3",
    "X1 -> X2 -> X3 and X1 ~> X3",
    "X3 ~> X1 and X1 -> X2 -> X3",
    "not X1 ~> X3",
)
LISTED = ("X1 _||_ X3 | X2", "X1 ~> X2 and X1 ~> X3", "not (X1 _||_ X2 or X2 ~> X3)")


@pytest.fixture(scope="module", params=[3, 4])
def fitted(request: pytest.FixtureRequest) -> Posterior:
    frame = gd.simulate.linear_gaussian(request.param, 30, random_state=2).frame
    knowledge = gd.Knowledge(forbidden=[("X3", "X2")]) if request.param == 4 else None
    return gd.fit(frame, method="exact", knowledge=knowledge, num_samples=50, random_state=0)


def _by_hand(post: Posterior, text: str) -> float:
    """Every graph by the scores of its parent sets, which a dictionary holds."""
    d, total, holds = post.num_variables, 0.0, 0.0
    statement = parse_statement(text, post.names)
    for graph in all_dags(d):
        score = 0.0
        for node in range(d):
            others = [i for i in range(d) if i != node]
            score += post.local_scores[node, sum(1 << k for k, i in enumerate(others) if graph[i, node])]
        weight = np.exp(score - post.log_evidence)
        total += weight
        holds += weight * statement.holds(graph[None])[0]
    assert total == pytest.approx(1)
    return holds


@pytest.mark.parametrize("text", DECIDED)
def test_parts_of_a_statement_add_up_to_its_probability(fitted: Posterior, text: str) -> None:
    expected = _by_hand(fitted, text)
    found = by_parts(fitted.local_scores, parse_statement(text, fitted.names))
    assert found == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("text", [*DECIDED, *LISTED])
def test_everything_is_exact_of_few_variables(fitted: Posterior, text: str) -> None:
    found = fitted.probability(text)
    assert (found.exact, found.error) == (True, 0)
    assert found.probability == pytest.approx(_by_hand(fitted, text), abs=ROUNDING)


def test_a_function_of_a_graph_is_exact_of_few_variables(fitted: Posterior) -> None:
    found = fitted.probability(lambda graph: bool(graph.to_numpy().sum() > 2))
    assert found.exact
    graphs, weight = all_graphs(fitted.local_scores) or pytest.fail("not listed")
    assert found.probability == pytest.approx(weight @ (graphs.sum(axis=(1, 2)) > 2), abs=ROUNDING)


def test_what_is_asked_of_more_variables_is_exact_where_edges_decide_it() -> None:
    frame = gd.simulate.linear_gaussian(7, 40, random_state=1).frame
    post = gd.fit(frame, method="exact", num_samples=4000, random_state=0)
    for text in DECIDED:
        found = post.probability(text)
        assert found.exact
        counted = Posterior(post.samples, post.names).probability(text)
        assert found.probability == pytest.approx(counted.probability, abs=5 * counted.error)
    separation = post.probability("X1 _||_ X3 | X2")
    assert not separation.exact
    assert separation.error > 0


def test_a_run_that_was_saved_answers_alike(fitted: Posterior, tmp_path: Path) -> None:
    path = tmp_path / "posterior.npz"
    fitted.save(path)
    again = Posterior.load(path)
    for text in ("X1 -> X2 -> X3", "X1 _||_ X3 | X2"):
        assert again.probability(text) == fitted.probability(text)
    arrays = dict(read_npz(path, max_bytes=1 << 20))
    for damage in (np.zeros((2, 2)), np.full_like(arrays["local_scores"], np.nan)):
        write_npz(path, arrays | {"local_scores": damage})
        with pytest.raises(FileFormatError, match="local_scores"):
            Posterior.load(path)


def test_samples_alone_are_never_called_exact(fitted: Posterior) -> None:
    for sampled in (fitted.given("X1 - X2 or not X1 - X2"), Posterior(fitted.samples, fitted.names)):
        found = sampled.probability("X1 -> X2 -> X3")
        assert not found.exact
        assert found.error > 0


def test_the_evidence_alone_is_that_of_the_posterior(fitted: Posterior) -> None:
    scores = fitted.local_scores
    assert log_evidence(scores) == pytest.approx(exact_posterior(scores).log_evidence, abs=1e-9)
    one, none = np.zeros_like(fitted.samples[0]), np.zeros_like(fitted.samples[0])
    one[0, 1] = True
    p = np.exp(log_evidence(given_edges(scores, one, none)) - fitted.log_evidence)
    assert p == pytest.approx(fitted.edge_probabilities().to_numpy()[0, 1], abs=ROUNDING)
