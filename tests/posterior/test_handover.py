"""Tables of other libraries in, graphs for other libraries out."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.data import load_network
from gflowdag.data.bif import parse_bif
from gflowdag.errors import DataError, MissingExtraError


@pytest.fixture(scope="module")
def frame():
    return gd.simulate.linear_gaussian(4, 80, random_state=5).frame


def test_a_polars_frame_gives_the_same_posterior_as_a_pandas_one(frame) -> None:
    polars = pytest.importorskip("polars")
    columns = {name: frame[name].to_numpy() for name in frame} | {"target": [""] * 40 + ["X2"] * 40}
    expected = gd.fit(frame.assign(target=columns["target"]), interventions="target")
    found = gd.fit(polars.DataFrame(columns), interventions="target")
    np.testing.assert_array_equal(found.edge_probabilities(), expected.edge_probabilities())
    assert found.names == expected.names


def test_a_polars_frame_of_text_with_gaps_is_discrete() -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"a": ["u", "v", None, "u", "v"], "b": [True, True, False, False, True]})
    data = gd.Dataset.as_dataset(table, missing="drop")
    assert data.levels == (("u", "v"), (False, True))


def test_networkx_and_pgmpy_see_the_same_graph(frame) -> None:
    models = pytest.importorskip("pgmpy.models")
    post = gd.fit(frame, num_samples=5)
    assert set(post.to_pgmpy(3).edges) == set(post.to_networkx(3).edges)
    best = post.to_pgmpy()
    assert list(best.nodes) == list(post.names)
    edges = post.map_graph().stack()
    assert set(best.edges) == set(edges[edges].index)
    fitted = models.LinearGaussianBayesianNetwork(best)
    fitted.fit(frame)
    assert {cpd.variable for cpd in fitted.cpds} == set(post.names)


def test_without_pgmpy_the_remedy_is_named(frame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pgmpy.base", None)
    with pytest.raises(MissingExtraError, match="pip install pgmpy"):
        gd.fit(frame, num_samples=1).to_pgmpy()


# -- directions, in the words of the others ------------------------------------------------------------------

# A -> C <- B, C -> D; and E - F, which either direction of one class has.
NAMES = ("A", "B", "C", "D", "E", "F")
EDGES = {("A", "C"), ("B", "C"), ("C", "D"), ("E", "F")}


@pytest.fixture(scope="module")
def known() -> gd.Posterior:
    """One graph, all of whose arrows but one are compelled."""
    graph = np.zeros((1, 6, 6), bool)
    for a, b in EDGES:
        graph[0, NAMES.index(a), NAMES.index(b)] = True
    return gd.Posterior(graph, NAMES)


def test_the_equivalence_class_has_both_entries_where_a_direction_is_open(known) -> None:
    pattern = known.cpdag()
    assert pattern.loc["E", "F"]
    assert pattern.loc["F", "E"]
    assert pattern.to_numpy().sum() == 5


def test_causal_learn_sees_the_same_directions(known, tmp_path) -> None:
    pytest.importorskip("causallearn")
    from causallearn.utils.TXT2GeneralGraph import txt2generalgraph

    from gflowdag.posterior.handover import tetrad_text

    graph = known.to_causal_learn()
    place = {node.get_name(): number for number, node in enumerate(graph.get_nodes())}
    for a, b in EDGES:
        assert graph.graph[place[a], place[b]] == -1  # i -> j is G[i, j] = -1 and G[j, i] = 1
        assert graph.graph[place[b], place[a]] == 1
        assert graph.is_parent_of(graph.get_node(a), graph.get_node(b))
    pattern = known.to_causal_learn(cpdag=True)
    assert pattern.graph[place["E"], place["F"]] == pattern.graph[place["F"], place["E"]] == -1
    (tmp_path / "graph.txt").write_text(tetrad_text(NAMES, known.cpdag().to_numpy()))
    read = txt2generalgraph(str(tmp_path / "graph.txt"))
    assert {str(edge) for edge in read.get_graph_edges()} == {str(edge) for edge in pattern.get_graph_edges()}


def test_the_model_string_has_the_parents_behind_the_bar(known) -> None:
    assert known.to_bnlearn() == "[A][B][C|A:B][D|C][E][F|E]"
    odd = gd.Posterior(np.zeros((1, 2, 2), bool), ("a|b", "c"))
    with pytest.raises(DataError, match="bnlearn cannot read"):
        odd.to_bnlearn()


def test_gml_is_read_by_networkx_and_dowhy(known) -> None:
    import networkx as nx

    assert set(nx.parse_gml(known.to_gml()).edges) == EDGES
    dowhy = pytest.importorskip("dowhy")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 6)), columns=list(NAMES))
    model = dowhy.CausalModel(frame, treatment="C", outcome="D", graph=known.to_gml())
    assert set(model._graph._graph.edges) >= EDGES


def test_bif_goes_out_and_comes_back() -> None:
    frame = gd.load_dataset("asia", num_rows=300, random_state=0).frame.iloc[:, :5]
    post = gd.fit(frame, method="exact", num_samples=5, random_state=0)
    network = post.fitted_network()
    again = parse_bif(post.to_bif())
    assert (again.names, again.levels, again.parents) == (network.names, network.levels, network.parents)
    for one, other in zip(network.tables, again.tables, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert (network.adjacency == post.map_graph().to_numpy()).all()


def test_fitted_tables_are_the_means_of_drawn_ones() -> None:
    post = gd.fit(gd.simulate.discrete(3, 60, random_state=1).frame, method="exact", num_samples=5)
    tables = post.parameters.draw_table(2, [0, 1], 20_000, np.random.default_rng(0))
    # 20,000 draws of probabilities: standard errors below 0.004, five are allowed.
    assert post.parameters.mean_table(2, [0, 1]) == pytest.approx(tables.mean(axis=0), abs=0.02)


def test_fitted_linear_networks_have_the_units_of_the_table() -> None:
    rng = np.random.default_rng(0)
    x = 5 + 2 * rng.normal(size=20_000)
    frame = pd.DataFrame({"x": x, "y": 3 * x - 7 + rng.normal(size=20_000)})
    graph = np.array([[[0, 1], [0, 0]]], bool)
    network = gd.Posterior(graph, ("x", "y")).with_parameters(gd.Dataset.from_frame(frame)).fitted_network()
    # 20,000 rows: standard errors of slope and intercept 0.0035 and 0.02, five are allowed.
    assert network.weights[0, 1] == pytest.approx(3, abs=0.018)
    assert network.intercepts == pytest.approx([5, -7], abs=0.1)
    assert network.variances == pytest.approx([4, 1], rel=0.06)
    with pytest.raises(DataError, match="discrete"):
        gd.Posterior(graph, ("x", "y")).with_parameters(gd.Dataset.from_frame(frame)).to_bif()


def test_pgmpy_has_the_fitted_parameters() -> None:
    pytest.importorskip("pgmpy.models")
    frame = gd.load_dataset("asia", num_rows=500, random_state=0).frame
    post = gd.fit(frame, method="exact", num_samples=5, random_state=0)
    model = post.to_pgmpy(fitted=True)
    assert model.check_model()
    network = post.fitted_network()
    node = next(v for v, parents in enumerate(network.parents) if parents)
    cpd = model.get_cpds(network.names[node])
    values = network.tables[node].reshape(-1, 2).T
    np.testing.assert_allclose(cpd.get_values(), values, atol=1e-12)
    continuous = gd.fit(gd.simulate.linear_gaussian(3, 60, random_state=0).frame, num_samples=5)
    linear = continuous.to_pgmpy(fitted=True)
    assert {one.variable for one in linear.cpds} == {"X1", "X2", "X3"}
    learner = gd.ExactPosterior(num_samples=5, random_state=0).fit(frame)
    assert set(learner.causal_graph_.edges) == set(post.to_pgmpy().edges)


def test_effects_are_those_of_pgmpys_do_calculus() -> None:
    """With one graph whose tables are nearly certain, on every pair of the network asia."""
    inference = pytest.importorskip("pgmpy.inference")
    network = load_network("asia")
    frame = network.sample(4000, np.random.default_rng(0))
    post = gd.Posterior(network.adjacency[None], network.names).with_parameters(gd.Dataset.from_frame(frame))
    # so that the tables of both are the same, each draw is the mean
    model = post.to_pgmpy(fitted=True)
    tool = inference.CausalInference(model)
    for cause, outcome in (("smoke", "dysp"), ("either", "dysp"), ("asia", "xray"), ("bronc", "xray")):
        found = post.effect(cause, outcome, num_draws=4000)
        table = found.table().set_index(["setting", "level"])
        spread = found.distributions.std(axis=0)
        for a, setting in enumerate(found.cause_levels):
            theirs = tool.query([outcome], do={cause: setting}, show_progress=False)
            for b, level in enumerate(found.outcome_levels):
                expected = theirs.get_value(**{outcome: level})
                # the mean of draws against the value at the mean: five Monte-Carlo errors, and curvature
                margin = 5 * spread[a, b] / np.sqrt(4000) + 5 * spread[a, b] ** 2 + 1e-9
                assert table.loc[(setting, level), "mean"] == pytest.approx(expected, abs=margin)


def test_estimators_have_the_matrix_under_pgmpys_name(frame) -> None:
    learner = gd.ExactPosterior(num_samples=5, random_state=0).fit(frame)
    assert (learner.adjacency_matrix_.to_numpy() == learner.posterior_.map_graph().to_numpy()).all()
    assert learner.adjacency_matrix_.index.name == "source"


def test_xarray_and_arviz_see_the_samples(frame) -> None:
    pytest.importorskip("xarray")
    post = gd.fit(frame, num_samples=40, random_state=0)
    tree = post.to_datatree()
    adjacency = tree["posterior"]["adjacency"]
    assert adjacency.dims == ("chain", "draw", "source", "target")
    mean = adjacency.mean(("chain", "draw")).sel(source="X1", target="X2").item()
    assert mean == pytest.approx(post.samples[:, 0, 1].mean())
    np.testing.assert_array_equal(tree["sample_stats"]["log_score"][0], post.log_scores)
    np.testing.assert_array_equal(tree["sample_stats"]["log_weight"][0], post.log_weights)
    stats = pytest.importorskip("arviz_stats")
    table = stats.summary(tree)
    assert float(table.loc["adjacency[X1, X2]", "mean"]) == pytest.approx(mean, abs=0.01)  # it rounds
