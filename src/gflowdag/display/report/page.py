"""Put the report together: one HTML file with its style, its scripts and its numbers inside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup, escape

from gflowdag import __version__
from gflowdag.display.digest import is_vouched_for
from gflowdag.display.orientation import find_orienting_evidence
from gflowdag.display.report import answers, content, summary, words
from gflowdag.display.trust import finding_sentences, trust_lines
from gflowdag.posterior.truth import Truth, named
from gflowdag.runtime.files import atomic_write
from gflowdag.runtime.messages import counted, printable, told_together
from gflowdag.runtime.strict_json import dumps

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.posterior.posterior import Posterior

_OPTION = re.compile(r"(--[a-z][a-z-]*)")
_SCRIPTS = (
    "dom.js",
    "charts.js",
    "viewport.js",
    "drawing.js",
    "edges.js",
    "graph.js",
    "explore.js",
    "detail.js",
    "pairs.js",
    "heat.js",
    "panels.js",
    "downloads.js",
)


def write_report(
    posterior: Posterior,
    path: str | Path,
    *,
    config: Mapping[str, Any] | None = None,
    data: Dataset | None = None,
    truth: Truth | None = None,
    others: Mapping[str, Posterior] | None = None,
    failures: Mapping[str, str] | None = None,
    history: Sequence[Mapping[str, Any]] | None = None,
    manifest: Mapping[str, Any] | None = None,
) -> Path:
    """Write the report of `posterior` to `path` and return the path.

    The file needs nothing else: no network, no other files. The same arguments give the same bytes.

    Args:
        posterior: what to report.
        path: HTML file to write.
        config: the question, as in a run folder's `config.json`.
        data: the table, for a summary of it.
        truth: a true graph to compare with, aligned by name.
        others: posteriors of other methods for the same variables, by name, to show side by side.
        failures: why further methods gave no answer, by name.
        history: rows of a training run (`metrics.jsonl`): `step` and any values.
        manifest: versions and device of the run, as in `manifest.json`; those of now by default.
    """
    html = render(
        posterior,
        config=config or {},
        data=data,
        truth=truth,
        others=others or {},
        failures=failures or {},
        history=history,
        manifest=manifest,
    )
    path = Path(path)
    with atomic_write(path) as stream:
        stream.write(html)
    return path


def render(
    posterior: Posterior,
    *,
    config: Mapping[str, Any],
    data: Dataset | None,
    truth: Truth | None,
    others: Mapping[str, Posterior],
    failures: Mapping[str, str],
    history: Sequence[Mapping[str, Any]] | None,
    manifest: Mapping[str, Any] | None,
) -> str:
    """The report as HTML text; arguments as for `write_report`."""
    if truth is not None:  # methods may order their variables otherwise
        truth = named(truth, posterior.names)
    orienting = find_orienting_evidence(posterior, config, data)
    drawn = {
        "method": posterior.method,
        "graph": content.graph_content(posterior),
        "matrices": content.matrices_content(posterior, others),
        "assumed": content.assumed_content(posterior),
        "classes": content.classes_content(posterior, orienting),
        "distributions": content.distributions_content(posterior),
        "traces": content.traces_content(posterior, history),
        "truth": content.truth_content({posterior.method: posterior, **others}, truth),
        "methods": content.methods_content(others),
    }
    found_effects = answers.effects(posterior)
    return _template().render(
        posterior=posterior,
        diagnostics=posterior.diagnosis,
        verdict=words.verdict(posterior),
        trust=trust_lines(posterior),
        objections=finding_sentences(posterior, "command line" if "command" in config else "python"),
        question=words.question(posterior, config, data),
        assumptions=words.assumptions(orienting, data),
        is_vouched_for=is_vouched_for(posterior),
        findings=words.findings(posterior),
        effects=found_effects.rows,
        effects_left_out=found_effects.left_out,
        experiments=answers.experiments(posterior),
        orienting=str(orienting),
        knows=orienting.knowledge,
        values=words.values(posterior),
        data=data,
        num_intervened=0 if data is None else summary.num_intervened(data),
        kinds="" if data is None else summary.kinds(data),
        columns=[] if data is None else summary.column_rows(data),
        knowledge=[] if data is None else summary.knowledge_rows(data),
        recovery=None if truth is None else summary.recovery(posterior, truth),
        methods=summary.method_rows(posterior, others, truth) if others or failures else None,
        failures=failures,
        provenance=summary.provenance_rows(posterior, config, data, manifest),
        citation=summary.CITATION,
        drawn=drawn,
        content=_embedded_json(drawn),
        style=Markup(_asset("style.css")),
        script=Markup("\n".join(_asset(name) for name in _SCRIPTS)),
        version=__version__,
    )


@cache
def _template() -> jinja2.Template:
    """The page, compiled at the first report of a process."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gflowdag.display.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters["counted"] = counted
    environment.filters["together"] = _together
    environment.filters["share"] = _share
    environment.filters["unbroken"] = _unbroken
    return environment.get_template("report.html.j2")


def _visible(value: Any) -> Any:
    """Text without characters that would turn the line around them; what is HTML already stays as it is."""
    return printable(value) if type(value) is str else value


def _together(values: Sequence[float]) -> list[str]:
    return [text.replace("-", "−") for text in told_together(values, 3)]


def _share(p: float) -> str:
    return "<0.001" if 0 < p < 0.0005 else ">0.999" if 0.9995 < p < 1 else f"{p:.3f}"


def _unbroken(text: str) -> Markup:
    """The text with options of the command line that no line ends in the middle of."""
    words = [_visible(part) for part in _OPTION.split(text)]
    marked = [
        escape(word) if k % 2 == 0 else Markup('<span class="option">{}</span>').format(word)
        for k, word in enumerate(words)
    ]
    return Markup("").join(marked)


def _embedded_json(value: Any) -> Markup:
    """JSON that is safe inside a script element: no name can close it or open a comment."""
    text = printable(dumps(value, compact=True))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _asset(name: str) -> str:
    return resources.files("gflowdag.display.report").joinpath("templates", name).read_text(encoding="utf-8")
