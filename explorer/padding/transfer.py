"""Calls of padded binaries: inputs are resized to a bucket's shapes, and outputs back.

A compiled program that pads or cuts on a device takes 40 ms to compile for each size on a CPU, and 5 µs to call. NumPy
copies without a compile: 10 to 60 µs for small arrays, and as fast as the program for large ones (8 MB: 230 µs against
306 µs; jax 0.10.2, tests/benchmarks/bench_padding.py). So arrays in host memory are resized by NumPy, and a new size
costs no compile; a size that is called often gets a binary of its own, which needs no padding. Arrays on another device
or on several stay there and are resized by programs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from math import prod
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer._jax.calls import suppress_recording
from explorer._jax.settings import settings_restored
from explorer.padding.interpreter import Fill
from explorer.padding.sizes import Sizes

Shape = tuple[int, ...]
Shapes = Sequence[Shape]
Key = tuple[int, ...]  # sizes of a program's symbols, in their order
B = TypeVar("B")

# Bytes. Sharing memory instead of copying takes 30 µs of Python, in which 1 MB is copied.
_LARGE = 2 << 20
_GUARDS = tuple(f"jax_transfer_guard_{way}" for way in ("host_to_device", "device_to_host", "device_to_device"))
_ALIGNMENT = 64  # bytes, of XLA's buffers on a CPU
_MAX_COUNTED = 4096  # cached element counts; beyond it the cache starts again
_JAX: Any = jax  # untyped parts


class Resize:
    """Resizing of the arrays of calls at one set of sizes, to a bucket's shapes or back.

    Args:
        shapes, targets: Present and new shape of each array; no dimension shrinks, or none grows.
        shardings: Sharding of each target, if they are on several devices.
        fills: Padding value of each array; None for any.
    """

    def __init__(
        self,
        shapes: Shapes,
        targets: Shapes,
        shardings: Sequence[Any] = (),
        fills: Sequence[Fill] = (),
    ) -> None:
        self.targets = targets
        self.changed = [i for i, (shape, target) in enumerate(zip(shapes, targets, strict=True)) if shape != target]
        self._shardings = shardings
        self._fills = fills or (None,) * len(shapes)
        self._programs: dict[tuple[int, ...], Callable[..., list[Any]]] = {}

    def pad(self, arrays: Sequence[Any], is_on_host: bool) -> list[Any]:
        """Return the arrays padded with their fills.

        Args:
            is_on_host: The devices' memory is the host's.
        """
        # Weak types don't matter here: they were settled when the program was traced.
        return self._resize(arrays, _is_plain if is_on_host else _is_numpy, _padded_by_numpy)

    def cut(self, arrays: Sequence[Any], is_on_host: bool) -> list[Any]:
        return self._resize(arrays, _is_strong if is_on_host else _is_numpy, _cut_by_numpy)

    def _resize(
        self, arrays: Sequence[Any], is_host: Callable[[Any], bool], by_numpy: Callable[[Any, Shape, Fill], Any]
    ) -> list[Any]:
        resized = list(arrays)
        left: list[int] = []
        for i in self.changed:
            if is_host(arrays[i]):
                resized[i] = by_numpy(arrays[i], self.targets[i], self._fills[i])
            else:
                left.append(i)
        if left:
            key = tuple(left)
            if key not in self._programs:
                self._programs[key] = self._program(key)
            with suppress_recording():
                results = self._programs[key](*(arrays[i] for i in left))
            for i, array in zip(left, results, strict=True):
                resized[i] = array
        return resized

    def _program(self, positions: Sequence[int]) -> Callable[..., list[Any]]:
        shardings = [self._shardings[i] for i in positions] if self._shardings else None
        targets = [(self.targets[i], self._fills[i]) for i in positions]

        def resized(*arrays: Any) -> list[Any]:
            return [_at_shape(array, *target) for array, target in zip(arrays, targets, strict=True)]

        return jax.jit(resized, out_shardings=shardings)


def _at_shape(array: Any, target: Shape, fill: Fill) -> Any:
    array = array[tuple(slice(0, size) for size in target)]
    if fill is not None:
        behind = [(0, wanted - size, 0) for size, wanted in zip(array.shape, target, strict=True)]
        return jax.lax.pad(array, np.asarray(fill, array.dtype), behind)
    for axis, (size, wanted) in enumerate(zip(array.shape, target, strict=True)):
        if size < wanted:  # random keys can't be 0 nor padded by lax.pad, so the last one is repeated
            array = array[(slice(None),) * axis + (jnp.minimum(jnp.arange(wanted), size - 1),)]
    return array


def _is_numpy(array: Any) -> bool:
    return isinstance(array, np.ndarray)


def _is_strong(array: Any) -> bool:
    return _is_plain(array) and not jax.typeof(array).weak_type


def _is_plain(array: Any) -> bool:
    if not isinstance(array, jax.Array):
        return True
    sharding = cast("Any", array.sharding)
    return not jnp.issubdtype(array.dtype, jax.dtypes.extended) and len(sharding.device_set) == 1


def _padded_by_numpy(array: Any, target: Shape, fill: Fill) -> Any:
    values = np.asarray(array)
    buffer = _empty(target, values.dtype)
    buffer[tuple(map(slice, values.shape))] = values
    # Uninitialized memory would be correct, but denormal numbers are slow and results would vary.
    for axis, (size, wanted) in enumerate(zip(values.shape, target, strict=True)):
        if size < wanted:
            buffer[(*map(slice, values.shape[:axis]), slice(size, None))] = fill or 0
    return _without_copy(buffer) if buffer.nbytes >= _LARGE else buffer


def _cut_by_numpy(array: Any, target: Shape, _: Fill) -> Any:
    view = np.asarray(array)[tuple(map(slice, target))]
    if view.nbytes < _LARGE:
        return jax.device_put(view)
    buffer = _empty(target, view.dtype)
    buffer[...] = view
    return _without_copy(buffer)


def _empty(shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Return an uninitialized NumPy array; a large one is aligned so that XLA can use its memory."""
    size = prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _without_copy(buffer: Any) -> Any:
    """Return a JAX array that shares the buffer's memory if it can; the buffer must not be written to any more."""
    # With several devices, from_dlpack would commit the array to one. NumPy exports only its own dtypes.
    if buffer.dtype.kind not in "iufc" or len(cast("list[Any]", jax.devices())) > 1:
        return jax.device_put(buffer)
    return cast("Any", jax.dlpack.from_dlpack(buffer))


def unguarded() -> AbstractContextManager[None]:
    """Return a context in which `jax.transfer_guard` permits transfers, as these aren't the user's.

    Changing the guard takes 20 µs of a small call's 50, so this happens only if a guard is set.
    """
    config: Any = jax.config
    is_guarded = any(getattr(config, name, None) not in (None, "allow") for name in _GUARDS)
    return _allowed() if is_guarded else nullcontext()


@contextmanager
def _allowed() -> Generator[None]:
    with settings_restored(), jax.transfer_guard("allow"):
        yield


class Timed(NamedTuple):
    """Results of a padded call, and its seconds: in the binary, and for padding and cutting."""

    outputs: list[Any]
    run: float
    overhead: float
    is_waited: bool  # whether the results were finished when `run` ended


@dataclass(eq=False)
class Served(Generic[B]):
    """Binary, and resizing to its bucket and back, of calls at one set of sizes."""

    by: B
    pad: Resize
    cut: Resize
    true: dict[str, Any]  # the sizes, as the binary takes them
    spent: float = 0.0  # seconds that padding has cost

    def call(
        self,
        run: Callable[..., Sequence[Any]],
        arrays: Sequence[Any],
        is_on_host: bool,
        device: Any,
        others: Sequence[Any] = (),
        waits: bool = False,
    ) -> Timed:
        """Pad, run and cut; return the results with the times.

        Args:
            run: Calls the binary with the true sizes, the padded arrays and `others`.
            arrays: The inputs, on one device or from NumPy.
            is_on_host: The device's memory is the host's.
            device: Device to which the outputs are committed, if any.
            waits: Wait for the results, even if nothing needs them.
        """
        start = perf_counter()
        padded = self.pad.pad(arrays, is_on_host)
        called = perf_counter()
        # Padding by NumPy moves arrays that were on the device. Only a user's own NumPy array is a transfer to guard.
        is_given_by_numpy = any(isinstance(array, (np.ndarray, np.generic)) for array in arrays)
        with nullcontext() if is_given_by_numpy else unguarded():
            outputs = run(self.true, padded, *others)
        is_waited = waits or (is_on_host and bool(self.cut.changed))  # NumPy can cut only finished results
        if is_waited:
            _JAX.block_until_ready(outputs)
        ran = perf_counter()
        with unguarded():
            outputs = self.cut.cut(outputs, is_on_host)
            if device is not None:
                outputs = [jax.device_put(output, device) for output in outputs]
        return Timed(outputs, ran - called, (called - start) + (perf_counter() - ran), is_waited)


class Footprint:
    """Shapes of a padded program's inputs and outputs at given sizes.

    Args:
        symbols: Names of the sizes.
        inputs: Return the shapes of the input arrays.
        outputs: Symbolic shapes of the outputs.
        shardings: Sharding of each input, if they are on several devices.
        fills: Padding value of each input; None for any.
    """

    def __init__(
        self,
        symbols: Sequence[str],
        inputs: Callable[[Mapping[str, int]], Shapes],
        outputs: Sequence[Sequence[Any]],
        shardings: Sequence[Any] = (),
        fills: Sequence[Fill] = (),
    ) -> None:
        self._symbols, self._inputs, self._outputs = tuple(symbols), inputs, outputs
        self._shardings, self._fills = shardings, fills
        self._elements: dict[Key, float] = {}

    def key(self, sizes: Mapping[str, int]) -> Key:
        return tuple([sizes[symbol] for symbol in self._symbols])

    def named(self, key: Key) -> dict[str, int]:
        return dict(zip(self._symbols, key, strict=True))

    def inputs(self, key: Key) -> Shapes:
        return self._inputs(self.named(key))

    def outputs(self, key: Key) -> Shapes:
        return [*map(Sizes(self.named(key), {}).shape, self._outputs)]

    def elements(self, key: Key) -> float:
        """Return the number of elements of inputs and outputs, at least 1: the estimate of a program's work."""
        if key not in self._elements:
            if len(self._elements) >= _MAX_COUNTED:
                self._elements.clear()
            self._elements[key] = float(sum(map(prod, [*self.inputs(key), *self.outputs(key)]))) or 1.0
        return self._elements[key]

    def pad(self, key: Key, bucket: Key) -> Resize:
        return Resize(self.inputs(key), self.inputs(bucket), self._shardings, self._fills)

    def served(self, key: Key, by: B, bucket: Key) -> Served[B]:
        """Return a bucket's binary with the resizing by which it serves calls at these sizes."""
        pad, cut = self.pad(key, bucket), Resize(self.outputs(bucket), self.outputs(key))
        with unguarded():
            return Served(by, pad, cut, sizes_as_arrays(self.named(key)))


def sizes_as_arrays(sizes: Mapping[str, int]) -> dict[str, Any]:
    return {symbol: jax.device_put(np.int32(size)) for symbol, size in sizes.items()}
