"""Fill the report's template: verdict, edge table, heat map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from gflowdag import __version__
from gflowdag.files import atomic_write

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.posterior import Posterior


def write_report(
    posterior: Posterior,
    path: str | Path,
    *,
    config: dict[str, Any] | None = None,
    data: Dataset | None = None,
    truth: Any = None,
) -> Path:
    """Write the report of `posterior` to `path` and return the path.

    Args:
        posterior: what to report.
        path: HTML file to write.
        config: the question, as in a run folder's `config.json`.
        data: the table, for a summary of it.
        truth: a true graph to compare with, aligned by name.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gflowdag.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("report.html.j2").render(
        posterior=posterior,
        facts=posterior.diagnostics(),
        edges=posterior.edge_table().to_dict(orient="records"),
        matrix=posterior.edge_probabilities().to_numpy(),
        config=config or {},
        data=data,
        version=__version__,
    )
    path = Path(path)
    with atomic_write(path) as stream:
        stream.write(html)
    return path
