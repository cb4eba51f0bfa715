"""Run measured cases: `python -m gflowdag_lab.measurements CASE … --data FOLDER --out results.json`."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from gflowdag_lab.measurements import harness

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Parse, import the case modules, run."""
    for module in sorted((HERE / "cases").glob("[!_]*.py")):
        importlib.import_module(f"gflowdag_lab.measurements.cases.{module.stem}")
    data = os.environ.get("GFLOWDAG_DATA")
    parser = argparse.ArgumentParser("python -m gflowdag_lab.measurements", description=__doc__)
    parser.add_argument("cases", nargs="*", default=sorted(harness.CASES), help="default: all of them")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument(
        "--data", type=Path, default=Path(data) if data else None, help="folder with the real data"
    )
    parser.add_argument(
        "--references", type=Path, default=HERE / "references", help="cache of exact posteriors"
    )
    parser.add_argument("--out", type=Path, default=None, help="JSON file to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="option of a case")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    arguments = parser.parse_args()
    if arguments.list:
        for name, case in sorted(harness.CASES.items()):
            print(f"{name:<28} {(case.__doc__ or '').splitlines()[0] if case.__doc__ else ''}")
        return
    unknown = [name for name in arguments.cases if name not in harness.CASES]
    if unknown:
        parser.error(f"unknown cases {', '.join(unknown)}; there are {', '.join(sorted(harness.CASES))}")
    options = harness.Options(
        quick=arguments.quick,
        data=arguments.data,
        references=arguments.references,
        seed=arguments.seed,
        extra=dict(item.split("=", 1) for item in arguments.set),
    )
    harness.run(arguments.cases, options, arguments.out)


if __name__ == "__main__":
    main()
