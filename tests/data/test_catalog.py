"""The named data sets are the published ones, by value."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from importlib import resources

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.data import catalog, list_datasets, load_network, remote
from gflowdag.errors import DataError
from gflowdag.graph import is_acyclic

EMBEDDED = list_datasets().query("embedded")["name"].tolist()


@pytest.fixture
def _no_folder(monkeypatch, tmp_path):
    """A machine without the data folder and with an empty cache."""
    monkeypatch.delenv("GFLOWDAG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_no_folder")
@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_data_sets_load_without_any_folder_and_pass_the_checks(name):
    loaded = gd.load_dataset(name)
    data = loaded.dataset()
    assert data.num_rows == len(loaded.frame)
    assert loaded.truth.index.tolist() == loaded.truth.columns.tolist() == loaded.frame.columns.tolist()
    assert is_acyclic(loaded.truth.to_numpy())
    assert loaded.description
    assert loaded.citation
    sizes = catalog.DISCRETE_NETWORKS | catalog.LINEAR_GAUSSIAN_NETWORKS
    assert data.num_variables == sizes.get(name, 11)  # the others are the Sachs data


def test_sachs_is_the_reference_file_by_value(data_folder):
    loaded = gd.load_dataset("sachs")
    reference = pd.read_csv(data_folder / "sachs_continuous_obs.csv", dtype=float)
    pd.testing.assert_frame_equal(loaded.frame, reference, check_exact=True)
    edges = pd.read_csv(data_folder / "sachs_consensus_17.csv")
    assert set(zip(edges["source"], edges["target"], strict=True)) == _edges(loaded.truth)


def test_sachs_all_has_the_nine_conditions_with_their_targets(data_folder):
    loaded = gd.load_dataset("sachs-all")
    everything = pd.read_csv(data_folder / "sachs_continuous_all14.csv.gz")
    reference = everything[everything["condition"] <= 9].reset_index(drop=True)
    np.testing.assert_array_equal(loaded.frame.to_numpy(), reference[loaded.frame.columns].to_numpy())
    key = pd.read_csv(data_folder / "sachs_conditions.csv").set_index("condition")["target"]
    expected = reference["condition"].map(key).to_numpy(dtype=object)
    assert [target or "" for target in loaded.interventions] == ["" if t != t else t for t in expected]


def test_interventional_sachs_has_the_published_counts(data_folder):
    data = gd.load_dataset("sachs-interventional").dataset()
    assert data.values.shape == (5400, 11)
    np.testing.assert_array_equal(data.cardinalities, 3)
    counts = dict(zip(data.names, data.intervened.sum(axis=0).tolist(), strict=True))
    assert {name: count for name, count in counts.items() if count} == {
        "Mek": 600,
        "PIP2": 600,
        "Akt": 600,
        "PKA": 600,
        "PKC": 1200,
    }
    direct = gd.Dataset.from_csv(
        data_folder / "sachs_interventional_discrete.csv", interventions="INT", intervention_base=1
    )
    assert direct.sha256 == data.sha256


@pytest.mark.parametrize(
    ("name", "graph_file"), [("asia-5000", "asia_graph.csv"), ("gaussian-test", "gaussian_test_graph.csv")]
)
def test_samples_of_bnlearn_come_with_their_graph(data_folder, name, graph_file):
    loaded = gd.load_dataset(name)
    edges = pd.read_csv(data_folder / graph_file)
    assert len(loaded.frame) == 5000
    assert set(zip(edges["source"], edges["target"], strict=True)) == _edges(loaded.truth)


def test_samples_of_networks_have_the_size_and_the_seed_that_were_asked_for():
    first = gd.load_dataset("asia", num_rows=300, random_state=3)
    again = gd.load_dataset("asia", num_rows=300, random_state=3)
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert first.frame.shape == (300, 8)
    assert not gd.load_dataset("asia", num_rows=300).frame.equals(first.frame)


def test_the_embedded_folder_stays_small_and_says_where_it_comes_from():
    folder = resources.files("gflowdag.data") / "resources"
    files = [*folder.iterdir(), *(folder / "networks").iterdir()]
    assert sum(len(file.read_bytes()) for file in files if file.is_file()) < 1_000_000
    notice = (folder / "NOTICE").read_text(encoding="utf-8")
    assert "cdt 0.6.0" in notice
    assert "pgmpy 1.1.2" in notice


@pytest.mark.usefixtures("_no_folder")
def test_without_the_file_and_without_a_network_the_message_says_what_to_do(monkeypatch):
    def unreachable(url: str):
        raise OSError("no route to host")

    monkeypatch.setattr(remote, "_open_url", unreachable)
    with pytest.raises(DataError, match=r"could not be downloaded \(no route to host\).*GFLOWDAG_DATA"):
        gd.load_dataset("sachs-interventional")
    with pytest.raises(DataError, match=r"does not ship.*write\.csv\(bnlearn::asia.*GFLOWDAG_DATA"):
        gd.load_dataset("asia-5000")


def test_a_download_is_checked_kept_and_used_again(data_folder, monkeypatch, tmp_path):
    published = (data_folder / "sachs_interventional_discrete.csv").read_bytes()
    monkeypatch.setenv("GFLOWDAG_DATA", str(tmp_path))
    file = replace(catalog.SACHS_INTERVENTIONAL, file_names=("sachs_interventional_discrete.csv",))
    opened = []

    def serve(url: str) -> io.BytesIO:
        opened.append(url)
        return io.BytesIO(published)

    assert remote.locate(file, open_url=serve).read_bytes() == published
    assert remote.locate(file, open_url=serve) == tmp_path / "sachs_interventional_discrete.csv"
    assert opened == [file.url]
    assert gd.load_dataset("sachs-interventional").frame.shape == (5400, 11)


@pytest.mark.usefixtures("_no_folder")
def test_a_download_with_another_checksum_is_refused_and_not_kept(tmp_path):
    with pytest.raises(DataError, match="is not the expected file"):
        remote.locate(catalog.SACHS_INTERVENTIONAL, open_url=lambda url: io.BytesIO(b"<html>busy</html>"))
    assert not list(tmp_path.rglob("*.txt"))


def test_a_changed_file_in_the_folder_is_refused(monkeypatch, tmp_path):
    (tmp_path / "sachs.interventional.txt").write_text("Raf INT\n1 0\n")
    monkeypatch.setenv("GFLOWDAG_DATA", str(tmp_path))
    with pytest.raises(DataError, match="SHA-256"):
        gd.load_dataset("sachs-interventional")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("saks", {}, "no data set 'saks'; the data sets are sachs"),
        ("sachs", {"num_rows": 5}, "fixed number of rows"),
    ],
)
def test_unknown_names_and_options_that_do_not_apply_are_refused(name, options, message):
    with pytest.raises(DataError, match=message):
        gd.load_dataset(name, **options)


def test_unknown_networks_are_refused():
    with pytest.raises(DataError, match="no network 'saks'"):
        load_network("saks")


def test_the_embedded_files_have_no_time_stamps():
    """Bytes 4 to 7 of a gzip file are its date; without one, the wheel is reproducible."""
    content = (resources.files("gflowdag.data") / "resources" / "sachs.csv.gz").read_bytes()
    assert content[4:8] == bytes(4)
    assert gzip.decompress(content).startswith(b"Raf,Mek,Plcg,PIP2,PIP3,Erk,Akt,PKA,PKC,P38,Jnk\n")


def _edges(truth: pd.DataFrame) -> set[tuple[str, str]]:
    names = truth.columns
    return {(names[i], names[j]) for i, j in np.argwhere(truth.to_numpy())}


def test_nothing_is_downloaded_without_a_checksum() -> None:
    with pytest.raises(ValueError, match="has no checksum"):
        remote.RemoteFile(("file.csv",), (), "https://example.org/file.csv", "")
