"""Run folders: what was asked, what came out, and enough to do it again.

A folder holds `config.json` (the question), `manifest.json` (versions, seed, data, device, seconds, status),
`posterior.npz`, `report.html`, and for methods that train `metrics.jsonl` and a checkpoint.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from itertools import count, takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from gflowdag import __version__
from gflowdag.errors import FileFormatError, FolderTakenError, GFlowDAGError
from gflowdag.posterior.archive import TIMINGS
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.checkpoints import CHECKPOINT, METRICS
from gflowdag.runtime.files import PARTIAL, is_object, read_bytes, read_json, write_error, write_json
from gflowdag.runtime.interrupts import interrupt_behind
from gflowdag.runtime.messages import shown
from gflowdag.runtime.strict_json import with_infinities

CONFIG, MANIFEST, POSTERIOR, REPORT = "config.json", "manifest.json", "posterior.npz", "report.html"
# Settings that do not decide the answer; of files their content does, not their names.
# The first three are in `knowledge`.
_BY_CONTENT = ("knowledge_file", "max_parents", "exogenous", "truth_file", "recipe_file", "scores_file")
NOT_ASKED = frozenset(
    ("command", "data", "out", "quiet", "json", "devices", "yes", *_BY_CONTENT, "question_sha256")
)
# Settings that are compared by a hash, and what they are called.
HASHED = {"data_sha256": "table", "score_parameters.sha256": "file of local scores"}
# Settings that version 0.2 did not store, or only as the name of a file; the hash of the table covers most.
_SINCE_0_3 = {"kinds", "bins", "transform", "score_parameters", "prior_parameters", "truth", "recipe"}
_MAX_METRICS_BYTES = 256 << 20
_VERSIONED = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "numba", "pandas", "scikit-learn")


@dataclass(frozen=True)
class Run:
    """A run folder that is being written: a context, inside which no other process can write to it.

    A block that ends in an error leaves a folder with the status "stopped" and the reason.
    """

    folder: Path
    started: float
    claim: int | None  # descriptor of the locked folder

    @classmethod
    def start_new(cls, parent: str | Path, name: str, config: dict[str, Any]) -> Run:
        """Claim the folder `parent/name`, or the first of `name-2`, `name-3`, … that nobody else has.

        Of several processes that ask for one name at the same time, each gets a folder of its own.
        """
        for folder in numbered(parent, name):
            if _made(folder) or _was_refused(folder):
                with contextlib.suppress(FolderTakenError):
                    return cls.start(folder, config)
        raise AssertionError("there is always another number")

    @classmethod
    def start(
        cls,
        folder: str | Path,
        config: dict[str, Any],
        *,
        resume: bool = False,
        may_differ: Collection[str] = (),
    ) -> Run:
        """Claim `folder` for a question; refuse one in which another was worked on, or this one already.

        A folder whose run ended before it wrote an answer or a checkpoint is free. The settings `may_differ`
        may be others when a run is resumed.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder, error) from error
        run = cls(folder, time.perf_counter(), _claim(folder))
        try:
            has_work = holds_work(folder)
            if has_work and not resume:
                raise FolderTakenError(
                    f"{folder} already holds a run: choose another --out, or continue it with --resume"
                )
            if has_work and (others := _differences(read_config(folder), config, may_differ)):
                raise GFlowDAGError(
                    f"{folder} holds a run with other settings: {shown(others)}; resume it with the same ones"
                )
            for leftover in folder.glob(f".*{PARTIAL}"):  # of a process that was killed while it wrote
                leftover.unlink(missing_ok=True)
            write_json(folder / CONFIG, config)
            run._write_manifest("running", {})
        except BaseException:
            run._release()
            raise
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and read_manifest(self.folder).get("status") == "running":
                with contextlib.suppress(GFlowDAGError):  # a full disk: the first error is the one to tell
                    self._write_manifest("stopped", {"reason": str(error) or type(error).__name__})
            if (interrupt := interrupt_behind(error)) is not None:
                interrupt.add_note(self._how_to_go_on())
        finally:
            self._release()

    def finish(self, posterior: Posterior, **facts: Any) -> Path:
        """Write the posterior and mark the run as done."""
        path = self.folder / POSTERIOR
        posterior.save(path)
        timings = {name: value for name, value in posterior.diagnosis.items() if name in TIMINGS}
        self._write_manifest("done", {**facts, "timings": timings})
        return path

    def _how_to_go_on(self) -> str:
        folder = shlex.quote(str(self.folder))
        if (self.folder / POSTERIOR).exists():
            return f"the answer is in {folder}, and gflowdag report {folder} writes its report"
        if (self.folder / CHECKPOINT).exists():
            return f"what was written stays, and the same command with --resume --out {folder} goes on"
        return "no checkpoint was written, so the work is lost: run the same command again"

    def _release(self) -> None:
        if self.claim is not None:
            os.close(self.claim)

    def _write_manifest(self, status: str, facts: dict[str, Any]) -> None:
        manifest = {
            "status": status,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self.started, 3),
            "gflowdag": __version__,
            "python": platform.python_version(),
            "versions": _versions(),
            "device": device_name() if "jax" in sys.modules else "cpu",
            **facts,
        }
        write_json(self.folder / MANIFEST, manifest)


@cache
def _versions() -> dict[str, str]:
    """Of the packages that an answer may depend on."""
    return {name: metadata.version(name) for name in _VERSIONED}


def device_name() -> str:
    """The JAX device that computations run on, in words."""
    import jax

    device = cast(Any, jax).devices()[0]  # JAX leaves it without a type
    return f"{device.platform}: {device.device_kind}"


def last_run(parent: str | Path, name: str) -> Path:
    """The last of the folders `parent/name`, `name-2`, … of which there are any."""
    existing = list(takewhile(Path.exists, numbered(parent, name)))
    if not existing:
        raise GFlowDAGError(
            f"there is no run in {Path(parent) / name} to continue: name its folder by --out, or leave "
            "out --resume"
        )
    return existing[-1]


def numbered(parent: str | Path, name: str, suffix: str = "") -> Iterator[Path]:
    """`parent/name`, then `name-2`, `name-3`, … without end; all with `suffix`."""
    yield Path(parent) / f"{name}{suffix}"
    yield from (Path(parent) / f"{name}-{number}{suffix}" for number in count(2))


def _made(folder: Path) -> bool:
    """Whether there was no such folder and it was made here; of several processes, one makes it."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise write_error(folder, error) from error
    return True


def _was_refused(path: Path) -> bool:
    """Whether a run ended here before it had anything to show."""
    if not (path / MANIFEST).exists() or holds_work(path):
        return False
    return read_manifest(path).get("status") == "stopped"


def holds_work(folder: str | Path) -> bool:
    """Whether a run folder holds an answer or a checkpoint."""
    return any((Path(folder) / name).exists() for name in (POSTERIOR, CHECKPOINT))


def read_config(folder: str | Path) -> dict[str, Any]:
    """The question of a run folder."""
    return _read_object(Path(folder) / CONFIG)


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Versions, seed, data, device and status of a run folder."""
    return _read_object(Path(folder) / MANIFEST)


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """The complete rows of a training run's `metrics.jsonl`, none where there is no such file."""
    path = Path(folder) / METRICS
    if not path.exists():
        return []
    rows: list[Any] = []
    for line in read_bytes(path, max_bytes=_MAX_METRICS_BYTES).splitlines():
        with contextlib.suppress(ValueError, RecursionError):  # a line that a killed run did not finish
            rows.append(json.loads(line))
    return [with_infinities(row) for row in rows if is_object(row)]


def _read_object(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileFormatError(f"{path.parent} is not a run folder: it has no {path.name}")
    content = read_json(path)
    if not is_object(content):
        raise FileFormatError(f"{path} does not hold a JSON object")
    return content


def _claim(folder: Path) -> int | None:
    """Lock a folder for this process; the system frees it when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise FolderTakenError(
                f"another process is writing to {folder}: wait for it, or choose another --out"
            ) from error
        return None  # a file system without locks
    return descriptor


def differing_settings(
    before: dict[str, Any], now: dict[str, Any], may_differ: Collection[str] = ()
) -> list[tuple[str, Any, Any]]:
    """The settings of two runs that decide the answer and differ: name, before, now; None where not given."""
    if "question_sha256" not in before or "question_sha256" not in now:
        before, now = ({k: v for k, v in config.items() if k not in _SINCE_0_3} for config in (before, now))
    before, now = _flat(before), _flat(now)
    names = sorted({*before, *now} - NOT_ASKED - {*may_differ})
    return [
        (name, before.get(name), now.get(name))
        for name in names
        if _given(before.get(name)) != _given(now.get(name))
    ]


def _given(setting: Any) -> Any:
    """A setting; None where it is empty or off, which is as good as not given. Zero is a number."""
    return None if setting is False or setting in ("", [], {}) else setting


def _differences(before: dict[str, Any], now: dict[str, Any], may_differ: Collection[str]) -> list[str]:
    """In words, the settings that decide the answer and differ: all but where and how it is shown."""
    return [
        f"the {HASHED[name]} was a different one"
        if name in HASHED
        else f"{name} was {brief(old)} and is {brief(new)} now"
        for name, old, new in differing_settings(before, now, may_differ)
    ]


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """The settings with the entries of a dictionary one by one, as `knowledge.forbidden`."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        entries = value.items() if is_object(value) else ()
        flat |= {f"{name}.{key}": entry for key, entry in entries} if entries else {name: value}
    return flat


def brief(value: Any) -> str:
    """A setting in a few words."""
    text = "not given" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"
