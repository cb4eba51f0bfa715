"""Networks in files: what is read is what was written, and damaged files are refused with their line."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from bif_text import to_bif

from gflowdag.data import load_network
from gflowdag.data.bif import parse_bif
from gflowdag.data.catalog import DISCRETE_NETWORKS
from gflowdag.data.lingauss import parse_linear_gaussian
from gflowdag.errors import FileFormatError

# nodes, arcs and free parameters as the bnlearn repository states them
SIZES = {
    "asia": (8, 8, 18),
    "cancer": (5, 4, 10),
    "earthquake": (5, 4, 10),
    "survey": (6, 6, 21),
    "sachs": (11, 17, 178),
    "child": (20, 25, 230),
    "insurance": (27, 52, 1008),
    "alarm": (37, 46, 509),
    "hepar2": (70, 123, 1453),
}
SMALL = """
network small { property "author; unknown"; } // a comment
variable rain { type discrete [ 2 ] { yes, no }; property "position = (1, 2)"; }
variable "wet grass" { type discrete[3]{dry, damp, wet}; }
/* two
   lines */
probability ( rain ) { table 0.2, 0.8; }
probability ( "wet grass" | rain ) {
  (yes) 0.1, 0.2, 0.7;
  default 0.6, 0.3, 0.1;
}
"""


@pytest.mark.parametrize("name", [*DISCRETE_NETWORKS, "sachs"])
def test_embedded_networks_have_the_published_size_and_survive_a_round_trip(name):
    network = load_network(name)
    free = sum(table[..., 1:].size for table in network.tables)
    assert (len(network.names), int(network.adjacency.sum()), free) == SIZES[name]
    for table in network.tables:
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-14)
    again = parse_bif(to_bif(network))
    assert (again.names, again.levels, again.parents) == (network.names, network.levels, network.parents)
    for ours, theirs in zip(again.tables, network.tables, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)  # normalised once more


def test_tables_are_indexed_by_the_parents_in_their_order():
    asia = load_network("asia")
    dyspnoea = asia.names.index("dysp")
    assert [asia.names[parent] for parent in asia.parents[dyspnoea]] == ["bronc", "either"]
    np.testing.assert_allclose(asia.tables[dyspnoea][1, 0], [0.7, 0.3])  # bronc = no, either = yes


def test_samples_of_asia_have_its_marginals():
    frame = load_network("asia").sample(40_000, np.random.default_rng(0))
    # P(lung) = (0.1 + 0.01)/2; P(tub) = 0.0104; either = lung or tub. Tolerances: five deviations of a share.
    for name, share in {"lung": 0.055, "tub": 0.0104, "smoke": 0.5, "either": 0.055 + 0.945 * 0.0104}.items():
        assert abs((frame[name] == "yes").mean() - share) < 5 * np.sqrt(share * (1 - share) / 40_000)
    either = (frame["lung"] == "yes") | (frame["tub"] == "yes")
    assert ((frame["either"] == "yes") == either).all()


def test_comments_quotes_properties_and_defaults_are_understood():
    network = parse_bif(SMALL)
    assert network.names == ("rain", "wet grass")
    np.testing.assert_allclose(network.tables[1], [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.2, 0.8", "0.2, 0.9", "line 7: the distribution of 'rain' has a row that does not sum to 1"),
        ("0.2, 0.8", "0.2, 0.4, 0.4", "line 7: 'rain' has 2 levels but a row of 3"),
        ("0.2, 0.8", "0.2, x", "line 7: 'x' is not a number"),
        ("0.2, 0.8", "1.2, -0.2", "line 7: 1.2 is not a probability"),
        ("0.2, 0.8", "nan, 0.8", "line 7: nan is not a probability"),
        ("(yes)", "(maybe)", r"line 8: \(maybe\) are not levels"),
        ("(yes)", "(yes, no)", r"line 8: \(yes, no\) are not levels"),
        ("  default 0.6, 0.3, 0.1;\n", "", "line 8: the distribution of 'wet grass' lacks a row"),
        ("| rain", "| sun", "line 8: there is no variable 'sun'"),
        ("| rain", "| rain, rain", "line 8: a parent of 'wet grass' is repeated"),
        ("( rain )", '( rain | "wet grass" )', "line 7: a table of a variable with parents"),
        ("probability ( rain ) { table 0.2, 0.8; }", "", "'rain' has no distribution"),
        ("[ 2 ]", "[ 3 ]", "line 3: 3 different levels are declared, 2 listed"),
        ("discrete [ 2 ]", "continuous [ 2 ]", "line 3: only discrete"),
        ("type discrete [ 2 ] { yes, no };", "", "a variable has no type"),
        ("variable rain", "variable wet rain", "line 3: expected '{', found 'rain'"),
        ('variable "wet grass"', "variable rain", "line 4: variable 'rain' is declared twice"),
        ("variable rain", "node rain", "line 3: expected network, variable or probability, found"),
        ("lines */", "lines", "line 5: a quote or comment is not closed"),
        ('grass" | rain', "grass | rain", "a quote or comment is not closed"),
        ("0.1;\n}\n", "0.1;\n", "found 'the end of the file'"),
    ],
)
def test_damaged_bif_files_are_refused_with_their_line(old, new, message):
    assert SMALL.count(old) == 1
    with pytest.raises(FileFormatError, match=message):
        parse_bif(SMALL.replace(old, new), "small.bif")


def test_random_damage_raises_nothing_but_a_format_error():
    rng = np.random.default_rng(0)
    marks = [*'{}()[],;|"/*', "0.5", "rain", "\n", "table", "default", "type"]
    for _ in range(400):
        text, cut = SMALL, rng.integers(len(SMALL), size=3)
        for position in cut:
            text = text[:position] + marks[rng.integers(len(marks))] + text[position + rng.integers(3) :]
        with contextlib.suppress(FileFormatError):
            parse_bif(text)


def test_cycles_and_tables_beyond_the_memory_are_refused():
    cycle = "".join(f"variable {v} {{ type discrete [1] {{ x }}; }}" for v in "ab")
    cycle += "probability (a | b) { (x) 1; } probability (b | a) { (x) 1; }"
    with pytest.raises(FileFormatError, match="cycle"):
        parse_bif(cycle)
    levels = ", ".join(f"l{i}" for i in range(100))
    names = [f"v{i}" for i in range(9)]
    bomb = "".join(f"variable {v} {{ type discrete [100] {{ {levels} }}; }}" for v in names)
    bomb += f"probability (v0 | {', '.join(names[1:])}) {{ default 1; }}"
    bomb += "".join(f"probability ({v}) {{ default 1; }}" for v in names[1:])
    with pytest.raises(FileFormatError, match="more than 10000000"):
        parse_bif(bomb)


def test_an_empty_bif_text_is_refused():
    with pytest.raises(FileFormatError, match="no variables"):
        parse_bif("")


@pytest.mark.parametrize(
    ("name", "nodes", "arcs"),
    [("ecoli70", 46, 70), ("magic-niab", 44, 66), ("magic-irri", 64, 102), ("arth150", 107, 150)],
)
def test_linear_gaussian_networks_have_the_published_size(name, nodes, arcs):
    network = load_network(name)
    assert (len(network.names), int(network.adjacency.sum())) == (nodes, arcs)
    assert not network.weights[~network.adjacency].any()


def test_a_linear_gaussian_sample_has_the_mean_and_covariance_of_the_network():
    network = load_network("ecoli70")
    values = network.sample(40_000, np.random.default_rng(0)).to_numpy()
    inverse = np.linalg.inv(np.eye(len(network.names)) - network.weights)
    mean = network.intercepts @ inverse
    covariance = inverse.T @ np.diag(network.variances) @ inverse
    deviations = np.sqrt(np.diag(covariance))
    assert (np.abs(values.mean(axis=0) - mean) < 5 * deviations / 200).all()  # five deviations of a mean
    # A covariance deviates by at most √(2/n) = 0.7 % of the product of deviations: five of them.
    error = np.abs(np.cov(values.T) - covariance) / np.outer(deviations, deviations)
    assert error.max() < 5 * np.sqrt(2 / 40_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": None}, "missing or wrong entry"),
        ({"nodes": []}, "need names"),
        ({"nodes": ["a", "b", "zz"]}, "missing or wrong entry 'zz'"),
        ({"cpds": {"a": {}, "b": {}}}, "missing or wrong entry 'coefficients'"),
        ({"variance": [-1.0]}, "variance of 'b' is not positive"),
        ({"variance": ["x"]}, "missing or wrong entry"),
        ({"variance": [float("inf")]}, "missing or wrong entry"),
        ({"parents": []}, "coefficients of 'b' do not match"),
        ({"coefficients": {"b": [1.0]}, "parents": ["b"]}, "cycle"),
    ],
)
def test_damaged_linear_gaussian_files_are_refused(change, message):
    cpd = {"coefficients": {"(Intercept)": [0.5], "a": [2.0]}, "variance": [1.0], "parents": ["a"]}
    content = {
        "nodes": ["a", "b"],
        "cpds": {"a": {"coefficients": {}, "variance": [1.0], "parents": []}, "b": cpd},
    }
    assert parse_linear_gaussian(json.dumps(content)).weights[0, 1] == 2.0
    for key, value in change.items():
        (content if key in content else cpd)[key] = value
    with pytest.raises(FileFormatError, match=message):
        parse_linear_gaussian(json.dumps(content), "net.json")


def test_text_that_is_no_json_is_refused():
    with pytest.raises(FileFormatError, match="not JSON"):
        parse_linear_gaussian("{", "net.json")
