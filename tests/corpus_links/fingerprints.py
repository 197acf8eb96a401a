"""What in an operation's own text says which equation it is: its constant, its slice, its padding, its sizes.

Both sides are read for these and for nothing else: neither `op_name` nor a place in the source, no order, no names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from explorer.model.capture import Capture
from tests.corpus_links.tagging import TaggedProgram
from tests.corpus_links.truth import equation_paths

_LINE = re.compile(r"^\s+(?:ROOT )?(%?[\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*?)\)(, .*)?$")
_SCALAR = re.compile(r"^f32\[\]")
_SIZES = re.compile(r"\[([\d,]*)\]")
_SLICE = re.compile(r"slice=\{([^}]*)\}")
_PADDING = re.compile(r"padding=([\d_x\-]+)")
_DYNAMIC = re.compile(r"dynamic_slice_sizes=\{([\d,]*)\}")
_WINDOW = re.compile(r"window=\{size=([\dx]+)")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_TRANSPARENT = frozenset(["broadcast", "convert", "bitcast", "copy", "reshape"])
_WITH_CONSTANT = frozenset(
    ["multiply", "add", "subtract", "maximum", "minimum", "compare", "power", "divide", "select", "clamp"]
)
_PRIMITIVES_WITH_CONSTANT = frozenset(
    ["mul", "add", "sub", "max", "min", "gt", "lt", "ge", "le", "eq", "pow", "select_n"]
)
Prints = set[tuple[Hashable, ...]]


def read_fingerprints(capture: Capture, tagged: TaggedProgram) -> dict[int, frozenset[int]]:
    """The rows of the jaxpr's graph that an instruction comes from, by its line in the HLO's text, from 0.

    A fingerprint that several equations have, as the forward and the backward pass may, gives all of them.
    """
    rows: defaultdict[tuple[Hashable, ...], set[int]] = defaultdict(set)
    for path, row in equation_paths(capture.jaxpr.graph, tagged).items():
        for fingerprint in equation_prints(tagged.tagger.equations[path[-1]]):
            rows[fingerprint].add(row)
    for equation in tagged.tagger.equations:
        # To add an update to an array XLA slices what the array has there: a slice that no equation asks for.
        if equation.primitive.name == "dynamic_update_slice":
            rows.pop(("dynamic-slice", *equation.invars[1].aval.shape), None)
        # To find what each window selects XLA makes a reduce-window that no equation asks for.
        if equation.primitive.name.startswith("select_and_scatter"):
            rows.pop(("reduce-window", *equation.params["window_dimensions"]), None)
    truth: dict[int, frozenset[int]] = {}
    for line, prints in instruction_prints(capture.hlo.text):
        sets = [rows[fingerprint] for fingerprint in prints if fingerprint in rows]
        if sets and (common := frozenset(set.intersection(*sets))):
            truth[line] = common
    return truth


def equation_prints(equation: Any) -> Prints:
    """What of an equation survives in an instruction."""
    name, params = equation.primitive.name, equation.params
    if name in _PRIMITIVES_WITH_CONSTANT:
        sizes = prod(equation.outvars[0].aval.shape)
        return {("constant", abs(float(np.float32(c))), sizes) for c in _literals(equation)}
    if name == "slice":
        strides = params["strides"] or (1,) * len(params["start_indices"])
        return {("slice", *zip(params["start_indices"], params["limit_indices"], strides, strict=True))}
    if name == "pad" and all(low <= 0 and high <= 0 for low, high, _ in params["padding_config"]):
        bounds = zip(equation.invars[0].aval.shape, params["padding_config"], strict=True)
        return {("slice", *((-low, size + high, 1) for size, (low, high, _) in bounds))}  # as it is lowered
    if name == "pad":
        return {("pad", *((low, high) for low, high, _ in params["padding_config"]))}
    if name == "dynamic_slice":
        return {("dynamic-slice", *params["slice_sizes"])}
    if name.startswith("reduce_window"):
        return {("reduce-window", *params["window_dimensions"])}
    if name in ("reduce_sum", "reduce_max"):
        return {("reduce", prod(equation.invars[0].aval.shape), prod(equation.outvars[0].aval.shape))}
    return set()


def _literals(equation: Any) -> list[float]:
    values = [atom.val for atom in equation.invars if hasattr(atom, "val")]
    return [float(value) for value in values if np.ndim(value) == 0 and abs(float(value)) > 1 and float(value) % 1]


def instruction_prints(text: str) -> Iterator[tuple[int, Prints]]:
    """Of each instruction by its line: what of an equation survives in it."""
    computation: dict[str, re.Match[str]] = {}
    for number, line in enumerate(text.splitlines()):
        if _COMPUTATION.match(line):
            computation = {}
        elif match := _LINE.match(line):
            computation[match[1]] = match
            if prints := _prints(match, computation):
                yield number, prints


def _prints(line: re.Match[str], computation: Mapping[str, re.Match[str]]) -> Prints:
    opcode, rest = line[3], line[5] or ""
    operands = re.findall(r"%[\w.\-]+", line[4])
    if opcode in _WITH_CONSTANT:
        constants = [c for name in operands if (c := _constant(name, computation)) is not None]
        return {("constant", abs(c), _elements(line[2])) for c in constants if abs(c) > 1 and c % 1}
    if opcode == "slice" and (match := _SLICE.search(rest)):
        bounds = [list(map(int, part.split(":"))) for part in re.findall(r"\[([\d:]+)\]", match[1])]
        return {("slice", *((b[0], b[1], b[2] if len(b) > 2 else 1) for b in bounds))}
    if opcode == "pad" and (match := _PADDING.search(rest)):
        return {("pad", *(tuple(map(int, part.split("_")[:2])) for part in match[1].split("x")))}
    if opcode == "dynamic-slice" and (match := _DYNAMIC.search(rest)):
        return {("dynamic-slice", *map(int, match[1].split(",")))}
    if opcode == "reduce-window" and (match := _WINDOW.search(rest)):
        return {("reduce-window", *map(int, match[1].split("x")))}
    if opcode == "reduce" and operands and operands[0] in computation and not line[2].startswith("("):
        return {("reduce", _elements(computation[operands[0]][2]), _elements(line[2]))}
    return set()


def _constant(name: str, computation: Mapping[str, re.Match[str]]) -> float | None:
    """The value of a scalar constant, through what spreads it out."""
    while name in computation and computation[name][3] in _TRANSPARENT:
        name = computation[name][4].split(",")[0].strip()
    if name in computation and computation[name][3] == "constant" and _SCALAR.match(computation[name][2]):
        return float(np.float32(computation[name][4]))
    return None


def _elements(type_: str) -> int:
    sizes = _SIZES.search(type_)
    return prod(map(int, filter(None, sizes[1].split(",")))) if sizes else 1
