"""The probability of a statement about the graph: the language, its errors, and what is exact."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gflowdag as gd
from gflowdag.errors import DataError, StatementError
from gflowdag.graph import all_dags
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.statement_language import parse_statement, written

NAMES = ("A", "not", 'blood "pressure"')  # one plain, one a word of the language, one with blanks and quotes
GRAPHS = all_dags(3)
EVERY = Posterior(GRAPHS, NAMES)


# -- the language against a naive evaluation -----------------------------------------------------------------


def _paths(graph: np.ndarray, i: int, j: int) -> bool:
    return any(graph[i, k] and (k == j or _paths(graph, k, j)) for k in range(len(graph)))


def _separated(graph: np.ndarray, i: int, j: int, given_: list[int]) -> bool:
    """By the two trails that three nodes allow: i … j, and i … k … j."""
    k = 3 - i - j
    if graph[i, j] or graph[j, i]:
        return False
    if not ((graph[i, k] or graph[k, i]) and (graph[j, k] or graph[k, j])):
        return True
    is_collider = bool(graph[i, k] and graph[j, k])
    return is_collider != (k in given_)


NAIVE: dict[str, Any] = {
    "->": lambda g, i, j: bool(g[i, j]),
    "<-": lambda g, i, j: bool(g[j, i]),
    "~>": _paths,
    "<~": lambda g, i, j: _paths(g, j, i),
    "-": lambda g, i, j: bool(g[i, j] or g[j, i]),
}


@st.composite
def relations(draw: st.DrawFn) -> tuple[str, Any]:
    """A relation as text, and the function of a graph that it should be."""
    order = draw(st.permutations([0, 1, 2]))
    i, j, k = order
    a, b, c = (written(NAMES[node]) for node in order)
    if draw(st.booleans()):
        if draw(st.booleans()):
            return f"{a} _||_ {b}", lambda g: _separated(g, i, j, [])
        if draw(st.booleans()):
            return f"{a}_||_{b} | {c}", lambda g: _separated(g, i, j, [k])
        # two against one: separated iff both pairs are, each without the other (composition of d-separation)
        return f"{a}, {b} _||_ {c}", lambda g: _separated(g, i, k, []) and _separated(g, j, k, [])
    first, second = draw(st.sampled_from(sorted(NAIVE))), draw(st.sampled_from(sorted(NAIVE)))
    if draw(st.booleans()):
        return f"{a} {first} {b}", lambda g: NAIVE[first](g, i, j)
    return f"{a} {first} {b} {second} {c}", lambda g: NAIVE[first](g, i, j) and NAIVE[second](g, j, k)


def _combined(children: Any) -> Any:
    joined = st.tuples(children, children)
    return st.one_of(
        children.map(lambda one: (f"not ({one[0]})", lambda g: not one[1](g))),
        children.map(lambda one: (f"({one[0]})", one[1])),
        joined.map(lambda two: (f"({two[0][0]}) and ({two[1][0]})", lambda g: two[0][1](g) and two[1][1](g))),
        joined.map(lambda two: (f"({two[0][0]}) or ({two[1][0]})", lambda g: two[0][1](g) or two[1][1](g))),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(relations(), _combined, max_leaves=6))
def test_a_statement_holds_where_a_naive_evaluation_says_so(made: tuple[str, Any]) -> None:
    text, naive = made
    assert parse_statement(text, NAMES).holds(GRAPHS).tolist() == [naive(graph) for graph in GRAPHS]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["A", "B", "C", "->", "~>", "_||_", "|", ",", "and", "or", "not", "(", ")", "-", '"', " "]
        )
    )
)
def test_any_text_is_a_statement_or_refused_with_a_place(tokens: list[str]) -> None:
    text = " ".join(tokens)
    with contextlib.suppress(StatementError):
        parse_statement(text, "ABC")
        return
    with pytest.raises(StatementError, match=r"at character|at the end"):
        parse_statement(text, "ABC")


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1))
def test_every_name_can_be_written(name: str) -> None:
    found = parse_statement(f"{written(name)} -> _other", [name, "_other"]) if name != "_other" else None
    assert found is None or found.holds(np.array([[[0, 1], [0, 0]]], bool)).all()


def test_and_binds_more_than_or_and_not_most() -> None:
    a, b, c = "A -> B", "B -> C", "C -> A"
    holds = lambda text: parse_statement(text, "ABC").holds(GRAPHS).tolist()  # noqa: E731
    assert holds(f"{a} or {b} and {c}") == holds(f"{a} or ({b} and {c})") != holds(f"({a} or {b}) and {c}")
    assert holds(f"not {a} and {b}") == holds(f"(not {a}) and {b}") != holds(f"not ({a} and {b})")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A -> -> B", "at character 6, before '-> B': expected a variable"),
        ("A ->", "at the end: expected a variable"),
        ("A -> Bb", "at character 6, before 'Bb': There is no variable 'Bb'"),
        ("(A -> B", r"at the end: expected `\)`"),
        ("A, B -> C", "at character 6, before '-> C': expected `_||_`".replace("|", r"\|")),
        ("A B", "at character 3, before 'B': expected a relation"),
        ("A -> B C", "at character 8, before 'C': expected `and`"),
        ("A -> A", "at character 6, before 'A': a variable has no edge"),
        ("A, B _||_ B", "a variable stands twice"),
        ("A -> and", "a variable called and stands in quotes"),
        ('A -> "B', "at character 6, before '\"B': this quote is not closed"),
        ("(" * 200 + "A -> B", "more than 100 parentheses"),
        ("", "at the end: expected a variable"),
    ],
)
def test_an_error_shows_the_place(text: str, message: str) -> None:
    with pytest.raises(StatementError, match=message):
        parse_statement(text, "ABC")


# -- probabilities -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exact() -> Posterior:
    frame = gd.simulate.linear_gaussian(4, 100, random_state=2).frame
    return gd.fit(frame, method="exact", num_samples=400, random_state=0)


def test_edges_of_an_exact_posterior_are_exact(exact: Posterior) -> None:
    p = exact.edge_probabilities()
    edge, absent = exact.probability("X1 -> X2"), exact.probability("not X1 - X2")
    assert (edge.probability, edge.error, edge.exact) == (p.loc["X1", "X2"], 0, True)
    assert absent.exact
    assert absent.probability == pytest.approx(1 - p.loc["X1", "X2"] - p.loc["X2", "X1"], abs=1e-12)
    both = exact.probability("X1 -> X2 or X2 -> X1")
    assert both.exact
    assert both.probability == pytest.approx(1 - absent.probability, abs=1e-12)


def test_weights_and_the_correlation_of_chains_are_in_the_error() -> None:
    rng = np.random.default_rng(0)
    samples, log_weights = GRAPHS[rng.integers(0, 25, 500)], rng.normal(size=500)
    holds = [bool(graph[0, 1] and graph[1, 2]) for graph in samples]
    w = np.exp(log_weights) / np.exp(log_weights).sum()
    p = w @ holds
    error = np.sqrt(w**2 @ (holds - p) ** 2)
    found = Posterior(samples, "ABC", log_weights=log_weights).probability("A -> B -> C")
    assert (found.probability, found.error) == pytest.approx((p, error))
    correlated = Posterior(
        samples, "ABC", log_weights=log_weights, diagnosis=Diagnostics(effective_samples=50)
    )
    assert correlated.probability("A -> B -> C").error == pytest.approx(error * np.sqrt(10))


def test_a_function_of_the_graph_is_as_good_as_a_statement(exact: Posterior) -> None:
    function = exact.probability(lambda graph: graph.loc["X1", "X2"] and graph.loc["X2", "X3"])
    statement = exact.probability("X1 -> X2 -> X3")
    assert (function.probability, function.error) == (statement.probability, statement.error)
    with pytest.raises(DataError, match="True or False"):
        exact.probability(lambda graph: graph.to_numpy().sum())  # pyright: ignore[reportArgumentType]


def test_what_is_given_holds_in_all_graphs_that_are_left(exact: Posterior) -> None:
    some = exact.given("X1 - X2")
    assert (some.samples[:, 0, 1] | some.samples[:, 1, 0]).all()
    both, one = exact.probability("X1 - X2 and X2 ~> X3"), exact.probability("X1 - X2")
    left = some.probability("X2 ~> X3")
    assert left.probability == pytest.approx(both.probability / one.probability, abs=5 * left.error)
    assert not left.exact
    assert left.verdict == "trusted"
    assert one.exact
    with pytest.raises(DataError, match="None of the 400 sampled graphs"):
        exact.given("X1 -> X2 and X2 -> X1")


def test_directions_that_the_score_assumes_are_named() -> None:
    assumed = np.zeros((3, 3), dtype=bool)
    assumed[0, 1] = True
    post = Posterior(GRAPHS, "ABC", diagnosis=Diagnostics(assumed_directions=assumed))
    assert post.probability("A -> B").assumed == (("A", "B"),)
    assert post.probability("B -> A").assumed == (("A", "B"),)
    assert post.probability("A ~> C").assumed == (("A", "B"),)
    assert post.probability("B ~> C").assumed == ()
    assert post.probability("A - B").assumed == ()
