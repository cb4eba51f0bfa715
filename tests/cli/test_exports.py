"""What is exported is read back by other programs' readers, whatever the variables are called."""

from __future__ import annotations

import csv
import errno
import io
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from tallies import Tally
from typer.testing import CliRunner

from gflowdag.cli.app import app
from gflowdag.cli.export import answer, export_text
from gflowdag.data import Dataset
from gflowdag.errors import FileWriteError
from gflowdag.posterior.diagnostics import VERDICTS, Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import align, read_edges
from gflowdag.runtime.csv_cells import escaped, unescaped

NAMES = (
    '=HYPERLINK("http://example.org","x")',
    "+1",
    "-log10(p)",
    "@name",
    "\ttab",
    "'=quoted before",
    "line\nbreak",
    "return\rcarriage",
    'a"; evil -> b; "',
    "back\\slash\\",
    "<&'>, ]]>",
    "x:y",
    "日本語",
    "a\u2028b",
    "",
)
FORMULA_STARTS = tuple("=+-@\t\r")


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    """A chain through all names, each edge in three of four graphs."""
    graphs = np.zeros((4, len(NAMES), len(NAMES)), dtype=bool)
    graphs[:3] = np.eye(len(NAMES), k=1, dtype=bool)
    return Posterior(graphs, NAMES, diagnosis=Diagnostics("not converged", "It ended too early."))


EDGES = set(pairwise(NAMES))


def test_csv_gives_the_names_back_and_holds_no_formula(
    posterior: Posterior, tmp_path: Path, tally: Tally
) -> None:
    path = tmp_path / "edges.csv"
    answer = CliRunner().invoke(app, ["export", str(saved(posterior, tmp_path)), "--to", str(path)])
    assert answer.exit_code == 0, answer.output
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert not any(cell.startswith(FORMULA_STARTS) for row in rows for cell in row.values())
    assert {(unescaped(row["source"]), unescaped(row["target"])) for row in rows} == EDGES
    assert {row["probability"] for row in rows} == {"0.75"}
    assert {row["verdict"] for row in rows} == {"not converged"}
    tally("exports", "names in CSV", tried=len(NAMES))


def test_our_own_reader_of_edges_takes_an_exported_file(posterior: Posterior, tmp_path: Path) -> None:
    names = [name for name in NAMES if name and name == name.strip()]  # as the variables of a table are
    kept = [NAMES.index(name) for name in names]
    smaller = replace(posterior, names=names, samples=posterior.samples[:, kept][:, :, kept])
    (tmp_path / "edges.csv").write_text(export_text(smaller, "csv", 0.5), encoding="utf-8", newline="")
    expected = smaller.samples[0]
    assert np.array_equal(align(read_edges(tmp_path / "edges.csv"), names), expected)


@pytest.mark.parametrize("text", [*NAMES, "''=x", "'", "'a", "plain", "\uff1dx"])
def test_an_escaped_cell_is_no_formula_and_comes_back(text: str) -> None:
    assert unescaped(escaped(text)) == text
    assert not escaped(text).startswith((*FORMULA_STARTS, "\uff1d"))


def test_graphml_gives_names_probabilities_and_verdict_back(posterior: Posterior) -> None:
    graph = nx.parse_graphml(export_text(posterior, "graphml", 0.0))
    assert tuple(graph.nodes) == NAMES
    assert set(graph.edges) == EDGES
    assert {p for _, _, p in graph.edges(data="probability")} == {0.75}
    assert graph.graph["verdict"] == "not converged"


def test_dot_gives_names_and_verdict_back(posterior: Posterior) -> None:
    pydot = pytest.importorskip("pydot")
    (graph,) = pydot.graph_from_dot_data(export_text(posterior, "dot", 0.0))
    assert tuple(plain(node.get_name()) for node in graph.get_nodes()) == NAMES
    found = {(plain(edge.get_source()), plain(edge.get_destination())) for edge in graph.get_edges()}
    assert found == EDGES
    assert graph.get_attributes() == {"comment": '"verdict: not converged"'}


def plain(quoted: str) -> str:
    """The text behind a quoted name of DOT."""
    characters = {"n": "\n", "r": "\r"}
    return re.sub(r"\\(.)", lambda found: characters.get(found[1], found[1]), quoted[1:-1])


def test_json_gives_names_and_verdict_back(posterior: Posterior) -> None:
    content = json.loads(export_text(posterior, "json", 0.0))
    assert tuple(content["names"]) == NAMES
    assert {(edge["source"], edge["target"]) for edge in content["edges"]} == EDGES
    assert (content["verdict"], content["explanation"]) == ("not converged", "It ended too early.")


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("format", ["csv", "graphml", "dot", "json"])
def test_every_export_repeats_the_verdict(verdict: str, format: str, posterior: Posterior) -> None:
    judged = posterior.with_diagnostics(verdict=verdict)
    assert verdict in export_text(judged, format, 0.0)


def test_a_query_repeats_the_verdict(posterior: Posterior, tmp_path: Path) -> None:
    run = saved(posterior, tmp_path)
    told = CliRunner().invoke(app, ["query", str(run), "edge", "line\nbreak", "return\rcarriage"])
    assert told.stdout.splitlines() == [
        "line break → return carriage: 0.7500",
        "Not converged: It ended too early.",
    ]
    rows = json.loads(CliRunner().invoke(app, ["query", str(run), "path", "+1", "--json"]).stdout)
    assert {row["verdict"] for row in rows} == {"not converged"}
    assert {row["error"] for row in rows} == {None}  # of chains that did not mix, an error says nothing
    trusted = saved(posterior.with_diagnostics(verdict="trusted"), tmp_path / "trusted")
    told = CliRunner().invoke(app, ["query", str(trusted), "edge", "line\nbreak", "return\rcarriage"])
    assert told.stdout.splitlines()[0] == "line break → return carriage: 0.7500 ± 0.2165"
    assert answer(posterior, "edge", "+1", "-log10(p)")[0]["verdict"] == "not converged"


def test_a_report_shows_marks_that_would_turn_its_lines_around(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["u", "\u202edlo"], 40), "b": rng.choice(["u", "v"], 40)})
    posterior = Posterior(np.zeros((2, 2, 2)), "ab")
    context = {"history": [{"step": step, "\u202eloss": 1.0} for step in (1, 2)]}
    page = posterior.report(
        tmp_path / "r.html", data=Dataset.from_frame(frame), config={"data": "\u2066t.csv"}, **context
    ).read_text(encoding="utf-8")
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page)
    assert page.count("\N{REPLACEMENT CHARACTER}") >= 3


def saved(posterior: Posterior, folder: Path) -> Path:
    posterior.save(folder / "posterior.npz")
    return folder / "posterior.npz"


def test_a_csv_file_is_read_alike_by_csv_and_pandas(posterior: Posterior) -> None:
    text = export_text(posterior, "csv", 0.0)
    ours = [row["source"] for row in csv.DictReader(io.StringIO(text, newline=""))]
    assert list(pd.read_csv(io.StringIO(text, newline=""), keep_default_na=False)["source"]) == ours


# -- one graph, for other programs ---------------------------------------------------------------------------


def exported(run: Path, *options: str) -> str:
    answer = CliRunner().invoke(app, ["export", str(run), *options])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@pytest.fixture(scope="module")
def two_graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples: a chain A -> B -> C, whose class has no direction, and a collider A -> C <- B."""
    graphs = np.zeros((2, 3, 3), dtype=bool)
    graphs[0, 0, 1] = graphs[0, 1, 2] = graphs[1, 0, 2] = graphs[1, 1, 2] = True
    path = tmp_path_factory.mktemp("run") / "posterior.npz"
    Posterior(graphs, ("A", "B", "C"), log_scores=np.array([-1.0, -2.0])).save(path)
    return path


def test_one_graph_goes_out_in_the_words_of_each_program(two_graphs: Path, tmp_path: Path) -> None:
    assert exported(two_graphs, "--format", "bnlearn") == "[A][B|A][C|B]\n"
    assert exported(two_graphs, "--format", "bnlearn", "--graph", "1") == "[A][B][C|A:B]\n"
    assert "1. A --> B" in exported(two_graphs, "--format", "tetrad")
    assert "1. A --- B" in exported(two_graphs, "--format", "tetrad", "--graph", "cpdag")
    assert exported(two_graphs, "--graph", "cpdag").splitlines() == [
        "source,target,directed",
        "A,B,false",
        "B,C,false",
    ]
    drawn = nx.parse_gml(exported(two_graphs, "--format", "gml", "--graph", "best"))
    assert set(drawn.edges) == {("A", "B"), ("B", "C")}
    weighed = nx.parse_gml(exported(two_graphs, "--format", "gml"))
    assert weighed.edges["B", "C"]["probability"] == 1
    assert set(nx.parse_graphml(exported(two_graphs, "--format", "graphml", "--graph", "1")).edges) == {
        ("A", "C"),
        ("B", "C"),
    }
    assert "dir=none" in exported(two_graphs, "--format", "dot", "--graph", "cpdag")
    assert (
        json.loads(exported(two_graphs, "--format", "json", "--graph", "best"))["edges"][0]["directed"]
        is True
    )
    exported(two_graphs, "--to", str(tmp_path / "graph.txt"))
    assert (tmp_path / "graph.txt").read_text().startswith("Graph Nodes:")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--format", "bif", "--graph", "cpdag"), "no undirected edges"),
        (("--format", "bif"), "with_parameters|effect --table"),
        (("--graph", "7"), "from 0 to 1"),
        (("--format", "nc"), "binary"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(
    two_graphs: Path, options: tuple[str, ...], problem: str
) -> None:
    answer = CliRunner().invoke(app, ["export", str(two_graphs), *options])
    assert re.search(problem, str(answer.exception))


def test_netcdf_that_cannot_be_written_leaves_the_file_as_it_was(
    two_graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tree:
        def to_netcdf(self, path: str) -> None:
            Path(path).write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Posterior, "to_datatree", lambda _: Tree())
    (tmp_path / "samples.nc").write_bytes(b"old")
    answer = CliRunner().invoke(app, ["export", str(two_graphs), "--to", str(tmp_path / "samples.nc")])
    assert isinstance(answer.exception, FileWriteError)
    assert "No space left on device" in str(answer.exception)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("samples.nc", b"old")]


def test_all_samples_go_out_as_netcdf(two_graphs: Path, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    exported(two_graphs, "--to", str(tmp_path / "samples.nc"))
    with xarray.open_datatree(tmp_path / "samples.nc") as tree:
        assert tree["posterior"]["adjacency"].sel(source="A", target="C").values.tolist() == [[0, 1]]
