"""Write the table of methods in how-to/choosing-a-method.md: `python docs/method_table.py`."""

from __future__ import annotations

from pathlib import Path

from gflowdag.estimators.method import Method
from gflowdag.estimators.registry import estimator_classes

PAGE = Path(__file__).parent / "how-to" / "choosing-a-method.md"
BEGIN, END = "<!-- made by docs/method_table.py -->\n", "<!-- end -->\n"


def method_table() -> str:
    """One row for each method of this package."""
    lines = [
        "| method | what it is | answers | checks itself by | beside score and prior it assumes | refuses "
        "| use it when |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in estimator_classes():
        if kind.__module__.startswith("gflowdag."):
            method = kind.record
            cells = [
                f"`{method.name}`, `{kind.__name__}`",
                method.label + (f" (extra `[{method.extra}]`)" if method.extra else ""),
                method.gives,
                method.checked_by or "nothing",
                method.assumes or "–",
                _refused(method),
                method.use_when,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


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
