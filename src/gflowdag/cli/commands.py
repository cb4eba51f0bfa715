"""What the commands do, apart from parsing and printing: thin compositions of the library's own surface."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from gflowdag.cli.question import question, stored_knowledge, stored_truth
from gflowdag.data import Dataset, Knowledge, list_datasets, load_dataset
from gflowdag.data.contents import STANDARD_INPUT
from gflowdag.data.formats import read_table as read_file
from gflowdag.data.read_options import ReadKeywords, ReadOptions, read_options
from gflowdag.data.refusals import checked_dataset
from gflowdag.errors import GFlowDAGError, ModelWarning
from gflowdag.posterior import runs
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import align_dag, read_edges
from gflowdag.runtime.files import PARTIAL, move_to_free
from gflowdag.runtime.messages import nearest, unknown_name

if TYPE_CHECKING:
    from gflowdag.estimators import PaperRecipe
    from gflowdag.estimators.base import StructureLearner
    from gflowdag.posterior.comparison import Comparison
    from gflowdag.score import UnboundScore

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
_HYPER_PARAMETERS = ("alpha_mu", "alpha_w", "ess")  # of scores, as far as they are options
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def load_table(
    source: str,
    options: ReadOptions | None = None,
    *,
    knowledge: Knowledge | None = None,
    exogenous: Sequence[str] | None = None,
    **changes: Unpack[ReadKeywords],
) -> Dataset:
    """A CSV file (`-`: standard input) or the name of a built-in data set, as a `Dataset`.

    All of its problems are in one error.

    Arguments as for `Dataset.from_frame`. Columns are given by name, or several names separated by commas.
    """
    frame, options = read_table(source, read_options(options, changes))
    return checked_dataset(frame, options, knowledge=with_exogenous(knowledge, exogenous, frame))


def decided_table(
    source: str,
    options: ReadOptions | None = None,
    *,
    knowledge: Knowledge | None = None,
    exogenous: Sequence[str] | None = None,
) -> Dataset:
    """The same, read as `check` proposes; the notes say what was decided."""
    from gflowdag.cli.proposal import proposed

    frame, options = read_table(source, options)
    knowledge = with_exogenous(knowledge, exogenous, frame)
    proposal = proposed(frame, options, knowledge=knowledge)
    if proposal is None:  # nothing helps: the error says why
        return checked_dataset(frame, options, knowledge=knowledge)
    return replace(proposal.data, notes=(*proposal.decided, *proposal.data.notes))


def with_exogenous(
    knowledge: Knowledge | None, exogenous: Sequence[str] | None, frame: pd.DataFrame
) -> Knowledge | None:
    """The knowledge with the variables that `--exogenous` names."""
    if not exogenous:
        return knowledge
    known = knowledge or Knowledge()
    return replace(known, exogenous=(*known.exogenous, *_column_names(exogenous, frame)))


def read_table(source: str, options: ReadOptions | None = None) -> tuple[pd.DataFrame, ReadOptions]:
    """The cells behind `load_table`, and the options with lists of names taken apart."""
    options = options or ReadOptions()
    targets = options.interventions
    if _is_named(source):
        if targets is not None:
            raise GFlowDAGError(f"{source} has interventions of its own: leave out --interventions")
        loaded = load_dataset(source)
        frame, targets = loaded.frame, loaded.interventions
    else:
        if not Path(source).exists() and (meant := nearest(source, list_datasets()["name"])):
            raise GFlowDAGError(f"there is no file {source!r}; did you mean the data set {meant}?")
        frame = read_file(source, sheet=options.sheet)
    if options.intervention_base is not None and targets is None:
        raise GFlowDAGError("--intervention-base needs --interventions COLUMN, whose targets it numbers")
    options = replace(
        options,
        interventions=targets,
        missing_values=_spellings(options.spellings, frame),
        drop=_column_names(options.drop, frame),
        continuous=_column_names(options.continuous, frame),
        discrete=_column_names(options.discrete, frame),
    )
    if len(set(options.drop)) == frame.shape[1] > 0:
        raise GFlowDAGError("--drop names every column of the table: keep the variables to learn about")
    return frame, options


def load_knowledge(path: Path | None, max_parents: int | None = None) -> Knowledge | None:
    """What a knowledge file and the option `--max-parents` say; None without both."""
    if path is None:
        return None if max_parents is None else Knowledge(max_parents=max_parents)
    knowledge = Knowledge.from_toml(path)
    if max_parents is None:
        return knowledge
    if knowledge.max_parents not in (None, max_parents):
        raise GFlowDAGError(
            f"max_parents is {knowledge.max_parents} in {path} and {max_parents} in --max-parents: "
            "give it in one place"
        )
    return replace(knowledge, max_parents=max_parents)


def load_recipe(path: Path | None) -> PaperRecipe | None:
    """What a recipe file says; None without one."""
    if path is None:
        return None
    from gflowdag.estimators import PaperRecipe  # here: it takes JAX, a second of every other fit

    return PaperRecipe.from_toml(path)


def _column_names(given: Sequence[str] | None, frame: pd.DataFrame) -> list[str]:
    """The columns that an option names; a name with a comma in it comes before a list of names."""
    known = list(frame.columns)
    entries = [[entry] if entry in known else entry.split(",") for entry in given or ()]
    names = [name.strip() for entry in entries for name in entry]
    for name in names:
        if name not in known:
            raise GFlowDAGError(unknown_name(name, known))
    return names


def _spellings(given: Sequence[str], frame: pd.DataFrame) -> list[str]:
    """The entries of `--missing-values`, those in one word with commas taken apart."""
    known = [str(name).strip() for name in frame.columns]
    found: list[str] = []
    for entry in given:
        named = entry.rpartition("=")[0]
        for part in [entry] if "," in named and named in known else entry.split(","):
            column, equals, _ = part.rpartition("=")
            if equals and column and column not in known:
                raise GFlowDAGError(f"--missing-values: {unknown_name(column, known)}")
            found.append(part)
    return found


def load_truth(source: str, truth: Path | None, names: Sequence[str]) -> pd.DataFrame | None:
    """The true graph: the file given, else the one that a built-in data set comes with.

    It is checked against the variables `names` here: an error is better found before the work than after it.
    """
    if truth is not None:
        edges = read_edges(truth)
    else:
        edges = load_dataset(source).truth if _is_named(source) else None
    if edges is None:
        return None
    return pd.DataFrame(align_dag(edges, names), index=list(names), columns=list(names))


def _table_name(source: str) -> str:
    """What runs on a table are called after."""
    return "table" if Path(source) == STANDARD_INPUT else Path(source).stem


def _is_named(source: str) -> bool:
    """Whether `source` names a built-in data set; a file of that name comes first."""
    return source in set(list_datasets()["name"]) and not Path(source).exists()


def checked_scores_file(score: str, scores: Path | None) -> Path | None:
    """The file of local scores, refused where a score is named too."""
    if scores is None:
        return None
    if score != "auto":
        raise GFlowDAGError(f"--scores {scores} already gives the scores: leave out --score {score}")
    if scores.suffix not in (".jkl", ".jaa"):
        raise GFlowDAGError(f"{scores} must end in .jkl: local scores in the format of GOBNILP")
    return scores


def write_scores(
    data: str, to: Path, score: str, reading: ReadOptions | None, knowledge: Path | None, parents: int
) -> int:
    """Write the local scores of a table; returns their number."""
    from gflowdag.score import make_score, write_local_scores

    frame, options = read_table(data, reading)
    coded = Dataset.from_frame(frame, options, knowledge=load_knowledge(knowledge, None))
    return write_local_scores(make_score(coded, score=score), to, max_parents=parents)


def configured_score(config: dict[str, Any], data: Dataset) -> str | UnboundScore:
    """The score that a configuration names, with the hyper-parameters that it sets."""
    from gflowdag.score import ScoreFile
    from gflowdag.score.registry import SCORES, fitting_score, named_score, parameters_of

    hyper = {name: config[name] for name in _HYPER_PARAMETERS if config.get(name) is not None}
    if (file := config.get("scores_file")) is not None:
        if hyper:
            raise GFlowDAGError(
                f"--{next(iter(hyper)).replace('_', '-')} has no meaning for scores from a file: leave it out"
            )
        return ScoreFile(file)
    if not hyper:
        return config["score"]
    of_score = {
        name: [known for known in _HYPER_PARAMETERS if known in parameters_of(name)] for name in SCORES
    }
    score = fitting_score(data) if config["score"] == "auto" else config["score"]
    if foreign := [name for name in hyper if name not in of_score[score]]:
        option = f"--{foreign[0].replace('_', '-')}"
        raise GFlowDAGError(
            f"{option} is not an option of the score {score}, which has "
            f"{', '.join('--' + name.replace('_', '-') for name in of_score[score])}."
        )
    return named_score(score, **hyper)


def run_fit(
    config: dict[str, Any], *, out: Path | None, resume: bool, verbose: bool
) -> tuple[Posterior, Path]:
    """Fit, and write the run folder. Returns the posterior and the folder.

    What `knowledge_file`, `truth_file`, `recipe_file` and `scores_file` hold becomes a part of the stored
    question.

    Where several processes work together, process 0 writes.
    """
    from gflowdag.estimators import estimator_class
    from gflowdag.estimators.remedies import with_remedies_tried
    from gflowdag.runtime.processes import is_leader, leader_first

    if config.get("deterministic"):
        _make_deterministic()
    name = f"{_table_name(config['data'])}-{config['method']}"
    if out is None and resume:
        out = runs.last_run("runs", name)
    estimator = estimator_class(config["method"])
    options = _method_options(estimator, config)
    config = {**config, "prior": estimator(prior=config["prior"], **options).structure_prior}
    recipe = options["recipe"].to_dict() if "recipe" in options else None
    knowledge = load_knowledge(config.get("knowledge_file"), config.get("max_parents"))
    read = decided_table if config.get("yes") else load_table
    data = read(
        config["data"],
        ReadOptions.from_dict(config),
        knowledge=knowledge,
        exogenous=config.get("exogenous"),
    )
    score = configured_score(config, data)
    config |= data.options.to_dict()  # as it was decided, with lists of names taken apart
    true_graph = load_truth(config["data"], config.get("truth_file"), data.names)
    asked = question({**config, "recipe": recipe}, data, true_graph, score)
    with leader_first():
        run = None if not is_leader() else _started_run(out, name, asked, resume, estimator)
    # The others write nothing, whatever they think the folder is; they read the checkpoint in it.
    folder = run.folder if run is not None else out or Path("runs") / name
    if "folder" in estimator.parameter_names():
        options |= {"folder": str(folder), "resume": resume}
    with run or nullcontext():
        learner = estimator(
            score=score,
            prior=config["prior"],
            num_samples=config["samples"],
            random_state=config["seed"],
            verbose=verbose,
            **options,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # the notes that are printed say the same
            posterior = learner.fit(data).posterior_
        if run is None:
            return posterior, folder
        # Scores from a file stay what they are, whatever a remedy does to the table.
        if config["budget"] is None and config.get("scores_file") is None:
            posterior = with_remedies_tried(posterior, data, score=score, prior=config["prior"])
        run.finish(posterior, seed=config["seed"], data_sha256=data.sha256)
        facts = {"history": runs.read_metrics(folder), "manifest": runs.read_manifest(folder)}
        posterior.report(folder / runs.REPORT, config=asked, data=data, truth=true_graph, **facts)
    return posterior, folder


def _started_run(
    out: Path | None, name: str, asked: dict[str, Any], resume: bool, estimator: type[StructureLearner]
) -> runs.Run:
    """The run in the folder that the user named, or in a new one of that name."""
    if out is None:
        return runs.Run.start_new("runs", name, asked)
    may_differ = ("budget",) if estimator.record.continues else ()
    return runs.Run.start(out, asked, resume=resume, may_differ=may_differ)


def join_processes(coordinator: str | None, processes: int | None, process_id: int | None) -> bool:
    """Meet the other processes of a run; whether this one leads."""
    from gflowdag.runtime.processes import connect, is_leader

    if coordinator is None:
        raise GFlowDAGError(
            "--processes and --process-id need --coordinator, the address at which the processes meet"
        )
    connect(coordinator, processes, process_id)
    return is_leader()


def _make_deterministic() -> None:
    """Have XLA choose GPU kernels that always add in the same order; to be called before it starts."""
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_deterministic_ops=true"


def _method_options(estimator: type[StructureLearner], config: dict[str, Any]) -> dict[str, Any]:
    """The command line's training options, for the methods that have them."""
    wanted = {
        "budget": None if config["budget"] is None else parse_duration(config["budget"]),
        "iterations": config["iterations"],
        "completions": config.get("completions"),
        "preset": config["preset"],
        "recipe": load_recipe(config.get("recipe_file")),
        "devices": _as_number(config.get("devices")),
    }
    known = estimator.parameter_names()
    options = {name: value for name, value in wanted.items() if value is not None}
    for name in options:
        if name not in known:
            raise GFlowDAGError(f"--{name} does not apply to the method {config['method']}")
    return options


def _as_number(devices: str | None) -> int | str | None:
    return int(devices) if devices is not None and devices.isdecimal() else devices


def parse_duration(text: str) -> float:
    """Seconds of `"90s"`, `"10m"`, `"1.5h"` or a plain number of seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or float(match[1]) == 0:
        raise GFlowDAGError(f"cannot read the duration {text!r}: write 90s, 10m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def rewrite_report(run: Path, to: Path | None) -> Path:
    """Write the report of a run folder (or a posterior file) anew."""
    posterior = Posterior.load(run)
    folder = run if run.is_dir() else run.parent
    facts: dict[str, Any] = {"history": runs.read_metrics(folder)}
    if (folder / runs.CONFIG).exists():
        facts |= {"config": runs.read_config(folder), "manifest": runs.read_manifest(folder)}
        facts |= _table_of(facts["config"])
        if isinstance(timings := facts["manifest"].get("timings"), dict):
            posterior = posterior.with_diagnostics(**timings)
    return posterior.report(to or folder / runs.REPORT, **facts)


def _table_of(config: dict[str, Any]) -> dict[str, Any]:
    """The table behind a run, where it can still be found and is the same, and the stored true graph."""
    try:
        file = Path(config["data"])
        if file == STANDARD_INPUT or (file.exists() and not file.is_file()):
            return {}  # a stranger's folder may name a pipe, which would never end
        data = load_table(config["data"], ReadOptions.from_dict(config), knowledge=stored_knowledge(config))
        truth = stored_truth(config, data.names)
    except Exception:  # the table was moved, or the settings are a stranger's: the report does without it
        return {}
    return {"data": data, "truth": truth} if data.sha256 == config.get("data_sha256") else {}


def run_comparison(
    data: Dataset, *, methods: list[str] | None, truth: Any, samples: int, seed: int, verbose: bool
) -> Comparison:
    """Several methods on one table; by default the best that there is for it, and MC3 if it takes it."""
    from gflowdag.cli.inspect import method_costs
    from gflowdag.estimators import estimator_class
    from gflowdag.estimators.compare import compare
    from gflowdag.estimators.cost import NO, automatic_choice, expected_rounds
    from gflowdag.estimators.method import Problem

    if methods is None:
        taking = [row["method"] for row in method_costs(data) if not row["answer"].startswith(NO)]
        best, _ = automatic_choice(Problem.of(data), data.num_rows, rounds=expected_rounds(data))
        methods = [name for name in (best, "mc3") if name in taking]
    if not methods:
        raise GFlowDAGError("name the methods to compare: --methods exact,mc3")
    learners = {
        name: estimator_class(name)(num_samples=samples, random_state=seed, verbose=verbose)
        for name in methods
    }
    return compare(learners, data=data, truth=truth)


def report_comparison(
    comparison: Comparison, to: Path | None, config: dict[str, Any], data: Dataset
) -> Path | None:
    """Write the report of a comparison and return its path; there is none where every method failed."""
    if not comparison.posteriors:
        return None
    if to is not None:
        return comparison.report(to, config=config, data=data)
    name = f"{_table_name(config['data'])}-compare"
    hidden = Path("runs", f".{name}.{os.getpid()}.html{PARTIAL}")
    comparison.report(hidden, config=config, data=data)
    return move_to_free(hidden, runs.numbered("runs", name, ".html"))


def run_simulation(
    to: Path, kind: str, variables: int, rows: int, edges_per_node: float, graph: str, seed: int
) -> list[Path]:
    """Simulate a table; returns the paths of the table and of the true edges."""
    from gflowdag.data import simulate
    from gflowdag.runtime.files import atomic_write

    simulators = {"linear-gaussian": simulate.linear_gaussian, "discrete": simulate.discrete}
    if kind not in simulators:
        raise GFlowDAGError(f"unknown kind {kind!r}: choose linear-gaussian or discrete")
    drawn = simulators[kind](
        num_variables=variables, num_rows=rows, edges_per_node=edges_per_node, graph=graph, random_state=seed
    )
    truth_path = to.with_suffix(".truth.csv")
    edges = drawn.truth.stack()
    pairs = pd.DataFrame(list(edges[edges].index), columns=["source", "target"])
    for path, frame in ((to, drawn.frame), (truth_path, pairs)):
        with atomic_write(path) as stream:
            frame.to_csv(stream, index=False)
    return [to, truth_path]
