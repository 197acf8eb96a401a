"""From a live call to its `Key`: plain data that says everything JAX's caches compare.

A key is made in the user's time, for each call that compiles, so what repeats is read once: a leaf that was seen is
found by what it is made of, and is the same object again.
"""

from __future__ import annotations

import re
import reprlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer

from explorer._jax.arguments import (
    Array,
    dynamic_arguments,
    jaxpr_place,
    placement_of,
    pmapped,
    quick,
    trace_context,
    value_below,
)
from explorer.ledger.equinox import FilteredCall, filtered_call
from explorer.ledger.functions import (
    Functions,
    argument_name,
    clean,
    is_primitive,
    parameters_of,
)
from explorer.ledger.identity import Equals, Identities
from explorer.ledger.pytrees import argument_paths, named_paths, read_tree
from explorer.ledger.shardings import Parts, sharding_parts
from explorer.ledger.wrappers import Wrapper, read_wrapper
from explorer.model.events.key import Function, Key, Leaf, Static
from explorer.model.events.pytree import TreeNode

_MANY = 50_000  # leaves and settings that are remembered
_TREES = 1_024
_PAIRS = 256  # of an argument and a result
_GROWS_BY = 4  # what was generated so far, and the keys and values for it, grow by a few a call
_SHORT = 80  # characters of a static argument's
_Spread = tuple[str, tuple[str, ...], Parts | tuple[()]]
_NOWHERE: _Spread = ("", (), ())
_make = cast("Any", tuple.__new__)  # without the defaults and the names: a fifth of the time
_PLAIN = {bool: "bool", int: "int", float: "float", complex: "complex", np.ndarray: "numpy"}


class Keys:
    """Makes keys, and knows what it made: equal leaves, settings and functions are one object."""

    def __init__(self) -> None:
        self._functions = Functions()
        self._statics = Identities()
        self._derived = Equals()
        self._structures = Equals(_TREES)
        self._trees: dict[int, TreeNode] = {}
        self._leaves: dict[tuple[Any, ...], Leaf] = {}
        self._spreads: dict[Any, _Spread] = {}
        self._dtypes: dict[Any, str] = {}
        self._shapes: dict[tuple[Any, ...], tuple[int | str, ...]] = {}
        self._contexts: OrderedDict[Any, tuple[tuple[str, str], ...]] = OrderedDict()
        self._wrappers: OrderedDict[int, tuple[Any, Wrapper]] = OrderedDict()

    def function(self, function: Any, wrapper: Any) -> Function:
        return self._functions.of(function, wrapper)

    def number(self, function: Any) -> int:
        """Its `Function.identity`."""
        return self._functions.number(function)

    def of_call(self, function: Any, wrapper: Any, args: Any, kwargs: Any, program: Any, values: Sequence[Any]) -> Key:
        """The key of a call whose jaxpr is there: `program`, with the values that it takes."""
        captured = len(program.consts)  # values of outer traces that were made arguments; nobody passed them
        paths = getattr(function, "__dict__", {}).get("explored_names") or tuple(program.arg_names)
        given = program.params["donated_invars"][captured:]
        mesh = program.params.get("ctx_mesh")
        wrapped = self._wrapper(wrapper)
        filtered = filtered_call(function, args, paths)
        if filtered is not None:
            return self._of_filtered(filtered, wrapper, wrapped, given, values[captured:], program)
        treedef = program.in_tree
        of_pmap = pmapped(function)
        if of_pmap is not None and of_pmap[1].num_leaves == len(paths):
            treedef, paths = of_pmap[1], argument_paths(*of_pmap)
        if any(".states[" in path for path in paths):  # of nnx.jit
            paths = named_paths(treedef, paths)
        tree, structure = self._tree(treedef, paths)
        return Key(
            self.function(function, wrapper),
            self._read_leaves(paths, values[captured:], program.in_avals),
            tree,
            self._read_statics(function, wrapper, args, kwargs),
            tuple(path for path, donated in zip(paths, given, strict=False) if donated),
            self._context(mesh),
            wrapped.options,
            wrapped.wrapping,
            structure,
            _grown(paths, program),
        )

    def _of_filtered(
        self,
        call: FilteredCall,
        wrapper: Any,
        wrapped: Wrapper,
        given: Sequence[bool],
        values: Sequence[Any],
        program: Any,
    ) -> Key:
        leaves = self._read_leaves(call.paths, values, program.in_avals)
        tree, structure = self._tree(call.tree, [call.paths[i] for i in call.order])
        return Key(
            self.function(call.function, wrapper),
            tuple(leaves[i] for i in call.order),
            tree,
            tuple(self._static(path, value, False) for path, value in call.statics),
            tuple(path for path, donated in zip(call.paths, given, strict=False) if donated),
            self._context(program.params.get("ctx_mesh")),
            wrapped.options,
            (*wrapped.wrapping, ("filter_jit", "equinox")),
            structure,
            _grown(call.paths, program),
        )

    def of_failed(self, function: Any, wrapper: Any, args: Any, kwargs: Any) -> Key:
        """The key of a call whose trace failed."""
        paths, values, given = dynamic_arguments(function, wrapper, args, kwargs)
        wrapped = self._wrapper(wrapper)
        tree, structure = self._tree(given, paths)
        return Key(
            self.function(function, wrapper),
            self._read_leaves(paths, values, [jax.typeof(value) for value in values]),
            tree,
            self._read_statics(function, wrapper, args, kwargs),
            (),
            self._context(None),
            wrapped.options,
            wrapped.wrapping,
            structure,
        )

    def of_jaxpr(self, params: dict[str, Any], values: Sequence[Any]) -> Key:
        """The key of a jaxpr that JAX made itself of a function of the user's, such as its derivative's."""
        jaxpr = params["jaxpr"]
        place, names = jaxpr_place(jaxpr)
        match = re.fullmatch(r"(.*) at (.+):(\d+)", place, re.DOTALL)
        file, line = (match[2], int(match[3])) if match else ("", 0)
        names = names if len(names) == len(values) else ("",) * len(values)
        paths = tuple(name or f"arg{i}" for i, name in enumerate(names))
        donated = params.get("donated_invars", ())
        name = str(params.get("name", ""))
        leaves = self._read_leaves(paths, values, jaxpr.in_avals)
        # There may be several of one function, forward and backward: each has arguments of its own.
        identity = -self._derived.of((place, tuple((leaf.dtype, len(leaf.shape)) for leaf in leaves)))
        return Key(
            Function(name, file, line, ("derived",), identity, 0, not match or "/jax/" in file),
            leaves,
            donated=tuple(path for path, gone in zip(paths, donated, strict=False) if gone),
            context=self._context(params.get("ctx_mesh")),
            options=tuple((str(k), clean(str(v))) for k, v in params.get("compiler_options_kvs", ())),
        )

    def _read_leaves(self, paths: Sequence[str], values: Sequence[Any], avals: Sequence[Any]) -> tuple[Leaf, ...]:
        if len(self._leaves) > _MANY:
            self._leaves.clear()
        if len(paths) < len(values):
            paths = (*paths, *(f"arg{i}" for i in range(len(paths), len(values))))
        leaves, spreads, read = self._leaves, self._spreads, self._read_leaf
        read_leaves: list[Leaf] = []
        last, spread = None, _NOWHERE  # arrays that were made together share one sharding
        for path, value, aval in zip(paths, values, avals, strict=False):
            if type(value) is Array:  # most are; reading these takes JAX as long as the rest takes us
                shape, dtype, weak, given = aval.shape, aval.dtype, aval.weak_type, "jax"
                committed, sharding, layout = placement_of(value, len(shape))
            else:
                shape, dtype, weak, given, committed, sharding, layout = _leaf_content(value, aval)
            # What a sharding says stands for it: that is quick to look up, and the sharding is not.
            if sharding is not last:
                last = sharding
                spread = _NOWHERE if sharding is None else spreads.get(quick(sharding)) or self._spread(sharding)
            content = path, shape, dtype, weak, given, committed, spread, layout
            leaf = leaves.get(content)
            read_leaves.append(leaf if leaf is not None else read(content))
        return tuple(read_leaves)

    def _read_leaf(self, content: tuple[Any, ...]) -> Leaf:
        path, shape, dtype, weak, given, committed, (sharding, devices, spread), layout = content
        name = self._dtypes.get(dtype)
        if name is None:
            name = self._dtypes[dtype] = str(getattr(dtype, "name", dtype))
        if layout:
            layout = _layout(layout, len(shape))
        sizes = self._shapes.get(shape)
        if sizes is None:
            if len(self._shapes) > _MANY:
                self._shapes.clear()
            sizes = self._shapes[shape] = tuple(size if isinstance(size, int) else str(size) for size in shape)
        leaf = self._leaves[content] = _make(
            Leaf, (path, sizes, name, bool(weak), given, committed, sharding, devices, layout, spread)
        )
        return leaf

    def _spread(self, sharding: Any) -> _Spread:
        """How a sharding spreads an array, and over which devices."""
        if len(self._spreads) > _MANY:
            self._spreads.clear()
        devices = sorted(sharding.device_set, key=lambda device: device.id)
        names = tuple(f"{device.platform}:{device.id}" for device in devices)
        memory = _memory_of(sharding, devices[0])
        spread: _Spread = "", names, ()
        if len(names) > 1 or memory:
            spread = clean(str(sharding)), names, sharding_parts(sharding, memory)
        self._spreads[quick(sharding)] = spread
        return spread

    def _tree(self, treedef: Any, paths: Sequence[str]) -> tuple[TreeNode, int]:
        """The structure of the arguments with its number; it is read once for all calls of an equal one."""
        structure = self._structures.of(treedef)
        tree = self._trees.get(structure)
        if tree is None:
            tree = read_tree(treedef, paths)
            if structure:
                self._trees[structure] = tree
                if len(self._trees) > _TREES:
                    self._trees.pop(next(iter(self._trees)))
        return tree, structure

    def _read_statics(self, function: Any, wrapper: Any, args: Any, kwargs: Any) -> tuple[Static, ...]:
        if is_primitive(function):
            return tuple(self._static(name, value, True) for name, value in parameters_of(function).items())
        return tuple(
            self._static(path, value, keyword) for path, value, keyword in _static_values(wrapper, args, kwargs)
        )

    def _static(self, path: str, value: Any, keyword: bool) -> Static:
        try:
            token = hash(value)
        except Exception:  # the user's own, which worked when JAX called it
            token = 0
        own = type(value).__eq__ is object.__eq__
        return Static(
            path, _print(value), type(value).__qualname__, self._statics.of(value) if own else 0, token, keyword
        )

    def _context(self, mesh: Any) -> tuple[tuple[str, str], ...]:
        names, values = trace_context()
        try:
            settings = values, mesh
            context = self._contexts.get(settings)
        except Exception:  # a value that can't be hashed is nobody's part of a key
            return ()
        if context is None:
            named = [
                (name, _setting(getattr(value, "value", value))) for name, value in zip(names, values, strict=False)
            ]
            if mesh is not None and not getattr(mesh, "empty", False):
                named.append(("mesh", clean(str(mesh))))
            context = self._contexts[settings] = tuple(named)
            if len(self._contexts) > 64:
                self._contexts.popitem(last=False)
        return context

    def _wrapper(self, wrapper: Any) -> Wrapper:
        entry = self._wrappers.get(id(wrapper))
        if entry is not None and entry[0] is wrapper:
            return entry[1]
        settings = read_wrapper(wrapper)
        self._wrappers[id(wrapper)] = wrapper, settings
        if len(self._wrappers) > _MANY // 10:
            self._wrappers.popitem(last=False)
        return settings


def _leaf_content(value: Any, aval: Any) -> tuple[Any, ...]:
    """What a leaf is made of that is no plain array: all but its path."""
    shape, dtype, weak = aval.shape, aval.dtype, getattr(aval, "weak_type", False)
    # A tracer also says it is an array, and takes its time to say where it is.
    if isinstance(value, Tracer):
        inner = value_below(value)  # of vmap or grad: what is compiled is for the whole batch
        if inner is not None and inner is not value:
            return _leaf_content(inner, jax.typeof(inner))
        return shape, dtype, weak, "jax", None, None, ""
    if isinstance(value, jax.Array):
        return shape, dtype, weak, "jax", *placement_of(value, len(shape))
    if isinstance(value, jax.ShapeDtypeStruct):
        return shape, dtype, weak, "struct", None, value.sharding, ""
    given = _PLAIN.get(cast("type[Any]", type(value))) or (
        "numpy" if isinstance(value, (np.generic, np.ndarray)) else type(value).__name__
    )
    return shape, dtype, weak, given, None, None, ""


def _grown(paths: Sequence[str], program: Any) -> tuple[str, ...]:
    """The leaves that come back a little longer; of a small program, for each is held against each result."""
    results = getattr(program.params.get("jaxpr"), "out_avals", ())
    if not 0 < len(paths) * len(results) <= _PAIRS:
        return ()
    return tuple(
        path
        for path, taken in zip(paths, program.in_avals, strict=False)
        if any(_is_longer(taken, result) for result in results)
    )


def _is_longer(taken: Any, result: Any) -> bool:
    old, new = taken.shape, getattr(result, "shape", ())
    if len(old) != len(new) or taken.dtype != getattr(result, "dtype", None):
        return False
    more: list[Any] = [b - a for a, b in zip(old, new, strict=True) if a is not b and a != b]
    return len(more) == 1 and type(more[0]) is int and 0 < more[0] <= _GROWS_BY  # one that is symbolic isn't known


def _layout(layout: str, rank: int) -> str:
    """A layout where it is not the default; its tiling is the device's own way."""
    order = layout.partition(":")[0].rstrip("}")
    return "" if order == _plain(rank) else order + "}"


@cache
def _plain(rank: int) -> str:
    return "{" + ",".join(map(str, range(rank - 1, -1, -1)))  # XLA counts from the minor dimension


def _static_values(wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    parameters = [*getattr(wrapper.fun_signature, "parameters", {}).values()]
    for position in wrapper.static_argnums:
        at = position if position >= 0 else len(args) + position
        if 0 <= at < len(args):
            yield argument_name(parameters, at), args[at], False
    for name in wrapper.static_argnames:
        if name in kwargs:
            yield name, kwargs[name], True


def _memory_of(sharding: Any, device: Any) -> str:
    """The memory that it is in; empty for the device's usual one."""
    try:
        kind = sharding.memory_kind
        return "" if kind is None or kind == device.default_memory().kind else str(kind)
    except Exception:  # a backend without memories
        return ""


def _setting(value: Any) -> str:
    """Printed; of an object that prints as its address, what it holds."""
    text = str(value)
    if " object at 0x" in text:
        slots: tuple[str, ...] = getattr(value, "__slots__", ())
        names = (*slots, *getattr(value, "__dict__", ()))
        held = {name: getattr(value, name, None) for name in names if name != "hash"}
        text = f"{type(value).__name__}({held})"
    return clean(text)


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxfrozenset = 12
        self.maxstring = self.maxother = self.maxlong = _SHORT
        self.maxlevel = 4


_short = _Short()


def _print(value: Any) -> str:
    if callable(value) and isinstance(name := getattr(value, "__qualname__", None), str):
        return name.rpartition("<locals>.")[2]
    try:
        return clean(_short.repr(value), _SHORT)
    except Exception:  # the user's own repr
        return f"<{type(value).__qualname__}>"
