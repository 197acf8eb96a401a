"""The parts of JAX that dispatch a call and hold a binary; None where this JAX has others."""

from __future__ import annotations

import re
import warnings
from types import SimpleNamespace
from typing import Any

import jax

_NEWEST = (0, 12)  # that the tests run with. A third number of JAX's versions means that little changes


def untested_version(version: str) -> str:
    """Return a sentence about a JAX that is newer than the newest tested one; empty for others.

    Example:
        >>> untested_version("0.12.3"), untested_version("0.99.0").partition(":")[0]
        ('', 'Explorer is tested with JAX up to 0.12, and this is JAX 0.99.0')
    """
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers <= _NEWEST:
        return ""
    newest = ".".join(map(str, _NEWEST))
    return (
        f"Explorer is tested with JAX up to {newest}, and this is JAX {version}: parts of it may fail or be incomplete."
    )


if untested := untested_version(jax.__version__):
    warnings.warn(untested, stacklevel=2)

internals: Any  # of jax.jit's dispatcher, and of what jax.experimental.serialize_executable pickles
try:
    from jax._src import api_util as _api_util  # pyright: ignore
    from jax._src import core as _core  # pyright: ignore
    from jax._src import stages as _stages  # pyright: ignore
    from jax._src import tree_util as _tree_util  # pyright: ignore
    from jax._src.interpreters import pxla as _pxla  # pyright: ignore
    from jax._src.lax.linalg import initialize_lapack as _initialize_lapack  # pyright: ignore
    from jax._src.lib import _jax as _jaxlib  # pyright: ignore
    from jax._src.lib import pytree as _pytree  # pyright: ignore
    from jax._src.lib import xla_client as _xla_client  # pyright: ignore

    internals = SimpleNamespace(
        function=_jaxlib.pjit,
        cache=_jaxlib.PjitFunctionCache,
        key=_pxla.JitGlobalCppCacheKeys,
        registry=_tree_util.dispatch_registry,
        trees=_pytree.PyTreeRegistry,
        shard=_pxla.cc_shard_arg,
        not_finite=_api_util.InternalFloatingPointError,
        aval=_core.ShapedArray,
        argument=_stages.ArgInfo,
        devices=_xla_client.DeviceList,
        executable=_pxla.UnloadedMeshExecutable,
        initialize_lapack=_initialize_lapack,
    )
except (ImportError, AttributeError):  # pragma: no cover - calls go through Python, native code is compiled anew
    internals = None
