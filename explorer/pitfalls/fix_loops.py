"""Rewrites of loops, arguments and keys: hoist or pass what each turn or call would create again."""

from __future__ import annotations

import ast
import sys

import jax

from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.fix_unit import RewriteUncertain, Unit, bound_name, finding_span, is_simple
from explorer.pitfalls.fix_values import pure
from explorer.pitfalls.function_source import Edit, parameters_of, targets_of

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_INSIDE = (ast.Lambda, *_COMPREHENSIONS)
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@"}
_KEYS = ("jax.random.key", "jax.random.PRNGKey")
_NO_DRAWS = ("split", "key", "PRNGKey", "fold_in", "wrap_key_data", "key_data", "clone", "key_impl")
_NUMBERS = {
    **dict.fromkeys(("time.time", "time.monotonic", "time.perf_counter"), "now"),
    **dict.fromkeys(("random.random", "random.gauss"), "drawn"),
    **{f"numpy.random.{name}": "drawn" for name in ("rand", "randn", "normal", "uniform")},
}


def hoisted_jit(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edits that assign `jax.jit(lambda …)` once, above the loop.

    Raises RewriteUncertain if it changes from turn to turn.
    """
    span = finding_span(finding)
    call = unit.exactly(span, ast.Call)
    loop = next(iter(sorted(unit.around(span, ast.For, ast.While), key=lambda one: -one.lineno)), None)
    if call is None or loop is None:
        raise RewriteUncertain("it isn't in a loop")
    own = parameters_of(call.args[0]) if call.args and isinstance(call.args[0], ast.Lambda) else []
    if (_names(call) - {parameter.arg for parameter in own}) & _bound_in(loop):
        raise RewriteUncertain("it isn't the same in every turn")
    name = unit.unused_name("jitted")
    return [unit.above(loop, f"{name} = {unit.source(call)}"), unit.replace(call, name)]


def _bound_in(loop: ast.AST) -> set[str]:
    """Return the names that a loop assigns, or whose items and attributes it sets."""
    binding = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension)
    targets = [target for node in ast.walk(loop) if isinstance(node, binding) for target in targets_of(node)]
    bound = {bound_name(node) for node in ast.walk(loop) if not isinstance(node, ast.arg)}
    return bound.union(*map(_names, targets)) - {""}


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def fori_loop(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edits that make `for i in range(n): x = …`, with one carried name, one call with a lambda."""
    loop, low, high, index = _counted(unit, finding)
    if unit.comments(loop.lineno, loop.end_lineno or 0):
        raise RewriteUncertain("a comment would be lost")
    name, value, operator = _assignment(loop.body[0])
    is_read_after = any(one.id == index and one.lineno > (loop.end_lineno or 0) for one in unit.nodes(ast.Name))
    if len(loop.body) > 1 or is_read_after:
        raise RewriteUncertain("its body is more than an assignment, or its index is read after it")
    if not pure(unit, value):
        raise RewriteUncertain("its body may do more than to compute")
    turn = f"{name} {operator} {unit.parenthesized(value)}" if operator else unit.source(value)
    func = unit.qualified_name("jax.lax.fori_loop")
    return [unit.replace(loop, f"{name} = {func}({low}, {high}, lambda {index}, {name}: {turn}, {name})")]


def fori_loop_of_body(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edits that make a loop over range() with several assignments one call with the body as a function."""
    loop, low, high, index = _counted(unit, finding)
    carried = _carried(unit, loop, index)
    if loop is unit.root or not carried:
        raise RewriteUncertain("it is in no function, or no value goes from one iteration to the next")
    name, several = unit.unused_name("body"), ", ".join(carried)
    carry = carried[0] if len(carried) == 1 else unit.unused_name("carry")
    inside, outside = " " * loop.body[0].col_offset, " " * loop.col_offset
    first = several if len(carried) == 1 else f"({several})"
    call = f"{several} = {unit.qualified_name('jax.lax.fori_loop')}({low}, {high}, {name}, {first})"
    unpacked = [] if len(carried) == 1 else [unit.line_below(loop.iter, f"{inside}{several} = {carry}")]
    head = Edit(unit.file, unit.to_colon(loop), f"def {name}({index}, {carry}):")
    return [head, *unpacked, unit.line_below(loop, f"{inside}return {several}\n{outside}{call}")]


def _counted(unit: Unit, finding: Finding) -> tuple[ast.For, str, str, str]:
    """Return the loop over a range() on the finding's line, its lower and upper bound as text, and its variable."""
    loop = next((one for one in unit.nodes(ast.For) if one.lineno == finding.line), None)
    if loop is None or loop.orelse or loop.body[0].lineno == loop.iter.end_lineno:
        raise RewriteUncertain("it is no plain loop")
    match loop.target, loop.iter:
        case ast.Name(id=index), ast.Call(func=func, args=[*bounds], keywords=[]) if 1 <= len(bounds) <= 2:
            if unit.resolve(func) is range and not any(isinstance(bound, ast.Starred) for bound in bounds):
                low, high = ("0", *map(unit.source, bounds))[-2:]
                return loop, low, high, index
        case _:
            pass
    raise RewriteUncertain("it doesn't go through a range()")


def _assignment(line: ast.stmt) -> tuple[str, ast.expr, str]:
    match line:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value, ""
        case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value) if type(operator) in _ARITHMETIC:
            return name, value, _ARITHMETIC[type(operator)]
        case _:
            raise RewriteUncertain("its body is more than assignments")


def _carried(unit: Unit, loop: ast.For, index: str) -> list[str]:
    """Return the names that the body assigns and that are carried between turns, or read elsewhere."""
    elsewhere = _read_elsewhere(unit, loop)
    if index in elsewhere:
        raise RewriteUncertain(f"{index} is read after the loop")
    assigned: dict[str, None] = {}
    early: set[str] = set()  # read in a turn before the turn assigns them
    for line in loop.body:
        name, value, operator = _assignment(line)
        if name == index or not pure(unit, value):
            raise RewriteUncertain("its body assigns its index, or may do more than to compute")
        early |= (_names(value) | ({name} if operator else set())) - set(assigned)
        assigned[name] = None
    return [name for name in assigned if name in early or name in elsewhere]


def _read_elsewhere(unit: Unit, loop: ast.For) -> set[str]:
    names = (name for name in unit.nodes(ast.Name) if Span.of(name) not in Span.of(loop))
    parameters = (parameter.arg for parameter in unit.nodes(ast.arg))
    return {name.id for name in names if not isinstance(name.ctx, ast.Store)}.union(parameters)


def new_argument(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edits that make a time, a random number or a random key, created while tracing, an argument.

    If the value is assigned to a name, that name is the parameter. `unit.new_parameters` gets it too.
    """
    span = finding_span(finding)
    call = unit.exactly(span, ast.Call)
    if call is None or not (path := _made(unit, call)):
        raise RewriteUncertain("it isn't known what it makes")
    function = _linted(unit, span)
    if path.startswith("time.") and sum(_made(unit, other) == path for other in unit.nodes(ast.Call)) > 1:
        raise RewriteUncertain("it measures a duration, so both readings belong outside")
    if call.keywords or any(type(getattr(one, "value", None)) not in (int, float) for one in call.args):
        raise RewriteUncertain("its arguments are computed")
    name, edit = _given(unit, function, call, _NUMBERS.get(path, "key"))
    unit.new_parameters[name] = f"{path}({', '.join(map(unit.source, call.args))})"
    return [unit.with_parameter(function, name), edit]


def _given(unit: Unit, function: ast.FunctionDef, call: ast.Call, default: str) -> tuple[str, Edit]:
    for line in function.body:
        match line:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call and unit.is_alone(line):
                return name, unit.without(line, function.body)
            case _:
                continue
    name = unit.unused_name(default)
    return name, unit.replace(call, name)


def _made(unit: Unit, call: ast.Call) -> str:
    called, source = unit.resolve(call.func), unit.source(call.func)
    for path in (*_KEYS, *_NUMBERS):
        module, _, name = path.rpartition(".")
        if called is not ... and called is getattr(sys.modules.get(module), name, None):
            return path
    path = source.replace("np.", "numpy.")
    return path if source.startswith("np.random.") and path in _NUMBERS else ""


def _linted(unit: Unit, span: Span) -> ast.FunctionDef:
    function = next(iter(unit.around(span, ast.FunctionDef)), None)
    if function is None or function.body[0].lineno == function.lineno:
        raise RewriteUncertain("it is no function")
    first = function.decorator_list[0] if function.decorator_list else function
    if first.lineno != unit.main or any(unit.around(span, ast.Lambda)):
        raise RewriteUncertain("it isn't the function that was linted")
    if any(Span.of(loop) in Span.of(function) for loop in unit.around(span, ast.For, ast.While, *_COMPREHENSIONS)):
        raise RewriteUncertain("each turn of the loop has its own")
    return function


def split_key(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edits that give each use of one random key a subkey of its own."""
    used = next((one for one in unit.around(finding_span(finding), ast.Call) if _draws(unit, one)), None)
    if used is None or not isinstance(used.args[0], ast.Name):
        raise RewriteUncertain("it is unknown which call draws")
    key, name = used.args[0].id, unit.unused_name("subkey")
    split, edits = unit.qualified_name("jax.random.split"), list[Edit]()
    for line in unit.block_around(Span.of(used)):
        calls = unit.nodes(ast.Call, within=Span.of(line))
        draws = [one for one in calls if _draws(unit, one) and getattr(one.args[0], "id", "") == key]
        if len(draws) > 1 or (draws and not _is_once(unit, draws[0], line)):
            raise RewriteUncertain("it isn't one draw after the other")
        for draw in draws:
            edits.append(unit.above(line, f"{key}, {name} = {split}({key})"))
            edits.append(unit.replace(draw.args[0], name))
    return edits


def _is_once(unit: Unit, call: ast.Call, line: ast.stmt) -> bool:
    return is_simple(line) and not any(Span.of(one) in Span.of(line) for one in unit.around(Span.of(call), *_INSIDE))


def _draws(unit: Unit, call: ast.Call) -> bool:
    called = unit.resolve(call.func)
    name = getattr(called, "__name__", "") if called is not ... else ""
    return bool(call.args) and name not in _NO_DRAWS and getattr(jax.random, name or "-", None) is called
