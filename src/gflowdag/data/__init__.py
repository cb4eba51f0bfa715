"""Tables, what is known about them, and where they come from."""

from __future__ import annotations

from gflowdag.data.catalog import LoadedDataset, list_datasets, load_dataset, load_network
from gflowdag.data.dataset import Dataset
from gflowdag.data.knowledge import Constraints, Knowledge
from gflowdag.data.read_options import ReadOptions

__all__ = [
    "Constraints",
    "Dataset",
    "Knowledge",
    "LoadedDataset",
    "ReadOptions",
    "list_datasets",
    "load_dataset",
    "load_network",
]
