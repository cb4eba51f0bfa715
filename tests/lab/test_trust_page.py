"""The page on trust is what its files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gflowdag_lab.measurements.cases import trust_page

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_on_trust_is_a_function_of_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert trust_page.PAGE.read_text(encoding="utf-8") == trust_page.page()


def test_an_aim_is_reached_only_where_there_are_enough_answers() -> None:
    few = {"trusted": 2994, "false": 0, "share_at_most": 1 - 0.05 ** (1 / 2994)}
    assert "from 2,995 trusted answers on" in trust_page._decided(few)
    assert trust_page._decided(few | {"share_at_most": 1 - 0.05 ** (1 / 2995)}) == "It is reached."
