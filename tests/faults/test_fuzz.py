"""Random damage at every door: a file is read or refused, and a refusal speaks to the user."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
from doors import ALL_DOORS, SLOW_DOORS, good_files, knock
from tallies import Tally

_ARCHIVES = ("posterior", "checkpoint")
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
    return good_files(tmp_path_factory.mktemp("good"))


def _knock_often(door: str, good: dict[str, bytes], folder: Path, seeds: range) -> None:
    taken = 0
    for seed in seeds:
        rng = random.Random(seed)
        content = good[door]
        content = damaged_archive(content, rng, folder) if door in _ARCHIVES else damaged(content, rng)
        taken += knock(door, content, good, folder)
    # Unreadable lines of metrics are left out; every other door must have refused something, or the fuzzer
    # does no damage.
    assert taken < len(seeds) or door == "metrics"


@pytest.mark.parametrize("door", ALL_DOORS)
def test_damaged_files_are_read_or_refused(door: str, good: dict[str, bytes], tmp_path: Path) -> None:
    _knock_often(door, good, tmp_path, range(20 if door in SLOW_DOORS else 60))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("door", ALL_DOORS)
def test_a_hundred_thousand_damaged_files_are_read_or_refused(
    door: str, good: dict[str, bytes], tmp_path: Path, tally: Tally
) -> None:
    # Reports take a tenth of a second each: the other doors make up for them.
    seeds = range(1000, 3000 if door in SLOW_DOORS else 15_000)
    _knock_often(door, good, tmp_path, seeds)
    tally("damaged files", door, tried=len(seeds))
