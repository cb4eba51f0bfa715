"""The state of the two recurrences in a folder, so that a run that was killed can go on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gflowdag.exact.recurrence import Completions, Dags
from gflowdag.runtime.checkpoints import CHECKPOINT, Pace, damaged, read_checkpoint, write_checkpoint

METHOD = "exact"  # in the header, to tell these files from those of chains


class Saved:
    """What was computed before, and what is written down from now on.

    Attributes:
        dags: the first recurrence as far as it came; None if nothing is there.
        completions: the second one, likewise.
    """

    def __init__(self, folder: str | Path, fingerprint: str, d: int, *, resume: bool) -> None:
        """Of one problem of `d` variables, in `folder`; what is there counts only with `resume`.

        Raises:
            FileFormatError: the file is damaged or was written by another version.
            TrainingError: the file belongs to another problem or to other settings.
        """
        self.dags: Dags | None = None
        self.completions: Completions | None = None
        self._folder, self._fingerprint, self._pace = folder, fingerprint, Pace()
        stored = read_checkpoint(folder, fingerprint) if resume else None
        if stored is None:
            return
        try:
            header = stored.header
            arrays = {name: np.array(array) for name, array in stored.arrays.items()}  # to be written to
            shapes = {"dags": (1 << d,), "completions": (1 << d,), "only_root": (d, 1 << (d - 1))}
            for name, array in arrays.items():
                if name in shapes and (array.shape, array.dtype) != (shapes[name], np.float64):
                    raise ValueError(f"{name} is {array.dtype} {array.shape}")
            self.dags = Dags(arrays["dags"], int(header["dags"]))
            if header["completions"]:
                self.completions = Completions(
                    arrays["completions"], arrays["only_root"], int(header["completions"])
                )
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(stored.path, error) from error

    def after_dags(self, state: Dags) -> None:
        """Keep the first recurrence."""
        self.dags = state
        self._write({"dags": state.weight}, dags=state.layers, completions=0)

    def after_completions(self, state: Completions) -> None:
        """Keep both."""
        assert self.dags is not None
        arrays = {"dags": self.dags.weight, "completions": state.weight, "only_root": state.only_root}
        self._write(arrays, dags=self.dags.layers, completions=state.layers)

    def discard(self) -> None:
        """Delete the file, which has gigabytes, once the answer is there."""
        (Path(self._folder) / CHECKPOINT).unlink(missing_ok=True)

    def _write(self, arrays: dict[str, NDArray], **layers: int) -> None:
        with self._pace.when_due(sum(array.nbytes for array in arrays.values())) as is_due:
            if is_due:
                write_checkpoint(self._folder, self._fingerprint, arrays, method=METHOD, **layers)
