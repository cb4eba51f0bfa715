"""Each plot takes and returns an Axes, and what it draws are the posterior's own numbers."""

from __future__ import annotations

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

from gflowdag import metrics, plot
from gflowdag.errors import DataError
from gflowdag.graph import all_dags
from gflowdag.posterior.posterior import Posterior

NAMES = ("A", "B", "C")


@pytest.fixture
def posterior() -> Posterior:
    """All 25 DAGs on three variables, random weights."""
    graphs = all_dags(3)
    log_scores = np.random.default_rng(0).normal(size=len(graphs))
    return Posterior(graphs, NAMES, method="all", log_weights=log_scores, log_scores=log_scores)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


TRUTH = [("A", "B"), ("B", "C")]
PLOTS = {
    "heat_map": lambda p, ax: plot.heat_map(p, ax=ax),
    "graph": lambda p, ax: plot.graph(p, threshold=0.2, truth=TRUTH, ax=ax),
    "against_exact": lambda p, ax: plot.against_exact(p, p, ax=ax),
    "agreement": lambda p, ax: plot.agreement([0.1, 0.9], [0.2, 0.8], ax=ax),
    "class_coverage": lambda p, ax: plot.class_coverage(p, log=True, ax=ax),
    "traces": lambda p, ax: plot.traces([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}], ax=ax),
    "roc": lambda p, ax: plot.roc({"one": p, "other": p}, TRUTH, ax=ax),
}


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_draws_into_the_axes_it_is_given_or_a_new_one(name, posterior):
    ax = plt.subplots()[1]
    assert PLOTS[name](posterior, ax) is ax
    new = PLOTS[name](posterior, None)
    assert new is not ax
    new.figure.canvas.draw()


def test_every_plot_is_tested():
    assert sorted(PLOTS) == sorted(plot.__all__)


def test_the_heat_map_holds_the_edge_probabilities_under_their_names(posterior):
    ax = plot.heat_map(posterior)
    shown = ax.images[0].get_array()
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert sorted(rows) == sorted(NAMES)
    expected = posterior.edge_probabilities().loc[rows, rows].to_numpy()
    assert np.allclose(shown, expected)


def test_the_graph_draws_one_arrow_for_each_edge_above_the_threshold(posterior):
    p = posterior.edge_probabilities().to_numpy()
    threshold = float(np.median(p[p > 0]))
    ax = plot.graph(posterior, threshold=threshold)
    assert len([patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]) == (p > threshold).sum()


def test_names_with_dollar_signs_are_not_mathematics():
    strange = Posterior(all_dags(3), ("$^{$", "b$^{", r"\frac"))
    plot.graph(strange, threshold=0.1).figure.canvas.draw()
    plot.heat_map(strange).figure.canvas.draw()


def test_the_scatter_compares_features_by_name(posterior):
    order = [2, 0, 1]
    permuted = Posterior(
        posterior.samples[:, order][:, :, order],
        [NAMES[i] for i in order],
        log_weights=posterior.log_weights,
    )
    ax = plot.against_exact(permuted, posterior, feature="path")
    x, y = np.asarray(ax.collections[0].get_offsets()).T
    assert np.allclose(x, y)
    assert "1.0000" in ax.texts[0].get_text()
    with pytest.raises(DataError, match="markov blanket"):
        plot.against_exact(posterior, posterior, feature="cliques")  # type: ignore[arg-type]


def test_bubbles_are_classes_and_their_area_counts_graphs(posterior):
    ax = plot.class_coverage(posterior)
    bubbles = ax.collections[0]
    classes = posterior.equivalence_classes(top=None)
    assert len(classes) == 11  # Markov equivalence classes on three variables
    assert np.allclose(bubbles.get_sizes() / 12, classes["num_graphs"])
    assert np.asarray(bubbles.get_offsets())[:, 1].sum() == pytest.approx(1.0)


def test_the_roc_curve_has_the_area_of_the_metric(posterior):
    line = plot.roc(posterior, TRUTH).lines[1]
    area = np.trapezoid(line.get_ydata(), line.get_xdata())
    assert area == pytest.approx(metrics.auroc(posterior, TRUTH))


def test_an_iterator_over_true_edges_is_read_once(posterior):
    twice = plot.roc({"one": posterior, "two": posterior}, TRUTH)
    edges = list(zip(*np.nonzero(metrics.align(TRUTH, posterior.names)), strict=True))
    named = iter([(posterior.names[i], posterior.names[j]) for i, j in edges])
    again = plot.roc({"one": posterior, "two": posterior}, named)
    for line, same in zip(twice.lines, again.lines, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), same.get_ydata())


def test_a_missing_figure_names_those_that_there_are():
    with pytest.raises(DataError, match="loss"):
        plot.traces([{"step": 1, "loss": 2.0}], value="temperature")


def test_matplotlib_is_not_imported_before_a_plot_is_drawn():
    code = "import sys, gflowdag.display.plots; print('matplotlib' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
