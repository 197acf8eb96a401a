"""What goes to another process and comes back, as bytes.

They travel between the processes of one person's executor, and are never kept in a file. A function of a notebook or a
lambda goes by value, as `cloudpickle` writes it: the standard library's pickle writes a function's name alone, which
the other process can't find.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from importlib import import_module
from io import BytesIO
from typing import Any, cast

import jax
import jax.numpy as jnp

from explorer._jax.arguments import is_jitted, jit_options
from explorer.errors import ArgumentsError, ExplorerError, MissingPackageError
from explorer.files import capture as capture_file
from explorer.model.capture import Capture


def pack(value: Any, verb: str) -> bytes:
    """A value with the functions in it; of a capture what `Capture.save` keeps.

    Raises:
        ArgumentsError: Something in it belongs to this process alone: a lock, an open file, an array over several
            devices.
        MissingPackageError: cloudpickle is not installed.
    """
    __tracebackhide__ = True
    buffer = BytesIO()
    try:
        _pickler(buffer).dump(value)
    except (TypeError, AttributeError, pickle.PicklingError, ValueError) as error:
        raise ArgumentsError(
            f"{verb} can't send this function with its arguments to another process: {error}.\n"
            f"  Hint: make what belongs to one process inside the function or in args=; or leave executor= out."
        ) from error
    return buffer.getvalue()


def unpack(data: bytes) -> Any:
    """What `pack` packed."""
    return pickle.loads(data)


def _pickler(buffer: BytesIO) -> Any:
    try:
        import cloudpickle
    except ImportError:
        raise MissingPackageError(
            "executor= sends functions to other processes by cloudpickle, which is not installed.\n"
            "  Hint: pip install cloudpickle."
        ) from None
    base: Any = cloudpickle.Pickler

    class Packer(base):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Capture):
                return capture_file.decode, (obj.wire,)
            if isinstance(obj, jax.Array):
                return _array(obj)
            if is_jitted(obj):
                return _jitted(obj)
            if isinstance(obj, ExplorerError):  # the error behind it is the user's own, and may hold anything
                return _error, (type(obj), obj.args, dict(vars(obj)))
            inherited: Any = super()
            return inherited.reducer_override(obj)

    return Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL)


def _jitted(function: Any) -> Any:
    """JAX lets these be pickled, and what comes back can be called and not traced."""
    module, name = function.__module__, function.__qualname__
    if module != "__main__" and _named(module, name) is function:
        return _named, (module, name)
    options = jit_options(function)
    if options is None:
        raise TypeError(f"the jax.jit of {name} places arrays on devices of this process")
    return _jit, (function.__wrapped__, options)


def _named(module: str, name: str) -> Any:
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _jit(function: Any, options: Mapping[str, Any]) -> Any:
    return jax.jit(function, **options)


def _array(array: Any) -> Any:
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):  # which pickle refuses
        return _keys, (jax.random.key_data(array), str(jax.random.key_impl(array)))
    devices = len(array.sharding.device_set)
    if devices > 1:  # pickle would bring it back on one device, and the program be another
        raise TypeError(f"an array {array.shape} lies on {devices} devices of this process")
    return NotImplemented


def _keys(data: jax.Array, implementation: str) -> jax.Array:
    return cast("Any", jax.random).wrap_key_data(data, impl=implementation)


def _error(kind: type[ExplorerError], args: tuple[Any, ...], state: dict[str, Any]) -> ExplorerError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error
