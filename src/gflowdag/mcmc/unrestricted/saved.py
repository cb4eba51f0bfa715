"""The state of a run as one file without pickle, so that it can go on where it was."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gflowdag.mcmc.unrestricted.candidate_sets import Pools
from gflowdag.mcmc.unrestricted.focus import Focus
from gflowdag.mcmc.unrestricted.run import Records, State
from gflowdag.runtime.checkpoints import (
    SECONDS_BETWEEN,
    SHARE_OF_TIME,
    damaged,
    read_checkpoint,
    write_checkpoint,
)


def save_state(folder: str | Path, state: State, fingerprint: str) -> None:
    """Write a state to `folder/checkpoint.npz`, whole or not at all.

    Args:
        folder: made if it is not there.
        state: of the segments, only those that there are so far.
        fingerprint: of the problem and the settings that it belongs to.
    """
    write_checkpoint(folder, fingerprint, _arrays(state), room=_room(state.records))


def load_state(folder: str | Path, fingerprint: str) -> State | None:
    """The state in `folder/checkpoint.npz`; None if there is no file.

    Raises:
        FileFormatError: the file is damaged or was written by another version.
        TrainingError: the file belongs to another problem or to other settings.
    """
    stored = read_checkpoint(folder, fingerprint)
    if stored is None:
        return None
    try:
        return _state(stored.arrays, int(stored.header["room"]))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise damaged(stored.path, error) from error


class Saver:
    """Writes the states that it is given, but not more often than is worth it."""

    def __init__(self, folder: str | Path, fingerprint: str) -> None:
        self._folder, self._fingerprint = folder, fingerprint
        self._due = time.monotonic() + SECONDS_BETWEEN

    def __call__(self, state: State) -> None:
        if time.monotonic() >= self._due:
            self.save(state)

    def save(self, state: State) -> None:
        """Write a state now."""
        began = time.monotonic()
        save_state(self._folder, state, self._fingerprint)
        ended = time.monotonic()
        self._due = ended + max(SECONDS_BETWEEN, (ended - began) / SHARE_OF_TIME)


_PER_SEGMENT = ("edges", "log_scores", "parents", "last_log_scores")  # of the records, [chains, S, ...]


def _room(records: Records) -> int:
    return records.log_scores.shape[1]


def _arrays(state: State) -> dict[str, NDArray]:
    records = {name: getattr(state.records, name)[:, : state.records.number] for name in _PER_SEGMENT}
    numbers = {"number": state.records.number, "length": state.records.length}
    own = {name: getattr(state, name) for name in ("parents", "random", "num_sweeps", "reversals")}
    return {
        **{f"pools.{name}": part for name, part in state.pools._asdict().items() if name != "focus"},
        **{f"focus.{name}": part for name, part in state.pools.focus._asdict().items()},
        **{f"records.{name}": np.asarray(part) for name, part in {**records, **numbers}.items()},
        **{name: np.asarray(part) for name, part in own.items()},
    }


def _state(stored: dict[str, NDArray], room: int) -> State:
    number = int(stored["records.number"])
    records = {}
    for name in _PER_SEGMENT:
        part = stored[f"records.{name}"]
        whole = np.zeros((part.shape[0], room, *part.shape[2:]), part.dtype)
        whole[:, :number] = part
        records[name] = whole
    return State(
        Pools(
            **{name: np.array(stored[f"pools.{name}"]) for name in Pools._fields if name != "focus"},
            focus=Focus(*(np.array(stored[f"focus.{name}"]) for name in Focus._fields)),
        ),
        np.array(stored["parents"]),
        np.array(stored["random"]),
        Records(**records, number=number, length=int(stored["records.length"])),
        int(stored["num_sweeps"]),
        np.array(stored["reversals"]),
    )
