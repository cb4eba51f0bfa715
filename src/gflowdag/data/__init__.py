"""Tables, what is known about them, and where they come from."""

from __future__ import annotations

from gflowdag.data.catalog import LoadedDataset, list_datasets, load_dataset, load_network
from gflowdag.data.dataset import Dataset
from gflowdag.data.knowledge import Constraints, Knowledge

__all__ = [
    "Constraints",
    "Dataset",
    "Knowledge",
    "LoadedDataset",
    "list_datasets",
    "load_dataset",
    "load_network",
]
