"""What a program takes and returns, for the predictions of recompiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from explorer.analysis.recompiles.fixpoint import Part, predictions
from explorer.model.events.family_counts import Prediction
from explorer.model.events.key import Key, Leaf

_NAME = re.compile(r"\w+")


def predict_recompiles(program: Any, key: Key) -> tuple[Prediction, ...]:
    """What will compile again if the results of `program` are passed in where they fit.

    Args:
        program: What JAX knows of a traced call: `in_tree`, `out_tree`, and its jaxpr.
        key: The call's.
    """
    if key.function.eager or key.function.is_hot or not key.leaves:
        return ()
    positional, named = program.in_tree.children()
    arguments = [*positional.children(), *named.children()]
    if sum(tree.num_leaves for tree in arguments) != len(key.leaves):
        return ()
    results = [_leaf(f"result{i}", aval) for i, aval in enumerate(program.params["jaxpr"].out_avals)]
    whole = program.out_tree
    if whole.num_leaves != len(results):
        return ()
    elements = whole.children() if _is_sequence(whole) else ()
    taken = _parts(arguments, key.leaves)
    given = [Part("result", whole, tuple(results)), *_parts(elements, results, "result[{}]")]
    return predictions(key.function, [*taken], given)


def _parts(trees: Sequence[Any], leaves: Sequence[Leaf], name: str = "") -> Iterator[Part]:
    start = 0
    for index, tree in enumerate(trees):
        own = tuple(leaves[start : start + tree.num_leaves])
        start += tree.num_leaves
        if own:
            name_match = _NAME.match(own[0].path)
            yield Part(name.format(index) if name else name_match[0] if name_match else own[0].path, tree, own)


def _leaf(path: str, aval: Any) -> Leaf:
    dtype = str(getattr(aval.dtype, "name", aval.dtype))
    sizes = tuple(size if isinstance(size, int) else str(size) for size in aval.shape)
    return Leaf(path, sizes, dtype, bool(getattr(aval, "weak_type", False)))


def _is_sequence(tree: Any) -> bool:
    kind = tree.node_data()
    return kind is not None and kind[0] in (tuple, list)
