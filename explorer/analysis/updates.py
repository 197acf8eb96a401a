"""Arguments that a traced function replaces: state that goes in and comes out updated."""

from __future__ import annotations

import numpy as np

from explorer.analysis.graphs import entry_rows, is_op
from explorer.model.graph import Graph

_UPDATES = frozenset(("add", "sub", "add_any", "select_n", "dynamic_update_slice", "max", "min"))
_UPDATED_IN_A_BODY = frozenset(("scan", "while", "cond"))
# Primitives that pass on a value of the same meaning: scaled, moved or of another type.
SCALED = frozenset(("mul", "div", "convert_element_type", "copy", "copy_p", "neg", "reshape", "sharding_constraint"))


def may_update(op: str) -> bool:
    """Return True for a primitive whose result may be an operand updated: added to, selected from or written into."""
    return op in _UPDATES or op in _UPDATED_IN_A_BODY or op.startswith("scatter")


def replaced_arguments(jaxpr: Graph) -> set[int]:
    """Return the arguments, as rows of a jaxpr, of which an update of the same type is computed.

    An update adds to the argument, selects from it or writes into it, perhaps scaled, in the function or in a function
    that it calls. Cotangents have the types of parameters and are no updates: equations of a transpose don't count.
    """
    return {row for row in entry_rows(jaxpr) if _is_updated(jaxpr, row)}


def _is_updated(jaxpr: Graph, argument: int) -> bool:
    user_start, users = jaxpr.user_columns
    type_ = jaxpr.types[int(jaxpr.type[argument])]
    waiting, seen = [argument], {argument}
    while waiting:
        row = waiting.pop()
        for user in users[user_start[row] : user_start[row + 1]].tolist():
            if "transpose(" in jaxpr.scopes[int(jaxpr.scope[user])]:
                continue
            if _is_update(jaxpr, user, type_):
                return True
            into = _followed(jaxpr, user, row, type_)
            waiting += [each for each in into if each not in seen]
            seen.update(into)
    return False


def _is_update(jaxpr: Graph, equation: int, type_: str) -> bool:
    """Return True if an equation that reads a value gives an updated one of type `type_`."""
    op, result = jaxpr.ops[int(jaxpr.op[equation])], jaxpr.types[int(jaxpr.type[equation])]
    if op in _UPDATED_IN_A_BODY:
        return type_ in result
    return result == type_ and may_update(op)


def _followed(jaxpr: Graph, equation: int, operand: int, type_: str) -> list[int]:
    """Return the rows that carry a value on behind an equation: the scaled result, or parameters of called functions.

    Empty behind an update or another operation.
    """
    op, result = jaxpr.ops[int(jaxpr.op[equation])], jaxpr.types[int(jaxpr.type[equation])]
    if op not in _UPDATED_IN_A_BODY and may_update(op):
        return []
    return [equation] if op in SCALED and result == type_ else _parameters(jaxpr, equation, operand)


def _parameters(jaxpr: Graph, call: int, operand: int) -> list[int]:
    """Return the parameters of the functions that an equation calls, to which an operand of it is passed."""
    operands = jaxpr.operand[jaxpr.operand_start[call] : jaxpr.operand_start[call + 1]]
    places = np.flatnonzero(operands == operand)
    is_parameter = is_op(jaxpr, ("parameter",))
    inner_rows: list[int] = []
    for group in [at for at, each in enumerate(jaxpr.groups) if each.caller == call]:
        inner = np.flatnonzero((jaxpr.group == group) & is_parameter)
        if len(inner) == len(operands):
            inner_rows += inner[places].tolist()
    return inner_rows
