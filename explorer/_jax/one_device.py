"""Whether a traced program is for one device, without lowering it, which takes a third of what its trace took."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from jax.sharding import Sharding

_lowering: Any  # what lowering itself asks for the devices of a program; nothing public says it
try:
    from jax._src.core import jaxpr_const_args as _constants  # pyright: ignore
    from jax._src.dispatch import get_intermediate_shardings as _inner_shardings  # pyright: ignore
    from jax._src.named_sharding import UnspecifiedValue as _Unspecified  # pyright: ignore

    _lowering = SimpleNamespace(constants=_constants, inner_shardings=_inner_shardings, unspecified=_Unspecified)
except ImportError:  # pragma: no cover - each program is lowered, which says it too
    _lowering = None


def is_of_one_device(traced: Any) -> bool:
    """True if a `jax.stages.Traced` lowers, if it does, to a program for one device; False where only lowering says."""
    if _lowering is None:
        return False
    try:
        mesh = traced._params["ctx_mesh"]
        is_plain = not getattr(traced.jaxpr, "is_high", False) and (mesh.empty or mesh.size == 1)
        return is_plain and all(map(_is_single, _shardings(traced)))
    except (AttributeError, KeyError, TypeError):  # a JAX that keeps them elsewhere, or what wraps its trace
        return False


def _shardings(traced: Any) -> Iterator[Any]:
    """The shardings that lowering compares: of arguments, results, what is inside, and constants that are passed in."""
    params = traced._params
    jaxpr = getattr(params["jaxpr"], "jaxpr", params["jaxpr"])  # closed in older versions
    yield from (argument.sharding for argument in traced._meta_tys_flat)
    yield from params["in_shardings"]
    yield from params["out_shardings"]
    yield from (sharding for sharding, _ in _lowering.inner_shardings(jaxpr))
    yield from (getattr(constant, "sharding", None) for constant, _ in _lowering.constants(jaxpr))


def _is_single(sharding: Any) -> bool:
    if sharding is None or isinstance(sharding, _lowering.unspecified):
        return True
    return isinstance(sharding, Sharding) and sharding.num_devices == 1
