"""Which calls of an executable JAX's own dispatcher may answer by itself, in C++."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, cast

import jax
import jax.numpy as jnp

from explorer._jax import KeyedArguments, checks_dtypes, dispatcher
from explorer.aot.binaries import Plan
from explorer.aot.inputs import DimensionInputInfo, InputInfo, key_like

_KINDS_OF_CALL = 8  # that one shape may come in: on a device or not yet, by name or position


class Dispatch:
    """JAX's dispatcher in front of an executable's checked call.

    It compares shapes, dtypes, weak types, devices, structure and sizes with those of calls that went through the
    checks before.

    Args:
        plan: Of the executable.
        call: Takes a call, checks it, and gives its result and what `fast_path` says of it.
        replace: Called with another function that from then on has to answer the calls.
    """

    def __init__(
        self, plan: Plan, call: Callable[..., tuple[Any, Any]], replace: Callable[[Callable[..., Any]], None]
    ) -> None:
        self._parameters = plan.parameters
        self._infos = list(plan.program.symbols.inputs.values())
        self._call = call
        self._replace = replace
        self._arrays = [info for info in self._infos if isinstance(info, InputInfo)]
        containers = {kind for parameter in plan.parameters for kind in parameter.registered_containers}
        keys = {info.dtype for info in self._arrays if jnp.issubdtype(info.dtype, jax.dtypes.extended)}
        has_sizes = len(self._arrays) < len(self._infos)
        self._keyed = KeyedArguments(containers | {type(key_like(dtype)) for dtype in keys}, has_sizes)
        self.function = dispatcher(plan.program.name, call, _KINDS_OF_CALL * plan.limit, self._keyed)
        self._checks_dtypes = False

    def fast_path(
        self,
        fast_path: Any,
        call: tuple[tuple[Any, ...], Mapping[str, Any]],
        values: Sequence[Any],
        leaves: Sequence[Any],
        given: Sequence[Any],
    ) -> Any:
        """The dispatcher's entry for calls like one that fitted and ran; None where it may not have one.

        Args:
            fast_path: Of the binary that ran, for its arguments.
            call: Its `(args, kwargs)`.
            values, leaves: Of each parameter the value, and of each input.
            given: What the binary got for each input. The dispatcher converts nothing but what comes from NumPy.
        """
        order = [p.name for p in self._parameters[: len(call[0])]] + sorted(call[1])  # as JAX flattens a call
        if fast_path is None or order != [p.name for p in self._parameters]:
            return None
        if not self._is_keyed(leaves, given) or not self._is_converted_alike(leaves):
            return None
        marked = [pair for p, value in zip(self._parameters, values, strict=True) for pair in p.marked_leaves(value)]
        return self._keyed.fast_path(fast_path, values, marked)

    def _is_keyed(self, leaves: Sequence[Any], given: Sequence[Any]) -> bool:
        """Whether the binary got the inputs as they came, and the key says the value of each size."""
        sizes = (isinstance(info, DimensionInputInfo) for info in self._infos)
        return all(
            before is after and (not is_size or type(before) is int)  # np.int64(3) is an array of any value to the key
            for before, after, is_size in zip(leaves, given, sizes, strict=True)
        )

    def _is_converted_alike(self, leaves: Sequence[Any]) -> bool:
        """Whether what comes from NumPy gets the dtype in C++ that it has, and no other would be taken for it."""
        pairs = zip(self._infos, leaves, strict=True)
        dtypes = [i.dtype for i, leaf in pairs if isinstance(i, InputInfo) and not isinstance(leaf, jax.Array)]
        # Compiled where JAX has 64 bits, and called where it narrows them.
        is_narrowed = any(jax.dtypes.canonicalize_dtype(dtype) != dtype for dtype in dtypes)
        if is_narrowed or not dtypes or self._checks_dtypes:
            return not is_narrowed
        self._check_dtypes()
        return False

    def by_position(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The same call without names, where those are in another order than the binary has its arguments in."""
        left = self._parameters[len(args) :]
        if [p.name for p in left] == sorted(kwargs) or {p.name for p in left} != set(kwargs):
            return None
        if any(p.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD for p in left):
            return None
        return (*args, *(kwargs[p.name] for p in left))

    def clear(self) -> None:
        """Forget every kind of call: a binary was let go, and the dispatcher can't say which of its own are in use.

        So every shape that is in use comes through the checks once more, and the next to go is one that doesn't.
        """
        if self.function is not None:
            self.function._clear_cache()

    def _check_dtypes(self) -> None:
        """From now on calls are looked at before the dispatcher has them: who calls with NumPy's values pays for it."""
        structures = [p.structure for p in self._parameters]
        starts = accumulate((structure.num_leaves for structure in structures), initial=0)
        positions = [start + i for start, p in zip(starts, self._parameters, strict=False) for i in p.positions]
        tree = cast(Callable[[Sequence[Any]], Any], jax.tree_util.treedef_tuple)
        self._replace(
            checks_dtypes(
                self.function,
                lambda *args, **kwargs: self._call(*args, **kwargs)[0],
                tree([tree(structures), jax.tree.structure({})]),
                {i: info.dtype for i, info in zip(positions, self._infos, strict=True) if isinstance(info, InputInfo)},
            )
        )
        self._checks_dtypes = True
        # Another thread may wait for what this call gives, and must ask again; what was refused before may be right.
        self.clear()
