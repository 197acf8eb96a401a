"""Recompiles foreseen: state that a function takes and returns, but returns as another type than it took.

    state = step(state, batch)    # compiles; the step counter goes in as a Python int, and comes out as an array
    state = step(state, batch)    # compiles again, for an array

It shows in the types of the first compile. Whether the result is fed back can't be known then, so a prediction says
"if". An argument of several arrays is held against each result of the same structure and shapes, and so is one array
in a dict or the like, for its weak type alone; a bare array, as many functions return one of its shape, only against
the first result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from explorer.model.events.family_counts import Prediction, type_text
from explorer.model.events.key import Function, Leaf


@dataclass(frozen=True, slots=True)
class Part:
    """One argument, the whole result, or one element of it.

    Args:
        path: `state`, `result`, `result[0]`.
        tree: Its structure: whatever is equal for equal ones.
        leaves: Its arrays, in order; of each, path, shape, dtype and weak type are looked at.
    """

    path: str
    tree: object
    leaves: tuple[Leaf, ...]


def predictions(function: Function, arguments: Sequence[Part], results: Sequence[Part]) -> tuple[Prediction, ...]:
    """What will compile again if a result is passed in where it fits.

    Args:
        function: What was compiled.
        arguments: Its arguments that hold arrays, in order.
        results: The whole result first; then its elements, if it is a tuple or a list.

    Example:
        >>> from explorer.model.events.key import Function, Leaf
        >>> taken = Part("n", "*", (Leaf("n", (), "int32", weak=True),))
        >>> given = Part("result", "*", (Leaf("result", (), "int32"),))
        >>> print(predictions(Function("count"), [taken], [given])[0])
        count takes `n` as int32, weak and returns it as int32: if the result is passed in again, count compiles again.
    """
    predicted: list[Prediction] = []
    for index, argument in enumerate(arguments):
        fits = [result for result in results if _is_state(argument, index, result, results)]
        # A result that is already the same type is what is fed back, if any is.
        nearest = min(fits, key=lambda result: len(_differing(argument, result)), default=None)
        if nearest is not None:
            fates: dict[tuple[str, str], list[tuple[Leaf, Leaf]]] = {}
            for taken, given in _differing(argument, nearest):
                fates.setdefault((type_text(taken), type_text(given)), []).append((taken, given))
            predicted += [_prediction(function, pairs, nearest.path) for pairs in fates.values()]
    return tuple(predicted)


def _is_state(argument: Part, index: int, result: Part, results: Sequence[Part]) -> bool:
    """Could `result` be passed in again as `argument`?"""
    if argument.tree != result.tree or not argument.leaves:
        return False
    if any(a is None or b is None or a.shape != b.shape for a, b in zip_longest(argument.leaves, result.leaves)):
        return False
    if len(argument.leaves) > 1:
        return True
    # A dict of one number that comes back as a dict of one number is that state; an array may be any array.
    is_named = any(leaf.path != argument.path for leaf in argument.leaves)
    is_first = index == 0 and any(result is one for one in results[:2])
    pairs = zip(argument.leaves, result.leaves, strict=True)
    return (is_named or is_first) and all(taken.dtype == given.dtype for taken, given in pairs)


def _differing(argument: Part, result: Part) -> list[tuple[Leaf, Leaf]]:
    pairs = zip(argument.leaves, result.leaves, strict=True)
    return [(taken, given) for taken, given in pairs if type_text(taken) != type_text(given)]


def _prediction(function: Function, pairs: list[tuple[Leaf, Leaf]], result: str) -> Prediction:
    taken, given = pairs[0]
    name, before, after = function.name, type_text(taken), type_text(given)
    back = "the result" if result == "result" else result
    others = f", like {len(pairs) - 1} more of its arrays" if len(pairs) > 1 else ""
    return Prediction(
        name, taken.path, before, after, _fix(taken, given),
        f"{name} takes `{taken.path}` as {before} and returns it as {after}{others}: if {back} is passed in again, "
        f"{name} compiles again.",
        result, tuple(taken.path for taken, _ in pairs), ("", *function.family),
    )  # fmt: skip


def _fix(taken: Leaf, given: Leaf) -> str:
    if taken.dtype == given.dtype and taken.weak:
        return f"jnp.asarray({taken.path}, dtype=jnp.{given.dtype})"
    if taken.dtype == given.dtype:
        return f"return jnp.asarray(…, dtype=jnp.{taken.dtype}) for {taken.path}"
    return f"return ….astype(jnp.{taken.dtype}) for {taken.path}"
