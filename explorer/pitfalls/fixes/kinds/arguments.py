"""What is made while tracing, and so baked in, becomes an argument: a moment, a random number, a random key."""

from __future__ import annotations

import sys
from typing import Any

import libcst as cst

from explorer.model.findings import Finding
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span, replace_node

_KEYS = ("jax.random.key", "jax.random.PRNGKey")
_NUMBERS = {
    "time.time": "now",
    "time.monotonic": "now",
    "time.perf_counter": "now",
    "random.random": "drawn",
    "random.gauss": "drawn",
    "numpy.random.rand": "drawn",
    "numpy.random.randn": "drawn",
    "numpy.random.normal": "drawn",
    "numpy.random.uniform": "drawn",
}


def _argument(unit: Unit, finding: Finding) -> cst.Module:
    """The call becomes a parameter of the linted function; so does the name that it is assigned to, if there is one."""
    call = next((call for call in unit.around(cst.Call, finding_span(finding)) if _is_known(unit, call, finding)), None)
    if call is None:
        raise RewriteUncertain("it isn't known what it makes")
    path = _path(unit, call)
    function = _main(unit, finding)
    if path.startswith("time.") and sum(_path(unit, other) == path for other in unit.nodes(cst.Call)) > 1:
        raise RewriteUncertain("it measures, and does so on both sides of a trace")
    if any(not isinstance(arg.value, cst.Integer | cst.Float) or arg.keyword is not None for arg in call.args):
        raise RewriteUncertain("its arguments are computed")
    line = next((line for line in function.body.body if _assigns(line, call)), None)
    if line is None:
        name = unit.unused_name(_NUMBERS.get(path, "key"))
        body: Any = function.body.deep_replace(call, cst.Name(name))
    else:
        name = line.body[0].targets[0].target.value
        body = _without(function.body, line)
    unit.new_parameters[name] = f"{path}({', '.join(unit.source(arg.value) for arg in call.args)})"
    return replace_node(unit, function, function.with_changes(params=_with(function.params, name), body=body))


def _is_known(unit: Unit, call: cst.Call, finding: Finding) -> bool:
    return unit.span(call) == finding_span(finding) and _path(unit, call) in (*_KEYS, *_NUMBERS)


def _without(body: Any, line: Any) -> Any:
    if line.leading_lines or line.trailing_whitespace.comment is not None or len(body.body) == 1:
        raise RewriteUncertain("a comment would be lost")
    return body.with_changes(body=[other for other in body.body if other is not line])


def _path(unit: Unit, call: cst.Call) -> str:
    """`time.time`, for a call of it by any name."""
    called = unit.resolve(call.func)
    for path in (*_KEYS, *_NUMBERS):
        module, _, name = path.rpartition(".")
        imported: Any = sys.modules.get(module)
        if called is not ... and called is getattr(imported, name, None):
            return path
    return unit.source(call.func).replace("np.", "numpy.") if unit.source(call.func).startswith("np.random.") else ""


def _main(unit: Unit, finding: Finding) -> Any:
    """The function that was linted, if the finding stands in it, in no loop and no function inside."""
    span = finding_span(finding)
    function = next(iter(unit.around(cst.FunctionDef, span)), None)
    if function is None or not isinstance(function.body, cst.IndentedBlock):
        raise RewriteUncertain("it is no function")
    first = function.decorators[0] if function.decorators else function
    if unit.span(first).line != unit.main or next(iter(unit.around(cst.Lambda, span)), None) is not None:
        raise RewriteUncertain("it isn't the function that was linted")
    loops = (loop for kind in (cst.For, cst.While, cst.CompFor, cst.GeneratorExp) for loop in unit.around(kind, span))
    if any(unit.span(loop) in unit.span(function) for loop in loops):
        raise RewriteUncertain("each turn of the loop has its own")
    return function


def _assigns(line: cst.CSTNode, call: cst.Call) -> bool:
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=value)]):
            return value is call
        case _:
            return False


def _with(parameters: cst.Parameters, name: str) -> cst.Parameters:
    """The parameters and one more, by name alone: the positions of the others stay what they are."""
    added = cst.Param(cst.Name(name))
    star = parameters.star_arg
    star = cst.ParamStar() if isinstance(star, cst.MaybeSentinel) else star
    return parameters.with_changes(star_arg=star, kwonly_params=[*parameters.kwonly_params, added])


REWRITES = tuple(
    Rewrite(rule, "what is made for each call is an argument", _argument)
    for rule in ("impure-time", "impure-random", "key-reuse")
)
