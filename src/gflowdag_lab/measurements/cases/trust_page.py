"""The page on what is promised and how it is tested, from the files that the runs have left.

`false-trust` and `by-enumeration` write `runs.csv` and `enumerated.csv`; tests write `tallies.csv` where
`GFLOWDAG_TALLIES` names it; `make bounds` and `make audit` write what they found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gflowdag.runtime import atomic_write
from gflowdag_lab.measurements.cases import enumerated
from gflowdag_lab.measurements.cases.false_trust import (
    ALL,
    FOLDER,
    TOLERATED,
    Fit,
    counts,
    is_false_trust,
    stored,
    summary,
    summary_by_family,
)
from gflowdag_lab.measurements.harness import Options, Row, case, markdown

AIM = 0.001  # of the trusted answers at default options that are wrong, at most
PAGE = FOLDER.with_suffix(".md")
FUZZED = ("damaged files", "made-up files", "guided fuzzing")  # kinds of tallies that are not faults
# Kinds of tallies that are told of in the table of promises alone.
PROMISED = ("stopped runs", "other questions", "other tables", "at once", "exports")
# Why an answer was trusted and wrong, by family, seed, method and options: each one is explained.
EXPLAINED: dict[tuple[str, str, str, str], str] = {}
TEXT = """# Trust: what is promised, and how it is tested

<!-- Made by `python -m gflowdag_lab.measurements trust-page`; edit the code, not this file. -->

What an answer can vouch for is explained in {{doc}}`/explanation/trust`. This page is about the program:
what it promises, which tests fail where a promise does not hold, and how much was tried. It is made by

    python -m gflowdag_lab.measurements trust-page

from the files in `docs/laboratory/trust`, and these by the commands below each table.

{promises}

## "Exact" is the sum over all graphs

Exact posteriors of the hard problems of the next section, against the sum over all 25 graphs of three
variables and all 543 of four. The largest differences of an edge probability, and of the log evidence in
units of its size:

{enumerated}

Of columns of both kinds, logistic regressions are fitted once for the table of all parent sets and once for
each graph, from other starts. Both end within 1e-7 nats of the top.

    python -m gflowdag_lab.measurements by-enumeration

## Answers that say "trusted" and are wrong

Small posteriors that are hard to sample and whose exact answer is known: columns that are the parity of
others, relations that are all but deterministic, interventions said to be on other columns than they
were, a hundred thousand rows, two modes far apart, a score of its own for every parent set. An answer is
*false trust* if its verdict is "trusted" and an edge probability is more than {tolerated} from the exact
one. Chains have five variables, order MCMC at default options and GFlowNets four; these were trained on a
GPU (one H200). *Short* are runs of few
chains, few steps or little training, which are to provoke it; the options of each are in
`gflowdag_lab/measurements/cases/false_trust.py`. `share_at_most` is the upper bound of Clopper and
Pearson (one-sided, 95 %) on the share of the trusted answers that are wrong. The aim is {aim} at default
options. {decided}

{by_method}

By family of posteriors, all methods and options:

{by_family}

The *needle* is one complete graph behind a barrier: it has about half of the probability, and a basin of
no size. A chain that changes an edge at a time cannot know of it, and whether its answer is right is a matter
of luck. It is counted by itself, as the known limit of chains.

{explained}

    python -m gflowdag_lab.measurements false-trust

Problems beyond the first 120 are run at default options alone (`--set problems=400 --set only-default=yes`),
those of chains as far as there was time, on a busy machine.

## Faults

`kill -9` at random moments, during the work and in the middle of a write; a disk that fills up, or a
process that dies, at the first thing that is done to a file, at the second, and so on to the last; bits
of files turned over, one after another; too little memory. *Struck* counts the faults that came while the
program was at work. After each of them nothing that was finished is lost, no file is half, and a run that
goes on ends with the same bytes as without the fault. A test that fails, or has not been run for this
page, leaves no row; counts of earlier versions are in {{doc}}`faults`.

{faults}

    GFLOWDAG_TALLIES=docs/laboratory/trust/tallies.csv pytest tests/faults -m ""

Also the counts of the first table that are not faults are made by this command, on `tests/cli` and
`tests/posterior` too.

## Files of strangers

Files that are damaged, made up, or grown by a fuzzer that looks for new lines of code, at every door of
the program: tables, true edges, knowledge, networks, settings, metrics, checkpoints, posteriors, results
of benchmarks. Each is read, or refused with a sentence; no traceback, no waiting. The version is that of
the program that was tried.

{inputs}

The command is that of the faults; a fuzzer that looks for new lines needs the package atheris.

## The packages that are needed

{supply}
"""


@case
def trust_page(options: Options) -> Iterator[Row]:
    """Write `docs/laboratory/trust.md`, not with `--quick`; prints the false trust by method."""
    if not options.quick:
        with atomic_write(PAGE) as stream:
            stream.write(page())
    yield from summary(stored(FOLDER / "runs.csv"))


def page() -> str:
    """The page, from the files in the folder alone."""
    runs, tallies = stored(FOLDER / "runs.csv"), stored(FOLDER / "tallies.csv")
    fuzzed = [row for row in tallies if row["kind"] in FUZZED]
    faults = [row for row in tallies if row["kind"] not in (*FUZZED, *PROMISED)]
    promised = {kind: [row for row in tallies if row["kind"] == kind] for kind in PROMISED}
    return TEXT.format(
        promises=markdown(_promises(runs, faults, fuzzed, promised)),
        enumerated=markdown([dict(row) for row in stored(enumerated.FILE)]),
        tolerated=TOLERATED,
        aim=AIM,
        decided=_decided(_at_default_options(runs)),
        by_method=markdown(list(summary(runs))),
        by_family=markdown(list(summary_by_family(runs))),
        explained=_explained(runs),
        faults=markdown([_fault(row) for row in faults]),
        inputs=markdown([_fuzz(row) for row in fuzzed]) if fuzzed else "Not counted on this version.",
        supply=_supply(),
    )


def _promises(
    runs: list[Fit], faults: list[Fit], fuzzed: list[Fit], promised: dict[str, list[Fit]]
) -> list[Row]:
    """Every promise, the tests that fail where it does not hold, and what was tried."""
    default = _at_default_options(runs)
    whole = counts(runs)
    kills = [row for row in faults if row["kind"] == "kill -9"]
    flips = [row for row in faults if row["kind"] == "flipped bits"]
    deeds = [row for row in faults if row not in kills and row not in flips]
    num_exact = sum(int(row["posteriors"]) for row in stored(enumerated.FILE))
    promises = (
        ('"exact" is the sum over all graphs', "`tests/exact`, `by-enumeration`", f"{num_exact} posteriors"),
        (
            f'an edge probability that is "trusted" is right to {TOLERATED}',
            "`false-trust`, `tests/mcmc/test_chain_verdict.py`",
            f"{whole['runs']:,} fits, {whole['trusted']:,} of them trusted; at default options "
            f"{default['trusted']:,} trusted and {default['false']} wrong: a share of at most "
            f"{default['share_at_most']:.2g}",
        ),
        (
            "a killed run loses at most ten seconds of work (more only where writing a checkpoint would cost "
            "more than 2 %), and ends with the same bytes",
            "`tests/faults/test_kill.py`, `tests/gflownet/test_trainer.py`",
            f"{_sum(kills, 'tried'):,} kills, {_sum(kills, 'struck'):,} at work",
        ),
        (
            "a file is whole or not there, on disks that are full or read-only and with little memory",
            "`tests/faults/test_faulty_disk.py`, `tests/faults/test_scarcity.py`",
            _counted(deeds, "faults"),
        ),
        (
            "a file with a wrong bit is refused, or the bit says nothing",
            "`tests/faults/test_faulty_disk.py`",
            _counted(flips, "bits"),
        ),
        (
            "a file of a stranger is read or refused, and runs no code",
            "`tests/faults/test_fuzz.py`, `test_properties.py`, `test_atheris.py`, `test_hostile_input.py`",
            _counted(fuzzed, "files"),
        ),
        (
            "Ctrl-C and SIGTERM end a run in order, with a checkpoint and the command that goes on",
            "`tests/faults/test_interrupts.py`",
            _counted(promised["stopped runs"], "signals"),
        ),
        (
            "a run goes on only with the question that it was asked: table, knowledge, truth, score, prior",
            "`tests/cli/test_question.py`",
            _counted(promised["other questions"], "questions that differ"),
        ),
        (
            "effects are those of the table of the fit, or refused",
            "`tests/posterior/test_table_description.py`",
            _counted(promised["other tables"], "other tables"),
        ),
        (
            "programs that write in one place at once get a name each, or are refused",
            "`tests/faults/test_run_folders.py`, `test_several_processes.py`",
            _counted(promised["at once"], "claims of one name"),
        ),
        (
            "JSON is strict, and no name in an export is a formula",
            "`tests/cli/test_json.py`, `tests/cli/test_exports.py`",
            _counted(promised["exports"], "commands and names"),
        ),
        (
            "the packages work at both ends of their bounds; downloads have checksums",
            "`make bounds`, `make audit`, `tests/data/test_catalog.py`",
            _packages(),
        ),
    )
    return [{"promise": one, "tested by": tests, "tried": tried} for one, tests, tried in promises]


def _at_default_options(runs: list[Fit]) -> Row:
    return next(row for row in summary(runs) if row["of"] == ALL and row["options"] == "default")


def _decided(default: Row) -> str:
    """Whether the aim is reached; where there are too few answers, how many it takes."""
    if default["share_at_most"] <= AIM:
        return "It is reached."
    enough = math.ceil(math.log(0.05) / math.log1p(-AIM))
    return (
        f"It can be confirmed from {enough:,} trusted answers on, none of them wrong. There are "
        f"{default['trusted']:,}, {default['false']} of them wrong: it is not decided."
    )


def _counted(rows: list[Fit], what: str) -> str:
    return f"{_sum(rows, 'tried'):,} {what}" if rows else "not counted on this version"


def _sum(rows: list[Fit], column: str) -> int:
    return sum(int(row[column]) for row in rows)


def _fault(row: Fit) -> Row:
    return {name: row[name] for name in ("kind", "of", "tried", "struck", "commit")}


def _fuzz(row: Fit) -> Row:
    return {name: row[name] for name in ("kind", "of", "tried", "version", "commit")}


def _explained(runs: list[Fit]) -> str:
    """The cases of false trust, each with its reason."""
    lines = []
    for row in filter(is_false_trust, runs):
        family, seed, method, options = (row[name] for name in ("family", "seed", "method", "options"))
        reason = EXPLAINED[family, seed, method, options]
        lines.append(f"- {family} {seed}, {method}, {options}, wrong by {float(row['error']):.2f}: {reason}")
    return (
        "Each of them:\n\n" + "\n".join(lines) if lines else "No trusted answer was wrong by more than that."
    )


def _supply() -> str:
    """What was installed at both ends of the bounds, and the advisories."""
    lowest, newest = (
        {row["package"]: row["version"] for row in stored(FOLDER / f"{end}.csv")}
        for end in ("lowest", "newest")
    )
    advisories = stored(FOLDER / "advisories.csv")
    unanswered = [row for row in advisories if row["advisories"] == "not answered"]
    found = [row for row in advisories if row["advisories"] not in ("none", "not answered")]
    table = markdown(
        [{"package": name, "lowest": lowest[name], "newest": newest.get(name, "")} for name in lowest]
    )
    told = "; ".join(f"{row['package']} {row['version']}: {row['advisories']}" for row in found) or "none"
    return (
        "An exact fit, a short GFlowNet, a report, an export and a comparison, in a new environment with the "
        "lowest versions that the bounds allow, and in one with the newest that were found:\n\n"
        f"{table}\n\n    make bounds\n\n"
        f"Published advisories against the {len(advisories)} versions of `requirements-dev.lock`: {told}."
        f"{_unanswered(unanswered)}\n\n    make audit\n\n"
        "Their licences: {doc}`/reference/licences`."
    )


def _packages() -> str:
    """How many packages were installed at both ends, and how many versions the index vouched for."""
    answers = [row["advisories"] for row in stored(FOLDER / "advisories.csv")]
    installed = len(stored(FOLDER / "lowest.csv"))
    return (
        f"{installed} packages at both ends; {answers.count('none')} of {len(answers)} versions without an "
        f"advisory, {answers.count('not answered')} not answered for"
    )


def _unanswered(rows: list[Fit]) -> str:
    """The versions that no index vouches for, and what is known of newer ones."""
    if not rows:
        return ""
    versions = ", ".join(f"{row['package']} {row['version']}" for row in rows)
    newest = [f"{row['package']} {row['newest']}: {row['advisories_of_newest']}" for row in rows]
    return (
        " The index that was asked answers for the newest version of a project alone. **Nothing vouches for "
        f"{versions}**; they were not withdrawn. The newest versions, which need a newer Python than that of "
        f"the lock file: {', '.join(newest)}. `pip-audit` asks the same index and skips the same ones; its "
        "other services did not answer."
    )
