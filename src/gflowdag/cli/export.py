"""What can be asked of a posterior on the command line: single probabilities, and all of them in a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from gflowdag.errors import GFlowDAGError
from gflowdag.posterior.estimates import ROUNDING
from gflowdag.posterior.handover import edges as edges_of
from gflowdag.posterior.handover import tetrad_text
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.csv_cells import cell
from gflowdag.runtime.messages import unknown_name
from gflowdag.runtime.strict_json import dumps


def answer(posterior: Posterior, question: str, source: str, target: str | None) -> list[dict[str, Any]]:
    """Probability and Monte-Carlo error of an edge, a path, or membership in a Markov blanket.

    Every row repeats the verdict on the run: a probability may be read without the rest. The error is None
    where chains did not mix: it says nothing then.
    """
    for name in filter(None, (source, target)):
        if name not in posterior.names:
            raise GFlowDAGError(unknown_name(name, posterior.names))
    arrow, p, error = _feature(posterior, question)
    i = posterior.names.index(source)
    targets = [target] if target else [name for name in posterior.names if name != source]
    rows = []
    for name in targets:
        j = posterior.names.index(name)
        rows.append(
            {
                "statement": f"{source} {arrow} {name}",
                "probability": float(p[i, j]),
                "error": float(error[i, j]) if posterior.diagnosis.has_errors else None,
                "verdict": posterior.diagnosis.verdict,
            }
        )
    return rows if target else sorted(rows, key=lambda row: -row["probability"])


def answer_statement(posterior: Posterior, statement: str) -> dict[str, Any]:
    """What a posterior says about a statement, such as `"A -> B and not A ~> C"`."""
    return asdict(posterior.probability(statement))


def _feature(posterior: Posterior, question: str) -> tuple[str, np.ndarray, np.ndarray]:
    """How the feature is written, its probabilities [d, d] and their errors [d, d]."""
    if question == "edge":
        return "→", posterior.edge_probabilities().to_numpy(), posterior.edge_errors()
    if question == "path":
        return "⇝", posterior.path_probabilities().to_numpy(), posterior.path_errors()
    blankets = posterior.markov_blanket_probabilities().to_numpy()
    return "in the Markov blanket of", blankets, posterior.markov_blanket_errors()


OF_EDGES = ("csv", "json", "dot", "graphml", "gml")  # formats that can hold a probability of each edge
OF_PATTERNS = ("csv", "json", "dot", "tetrad")  # formats that can hold undirected edges


def graph_text(posterior: Posterior, format: str, graph: str) -> str:
    """One graph in a format: `"best"`, the `"cpdag"` of its class, or the number of a sample."""
    if format == "nc":
        raise GFlowDAGError("nc holds all samples: leave --graph out")
    if graph == "cpdag":
        if format not in OF_PATTERNS:
            raise GFlowDAGError(
                f"{format} has no undirected edges: export a cpdag as {', '.join(OF_PATTERNS)}, or --graph "
                "best"
            )
        return _pattern_text(posterior, posterior.cpdag().to_numpy(), format)
    k = _sample(posterior, graph)
    if format == "bnlearn":
        return posterior.to_bnlearn(k) + "\n"
    if format == "bif":
        return posterior.to_bif(k)
    if format == "gml":
        return posterior.to_gml(k)
    chosen = posterior.map_graph().to_numpy() if k is None else posterior.samples[k]
    if format == "graphml":
        import networkx as nx

        drawn: Any = nx.DiGraph()
        drawn.add_nodes_from(posterior.names)
        drawn.add_edges_from((posterior.names[i], posterior.names[j]) for i, j in np.argwhere(chosen))
        return "\n".join(nx.generate_graphml(drawn)) + "\n"
    return _pattern_text(posterior, chosen, format)


def _sample(posterior: Posterior, graph: str) -> int | None:
    if graph == "best":
        return None
    if not graph.isdecimal() or int(graph) >= posterior.num_samples:
        raise GFlowDAGError(
            f"--graph takes best, cpdag, or the number of a sample from 0 to {posterior.num_samples - 1}, "
            f"not {graph!r}"
        )
    return int(graph)


def _pattern_text(posterior: Posterior, pattern: np.ndarray, format: str) -> str:
    """A DAG or a CPDAG as `csv`, `json`, `dot` or `tetrad`."""
    names = posterior.names
    if format == "tetrad":
        return tetrad_text(names, pattern)
    found = [(names[i], names[j], directed) for i, j, directed in edges_of(pattern)]
    if format == "csv":
        rows = [("source", "target", "directed")]
        rows += [(cell(a), cell(b), str(directed).lower()) for a, b, directed in found]
        return "".join(",".join(row) + "\n" for row in rows)
    if format == "json":
        listed = [{"source": a, "target": b, "directed": directed} for a, b, directed in found]
        return dumps({"names": names, "edges": listed}, indent=2) + "\n"
    lines = [f"  {_quoted(name)};" for name in names]
    lines += [
        f"  {_quoted(a)} -> {_quoted(b)}{'' if directed else ' [dir=none]'};" for a, b, directed in found
    ]
    return "digraph graph_of_a_posterior {\n" + "\n".join(lines) + "\n}\n"


def export_text(posterior: Posterior, format: str, threshold: float) -> str:
    """Edge probabilities in one of the formats `OF_EDGES`, each with the verdict on the run."""
    found = posterior.diagnosis
    graph = posterior.to_networkx()
    graph.remove_edges_from(
        [(a, b) for a, b, p in graph.edges(data="probability") if p < threshold - ROUNDING]
    )
    edges = sorted(graph.edges(data="probability"), key=lambda edge: -edge[2])
    if format == "csv":
        rows = [("source", "target", "probability", "verdict")]
        rows += [(cell(a), cell(b), str(p), found.verdict) for a, b, p in edges]
        return "".join(",".join(row) + "\n" for row in rows)
    if format == "json":
        rows = [{"source": a, "target": b, "probability": p} for a, b, p in edges]
        about = {"method": posterior.method, "verdict": found.verdict, "explanation": found.explanation}
        return dumps({**about, "names": posterior.names, "edges": rows}, indent=2) + "\n"
    if format == "graphml":
        import networkx as nx

        graph.graph["verdict"] = found.verdict
        return "\n".join(nx.generate_graphml(graph)) + "\n"
    if format == "gml":
        import networkx as nx

        graph.graph["verdict"] = found.verdict
        return "\n".join(nx.generate_gml(graph)) + "\n"
    lines = [f"  comment={_quoted(f'verdict: {found.verdict}')};"]
    lines += [f"  {_quoted(name)};" for name in posterior.names]
    lines += [
        f'  {_quoted(a)} -> {_quoted(b)} [label="{p:.3f}", penwidth={0.5 + 3 * p:.2f}];' for a, b, p in edges
    ]
    return "digraph posterior {\n" + "\n".join(lines) + "\n}\n"


def _quoted(name: str) -> str:
    """The name in the quotes of DOT; a line break is drawn as one."""
    for character, written in {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}.items():
        name = name.replace(character, written)
    return f'"{name}"'
