"""Write the tables of methods in how-to/choosing-a-method.md: `python docs/method_table.py`."""

from __future__ import annotations

from pathlib import Path

from gflowdag.estimators.method import Method
from gflowdag.estimators.registry import estimator_classes

PAGE = Path(__file__).parent / "how-to" / "choosing-a-method.md"
BEGIN, END = "<!-- made by docs/method_table.py -->\n", "<!-- end -->\n"


def method_table() -> str:
    """Two tables with one row for each method of this package: when to use it, and what it promises."""
    own = [kind for kind in estimator_classes() if kind.__module__.startswith("gflowdag.")]
    extra = {kind: f" (extra `[{kind.record.extra}]`)" if kind.record.extra else "" for kind in own}
    choice = [
        (f"`{kind.method}`", f"`{kind.__name__}`", kind.record.label + extra[kind], kind.record.use_when)
        for kind in own
    ]
    promise = [
        (
            f"`{kind.method}`",
            kind.record.gives,
            kind.record.checked_by or "nothing",
            kind.record.assumes or "–",
            _refused(kind.record),
        )
        for kind in own
    ]
    return "\n".join(
        [
            *_rows(("method", "in Python", "what it is", "use it for"), choice),
            "",
            *_rows(
                ("method", "answers", "checks itself by", "besides score and prior it assumes", "refuses"),
                promise,
            ),
            "",
        ]
    )


def _rows(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (titles, ("---",) * len(titles), *rows)]


def _refused(method: Method) -> str:
    limits = {
        f"more than {method.most_variables} variables": method.most_variables < float("inf"),
        "discrete data": not method.takes_discrete,
        "interventions": not method.uses_interventions,
        "required and forbidden edges": not method.uses_known_edges,
        "max_parents": not method.uses_max_parents,
    }
    return "; ".join(what for what, is_refused in limits.items() if is_refused) or "–"


def with_table(page: str) -> str:
    """The page with the table of today between its marks."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + "\n" + method_table() + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
