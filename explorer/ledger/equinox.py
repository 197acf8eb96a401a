"""Calls of `equinox.filter_jit`, as their author wrote them.

It hands all of a call to one `jax.jit` of its own: arrays by their number, everything else in one static argument. Here
each of them gets back the name and the place that it has in the user's call. Equinox itself is not needed.
"""

from __future__ import annotations

import inspect
import re
from itertools import chain
from typing import Any

from jax import tree_util

from explorer.ledger.functions import argument_name
from explorer.model.events.event import WrittenCall

_trees: Any = tree_util  # its annotations are partial
_NUMBERED = re.compile(r"dynamic_(?:no)?donate\['(first|rest|fun)'\]\[(\d+)\]")
_ORDER = ("first", "rest", "fun")
_MANY = 4_096  # leaves


def filtered_call(function: Any, args: tuple[Any, ...], paths: tuple[str, ...]) -> WrittenCall | None:
    """None if it is no such call, or of an Equinox that does it differently."""
    if not str(getattr(function, "__module__", "")).startswith("equinox.") or len(args) != 3 or len(paths) > _MANY:
        return None
    try:
        return _read(function, args[2], paths)
    except Exception:  # then it is described as JAX sees it
        return None


def _read(function: Any, static: Any, paths: tuple[str, ...]) -> WrittenCall | None:
    fun, first, rest = static
    own = _own_function(fun[0])
    parameters = list(inspect.signature(own).parameters.values()) if own is not None else []
    named = {
        "first": _named(argument_name(parameters, 0), first),
        "rest": [_path_of_rest(parameters, path) for path in _paths(rest)],
        "fun": _named(function.__name__, fun),
    }
    numbered = [_NUMBERED.fullmatch(path) for path in paths]
    places = [(match[1], int(match[2])) for match in numbered if match is not None]
    if len(places) < len(paths):
        return None
    leaves = {"first": first[0], "rest": rest[0], "fun": [None if leaf is own else leaf for leaf in fun[0]]}
    pairs = chain.from_iterable(zip(named[part], leaves[part], strict=False) for part in _ORDER)
    return WrittenCall(
        function if own is None else own,
        tuple(named[part][at] for part, at in places),
        tuple(sorted(range(len(places)), key=lambda i: (_ORDER.index(places[i][0]), places[i][1]))),
        _tree(first, rest),
        tuple((path, value) for path, value in pairs if value is not None),
    )


def _own_function(leaves: Any) -> Any:
    """The function that is called, or that `filter_grad` or its like was given; None if that isn't clear.

    A method's object has arrays, which are None here.
    """
    functions = [leaf for leaf in leaves if callable(leaf)]
    return functions[0] if len(functions) == 1 and all(leaf is not None for leaf in leaves) else None


def _named(name: str, part: Any) -> list[str]:
    return [name + _trees.keystr(path) for path in _paths(part)]


def _paths(part: Any) -> list[Any]:
    leaves, tree = part
    return [path for path, _ in _trees.tree_leaves_with_path(tree.unflatten(range(len(leaves))))]


def _arrays(part: Any) -> Any:
    """The part, its arrays as leaves and all else as None."""
    leaves, tree = part
    return tree.unflatten([0 if leaf is None else None for leaf in leaves])


def _tree(first: Any, rest: Any) -> Any:
    args, kwargs = _arrays(rest)
    # One None is added behind the arguments, so that there is always a first one.
    return _trees.tree_structure(((_arrays(first), *args[:-1]) if args else (), kwargs))


def _path_of_rest(names: list[inspect.Parameter], path: Any) -> str:
    which, argument, *inside = path
    within = _trees.keystr(tuple(inside))
    return (argument_name(names, argument.idx + 1) if which.idx == 0 else str(argument.key)) + within
