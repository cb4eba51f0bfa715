"""Named data sets: the cytometry data of the literature, and samples of well-known networks."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from gflowdag.data.bif import parse_bif
from gflowdag.data.dataset import Dataset
from gflowdag.data.lingauss import parse_linear_gaussian
from gflowdag.data.networks import DiscreteNetwork, LinearGaussianNetwork, graph_frame
from gflowdag.data.reading import read_csv
from gflowdag.data.remote import FOLDER_VARIABLE, RemoteFile, locate
from gflowdag.errors import DataError
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.messages import shown
from gflowdag.runtime.randomness import generator

# Name -> number of variables.
DISCRETE_NETWORKS = {
    "alarm": 37,
    "asia": 8,
    "cancer": 5,
    "child": 20,
    "earthquake": 5,
    "hepar2": 70,
    "insurance": 27,
    "survey": 6,
}
LINEAR_GAUSSIAN_NETWORKS = {"arth150": 107, "ecoli70": 46, "magic-irri": 64, "magic-niab": 44}

SACHS_CITATION = (
    "K. Sachs, O. Perez, D. Pe'er, D. A. Lauffenburger, G. P. Nolan: Causal protein-signaling networks "
    "derived from multiparameter single-cell data. Science 308:523 (2005)."
)
BNLEARN_CITATION = (
    "M. Scutari: Learning Bayesian networks with the bnlearn R package. Journal of Statistical Software "
    "35(3) (2010)."
)

# The first nine conditions, in the order of the rows: number of rows, reagents, the protein that they set.
# LY294002 inhibits PI3K, which was not measured.
SACHS_CONDITIONS = (
    (853, "anti-CD3/CD28", None),
    (902, "anti-CD3/CD28 + ICAM-2", None),
    (911, "anti-CD3/CD28 + Akt inhibitor", "Akt"),
    (723, "anti-CD3/CD28 + G0076", "PKC"),
    (810, "anti-CD3/CD28 + psitectorigenin", "PIP2"),
    (799, "anti-CD3/CD28 + U0126", "Mek"),
    (848, "anti-CD3/CD28 + LY294002", None),
    (913, "PMA", "PKC"),
    (707, "β2-cAMP", "PKA"),
)

SACHS_INTERVENTIONAL = RemoteFile(
    file_names=("sachs.interventional.txt", "sachs_interventional_discrete.csv"),
    sha256=(
        "b4414fdc268c28cc48ecce2c38078caa57fd436dd77d78d6e778e3ab5bbadf26",  # as published, with spaces
        "f4b70352930aade8f37ff9e6da0a0ecfa1b6bb1373f67b68f026ac6a7df54a2e",  # the same cells, with commas
    ),
    url="https://raw.githubusercontent.com/snarles/causal/2f4c6ab8a17c46e6429d0616c72466397cd27618/"
    "bnlearn_files/sachs.interventional.txt",
    remedy="Get sachs.interventional.txt from the bnlearn site or from github.com/snarles/causal.",
)
ASIA_5000 = RemoteFile(
    file_names=("asia_5000.csv",),
    sha256=(),
    url=None,
    remedy="Write it in R: write.csv(bnlearn::asia, 'asia_5000.csv', row.names = FALSE, quote = FALSE).",
)
GAUSSIAN_TEST = RemoteFile(
    file_names=("gaussian_test_5000.csv",),
    sha256=(),
    url=None,
    remedy="Write it in R: write.csv(format(bnlearn::gaussian.test, digits = 10), 'gaussian_test_5000.csv', "
    "row.names = FALSE, quote = FALSE).",
)
_REMOTE = {
    "sachs-interventional": SACHS_INTERVENTIONAL,
    "asia-5000": ASIA_5000,
    "gaussian-test": GAUSSIAN_TEST,
}


@dataclass(frozen=True, eq=False)
class LoadedDataset:
    """A named data set."""

    name: str
    frame: pd.DataFrame  # [n, d], the variables only
    truth: pd.DataFrame  # bool [source, target] in the order of the columns
    interventions: np.ndarray | None  # object [n]: the name of the target, None where observational
    description: str
    citation: str

    def dataset(self, **options: Any) -> Dataset:
        """The checked table with its interventions; `options` are those of `Dataset.from_frame`."""
        given: dict[str, Any] = {"interventions": self.interventions, **options}
        return Dataset.from_frame(self.frame, **given)


def list_datasets() -> pd.DataFrame:
    """The names that `load_dataset` knows, with what they are and where they come from.

    Columns: `name`, `description`, `embedded` (ships with the package) and `source`, where it does not.
    """
    described = {
        "sachs": "853 × 11 continuous, observational: protein signalling (cytometry)",
        "sachs-all": "7466 × 11 continuous, nine conditions with interventions",
        "sachs-interventional": "5400 × 11 discrete, with interventions",
        "asia-5000": "5000 × 8 discrete: bnlearn's sample of the asia network",
        "gaussian-test": "5000 × 7 continuous: bnlearn's linear-Gaussian sample",
        **{name: f"sample of a discrete network of {d} variables" for name, d in DISCRETE_NETWORKS.items()},
        **{
            name: f"sample of a linear-Gaussian network of {d} variables"
            for name, d in LINEAR_GAUSSIAN_NETWORKS.items()
        },
    }
    rows = [(name, text, name not in _REMOTE, _source(name)) for name, text in described.items()]
    return pd.DataFrame(rows, columns=["name", "description", "embedded", "source"])


def _source(name: str) -> str:
    """Where a data set that the package does not carry comes from."""
    if name not in _REMOTE:
        return ""
    if _REMOTE[name].url is None:
        return f"in the folder {FOLDER_VARIABLE}, once you have made it: loading it says how"
    return f"in the folder {FOLDER_VARIABLE}, or downloaded"


@named_parameters
def load_dataset(
    name: str, *, num_rows: int | None = None, random_state: int | np.random.Generator | None = 0
) -> LoadedDataset:
    """Load a data set by name (see `list_datasets`).

    Args:
        name: the name. That of a network (`"alarm"`, `"ecoli70"`, …) gives a sample of it.
        num_rows: size of the sample of a network, 5000 by default; not for measured data.
        random_state: seed or generator of the sample of a network.

    Raises:
        DataError: no such name, or data that do not ship with the package and cannot be found or fetched.
    """
    if name in _MEASURED:
        if num_rows is not None:
            raise DataError(f"{name!r} has a fixed number of rows; num_rows is for samples of networks.")
        return _MEASURED[name]()
    if name not in DISCRETE_NETWORKS | LINEAR_GAUSSIAN_NETWORKS:
        raise DataError(
            f"There is no data set {name!r}; the data sets are {shown(list_datasets()['name'], 99)}."
        )
    network = load_network(name)
    num_rows = 5000 if num_rows is None else num_rows
    kind = "discrete" if isinstance(network, DiscreteNetwork) else "linear-Gaussian"
    return LoadedDataset(
        name=name,
        frame=network.sample(num_rows, generator(random_state)),
        truth=network.graph,
        interventions=None,
        description=f"{num_rows} rows sampled from the {kind} network {name!r}.",
        citation=f"The network is in the bnlearn repository. {BNLEARN_CITATION}",
    )


def load_network(name: str) -> DiscreteNetwork | LinearGaussianNetwork:
    """An embedded network by name, with all its parameters; `"sachs"` is one too."""
    if name in LINEAR_GAUSSIAN_NETWORKS:
        return parse_linear_gaussian(_resource(f"networks/{name}.json.gz"), name)
    if name in (*DISCRETE_NETWORKS, "sachs"):
        return parse_bif(_resource(f"networks/{name}.bif.gz"), name)
    known = sorted((*DISCRETE_NETWORKS, *LINEAR_GAUSSIAN_NETWORKS, "sachs"))
    raise DataError(f"There is no network {name!r}; the networks are {shown(known, 99)}.")


def _sachs() -> LoadedDataset:
    frame = _sachs_frame().head(SACHS_CONDITIONS[0][0])
    return LoadedDataset(
        name="sachs",
        frame=frame,
        truth=_sachs_truth(frame),
        interventions=None,
        description="Abundance of 11 phosphoproteins in 853 single T cells, first condition (anti-CD3/CD28), "
        "raw values; the truth is the consensus graph of 17 edges.",
        citation=SACHS_CITATION,
    )


def _sachs_all() -> LoadedDataset:
    frame = _sachs_frame()
    sizes, reagents, targets = zip(*SACHS_CONDITIONS, strict=True)
    return LoadedDataset(
        name="sachs-all",
        frame=frame,
        truth=_sachs_truth(frame),
        interventions=np.repeat(np.array(targets, dtype=object), sizes),
        description="Abundance of 11 phosphoproteins in 7466 single T cells, raw values, nine conditions one "
        f"after another ({shown(reagents, 9)}); the interventions are our labelling of the reagents.",
        citation=SACHS_CITATION,
    )


def _sachs_interventional() -> LoadedDataset:
    frame = read_csv(locate(SACHS_INTERVENTIONAL))
    frame, targets = frame.drop(columns="INT"), frame["INT"].to_numpy()
    names = np.array([None, *frame.columns], dtype=object)
    return LoadedDataset(
        name="sachs-interventional",
        frame=frame,
        truth=_sachs_truth(frame),
        interventions=names[targets],  # INT: 0 for none, otherwise the number of the column counted from 1
        description="5400 T cells in nine conditions, 11 proteins cut into three levels, interventions on "
        "Mek, PIP2, Akt, PKA and PKC; the truth is the consensus graph of 17 edges.",
        citation=SACHS_CITATION,
    )


def _asia_5000() -> LoadedDataset:
    edges = ("A T", "S L", "S B", "T E", "L E", "B D", "E X", "E D")
    return _bnlearn_sample("asia-5000", ASIA_5000, edges, "asia (lung disease), discrete")


def _gaussian_test() -> LoadedDataset:
    edges = ("A C", "B C", "B D", "A F", "D F", "E F", "G F")
    return _bnlearn_sample("gaussian-test", GAUSSIAN_TEST, edges, "gaussian.test, linear-Gaussian")


def _bnlearn_sample(name: str, remote: RemoteFile, edges: tuple[str, ...], network: str) -> LoadedDataset:
    frame = read_csv(path := locate(remote))
    mentioned = {variable for edge in edges for variable in edge.split()}
    if set(frame.columns) != mentioned:
        raise DataError(f"{path} has other columns than {', '.join(sorted(mentioned))}. {remote.remedy}")
    truth = graph_frame(np.zeros((frame.shape[1], frame.shape[1])), list(frame.columns))
    for edge in edges:
        source, target = edge.split()
        truth.loc[source, target] = True
    description = f"5000 rows simulated from the network {network}, as the R package bnlearn has them."
    return LoadedDataset(name, frame, truth, None, description, BNLEARN_CITATION)


_MEASURED: dict[str, Callable[[], LoadedDataset]] = {
    "sachs": _sachs,
    "sachs-all": _sachs_all,
    "sachs-interventional": _sachs_interventional,
    "asia-5000": _asia_5000,
    "gaussian-test": _gaussian_test,
}


def _sachs_frame() -> pd.DataFrame:
    return pd.read_csv(io.StringIO(_resource("sachs.csv.gz")), dtype=np.float64)


def _sachs_truth(frame: pd.DataFrame) -> pd.DataFrame:
    """The consensus graph of 17 edges, which is that of the network, in the order of the data's columns."""
    names = list(frame.columns)
    return load_network("sachs").graph.loc[names, names]


def _resource(name: str) -> str:
    path = resources.files("gflowdag.data") / "resources" / name
    return gzip.decompress(path.read_bytes()).decode("utf-8")
