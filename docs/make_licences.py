"""Write `docs/reference/licences.md`: what the package needs, directly or not, and under which licences.

Run it in an environment with the package: `python docs/make_licences.py`.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

EXTRAS = ("baselines", "gadget", "dask")
HEAD = "| package | version seen | licence |\n|---|---|---|\n"


def project_name(requirement: str) -> str:
    """The name in front of versions, extras and conditions."""
    return re.split(r"[\s;<>=!~\[(]", requirement, maxsplit=1)[0]


def needed(name: str, found: dict[str, metadata.Distribution]) -> None:
    """Add the distribution `name` and all that it needs, without extras, to `found`."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found:
        return
    try:
        found[key] = metadata.distribution(name)
    except metadata.PackageNotFoundError:  # for another platform
        return
    for requirement in found[key].requires or ():
        if "extra ==" not in requirement:
            needed(project_name(requirement), found)


def licence(distribution: metadata.Distribution) -> str:
    """As the distribution states it: an SPDX expression, else classifiers, else the start of its text."""
    facts = distribution.metadata
    if expression := facts.get("License-Expression"):
        return expression
    classifiers = [c.rsplit(" :: ", 1)[-1] for c in facts.get_all("Classifier") or () if "License ::" in c]
    if classifiers:
        return ", ".join(classifiers)
    return (facts.get("License") or "not stated").splitlines()[0][:60]


def table(distributions: dict[str, metadata.Distribution]) -> str:
    """The rows of distributions, by name."""
    return "".join(
        f"| {name} | {one.version} | {licence(one)} |\n" for name, one in sorted(distributions.items())
    )


pyproject = tomllib.loads(Path(__file__).parent.parent.joinpath("pyproject.toml").read_text(encoding="utf-8"))
project = pyproject["project"]
found: dict[str, metadata.Distribution] = {}
for dependency in project["dependencies"]:
    needed(project_name(dependency), found)
rows = table(found)
further = dict(found)
for extra in EXTRAS:
    for dependency in project["optional-dependencies"][extra]:
        needed(project_name(dependency), further)
rows_of_extras = table({name: one for name, one in further.items() if name not in found})
text = (
    "# Licences of the dependencies\n\n"
    "What `pip install gflowdag` brings along, as each package states it "
    "(made by `python docs/make_licences.py`).\n\n"
    f"{HEAD}{rows}\n## Extras\n\nWhat the extras {', '.join(f'`{extra}`' for extra in EXTRAS)} bring "
    "along beside it. The extras `notebook` (ipywidgets) and `gpu` (libraries of NVIDIA) are not listed.\n\n"
    f"{HEAD}{rows_of_extras}"
)
page = Path(__file__).parent / "reference" / "licences.md"
page.write_text(text, encoding="utf-8")
