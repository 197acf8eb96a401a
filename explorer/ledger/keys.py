"""The `Key` of a live call: plain data with everything that JAX's caches compare.

A key is made in the user's time for each call that compiles. Therefore repeated parts are read once. If all arrays are
in one place, only their types are looked at one by one.
"""

from __future__ import annotations

import re
import reprlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from operator import attrgetter
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import NamedSharding

from explorer._jax.arguments import (
    common_placement,
    concrete_mesh,
    dynamic_arguments,
    jaxpr_place,
    placement_of,
    pmapped,
    quick,
    trace_context,
    transformations_of,
    value_below,
)
from explorer._jax.calls import losses
from explorer._jax.traces import is_uncached_mark
from explorer.analysis.recompiles.reasons import Part, predictions
from explorer.ledger.functions import (
    Equals,
    Functions,
    Identities,
    Parts,
    argument_name,
    clean,
    device_order,
    dtype_name,
    is_primitive,
    leaf_of,
    parameters_of,
    sharding_parts,
)
from explorer.ledger.trees import argument_paths, filtered_call, named_paths, read_tree
from explorer.ledger.values import number_of, parts_of
from explorer.model.events.event import hot_copy_of
from explorer.model.events.family_counts import Prediction
from explorer.model.events.key import Function, Key, Leaf, Static, TreeNode
from explorer.model.events.leaves import Content, Contents, LeafColumns

_TREES = 1_024
_PAIRS = 256  # of an argument and a result
_GROWS_BY = 4  # what was generated so far, and the keys and values for it, grow by a few a call
_SCALARS = frozenset({int, float, bool, str, complex, type(None)})
_SHORT = 80  # characters of a static argument's


class Keys:
    """Maker of keys; equal leaves, settings and functions are shared objects."""

    def __init__(self) -> None:
        self._functions = Functions()
        self._statics = Identities()
        self._derived = Equals()
        self._structures = Equals(_TREES)
        self._trees: dict[int, TreeNode] = {}
        self._leaves = LeafReader()
        self._contexts: OrderedDict[Any, tuple[tuple[str, str], ...]] = OrderedDict()

    def number(self, function: Any) -> int:
        """Return the function's `Function.identity`."""
        return self._functions.number(function)

    def of_call(self, function: Any, wrapper: Any, args: Any, kwargs: Any, program: Any, values: Sequence[Any]) -> Key:
        """Return the key of a call whose jaxpr is known: `program`, with the values that it takes."""
        captured = len(program.consts)  # values of outer traces that JAX made arguments; the user didn't pass them
        paths = getattr(function, "__dict__", {}).get("explored_names") or tuple(program.arg_names)
        given = program.params["donated_invars"][captured:]
        wrapped = self._functions.wrapper(wrapper)
        copy = hot_copy_of(function)
        call = copy.call if copy is not None else filtered_call(function, args, paths)
        if call is None:
            own, statics = function, self._read_statics(function, wrapper, args, kwargs)
            treedef, paths = _users_tree(function, program.in_tree, paths)
        else:
            own, treedef, paths = call.function, call.tree, call.paths
            statics = tuple(self._static(path, value, False) for path, value in call.statics)
        leaves = self._leaves.read(paths, values[captured:], program.in_avals)
        tree, structure = self._tree(treedef, paths if call is None else [paths[i] for i in call.order])
        key = Key(
            self._functions.of(own, wrapper),
            leaves if call is None else leaves.take(call.order),
            tree,
            statics,
            _donated(paths, given),
            self._context(program.params.get("ctx_mesh")),
            wrapped.options,
            (*wrapped.wrapping, ("jit", "flax.nnx")) if ".states[" in "".join(program.arg_names) else wrapped.wrapping,
            structure,
            _grown(paths, program),
            (),
            transformations_of(values),
            losses.of(function),
        )
        if copy is not None:
            return replace(key, function=self._functions.of(function, wrapper), guard=copy.guard)
        return key if call is None else replace(key, wrapping=(*key.wrapping, ("filter_jit", "equinox")))

    def of_failed(self, function: Any, wrapper: Any, args: Any, kwargs: Any) -> Key:
        """Return the key of a call whose trace failed."""
        paths, values, given = dynamic_arguments(function, wrapper, args, kwargs)
        wrapped = self._functions.wrapper(wrapper)
        tree, structure = self._tree(given, paths)
        return Key(
            self._functions.of(function, wrapper),
            self._leaves.read(paths, values, [jax.typeof(value) for value in values]),
            tree,
            self._read_statics(function, wrapper, args, kwargs),
            (),
            self._context(None),
            wrapped.options,
            wrapped.wrapping,
            structure,
        )

    def of_jaxpr(self, params: dict[str, Any], values: Sequence[Any]) -> Key:
        """Return the key of a jaxpr that JAX derived from a user's function, such as its gradient."""
        jaxpr = params["jaxpr"]
        place, names = jaxpr_place(jaxpr)
        match = re.fullmatch(r"(.*) at (.+):(\d+)", place, re.DOTALL)
        file, line = (match[2], int(match[3])) if match else ("", 0)
        names = names if len(names) == len(values) else ("",) * len(values)
        paths = tuple(name or f"arg{i}" for i, name in enumerate(names))
        donated = params.get("donated_invars", ())
        name = str(params.get("name", ""))
        leaves = self._leaves.read(paths, values, jaxpr.in_avals)
        # There may be several of one function, forward and backward: each has arguments of its own.
        identity = -self._derived.of((place, tuple((leaf.dtype, len(leaf.shape)) for leaf in leaves)))
        return Key(
            Function(name, file, line, ("derived",), identity, self._statics.of(jaxpr), not match or "/jax/" in file),
            leaves,
            donated=_donated(paths, donated),
            context=self._context(params.get("ctx_mesh")),
            losses=losses.of(None),
            options=tuple((str(k), clean(str(v))) for k, v in params.get("compiler_options_kvs", ())),
        )

    def _tree(self, treedef: Any, paths: Sequence[str]) -> tuple[TreeNode, int]:
        """Return the structure of the arguments, and its number, equal for equal ones; 0 if they can't be compared."""
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
        positions, statics = wrapper.static_argnums, list[Static]()
        parameters = [*getattr(wrapper.fun_signature, "parameters", {}).values()] if positions else []
        for position in positions:
            at = position if position >= 0 else len(args) + position
            if 0 <= at < len(args):
                statics.append(self._static(argument_name(parameters, at), args[at], False))
        return (*statics, *(self._static(n, kwargs[n], True) for n in wrapper.static_argnames if n in kwargs))

    def _static(self, path: str, value: Any, keyword: bool) -> Static:
        try:
            token = hash(value)
        except Exception:  # the user's own, which worked when JAX called it
            token = 0
        number, own = number_of(value), type(value).__eq__ is object.__eq__
        parts = tuple(parts_of(value, path)) if type(value) not in _SCALARS else ()
        return Static(
            path, _print(value), type(value).__qualname__, number if own else 0, token, keyword, number, parts
        )

    def _context(self, mesh: Any) -> tuple[tuple[str, str], ...]:
        names, values = trace_context()
        try:
            around = concrete_mesh()  # the trace's key has no order of devices, the executable's has
            settings = values, mesh, around
            context = self._contexts.get(settings)
        except Exception:  # a value that can't be hashed can't be in JAX's key either
            return ()
        if context is None:
            settings_of_user = [None if is_uncached_mark(value) else getattr(value, "value", value) for value in values]
            named = [(name, _setting(value)) for name, value in zip(names, settings_of_user, strict=False)]
            if mesh is not None and not getattr(mesh, "empty", False):
                named.append(("mesh", clean(str(mesh)) + device_order(around)))
            context = self._contexts[settings] = tuple(named)
            if len(self._contexts) > 64:
                self._contexts.popitem(last=False)
        return context


def _users_tree(function: Any, treedef: Any, paths: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """Return a call's `PyTreeDef` and argument paths with the names that `pmap` and nnx hide."""
    of_pmap = pmapped(function)
    if of_pmap is not None and of_pmap[1].num_leaves == len(paths):
        treedef, paths = of_pmap[1], argument_paths(*of_pmap)
    return treedef, named_paths(treedef, paths) if ".states[" in "".join(paths) else paths  # of nnx.jit


def _donated(paths: Sequence[str], given: Sequence[bool]) -> tuple[str, ...]:
    return tuple(path for path, donated in zip(paths, given, strict=False) if donated) if any(given) else ()


def _grown(paths: Sequence[str], program: Any) -> tuple[str, ...]:
    """Return the paths of arguments that have a result's dtype and shape, but for one axis that is 1 to 4 longer in the
    result.

    Empty for a program with many arguments and results, which aren't compared.
    """
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


def _setting(value: Any) -> str:
    """Return a JAX setting's value as text; an object that prints as its address becomes its class and fields."""
    text, held = str(value), value
    if type(value) is tuple:  # meshes of `with mesh:`
        text += "".join([device_order(mesh) for mesh in cast("tuple[Any, ...]", value)])
    if " object at 0x" in text:
        slots: tuple[str, ...] = getattr(held, "__slots__", ())
        names = (*slots, *getattr(held, "__dict__", ()))
        fields = {name: getattr(held, name, None) for name in names if name != "hash"}
        text = f"{type(held).__name__}({fields})"
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


_NAME = re.compile(r"\w+")


def predict_recompiles(program: Any, key: Key) -> tuple[Prediction, ...]:
    """Return each recompile to expect if results of a traced call are passed back as arguments; empty if none."""
    if key.function.eager or key.function.is_hot or not key.leaves:
        return ()
    positional, named = program.in_tree.children()
    arguments = [*positional.children(), *named.children()]
    if sum(tree.num_leaves for tree in arguments) != len(key.leaves):
        return ()
    results = [leaf_of(f"result{i}", aval) for i, aval in enumerate(program.params["jaxpr"].out_avals)]
    whole = program.out_tree
    if whole.num_leaves != len(results):
        return ()
    kind = whole.node_data()
    elements = whole.children() if kind is not None and kind[0] in (tuple, list) else ()
    given = [Part("result", whole, tuple(results)), *_parts(elements, results, "result[{}]")]
    return predictions(key.function, [*_parts(arguments, key.leaves)], given)


def _parts(trees: Sequence[Any], leaves: Sequence[Leaf], name: str = "") -> Iterator[Part]:
    start = 0
    for index, tree in enumerate(trees):
        own = tuple(leaves[start : start + tree.num_leaves])
        start += tree.num_leaves
        if own:
            name_match = _NAME.match(own[0].path)
            yield Part(name.format(index) if name else name_match[0] if name_match else own[0].path, tree, own)


_MANY_CONTENTS = 50_000  # contents and shardings that are remembered
_MANY_PATHS = 1_024  # and the paths of so many calls
_Spread = tuple[str, tuple[str, ...], Parts | tuple[()]]
_NOWHERE: _Spread = ("", (), ())
_Type = tuple[Any, Any, Any]  # of an aval: shape, dtype and weakness
_Rest = tuple[str, bool | None, _Spread, str]  # what else a leaf is: as what it was given, committed, where, layout
_TYPE = cast("Callable[[Any], _Type]", attrgetter("shape", "dtype", "weak_type"))
_dtype_name = cache(dtype_name)  # NumPy puts it together each time
_PLAIN = {bool: "bool", int: "int", float: "float", complex: "complex", np.ndarray: "numpy"}


class _OfRest(dict[_Type, int]):
    """Numbers of contents that differ in their types only; a new type gets a number when it is looked up."""

    def __init__(self, rest: _Rest, contents: Contents) -> None:
        super().__init__()
        self._rest = rest
        self._contents = contents

    def __missing__(self, of: _Type) -> int:
        (shape, dtype, weak), (given, committed, (sharding, devices, spread), layout) = of, self._rest
        content = Content(
            tuple([size if isinstance(size, int) else str(size) for size in shape]),
            _dtype_name(dtype),
            bool(weak),
            given,
            committed,
            sharding,
            devices,
            _layout(layout, len(shape)) if layout else "",
            spread,
        )
        number = self[of] = self._contents.number(content)
        return number


class _Numbering(dict[_Rest, _OfRest]):
    """Numbers of contents, by everything but the type."""

    def __init__(self) -> None:
        super().__init__()
        self.contents = Contents()

    def __missing__(self, rest: _Rest) -> _OfRest:
        of_rest = self[rest] = _OfRest(rest, self.contents)
        return of_rest


class LeafReader:
    """Reader of the arguments of calls; equal contents share one number, equal paths one tuple."""

    def __init__(self) -> None:
        self._numbering = _Numbering()
        self._paths: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._spreads: dict[Any, _Spread] = {}

    def read(self, paths: Sequence[str], values: Sequence[Any], avals: Sequence[Any]) -> LeafColumns:
        """Return the columns of one call's arguments, as far as there are paths, values and types."""
        numbering = self._numbering  # another thread may begin the next one
        if len(numbering.contents) > _MANY_CONTENTS:
            numbering = self._numbering = _Numbering()
        if len(paths) < len(values):
            paths = (*paths, *(f"arg{i}" for i in range(len(paths), len(values))))
        count = min(len(paths), len(values), len(avals))
        values, avals, paths = values[:count], avals[:count], tuple(paths[:count])
        placed = common_placement(values)
        if placed is not None:  # most arrays are in one place, with its default layout
            of_rest = numbering["jax", False, self._spread_of(placed), ""]
            numbers = tuple(map(of_rest.__getitem__, map(_TYPE, avals)))
        else:
            numbers = tuple(
                [
                    numbering[given, committed, self._spread_of(sharding), layout][shape, dtype, weak]
                    for shape, dtype, weak, given, committed, sharding, layout in map(_leaf_content, values, avals)
                ]
            )
        if len(self._paths) > _MANY_PATHS:
            self._paths.clear()
        return LeafColumns(self._paths.setdefault(paths, paths), numbers, numbering.contents)

    def _spread_of(self, sharding: Any) -> _Spread:
        # The sharding's contents are the key: they are quick to look up, and the sharding is not.
        return _NOWHERE if sharding is None else self._spreads.get(quick(sharding)) or self._spread(sharding)

    def _spread(self, sharding: Any) -> _Spread:
        """Return a sharding's text, device names and parts (`sharding_parts`). A plain device has only its name; the
        rest is empty.
        """
        if len(self._spreads) > _MANY_CONTENTS:
            self._spreads.clear()
        devices = sorted(sharding.device_set, key=lambda device: device.id)
        names = tuple(f"{device.platform}:{device.id}" for device in devices)
        memory = _memory_of(sharding, devices[0])
        spread: _Spread = "", names, ()
        # A mesh of one device is not the device: JAX compiles for each.
        if len(names) > 1 or memory or isinstance(sharding, NamedSharding):
            parts = sharding_parts(sharding, memory)
            spread = clean(str(sharding)) + device_order(getattr(sharding, "mesh", None)), names, parts
        self._spreads[quick(sharding)] = spread
        return spread


def _leaf_content(value: Any, aval: Any) -> tuple[Any, ...]:
    """Return a leaf's (shape, dtype, weak type, kind of value, committed, sharding, layout); None or "" if unknown."""
    shape, dtype, weak = aval.shape, aval.dtype, getattr(aval, "weak_type", False)
    # A tracer is an array too, and slow to return its placement.
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


def _layout(layout: str, rank: int) -> str:
    """Return the layout's order (`{0,1}`), "" if it is the default. Its tiling is the device's own and is left out."""
    order = layout.partition(":")[0].rstrip("}")
    return "" if order == _plain(rank) else order + "}"


@cache
def _plain(rank: int) -> str:
    return "{" + ",".join(map(str, range(rank - 1, -1, -1)))  # XLA counts from the minor dimension


def _memory_of(sharding: Any, device: Any) -> str:
    """Return the memory kind of a sharding; "" for the device's default or if unknown."""
    try:
        kind = sharding.memory_kind
        return "" if kind is None or kind == device.default_memory().kind else str(kind)
    except Exception:  # a backend without memories
        return ""
