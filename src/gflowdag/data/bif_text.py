"""Discrete networks written in the Bayesian Interchange Format; `bif` reads them."""

from __future__ import annotations

import re
from itertools import product

import numpy as np

from gflowdag.data.networks import DiscreteNetwork
from gflowdag.errors import DataError

_PLAIN = re.compile(r"[^\s{}()\[\],;|\"/]+")


def bif_text(network: DiscreteNetwork) -> str:
    """The text of a `.bif` file; names and levels that are no single word stand in quotes."""
    names = [_word(name) for name in network.names]
    levels = [[_word(str(level)) for level in chosen] for chosen in network.levels]
    lines = ["network unknown {", "}"]
    for name, chosen in zip(names, levels, strict=True):
        lines += [f"variable {name} {{", f"  type discrete [ {len(chosen)} ] {{ {', '.join(chosen)} }};", "}"]
    for node, name in enumerate(names):
        parents, table = network.parents[node], network.tables[node]
        if not parents:
            lines += [f"probability ( {name} ) {{", f"  table {_numbers(table)};", "}"]
            continue
        lines.append(f"probability ( {name} | {', '.join(names[parent] for parent in parents)} ) {{")
        for state in product(*(range(len(levels[parent])) for parent in parents)):
            given = ", ".join(levels[parent][k] for parent, k in zip(parents, state, strict=True))
            lines.append(f"  ({given}) {_numbers(table[state])};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _numbers(row: np.ndarray) -> str:
    return ", ".join(repr(float(value)) for value in row)


def _word(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    if '"' in text or "\n" in text or "\r" in text:
        raise DataError(f"BIF has no way to write {text!r}: rename it.")
    return f'"{text}"'
