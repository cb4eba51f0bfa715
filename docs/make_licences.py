"""Write `docs/reference/licences.md`: what the package needs, directly or not, and under which licences.

Run it in an environment with the package: `python docs/make_licences.py`.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path


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


pyproject = tomllib.loads(Path(__file__).parent.parent.joinpath("pyproject.toml").read_text(encoding="utf-8"))
found: dict[str, metadata.Distribution] = {}
for dependency in pyproject["project"]["dependencies"]:
    needed(project_name(dependency), found)
rows = [f"| {name} | {one.version} | {licence(one)} |" for name, one in sorted(found.items())]
text = (
    "# Licences of the dependencies\n\n"
    "What `pip install gflowdag` brings along, as each package states it "
    "(made by `python docs/make_licences.py`).\n\n"
    "| package | version seen | licence |\n|---|---|---|\n"
)
page = Path(__file__).parent / "reference" / "licences.md"
page.write_text(text + "\n".join(rows) + "\n", encoding="utf-8")
