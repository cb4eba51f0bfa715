# The classes that a posterior is handed over to; xarray is not a dependency.
from collections.abc import Mapping
from typing import Any

class Dataset:
    def __init__(
        self, data_vars: Mapping[str, Any], coords: Mapping[str, Any], attrs: Mapping[str, Any]
    ) -> None: ...

class DataTree:
    @classmethod
    def from_dict(cls, d: Mapping[str, Dataset]) -> DataTree: ...
    def to_netcdf(self, filepath: str) -> None: ...
