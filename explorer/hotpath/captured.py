"""What the compiler made of a hot function, to be looked at: nothing of a call is kept for it but kinds of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

import jax

from explorer.capture.explore import CompileRequest, compile_stages
from explorer.hotpath.arguments import Call
from explorer.model.capture import Capture


def capture_of(function: FunctionType, call: Call, arrays: Sequence[jax.ShapeDtypeStruct]) -> Capture:
    """The capture of a function for calls of one kind: as it was written, with its name and its lines.

    Args:
        function: The user's, with its own code.
        call: The kind.
        arrays: Those of its arguments.

    Raises:
        ExploreError: It compiles no more.
    """
    args, kwargs = call.arguments(arrays)
    positions = tuple(i for i, value in enumerate(args) if _is_static(value))
    names = tuple(name for name, value in kwargs.items() if _is_static(value))
    given: Any = [value for i, value in enumerate(args) if i not in positions]
    given.append([value for name, value in kwargs.items() if name not in names])
    if all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(given)):
        target: Any = jax.jit(function, static_argnums=positions, static_argnames=names)
        return compile_stages(CompileRequest(function, args, kwargs, target=target)).capture
    return compile_stages(CompileRequest(function, tuple(arrays), {}, target=call)).capture


def _is_static(value: Any) -> bool:
    """Whether an argument is a single thing that is no array."""
    return jax.tree.leaves(value) == [value] if not isinstance(value, jax.ShapeDtypeStruct) else False
