"""Real tables that packages on PyPI carry, by package and name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pandas as pd

PACKAGES = ("sklearn", "statsmodels", "lifelines", "vega_datasets", "palmerpenguins", "ISLP", "pydataset")
_SKLEARN = ("iris", "wine", "breast_cancer", "diabetes", "linnerud", "digits")


def table_names(package: str) -> Sequence[str]:
    """The tables that a package carries in its files, none of which has to be downloaded."""
    if package == "sklearn":
        return _SKLEARN
    if package == "statsmodels":
        return [name for name, part in vars(_module(package)).items() if hasattr(part, "load_pandas")]
    if package == "vega_datasets":
        names = importlib.import_module(package).local_data.list_datasets()
        return [name.replace("-", "_") for name in names]
    if package == "ISLP":
        return sorted(file.stem for file in _islp_folder().glob("*.csv"))
    if package == "pydataset":
        return list(importlib.import_module(package).data()["dataset_id"])
    return [name.removeprefix("load_") for name in vars(_module(package)) if name.startswith("load_")]


def package_table(package: str, name: str) -> pd.DataFrame:
    """One table, with names of columns that are texts and rows that are numbered.

    Raises:
        ImportError: the package is not installed.
    """
    if package == "sklearn":
        frame = getattr(_module(package), f"load_{name}")(as_frame=True).frame
    elif package == "statsmodels":
        frame = getattr(_module(package), name).load_pandas().data
    elif package == "vega_datasets":
        frame = getattr(importlib.import_module(package).data, name)()
    elif package == "ISLP":
        frame = pd.read_csv(_islp_folder() / f"{name}.csv")
    elif package == "pydataset":
        frame = importlib.import_module(package).data(name)
    else:
        frame = getattr(_module(package), f"load_{name}")()
    return frame.set_axis([str(column) for column in frame.columns], axis=1).reset_index(drop=True)


def _module(package: str) -> ModuleType:
    """The module in which a package keeps its tables."""
    inside = {"statsmodels": "statsmodels.api", "palmerpenguins": "palmerpenguins"}
    module = importlib.import_module(inside.get(package, f"{package}.datasets"))
    return module.datasets if package == "statsmodels" else module


def _islp_folder() -> Path:
    return Path(str(importlib.import_module("ISLP").__file__)).parent / "data"
