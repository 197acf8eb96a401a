"""Which nodes of different stages are the same operation.

Every stage knows, for most of its nodes, where the innermost expression of the user's source begins, and the primitive
in its scope path. Both survive lowering and, where fusion kept the metadata, compilation; so equal (place, phase,
primitive) is the link. Only the beginning of the expression counts: XLA keeps one end for all that begin together.

An unrolled loop or a function called twice makes many nodes of one key. They are told apart by their number of
elements, then by their order if a kind of instruction is there as often as the equation; else they correspond together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.links.dependence import argument_sets, result_sets
from explorer.analysis.links.keys import Dependencies, first_keys, pair_keys
from explorer.model.capture import Capture
from explorer.model.equation_sets import EquationSets
from explorer.model.graph import Graph, Ints
from explorer.model.links import Links


def link_stages(capture: Capture) -> Links:
    """Link every stage of a capture to its first one; reads the stages that were not read yet.

    By structure, and from there exactly where the capture has that on record.
    """
    links = _link({s.name: s.graph for s in capture.stages})
    for stage, sets in capture.exact_sets.items():
        links = links.with_exact(stage, sets)
    return links


def _link(graphs: Mapping[str, Graph]) -> Links:
    sets: dict[str, EquationSets] = {}
    is_refined: dict[str, NDArray[np.bool_]] = {}
    bit: dict[str, int] = {}  # of each argument, by its path: the same in all stages
    arguments: dict[str, Sequence[int]] = {}
    results: dict[str, Sequence[int]] = {}
    if not graphs:
        return Links(graphs, sets, is_refined, arguments)
    first, *others = graphs
    own = first_keys(graphs[first])

    def dependencies(other: str) -> Dependencies:
        """They tell the iterations of an unrolled loop apart, and which of them is computed several times."""
        for name in (first, other):
            if name not in arguments:
                arguments[name] = argument_sets(graphs[name], bit)
                results[name] = result_sets(graphs[name])
        return _set_codes(arguments[first], arguments[other]), _set_codes(results[first], results[other])

    for name in others:
        here, there, are_refined = pair_keys(own, graphs[name], lambda name=name: dependencies(name))
        sets[name], is_refined[name] = EquationSets.of_keys(here, there), are_refined[there]
    return Links(graphs, sets, is_refined, arguments)


def _set_codes(here: Sequence[int], there: Sequence[int]) -> tuple[Ints, Ints]:
    """Equal sets, equal codes; -1 for the empty set."""
    code: dict[int, int] = {}
    first, other = ([code.setdefault(bits, len(code)) if bits else -1 for bits in sets] for sets in (here, there))
    return np.asarray(first, np.int32), np.asarray(other, np.int32)
