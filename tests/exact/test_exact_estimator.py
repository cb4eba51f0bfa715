"""`ExactPosterior` from the table to the posterior, against all DAGs and against the Sachs data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from gflowdag import metrics
from gflowdag.data import Knowledge
from gflowdag.data.catalog import load_dataset
from gflowdag.errors import TooLargeError
from gflowdag.estimators.exact import ExactPosterior
from gflowdag.graph.enumeration import all_dags
from gflowdag.posterior.posterior import Posterior

NAMES = ["a", "b", "c", "d"]


def gaussian_frame():
    rng = np.random.default_rng(0)
    a, noise = rng.normal(size=60), rng.normal(size=(60, 3))
    b = 0.5 * a + noise[:, 0]
    c = a - 0.3 * b + noise[:, 1]
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": noise[:, 2]})


def interventions():
    targets = np.full(60, None, dtype=object)
    targets[:15], targets[15:25] = "b", "d"
    return targets


@pytest.mark.parametrize("discrete", [False, True], ids=["BGe", "BDeu"])
@pytest.mark.parametrize("intervened", [None, interventions()], ids=["observed", "intervened"])
@pytest.mark.parametrize("prior", ["uniform", "erdos-renyi", "fair"])
@pytest.mark.parametrize(
    "knowledge",
    [
        None,
        Knowledge(required=[("a", "c")], forbidden=[("b", "d")], max_parents=2),
        Knowledge(tiers=[["d"], ["a", "b"], ["c"]]),
    ],
    ids=["nothing known", "edges known", "tiers known"],
)
def test_the_posterior_is_the_normalised_score_of_all_dags(discrete, intervened, prior, knowledge):
    frame = gaussian_frame()
    if discrete:
        frame = (frame > 0).astype(int)
    estimator = ExactPosterior(prior=prior, knowledge=knowledge, num_samples=100, random_state=1)
    posterior = estimator.fit(frame, interventions=intervened).posterior_
    graphs = all_dags(4)
    log_scores = estimator.score_.log_score(graphs)
    assert posterior.log_evidence == pytest.approx(logsumexp(log_scores), abs=1e-9)
    probability = np.exp(log_scores - logsumexp(log_scores))
    edges = np.tensordot(probability, graphs, axes=1)
    np.testing.assert_allclose(posterior.edge_probabilities(), edges, atol=1e-9)  # scores round at 1e-12
    best = estimator.score_.log_score(posterior.map_graph().to_numpy()[None])[0]
    assert best == pytest.approx(log_scores.max(), abs=1e-9)  # of equivalent graphs, any
    np.testing.assert_allclose(posterior.log_scores, estimator.score_.log_score(posterior.samples), atol=1e-9)
    assert np.isfinite(posterior.log_scores).all()  # knowledge holds in every sample


@pytest.mark.parametrize(
    ("score", "precision"),
    [
        ("conditional-gaussian", 1e-9),
        ("degenerate-gaussian", 1e-9),
        ("auto", 1e-4),  # two searches for the top of a logistic regression may end 1e-7 nats below it
    ],
)
@pytest.mark.parametrize("intervened", [None, interventions()], ids=["observed", "intervened"])
def test_with_columns_of_both_kinds_it_is_the_normalised_score_of_all_dags(score, precision, intervened):
    frame = gaussian_frame()
    frame["b"] = np.where(frame["b"] > 0, "yes", "no")
    frame["d"] = np.select([frame["d"] < -0.5, frame["d"] < 0.5], ["low", "mid"], "high")
    estimator = ExactPosterior(score=score, num_samples=10, random_state=1)
    posterior = estimator.fit(frame, interventions=intervened).posterior_
    graphs = all_dags(4)
    log_scores = estimator.score_.log_score(graphs)  # of one graph after the other, not from tables
    assert posterior.log_evidence == pytest.approx(logsumexp(log_scores), abs=precision)
    edges = np.tensordot(np.exp(log_scores - logsumexp(log_scores)), graphs, axes=1)
    np.testing.assert_allclose(posterior.edge_probabilities(), edges, atol=precision)


@pytest.mark.parametrize(
    ("name", "log_evidence", "best", "edges", "shd", "auroc"),
    [
        ("sachs", -10709.4682, -10716.1216, 10.67, 15.98, 0.706),
        ("sachs-interventional", -31696.9159, -31696.9380, 26.00, 9.02, 0.981),
    ],
)
def test_the_sachs_posteriors_have_their_known_values(
    name, log_evidence, best, edges, shd, auroc, data_folder
):
    loaded = load_dataset(name)
    score = "bge" if name == "sachs" else "bde"
    estimator = ExactPosterior(score=score, prior="uniform", num_samples=2000, random_state=0)
    posterior = estimator.fit(loaded.frame, interventions=loaded.interventions).posterior_
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-3)
    best_score = estimator.score_.log_score(posterior.map_graph().to_numpy()[None])[0]
    assert best_score == pytest.approx(best, abs=1e-3)
    # The known values have two and three digits, and count the diagonal in the AUROC.
    assert metrics.expected_edges(posterior) == pytest.approx(edges, abs=0.006)
    assert metrics.expected_shd(posterior, loaded.truth) == pytest.approx(shd, abs=0.006)
    assert metrics.auroc(posterior, loaded.truth, diagonal=True) == pytest.approx(auroc, abs=6e-4)
    # Largest of 110 binomial errors at 2000 samples: 4.5 standard errors of at most 0.0112.
    raw = posterior.edge_probabilities(weighted=False)
    assert np.abs(raw - posterior.edge_probabilities()).to_numpy().max() < 0.05


def test_the_verdict_survives_the_file(tmp_path):
    posterior = ExactPosterior(num_samples=10, random_state=0).fit(gaussian_frame()).posterior_
    posterior.save(tmp_path / "posterior.npz")
    loaded = Posterior.load(tmp_path / "posterior.npz")
    assert loaded.diagnostics()["verdict"] == "exact"
    assert loaded.log_evidence == posterior.log_evidence
    assert loaded.log_evidence_error == 0


def test_more_variables_than_allowed_are_refused_before_any_work():
    with pytest.raises(TooLargeError, match="max_variables=4"):
        ExactPosterior(max_variables=3).fit(gaussian_frame())
