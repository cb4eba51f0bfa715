"""Files: written whole or not at all, and read only after a look at what they are and how large."""

from __future__ import annotations

import json
import math
import os
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeGuard

import numpy as np

from gflowdag.errors import FileFormatError, FileWriteError
from gflowdag.runtime.interrupts import interrupts_held
from gflowdag.runtime.strict_json import dumps

_ZIP64_BYTES = 32  # the only extra that an entry of ours has; more, or a comment, may hide the next entry
PARTIAL = ".part"  # ending of the temporary files that a killed process leaves behind


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` and move it there when the block ends without an error.

    A reader sees the old file or the new one, never half of one, also after a crash; Ctrl-C takes effect when
    the file is there. A device or a pipe (`/dev/stdout`) is written to as it is.

    Args:
        path: destination; its folder is created.
        mode: `"w"` for UTF-8 text, `"wb"` for bytes.

    Raises:
        FileWriteError: no space, no permission, or a folder of that name.
    """
    path = Path(path)
    # A file name or a setting may hold bytes that are no text; a question mark is better than no file.
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "errors": "replace"}
    try:
        if path.exists() and not path.is_file():
            with path.open(mode, **text) as stream:
                yield stream
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with interrupts_held(), _moved_into_place(path, mode, text) as stream:
            yield stream
    except OSError as error:
        raise write_error(path, error) from error


@contextmanager
def _moved_into_place(path: Path, mode: str, text: dict[str, Any]) -> Iterator[IO[Any]]:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL)
    try:
        with os.fdopen(handle, mode, **text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def move_to_free(path: Path, destinations: Iterable[Path]) -> Path:
    """Give a file the first name of `destinations` that nobody has; returns it.

    Of several processes that want one name at the same time, one gets it and the others the next.
    """
    try:
        return next(destination for destination in destinations if _takes_name(path, destination))
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        path.unlink(missing_ok=True)


def _takes_name(path: Path, destination: Path) -> bool:
    try:
        os.link(path, destination)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            os.close(os.open(destination, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        os.replace(path, destination)
    return True


def write_error(path: str | Path, error: OSError) -> FileWriteError:
    """What to tell the user when `path` cannot be written."""
    return FileWriteError(f"cannot write {path}: {error.strerror or error}")


def write_json(path: str | Path, content: Any) -> None:
    """Write `content` as indented JSON that every parser reads; see `strict_json`."""
    with atomic_write(path) as stream:
        stream.write(dumps(content, indent=2) + "\n")


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays as a compressed `.npz`, without pickle and with reproducible bytes."""
    with atomic_write(path, "wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def read_bytes(path: str | Path, *, max_bytes: int) -> bytes:
    """The content of a regular file; a pipe, a device, a folder and what is too large are not opened.

    Raises:
        FileFormatError: there is no such file, or it is none of ours.
    """
    if (size := file_size(path)) > max_bytes:
        raise FileFormatError(f"{path} has {_mib(size)}, more than {_mib(max_bytes)}: refused")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileFormatError(f"cannot read {path}: {error.strerror}") from error


def file_size(path: str | Path) -> int:
    """Bytes of a regular file, or a `FileFormatError` where there is none."""
    try:
        facts = Path(path).stat()
    except FileNotFoundError as error:
        raise FileFormatError(f"{path} does not exist") from error
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise FileFormatError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from error
    if not stat.S_ISREG(facts.st_mode):
        raise FileFormatError(f"{path} is not a regular file")
    return facts.st_size


def read_json(path: str | Path, *, max_bytes: int = 16 << 20) -> Any:
    """What a JSON file holds, or a `FileFormatError`."""
    content = read_bytes(path, max_bytes=max_bytes)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} is not JSON, or it is damaged: {error}") from error


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value from a JSON file is an object: its keys are texts."""
    return isinstance(value, dict)


def read_npz(path: str | Path, *, max_bytes: int) -> dict[str, np.ndarray]:
    """The arrays of a `.npz` file of numbers and text, read-only.

    Sizes are checked before memory is taken: `max_bytes` bounds what the file unpacks to, and no array may
    claim more than its member holds.

    Raises:
        FileFormatError: there is no such file, it is too large, damaged, or holds anything but plain arrays.
    """
    file_size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if any(member.comment or len(member.extra) > _ZIP64_BYTES for member in members):
                raise ValueError("its directory has entries that were not written by gflowdag")
            size = sum(member.file_size for member in members)
            if size > max_bytes:
                raise FileFormatError(f"{path} would unpack to {_mib(size)}, more than {_mib(max_bytes)}")
            return {member.filename.removesuffix(".npy"): _read_member(archive, member) for member in members}
    except FileFormatError:
        raise
    except Exception as error:  # whatever a hostile archive makes zipfile or NumPy raise
        raise FileFormatError(
            f"{path} is not an .npz file of gflowdag, or it is damaged ({error})"
        ) from error


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is compressed in a way that gflowdag does not write")
    headers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with archive.open(member) as stream:
        shape, is_fortran, dtype = headers[np.lib.format.read_magic(stream)](stream)
        if dtype.kind not in "biufU" or min(shape, default=0) < 0:
            raise ValueError(f"{member.filename} holds no plain numbers or text")
        if stream.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"{member.filename} has another size than it claims")
        content = stream.read()
    if dtype.kind == "U":
        codes = np.frombuffer(content, np.dtype("u4").newbyteorder(dtype.byteorder))
        if codes.max(initial=0) > sys.maxunicode:
            raise ValueError(f"{member.filename} holds no text")
    return np.ndarray(shape, dtype, content, order="F" if is_fortran else "C")


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.0f} MiB"


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced; of a new one, those that the user's umask leaves."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0o077)  # it can only be read by setting it, and other threads may write meanwhile
    os.umask(umask)
    return 0o666 & ~umask
