"""Public names of a room, imported when they are first asked for (SPEC 1 of Scientific Python).

They stand once, in the room's `__init__.pyi`, where type checkers and editors find them too.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of the room `package`.

    Its stub has a line `from gflowdag.room.module import name as name` for each name; where `module` is
    left out, the name is that of a module.
    """
    room = sys.modules[package]
    stub = Path(str(room.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    module_of = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module_of[name] == package:
            value = importlib.import_module(f"{package}.{name}")
        else:
            value = getattr(importlib.import_module(module_of[name]), name)
        setattr(room, name, value)
        return value

    names = sorted(module_of)
    return load, lambda: names, names
