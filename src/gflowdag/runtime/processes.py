"""Several processes that work as one: how they meet, which one leads, and what they agree on.

Every process runs the same program on the same table. Process 0 leads: it alone writes files and prints, and
whatever depends on its clock or its files is told to the others, so that all of them take part in the same
collective operations in the same order.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from gflowdag.errors import DeviceError

T = TypeVar("T")
CONNECT_SECONDS = 120.0


def connect(
    coordinator: str,
    processes: int | None = None,
    process_id: int | None = None,
    *,
    timeout: float = CONNECT_SECONDS,
) -> None:
    """Join the processes of one run, before anything else touches JAX.

    Args:
        coordinator: `"host:port"` on which process 0 can be reached, or `"auto"` to take all three from
            Slurm, Open MPI or Kubernetes.
        processes: how many there are.
        process_id: which one this is, from 0.
        timeout: seconds to wait for the others.

    Raises:
        DeviceError: the numbers make no sense, or not all processes came.
    """
    import jax

    if coordinator == "auto":
        if processes is not None or process_id is not None:
            raise DeviceError(
                "the coordinator 'auto' finds the number of processes and their ids: leave them out"
            )
        try:
            with _libraries_to_standard_error():
                jax.distributed.initialize(initialization_timeout=int(timeout))
                agreed(True)
        except (ValueError, RuntimeError) as error:
            raise DeviceError(
                "no Slurm, Open MPI or Kubernetes job was found around this process: "
                f"give the coordinator as HOST:PORT ({error})"
            ) from error
        return
    if processes is None or process_id is None or not 0 <= process_id < processes:
        raise DeviceError(
            "with a coordinator, give the number of processes and the id of this one: "
            "0 on the machine of the coordinator, then 1, 2, …"
        )
    host, port = _address(coordinator)
    # JAX ends the whole program with a stack trace when somebody is missing: so see first that all are there.
    deadline = time.monotonic() + timeout
    if process_id == 0:
        _wait_for_followers(host, port, processes, deadline)
    else:
        _report_to_leader(host, port, process_id, deadline)
    with _libraries_to_standard_error():
        jax.distributed.initialize(coordinator, processes, process_id, initialization_timeout=int(timeout))
        agreed(True)


def is_leader() -> bool:
    """Whether this is the process that writes files: process 0, or the only one."""
    if "jax" not in sys.modules:  # so nothing has met through it
        return True
    import jax

    return jax.process_index() == 0


def agreed(value: T) -> T:
    """The leader's `value`, an array or a tree of arrays; every process has to ask."""
    if "jax" not in sys.modules:
        return value
    import jax

    if jax.process_count() == 1:
        return value
    from jax.experimental import multihost_utils

    return multihost_utils.broadcast_one_to_all(value)


@contextmanager
def leader_first() -> Iterator[None]:
    """A block that the leader runs before the others; where it fails there, the others do not begin.

    Raises:
        DeviceError: on the other processes, where the leader failed.
    """
    if not is_leader():
        if not bool(agreed(True)):
            raise DeviceError("process 0 could not start the run: see its message")
        yield
        return
    try:
        yield
    except BaseException:
        agreed(False)
        raise
    agreed(True)


@contextmanager
def _libraries_to_standard_error() -> Iterator[None]:
    """A block in which what libraries print goes to standard error: standard output belongs to the answer.

    Gloo greets its peers with a line of its own, from C++, at the first collective operation.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _address(coordinator: str) -> tuple[str, int]:
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise DeviceError(f"the coordinator is HOST:PORT or auto, not {coordinator!r}")
    return host.strip("[]"), int(port)


def _wait_for_followers(host: str, port: int, processes: int, deadline: float) -> None:
    """Wait until every other process has said its id, then let all of them go at once."""
    arrived: dict[int, socket.socket] = {}
    try:
        with socket.create_server(("", port)) as server:
            while len(arrived) < processes - 1:
                server.settimeout(max(deadline - time.monotonic(), 0.01))
                follower, _ = server.accept()
                follower.settimeout(max(deadline - time.monotonic(), 0.01))
                with suppress(ValueError, OSError):  # somebody else knocked
                    arrived[int(follower.recv(16))] = follower
    except TimeoutError as error:
        missing = sorted(set(range(1, processes)) - set(arrived))
        raise DeviceError(
            f"not all {processes} processes connected to {host}:{port} in time, missing: "
            f"{', '.join(map(str, missing))}. Start each with the same coordinator and its own id"
        ) from error
    except OSError as error:
        raise DeviceError(f"cannot listen on port {port}: {error.strerror}. Choose another one") from error
    finally:
        complete = len(arrived) == processes - 1
        for follower in arrived.values():
            with suppress(OSError):
                follower.sendall(b"go" if complete else b"no")
            follower.close()


def _report_to_leader(host: str, port: int, process_id: int, deadline: float) -> None:
    """Tell the leader the id of this process, and wait until all have told theirs."""
    answer = b""
    while time.monotonic() < deadline and not answer:
        try:
            with socket.create_connection((host, port), timeout=1.0) as leader:
                leader.sendall(str(process_id).encode())
                leader.settimeout(max(deadline - time.monotonic(), 0.01))
                answer = leader.recv(2)
        except socket.gaierror as error:
            raise DeviceError(f"there is no machine {host!r}: {error.strerror}") from error
        except OSError:  # not there yet
            time.sleep(0.2)
    if answer != b"go":
        raise DeviceError(
            f"process {process_id} could not reach process 0 at {host}:{port}: is it running, "
            "with the same number of processes, and is the port open between the machines?"
        )
