"""The default of discrete tables: what the limit on the cells of a family allows, everywhere."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from score_problems import continuous, discrete, random_dags
from slow_scores import slow_bdeu

import gflowdag as gd
from gflowdag import exact
from gflowdag.baselines.graph_score import FORBIDDEN_PARENT
from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import ModelWarning, ScoreError
from gflowdag.estimators.registry import estimator_classes
from gflowdag.gflownet.spaces.edges import EdgeSpace, edge_space
from gflowdag.graph import all_dags, class_keys, class_members, cpdag
from gflowdag.graph.closure import is_acyclic
from gflowdag.mcmc import moves
from gflowdag.mcmc.unrestricted.candidate_sets import make_pools
from gflowdag.orders.candidates import candidate_table
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score
from gflowdag.score.on_demand import OnDemandGraphScore

REQUIRED = Knowledge(required=[("X2", "X5"), ("X3", "X5"), ("X1", "X4")], max_parents=3)


def noise(d: int, levels: int, n: int, seed: int) -> Dataset:
    return Dataset.from_array(np.random.default_rng(seed).integers(levels, size=(n, d)), kinds="discrete")


def parent_sets(d: int, node: int) -> np.ndarray:
    """All, in the order of the compressed index, bool [2^(d−1), d]."""
    bits = np.arange(1 << (d - 1))[:, None] >> np.arange(d - 1) & 1
    return np.insert(bits.astype(bool), node, False, axis=1)


def allowed_by_definition(data: Dataset, node: int, parents: np.ndarray, required: np.ndarray) -> bool:
    levels = np.array(data.cardinalities)
    rows = data.num_rows if data.intervened is None else int((~data.intervened[:, node]).sum())
    cells = levels[parents].prod() * levels[node]
    return parents.sum() <= 1 or cells <= max(rows, levels[required[:, node]].prod() * levels[node])


@pytest.mark.parametrize("interventions", [False, True])
@pytest.mark.parametrize("knowledge", [None, REQUIRED])
def test_every_form_of_a_score_allows_what_the_definition_allows(interventions, knowledge):
    data = discrete(d=5, n=26, interventions=interventions)  # cells of three variables: 12, 18, 24 or 36
    score = make_score(data, knowledge=knowledge)
    free = make_score(data, score=gd.BDeu(cells_per_row=None), knowledge=knowledge)
    required = score.constraints.required
    table, candidates = score.dense_table(), candidate_table(score, 4)
    num_left_out = 0
    for node in range(5):
        parents = parent_sets(5, node)
        within = np.array([allowed_by_definition(data, node, row, required) for row in parents])
        expected = np.where(within, free.local(node, parents), -np.inf)
        num_left_out += (np.isfinite(free.local(node, parents)) & ~within).sum()
        np.testing.assert_allclose(score.local(node, parents), expected, atol=1e-9)
        np.testing.assert_allclose(table[node], expected, atol=1e-9)
        np.testing.assert_allclose(candidates.scores[node], expected, atol=1e-9)
        extended = score.extended_local(node, parents)
        for parent in np.delete(np.arange(5), node):
            larger = parents | (np.arange(5) == parent)
            new = ~parents[:, parent]
            np.testing.assert_allclose(
                extended[new, parent],
                score.local(node, larger)[new],
                atol=1e-9,
                err_msg=f"{parent} -> {node}",
            )
    assert num_left_out >= 8
    assert np.isfinite(score.unconstrained_table()).all()  # the likelihood stays finite


def test_several_sample_sizes_are_averaged_within_the_set_function():
    data = discrete(n=200)
    score = make_score(data, prior="uniform")
    log_marginal = {  # of a set, by the direct formula, as a chain of local scores
        members: np.logaddexp.reduce([chain(data, members, ess) for ess in (1, 4, 16)]) - np.log(3)
        for members in [(0, 4), (0, 2, 4)]
    }
    expected = log_marginal[0, 2, 4] - log_marginal[0, 4] - 2 * np.log(4)  # two edges
    assert score.local(2, [[1, 0, 0, 0, 1]])[0] == pytest.approx(expected, abs=1e-9)


def chain(data: Dataset, members: tuple[int, ...], ess: float) -> float:
    return sum(
        slow_bdeu(data.values, data.cardinalities, node, list(members[:place]), ess=ess)
        for place, node in enumerate(members)
    )


def test_members_of_a_class_score_alike_and_are_allowed_alike():
    graphs = all_dags(4)
    keys = class_keys(graphs)
    for seed in range(5):
        score = make_score(discrete(d=4, n=[10, 15, 20, 25, 40][seed], seed=seed), prior="uniform")
        scores = score.log_score(graphs)
        assert 0 < np.isneginf(scores).sum() < len(scores)
        for key in np.unique(keys):
            members = scores[keys == key]
            finite = np.isfinite(members)
            assert finite.all() or not finite.any()
            if finite.any():
                np.testing.assert_allclose(members, members[0], atol=1e-9)


def test_nothing_is_found_in_noise():
    """The bar of the study in every kind of table; two levels are the worst kind, see the page."""
    num_edges: dict[str, list[float]] = {"default": [], "no factor": [], "no limit": []}
    for levels in (2, 3, 5):
        found = np.stack(
            [probabilities(noise(9, levels, n, seed)) for n in (200, 1000) for seed in range(20)]
        )
        assert found.sum(axis=(1, 2)).mean() <= 0.3 * 9
        assert (found.max(axis=(1, 2)) > 0.5).mean() <= 0.01
        assert ((found + found.swapaxes(1, 2)).max(axis=(1, 2)) > 0.5).mean() <= 0.1
        few = [noise(9, levels, 200, seed) for seed in range(3)]
        for name, score in (
            ("default", gd.BDeu()),
            ("no factor", gd.BDeu(edge_factor=1)),
            ("no limit", gd.BDeu(cells_per_row=None)),
        ):
            num_edges[name] += [probabilities(table, score).sum() for table in few]
    mean = {name: np.mean(values) for name, values in num_edges.items()}
    assert mean["no factor"] > 2 * mean["default"]
    assert mean["no limit"] > 2 * mean["default"]


def probabilities(data: Dataset, score: str | gd.BDeu = "auto") -> np.ndarray:
    return exact.posterior(make_score(data, score=score).dense_table()).edge_probabilities


def test_every_edge_multiplies_the_prior_by_the_factor():
    data, graphs = discrete(d=4, n=80), all_dags(4)
    plain, default = (make_score(data, score=gd.BDeu(edge_factor=factor)) for factor in (1.0, 0.25))
    expected = plain.log_prior(graphs) + graphs.sum(axis=(1, 2)) * np.log(0.25)
    np.testing.assert_allclose(default.log_prior(graphs), expected, atol=1e-9)
    np.testing.assert_allclose(default.log_likelihood(graphs), plain.log_likelihood(graphs), atol=1e-9)
    with pytest.raises(ScoreError, match="edge_factor"):
        gd.BDeu(edge_factor=0)


def test_required_edges_beyond_the_limit_are_possible():
    knowledge = Knowledge(required=[(f"X{i}", "X6") for i in range(1, 6)])
    data = noise(6, 4, 50, 0)
    answer = gd.fit(data, method="exact", knowledge=knowledge)
    edges = answer.edge_probabilities().to_numpy()
    np.testing.assert_allclose(edges[:5, 5], 1.0)
    assert np.isfinite(make_score(data, knowledge=knowledge).log_score(answer.samples)).all()


def legal_edges(space: EdgeSpace, graphs: np.ndarray) -> np.ndarray:
    """Edges that a policy may add, bool [n, d, d]."""
    actions = jax.jit(jax.vmap(lambda graph: space.legal(space.state_of(graph))))(jnp.asarray(graphs))
    return np.asarray(actions)[:, :-1].reshape(graphs.shape)  # without the stop


@double_precision
def test_moves_and_edges_of_compiled_methods_keep_to_the_limit():
    for knowledge in (None, Knowledge(required=[("X2", "X4"), ("X3", "X4")])):
        score = make_score(discrete(d=4, n=15, interventions=True), knowledge=knowledge)
        graphs = all_dags(4)
        graphs = graphs[np.isfinite(score.log_score(graphs))]
        known = {graph.tobytes() for graph in graphs}
        limits = moves.limits_from_constraints(*score.constraints, score.cell_limit)
        around = jax.jit(moves.neighbourhood)(moves.dags_from_adjacency(graphs), limits)
        parts = [moves.unpack(np.moveaxis(np.asarray(part), -1, 0), 4) for part in around[:3]]
        additions, reversals = parts[0], parts[2].swapaxes(1, 2)  # rows of reversals are targets
        edges = legal_edges(edge_space(score), graphs)
        for graph, added, turned, legal in zip(graphs, additions, reversals, edges, strict=True):
            for i, j in np.argwhere(~np.eye(4, dtype=bool)):
                larger = graph.copy()
                larger[i, j] = True
                is_new = not graph[i, j] and larger.tobytes() in known
                assert added[i, j] == is_new == legal[i, j]
                reverse = graph.copy()
                reverse[i, j], reverse[j, i] = False, True
                assert turned[i, j] == (graph[i, j] and reverse.tobytes() in known)


@pytest.mark.parametrize(
    "method",
    [
        gd.MC3(num_chains=64, burn_in=500, num_steps=4000, thinning=40),
        gd.OrderMCMC(iterations=600, num_chains=16),
    ],
    ids=["mc3", "order-mcmc"],
)
def test_samplers_agree_with_the_exact_posterior_under_the_limit(method):
    data, score = discrete(d=4, n=22), gd.BDeu(edge_factor=1)
    right = probabilities(data, score)
    posterior = method.set_params(random_state=0, score=score).fit(data).posterior_
    # Thousands of nearly independent graphs; without the limit the largest difference is above 0.1.
    np.testing.assert_allclose(posterior.edge_probabilities().to_numpy(), right, atol=0.03)
    assert np.isfinite(make_score(data).log_score(posterior.samples)).all()
    unlimited = probabilities(data, gd.BDeu(edge_factor=1, cells_per_row=None))
    assert np.abs(unlimited - right).max() > 0.1


def test_tables_of_unrestricted_chains_keep_to_the_limit():
    score = make_score(discrete(d=7, n=40, interventions=True), knowledge=REQUIRED)
    d, required, forbidden = 7, score.constraints.required, score.constraints.forbidden
    interest = np.tile(1 / np.arange(1.0, d + 1), (d, 1)).T
    pools = make_pools(interest, required, forbidden, core_size=3, num_outsiders=2)
    for node in range(d):
        beside = random_dags(d, 20)[:, :, node] | required[:, node]
        beside[:, pools.core[node]] = required[pools.core[node], node]
        beside[:, [node]] = False
        beside &= ~forbidden[:, node]
        core = pools.core[node, : pools.core_sizes[node]].astype(np.int64)
        blocks = score.local_blocks(node, core, beside)
        subsets = np.zeros((1 << len(core), d), bool)
        subsets[:, core] = np.arange(len(subsets))[:, None] >> np.arange(len(core)) & 1
        one_by_one = score.local(node, (beside[:, None] | subsets).reshape(-1, d)).reshape(blocks.shape)
        np.testing.assert_allclose(blocks, one_by_one, atol=1e-9)
        assert np.isneginf(blocks).any()


def test_greedy_search_keeps_to_the_limit_by_name_and_as_an_object():
    rng = np.random.default_rng(0)
    values = rng.integers(3, size=(60, 6))
    values[:, 5] = values[:, :5].sum(axis=1) % 3  # only all five parents together tell the child
    data = Dataset.from_array(values, kinds="discrete")
    for score in ("auto", gd.BDeu()):
        found = gd.BootstrapGES(num_bootstraps=8, score=score, random_state=0, n_jobs=1).fit(data).posterior_
        assert np.isfinite(make_score(data).log_score(found.samples)).all()


@double_precision
def test_cyclic_graphs_beyond_the_limit_pay_for_each_parent_on_demand():
    data = discrete(d=5, n=26)
    score, graphs = make_score(data), random_dags(5, 50)
    free = make_score(data, score=gd.BDeu(cells_per_row=None))
    crowded = np.zeros(len(graphs))
    for node in range(5):
        parents = graphs[:, :, node]
        crowded += np.where(score.allows(node, parents), 0, parents.sum(axis=1))
    got = np.asarray(OnDemandGraphScore(score, FORBIDDEN_PARENT)(jnp.asarray(graphs)))
    np.testing.assert_allclose(got, free.log_score(graphs) - FORBIDDEN_PARENT * crowded, atol=1e-6)
    assert crowded.any()
    assert is_acyclic(graphs).all()


def test_a_fit_says_which_limit_was_in_force_and_warns_where_none_is():
    data = discrete(n=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notes = gd.fit(data, method="exact").diagnostics()["notes"]
        assert any("as many cells as rows (80)" in note and "1, 4, 16" in note for note in notes)
        doubled = gd.fit(data, method="exact", score=gd.BDeu(ess=2, cells_per_row=0.5))
        assert any("0.5 times the rows (40)" in note for note in doubled.diagnostics()["notes"])
        assert not any("cells" in note for note in gd.fit(continuous(), method="exact").diagnostics().notes)
    for score in ("bde", gd.BDeu(cells_per_row=None)):
        with pytest.warns(ModelWarning, match="Nothing limits the cells"):
            posterior = gd.fit(data, method="exact", score=score)
        assert any("Nothing limits the cells" in note for note in posterior.diagnostics()["notes"])


@pytest.mark.parametrize("kind", estimator_classes(), ids=lambda kind: kind.method)
def test_every_method_that_uses_the_score_says_its_limit(kind, monkeypatch):
    """With any of the scores that have a limit; tests take the place of the score in PC."""
    answer = gd.Posterior(np.zeros((1, 5, 5), bool), tuple("abcde"))
    monkeypatch.setattr(kind, "_infer", lambda *_: answer)
    numbers = np.random.default_rng(0).normal(size=(80, 5))
    levels = pd.DataFrame((numbers > 0).astype(int), columns=list("abcde"))
    mixed = levels.assign(a=numbers[:, 0])
    for frame, score in ((levels, "auto"), (levels, "conditional-gaussian"), (mixed, "conditional-gaussian")):
        takes = kind.record.takes_mixed if frame is mixed else kind.record.takes_discrete
        if not takes or (score != "auto" and not kind.record.uses_known_edges):
            continue
        limit = {} if not kind.record.uses_max_parents else {"knowledge": Knowledge(max_parents=2)}
        notes = kind(score=score, **limit).fit(frame).posterior_.diagnostics().notes
        assert any("as many cells as rows (80)" in note for note in notes) or kind is gd.BootstrapPC
        assert any("more than 2 parents" in note for note in notes) or not limit


def test_classes_of_graphs_under_the_default_are_whole():
    score = make_score(discrete(d=6, n=60), prior="uniform")
    for graph in random_dags(6, 20, seed=3):
        scores = score.log_score(class_members(cpdag(graph)))
        assert np.isfinite(scores).all() or not np.isfinite(scores).any()
