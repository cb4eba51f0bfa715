"""Expected against true edges under each structure prior, from 5 to 50 variables: one picture.

Sparse linear-Gaussian networks with one or two edges a variable in expectation, 100 rows, columns
standardised, BGe. Exact posteriors up to 16 variables, parent-set MCMC beyond, on fewer tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import gflowdag as gd
from gflowdag import simulate
from gflowdag.runtime import atomic_write
from gflowdag_lab.measurements.harness import Options, Row, case

PRIORS = ("uniform", "edge", "erdos-renyi", "fair")
DENSITIES = (1, 2)  # expected edges a variable
EXACT = 16  # variables up to which the posterior is exact
TABLES = {5: 16, 8: 16, 11: 8, 16: 3, 20: 1, 30: 1, 50: 1}  # of each density
BUDGET = 40.0  # seconds for a fit by chains
FILE = Path("docs/laboratory/prior-edges.csv")
PICTURE = Path("docs/images/prior-edges.png")
_COLOURS = dict(zip(PRIORS, ("#b5422c", "#8a6d1f", "#6b5b95", "#1f6f8b"), strict=True))


@case
def prior_edges(options: Options) -> Iterator[Row]:
    """Expected and true edges under four priors, and the picture of them; `sizes` chooses."""
    sizes = [int(size) for size in options.extra.get("sizes", ",".join(map(str, TABLES))).split(",")]
    found = []
    for d in sizes[:1] if options.quick else sizes:
        for density in DENSITIES:
            for number in range(1 if options.quick else TABLES[d]):
                drawn = simulate.linear_gaussian(
                    d, 100, edges_per_node=density, random_state=options.seed + 1000 * density + number
                )
                for prior in PRIORS:
                    chains: dict[str, Any] = {"method": "parent-set-mcmc", "budget": BUDGET}
                    how: dict[str, Any] = {"method": "exact"} if d <= EXACT else chains
                    posterior = gd.fit(drawn.frame, prior=prior, random_state=number, **how)
                    row: Row = {
                        "variables": d,
                        "edges_per_node": density,
                        "table": number,
                        "prior": prior,
                        "true": int(drawn.truth.to_numpy().sum()),
                        "expected": float(posterior.edge_probabilities().to_numpy().sum()),
                        "verdict": posterior.diagnosis.verdict,
                    }
                    found.append(row)
                    yield row
    if not options.quick:
        frame = pd.DataFrame(found)
        if FILE.exists():  # sizes that were measured by another call
            before = pd.read_csv(FILE)
            frame = pd.concat([before.loc[~before["variables"].isin(sizes)], frame])
        frame.sort_values("variables", kind="stable").to_csv(FILE, index=False, float_format="%.4g")
        draw(frame)


def draw(frame: pd.DataFrame) -> None:
    """Expected less true edges, for each variable of the table: mean and standard error."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    frame = frame.assign(excess=(frame["expected"] - frame["true"]) / frame["variables"])
    for ax, density in zip(axes, DENSITIES, strict=True):
        ax.axhline(0, color="#8a949e", lw=0.8)
        for prior in PRIORS:
            chosen = (frame["edges_per_node"] == density) & (frame["prior"] == prior)
            by_size = frame.loc[chosen].groupby("variables")["excess"].agg(["mean", "sem"])
            ax.errorbar(
                by_size.index,
                by_size["mean"],
                by_size["sem"].fillna(0.0),
                fmt="o-",
                ms=3,
                lw=1,
                color=_COLOURS[prior],
                label=prior,
            )
        ax.set(xscale="log", xlabel="variables", title=f"{density} edge{'s' * (density > 1)} a variable")
        ax.set_xticks(sizes := sorted(frame["variables"].unique()), [str(size) for size in sizes])
        ax.minorticks_off()
    axes[0].set_ylabel("expected less true edges,\na variable")
    axes[0].legend(frameon=False)
    with atomic_write(PICTURE, "wb") as stream:
        FigureCanvasAgg(figure).print_png(stream)
