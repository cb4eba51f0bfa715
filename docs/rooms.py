"""Draw the rooms of the package and the imports that the tests allow: `python docs/rooms.py`."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "images" / "rooms.svg"
_TABLE = runpy.run_path(str(DOCS.parent / "tests" / "support" / "rooms.py"))

_WIDTH, _HEIGHT, _BOX_WIDTH, _BOX_HEIGHT = 122, 64, 88, 32


def picture() -> str:
    """The rooms as SVG, in columns: a room may import from those that lead to it."""
    sources = _direct({room: needs - _TABLE["BELOW"] for room, needs in _rooms().items()})
    places = _places(sources)
    width = max(x for x, _ in places.values()) + _BOX_WIDTH + 10
    height = max(y for _, y in places.values()) + _BOX_HEIGHT + 46
    shapes = [_arrow(places[source], places[room]) for room in sources for source in sorted(sources[room])]
    shapes += [_box(name, *place) for name, place in places.items()]
    below = " and ".join(sorted(_TABLE["BELOW"] - {"__version__"}))
    caption = f"{below} are below all of them. Arrows that follow from others are left out."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            'font-family="sans-serif" font-size="13" text-anchor="middle">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#667"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *shapes,
            f'<text x="{width // 2}" y="{height - 14}" font-size="12" fill="#445">{caption}</text>',
            "</svg>\n",
        ]
    )


def _rooms() -> dict[str, set[str]]:
    """The rooms without what every room may use and without the front doors `__init__` and `__main__`."""
    hidden = _TABLE["BELOW"]
    return {name: needs for name, needs in _TABLE["ALLOWED"].items() if name not in hidden and name[0] != "_"}


def _direct(needs: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports that do not follow from others."""
    return {
        room: {one for one in wanted if not any(one in needs[other] for other in wanted)}
        for room, wanted in needs.items()
    }


def _places(sources: dict[str, set[str]]) -> dict[str, tuple[int, int]]:
    """Left upper corners: each room in the last column that still leads to all that import it."""
    ahead: dict[str, int] = {}

    def steps(room: str) -> int:
        if room not in ahead:
            ahead[room] = max((steps(user) + 1 for user in sources if room in sources[user]), default=0)
        return ahead[room]

    columns: dict[int, list[str]] = {}
    for room in sources:
        columns.setdefault(steps(room), []).append(room)
    most = max(map(len, columns.values()))
    places = {}
    for distance, rooms in columns.items():
        for row, room in enumerate(rooms):
            top = (most - len(rooms)) * _HEIGHT // 2 + row * _HEIGHT
            places[room] = (10 + (max(columns) - distance) * _WIDTH, 10 + top)
    return {room: places[room] for room in sources}


def _arrow(source: tuple[int, int], target: tuple[int, int]) -> str:
    x, y = source[0] + _BOX_WIDTH, source[1] + _BOX_HEIGHT // 2
    to_x, to_y = target[0], target[1] + _BOX_HEIGHT // 2
    bend = (_WIDTH - _BOX_WIDTH) // 2  # up or down in the first gap, then straight on
    path = f"M{x} {y} C{x + bend} {y} {x + bend} {to_y} {x + 2 * bend - 7} {to_y} L{to_x} {to_y}"
    return f'<path d="{path}" fill="none" stroke="#667" marker-end="url(#tip)"/>'


def _box(name: str, x: int, y: int) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="5" fill="#eef2f8" '
        f'stroke="#446"/><text x="{x + _BOX_WIDTH // 2}" y="{y + 21}">{name}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
