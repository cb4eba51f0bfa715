"""The page on `fit --yes` on real tables, from the rows that `real-tables` has left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gflowdag.runtime import atomic_write, read_json
from gflowdag_lab.measurements.harness import Options, Row, case

FOLDER = Path("docs/laboratory/real-tables")
PAGE = FOLDER.with_suffix(".md")
IN_ALL = 109  # tables that count, in the versions of the packages of November 2026
_LEFT = (
    " Most of them have 14 columns or more, so that the shares above are those of narrow tables. A fit of "
    "`digits` (65 columns of both kinds) was stopped by hand: one of its local scores takes 1 to 8 ms, one "
    "sweep of a chain asks for thousands, and chains are not stopped before twelve sweeps."
)
TEXT = """# Real tables: does `fit --yes` answer?

Tables that packages on PyPI carry, written to CSV files as pandas writes them, and `gflowdag fit TABLE
--yes --budget 60s` on each. Which tables count, and what is an answer,
was written down before the case was run, at the top of `gflowdag_lab/measurements/cases/real_tables.py`.

    python -m gflowdag_lab.measurements real-tables --out docs/laboratory/real-tables/1.json
    python -m gflowdag_lab.measurements real-tables-page

Shares of the survey can be run one by one (`--set part=1/3 --set columns=3-13`, each with an `--out` of its
own); the page counts all files of `docs/laboratory/real-tables`.
The packages scikit-learn, statsmodels, lifelines, vega_datasets, palmerpenguins, ISLP and pydataset have to
be installed; none of the tables is kept here.

{summary}

{extent}

## Refusals and failures

{refused}

## All tables

"Variables" are those that are left after what the command decided. "Against the model" is the number of
findings of the check of the model. Seconds are CPU seconds of a machine that did other work too, without
the start of
the program; the first table of each share includes loading compiled code.

{tables}
"""


@case
def real_tables_page(options: Options) -> Iterator[Row]:
    """Write `docs/laboratory/real-tables.md`, not with `--quick`; prints the shares."""
    rows = [row for path in sorted(FOLDER.glob("*.json")) for row in read_json(path)["rows"]]
    found = _shares(rows)
    text = TEXT.format(
        summary=_summary(found, rows),
        extent=_extent(rows),
        refused=_refused(rows),
        tables=_tables(rows),
    )
    if not options.quick:
        with atomic_write(PAGE) as stream:
            stream.write(text)
    yield found


def _shares(rows: Sequence[Row]) -> Row:
    answered = [row for row in rows if row["outcome"] == "answered"]
    vouched = [row for row in answered if row["verdict"] in ("exact", "trusted")]
    return {
        "tables": len(rows),
        "with_gaps": sum(row["gaps"] > 0 for row in rows),
        "answered": len(answered),
        "answered_with_gaps": sum(row["gaps"] > 0 for row in answered),
        "vouched_for": len(vouched),
        "without_findings": sum(not row["findings"] for row in vouched),
        "failures": sum(row["outcome"] == "failure" for row in rows),
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in rows)),
    }


def _summary(found: Row, rows: Sequence[Row]) -> str:
    seconds = sorted(row["cpu_seconds"] for row in rows)
    return (
        f"**{found['answered']} of {found['tables']} tables are answered**, {found['answered_with_gaps']} of "
        f'{found["with_gaps"]} with gaps among them. {found["vouched_for"]} answers have the verdict "exact" '
        f'or "trusted"; {found["without_findings"]} of these have nothing against the model. '
        f"{found['failures']} commands ended in a traceback. The median is {seconds[len(seconds) // 2]:g} "
        f"seconds, the most {seconds[-1]:g}."
    )


def _extent(rows: Sequence[Row]) -> str:
    packages: dict[str, int] = {}
    for row in rows:
        package = row["table"].partition(":")[0]
        packages[package] = packages.get(package, 0) + 1
    widest = max(row["columns"] for row in rows)
    counted = ", ".join(f"{number} of {package}" for package, number in packages.items())
    text = f"Tables by package: {counted}; the widest has {widest} columns."
    left = IN_ALL - len(rows)
    return f"{text} Of {IN_ALL} tables that count {left} are not measured yet.{_LEFT}" if left > 0 else text


def _refused(rows: Sequence[Row]) -> str:
    other = [row for row in rows if row["outcome"] != "answered"]
    lines = [f"- {row['table']} ({row['outcome']}): {row['message']}" for row in other]
    return "\n".join(lines) if lines else "None."


def _tables(rows: Sequence[Row]) -> str:
    lines = [
        "| table | rows | with gaps | columns | variables | method | verdict | against the model | seconds |",
        "|---|--:|--:|--:|--:|---|---|--:|--:|",
    ]
    for row in sorted(rows, key=lambda row: str(row["table"])):
        told = (
            f"{row['variables']} | {row['method']} | {row['verdict']} | {len(row['findings'])}"
            if row["outcome"] == "answered"
            else f"– | – | {row['outcome']} | –"
        )
        lines.append(
            f"| {row['table']} | {row['rows']} | {row['gaps']} | {row['columns']} | {told} | "
            f"{row['cpu_seconds']:g} |"
        )
    return "\n".join(lines)
