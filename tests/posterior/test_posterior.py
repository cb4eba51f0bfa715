"""The Posterior respects its weights everywhere and survives its file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gflowdag.errors import FileFormatError, GFlowDAGError
from gflowdag.posterior import archive
from gflowdag.posterior.archive import write_posterior
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.files import atomic_write

A_TO_B = [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
CHAIN = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
REVERSED_CHAIN = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


@pytest.fixture
def posterior() -> Posterior:
    return Posterior(
        samples=np.array([A_TO_B, CHAIN, REVERSED_CHAIN, CHAIN]),
        names=("a", "b", "c"),
        method="by hand",
        log_weights=np.log([0.1, 0.2, 0.4, 0.3]) + 7.0,
        log_scores=np.array([-5.0, -3.0, -3.0, -3.0]),
        log_evidence=-2.5,
        log_evidence_error=0.1,
        diagnosis=Diagnostics(verdict="trusted", explanation="Because.", ess=0.8),
    )


def test_edge_path_and_blanket_probabilities_are_weighted(posterior: Posterior) -> None:
    edges = posterior.edge_probabilities()
    assert edges.loc["a", "b"] == pytest.approx(0.6)
    assert edges.loc["b", "a"] == pytest.approx(0.4)
    assert edges.loc["b", "c"] == pytest.approx(0.5)
    assert posterior.edge_probabilities(weighted=False).loc["a", "b"] == pytest.approx(0.75)
    assert posterior.path_probabilities().loc["a", "c"] == pytest.approx(0.5)
    blanket = posterior.markov_blanket_probabilities()
    assert blanket.loc["a", "b"] == pytest.approx(1.0)
    assert blanket.loc["a", "c"] == pytest.approx(0.0)


def test_a_path_is_at_least_as_probable_as_the_edge() -> None:
    none = np.zeros((10, 2, 2), bool)
    resolved = Posterior(none, ("a", "b"), marginals=np.array([[0.0, 0.04], [0.01, 0.0]]))
    assert resolved.path_probabilities().loc["a", "b"] == 0.04
    assert resolved.path_probabilities(weighted=False).loc["a", "b"] == 0.0


def test_paths_and_blankets_of_two_variables_are_their_edges() -> None:
    """Marginals that the method knows decide, and the noise of the samples does not enter."""
    drawn = np.zeros((10, 2, 2), bool)
    drawn[:7, 0, 1] = drawn[7:, 1, 0] = True
    post = Posterior(drawn, ("a", "b"), marginals=np.array([[0.0, 0.5], [0.3, 0.0]]))
    np.testing.assert_allclose(post.path_probabilities(), post.edge_probabilities())
    np.testing.assert_allclose(post.markov_blanket_probabilities(), [[0, 0.8], [0.8, 0]])


def test_a_path_goes_one_way_at_most() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        order = rng.permuted(np.tile(np.arange(4), (20, 1)), axis=1)
        drawn = (rng.random((20, 4, 4)) < 0.4) & (order[:, :, None] < order[:, None, :])
        more = (rng.random((500, 4, 4)) < 0.4) & np.triu(np.ones((4, 4), bool), 1)
        post = Posterior(drawn, "abcd", marginals=more.mean(axis=0))
        paths = post.path_probabilities().to_numpy()
        assert (paths + paths.T <= 1 + 1e-12).all()
        assert (paths >= post.edge_probabilities().to_numpy() - 1e-12).all()


_DRAWN = np.array([CHAIN, REVERSED_CHAIN, A_TO_B, [[0, 0, 1], [0, 0, 1], [0, 0, 0]]], bool)
_CHANCES = np.array([0.4, 0.2, 0.3, 0.1])


def _marginals_known(rng: np.random.Generator) -> Posterior:
    known = np.tensordot(_CHANCES, _DRAWN, axes=1)
    return replace(_plain(rng), marginals=known, diagnosis=Diagnostics(verdict="exact"))


def _marginals_of_more_draws(rng: np.random.Generator) -> Posterior:
    more = Posterior(_DRAWN[rng.choice(4, 800, p=_CHANCES)], "abc")
    errors = Diagnostics(edge_errors=more.edge_errors())
    return Posterior(more.samples[:200], "abc", marginals=more.samples.mean(axis=0), diagnosis=errors)


def _plain(rng: np.random.Generator) -> Posterior:
    return Posterior(_DRAWN[rng.choice(4, 200, p=_CHANCES)], "abc")


def _weighted(rng: np.random.Generator) -> Posterior:
    index = rng.choice(4, 200)
    return Posterior(_DRAWN[index], "abc", log_weights=np.log(_CHANCES[index]))


def _resampled(rng: np.random.Generator) -> Posterior:
    return _plain(rng).resample(200, rng)


@pytest.mark.parametrize("quantity", ["edge", "path", "markov_blanket"])
@pytest.mark.parametrize(
    "draw",
    [_marginals_known, _marginals_of_more_draws, _plain, _weighted, _resampled],
    ids=lambda f: f.__name__,
)
def test_errors_are_those_of_repeated_draws(
    draw: Callable[[np.random.Generator], Posterior], quantity: str
) -> None:
    rng = np.random.default_rng(1)
    posts = [draw(rng) for _ in range(400)]
    seen = np.std([getattr(post, f"{quantity}_probabilities")() for post in posts], axis=0)
    told = np.mean([getattr(post, f"{quantity}_errors")() for post in posts], axis=0)
    # Never much less than seen (a standard deviation of 400 draws is known to 4 %), nor much more.
    assert (told >= 0.85 * seen - 1e-12).all()
    assert (told[seen > 0.01] < 1.3 * seen[seen > 0.01]).all()


def test_an_edge_of_open_direction_is_surely_in_the_blanket() -> None:
    both = np.array([[[0, 1], [0, 0]], [[0, 0], [1, 0]]] * 500, bool)
    assert Posterior(both, "ab").markov_blanket_errors()[0, 1] < 0.001  # half a count of 1,000


def test_samples_that_all_agree_are_not_certain() -> None:
    same = np.tile(np.array(A_TO_B, bool), (100, 1, 1))
    errors = Posterior(same, "abc").edge_errors()
    half_a_count = np.sqrt(0.5 / 101 * 100.5 / 101 / 100)
    assert errors[0, 1:] == pytest.approx([half_a_count, half_a_count])
    assert errors.diagonal().tolist() == [0, 0, 0]
    assert Posterior(same[:1], "abc").edge_errors()[0, 1] > 0.4  # one graph says next to nothing


@pytest.mark.parametrize("number", range(2, 60))
def test_certain_edges_have_probability_one(number: int) -> None:
    sure = Posterior(np.tile(np.array(A_TO_B, bool), (number, 1, 1)), "abc")
    assert sure.edge_probabilities().loc["a", "b"] == 1
    weighted = Posterior(sure.samples, "abc", log_weights=np.linspace(-3, 0, number))
    assert 1 - 1e-12 < weighted.edge_probabilities().loc["a", "b"] <= 1
    assert weighted.consensus_graph(1 - 1e-6).loc["a", "b"]


def test_a_tie_is_not_above_one_half() -> None:
    both = np.array([[[0, 1], [0, 0]], [[0, 0], [1, 0]]] * 500, bool)
    assert (
        not Posterior(both, "ab", log_weights=np.tile([0.1, 0.1 + 1e-12], 500))
        .consensus_graph()
        .any(axis=None)
    )


def test_the_edge_table_puts_the_likelier_direction_first(posterior: Posterior) -> None:
    first = posterior.edge_table().iloc[0]
    assert (first.source, first.target) == ("a", "b")
    assert first.probability == pytest.approx(0.6)
    assert first.reverse == pytest.approx(0.4)
    assert first.absent == pytest.approx(0.0)
    w = np.array([0.1, 0.2, 0.4, 0.3])
    x = np.array([1.0, 1.0, 0.0, 1.0])
    assert first.error == pytest.approx(np.sqrt(np.sum(w**2 * (x - 0.6) ** 2)))


def test_equivalent_graphs_share_a_class(posterior: Posterior) -> None:
    classes = posterior.equivalence_classes()
    assert classes.probability.tolist() == pytest.approx([0.9, 0.1])
    assert classes.num_graphs.tolist() == [2, 1]
    assert classes.num_edges.tolist() == [2, 1]


def test_the_consensus_graph_never_has_a_cycle() -> None:
    cycle = np.array([[0, 0.9, 0.1], [0.0, 0, 0.8], [0.7, 0.0, 0]])
    post = Posterior(samples=np.zeros((1, 3, 3), bool), names="abc", marginals=cycle)
    graph = post.consensus_graph(0.5)
    assert graph.to_numpy().sum() == 2
    assert not graph.loc["c", "a"]


def test_the_map_graph_has_the_best_score_or_the_most_mass(posterior: Posterior) -> None:
    assert posterior.map_graph().to_numpy().tolist() == np.array(CHAIN, bool).tolist()
    unscored = Posterior(samples=posterior.samples, names="abc", log_weights=np.log([0.1, 0.15, 0.45, 0.3]))
    # The chain was sampled twice with less mass each than its reversal, but more together.
    assert unscored.map_graph().to_numpy().tolist() in (
        np.array(CHAIN, bool).tolist(),
        np.array(REVERSED_CHAIN, bool).tolist(),
    )
    heavier = Posterior(samples=posterior.samples, names="abc", log_weights=np.log([0.1, 0.25, 0.35, 0.3]))
    assert heavier.map_graph().to_numpy().tolist() == np.array(CHAIN, bool).tolist()


def test_resampling_follows_the_weights(posterior: Posterior) -> None:
    drawn = posterior.resample(20000, random_state=0)
    assert np.ptp(drawn.log_weights) == 0
    # Four standard errors of a proportion from 20,000 draws.
    assert drawn.edge_probabilities().loc["a", "b"] == pytest.approx(0.6, abs=0.014)
    # Copies know no more than what they were copied from.
    assert drawn.edge_errors()[0, 1] == pytest.approx(posterior.edge_errors()[0, 1], rel=0.1)
    assert drawn.resample(50, random_state=0).diagnostics()["independent_samples"] <= 4


def test_networkx_graphs_carry_names_and_probabilities(posterior: Posterior) -> None:
    assert set(posterior.to_networkx(0).edges) == {("a", "b")}
    assert posterior.to_networkx().edges["a", "b"]["probability"] == pytest.approx(0.6)


def test_saving_and_loading_loses_nothing(posterior: Posterior, tmp_path) -> None:
    path = tmp_path / "posterior.npz"
    posterior.save(path)
    again = Posterior.load(path)
    assert again.names == posterior.names
    assert again.method == posterior.method
    np.testing.assert_array_equal(again.samples, posterior.samples)
    np.testing.assert_array_equal(again.log_weights, posterior.log_weights)
    np.testing.assert_array_equal(again.log_scores, posterior.log_scores)
    assert again.diagnostics() == posterior.diagnostics()
    assert (again.log_evidence, again.log_evidence_error) == (-2.5, 0.1)
    posterior.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_exact_marginals_survive_the_file(tmp_path) -> None:
    marginals = np.array([[0, 0.25], [0.5, 0]])
    post = Posterior(
        np.zeros((2, 2, 2), bool), ("x", "y"), marginals=marginals, diagnosis=Diagnostics(verdict="exact")
    )
    post.save(tmp_path / "p.npz")
    again = Posterior.load(tmp_path / "p.npz")
    np.testing.assert_array_equal(again.edge_probabilities().to_numpy(), marginals)
    assert again.edge_errors().max() == 0


def _tampered(posterior: Posterior, path, **changes: np.ndarray) -> None:
    write_posterior(posterior, path)
    with np.load(path) as members:
        arrays = dict(members) | changes
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


CYCLE = np.array([[[0, 1], [1, 0]]], dtype=np.uint8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_weights": None}, "lacks log_weights"),
        ({"log_weights": np.array([np.nan])}, "weights"),
        ({"log_weights": np.zeros(5)}, "shape"),
        ({"adjacency": CYCLE}, "acyclic"),
        ({"adjacency": np.full((1, 2, 2), 7, np.uint8)}, "acyclic"),
        ({"edge_probabilities": np.full((2, 2), 3.0)}, "probabilities"),
        ({"names": np.array([["a", "b"]])}, "names"),
        ({"meta": np.array("{")}, "JSON"),
        ({"meta": np.array("[]")}, "meta"),
        ({"meta": np.array(json.dumps({"schema": 99, "diagnostics": {}}))}, "schema"),
        ({"log_scores": np.array(["x"])}, "numbers"),
        ({"log_scores": np.array([np.nan])}, "scores"),
    ],
)
def test_a_tampered_file_is_refused_by_name(changes, message, tmp_path) -> None:
    post = Posterior(np.zeros((1, 2, 2), bool), ("x", "y"))
    path = tmp_path / "bad.npz"
    _tampered(post, path, **changes)
    with pytest.raises(FileFormatError, match=message):
        Posterior.load(path)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04broken", b"\x93NUMPY"])
def test_a_foreign_file_is_refused(content: bytes, tmp_path) -> None:
    path = tmp_path / "foreign.npz"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="foreign"):
        Posterior.load(path)
    with pytest.raises(FileFormatError, match="does not exist"):
        Posterior.load(tmp_path / "nowhere.npz")


def test_a_pickle_inside_an_archive_is_not_executed(tmp_path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, meta=np.array([print], dtype=object), adjacency=np.zeros(1))
    with pytest.raises(FileFormatError):
        Posterior.load(path)


def test_a_zip_bomb_is_refused_by_its_size(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 2**20)
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("adjacency.npy", bytes(2**22))
    with pytest.raises(FileFormatError, match="unpack"):
        Posterior.load(path)


def test_an_interrupted_write_leaves_the_old_file(tmp_path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write_half() -> None:
        with atomic_write(path) as stream:
            stream.write("half of the new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("weights", [[np.nan, 0.0], [-np.inf, -np.inf], [np.inf, 0.0], [0.0]])
def test_bad_weights_are_refused(weights) -> None:
    with pytest.raises(ValueError, match="log_weights"):
        Posterior(np.zeros((2, 2, 2), bool), ("x", "y"), log_weights=np.array(weights))


def test_names_and_scores_that_do_not_fit_are_refused() -> None:
    empty = np.zeros((2, 2, 2), bool)
    with pytest.raises(ValueError, match="distinct"):
        Posterior(empty, ("x", "x"))
    with pytest.raises(ValueError, match="log_scores"):
        Posterior(empty, ("x", "y"), log_scores=np.zeros(3))


def test_cyclic_graphs_are_not_saved(tmp_path) -> None:
    with pytest.raises(GFlowDAGError, match="cycles"):
        Posterior(np.array([[[0, 1], [1, 0]]]), ("x", "y")).save(tmp_path / "post.npz")
    assert not list(tmp_path.iterdir())
