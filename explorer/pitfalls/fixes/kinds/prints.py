"""print(…) becomes jax.debug.print(…), and an f-string in one a format with its values."""

from __future__ import annotations

from functools import reduce

import libcst as cst

from explorer.model.findings import Finding
from explorer.pitfalls.fixes.print_formats import PrintFormat, call_with, is_text, literal, words
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span, parse_expression, replace_node


def _print(unit: Unit, finding: Finding) -> cst.Module:
    call = unit.at(finding_span(finding), cst.Call)
    if not isinstance(call.func, cst.Name | cst.Attribute) or unit.source(call.func) not in _PRINTS:
        raise RewriteUncertain("it is no print")
    printed: list[PrintFormat] = []
    ends = {"sep": " ", "end": "\n"}
    for arg in call.args:
        if arg.star:
            raise RewriteUncertain("its values come from a list")
        if arg.keyword is None:
            printed.append(words(unit, arg.value))
        elif arg.keyword.value in ends:
            is_default = isinstance(arg.value, cst.Name) and arg.value.value == "None"
            ends[arg.keyword.value] = ends[arg.keyword.value] if is_default else literal(arg.value)
        elif arg.keyword.value != "flush":
            raise RewriteUncertain(f"print has a {arg.keyword.value}")
    if not ends["end"].endswith("\n"):
        raise RewriteUncertain("jax.debug.print ends with a new line")
    between = PrintFormat([ends["sep"]])
    text = reduce(lambda left, right: left + between + right, printed) if printed else PrintFormat()
    text += PrintFormat([ends["end"][:-1]])
    return replace_node(unit, call, call_with(call, text, parse_expression(unit.qualified_name("jax.debug.print"))))


def _format(unit: Unit, finding: Finding) -> cst.Module:
    for call in (*unit.around(cst.Call, finding_span(finding)), *unit.nodes(cst.Call, finding_span(finding))):
        name = unit.source(call.func)
        if name.endswith("debug.print") and call.args and is_text(unit, call.args[0].value):
            rest = call.args[1:]
            if any(arg.keyword is None for arg in rest):
                raise RewriteUncertain("it has values already")
            return replace_node(unit, call, call_with(call, words(unit, call.args[0].value), None, rest))
    raise RewriteUncertain("it is no jax.debug.print")


def _log(unit: Unit, finding: Finding) -> cst.Module:
    """logger.info("x %s", x): logging fills in the values itself, so that it can be called while the program runs."""
    call = unit.at(finding_span(finding), cst.Call)
    line = next(iter(unit.around(cst.Expr, unit.span(call))), None)
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _LEVELS or line is None:
        raise RewriteUncertain("it is no call of a logger")
    if line.value is not call or not call.args or any(one.keyword is not None or one.star for one in call.args):
        raise RewriteUncertain("it is more than a message and its values")
    func = parse_expression(unit.qualified_name("jax.debug.callback"))
    return replace_node(unit, call, call.with_changes(func=func, args=[cst.Arg(call.func), *call.args]))


_PRINTS = ("print", "pprint.pprint", "pprint")
_LEVELS = ("debug", "info", "warning", "error", "critical")
REWRITES = (
    Rewrite("impure-print", "jax.debug.print prints while the program runs", _print),
    Rewrite("impure-print", "jax.debug.callback logs while the program runs", _log),
    Rewrite("concretization", "jax.debug.print fills in the values while the program runs", _print),
    Rewrite("formatted-tracer", "jax.debug.print fills in the values while the program runs", _print),
    Rewrite("formatted-tracer", "jax.debug.print fills in the values while the program runs", _format),
)
