"""Work split over devices: batches are divided along the one axis of a mesh, everything else is a copy.

A learner marks its batch with `split` and leaves the rest to XLA's partitioner, which also reduces the
gradients. Random numbers come from one key for each element of the batch, so that a batch is the same however
many devices share it. Outside `data_parallel` nothing is split and nothing is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, NamedSharding, PartitionSpec, Sharding

from gflowdag.errors import DeviceError
from gflowdag.runtime.processes import agreed

AXIS = "batch"
T = TypeVar("T")


def count_devices(devices: int | str | None, **batches: int) -> int:
    """The number of devices that share the work.

    Args:
        devices: how many the user wants; `"all"`: those of all processes; None: one, but all where there are
            several processes.
        batches: sizes that the devices have to share evenly, under the names that the user knows them by.

    Raises:
        DeviceError: there are fewer devices, or they cannot share a batch evenly.
    """
    count = _available(devices)
    for name, size in batches.items():
        if size % count:
            raise DeviceError(
                f"{count} devices cannot share a {name} of {size} evenly: "
                f"set it to a multiple of {count}, for example {count * -(-size // count)}"
            )
    return count


@contextmanager
def data_parallel(count: int) -> Iterator[None]:
    """A block in which batches are split over the first `count` devices; see `count_devices`."""
    if count == 1:
        yield
        return
    # Auto: the partitioner decides what is not marked. Under `Explicit` every operation would have to say.
    mesh = jax.make_mesh((count,), (AXIS,), (AxisType.Auto,), devices=jax.devices()[:count])
    with jax.set_mesh(mesh):
        yield


def num_shards() -> int:
    """Number of devices that batches are split over here."""
    return jax.sharding.get_abstract_mesh().shape.get(AXIS, 1)


def split(tree: T, axis: int = 0) -> T:
    """Divide the arrays of `tree` over the devices along `axis`, inside `jit`.

    An array that cannot be divided evenly stays a copy on every device.
    """
    count = num_shards()
    spec = PartitionSpec(*[None] * axis, AXIS)

    def one(leaf: Array) -> Array:
        return leaf if leaf.shape[axis] % count else jax.lax.with_sharding_constraint(leaf, spec)

    return tree if count == 1 else _on_arrays(one, tree)


def gathered(tree: T) -> T:
    """The whole of each array on every device, inside `jit`: so that every process can read it."""

    def one(leaf: Array) -> Array:
        return jax.lax.with_sharding_constraint(leaf, PartitionSpec())

    return tree if num_shards() == 1 else _on_arrays(one, tree)


def replicated(tree: T) -> T:
    """Copies of the arrays of `tree` on every device, from outside `jit`; those of the leading process."""
    if num_shards() == 1:
        return tree
    everywhere = NamedSharding(jax.sharding.get_mesh(), PartitionSpec())
    return _on_arrays(lambda leaf: place(agreed(np.asarray(leaf)), everywhere), tree)


def place(array: np.ndarray, sharding: Sharding) -> Array:
    """An array that every process holds, laid out as `sharding` says (where anything is split)."""
    if num_shards() == 1:
        return jnp.asarray(array)
    return jax.make_array_from_callback(array.shape, sharding, lambda part: array[part])


def layout(tree: Any) -> Any:
    """The shardings of the arrays of `tree`, for `jit` to keep; None where nothing is split."""
    return None if num_shards() == 1 else jax.tree.map(lambda leaf: leaf.sharding, tree)


def _on_arrays(function: Callable[[Array], Array], tree: T) -> T:
    return jax.tree.map(lambda leaf: function(leaf) if eqx.is_array(leaf) else leaf, tree)


def _available(devices: int | str | None) -> int:
    visible, processes = len(jax.devices()), jax.process_count()
    if devices == "all" or (devices is None and processes > 1):
        return visible
    if devices is None:
        return 1
    if not isinstance(devices, int) or devices < 1:
        raise DeviceError(f"devices is a positive number or 'all', not {devices!r}")
    if devices > visible:
        raise DeviceError(
            f"{devices} devices were asked for, but {visible} can be seen ({jax.default_backend()}): ask for "
            "fewer, or make several of one processor by "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={devices}"
        )
    if processes > 1 and devices < visible:
        raise DeviceError(
            f"the {processes} processes use all of their {visible} devices: leave the number out"
        )
    return devices
