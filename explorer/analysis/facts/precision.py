"""Matrix products of a narrow type that run in a wider one: the speed that was hoped for isn't there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from explorer.analysis.facts.lines import lines_of
from explorer.model.answers import Fact
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node
from explorer.model.links import EXACT
from explorer.model.types import parse_type

_PRODUCTS = frozenset(("dot_general", "conv_general_dilated"))
_RUN = frozenset(("dot", "convolution"))
_NARROW = frozenset(("bf16", "f16"))
_WIDE = frozenset(("f32", "f64"))


class _Product(NamedTuple):
    """An equation of a narrow type, the wider one that it runs in, and the nodes of `hlo` that do that."""

    row: int
    before: str
    after: str
    run: tuple[int, ...]


def precision(capture: Capture) -> Iterator[Fact]:
    """A fact for each pair of types; only of products that their links are exact for."""
    if not any(stage.name == "jaxpr" for stage in capture.stages):
        return
    jaxpr = capture.jaxpr.graph
    rows = np.flatnonzero(np.asarray([op in _PRODUCTS for op in jaxpr.ops] or [False])[jaxpr.op]).tolist()
    widened = [product for row in rows for product in _widened(capture, row)]
    for types in dict.fromkeys((product.before, product.after) for product in widened):
        products = [product for product in widened if (product.before, product.after) == types]
        yield _fact(capture, products, len(products) / len(rows))


def _fact(capture: Capture, products: Sequence[_Product], share: float) -> Fact:
    before, after = products[0].before, products[0].after
    where = lines_of(capture, capture.jaxpr.graph, [product.row for product in products])
    which = f"The {before} product runs" if len(products) == 1 else f"{len(products):,} {before} products run"
    text = f"{which} in {after} here" + (f", of {where}." if where else ".")
    nodes = {node for product in products for node in product.run}
    return Fact("precision", text, share, "hlo", tuple(sorted(nodes)))


def _widened(capture: Capture, row: int) -> Iterator[_Product]:
    before = _operand_type(capture.jaxpr.graph, row)
    if before not in _NARROW:
        return
    hlo, grades = capture.hlo.graph, capture.links.grades("hlo")
    run = [node for node in capture.links.rows("jaxpr", [row], "hlo") if hlo.ops[int(hlo.op[node])] in _RUN]
    types = {_operand_type(hlo, node) for node in run}
    if len(types) == 1 and types <= _WIDE and all(grades[node] == EXACT for node in run):
        yield _Product(row, before, types.pop(), tuple(run))


def _operand_type(graph: Graph, row: int) -> str:
    """The one dtype of all operands of a product; empty where they differ."""
    types = {parse_type(operand.type).dtype for operand in Node(graph, row).operands[:2]}
    return types.pop() if len(types) == 1 else ""
