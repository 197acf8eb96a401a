"""Rewrites of code that needs a value, a dtype or an item that doesn't exist while tracing."""

from __future__ import annotations

import ast
from itertools import product
from types import NoneType

import jax.numpy as jnp
import numpy as np

from explorer.capture.sources import Span, as_arrays
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fix_unit import RewriteUncertain, Unit, finding_span, is_simple
from explorer.pitfalls.function_source import AT_METHODS, Edit
from explorer.pitfalls.gradient_faults import GradientFault, fault_at, is_fixed_in

# Digits that are lost are what one expects of 32 bits; whole numbers that they can't hold would become others.
_NARROW = {"float64": "float32", "complex128": "complex64"}
_REDUCTIONS = ("sum", "mean", "prod", "any", "all", "std", "var")
_PURE = (
    ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Slice, ast.keyword, ast.Starred,
)  # fmt: skip
# Of arrays, and of nothing else that one has in a computation.
_METHODS = (
    "sum", "mean", "prod", "max", "min", "std", "var", "dot", "astype", "reshape", "ravel", "transpose", "squeeze",
    "clip", "argmax", "argmin", "cumsum", "cumprod", "conj", "swapaxes", "flatten", "round",
)  # fmt: skip


def numpy_function(unit: Unit, finding: Finding) -> list[Edit]:
    for call in unit.near(finding_span(finding), ast.Call):
        called = unit.resolve(call.func)
        name = getattr(called, "__name__", "") if called is not ... and isinstance(call.func, ast.Attribute) else ""
        if name and getattr(np, name, None) is called and callable(getattr(jnp, name, None)):
            if any(keyword.arg == "out" for keyword in call.keywords):
                raise RewriteUncertain("it writes to an array")
            return [unit.replace(call.func, unit.qualified_name(f"jax.numpy.{name}"))]
    raise RewriteUncertain("it is no function of NumPy's that jax.numpy has")


def number(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edit from float(x) to x if x is a float, else to `jnp.asarray(x, float)`, and from x.item() to x."""
    span = finding_span(finding)
    for call in unit.near(span, ast.Call):
        kind = unit.resolve(call.func)
        match call:
            case ast.Call(args=[value], keywords=[]) if kind in (float, int, complex):
                if call.lineno != span.line or isinstance(value, ast.Starred):
                    continue
                if kind is float and "(float" in finding.message:
                    return [unit.replace(call, unit.parenthesized(value))]
                array = unit.qualified_name("jax.numpy.asarray")
                return [unit.replace(call, f"{array}({unit.source(value)}, {unit.source(call.func)})")]
            case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]):
                return [unit.replace(call, unit.source(value))]
            case _:
                continue
    raise RewriteUncertain("it is no float(…)")


def choice(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edit from `a if x > 0 else b`, or an `if` and `else` that give one value, to jnp.where."""
    span = finding_span(finding)
    for node in unit.around(span, ast.IfExp):
        if span in Span.of(node.test):
            return [unit.replace(node, _where(unit, node.test, node.body, node.orelse))]
    branch = next((node for node in unit.around(span, ast.If) if span in Span.of(node.test)), None)
    if branch is None:
        raise RewriteUncertain("it is no conditional")
    if unit.comments(branch.lineno, branch.end_lineno or 0) or not unit.piece(Span.of(branch)).startswith("if"):
        raise RewriteUncertain("a comment would be lost")
    match branch.body, branch.orelse:
        case [ast.Assign(targets=[ast.Name(id=name)], value=x)], [ast.Assign(targets=[ast.Name(id=other)], value=y)]:
            if name == other:
                return [unit.replace(branch, f"{name} = {_where(unit, branch.test, x, y)}")]
        case [ast.Return(value=ast.expr() as x)], [ast.Return(value=ast.expr() as y)]:
            return [unit.replace(branch, f"return {_where(unit, branch.test, x, y)}")]
        case _:
            pass
    raise RewriteUncertain("its branches do more than to give one value")


def _where(unit: Unit, test: ast.expr, x: ast.expr, y: ast.expr) -> str:
    if not (pure(unit, x) and pure(unit, y)):
        raise RewriteUncertain("both branches would run")
    condition = unit.source(test)
    is_several = isinstance(test, ast.BoolOp | ast.UnaryOp) or (isinstance(test, ast.Compare) and len(test.ops) > 1)
    if is_several:
        condition = as_arrays(test).replace("jnp.", unit.qualified_name("jax.numpy._")[:-1])
    return f"{unit.qualified_name('jax.numpy.where')}({condition}, {unit.source(x)}, {unit.source(y)})"


def pure(unit: Unit, node: ast.AST) -> bool:
    """Return True if an expression only computes, so that it may run though its value isn't needed."""
    match node:
        case ast.Call(func=func):
            module = getattr(unit.resolve(func), "__module__", "")
            of_jax = isinstance(module, str) and module.partition(".")[0] in ("jax", "jaxlib", "flax", "optax")
            is_method = isinstance(func, ast.Attribute) and func.attr in _METHODS and pure(unit, func.value)
            return (of_jax or is_method) and all(pure(unit, one) for one in (*node.args, *node.keywords))
        case ast.Constant(value=value):
            return isinstance(value, (int, float, complex, NoneType))
        case ast.Subscript(value=value, slice=ast.Tuple(elts=indices)):
            return all(pure(unit, one) for one in (value, *indices))
        case ast.expr() | ast.keyword():
            return isinstance(node, _PURE) and all(pure(unit, one) for one in ast.iter_child_nodes(node))
        case _:
            return True  # operators


def narrow_dtype(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edits that narrow all 64-bit dtypes in the statement: JAX warns once per line."""
    span = finding_span(finding)
    statement = next((node for node in unit.around(span, ast.stmt) if is_simple(node)), None)
    edits: list[Edit] = []
    for node in unit.nodes(ast.Attribute, ast.Constant, within=Span.of(statement) if statement is not None else span):
        match node:
            case ast.Attribute(attr=name) if name in _NARROW:
                line, column = Span.of(node)[2:]
                edits.append(Edit(unit.file, Span(line, column - len(name), line, column), _NARROW[name]))
            case ast.Constant(value=str() as name) if name in _NARROW:
                edits.append(unit.replace(node, unit.source(node).replace(name, _NARROW[name])))
            case _:
                continue
    if not edits:
        raise RewriteUncertain("no dtype is named there")
    return edits


def tuple_of_list(unit: Unit, finding: Finding) -> list[Edit]:
    span = finding_span(finding)
    node = unit.exactly(span, ast.List)
    if node is None or any(isinstance(element, ast.Starred) for element in node.elts):
        raise RewriteUncertain("it is no list")
    inside = unit.piece(span)[1:-1].strip()
    return [unit.replace(node, f"({inside.rstrip(',')},)" if len(node.elts) == 1 else f"({inside})")]


def debug_breakpoint(unit: Unit, finding: Finding) -> list[Edit]:
    call = unit.call_on_line(finding_span(finding))
    if unit.source(call.func) not in ("breakpoint", "pdb.set_trace") or call.args or call.keywords:
        raise RewriteUncertain("it is no breakpoint()")
    return [unit.replace(call.func, unit.qualified_name("jax.debug.breakpoint"))]


def item_set(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edit from x[i] = v to x = x.at[i].set(v).

    A dict that was passed stays: its caller may read the change.
    """
    for statement in filter(is_simple, unit.near(finding_span(finding), ast.stmt)):
        match statement:
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                method = "set"
            case ast.AugAssign(target=ast.Subscript() as target, op=operator, value=value):
                method = AT_METHODS.get(type(operator), "")
            case _:
                continue
        if not method or not isinstance(target.value, ast.Name):
            raise RewriteUncertain("jax.Array.at has no such method, or it isn't a name that is assigned to")
        name, index = target.value.id, unit.piece(Span.of(target)).removeprefix(target.value.id)
        return [unit.replace(statement, f"{name} = {name}.at{index}.{method}({unit.source(value)})")]
    raise RewriteUncertain("nothing is assigned there")


def masked_reduction(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edit from x[mask].sum() and its like to `where=mask`, so that the shape doesn't depend on values."""
    span = finding_span(finding)
    masked = [*unit.nodes(ast.Subscript, within=span), *unit.around(span, ast.Subscript)]
    for call, node in product(unit.around(span, ast.Call), masked):
        if not isinstance(call.func, ast.Attribute) or isinstance(node.slice, ast.Slice | ast.Tuple):
            continue
        if call.func.attr in _REDUCTIONS and (text := _reduced(unit, call, call.func, node)):
            return [unit.replace(call, text)]
    raise RewriteUncertain("what is done with it isn't a reduction")


def _reduced(unit: Unit, call: ast.Call, func: ast.Attribute, node: ast.Subscript) -> str:
    """Return a reduction of `x[mask]` alone, written with `where=`; "" for others."""
    if not _has_its_shape(unit, node.slice, node.value):
        raise RewriteUncertain("the mask may have fewer dimensions")
    array, where = unit.source(node.value), f"where={unit.source(node.slice)}"
    if func.value is node and not call.args and not call.keywords:
        return f"{array}.{func.attr}({where})"
    is_jax = str(getattr(unit.resolve(func), "__module__", "")).startswith("jax")
    return f"{unit.source(func)}({array}, {where})" if call.args == [node] and not call.keywords and is_jax else ""


def _has_its_shape(unit: Unit, mask: ast.expr, array: ast.expr) -> bool:
    """Return True if a mask is made of comparisons of the array itself, and so has its shape."""
    match mask:
        case ast.Name(id=name):
            values = [one.value for one in unit.nodes(ast.Assign) if getattr(one.targets[0], "id", "") == name]
            return len(values) == 1 and not isinstance(values[0], ast.Name) and _has_its_shape(unit, values[0], array)
        case ast.Compare(left=left, comparators=others):
            return any(ast.dump(one) == ast.dump(array) for one in (left, *others))
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return _has_its_shape(unit, left, array) and _has_its_shape(unit, right, array)
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return _has_its_shape(unit, inner, array)
        case _:
            return False


def guard(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edits that give the root in jnp.where(y > 0, jnp.sqrt(y), 0) an operand with a finite derivative."""
    assert unit.evidence is not None
    edits = list(_fixable_fault(unit.evidence, finding).edits)
    own = Span(unit.start, 0, unit.end + 1, 0)
    if any(edit.file != unit.file or edit.span not in own or "#" in edit.before for edit in edits):
        raise RewriteUncertain("it is in another function, or has a comment inside")
    return edits


def _fixable_fault(evidence: Evidence, finding: Finding) -> GradientFault:
    fault = fault_at(evidence.gradient_faults, finding.file, finding_span(finding))
    if fault is None or not fault.edits:
        raise RewriteUncertain("no guard that was run has the same value and a finite gradient")
    return fault


def verify_guard(before: Evidence, after: Evidence, finding: Finding, file: str) -> None:
    """Run both programs; raise RewriteUncertain unless values agree and the gradient is finite where the value is."""
    fault = _fixable_fault(before, finding)
    above = [edit.span for edit in fault.edits if edit.span.end_line < finding.line]
    line = finding.line - sum(span.end_line - span.line for span in above)
    if not is_fixed_in(fault, after.program, file, line):
        raise RewriteUncertain("when run, the rewrite has another value, or no finite gradient")
