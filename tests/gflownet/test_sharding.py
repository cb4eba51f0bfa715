"""Several devices, and several processes, give what one gives; what they cannot share is refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fork_server import LONGEST

from gflowdag.errors import DeviceError
from gflowdag.runtime.devices import count_devices, data_parallel, num_shards, split
from gflowdag.runtime.processes import connect

HERE = Path(__file__).resolve().parent
# Reductions run in another order; Adam divides by the size of a gradient, which may be near nothing.
ROUNDING = 1e-5


def start(*arguments: str | Path, devices: int) -> subprocess.Popen[str]:
    """`sharded_run.py ARGUMENTS` on that many virtual devices of the processor."""
    environment = {
        **os.environ,
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}",
    }
    return subprocess.Popen(
        [sys.executable, HERE / "sharded_run.py", *map(str, arguments)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        errors = process.communicate(timeout=LONGEST)[1]
        assert process.returncode == 0, errors


def outcomes(path: Path) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """By learner and number of devices: parameters, samples and their log probability ratios."""
    found: dict[tuple[str, int], dict[str, np.ndarray]] = {}
    with np.load(path) as stored:
        for key in stored.files:
            name, count, part = key.split()
            found.setdefault((name, int(count)), {})[part] = stored[key]
    return found


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    np.testing.assert_array_equal(one["samples"], other["samples"])
    for part in ("params", "log_ratio"):
        np.testing.assert_allclose(one[part], other[part], rtol=ROUNDING, atol=ROUNDING)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def on_devices(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    path = tmp_path_factory.mktemp("devices") / "outcomes.npz"
    finish(start(path, "edge,order", "1,2,4", devices=4))
    return outcomes(path)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("learner", ["edge", "order"])
def test_several_devices_learn_and_draw_what_one_does(on_devices, learner: str, count: int) -> None:
    assert_same(on_devices[learner, 1], on_devices[learner, count])


def test_two_processes_learn_and_draw_what_two_devices_do(on_devices, tmp_path: Path) -> None:
    path, coordinator = tmp_path / "outcomes.npz", f"127.0.0.1:{free_port()}"
    finish(*(start(path, "edge,order", 2, coordinator, 2, i, devices=1) for i in range(2)))
    for learner, count in (("edge", 2), ("order", 2)):
        assert_same(on_devices[learner, count], outcomes(path)[learner, count])


@pytest.mark.long
def test_a_replay_buffer_in_parts_serves_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.npz"
    finish(start(path, "paper", "1,4", devices=4))
    found = outcomes(path)
    assert_same(found["paper", 1], found["paper", 4])


def test_nothing_is_split_over_one_device() -> None:
    array = np.zeros((4, 2))
    with data_parallel(count_devices("all")):
        assert num_shards() == 1
        assert split(array) is array


def test_more_devices_than_there_are_is_refused() -> None:
    with pytest.raises(DeviceError, match="1000 devices were asked for, but 1 can be seen"):
        count_devices(1000)
    with pytest.raises(DeviceError, match="positive number or 'all'"):
        count_devices("some")


def test_a_batch_that_cannot_be_shared_names_one_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax.devices", lambda: [None] * 3)
    with pytest.raises(DeviceError, match=r"3 devices cannot share a batch_size of 256 .* for example 258"):
        count_devices("all", batch_size=256)
    assert count_devices("all", batch_size=258) == 3


def test_processes_that_do_not_come_are_named_in_time() -> None:
    coordinator = f"127.0.0.1:{free_port()}"
    with pytest.raises(DeviceError, match=r"not all 3 processes connected to .* missing: 1, 2"):
        connect(coordinator, 3, 0, timeout=0.2)
    with pytest.raises(DeviceError, match="process 1 could not reach process 0"):
        connect(coordinator, 2, 1, timeout=0.5)


@pytest.mark.parametrize("address", ["nowhere", "host:port", "host:99999999", ":1"])
def test_a_coordinator_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(DeviceError, match="HOST:PORT"):
        connect(address, 2, 0)


@pytest.mark.parametrize("processes", [(2, None), (None, 0), (2, 2)])
def test_a_process_says_which_one_of_how_many_it_is(processes: tuple) -> None:
    with pytest.raises(DeviceError, match="number of processes and the id"):
        connect("127.0.0.1:1", *processes)
