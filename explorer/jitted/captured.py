"""Arrays on their way through jax.jit, with what belongs to them beside."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import jax

from explorer.jitted.plan import Plan
from explorer.jitted.readers import Reader


class Structure:
    """All of a state but its arrays. Two are equal if they are one, which makes it short to compare at each call.

    Args:
        names: The arrays' paths below their root, for who looks at the traced program.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.reader: Reader | None = None
        self.times_read = 0  # the long way


class Captured:
    """A pytree node.

    Args:
        form: On the way in the structure of the state, on the way out how to write it.
        arrays: The leaves, in a list or tuple.
    """

    __slots__ = ("arrays", "form")

    def __init__(self, form: Structure | Plan, arrays: Any) -> None:
        self.form, self.arrays = form, arrays


class _Path(str):
    """A key that JAX prints as it is."""


def _with_names(captured: Captured) -> tuple[list[tuple[Any, Any]], Structure | Plan]:
    names = captured.form.names if isinstance(captured.form, Structure) else map(str, range(len(captured.arrays)))
    return [(_Path(name), array) for name, array in zip(names, captured.arrays, strict=True)], captured.form


# Each call comes by here twice: what C can do isn't Python.
jax.tree_util.register_pytree_with_keys(Captured, _with_names, Captured, attrgetter("arrays", "form"))
