"""Arrays as a description in JSON and their bytes, for an executable's file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer.errors import ArchiveError

_DTYPES: dict[str, Any] = {
    kind.dtype.name: kind.dtype for kind in vars(jnp).values() if isinstance(getattr(kind, "dtype", None), np.dtype)
}


def array_to_bytes(array: Any) -> tuple[dict[str, Any], bytes]:
    """An array as its description in JSON and its bytes, little-endian, the last dimension fastest.

    Args:
        array: A JAX or NumPy array of any shape and of any of JAX's dtypes, PRNG keys too.

    Raises:
        ArchiveError: It has another dtype.

    Example:
        >>> array_to_bytes(np.arange(3, dtype="int16"))
        ({'dtype': 'int16', 'shape': [3]}, b'\\x00\\x00\\x01\\x00\\x02\\x00')
    """
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        description, content = array_to_bytes(jax.random.key_data(array))
        return {**description, "key": str(jax.random.key_impl(array))}, content
    host = np.asarray(array)
    if host.dtype.name not in _DTYPES:
        raise ArchiveError(f"an array of dtype {host.dtype} can't be in a file; those of JAX's dtypes can.")
    # A NumPy array may have the other byte order; JAX runs on little-endian machines only.
    plain = host.astype(_DTYPES[host.dtype.name], copy=False)
    return {"dtype": plain.dtype.name, "shape": list(plain.shape)}, plain.tobytes()


def _is_shape(shape: list[Any]) -> bool:
    return all(type(size) is int and size >= 0 for size in shape)


def array_from_bytes(description: Mapping[str, Any], content: bytes) -> Any:
    """The reverse of `array_to_bytes`; other entries of `description` are ignored.

    Returns:
        A read-only NumPy array over `content`, which is not copied; or a JAX array, of PRNG keys.

    Raises:
        ArchiveError: They describe no array.

    Example:
        >>> array_from_bytes({"dtype": "int16", "shape": [3]}, bytes(6))
        array([0, 0, 0], dtype=int16)
    """
    match description:
        case {"dtype": str(name), "shape": [*shape]} if name in _DTYPES and _is_shape(shape):
            dtype = _DTYPES[name]
        case _:
            raise ArchiveError(f"{description!r:.200} describes no array.")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ArchiveError(f"{len(content):,} bytes are no {name} array of shape {shape!s:.200}.")
    if name == "bool" and content.strip(b"\0\1"):
        raise ArchiveError("a bool array has bytes other than 0 and 1.")
    try:
        array: Any = np.ndarray(shape, dtype, buffer=content)
        return (
            array if "key" not in description else cast(Any, jax.random.wrap_key_data(array, impl=description["key"]))
        )
    except (TypeError, ValueError) as error:
        raise ArchiveError(f"{description!r:.200} describes no array: {error}.") from None
