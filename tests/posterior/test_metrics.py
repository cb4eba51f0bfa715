"""Metrics on cases small enough to be worked out by hand, and against scikit-learn."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from gflowdag import exact, graph, metrics
from gflowdag.data import Dataset
from gflowdag.errors import DataError, FileFormatError
from gflowdag.posterior.posterior import Posterior
from gflowdag.score import make_score

NAMES = ("smoke", "cancer", "cough")
TRUE_EDGES = [("smoke", "cancer"), ("cancer", "cough")]


def _graph(*edges: tuple[str, str]) -> np.ndarray:
    adjacency = np.zeros((3, 3), dtype=bool)
    for source, target in edges:
        adjacency[NAMES.index(source), NAMES.index(target)] = True
    return adjacency


@pytest.fixture
def posterior() -> Posterior:
    """The truth with weight 1/2, its first edge reversed 1/4, the empty graph 1/8 and an extra edge 1/8."""
    samples = np.stack(
        [
            _graph(*TRUE_EDGES),
            _graph(("cancer", "smoke"), ("cancer", "cough")),
            _graph(),
            _graph(*TRUE_EDGES, ("smoke", "cough")),
        ]
    )
    return Posterior(samples, NAMES, log_weights=np.log([4.0, 2.0, 1.0, 1.0]))


def test_every_form_of_the_truth_gives_the_same_matrix(tmp_path):
    expected = _graph(*TRUE_EDGES)
    shuffled = ["cough", "smoke", "cancer"]
    by_frame = pd.DataFrame(expected.astype(int), index=NAMES, columns=NAMES).loc[shuffled, shuffled]
    by_file = tmp_path / "edges.csv"
    by_file.write_text("target,source,strength\ncancer, smoke,1\ncough,cancer,2\n")
    forms = [
        by_frame,
        expected,
        expected.astype(float),
        TRUE_EDGES,
        iter(TRUE_EDGES),
        nx.DiGraph(TRUE_EDGES),
        pd.DataFrame(TRUE_EDGES, columns=["source", "target"]),
        metrics.read_edges(by_file),
    ]
    for form in forms:
        np.testing.assert_array_equal(metrics.align(form, NAMES), expected)


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ([("smoke", "tar")], "unknown variables: tar; known are smoke, cancer, cough"),
        (nx.DiGraph([("tar", "smoke")]), "unknown variables: tar"),
        (nx.Graph([("smoke", "cancer")]), "undirected"),
        (pd.DataFrame(0, index=NAMES[:2], columns=NAMES[:2]), "rows .* lack cough"),
        (pd.DataFrame(0, index=NAMES, columns=[*NAMES, "smoke"]), "columns .* name a variable twice"),
        (np.zeros((2, 2)), "shape"),
        (np.full((3, 3), 0.5), "zeros and ones"),
        (np.eye(3), "to itself"),
        (["smoke", "cancer"], "pair"),
        ([("smoke", "causes", "cancer")], "pair"),
    ],
)
def test_a_truth_that_does_not_fit_is_refused_with_the_reason(truth, message):
    with pytest.raises(DataError, match=message):
        metrics.align(truth, NAMES)


def test_variables_may_be_called_source_and_target():
    names = ("source", "target", "x")
    expected = np.zeros((3, 3), bool)
    expected[0, 1] = expected[1, 2] = True
    edges = [("source", "target"), ("target", "x")]
    matrix = pd.DataFrame(expected, index=names, columns=names)
    for form in (edges, matrix, pd.DataFrame(edges, columns=["source", "target"])):
        np.testing.assert_array_equal(metrics.align(form, names), expected)


@pytest.mark.parametrize(
    "content",
    [
        b"from,to\na,b\n",
        b"",
        b"\xff\xfe\x00\x01",
        b"source,target\nb,a,c\n",
        b"source,target\na\n",
        None,
    ],
)
def test_files_that_hold_no_edges_are_refused(tmp_path, content):
    path = tmp_path / "edges.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"edges\.csv"):
        metrics.read_edges(path)


def test_expected_edges_respect_the_weights(posterior):
    assert metrics.expected_edges(posterior) == pytest.approx((4 * 2 + 2 * 2 + 1 * 0 + 1 * 3) / 8)
    assert metrics.expected_edges(posterior.samples) == pytest.approx((2 + 2 + 0 + 3) / 4)


def test_expected_shd_respects_the_weights_and_counts_a_reversal_once(posterior):
    assert metrics.expected_shd(posterior, TRUE_EDGES) == pytest.approx((4 * 0 + 2 * 1 + 1 * 2 + 1 * 1) / 8)
    assert metrics.expected_shd(posterior.samples, _graph(*TRUE_EDGES)) == pytest.approx((0 + 1 + 2 + 1) / 4)


def test_expected_shd_from_marginals_is_the_mean_of_the_distances():
    rng = np.random.default_rng(0)
    samples = np.stack([graph.erdos_renyi(8, 10, rng) for _ in range(50)])
    truth = graph.erdos_renyi(8, 10, rng)
    assert metrics.expected_shd(samples, truth) == pytest.approx(graph.shd(samples, truth).mean())
    undirected = graph.cpdag(truth)
    assert metrics.expected_shd(samples, undirected) == pytest.approx(graph.shd(samples, undirected).mean())


def test_the_marginals_of_a_method_come_before_its_samples(posterior):
    exact = np.array([[0, 0.9, 0], [0, 0, 0.9], [0.1, 0, 0]])
    better = Posterior(posterior.samples, NAMES, marginals=exact)
    assert metrics.expected_edges(better) == pytest.approx(1.9)
    assert metrics.expected_shd(better, TRUE_EDGES) == pytest.approx(0.3)


def test_auroc_and_auprc_by_hand_with_ties_and_diagonal():
    probability = pd.DataFrame([[0, 0.9, 0.2], [0.3, 0, 0.2], [0.2, 0, 0]], index=NAMES, columns=NAMES)
    # True edges .9 and .2; false ones .3 .2 .2 0. Pairs won: 4 + (0 + 1/2 + 1/2 + 1) = 6 of 8.
    assert metrics.auroc(probability, TRUE_EDGES) == pytest.approx(6 / 8)
    # With the three zeros of the diagonal: 7 + (0 + 1/2 + 1/2 + 4) = 12 of 14.
    assert metrics.auroc(probability, TRUE_EDGES, diagonal=True) == pytest.approx(12 / 14)
    # Recall 1/2 at precision 1, recall 1 at threshold .2 with 2 of 5.
    assert metrics.auprc(probability, TRUE_EDGES) == pytest.approx(0.5 * 1 + 0.5 * 2 / 5)


def test_auroc_and_auprc_agree_with_scikit_learn():
    rng = np.random.default_rng(1)
    off = ~np.eye(9, dtype=bool)
    for _ in range(20):
        truth = graph.erdos_renyi(9, 12, rng)
        probability = np.round(rng.random((9, 9)) * truth + rng.random((9, 9)), 1) / 2 * off
        for diagonal, counted in ((False, off), (True, np.ones_like(off))):
            expected = roc_auc_score(truth[counted], probability[counted])
            assert metrics.auroc(probability, truth, diagonal=diagonal) == pytest.approx(expected)
            expected = average_precision_score(truth[counted], probability[counted])
            assert metrics.auprc(probability, truth, diagonal=diagonal) == pytest.approx(expected)


def test_rounding_errors_break_no_ties_but_small_probabilities_count():
    truth = np.array([[0, 1], [0, 0]])
    assert metrics.auroc(np.array([[0, 0.3], [0.1 + 0.2, 0]]), truth) == 0.5
    assert metrics.auroc(np.array([[0, 2e-15], [1e-15, 0]]), truth) == 1.0


def test_ranking_without_true_or_false_edges_is_undefined():
    assert np.isnan(metrics.auroc(np.zeros((3, 3)), np.zeros((3, 3))))
    assert np.isnan(metrics.auprc(np.zeros((3, 3)), np.zeros((3, 3))))


def test_unnamed_graphs_meet_only_unnamed_truths(posterior):
    with pytest.raises(DataError, match="without names"):
        metrics.expected_shd(posterior.samples, TRUE_EDGES)


def test_divergences_by_hand():
    p, q = np.log([0.5, 0.5, 1e-300]), np.log([0.5, 1e-300, 0.5])
    assert metrics.total_variation(p, q) == pytest.approx(0.5)
    assert metrics.jsd(p, q) == pytest.approx(0.5 * np.log(2))
    assert metrics.jsd(p, p + 3.0) == 0  # normalised
    with np.errstate(divide="ignore"):
        apart = np.log([1.0, 0.0]), np.log([0.0, 1.0])
    assert metrics.jsd(*apart) == pytest.approx(np.log(2))
    assert metrics.total_variation(*apart) == 1
    with pytest.raises(DataError, match="3 and 2 graphs"):
        metrics.jsd(p, apart[0])


def test_posteriors_are_compared_graph_by_graph_under_any_order_of_the_names(posterior):
    order = [2, 0, 1]
    same = Posterior(
        posterior.resample(8, 0).samples[:, order][:, :, order], [NAMES[i] for i in order], method="other"
    )
    counts = dict.fromkeys(graph.graph_keys(posterior.samples).tolist(), 0.0)
    for key in graph.graph_keys(posterior.resample(8, 0).samples).tolist():
        counts[key] += 1 / 8
    expected = sum(abs(a - b) for a, b in zip(counts.values(), posterior.weights, strict=True)) / 2
    assert metrics.total_variation(posterior, same) == pytest.approx(expected)
    assert metrics.jsd(posterior, posterior) == 0
    with pytest.raises(DataError, match="posterior with a posterior"):
        metrics.jsd(posterior, posterior.log_weights)


def test_features_are_compared_by_name_and_off_the_diagonal(posterior):
    p = posterior.edge_probabilities()
    shuffled = p.loc[["cough", "smoke", "cancer"], ["cough", "smoke", "cancer"]]
    assert metrics.max_error(posterior, shuffled) == 0
    assert metrics.feature_correlation(posterior, shuffled) == pytest.approx(1)
    off = p.copy()
    off.loc["smoke", "cough"] += 0.25
    assert metrics.max_error(p, off) == pytest.approx(0.25)
    diagonal_only = p + np.eye(3)
    assert metrics.max_error(p, diagonal_only) == 0
    x, y = (frame.to_numpy()[~np.eye(3, dtype=bool)] for frame in (p, off))
    assert metrics.feature_correlation(p, off) == pytest.approx(np.corrcoef(x, y)[0, 1])
    stacked = [np.stack([frame.to_numpy(), frame.to_numpy().T]) for frame in (p, off)]
    x, y = (values[:, ~np.eye(3, dtype=bool)].ravel() for values in stacked)
    assert metrics.feature_correlation(*stacked) == pytest.approx(np.corrcoef(x, y)[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(metrics.feature_correlation(p, np.zeros_like(p)))


class _EdgeCountScore:
    """A score whose terms can be told apart: log likelihood a·edges, log prior b·edges."""

    def __init__(self, likelihood: float, prior: float) -> None:
        self.likelihood, self.prior = likelihood, prior

    def log_likelihood(self, graphs: np.ndarray) -> np.ndarray:
        return self.likelihood * graphs.sum(axis=(1, 2))

    def log_score(self, graphs: np.ndarray) -> np.ndarray:
        return (self.likelihood + self.prior) * graphs.sum(axis=(1, 2))


def test_held_out_is_predictive_likelihood_plus_log_posterior(posterior):
    train, both = _EdgeCountScore(1.0, 10.0), _EdgeCountScore(1.5, 10.0)
    edges = posterior.samples.sum(axis=(1, 2))
    expected = (1.5 - 1.0) * edges + (1.0 + 10.0) * edges - 7.0
    np.testing.assert_allclose(metrics.held_out(train, both, posterior.samples, 7.0), expected)


def test_class_coverage_gathers_the_members_of_each_class(posterior):
    # The truth and its reversal are one class of three members; the other two are classes of their own.
    scores = np.array([-5.0, -5.0, -9.0, -6.0])
    table = metrics.class_coverage(posterior, scores)
    np.testing.assert_allclose(table["probability"], [6 / 8, 1 / 8, 1 / 8])
    assert table["num_graphs"].tolist() == [2, 1, 1]
    by_score = table.set_index("log_score")["class_size"].to_dict()
    assert by_score == {-5.0: 3, -9.0: 1, -6.0: 6}


@pytest.mark.parametrize(
    ("file", "score", "options", "expected"),
    [
        ("sachs_continuous_obs.csv", "bge", {}, (10.67, 15.98, 0.706)),
        (
            "sachs_interventional_discrete.csv",
            "bde",
            {"interventions": "INT", "intervention_base": 1},
            (26.00, 9.02, 0.981),
        ),
    ],
)
def test_recovery_of_the_sachs_network_by_the_exact_posterior(data_folder, file, score, options, expected):
    # Values of an independent implementation, to the digits that it gave; its AUROC counts the diagonal.
    data = Dataset.from_frame(pd.read_csv(data_folder / file), **options)
    score = make_score(data, score=score, prior="uniform")
    names = list(score.names)
    belief = pd.DataFrame(exact.posterior(score.dense_table()).edge_probabilities, index=names, columns=names)
    truth = metrics.read_edges(data_folder / "sachs_consensus_17.csv")
    edges, distance, area = expected
    assert metrics.expected_edges(belief) == pytest.approx(edges, abs=6e-3)
    assert metrics.expected_shd(belief, truth) == pytest.approx(distance, abs=6e-3)
    assert metrics.auroc(belief, truth, diagonal=True) == pytest.approx(area, abs=6e-4)
    # The graph in another order of the variables must not matter; taken by position it does.
    alphabetical = sorted(names)
    matrix = metrics.align(truth, alphabetical)
    frame = pd.DataFrame(matrix, index=alphabetical, columns=alphabetical)
    assert metrics.expected_shd(belief, frame) == metrics.expected_shd(belief, truth)
    assert metrics.expected_shd(belief, matrix) > metrics.expected_shd(belief, truth) + 5


def test_what_cannot_be_ranked_or_compared_is_refused(posterior):
    with pytest.raises(DataError, match="NaN"):
        metrics.auroc(np.full((2, 2), np.nan), np.eye(2, k=1))
    fewer = Posterior(np.zeros((1, 2, 2), bool), NAMES[:2])
    for pair in ((posterior, fewer), (fewer, posterior)):
        with pytest.raises(DataError, match="unknown variables: cough"):
            metrics.jsd(*pair)
