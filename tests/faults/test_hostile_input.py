"""Tables, archives and numbers at the edge: right, or refused with a reason before memory is taken."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.cli import commands
from gflowdag.data import Dataset, Knowledge
from gflowdag.data.bif import parse_bif
from gflowdag.errors import DataError, FileFormatError, GFlowDAGError, KnowledgeError, TooLargeError
from gflowdag.estimators.cost import estimate_costs
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.files import read_json, read_npz, write_npz

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) @ np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1.0]])


def _csv(path: Path, text: str) -> Dataset:
    path.write_bytes(text.encode())
    return Dataset.from_csv(path)


def _text(separator: str = ",", header: str = "a,b,c") -> str:
    rows = [separator.join(f"{x:.6f}" for x in row) for row in X]
    return "\n".join([header.replace(",", separator), *rows]) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        _text(";").replace(".", ","),
        _text("\t").replace(".", ","),
        "sep=;\n" + _text(";"),
        "\ufeff" + _text(),
        _text().replace("\n", "\r"),
        _text().replace("\n", "\r\n"),
    ],
    ids=["decimal comma", "decimal comma, tabs", "Excel separator", "byte-order mark", "old Mac", "Windows"],
)
def test_tables_of_spreadsheets_are_read_as_the_same_numbers(text: str, tmp_path: Path) -> None:
    expected = Dataset.from_array(np.round(X, 6), names=list("abc"))
    assert _csv(tmp_path / "table.csv", text).sha256 == expected.sha256


def test_a_comment_in_place_of_the_header_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="seems to be a comment"):
        _csv(tmp_path / "table.csv", "# mine\n" + _text())


@pytest.mark.parametrize(
    "name", ["a\x1b[2J", "a\x00", "\ud800", "a\u202etxt", "\u2066a", "a\u202a", "a\uffff"]
)
def test_names_that_would_control_a_terminal_or_turn_a_line_around_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="control character"):
        Dataset.from_frame(pd.DataFrame(X, columns=[name, "b", "c"]))
    with pytest.raises(ValueError, match="control character"):
        Posterior(np.zeros((1, 2, 2)), (name, "b"))


def test_unsigned_integers_beyond_a_signed_one_do_not_wrap() -> None:
    big = 2**63 + (RNG.integers(0, 2**60, 60)).astype(np.uint64)
    data = Dataset.from_frame(pd.DataFrame({"a": big, "b": X[:, 1]}), standardize=False)
    np.testing.assert_array_equal(data.values[:, 0], big.astype(np.float64))


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e61])
@pytest.mark.parametrize("standardize", [True, False])
def test_numbers_whose_squares_overflow_are_refused(scale: float, standardize: bool) -> None:
    frame = pd.DataFrame(X * [scale, 1, 1], columns=list("abc"))
    with pytest.raises(DataError, match=r"'a' has values up to .*another unit"):
        Dataset.from_frame(frame, standardize=standardize)


@pytest.mark.parametrize(
    "values",
    [
        X * [1e50, 1, 1e-50],
        X + np.array([1e12, 0, 0]),
        RNG.standard_cauchy((200, 3)) ** 3,
        np.column_stack([X, X[:, 0] + 1e-8 * RNG.normal(size=60)]),
        RNG.normal(size=(5, 9)),
        RNG.normal(size=(2, 3)),
        RNG.normal(size=(30, 1)),
    ],
    ids=["scales", "offset", "heavy tails", "nearly collinear", "N < d", "two rows", "one variable"],
)
def test_difficult_numbers_give_a_finite_posterior(values: np.ndarray) -> None:
    post = gd.fit(pd.DataFrame(values).add_prefix("v"), method="exact", num_samples=5)
    p = post.edge_probabilities().to_numpy()
    assert post.log_evidence is not None
    assert np.isfinite(post.log_evidence)
    assert ((p >= 0) & (p <= 1)).all()
    assert (p + p.T <= 1 + 1e-9).all()  # rounding of a sum over all graphs


def test_too_many_variables_are_refused_before_anything_is_computed() -> None:
    wide = pd.DataFrame(RNG.normal(size=(30, 700))).add_prefix("v")
    with pytest.raises(TooLargeError, match=r"700 variables .* centuries .* parent-set-mcmc"):
        gd.fit(wide, method="exact")
    answer = estimate_costs(5000, 30, discrete=False)[0]["answer"]
    assert answer.startswith("no: needs more memory than any machine has; this machine has ")


@pytest.mark.parametrize("method", ["order-gflownet", "dag-gflownet", "order-mcmc", "mc3"])
def test_one_variable_is_left_to_the_exact_posterior(method: str) -> None:
    with pytest.raises(DataError, match="needs 2 variables"):
        gd.fit(X[:, :1], method=method)


def _npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def _array(shape: tuple[int, ...], descr: str, content: bytes) -> bytes:
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (_array((2**40,), "<f8", b"12345678"), "has another size than it claims"),
        (_array((2**28,), "<f8", b"12345678"), "has another size than it claims"),
        (_array((-1, -1), "<f8", b"12345678"), "no plain numbers"),
        (_array((1,), "|O", b"12345678"), "no plain numbers"),
        (_array((1,), "<U2", b"\xff" * 8), "holds no text"),
        (_array((1,), "<f8", b"1234"), "has another size than it claims"),
        (bytes(64 << 20), "would unpack to 64 MiB"),
    ],
)
def test_an_array_is_refused_by_its_size_before_memory_is_taken(
    member: bytes, message: str, tmp_path: Path
) -> None:
    path = _npz(tmp_path / "hostile.npz", names=member)
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=message):
        read_npz(path, max_bytes=32 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20  # bytes; the claims are of 64 MiB to 8 TiB


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, "", "\x00"])
def test_json_bombs_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(FileFormatError):
        read_json(tmp_path / "config.json")


def test_a_truncated_posterior_is_refused_at_every_length(tmp_path: Path) -> None:
    Posterior(np.zeros((2, 3, 3)), ("a", "b", "c")).save(tmp_path / "whole.npz")
    content = (tmp_path / "whole.npz").read_bytes()
    for length in range(0, len(content) - 1, 37):
        (tmp_path / "part.npz").write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            Posterior.load(tmp_path / "part.npz")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"ess": "much"}, "ess"),
        ({"edge_errors": [[1.0]]}, "edge_errors"),
        ({"notes": 3}, "notes"),
        ({"verdict": ["exact"]}, "verdict"),
        ({"verdict": "excellent"}, "verdict"),
        ({"acceptance": {"add": "often"}}, "add"),
        ({"iterations": 10**30}, "iterations"),
    ],
)
def test_diagnostics_of_another_type_are_refused(facts: dict, message: str, tmp_path: Path) -> None:
    path = tmp_path / "posterior.npz"
    Posterior(np.zeros((1, 2, 2)), ("a", "b")).save(path)
    arrays = dict(read_npz(path, max_bytes=1 << 20))
    meta = json.loads(str(arrays["meta"]))
    if "edge_errors" in facts:
        arrays["edge_errors"] = np.array(facts["edge_errors"])
    else:
        meta["diagnostics"] |= facts
    write_npz(path, arrays | {"meta": np.array(json.dumps(meta))})
    with pytest.raises(FileFormatError, match=message):
        Posterior.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 50_000, "not a TOML file"),
        ("\ufeffmax_parents =", "not a TOML file"),
        ("max_parents = " + "9" * 5000, "whole number of more than 64 bits"),
        ("max_parents = 9223372036854775808", "whole number of more than 64 bits"),
        ("required = [[1, -9223372036854775809]]", "whole number of more than 64 bits"),
        ("max_parents = -1", "got -1"),
    ],
)
def test_toml_bombs_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "knowledge.toml").write_text(text, encoding="utf-8")
    with pytest.raises(KnowledgeError, match=message):
        Knowledge.from_toml(tmp_path / "knowledge.toml")


@pytest.mark.parametrize("limit", [2**63, 10**5000], ids=["64 bits", "5000 digits"])
def test_a_limit_that_no_table_reaches_is_refused_without_its_digits(limit: int) -> None:
    with pytest.raises(KnowledgeError, match="64 bits, 0 or more, or None; got a longer one"):
        Knowledge(max_parents=limit)


def test_a_name_that_looks_like_an_expression_is_taken_as_a_name() -> None:
    constraints = Knowledge(required=[("re:x", "b")]).resolve(["re:x", "b"])
    assert constraints.required[0, 1]
    with pytest.raises(KnowledgeError, match="not a regular expression that can be used here"):
        Knowledge(required=[("re:a{99999999999}", "b")]).resolve(["a", "b"])


@pytest.mark.timeout(20)
def test_comments_that_never_close_do_not_take_quadratic_time() -> None:
    with pytest.raises(FileFormatError, match="not closed"):
        parse_bif("/* " * 300_000)


def test_a_wrong_true_graph_is_found_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(_text())
    (tmp_path / "truth.csv").write_text("source,target\na,nobody\n")
    config = {"data": str(tmp_path / "table.csv"), "truth_file": tmp_path / "truth.csv"}
    with pytest.raises(DataError, match="unknown variables: nobody"):
        commands.run_fit(
            config
            | {
                "method": "exact",
                "score": "auto",
                "prior": "auto",
                "budget": None,
                "iterations": None,
                "preset": None,
            },
            out=tmp_path / "run",
            resume=False,
            verbose=False,
        )
    assert not (tmp_path / "run").exists()


def test_columns_are_dropped_and_typed_from_the_command_line(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(60)], "x,y": X[:, 0], "n": np.arange(60) % 5})
    frame.to_csv(tmp_path / "table.csv", index=False)
    source = str(tmp_path / "table.csv")
    data = commands.load_table(source, drop=["id"], continuous=["n"])
    assert data.names == ("x,y", "n")
    assert data.is_continuous
    assert commands.load_table(source, drop=["x,y", "id"], discrete=["n"]).names == ("n",)
    with pytest.raises(GFlowDAGError, match="no variable 'nobody'"):
        commands.load_table(source, drop=["id,nobody"])


def test_timings_are_in_the_manifest_and_not_in_the_archive(tmp_path: Path) -> None:
    post = gd.fit(X, method="exact", num_samples=5)
    assert post.diagnostics()["seconds"] > 0
    post.save(tmp_path / "posterior.npz")
    meta = json.loads(str(read_npz(tmp_path / "posterior.npz", max_bytes=1 << 20)["meta"]))
    assert not {"seconds", "phases"} & set(meta["diagnostics"])
