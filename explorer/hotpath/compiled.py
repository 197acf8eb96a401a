"""The compiled copy of a function: a program of its arrays and of those that it reads, with all else held by guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.core

from explorer.hotpath.guards import Guards, guards_of
from explorer.hotpath.proof import Proof
from explorer.hotpath.results import Order, assembly_of, in_order, order_of
from explorer.hotpath.warned import warnings_held

_tree: Any = jax.tree  # whose structures have no type
_evaluate: Callable[..., Any] = vars(jax.core)["eval_jaxpr"]
Compiled = Callable[[tuple[jax.Array, ...], list[jax.Array]], Any]


class NotCompiled(Exception):
    """The trace shows what the proof can't: with the reason."""


class Call:
    """A call without its arrays: its structure, and what stands at each of the other places.

    Args:
        function: What is called.
        structure: Of the arguments.
        static: Each leaf that is no array: its place, class, value and sign.
        count: Of leaves.
        order: Of the dicts among the arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Any,
        static: Sequence[tuple[int, Any, Any, str]],
        count: int,
        order: Order = None,
    ) -> None:
        self.function, self.structure, self.count, self.order = function, structure, count, order
        self._results_order: Order = None
        self._given = {at: value for at, _, value, _ in static}

    def __call__(self, *arrays: Any) -> Any:
        args, kwargs = self.arguments(arrays)
        result = self.function(*args, **kwargs)
        self._results_order = order_of(result)
        return result

    def arguments(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the function is given, with these arrays, or what stands for them, in their places."""
        rest = iter(arrays)
        leaves = [self._given[at] if at in self._given else next(rest) for at in range(self.count)]
        return in_order(jax.tree.unflatten(self.structure, leaves), self.order)

    def traced(self, arrays: Sequence[Any]) -> tuple[Any, Any, Order]:
        """Its jaxpr, with all that it reads as constants, and the structure of its result with the order of its dicts.

        Raises:
            NotCompiled: It has effects, warns, or gives something other than arrays.
        """
        with warnings_held() as warned:
            closed, shape = jax.make_jaxpr(self, return_shape=True)(*arrays)
        if warned:
            raise NotCompiled(f"it warns: {warned[0]}")
        if closed.effects:
            raise NotCompiled("its program has effects: it prints, calls back or changes a reference")
        if any(not isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(shape)):
            raise NotCompiled("it returns something other than arrays")
        return closed, _tree.structure(shape), self._results_order


def compiled_copy(call: Call, proof: Proof, arrays: Sequence[jax.Array]) -> tuple[Guards, Compiled]:
    """The guards, and a `jax.jit` function of the arrays that were read and those of the arguments.

    The function is traced with the arrays that it reads as constants; where these come out in its jaxpr, they are known
    by being the same objects, and inputs take their place. So a loop that puts new weights under the old name compiles
    once.
    """
    closed, structure, order = call.traced(arrays)
    guards = guards_of(proof.reads, frozenset(map(id, closed.consts)))
    place = {id(value): at for at, value in enumerate(guards.arrays)}
    assembly = assembly_of(closed, structure, order, place)

    def run(read: tuple[jax.Array, ...], arrays: list[jax.Array]) -> Any:
        current = guards.check()
        if current is None:
            raise NotCompiled("what it reads changed while it was traced")
        closed, structure, order = call.traced(arrays)
        place = {id(value): at for at, value in enumerate(current)}
        if not place.keys() <= set(map(id, closed.consts)):
            raise NotCompiled("for arguments of another shape it reads other arrays")
        constants: list[Any] = [read[place[id(value)]] if id(value) in place else value for value in closed.consts]
        if assembly_of(closed, structure, order, place) != assembly:
            raise NotCompiled("for arguments of another shape its result is put together in another way")
        results = _evaluate(closed.jaxpr, constants, *arrays)
        return (
            jax.tree.unflatten(structure, results) if assembly.is_plain else [results[at] for at in assembly.computed]
        )

    run.__name__ = run.__qualname__ = getattr(call.function, "__name__", "hot")
    program: Any = jax.jit(run)
    if assembly.is_plain:
        return guards, program
    return guards, lambda read, arrays: assembly.assembled(program(read, arrays), read, arrays)
