"""Checkpoints of a training run: the leaves of its state as one `.npz`, no pickle, whole or absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from gflowdag.runtime.checkpoints import METRICS, damaged, of_another_run, read_checkpoint, write_checkpoint
from gflowdag.runtime.devices import place
from gflowdag.runtime.files import atomic_write, write_error
from gflowdag.runtime.processes import is_leader
from gflowdag.runtime.strict_json import dumps

T = TypeVar("T")


def save_checkpoint(folder: str | Path, state: Any, fingerprint: str) -> None:
    """Write the array leaves of `state` to `folder/checkpoint.npz`.

    Typed PRNG keys are stored as their key data. The header carries the schema, the fingerprint of the
    configuration and the path, shape and dtype of every leaf. Every process has to call, as each holds a part
    of the state; one writes.
    """
    leaves = [(jax.tree_util.keystr(path), _plain(leaf)) for path, leaf in _leaves(state)]
    if not is_leader():
        return
    signatures = [_signature(*leaf) for leaf in leaves]
    arrays = {f"leaf{i}": array for i, (_, array) in enumerate(leaves)}
    write_checkpoint(folder, fingerprint, arrays, leaves=signatures)


def load_checkpoint(folder: str | Path, like: T, fingerprint: str) -> T | None:
    """The state in `folder/checkpoint.npz`, in the structure and layout of `like`; None if there is no file.

    Raises:
        FileFormatError: the file is damaged or was written by another version.
        TrainingError: the file belongs to another problem or configuration.
    """
    stored = read_checkpoint(folder, fingerprint)
    if stored is None:
        return None
    try:
        signatures = stored.header["leaves"]
        arrays = [stored.arrays[f"leaf{i}"] for i in range(len(signatures))]
        found = [_signature(name, array) for (name, *_), array in zip(signatures, arrays, strict=True)]
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(stored.path, error) from error
    if found != [_signature(jax.tree_util.keystr(p), _data(leaf)) for p, leaf in _leaves(like)]:
        raise of_another_run(stored.path)
    restored = [_restored(array, leaf) for array, (_, leaf) in zip(arrays, _leaves(like), strict=True)]
    return jax.tree.unflatten(jax.tree.structure(like), restored)


def append_metrics(folder: str | Path, row: dict[str, float]) -> None:
    """Append one row to `folder/metrics.jsonl`."""
    path = Path(folder) / METRICS
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(dumps(row) + "\n")
    except OSError as error:
        raise write_error(path, error) from error


def truncate_metrics(folder: str | Path, step: int) -> None:
    """Drop the rows of `folder/metrics.jsonl` beyond `step`: a resumed run will write them again."""
    path = Path(folder) / METRICS
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError, RecursionError):  # a line that a killed run did not finish
            continue
    with atomic_write(path) as stream:
        stream.writelines(f"{line}\n" for line in kept)


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_leaves_with_path(tree)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _data(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _plain(leaf: Any) -> np.ndarray:
    """The whole of a leaf, from wherever its parts are."""
    data = _data(leaf)
    if isinstance(data, jax.Array) and not (data.is_fully_addressable or data.is_fully_replicated):
        return multihost_utils.process_allgather(data, tiled=True)
    return np.asarray(data)


def _restored(array: np.ndarray, like: Any) -> Any:
    placed = place(array, like.sharding)
    return jax.random.wrap_key_data(placed) if _is_key(like) else placed


def _signature(name: str, array: Any) -> list:
    return [name, list(array.shape), str(array.dtype)]
