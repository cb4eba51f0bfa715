"""The end of a budget of time, which long computations look at between two steps."""

from __future__ import annotations

import math
import time
from typing import NamedTuple, Self


class Deadline(NamedTuple):
    """A moment on this machine's monotonic clock; by default it never comes."""

    moment: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> Self:
        """In so many seconds from now; None is never."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def is_set(self) -> bool:
        """Whether there is an end at all."""
        return self.moment < math.inf

    @property
    def seconds_left(self) -> float:
        """Until the end: infinite where there is none, 0 when it has passed."""
        return max(self.moment - time.monotonic(), 0.0)

    @property
    def has_passed(self) -> bool:
        return self.seconds_left == 0

    def share(self, share: float) -> Deadline:
        """The end of the first `share` of the time that is left."""
        return Deadline.after(share * self.seconds_left) if self.is_set else self

    def earlier(self, seconds: float) -> Deadline:
        """The moment so many seconds before."""
        return Deadline(self.moment - seconds)
