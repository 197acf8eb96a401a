"""Executes a cure: what the ledger says to write is written before each call, and the compiles are counted again."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import equinox as eqx
import flax
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np

_NAMES = {"jax": jax, "jnp": jnp, "np": np, "flax": flax}
# What can't be assigned to is put in its place: in a tuple, in an object that may be frozen.
_IN_PLACE = re.compile(r"  # in place of ([^,\n]+)")
# What a remark says of when to do it; where nothing is said, before every call.
_ONLY = (
    (re.compile(r"where it is None"), lambda value, _: value is None),
    (re.compile(r"where it is not given"), lambda value, _: value is inspect.Parameter.empty),
    (re.compile(r"where its shape is (\([\d, ]*\))"), lambda value, shape: str(np.shape(value)) == shape),
    (re.compile(r"where it is a number"), lambda value, _: np.ndim(value) == 0),
)


def is_code(fix: str) -> bool:
    """Whether it is code on the arguments of a call, that can be executed as it stands; else it is a sentence."""
    try:
        tree = ast.parse(fix)
    except SyntaxError:
        return False
    if "dynamic_update_slice" in fix:  # it goes on inside of the function, where the scenario's cured run has it
        return False
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if names & {"mesh", "sharding", "device"}:
        return False
    lines = fix.splitlines()
    return bool(tree.body) and all(_is_about_a_value(statement, lines[statement.lineno - 1]) for statement in tree.body)


def _is_about_a_value(statement: ast.stmt, line: str) -> bool:
    wraps = any(isinstance(node, ast.Attribute) and node.attr in ("jit", "pmap", "filter_jit", "update", "set_mesh")
                for node in ast.walk(statement))  # fmt: skip
    if isinstance(statement, ast.Assign) or _IN_PLACE.search(line):
        return not wraps
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and not wraps and (
        isinstance(statement.value.func, ast.Attribute) and statement.value.func.attr == "setdefault"
    )  # fmt: skip


def promised(fix: str) -> int | None:
    """How many sizes a cure says there will be at most."""
    match = re.search(r"# (\d+) sizes? (?:at most )?for", fix)
    return int(match[1]) if match else None


class Executed(list[str]):
    """The lines that were executed; `changed` are those of calls whose result is another with the cure."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[str] = []
        self.compares = False


@contextmanager
def applied(fix: str, function: str, compares: bool = False) -> Iterator[Executed]:
    """While this lasts, calls of `function` through a jit that is made meanwhile get arguments that were cured.

    What is given lists the calls that it was executed for. To compare results, each call runs without the cure too.
    """
    executed = Executed()
    executed.compares = compares
    originals = [
        (where, name, getattr(where, name)) for where, name in ((jax, "jit"), (eqx, "filter_jit"), (nnx, "jit"))
    ]
    for where, name, original in originals:
        setattr(where, name, _curing(original, fix, function, executed))
    try:
        yield executed
    finally:
        for where, name, original in originals:
            setattr(where, name, original)


def _curing(jit: Callable[..., Any], fix: str, function: str, executed: Executed) -> Callable[..., Any]:
    def make(*args: Any, **options: Any) -> Any:
        if not args:
            return lambda own: make(own, **options)
        made = jit(*args, **options)
        return _Cured(made, args[0], fix, executed) if getattr(args[0], "__name__", "") == function else made

    return make


class _Cured:
    def __init__(self, made: Any, own: Any, fix: str, executed: Executed) -> None:
        self._made, self._fix, self._executed = made, fix, executed
        self._signature = inspect.signature(own)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._cured(self._made, args, kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        return self._cured(self._made.lower, args, kwargs)

    def _cured(self, made: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, kwargs))):
            return made(*args, **kwargs)  # the cure is for what the outer call is given
        bound = self._signature.bind(*args, **kwargs)
        values = {name: bound.arguments.get(name, inspect.Parameter.empty) for name in self._signature.parameters}
        values = {name: _copied(value) for name, value in values.items()}
        before, plain = len(self._executed), made(*args, **kwargs) if self._executed.compares else None
        values = self._write(values)
        result = self._called(made, bound, values, args)
        if self._executed.compares and len(self._executed) > before and not _same(plain, result):
            self._executed.changed += self._executed[before:]
        return result

    def _called(self, made: Callable[..., Any], bound: Any, values: dict[str, Any], args: tuple[Any, ...]) -> Any:
        given = {name: value for name, value in values.items() if value is not inspect.Parameter.empty}
        names = list(self._signature.parameters)[: len(args)]
        rest = {name: value for name, value in given.items() if name not in names}
        if any(p.kind is p.VAR_POSITIONAL for p in self._signature.parameters.values()):
            bound.arguments.update({name: given[name] for name in bound.arguments})
            return made(*bound.args, **bound.kwargs)
        return made(*(given[name] for name in names), **rest)

    def _write(self, values: dict[str, Any]) -> dict[str, Any]:
        written = self._fix.splitlines()
        for statement in ast.parse(self._fix).body:
            line = ast.unparse(statement)
            place = _IN_PLACE.search(written[statement.lineno - 1])
            root = re.split(r"[.\[ ]", place[1] if place else line, maxsplit=1)[0]
            if root not in values:
                continue
            only = next(((when, m[1] if m.lastindex else "") for p, when in _ONLY if (m := p.search(self._fix))), None)
            if only is None or only[0](values[root], only[1]):
                with suppress(NameError):  # of the user's own class
                    if place:
                        values[root] = _put(values[root], root, place[1], eval(line, dict(_NAMES), dict(values)))
                    else:
                        exec(line, dict(_NAMES), values)
                    self._executed.append(line)
        return values

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def _same(before: Any, after: Any) -> bool:
    old, new = jax.tree.leaves(before), jax.tree.leaves(after)
    return len(old) == len(new) and all(_same_leaf(a, b) for a, b in zip(old, new, strict=True))


def _same_leaf(before: Any, after: Any) -> bool:
    if not hasattr(before, "dtype") or jnp.issubdtype(before.dtype, jax.dtypes.prng_key):
        return True
    old, new = (np.asarray(leaf).astype(np.complex128) for leaf in (before, after))
    return old.shape == new.shape and np.allclose(old, new, rtol=2e-2, atol=1e-3)


def _put(value: Any, root: str, path: str, new: Any) -> Any:
    """The argument with another leaf at a path, in whatever container it is."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(value)
    return tree.unflatten([new if root + jax.tree_util.keystr(at) == path else leaf for at, leaf in leaves])


def _copied(value: Any) -> Any:
    """The same, in dictionaries of its own: a cure writes into them."""
    if type(value) is dict:
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, tuple):
        items = [_copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def finish(scenario: Iterator[None]) -> None:
    """Run a scenario to its end."""
    with suppress(StopIteration):
        next(scenario)
        raise AssertionError("a scenario yields once")
