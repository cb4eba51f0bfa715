"""How results look in a notebook."""

from __future__ import annotations

from markupsafe import Markup

from gflowdag.digest import digest
from gflowdag.posterior import Posterior

# Readable on white and on black: a notebook's theme is not ours to know.
_COLOURS = {"exact": "#2e8b57", "trusted": "#2e8b57", "not converged": "#d9534f", "unverified": "#b8860b"}
_MAX_ROWS = 10


def posterior_html(posterior: Posterior) -> str:
    """The short answer as HTML: verdict, evidence and the likely edges. Every name is escaped."""
    answer = digest(posterior, rest="edge_table()", max_rows=_MAX_ROWS)
    colour = _COLOURS.get(answer.verdict, _COLOURS["unverified"])
    lines = [answer.explanation, *answer.notes, *([answer.evidence] if answer.evidence else [])]
    html = Markup(
        '<div class="gflowdag-posterior">\n'
        '<p><strong style="color: {colour}">{verdict}</strong> · {size}<br>{lines}</p>\n'
        "<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n"
        "<p>{closing}</p>\n</div>"
    ).format(
        colour=colour,
        verdict=answer.verdict.capitalize(),
        size=answer.size,
        lines=Markup("<br>").join(lines),
        head=_cells("th", answer.titles),
        body=Markup("\n").join(Markup("<tr>{}</tr>").format(_cells("td", row)) for row in answer.rows),
        closing=answer.closing,
    )
    return str(html)  # plain text again: Markup would escape whatever is added to it


def _cells(tag: str, texts: tuple[str, ...]) -> Markup:
    """Table cells, the first to the left and the numbers to the right."""
    sides = ["left"] + ["right"] * (len(texts) - 1)
    cell = Markup(f'<{tag} style="text-align: {{}}">{{}}</{tag}>')
    return Markup("").join(cell.format(side, text) for side, text in zip(sides, texts, strict=True))
