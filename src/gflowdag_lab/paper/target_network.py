"""The ablation of the target network: rows of the measured case `target-network`, kept beside the page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gflowdag.runtime import read_json
from gflowdag_lab.paper.experiment import Tables

NAME = "target-network"


def tables(assets: Path) -> Tables:
    """All rows of the files `NAME/*.json` as one table; none without files.

    Args:
        assets: folder of the page's tables.
    """
    files = [read_json(path) for path in sorted((assets / NAME).glob("*.json"))]
    rows = [row | {"size": "quick" if file["quick"] else "full"} for file in files for row in file["rows"]]
    return {NAME: pd.DataFrame(rows).assign(method="dag-gflownet-retuned")} if rows else {}
