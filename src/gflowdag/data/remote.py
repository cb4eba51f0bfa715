"""Data that may not ship with the package: found in a folder of the user's, or fetched with a checksum."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gflowdag.errors import DataError
from gflowdag.runtime.files import atomic_write

FOLDER_VARIABLE = "GFLOWDAG_DATA"
MAX_BYTES = 50_000_000
_TIMEOUT_SECONDS = 30

Opener = Callable[[str], AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True)
class RemoteFile:
    """A data file that the package does not carry."""

    file_names: tuple[str, ...]  # under any of these names in the user's folder
    sha256: tuple[str, ...]  # of the forms that are in circulation; none: made by the user, bytes may differ
    url: str | None  # where its first name comes from; None: the user has to make it
    remedy: str  # how to get it by hand, one sentence

    def __post_init__(self) -> None:
        if self.url is not None and not self.sha256:
            raise ValueError(f"{self.url} has no checksum: nothing is downloaded without one")


def locate(remote: RemoteFile, *, open_url: Opener | None = None) -> Path:
    """The path of the file: in the folder `GFLOWDAG_DATA`, in the user's cache, or downloaded.

    Args:
        remote: the file.
        open_url: opens a URL for reading bytes; the standard library by default.

    Raises:
        DataError: the file is nowhere and cannot be fetched, or its checksum is another one.
    """
    folders = [cache_folder()]
    if named := os.environ.get(FOLDER_VARIABLE):
        folders.insert(0, Path(named))
    for folder in folders:
        for name in remote.file_names:
            if (path := folder / name).is_file():
                _check_sha256(path.read_bytes(), remote, str(path))
                return path
    if remote.url is None:
        raise DataError(
            f"{remote.file_names[0]} does not ship with the package. {remote.remedy} "
            f"Then set the variable {FOLDER_VARIABLE} to the folder that holds it."
        )
    content = _download(remote, open_url or _open_url)
    _check_sha256(content, remote, remote.url)
    path = folders[0] / remote.file_names[0]
    try:
        with atomic_write(path, "wb") as stream:
            stream.write(content)
    except OSError:  # a folder that only others may write to
        path = folders[-1] / remote.file_names[0]
        with atomic_write(path, "wb") as stream:
            stream.write(content)
    return path


def cache_folder() -> Path:
    """Where downloads are kept: `$XDG_CACHE_HOME/gflowdag`, by default `~/.cache/gflowdag`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gflowdag"


def _download(remote: RemoteFile, open_url: Opener) -> bytes:
    assert remote.url is not None
    try:
        with open_url(remote.url) as response:
            content = response.read(MAX_BYTES + 1)
    except OSError as error:
        raise DataError(
            f"{remote.file_names[0]} does not ship with the package and could not be downloaded ({error}). "
            f"{remote.remedy} Then set the variable {FOLDER_VARIABLE} to the folder that holds it."
        ) from error
    if len(content) > MAX_BYTES:
        raise DataError(f"{remote.url} sent more than {MAX_BYTES // 1_000_000} MB; nothing was kept.")
    return content


def _open_url(url: str) -> AbstractContextManager[IO[bytes]]:
    import urllib.request  # here: with all that it needs it takes a while to load

    return urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS)


def _check_sha256(content: bytes, remote: RemoteFile, source: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if remote.sha256 and found not in remote.sha256:
        raise DataError(
            f"{source} is not the expected file: its SHA-256 is {found}, not {' or '.join(remote.sha256)}. "
            f"Remove it. {remote.remedy}"
        )
