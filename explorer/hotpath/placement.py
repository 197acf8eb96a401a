"""The arrays of a signal, split over devices: a mesh of one axis, and JAX's own engine does the rest."""

from __future__ import annotations

from typing import Any, cast

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from explorer._jax import is_top_level
from explorer.errors import SignalsError
from explorer.hotpath.arrays import ARRAYS
from explorer.model.results.hot_paths import Shard, SignalSettings

AXIS = "workers"  # the name of the mesh's one axis


class Placement:
    """Where a signal's arrays go.

    Args:
        settings: The signal's, with a `shard`.

    Raises:
        SignalsError: There are fewer devices.
    """

    def __init__(self, settings: SignalSettings, shard: Shard) -> None:
        self._settings, self._shard = settings, shard
        devices: list[Any] = cast(Any, jax).devices()
        missing = [worker for worker in shard.workers if worker >= len(devices)]
        if missing:
            raise SignalsError(
                f"{self._where}: workers has device {missing[0]}; this machine has {len(devices)}, from 0 on.\n"
                "  Hint: XLA_FLAGS=--xla_force_host_platform_device_count=8 makes a CPU look like 8."
            )
        self.mesh = Mesh(np.array([devices[worker] for worker in shard.workers]), (AXIS,))
        self._split = NamedSharding(self.mesh, PartitionSpec(*[None] * shard.axis, AXIS))
        self._whole = NamedSharding(self.mesh, PartitionSpec())

    @property
    def _where(self) -> str:
        return f"{self._settings.file}, line {self._shard.line}"

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call: arrays that stand for themselves are split, those in containers are on each device.

        Under a trace they are what they were.

        Raises:
            SignalsError: An array can't be split evenly.
        """
        if not is_top_level():
            return args, kwargs
        names = {f"argument {at}": value for at, value in enumerate(args)} | {f"`{k}`": v for k, v in kwargs.items()}
        placed = [self.placed(value, name) for name, value in names.items()]
        return tuple(placed[: len(args)]), dict(zip(kwargs, placed[len(args) :], strict=True))

    def placed(self, value: Any, name: str) -> Any:
        """An argument in its place: what is no array stays what it is."""
        if type(value) in ARRAYS and value.ndim > self._shard.axis:
            return self._device_put(value, self._sharding_of(value, name))
        return jax.tree.map(self._copied, value)

    def _copied(self, leaf: Any) -> Any:
        return self._device_put(leaf, self._whole) if type(leaf) in ARRAYS else leaf

    def _device_put(self, array: jax.Array, sharding: NamedSharding) -> jax.Array:
        return array if array.sharding == sharding else jax.device_put(array, sharding)

    def _sharding_of(self, array: jax.Array, name: str) -> NamedSharding:
        size, workers = array.shape[self._shard.axis], len(self._shard.workers)
        if size % workers:
            raise SignalsError(
                f"{self._where}: axis {self._shard.axis} of {name} has {size:,} elements, which {workers} workers "
                f"can't share evenly.\n  Hint: sizes that are multiples of {workers}, or other workers."
            )
        return self._split
