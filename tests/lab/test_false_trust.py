"""The search for false trust: runs that are shared, killed and put together are each done once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gflowdag_lab.measurements.cases import false_trust as search
from gflowdag_lab.measurements.hard_posteriors import FAMILIES, hard_posterior
from gflowdag_lab.measurements.harness import Options


def row(seed: int, family: str, setting: search.Setting) -> search.Fit:
    numbers = {"error": "0.01", "stated": "", "r_hat": "1", "ess": "0.5", "cpu_s": "1", "commit": "x"}
    names = {"variables": "5", "method": setting.method, "options": setting.name, "verdict": "trusted"}
    return {"family": family, "seed": str(seed)} | names | numbers


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str, str, str]]:
    """What was run, in a folder of its own; nothing is computed."""
    done = []

    def note(seed: int, family: str, setting: search.Setting) -> search.Fit:
        done.append((seed, family, setting.method, setting.name))
        return row(seed, family, setting)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(search, "_run", note)
    return done


def measure(**extra: str) -> list[dict]:
    return list(search.false_trust(Options(extra={"problems": "8"} | extra)))


def test_parts_and_interrupted_runs_do_each_run_once(run: list) -> None:
    for part in ("1/3", "2/3"):
        measure(part=part, file=f"parts/{part[0]}.csv")
    measure(take="parts")
    begun = Path("parts/3.csv")
    measure(part="3/3", file=str(begun), methods="mc3")  # ended early
    begun.write_text(begun.read_text() + "parity,7,5,mc")  # and killed in the middle of a row
    measure(take="parts")
    rows = measure()
    wanted = search._tasks(8, {})
    assert len(set(run)) == len(run) == len(wanted)
    assert len(search.stored(search.KEPT)) == len(wanted)
    [default, short] = [row for row in rows if row["of"] == search.ALL]
    needles = [row for row in rows if row["options"] == search.NEEDLE]
    assert default["runs"] + short["runs"] + sum(row["runs"] for row in needles) == len(wanted)


def test_trusted_answers_that_are_wrong_are_counted_and_bounded() -> None:
    right = row(0, "parity", search.SETTINGS[0])
    rows = [right] * 58 + [right | {"error": "0.2"}, right | {"error": "0.2", "verdict": "not converged"}]
    found = search.counts(rows)
    assert (found["runs"], found["trusted"], found["false"]) == (60, 59, 1)
    # 0.95 is the chance of two or more wrong ones in 59 at this share.
    share = found["share_at_most"]
    assert (1 - share) ** 59 + 59 * share * (1 - share) ** 58 == pytest.approx(0.05)
    assert search.upper_bound(0, 59) == pytest.approx(1 - 0.05 ** (1 / 59))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_problems_of_three_to_five_variables(family: str) -> None:
    for d in (3, 4, 5):
        assert hard_posterior(family, 0, d).data.num_variables == d
