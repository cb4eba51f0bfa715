"""The extension walk: a score of twenty lines and a prior of two, in every method, at 30 variables."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from score_problems import continuous, discrete

import gflowdag as gd
from gflowdag.cli.commands import rewrite_report
from gflowdag.errors import ScoreError
from gflowdag.estimators import order_gflownet, weighed_orders
from gflowdag.posterior import runs
from gflowdag.runtime.files import write_json
from gflowdag.runtime.host_calls import host_errors
from gflowdag.score import make_score

D = 30


@dataclass
class BIC(gd.LocalScore):
    """The Gaussian BIC: greatest log likelihood, less ½ log n for each parameter."""

    penalty: float = 1.0

    def prepare(self, data):
        self._rows = data.num_rows
        self._covariance = np.cov(data.values.T, bias=True)

    def local(self, node, parents):
        count = parents.sum(axis=1)
        order = np.argsort(~parents, axis=1, kind="stable")  # the parents first
        values = np.empty(len(parents))
        for size in np.unique(count):
            rows = np.flatnonzero(count == size)
            members = order[rows, :size]
            among = self._covariance[members[:, :, None], members[:, None, :]]
            cross = self._covariance[members, node]
            explained = np.einsum("mi,mi->m", cross, np.linalg.solve(among, cross[:, :, None])[:, :, 0])
            values[rows] = -0.5 * self._rows * np.log(self._covariance[node, node] - explained)
        return values - 0.5 * self.penalty * np.log(self._rows) * (count + 1)


class FewParents:
    """A prior of one's own: each parent is half as probable as none."""

    def log_weights(self, d):
        return -np.log(2.0) * np.arange(d)


TIERS = gd.Knowledge(tiers=[[f"x{i}"] for i in range(D)])  # acyclic, however short the search
QUICK = {
    "mc3": (gd.MC3, {"num_chains": 4, "burn_in": 6000, "num_steps": 2000, "thinning": 100}),
    "order-mcmc": (
        gd.OrderMCMC,
        {"num_candidates": 3, "iterations": 60, "num_records": 8, "num_chains": 2, "num_temperatures": 1},
    ),
    "parent-set-mcmc": (
        gd.ParentSetMCMC,
        {"num_chains": 4, "core_size": 3, "num_outsiders": 1, "iterations": 64},
    ),
    "gadget": (
        gd.Gadget,
        {"num_candidates": 3, "burn_in": 50, "num_steps": 50, "num_runs": 2, "n_jobs": 1},
    ),
    "dag-gflownet": (
        gd.DAGGFlowNet,
        {"preset": "fast", "iterations": 2, "batch_size": 2, "num_weighted": 4, "num_samples": 4,
         "num_training_graphs": 0, "num_held_out_graphs": 0, "knowledge": gd.Knowledge(max_parents=1)},
    ),
    "order-gflownet": (
        gd.OrderGFlowNet,
        {"iterations": 2, "batch_size": 4, "num_samples": 4,
         "chain_steps": 64, "num_chains": 2, "width": 16, "depth": 1},
    ),
    "dibs": (gd.DiBS, {"num_particles": 2, "num_steps": 3, "num_graphs": 4, "knowledge": TIERS}),
    "bootstrap-ges": (gd.BootstrapGES, {"num_bootstraps": 2, "n_jobs": 1}),
}  # fmt: skip


@pytest.fixture(scope="module")
def table():
    values = continuous(d=D, n=200).values
    return gd.Dataset.from_array(values, names=[f"x{i}" for i in range(D)])


@pytest.mark.parametrize("method", QUICK)
def test_a_score_and_a_prior_of_ones_own_work_in_every_method_at_30_variables(method, table, monkeypatch):
    if method == "gadget":
        pytest.importorskip("sumu")
    # A few orders are enough to see that it works.
    monkeypatch.setattr(order_gflownet, "_NUM_GRAPHS", 256)
    monkeypatch.setattr(weighed_orders, "_MOST_WEIGHED", 64)
    estimator, options = QUICK[method]
    posterior = estimator(score=BIC(), prior=FewParents(), random_state=0, **options).fit(table).posterior_
    without = make_score(table, score=BIC(), prior="uniform", knowledge=options.get("knowledge"))
    log_prior = -np.log(2.0) * posterior.samples.sum(axis=(1, 2))
    expected = without.log_score(posterior.samples) + log_prior
    np.testing.assert_allclose(posterior.log_scores, expected, rtol=1e-9)
    if "gflownet" not in method and method != "dibs":  # these are hardly trained
        p = posterior.edge_probabilities().to_numpy()
        assert (p + p.T)[np.arange(D - 1), np.arange(1, D)].min() > 0.9  # the chain that made the data


def test_the_exact_posterior_of_a_score_of_ones_own_is_that_of_all_graphs():
    from gflowdag.graph.enumeration import all_dags

    data = continuous(d=4, n=50)
    graphs = all_dags(4)
    weight = np.exp(make_score(data, score=BIC()).log_score(graphs) + 300.0)
    expected = np.tensordot(weight / weight.sum(), graphs, axes=1)
    posterior = gd.fit(data, method="exact", score=BIC())
    np.testing.assert_allclose(posterior.edge_probabilities(), expected, atol=1e-12)


def test_the_exact_posterior_takes_it_at_six_variables_too():
    posterior = gd.fit(continuous(d=6, n=500), score=BIC(penalty=3.0), random_state=0)
    assert posterior.method == "exact"
    p = posterior.edge_probabilities().to_numpy()
    assert (p + p.T)[np.arange(5), np.arange(1, 6)].min() > 0.9


def test_discrete_tables_of_more_than_20_variables_are_taken():
    data = discrete(d=22, n=100)
    posterior = gd.fit(
        data, method="mc3", score=gd.BDeu(ess=2), num_chains=4, burn_in=200, num_steps=400, thinning=50
    )
    own = make_score(data, score=gd.BDeu(ess=2))
    np.testing.assert_allclose(posterior.log_scores, own.log_score(posterior.samples), rtol=1e-9)


def test_the_score_and_its_parameters_are_part_of_a_checkpoint():
    data = continuous(d=3)
    prints = set()
    for score in ("bge", gd.BGe(), gd.BGe(alpha_w=9), BIC(), BIC(penalty=2.0)):
        estimator = gd.OrderGFlowNet(score=score)
        estimator._data = data
        prints.add(estimator._fingerprint(make_score(data, score=score), 0))
    assert len(prints) == 5


def test_methods_with_the_same_score_object_are_compared_with_its_exact_posterior():
    methods = {name: gd.MC3(score=BIC(), **QUICK["mc3"][1], random_state=0) for name in ("one", "two")}
    comparison = gd.compare(methods, data=continuous(d=4))
    assert not comparison.failures
    assert comparison.reference is not None


@dataclass
class Failing(gd.LocalScore):
    """Fails on large parent sets."""

    wrong: float | None = None  # what it gives for them, or an error where this is None

    def local(self, node, parents):
        large = parents.sum(axis=1) > 2
        if self.wrong is None and large.any():
            raise np.linalg.LinAlgError("Singular matrix")
        return np.where(large, self.wrong or 0.0, -parents.sum(axis=1))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (None, "Failing.local failed for node [0-9]+: LinAlgError: Singular matrix"),
        (-np.inf, r"Failing.local gave -inf for node [0-9]+ with the parents \["),
    ],
)
def test_an_error_of_a_score_inside_compiled_loops_reaches_the_user_as_it_is(wrong, sentence, caplog):
    with jax.enable_x64(True):
        deltas = make_score(continuous(d=22, n=50), score=Failing(wrong)).deltas()
        crowded = jnp.triu(jnp.ones((22, 22), bool), 1)
        with pytest.raises(ScoreError, match=sentence), host_errors():
            np.asarray(jax.jit(lambda dag: deltas.all(deltas.init(dag)))(crowded))
    assert not caplog.records  # JAX's own words about it


def test_the_prior_counts_for_bootstrapped_ges_where_the_score_is_an_object(tmp_path):
    options = {"num_bootstraps": 2, "n_jobs": 1, "random_state": 0}
    data = continuous(d=3, n=50)
    by_name = gd.BootstrapGES(**options).fit(data).posterior_
    by_object = gd.BootstrapGES(score=BIC(), **options).fit(data).posterior_
    assert by_name.diagnosis.uses_prior is False
    assert by_object.diagnosis.uses_prior is None
    # A report written anew from the file says the same.
    by_name.save(tmp_path / "name.npz")
    by_object.save(tmp_path / "object.npz")
    for name, says_prior in (("name", False), ("object", True)):
        write_json(tmp_path / runs.CONFIG, {"prior": "fair"})
        write_json(tmp_path / runs.MANIFEST, {})
        page = rewrite_report(tmp_path / f"{name}.npz", tmp_path / f"{name}.html").read_text("utf-8")
        assert ("with a fair prior over graphs" in page) == says_prior
