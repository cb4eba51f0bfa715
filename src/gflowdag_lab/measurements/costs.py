"""Measure the seconds and the memory that `gflowdag check` estimates (`gflowdag/estimators/cost.py`).

    python -m gflowdag_lab.measurements.costs costs.json [METHOD … or SIZE …]

One process for each fit, so that compilation and the peak of memory are its own. A fit is run at two small
shares of its default length and extended by a straight line. Seconds are those of the processor, so that a
busy machine gives the same numbers: run it on one core.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from gflowdag.runtime import strict_json, write_json
from gflowdag_lab.model import PRIOR

SIZES = (20, 11, 5, 50)  # most telling first
SHARES = (0.05, 0.15)  # of the default length
TIME_LIMIT = 300  # seconds for one fit
# The parameters that make a fit longer.
LENGTHS: dict[str, tuple[str, ...]] = {
    "order-mcmc": ("iterations",),
    "mc3": ("burn_in", "num_steps", "thinning"),
    "order-gflownet": ("iterations", "chain_steps"),
    "bcd-nets": ("num_steps",),
    "dibs": ("num_steps",),
    "dag-gflownet": ("iterations",),
    "bootstrap-pc": ("num_bootstraps",),
    "bootstrap-ges": ("num_bootstraps",),
    "gadget": ("burn_in", "num_steps"),
}
ITERATIONS = {"order-gflownet": 1000, "dag-gflownet": 2000}  # where the parameter's default is None
FEW = {"dag-gflownet": (0.005, 0.02)}  # shares where an iteration is long
IN_THIS_PROCESS = {"n_jobs": 1}  # where a method would start others, whose time would be lost


def fit(method: str, num_variables: int, share: float) -> dict[str, float]:
    """Seconds of processor time for one fit of a table of 100 rows, and the growth of the process in MiB."""
    import gflowdag as gd
    from gflowdag.estimators import estimator_class

    frame = gd.simulate.linear_gaussian(num_variables, 100, random_state=0).frame
    kind = estimator_class(method)
    defaults = kind().get_params()
    lengths = {
        name: max(2, round(share * (defaults[name] or ITERATIONS[method]))) for name in LENGTHS[method]
    }
    alone = {name: value for name, value in IN_THIS_PROCESS.items() if name in defaults}
    estimator = kind(prior=PRIOR, random_state=0).set_params(**lengths, **alone)
    before, started = _peak(), _processor_seconds()
    estimator.fit(frame)
    return {"seconds": _processor_seconds() - started, "mebibytes": _peak() - before}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def measure(method: str, num_variables: int) -> dict[str, Any]:
    """A row: seconds and MiB at the default length, or why there are none."""
    found, shares = [], FEW.get(method, SHARES)
    for share in shares:
        command = [sys.executable, __file__, "--fit", method, str(num_variables), str(share)]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
            found.append(json.loads(answer.stdout.splitlines()[-1]))
        except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
            return {"method": method, "variables": num_variables, "failed": repr(error)[:300]}
    short, long = found
    slope = max(long["seconds"] - short["seconds"], 0.0) / (shares[1] - shares[0])
    return {
        "method": method,
        "variables": num_variables,
        "seconds": round(long["seconds"] + slope * (1 - shares[1]), 2),
        "mebibytes": round(long["mebibytes"]),
    }


def main(output: Path, chosen: list[str]) -> None:
    rows = []
    sizes = [int(word) for word in chosen if word.isdecimal()]
    methods = [word for word in chosen if not word.isdecimal()]
    for num_variables in sizes or SIZES:
        for method in methods or LENGTHS:
            rows.append(measure(method, num_variables))
            print(rows[-1], flush=True)
            write_json(output, rows)


if __name__ == "__main__":
    if sys.argv[1] == "--fit":
        print(strict_json.dumps(fit(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
