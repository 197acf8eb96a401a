"""Where our graph of a module differs from what MLIR's parser read, by position."""

import re

_DECLARATIONS = ("builtin.module", "module", "func.func", "vhlo.func_v1", "sdy.mesh")
_ALIAS = re.compile(r"^\s*([#!][\w$.]+)\s*=\s*", re.M)
_STEP = dict.fromkeys("<({[", 1) | dict.fromkeys(">)}]", -1)


def differences(text, graph, operations):
    """What differs, in words; nothing if all of the module is read alike."""
    ours = list(graph.nodes)
    theirs = _without_declarations(operations, ours)
    if len(ours) != len(theirs):
        names = [node.op for node in ours], [operations[at].name for at in theirs]
        first = next((i for i, pair in enumerate(zip(*names, strict=False)) if _short(pair[0]) != _short(pair[1])), -1)
        cut = [each[max(first - 1, 0) : first + 4] for each in names]
        return [f"{len(ours)} nodes, MLIR has {len(theirs)}; from {first} on: {cut[0]}, MLIR has {cut[1]}"]
    aliases = _aliases(text)
    mine = {node.index: i for i, node in enumerate(ours)}
    position = {at: i for i, at in enumerate(theirs)}
    found = []
    for i, (node, at) in enumerate(zip(ours, theirs, strict=True)):
        there = operations[at]
        pairs = {
            "operation": (_short(node.op), _short(there.name)),
            "operands": ([mine[one.index] for one in node.operands], [position.get(one, -1) for one in there.operands]),
        }
        if there.types:  # what has no result shows the type of what it returns
            pairs["type"] = _plain(node.type, aliases), _plain(", ".join(there.types), aliases)
        found += [f"{i}, {node.name} {what}: {a!r}, MLIR has {b!r}" for what, (a, b) in pairs.items() if a != b]
    return found


def _without_declarations(operations, ours):
    """The positions of what has a node: what `applies stablehlo.add` stands for is one with its reduction."""
    kept, inside = [], None
    for at, operation in enumerate(operations):
        if inside is not None and operation.depth > inside:
            continue
        inside = None
        if operation.name in _DECLARATIONS:
            continue
        kept.append(at)
        if len(kept) <= len(ours) and "applies" in ours[len(kept) - 1].attributes:
            inside = operation.depth
    return kept


def _short(op):
    return op.removeprefix("func.")


def _aliases(text):
    """What stands for each alias; a definition goes on over lines while a bracket is open."""
    found = {}
    for alias in _ALIAS.finditer(text):
        depth, at = 0, alias.end()
        while at < len(text) and (depth or text[at] != "\n"):
            depth += 0 if text[at - 1 : at + 1] == "->" else _STEP.get(text[at], 0)
            at += 1
        found[alias[1]] = text[alias.end() : at].strip()
    return found


def _plain(type_, aliases):
    """Without spaces and the parentheses around several, with aliases written out, as MLIR writes it today."""
    for _ in range(3):
        type_ = re.sub(r"[#!][\w$.]+", lambda m: aliases.get(m[0], m[0]), type_)
    type_ = re.sub(r"//[^\n]*|\s", "", type_)
    type_ = re.sub(r"type_extensions<bounds=\[([^\]]*)\]>", r"bounds<\1>", type_)
    return type_[1:-1] if type_.startswith("(") and type_.endswith(")") and not type_.startswith("()->") else type_
