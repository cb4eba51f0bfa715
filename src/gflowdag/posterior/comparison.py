"""Several methods on one table, side by side: recovery, fidelity to the exact posterior, trust and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]

from gflowdag.errors import DataError
from gflowdag.posterior import metrics
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth, reordered
from gflowdag.runtime.messages import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console


@dataclass(frozen=True)
class Comparison:
    """Posteriors of several methods for the same data.

    Attributes:
        posteriors: by the name of the method; the methods that failed are not among them.
        truth: the true graph, or None.
        reference: the exact posterior against which errors are measured, or None.
        failures: why the other methods gave no answer, by name.
    """

    posteriors: Mapping[str, Posterior]
    truth: Truth | None = None
    reference: Posterior | None = None
    failures: Mapping[str, str] = field(default_factory=dict[str, str])

    def table(self) -> pd.DataFrame:
        """One row for each method, indexed by `method`.

        Columns: `edges` (expected number), `shd` and `auroc` against the truth, `max_error` and `mean_error`
        of the edge probabilities against the exact posterior, `log_evidence`, `ess` (relative), `pareto_k`,
        `r_hat`, `verdict`, `seconds`, `failure` (why a method gave no answer); NaN where a value does not
        exist, and only columns that have one.
        """
        rows = {name: self._row(posterior) for name, posterior in self.posteriors.items()}
        rows |= {name: {"verdict": "failed", "failure": reason} for name, reason in self.failures.items()}
        table: pd.DataFrame = cast(Any, pd.DataFrame).from_dict(rows, orient="index").rename_axis("method")
        return table.dropna(axis="columns", how="all")

    def _row(self, posterior: Posterior) -> dict[str, Any]:
        found = posterior.diagnosis
        row: dict[str, Any] = {"edges": metrics.expected_edges(posterior)}
        if self.truth is not None:
            row["shd"] = metrics.expected_shd(posterior, self.truth)
            row["auroc"] = metrics.auroc(posterior, self.truth)
        if self.reference is not None:
            row |= _errors(posterior, self.reference)
        row["log_evidence"] = np.nan if posterior.log_evidence is None else posterior.log_evidence
        row |= {"ess": found.ess, "pareto_k": found.pareto_k, "r_hat": found.r_hat}
        row |= {"verdict": found.verdict, "seconds": found.seconds}
        return {name: np.nan if value is None else value for name, value in row.items()}

    def print(self, console: Console | None = None) -> None:
        """Print the table, with a line for each method that failed."""
        from rich.console import Console

        from gflowdag.display.console import print_comparison

        console = console or Console()
        print_comparison(self.table(), console, rest="table()")
        for name, reason in self.failures.items():
            console.print(f"{name} failed: {reason}", style="red", markup=False)

    def report(self, path: str | Path, **context: Any) -> Path:
        """Write one HTML report with all methods side by side, and return its path.

        The exact posterior comes first if it is among the methods, else the first of them, with the reference
        beside it. `context` is that of `Posterior.report`.
        """
        if not self.posteriors:
            raise DataError("nothing to report: every method failed")
        shown = dict(self.posteriors)
        if self.reference is not None and not any(post is self.reference for post in shown.values()):
            shown.setdefault("exact (reference)", self.reference)
        given = next((name for name, post in self.posteriors.items() if post is self.reference), None)
        leading = given or next(iter(shown))
        others = {name: post for name, post in shown.items() if name != leading}
        first = replace(self.posteriors[leading], method=leading)  # the name that it was given here
        return first.report(path, others=others, truth=self.truth, failures=self.failures, **context)

    def plot(self) -> Figure:
        """Edge probabilities of every method against the exact ones, and ROC curves against the truth."""
        import matplotlib.pyplot as plt

        from gflowdag.display import plots as plot

        others = {name: post for name, post in self.posteriors.items() if post is not self.reference}
        panels = len(others) if self.reference is not None else 0
        columns = panels + (self.truth is not None)
        if columns == 0:
            raise DataError("nothing to plot: the comparison has neither an exact posterior nor a true graph")
        figure, axes = plt.subplots(
            1, columns, figsize=(4.2 * columns, 4), squeeze=False, layout="constrained"
        )
        for ax, (name, posterior) in zip(axes[0, :panels], others.items(), strict=False):
            plot.against_exact(posterior, self.reference, ax=ax)  # pyright: ignore[reportArgumentType]
            ax.set_title(name)
        if self.truth is not None:
            plot.roc(dict(self.posteriors), self.truth, ax=axes[0, -1])
        return figure

    def __repr__(self) -> str:
        verdicts = {name: post.diagnosis.verdict for name, post in self.posteriors.items()}
        verdicts |= dict.fromkeys(self.failures, "failed")
        listed = ", ".join(f"{name}: {verdict}" for name, verdict in verdicts.items())
        return f"<Comparison of {counted(len(verdicts), 'method')}; {listed}>"

    def _repr_html_(self) -> str:
        from gflowdag.display.notebook import comparison_html

        return comparison_html(self)


def _errors(posterior: Posterior, reference: Posterior) -> dict[str, float]:
    expected = reordered(reference.edge_probabilities(), posterior.names)
    error = np.abs(posterior.edge_probabilities().to_numpy() - expected)
    d = len(error)
    return {"max_error": float(error.max()), "mean_error": float(error.sum() / max(d * (d - 1), 1))}
