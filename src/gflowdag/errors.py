"""Errors that speak to the user: what was wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence


class GFlowDAGError(Exception):
    """Anything that the user can put right; the command line prints it without a traceback."""


class ModelWarning(UserWarning):
    """The model that was asked for is known to mislead."""


class DataError(GFlowDAGError, ValueError):
    """The table cannot be used as it is.

    Args:
        message: for the user.
        without: columns; leaving them out mends this problem.
        missing: cells as `COLUMN=CELL`; taking them as missing values mends it.
        discrete: columns; taking their cells as levels mends it.
    """

    def __init__(
        self,
        message: str,
        *,
        without: Sequence[str] = (),
        missing: Sequence[str] = (),
        discrete: Sequence[str] = (),
    ):
        super().__init__(message)
        self.without = tuple(without)
        self.missing = tuple(missing)
        self.discrete = tuple(discrete)


class OptionError(GFlowDAGError, TypeError, ValueError):
    """There is no such option, or not with this value."""


class KnowledgeError(GFlowDAGError, ValueError):
    """The prior knowledge contradicts itself or names unknown variables."""


class ScoreError(GFlowDAGError, ValueError):
    """The score or prior does not fit the data, or its parameters are out of range."""


class TooLargeError(GFlowDAGError, ValueError):
    """The problem does not fit in the time or memory that the user allowed."""


class MissingExtraError(GFlowDAGError, ImportError):
    """An optional package is not installed; the message names the pip command."""


class FileFormatError(GFlowDAGError, ValueError):
    """A file is damaged, of another kind, or written by a newer version."""


class TrainingError(GFlowDAGError, RuntimeError):
    """Training stopped: divergence, or a run that cannot be resumed."""


class FileWriteError(GFlowDAGError, OSError):
    """A file cannot be written: no space, no permission, or something else in its place."""


class FolderTakenError(GFlowDAGError):
    """A run folder holds another run, or another process is writing to it."""


class DeviceError(GFlowDAGError, RuntimeError):
    """The devices or processes that were asked for are not there, or cannot share the work."""


class StatementError(GFlowDAGError, ValueError):
    """A statement about a graph that cannot be read; the message shows the place."""
