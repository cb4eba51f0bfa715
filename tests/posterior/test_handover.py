"""Tables of other libraries in, graphs for other libraries out."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.errors import MissingExtraError


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
