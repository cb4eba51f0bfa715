"""What the demo adds to the fit of the Sachs data: how much of the answer hangs on the scale."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from gflowdag.data import Dataset, load_dataset
from gflowdag.data.read_options import Transform
from gflowdag.display.digest import SURE
from gflowdag.estimators.fitting import fit

_SCALES: dict[str, Transform | None] = {"as measured": None, "log": "log", "rank": "rank"}
_LIKELY = 0.5


def print_transforms(console: Console) -> None:
    """Print the likely edges on three scales of measurement, beside the published graph."""
    sachs = load_dataset("sachs")
    assert sachs.truth is not None
    names = list(sachs.frame)
    truth = sachs.truth.loc[names, names].to_numpy(dtype=bool)
    p = np.stack(
        [
            fit(Dataset.from_frame(sachs.frame, transform=how), method="exact", num_samples=1)
            .edge_probabilities()
            .to_numpy()
            for how in _SCALES.values()
        ]
    )
    console.print("\nThe same table on other scales", style="bold")
    for scale, probabilities in zip(_SCALES, p, strict=True):
        sure = probabilities > SURE
        reversed_ = f"; the published graph has {int((sure & truth.T).sum())} of them the other way round"
        console.print(f"{scale}: {int(sure.sum())} arrows above {SURE}{reversed_ if sure.any() else ''}")
    console.print(_table(p, names, truth))
    console.print(
        "An exact answer is exact for one scale only. Choose the scale before you look: gflowdag fit sachs "
        "--transform log, or rank.",
        style="dim",
    )


def _table(p: np.ndarray, names: list[str], truth: np.ndarray) -> Table:
    """Probabilities [scale, source, target] of the arrows that are likely on some scale."""
    best = p.max(axis=0)
    printed = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    printed.add_column("edge", no_wrap=True)
    for title in (*_SCALES, "published"):
        printed.add_column(title, justify="right")
    for flat in np.argsort(-best, axis=None, kind="stable"):
        i, j = divmod(int(flat), len(names))
        if best[i, j] > _LIKELY and best[i, j] >= best[j, i]:
            published = "yes" if truth[i, j] else "reversed" if truth[j, i] else "no"
            printed.add_row(f"{names[i]} → {names[j]}", *(f"{q:.2f}" for q in p[:, i, j]), published)
    return printed
