"""Directions in real tables of both kinds, against what is known of them; the fits are not told it.

Fixed before anything was measured. What is known are the tiers and forbidden edges that come with the tables
(`mixed/*.knowledge.txt`, in Tetrad's format); names in them that are cut short stand for the columns that
begin alike. A pair *counts* if the knowledge forbids exactly one of its directions and the fit connects it
with more than 0.5. It is *right* if the direction that is not forbidden is the more probable one, *sure* if
one direction has 0.9 or more, and *assumed* if the score forces the direction. A score sees directions of a
kind if it is right more often than wrong among those that are not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import gflowdag as gd
from gflowdag_lab.measurements.cases.mixed_scores import SCORES
from gflowdag_lab.measurements.harness import Options, Row, case

TABLES = ("abalone", "auto-mpg", "student-performance")
_SHORT = {"Len": "Length", "Diam": "Diam", "Hei": "Height", "WhW": "Whole", "ShkW": "Shucked"} | {
    "VisW": "Viscera",
    "ShlW": "Shell",
}  # abalone


@case
def mixed_real(options: Options) -> Iterator[Row]:
    """Directions of pairs in the tables of `mixed/` in the data folder; `budget` of each fit in seconds."""
    if options.data is None or not (options.data / "mixed").is_dir():
        return
    budget = float(options.extra.get("budget", 300))
    tables = options.extra.get("tables", ",".join(TABLES)).split(",")
    for name in tables[:1] if options.quick else tables:
        frame = pd.read_csv(options.data / "mixed" / f"{name}.tsv", sep="\t")
        forbidden = known_forbidden(options.data / "mixed" / f"{name}.knowledge.txt", list(frame.columns))
        for score in SCORES:
            posterior = gd.fit(frame, score=score, budget=budget, random_state=options.seed)
            yield {"table": name, "rows": len(frame), "columns": frame.shape[1], "score": score} | _judged(
                posterior, forbidden, frame
            )


def known_forbidden(path: Path, names: list[str]) -> np.ndarray:
    """Which edges a knowledge file in Tetrad's format forbids, bool [d, d]."""
    place = {name: index for index, name in enumerate(names)}
    place |= {short: place[name] for short, name in _SHORT.items() if name in place}
    forbidden, section = np.zeros((len(names),) * 2, bool), ""
    earlier: list[int] = []
    for line in path.read_text().splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] in ("/knowledge", "addtemporal", "forbiddirect", "requiredirect"):
            section = words[0]
        elif section == "addtemporal":
            members = [place[word] for word in words[1:]]
            forbidden[np.ix_(members, earlier)] = True
            earlier += members
        elif section == "forbiddirect":
            forbidden[place[words[0]], place[words[1]]] = True
    return forbidden


def _judged(posterior: gd.Posterior, forbidden: np.ndarray, frame: pd.DataFrame) -> Row:
    names = list(frame.columns)
    p = posterior.edge_probabilities().loc[names, names].to_numpy()
    diagnosis = posterior.diagnosis
    assumed = (
        np.zeros(p.shape, bool) if diagnosis.assumed_directions is None else diagnosis.assumed_directions
    )
    is_discrete = np.array([kind == "discrete" for kind in gd.Dataset.from_frame(frame).kinds])
    row: Row = {"method": posterior.method, "verdict": diagnosis.verdict}
    for kind, mixed in (("between kinds", True), ("within a kind", False)):
        sources, targets = np.nonzero(
            forbidden.T & ~forbidden & (p + p.T > 0.5) & ((is_discrete[:, None] != is_discrete) == mixed)
        )  # allowed: source → target
        taken = ~(assumed | assumed.T)[sources, targets]
        right, wrong = p[sources, targets][taken], p[targets, sources][taken]
        row |= {
            f"{kind}: pairs": len(sources),
            f"{kind}: assumed": int((~taken).sum()),
            f"{kind}: right": int((right > wrong).sum()),
            f"{kind}: wrong": int((right < wrong).sum()),
            f"{kind}: sure and right": int((right >= 0.9).sum()),
            f"{kind}: sure and wrong": int((wrong >= 0.9).sum()),
            f"{kind}: wrong pairs": ", ".join(
                f"{names[j]} → {names[i]} {p[j, i]:.2f}"
                for i, j in zip(sources, targets, strict=True)
                if p[j, i] > p[i, j] and not (assumed | assumed.T)[i, j]
            ),
        }
    return row
