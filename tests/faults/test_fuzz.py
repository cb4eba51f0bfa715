"""Random damage at every door: a file is read or refused, and a refusal speaks to the user."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from gflowdag import commands, runs
from gflowdag.data import Dataset, Knowledge
from gflowdag.data.bif import read_bif
from gflowdag.errors import GFlowDAGError
from gflowdag.gflownet.checkpoint import load_checkpoint, save_checkpoint, truncate_metrics
from gflowdag.posterior import Posterior
from gflowdag.truth import align, read_edges

NAMES = ("a", "b", "c")
STATE = {"step": jnp.zeros((), jnp.int32), "weights": jnp.ones((3, 2), jnp.float32)}
# Pieces that parsers stumble over: numbers at the edge, quotes, brackets, control and combining characters.
SCRAPS = [
    *(
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b"\t",
        b'"',
        b"'",
        b"\\",
        b",",
        b";",
        b"|",
        b"=",
        b" ",
    ),
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"(",
        b")",
        b"[" * 3000,
        b"{" * 3000,
        b'{"a":' * 2000,
        b"/*",
        b"//",
        b"#",
        b"re:(",
    ),
    *(
        b"nan",
        b"inf",
        b"-inf",
        b"1e999",
        b"1e308",
        b"-0",
        b"9" * 30,
        b"9" * 5000,
        b"1_0",
        b"0x1",
        b"1,5",
        b"true",
    ),
    *(b"null", b"NA", b"None", b"a", b"b", b"source", b"discrete", b"table", b"PK\x03\x04", b"\x93NUMPY"),
    *(
        "😀\u202e\u0301\u2028".encode(),
        b"\x1b[2J",
        b"<script>",
        b"re:(a+)+",
        b"re:a{99999999999}",
        b"\xed\xa0\x80",
    ),
]


VALUES = [
    None,
    True,
    -1,
    0.5,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "text",
    [],
    [[1, "a"]],
    [[[]]],
    {},
    {"a": []},
]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """`content` after one to six random cuts, copies, flips and insertions."""
    for _ in range(rng.randint(1, 6)):
        start = rng.randint(0, len(content))
        end = min(len(content), start + rng.choice((0, 1, 1, 2, 8, 64, 4096)))
        piece = content[start:end]
        change = rng.randrange(6)
        if change == 0:
            piece = b""
        elif change == 1:
            piece *= rng.randint(2, 4)
        elif change == 2:
            piece = bytes(byte ^ (1 << rng.randrange(8)) for byte in piece)
        elif change == 3:
            piece = rng.choice(SCRAPS) + piece
        elif change == 4:
            piece = rng.choice(SCRAPS)
        else:
            piece = rng.randbytes(len(piece))
        content = content[:start] + piece + content[end:]
    return content


def damaged_archive(content: bytes, rng: random.Random, folder: Path) -> bytes:
    """An `.npz` whose members are damaged inside an intact zip file, or the file itself damaged."""
    if rng.random() < 0.3:
        return damaged(content, rng)
    source, target = folder / "source.npz", folder / "target.npz"
    source.write_bytes(content)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        members = old.namelist()
        texts = [name for name in members if name in ("meta.npy", "header.npy")]
        chosen = rng.choice(texts if rng.random() < 0.5 else members)
        for name in members:
            member = old.read(name)
            if name == chosen:
                member = _damaged_json(member, rng) if name in texts else _damaged_member(member, rng)
            new.writestr(name, member)
    return target.read_bytes()


def _damaged_json(member: bytes, rng: random.Random) -> bytes:
    """A text member with one value of its JSON replaced, or with its text damaged."""
    text = str(np.load(io.BytesIO(member), allow_pickle=False))
    if rng.random() < 0.3:
        text = damaged(text.encode(), rng).decode("utf-8", "replace")
    else:
        content = json.loads(text)
        place = content["diagnostics"] if "diagnostics" in content and rng.random() < 0.7 else content
        place[rng.choice(list(place))] = rng.choice(VALUES)
        text = json.dumps(content)
    stream = io.BytesIO()
    np.save(stream, np.array(text))
    return stream.getvalue()


def _damaged_member(member: bytes, rng: random.Random) -> bytes:
    """An array with another header (shape, type) over the same bytes, or with bytes changed."""
    if rng.random() < 0.5:
        return damaged(member, rng)
    header = {
        "descr": rng.choice(["|O", "<f8", "<f4", "|u1", "<U4", "<i8", "|V8", "<c16", "<M8[s]", "<U99999999"]),
        "fortran_order": rng.random() < 0.2,
        "shape": tuple(rng.choice((0, 1, 2, 3, 9, 10**6, 10**12, -1)) for _ in range(rng.randint(0, 4))),
    }
    text = repr(header).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + member[128:]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """An intact file for each door."""
    folder = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 3))
    table = "a,b,c\n" + "\n".join(",".join(f"{x:.4f}" for x in row) for row in values) + "\n"
    labels = "a,b,c,target\n" + "\n".join(
        ",".join(rng.choice(["yes", "no"], 3)) + "," + rng.choice(["", "a", "b+c"]) for _ in range(12)
    )
    samples = np.triu(rng.integers(0, 2, (4, 3, 3)), 1)
    details = {
        "verdict": "trusted",
        "explanation": "ok",
        "chosen": "this",
        "notes": ["n"],
        **dict.fromkeys(("ess", "pareto_k", "r_hat", "effective_samples", "acceptance", "iterations"), 0.5),
        **dict.fromkeys(("edge_errors", "raw_edge_probabilities", "score_traces"), np.eye(3)),
    }
    Posterior(samples, NAMES, log_scores=np.zeros(4), log_evidence=-3.0, details=details).save(
        folder / "p.npz"
    )
    save_checkpoint(folder, STATE, "print")
    config = {
        "data": "nowhere.csv",
        "method": "exact",
        "samples": 10,
        "seed": 0,
        "knowledge": None,
        "truth": None,
    }
    bif = (
        "network n { }\nvariable a { type discrete [ 2 ] { yes, no }; }\n"
        "variable b { type discrete [ 2 ] { yes, no }; }\nprobability ( a ) { table 0.2, 0.8; }\n"
        "probability ( b | a ) { (yes) 0.1, 0.9; (no) 0.5, 0.5; }\n"
    )
    toml = (
        'required = [["a", "b"]]\nforbidden = [["c", "re:[ab]"]]\ntiers = [["a"], ["b", "c"]]\n'
        "max_parents = 2\n"
    )
    return {
        "csv": table.encode(),
        "labels": labels.encode(),
        "truth": b"source,target\na,b\nb,c\n",
        "toml": toml.encode(),
        "bif": bif.encode(),
        "posterior": (folder / "p.npz").read_bytes(),
        "config": json.dumps(config).encode(),
        "metrics": b'{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n',
        "checkpoint": (folder / "checkpoint.npz").read_bytes(),
    }


def _read_run(folder: Path, good: dict[str, bytes], **changed: bytes) -> None:
    """What `gflowdag report` and `query` do with a stranger's run folder."""
    files = {"config.json": "config", "metrics.jsonl": "metrics", "posterior.npz": "posterior"}
    for name, door in files.items():
        (folder / name).write_bytes(changed.get(door, good[door]))
    (folder / "manifest.json").write_bytes(changed.get("config", b"{}"))
    posterior = Posterior.load(folder)
    commands.rewrite_report(folder, folder / "report.html")
    for question in ("edge", "path", "blanket"):
        commands.answer(posterior, question, posterior.names[0], None)
    commands.export_text(posterior, "graphml", 0.0)


def _read_checkpoint(path: Path) -> None:
    (path.parent / "checkpoint.npz").write_bytes(path.read_bytes())
    load_checkpoint(path.parent, STATE, "print")


def _read_metrics(path: Path) -> None:
    (path.parent / "metrics.jsonl").write_bytes(path.read_bytes())
    truncate_metrics(path.parent, 1)
    runs.read_metrics(path.parent)


DOORS: dict[str, Callable[[Path], object]] = {
    "csv": Dataset.from_csv,
    "labels": lambda path: Dataset.from_csv(path, interventions="target"),
    "truth": lambda path: align(read_edges(path), NAMES),
    "toml": lambda path: Knowledge.from_toml(path).resolve(NAMES),
    "bif": read_bif,
    "checkpoint": _read_checkpoint,
    "metrics": _read_metrics,
}
ARCHIVES = ("posterior", "checkpoint")


def knock(door: str, good: dict[str, bytes], folder: Path, seed: int) -> bool:
    """Present one damaged file; whether it was taken for good. Anything but a `GFlowDAGError` is raised."""
    rng = random.Random(seed)
    content = good[door]
    content = damaged_archive(content, rng, folder) if door in ARCHIVES else damaged(content, rng)
    path = folder / f"{door}.file"
    path.write_bytes(content)
    try:
        if door in DOORS:
            DOORS[door](path)
        else:
            _read_run(folder, good, **{door: content})
    except GFlowDAGError:
        return False
    return True


def _knock_often(door: str, good: dict[str, bytes], folder: Path, seeds: range) -> None:
    taken = sum(knock(door, good, folder, seed) for seed in seeds)
    # Unreadable lines of metrics are left out; every other door must have refused something, or the fuzzer
    # does no damage.
    assert taken < len(seeds) or door == "metrics"


@pytest.mark.parametrize("door", [*DOORS, "posterior", "config"])
def test_damaged_files_are_read_or_refused(door: str, good: dict[str, bytes], tmp_path: Path) -> None:
    _knock_often(door, good, tmp_path, range(20 if door in ("posterior", "config") else 60))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("door", [*DOORS, "posterior", "config"])
def test_a_hundred_thousand_damaged_files_are_read_or_refused(
    door: str, good: dict[str, bytes], tmp_path: Path
) -> None:
    # Reports take a tenth of a second each; the other seven doors share what is left of the 100,000.
    _knock_often(door, good, tmp_path, range(1000, 3000 if door in ("posterior", "config") else 15_000))
