"""The Python of the documentation runs, block after block, page by page."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if _BLOCK.search(page.read_text("utf-8"))], ids=lambda p: p.stem
)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(_BLOCK.findall(page.read_text("utf-8")), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


def test_the_table_of_methods_is_made_from_their_records() -> None:
    spec = importlib.util.spec_from_file_location("method_table", ROOT / "docs" / "method_table.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text("utf-8")
    assert tool.with_table(page) == page, "run `python docs/method_table.py`"
