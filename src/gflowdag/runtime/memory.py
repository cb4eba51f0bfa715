"""How much memory this machine, or the container that the process is in, has."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_UNKNOWN = 8 << 30  # where the system does not say
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def total_memory() -> int:
    """Bytes, whether they are in use or not."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        total = _UNKNOWN
    for path in _LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            total = min(total, int(Path(path).read_text()))
    return total
