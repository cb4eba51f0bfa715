"""The Python of the documentation runs, block after block, page by page; what is generated is up to date."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gflowdag as gd

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
KINDS = {"tutorials", "how-to", "reference", "explanation", "laboratory"}
PAGES = [ROOT / "README.md", *sorted(page for kind in KINDS for page in (DOCS / kind).glob("*.md"))]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:\s]+)\)")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix()


def _tool(name: str) -> dict[str, Any]:
    return runpy.run_path(str(DOCS / f"{name}.py"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if _BLOCK.search(page.read_text("utf-8"))], ids=_name
)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(_BLOCK.findall(page.read_text("utf-8")), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec", dont_inherit=True), names)


def test_every_page_is_of_one_kind() -> None:
    found = {page.relative_to(DOCS) for page in DOCS.rglob("*.md") if "_build" not in page.parts}
    assert {page.parent.as_posix() for page in found} - {"."} == KINDS
    assert {page.name for page in found if page.parent == Path()} == {"index.md"}


def test_the_reference_has_every_public_name() -> None:
    page = (DOCS / "reference" / "python.md").read_text("utf-8")
    modules = {"metrics", "plot", "simulate"}  # sections of their own
    missing = [name for name in dir(gd) if name not in modules and f"gflowdag.{name}\n" not in page]
    assert missing == ["__version__"]
    assert all(f"## gd.{name}\n" in page for name in modules)


def test_the_reference_has_every_member_of_a_posterior_file(tmp_path: Path) -> None:
    page = (DOCS / "reference" / "files.md").read_text("utf-8")
    numbers = np.random.default_rng(0).normal(size=(40, 3))
    for name, table in (("continuous", numbers), ("discrete", (numbers > 0).astype(int))):
        gd.fit(table, num_samples=20).save(tmp_path / f"{name}.npz")
        with np.load(tmp_path / f"{name}.npz") as members:
            found = [*members.files, *json.loads(str(members["meta"]))]
        assert [member for member in found if f"`{member}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_that_a_page_links_to_are_there(page: Path) -> None:
    missing = [link for link in _LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert not missing


def test_the_table_of_methods_is_made_from_their_records() -> None:
    tool = _tool("method_table")
    page = tool["PAGE"].read_text("utf-8")
    assert tool["with_table"](page) == page, "run `python docs/method_table.py`"


def test_the_picture_of_the_rooms_is_what_the_architecture_allows() -> None:
    tool = _tool("rooms")
    assert tool["PICTURE"].read_text("utf-8") == tool["picture"](), "run `python docs/rooms.py`"


def test_the_page_of_the_command_line_has_every_command_and_option() -> None:
    page = _tool("command_line")["page"]()
    assert all(f"\n## {name}\n" in page for name in ("fit", "check", "compare", "reproduce", "bench"))
    assert "| `--method NAME` |" in page
