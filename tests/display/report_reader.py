"""What a report says, read back from its file."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np


class Page(HTMLParser):
    """Elements, text, the embedded JSON and everything that could load something."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.json = ""
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.ids.append(attributes.get("id") or "")
        self.sources += [attributes[name] or "" for name in ("src", "href") if name in attributes]
        self._inside = "json" if attributes.get("id") == "content" else tag

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "json":
            self.json += data
        elif self._inside not in ("script", "style"):
            self.text += data

    def matrix(self, title: str) -> Any:
        """One of the matrices of the page [d, d], or None where it is not known."""
        text = json.loads(self.json)["matrices"][title]
        return None if text is None else _unpacked(text)


def _unpacked(text: str) -> np.ndarray:
    """The matrix [d, d] that the page holds as text."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).reshape(4, -1)
    values = np.ascontiguousarray(planes.T).view("<f4").reshape(-1)
    size = int(np.sqrt(len(values)))
    return values.reshape(size, size)


def read(path) -> Page:
    return Page(path.read_text(encoding="utf-8"))
