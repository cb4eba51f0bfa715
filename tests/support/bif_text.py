"""Networks as text in the BIF format, to be parsed again."""

from __future__ import annotations

import re

import numpy as np

from gflowdag.data.networks import DiscreteNetwork


def to_bif(network: DiscreteNetwork) -> str:
    """The text of a `.bif` file for `network`; `parse_bif` gives the same network back."""
    lines = ["network unknown {", "}"]
    for name, levels in zip(network.names, network.levels, strict=True):
        values = ", ".join(_written(str(level)) for level in levels)
        lines += [f"variable {_written(name)} {{", f"  type discrete [ {len(levels)} ] {{ {values} }};", "}"]
    for name, parents, table in zip(network.names, network.parents, network.tables, strict=True):
        given = ", ".join(_written(network.names[parent]) for parent in parents)
        lines.append(f"probability ( {_written(name)}{' | ' + given if given else ''} ) {{")
        for index in np.ndindex(table.shape[:-1]):
            levels = ", ".join(
                _written(str(network.levels[parent][code]))
                for parent, code in zip(parents, index, strict=True)
            )
            probabilities = ", ".join(repr(float(value)) for value in table[index])
            lines.append(f"  {f'({levels})' if parents else 'table'} {probabilities};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _written(word: str) -> str:
    return word if re.fullmatch(r"[\w.+<>=-]+", word) else f'"{word}"'
