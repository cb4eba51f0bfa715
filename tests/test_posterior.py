"""The Posterior respects its weights everywhere and survives its file."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from gflowdag import archive
from gflowdag.archive import write_posterior
from gflowdag.errors import FileFormatError
from gflowdag.files import atomic_write
from gflowdag.posterior import Posterior

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
        details={"verdict": "trusted", "explanation": "Because.", "ess": 0.8},
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
    post = Posterior(np.zeros((2, 2, 2), bool), ("x", "y"), marginals=marginals, details={"verdict": "exact"})
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


@pytest.mark.parametrize("weights", [[np.nan, 0.0], [-np.inf, -np.inf], [0.0]])
def test_bad_weights_are_refused(weights) -> None:
    with pytest.raises(ValueError, match="log_weights"):
        Posterior(np.zeros((2, 2, 2), bool), ("x", "y"), log_weights=np.array(weights))
