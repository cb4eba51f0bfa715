"""A graph that somebody else drew, brought into the order of our variables by name."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gflowdag.data.contents import read_text
from gflowdag.errors import DataError, FileFormatError
from gflowdag.graph.closure import transitive_closure
from gflowdag.runtime.csv_cells import unescaped
from gflowdag.runtime.messages import shown

if TYPE_CHECKING:
    import networkx as nx

Truth: TypeAlias = "pd.DataFrame | nx.DiGraph[Any] | np.ndarray | Iterable[tuple[str, str]]"
"""A graph: 0/1 frame [source, target], frame with the columns `source` and `target`, networkx graph, list
of edges by name, or 0/1 array [d, d] in the order of the variables."""

_EDGE_COLUMNS = ["source", "target"]


def align(truth: Truth, names: Sequence[str]) -> NDArray[np.bool_]:
    """The adjacency matrix of a graph in the order of `names`.

    Args:
        truth: the graph, in any of the forms of `Truth`. Variables that an edge list or a networkx graph does
            not mention have no edges; a frame [source, target] must hold all of them.
        names: variable names.

    Returns:
        bool [d, d], rows are sources.

    Raises:
        DataError: it names an unknown variable, lacks one, or is not a 0/1 matrix of the right shape.
    """
    names = [str(name) for name in names]
    if isinstance(truth, pd.DataFrame):
        if _is_edge_list(truth):
            edges: Any = cast(Any, truth[_EDGE_COLUMNS])
            return _from_edges(edges.itertuples(index=False, name=None), names)
        return _binary(reordered(truth, names))
    if is_array(truth):
        if truth.shape != (len(names), len(names)):
            raise DataError(f"the true graph has shape {truth.shape}, but there are {len(names)} variables")
        return _binary(truth)
    graph: Any = truth
    if hasattr(graph, "edges"):  # networkx, which takes half a second to import
        if not graph.is_directed():
            raise DataError("the true graph is undirected; give a networkx.DiGraph")
        require_known(graph.nodes, names)
        return _from_edges((edge[:2] for edge in graph.edges), names)
    return _from_edges(graph, names)


def is_array(truth: object) -> TypeGuard[NDArray[Any]]:
    """Whether a graph is given as an array, without names."""
    return isinstance(truth, np.ndarray)


def named(truth: Truth, names: Sequence[str]) -> pd.DataFrame:
    """A graph read once, since it may be an iterator, as a 0/1 frame [source, target] over `names`."""
    return pd.DataFrame(align(truth, names), index=list(names), columns=list(names))


def align_dag(truth: Truth, names: Sequence[str]) -> NDArray[np.bool_]:
    """As `align`, for a graph that must be acyclic: a cycle is refused by the names of its edges."""
    graph = align(truth, names)
    on_cycle = graph & transitive_closure(graph).T
    if on_cycle.any():
        edges = [f"{names[i]} → {names[j]}" for i, j in np.argwhere(on_cycle)]
        raise DataError(f"the true graph has a cycle: {shown(edges, 8)}; remove one of these edges")
    return graph


def read_edges(path: str | Path) -> pd.DataFrame:
    """The edges of a CSV file with the columns `source` and `target`, for `align` and every metric.

    Returns:
        A frame with these two columns, one row for each edge.
    """
    options: Any = {"dtype": str, "keep_default_na": False, "skipinitialspace": True}
    text = read_text(Path(path), FileFormatError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
            table: pd.DataFrame = cast(Any, pd).read_csv(io.StringIO(text), index_col=False, **options)
    except pd.errors.ParserWarning:
        raise FileFormatError(f"{path}: the rows have more fields than the header") from None
    except ValueError as error:  # the base of pandas' parser errors and of UnicodeDecodeError
        raise FileFormatError(f"{path}: not a CSV file with the columns source,target ({error})") from None
    if not set(_EDGE_COLUMNS) <= set(table.columns):
        found = ", ".join(map(str, table.columns))
        raise FileFormatError(f"{path}: needs the columns source,target; found {found}")
    columns = cast(Any, table)
    edges = pd.DataFrame({name: list(map(unescaped, columns[name])) for name in _EDGE_COLUMNS})
    if (blank := (edges.to_numpy() == "").any(axis=1)).any():
        raise FileFormatError(
            f"{path}: edge {int(blank.argmax()) + 1} lacks the name of its source or target"
        )
    return edges


def reordered(frame: pd.DataFrame, names: Sequence[str]) -> NDArray[Any]:
    """Values of a frame [source, target] in the order of `names`, which it must hold once each."""
    rows, columns = ([str(label) for label in axis] for axis in (frame.index, frame.columns))
    require_known((*rows, *columns), names)
    for labels, axis in ((rows, "rows"), (columns, "columns")):
        missing = sorted(set(names) - set(labels))
        if missing or len(labels) != len(names):
            problem = f"lack {', '.join(missing)}" if missing else "name a variable twice"
            raise DataError(f"the {axis} of the table [source, target] {problem}")
    row, column = ([labels.index(name) for name in names] for labels in (rows, columns))
    return frame.to_numpy()[np.ix_(row, column)]


def require_known(found: Iterable[Any], names: Sequence[str]) -> None:
    """Refuse names of variables that are not among `names`."""
    unknown = sorted({str(name) for name in found} - set(names))
    if unknown:
        raise DataError(f"unknown variables: {', '.join(unknown)}; known are {', '.join(names)}")


def _is_edge_list(frame: pd.DataFrame) -> bool:
    """Whether it lists edges, and is no matrix over variables that happen to be called source and target."""
    columns, rows = (set(map(str, labels)) for labels in (frame.columns, frame.index))
    return set(_EDGE_COLUMNS) <= columns and columns != rows


def _from_edges(edges: Iterable[Any], names: Sequence[str]) -> NDArray[np.bool_]:
    pairs: list[tuple[str, str]] = []
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 2:
            raise DataError(f"an edge is a pair (source, target) of names, got {edge!r}")
        pairs.append((str(edge[0]), str(edge[1])))
    require_known((name for pair in pairs for name in pair), names)
    index = {name: i for i, name in enumerate(names)}
    graph = np.zeros((len(names), len(names)), dtype=bool)
    for source, target in pairs:
        graph[index[source], index[target]] = True
    return _binary(graph)


def _binary(matrix: NDArray[Any]) -> NDArray[np.bool_]:
    if not np.isin(matrix, (0, 1)).all():
        raise DataError("the true graph must be a matrix of zeros and ones, 1 at [source, target]")
    graph = matrix.astype(bool)
    if graph.diagonal().any():
        raise DataError("the true graph has an edge from a variable to itself")
    return graph
