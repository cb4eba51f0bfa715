"""How results look in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from gflowdag.display.digest import digest, value_text
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import counted

if TYPE_CHECKING:
    from gflowdag.posterior.comparison import Comparison

# Readable on white and on black: a notebook's theme is not ours to know.
_COLOURS = {"good": "#2e8b57", "bad": "#d9534f", "unsure": "#b8860b"}
_MAX_ROWS = 10


def posterior_html(posterior: Posterior) -> str:
    """The short answer as HTML: verdict, evidence and the likely edges. Every name is escaped."""
    answer = digest(posterior, rest="edge_table()", language="python", max_rows=_MAX_ROWS)
    line_of_trust = Markup('{} <strong style="color: {}">{}</strong>. {}')
    trust = [
        line_of_trust.format(line.aspect, _COLOURS[line.colour], line.state, line.explanation)
        for line in answer.trust
    ]
    lines = [*trust, *answer.objections, *answer.notes, *([answer.evidence] if answer.evidence else [])]
    html = Markup(
        '<div class="gflowdag-posterior">\n<p>{size}<br>{lines}</p>\n{table}\n<p>{closing}</p>\n</div>'
    ).format(
        size=answer.size,
        lines=Markup("<br>").join(lines),
        table=_table(answer.titles, answer.rows),
        closing=answer.closing,
    )
    return str(html)  # plain text again: Markup would escape whatever is added to it


def comparison_html(comparison: Comparison) -> str:
    """The methods side by side as HTML, and why those that failed did. Every name is escaped."""
    table = comparison.table().drop(columns="failure", errors="ignore")
    titles = [str(column).replace("_", " ") for column in table.columns]
    rows = [
        (str(method), *(value_text(value, str(column)) for column, value in row.items()))
        for method, row in table.iterrows()
    ]
    failure = Markup('<p><strong style="color: {}">{} failed:</strong> {}</p>\n')
    html = Markup('<div class="gflowdag-comparison">\n<p>{size}</p>\n{table}\n{failures}</div>').format(
        size=f"{counted(len(table), 'method')} side by side",
        table=_table(("method", *titles), rows),
        failures=Markup("").join(
            failure.format(_COLOURS["bad"], method, reason) for method, reason in comparison.failures.items()
        ),
    )
    return str(html)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    return Markup("<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>").format(
        _cells("th", titles),
        Markup("\n").join(Markup("<tr>{}</tr>").format(_cells("td", row)) for row in rows),
    )


def _cells(tag: str, texts: Sequence[str]) -> Markup:
    """Table cells, the first to the left and the numbers to the right."""
    sides = ["left"] + ["right"] * (len(texts) - 1)
    cell = Markup(f'<{tag} style="text-align: {{}}">{{}}</{tag}>')
    return Markup("").join(cell.format(side, text) for side, text in zip(sides, texts, strict=True))
