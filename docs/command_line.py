"""Render the commands and their options as Markdown; `conf.py` writes the page at every build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from gflowdag.cli.app import app

PAGE = Path(__file__).parent / "reference" / "command-line.md"
_HEAD = """# The command line

<!-- Made by docs/command_line.py from the program itself. -->

`gflowdag COMMAND --help` prints the same. Exit codes: 0 done; 2 refused, with one line that says
what to do; 1 something failed (memory, a method of a comparison, a benchmark that became slower); 130 Ctrl-C;
143 SIGTERM.
"""


def page() -> str:
    """One section for each command, with a table of its arguments and options."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="gflowdag")
    sections = [_section(name, command, context) for name, command in group.commands.items()]
    return "\n".join([_HEAD, *sections])


def _section(name: str, command: Any, parent: typer.Context) -> str:
    context = typer.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [f"| `{_cell(name)}` | {_cell(words)} |" for name, words in records]
    table = ["| | |", "|---|---|", *rows] if rows else []
    return "\n".join([f"## {name}", "", f"    {usage}", "", (command.help or "").strip(), "", *table, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
