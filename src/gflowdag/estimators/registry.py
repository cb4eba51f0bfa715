"""The methods by name: those of this package, and those that other packages bring.

A class with a record in a file of this folder is a method. Names are read from the text of the files, so that
a module stays unimported until its method is needed. Another package registers a method as an entry point of
the group `gflowdag.methods`, whose name is that of the method and which points at its class.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from gflowdag.estimators.base import StructureLearner

GROUP = "gflowdag.methods"

_CLASS_OR_RECORD = re.compile(r'^class (\w+)|^    record = Method\(\s*name="(.+?)"(?:,\s*rank=(\d+))?', re.M)
UNRANKED = 1000  # methods without a place of their own come last, by name


def own_methods() -> dict[str, tuple[str, str]]:
    """Method name -> (module, class), by rank, of the methods of this package."""
    found: list[tuple[int, str, str, str]] = []
    for folder in sys.modules["gflowdag.estimators"].__path__:
        for path in Path(folder).glob("*.py"):
            kind = ""
            for match in _CLASS_OR_RECORD.finditer(path.read_text(encoding="utf-8")):
                if match[1]:
                    kind = match[1]
                else:
                    found.append((int(match[3] or UNRANKED), match[2], path.stem, kind))
    return {name: (module, kind) for _, name, module, kind in sorted(found)}


REGISTRY = own_methods()


def class_of_name(name: str) -> type[StructureLearner] | None:
    """The estimator of this package by the name of its class."""
    method = next((method for method, (_, kind) in REGISTRY.items() if kind == name), None)
    return None if method is None else estimator_class(method)


def method_names() -> list[str]:
    """All methods that are installed."""
    return [*REGISTRY, *sorted(_brought())]


def estimator_class(method: str) -> type[StructureLearner]:
    """The estimator of a method by its command-line name, e.g. `"order-gflownet"`."""
    if method in REGISTRY:
        module, name = REGISTRY[method]
        return getattr(importlib.import_module(f"gflowdag.estimators.{module}"), name)
    brought = _brought()
    if method in brought:
        return _loaded(brought[method])

    from gflowdag.errors import GFlowDAGError
    from gflowdag.runtime.messages import instead, nearest

    spelt = str(method).lower().replace("_", "-")
    by_class = {name.lower(): known for known, (_, name) in REGISTRY.items()}
    meant = nearest(spelt, [*REGISTRY, *brought, *by_class]) or spelt
    raise GFlowDAGError(
        f"unknown method {method!r}: {instead(by_class.get(meant, meant), [*REGISTRY, *brought])}"
    )


def estimator_classes() -> list[type[StructureLearner]]:
    """The estimators that do work of their own; what another package brings broken is told and left out."""
    import warnings

    from gflowdag.errors import GFlowDAGError

    found = []
    for name in method_names():
        try:
            found.append(estimator_class(name))
        except GFlowDAGError as error:
            warnings.warn(str(error), stacklevel=2)
    return [kind for kind in found if not kind.record.delegates]


def _brought() -> dict[str, EntryPoint]:
    """Entry points of other packages; none takes the place of a method of this one."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in REGISTRY}


def _loaded(entry: EntryPoint) -> type[StructureLearner]:
    """The estimator of another package, or an error that names the package."""
    from gflowdag.errors import GFlowDAGError
    from gflowdag.estimators.base import StructureLearner

    package = entry.dist.name if entry.dist is not None else "another package"
    told = f"the method {entry.name!r} of {package} ({entry.value})"
    try:
        found = entry.load()
    except Exception as error:  # whatever another package does when it is imported
        raise GFlowDAGError(f"{told} cannot be loaded: {type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, StructureLearner)):
        raise GFlowDAGError(f"{told} is not a subclass of gflowdag.estimators.base.StructureLearner")
    if getattr(found, "method", None) != entry.name:
        raise GFlowDAGError(f"{told} has another name in its record: {getattr(found, 'method', None)!r}")
    return found
