"""Fixes for recompiles: code with the user's own names, or one sentence where no code can be given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from explorer.analysis.recompiles.case import FUNCTIONS, Case, defined_in_a_cell, leaf_at, maker_name, shape_text
from explorer.analysis.recompiles.nearest import Change
from explorer.model.events.key import Key, Leaf, Static
from explorer.model.events.leaves import Content, LeafColumns, in_columns
from explorer.model.stage import is_library_file
from explorer.model.text import root_of

_PYTHON = ("bool", "int", "float", "complex")
_MAX_PADDING_FACTOR = 16  # beyond this factor the padded work costs more than one program less saves
_MAX_LINES = 3
_OF_TYPE = ("dtype", "weak-type")
_MODEL = frozenset({"params", "weights", "model", "variables", "opt_state", "state", "train_state", "grads"})
_ALL_BATCHES = "once, before the first call"


def dtype_of(name: str) -> str:
    return f"jnp.{name}_" if name == "bool" else f"jnp.{name}"


def assignment(path: str, value: str, remark: str = "") -> str:
    """Return the line `path = value`, or `value` with a comment if `path` is inside a tuple or an object."""
    is_assigned = path.isidentifier() or path.endswith(("']", '"]'))
    return with_comment(f"{path} = {value}" if is_assigned else f"{value}  # in place of {path}", remark)


def is_all_of(key: Key, leaves: LeafColumns) -> bool:
    tree = root_of(leaves.paths[0])
    (every,) = in_columns(key.leaves)
    count = _count_inside(leaves.paths, tree)
    return count == len(leaves) and (count == len(every) or count == _count_inside(every.paths, tree))


@lru_cache(64)  # a call has hundreds of paths, which rarely change between calls
def _count_inside(paths: tuple[str, ...], tree: str) -> int:
    inside = (f"{tree}[", f"{tree}.")
    return sum([path.startswith(inside) for path in paths])


def with_comment(code: str, remark: str) -> str:
    return f"{code}{',' if '  # ' in code else '  #'} {remark}" if remark else code


def fix_shape(case: Case) -> str:
    """Return a fix for a changed size: pad, preallocate, use buckets, or keep to a few sizes; empty without a leaf."""
    leaf, axis, sizes = case.leaf, case.chosen.axis, case.sizes
    if leaf is None:
        return ""
    tree = root_of(leaf.path)
    # A padded weight would be another model.
    if tree in _MODEL:
        return f"each size of `{tree}` is a program of its own, which is compiled once: keep to one, or to few"
    if leaf.dtype.startswith("key<") or not all(isinstance(size, int) for size in leaf.shape) or len(sizes) < 2:
        return f"keep {leaf.path}.shape[{axis}] the same from call to call"
    # An array that grows with each call would pass through every bucket; at its last size it needs one program.
    if leaf.path in case.key.grown and all(a < b for a, b in pairwise(sizes)):
        return _preallocate(case, leaf, axis, sizes)
    return _fix_of_two(case, sizes) or _pad_to_buckets(case, leaf)


def _fix_of_two(case: Case, sizes: tuple[int, ...]) -> str:
    axis = case.chosen.axis
    if len(sizes) != 2:
        return ""
    if max(sizes) > _MAX_PADDING_FACTOR * min(sizes):
        return (
            f"{sizes[0]} and {sizes[1]} are too far apart to pad: each is a program of its own, compiled once; "
            "of more sizes keep to a few"
        )
    # Usually the last batch of a data set, which has fewer examples.
    if sizes[1] < sizes[0] and axis == 0:
        padding = _Padding({axis: f"{sizes[0]} - {{}}.shape[{axis}]"})
        return padding.code(case, "and mask what is added; or drop the last, smaller batch")
    return ""


def _preallocate(case: Case, leaf: Leaf, axis: int, sizes: tuple[int, ...]) -> str:
    """Return code that allocates an array that grows with each call at its final size."""
    # The last size isn't known, so suggest the next power of two.
    size = max(16, 1 << (2 * sizes[-1] - 1).bit_length() - 1)
    whole = shape_text((*leaf.shape[:axis], size, *leaf.shape[axis + 1 :]))
    start = shape_text(tuple("n" if i == axis else 0 for i in range(len(leaf.shape))))
    others = [f"`{path}`" for path in case.key.grown if path != leaf.path]
    more = f"; likewise {', '.join(others[:_MAX_LINES])}" if others else ""
    remark = f"its last size at once; then jax.lax.dynamic_update_slice({leaf.path}, new, {start}){more}"
    return assignment(leaf.path, f"jnp.zeros({whole}, {dtype_of(leaf.dtype)})", remark)


class _Padding(NamedTuple):
    """Padded dimensions, each with an expression of the array's name for the amount of padding."""

    amounts: dict[int, str]

    def code(self, case: Case, remark: str) -> str:
        places: set[int] = set()
        places.update(*[difference.places for difference in case.causes if difference.axis in self.amounts])
        places.discard(case.chosen.at)
        leaves = case.leaves_at([case.chosen.at, *sorted(places)])
        if len(leaves) > 1 and is_all_of(case.key, leaves):
            tree = root_of(leaves.paths[0])
            padded = self._padded("leaf", leaves.distinct())
            return with_comment(f"{tree} = jax.tree.map(lambda leaf: {padded}, {tree})", remark)
        lines = [assignment(leaf.path, self._padded(leaf.path, [leaf])) for leaf in islice(leaves, _MAX_LINES)]
        more = f"; likewise {len(leaves) - _MAX_LINES} more" if len(leaves) > _MAX_LINES else ""
        return "\n".join([with_comment(lines[0], remark + more), *lines[1:]])

    def _padded(self, name: str, leaves: Sequence[Leaf | Content]) -> str:
        # NumPy's own compiles nothing; JAX's is a small program for each size.
        library = "np" if {leaf.given for leaf in leaves} == {"numpy"} else "jnp"
        ranks = {len(leaf.shape) for leaf in leaves}
        least = max(self.amounts) + 1
        rank = ranks.pop() if len(ranks) == 1 else least
        pads = [f"(0, {self.amounts[axis].format(name)})" if axis in self.amounts else "(0, 0)" for axis in range(rank)]
        widths = f"[{', '.join(pads)}]"
        return f"{library}.pad({name}, {widths if not ranks else f'{widths} + [(0, 0)] * ({name}.ndim - {least})'})"


def _pad_to_buckets(case: Case, leaf: Leaf) -> str:
    """Return code that pads to a few sizes, and the equivalent `ex.compile(…)` with declared ranges."""
    ranges = {
        axis: _Range(sizes, min(sizes), max(sizes))
        for axis, sizes in enumerate(map(case.sizes_of, range(len(leaf.shape))))
        if len(sizes) > 1
    }
    steps = {axis: sizes.step() for axis, sizes in ranges.items()}
    padding = _Padding({axis: f"-{{}}.shape[{axis}] % {step}" for axis, step in steps.items()})
    axis = case.chosen.axis
    code = padding.code(case, f"{ranges[axis].fewer(steps[axis])}; mask what is added")
    info = f"InputInfo({_bounds(leaf, ranges)}, {dtype_of(leaf.dtype)})"
    alone = leaf.path.isidentifier() and len(case.key.leaves) == 1
    compiled = f'ex.compile({case.name}, args=[{info if alone else "…"}], dynamic="auto")'
    compiled += "" if alone else f" with {info}"
    return f"{code}\n# or a few programs for all sizes, where padding is proven exact (else one for each): {compiled}"


class _Range(NamedTuple):
    sizes: tuple[int, ...]
    least: int
    most: int

    def step(self) -> int:
        """Return a power of two with about four multiples in the range that merges a third of the sizes."""
        sizes, least, most = self
        step = max(8, 1 << (-(-(most - least) // 4) - 1).bit_length())
        # A step of at least the largest size pads every size but 0 to the same.
        while step < most and len({-(-size // step) for size in sizes}) > len(sizes) * 2 // 3:
            step *= 2
        return step

    def fewer(self, step: int) -> str:
        count = -(-self.most // step) - -(-self.least // step) + 1
        text = "1 size" if count == 1 else f"{count} sizes at most"
        return f"{text} for {self.least} … {self.most}"


def _bounds(leaf: Leaf, ranges: dict[int, _Range]) -> str:
    dimensions = list(leaf.shape)
    for axis, (sizes, least, most) in ranges.items():
        dimensions[axis] = f'NamedDimension("{_dimension(leaf, axis)}", {least}, {sizes[-1]}, {most})'
    return shape_text(tuple(dimensions))


def _dimension(leaf: Leaf, axis: int) -> str:
    if axis == 0:
        return "batch"
    if axis == 1 and (len(leaf.shape) == 3 or leaf.dtype.startswith(("int", "uint"))):
        return "length"
    words = re.findall(r"[A-Za-z_]\w*", leaf.path)
    return f"{words[-1]}_{axis}" if words else f"size_{axis}"


RESHAPES = "one rank in all calls, which gives the result another shape too:"


def fix_rank(case: Case) -> str:
    """Return a fix that gives both calls one rank: of two ranks, the larger usually has the batch."""
    places = sorted({at for difference in case.causes if difference.kind == "rank" for at in difference.places})
    lines = _each(case, places, _one_rank)
    return lines if lines.startswith(("`", "give ")) else f"{RESHAPES}\n{lines}"


def _each(case: Case, places: Sequence[int], fix: Callable[[Leaf, Leaf], str]) -> str:
    pairs = [(case.key.leaves[at], leaf_at(case.old, at, case.key.leaves[at].path)) for at in places[:_MAX_LINES]]
    lines = [fix(new, old) for new, old in pairs if old is not None]
    return "\n".join(lines) + (f"\n# likewise {len(places) - _MAX_LINES} more" if len(places) > _MAX_LINES else "")


def _one_rank(new: Leaf, old: Leaf) -> str:
    path, (short, long) = new.path, sorted((new, old), key=lambda leaf: len(leaf.shape))
    where = f"where its shape is {shape_text(short.shape)}"
    if not short.shape and long.shape == (1,):
        return assignment(path, f"jnp.reshape({path}, ())", f"where its shape is {shape_text(long.shape)}")
    if not short.shape:
        whole = f"jnp.full({shape_text(long.shape)}, {path}, {dtype_of(long.dtype)})"
        return assignment(path, whole, "where it is a number")
    if long.shape[1:] == short.shape:
        return _as_a_batch(path, short, long, where)
    if long.shape[:-1] == short.shape and long.shape[-1] == 1:
        return assignment(path, f"{path}[..., None]", where)
    return f"give `{path}` one number of dimensions in all calls: {len(old.shape)} or {len(new.shape)}"


def _as_a_batch(path: str, short: Leaf, long: Leaf, where: str) -> str:
    """Return code that pads one example to the batch size of the other calls, or a sentence if that is too large."""
    count = long.shape[0]
    if count == 1:
        return assignment(path, f"{path}[None]", where)
    if not isinstance(count, int) or count > _MAX_PADDING_FACTOR:
        return f"`{path}[None]`, {where}, would still have another size: use jax.vmap on a function of one example"
    widths = ", ".join([f"(0, {count - 1})", *["(0, 0)"] * len(short.shape)])
    library = "np" if short.given == "numpy" else "jnp"
    padded = f"{library}.pad({path}[None], [{widths}])"
    return assignment(path, padded, f"{where}; mask what is added")


def fix_type(case: Case) -> str:
    """Return code that gives both calls one dtype: the earlier one, or the new one if that loses no values.

    Empty without a leaf.
    """
    new, old = case.leaf, case.old_leaf
    if new is None or old is None:
        return ""
    if new.dtype.startswith("key<") and old.dtype.startswith("key<"):
        return f'jax.config.update("jax_default_prng_impl", …)  # one kind of key: {old.dtype} or {new.dtype}'
    if "key<" in new.dtype + old.dtype:
        return assignment(new.path, "jax.random.key(…)", "everywhere, in place of jax.random.PRNGKey(…)")
    others = [at for d in case.causes if d.kind in _OF_TYPE and d is not case.chosen for at in d.places]
    if not others and len(case.alike) > 1 and is_all_of(case.key, case.alike):
        wanted, odd, when = _wanted(new, old)
        tree, dtype = root_of(new.path), dtype_of(wanted.dtype)
        cast = dtype if odd.given in _PYTHON else f"lambda leaf: leaf.astype({dtype})"
        return with_comment(f"{tree} = jax.tree.map({cast}, {tree})", when)
    return _each(case, [*case.chosen.places, *sorted(others)], _cast)


def _cast(new: Leaf, old: Leaf) -> str:
    if new.given in _PYTHON and old.given in _PYTHON and new.dtype != old.dtype:
        kind = old.given if {new.given, old.given} == {"bool", "int"} else max(new.given, old.given, key=_PYTHON.index)
        return assignment(new.path, f"{kind}({new.path})", "before each call")
    wanted, odd, when = _wanted(new, old)
    dtype = dtype_of(wanted.dtype)
    if odd.given in _PYTHON:
        remark = f"{when}: a Python {odd.given} has a weak type"
        return assignment(new.path, f"{dtype}({new.path})", remark)
    value = f"jnp.asarray({new.path}, {dtype})" if odd.weak else f"{new.path}.astype({dtype})"
    return assignment(new.path, value, when)


def _wanted(new: Leaf, old: Leaf) -> tuple[Leaf, Leaf, str]:
    # A loop that starts with a Python number continues with its own result, which is an array: keep the array's type.
    if old.given in _PYTHON or (old.weak and not new.weak):
        return new, old, "from the first call on"
    if _holds(old.dtype) < _holds(new.dtype):  # a cast back would lose values
        return new, old, "in every call"
    return old, new, "before this call"


def _holds(dtype: str) -> int:
    """Return the number of a dtype's kind, from 0 for bool to 4 for complex; 3, that of float, for other names.

    Numbers of a higher kind can't be cast to a lower kind without loss.
    """
    return next((i for i, kind in enumerate(("bool", "uint", "int", "float", "complex")) if dtype.startswith(kind)), 3)


def fix_placement(case: Case) -> str:
    """Return code with a `jax.device_put` for both calls, of a whole argument if several of its leaves moved.

    If an option of `jax.jit` changed the placement, return a sentence.
    """
    leaf, old = case.leaf, case.old_leaf
    if leaf is None or old is None:
        return _options(case)
    if case.chosen.kind == "layout":
        path, more = leaf.path, "; likewise those that changed with it" if len(case.alike) > 1 else ""
        return assignment(path, f"jax.device_put({path}, {_format(old, path)})", f"as in the first call{more}")
    path = root_of(leaf.path) if len(case.alike) > 1 else leaf.path
    where = _destination(leaf, old, path)
    remark = "in every call" if "numpy" in (leaf.given, old.given) else _ALL_BATCHES
    names = (path, *case.roots[1:])
    lines = [assignment(name, f"jax.device_put({name}, {where})") for name in names[:_MAX_LINES]]
    lines += [f"# likewise {len(names) - _MAX_LINES} more"] if len(names) > _MAX_LINES else []
    return "\n".join([with_comment(lines[0], remark), *lines[1:]])


def _destination(leaf: Leaf, old: Leaf, path: str) -> str:
    """Return the second argument of `jax.device_put` that gives both arrays the same placement."""
    spreads = [held.spread for held in (leaf, old) if held.spread]
    specs = [spec for spec, _, _ in spreads if spec]
    if specs:
        return f"NamedSharding(mesh, {specs[0]})"
    if any(memory for _, _, memory in spreads):
        return f'{path}.sharding.with_memory_kind("device")'
    return "sharding" if len(leaf.devices) > 1 or len(old.devices) > 1 else _device(leaf, old)


def _format(old: Leaf, path: str) -> str:
    """Return a `Format(Layout(…))` expression with the earlier layout."""
    # XLA lists dimensions from minor to major, JAX from major to minor.
    axes = old.layout.strip("{}").split(",") if old.layout else [str(axis) for axis in range(len(old.shape))][::-1]
    order = axes[::-1]
    return f"Format(Layout(({', '.join(order)})), {path}.sharding)"


def _device(leaf: Leaf, old: Leaf) -> str:
    name = (leaf.devices if leaf.committed or not old.committed else old.devices) or old.devices or ("device",)
    platform, _, number = name[0].partition(":")
    return f'jax.devices("{platform}")[{number}]' if number.isdigit() else "device"


# Wrapping of a call through Equinox's own jit, which passes everything to one jax.jit.
_FILTERED = ("filter_jit", "equinox")
_OWN_JITS = {_FILTERED: "eqx.filter_jit(", ("jit", "flax.nnx"): "nnx.jit("}
_NUMBERS = ("int", "bool", "float", "complex")


def fix(case: Case) -> str:
    """Return the fix of a case: code, or one sentence where no code can be given; empty if its leaf is unknown."""
    operation = case.key.function.name.lstrip("_")  # `_one_hot` is private: its user wrote `one_hot`
    if case.key.function.eager and case.chosen.kind == "function" and not case.is_body:
        return f"make what calls `{operation}` once, outside of the loop, and call it inside of a jax.jit"
    if case.key.function.eager and not case.is_body:
        same = f", and keep {case.chosen.leaf} the same" if case.chosen.kind == "shape" else ""
        return f"put `{operation}` under jax.jit with the code around it{same}"
    if case.key.function.is_hot and case.chosen.kind in _HOT_FIXES:
        return _HOT_FIXES[case.chosen.kind](case)
    written = _FIXES[case.chosen.kind](case)
    # Users of Equinox or NNX call its jit, not JAX's.
    own = next((jit for marker, jit in _OWN_JITS.items() if marker in case.key.wrapping), "jax.jit(")
    return written.replace("jax.jit(", own)


def _structure(case: Case) -> str:
    change, leaf = case.chosen.change, case.chosen.leaf
    if change is None:
        return (
            "give the class whose objects differ an __eq__ and a __hash__ over what it keeps, or pass the same object"
        )
    if change.how in ("added", "removed"):
        return _always(case, change)
    if change.how == "moved":
        return f"{case.name}(…, {leaf}={leaf})  # by name in every call, or by position in every call"
    if change.how == "field":
        return _field(change)
    if change.how == "kept":
        return _metadata(change)
    if "None" in (change.before, change.after):
        return _never_none(case, change)
    return _one_kind(change)


def _metadata(change: Change) -> str:
    leaf = change.path
    if change.after.startswith("OrderedDict["):
        return f"{leaf} = dict({leaf})  # whose keys JAX sorts; or give it its keys in one order"
    if "<function" in change.after:
        return f"make the function in `{leaf}` once, outside of the loop: a new one is unequal to the last"
    return f"pass the same `{leaf}` each time, or make what changes in it an array: all else in it is static"


def _field(change: Change) -> str:
    leaf, owner = change.path, change.parent or "it"
    if change.before == change.after:
        return f"make `{leaf}` once, before the loop, and build each `{owner}` with that one"
    if _is_number(change.after):
        return f"make `{leaf}` an array, if no shape and no Python branch depends on it: as it is, each value compiles"
    return f"keep `{leaf}` the same; if both values are intended, each is compiled once, as a program of its own"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one_kind(change: Change) -> str:
    leaf, before, after = change.path, change.before.split(" ")[0], change.after.split(" ")[0]
    if {before, after} == {"list", "tuple"} and not change.is_outer:
        return f"give `{leaf}` one structure in all calls, inside too: restore it with the first one as the target"
    if {before, after} == {"list", "tuple"}:
        return f"{leaf} = {before}({leaf})"
    if {before, after} == {"dict", "FrozenDict"}:
        return f"{leaf} = flax.core.unfreeze({leaf})  # in every call"
    if before == after and before in ("list", "tuple"):
        count = change.before.split(" ")[-1]
        return f"{count} items in `{leaf}` always; or one array of all, padded to one length, and jax.lax.scan over it"
    if after in ("list", "tuple") and before.isidentifier() and before not in ("array", "dict"):
        return f"{leaf} = {before}(*{leaf})"
    return f"give `{leaf}` one structure in all calls: {change.before} or {change.after}"


def _always(case: Case, change: Change) -> str:
    path = change.path
    there = _array_at(case, path)
    if there is None or there.dtype.startswith("key<"):
        whole = change.parent or case.name
        what = "keys" if change.parent else "arguments"
        return f"give `{whole}` the same {what} in every call, or make two jax.jit wrappers"
    value = _neutral(there)
    if change.parent and (other := _renamed(case, change)):
        return f"name `{path}` as in the other calls, `{other}`: a dict with both keys would be a third structure"
    if root_of(path) in _MODEL:
        return f"give `{root_of(path)}` the same keys in every call: with and without `{path}` it is another model"
    if change.parent:
        key = path[len(change.parent) :].removeprefix("[").removesuffix("]")
        return f"{_IF_NEUTRAL}: {change.parent}.setdefault({key}, {value}), or make two jax.jit wrappers"
    if not path.isidentifier():  # one of *args
        return (
            f"give `{root_of(path)}` as one list, padded to one length, or the same number of arguments in every call"
        )
    return f"{_IF_NEUTRAL}: {path} = {value} where it is not given, or make two jax.jit wrappers"


# Only the user knows which value changes nothing: code that puts one in changes results.
_IF_NEUTRAL = "if this value changes no result"


def _renamed(case: Case, change: Change) -> str:
    """Return the path that the same container lost as it gained this one, or the other way round; else ""."""
    changes = [cause.change for cause in case.causes if cause.change is not None]
    wanted = "removed" if change.how == "added" else "added"
    return next((other.path for other in changes if (other.how, other.parent) == (wanted, change.parent)), "")


def _never_none(case: Case, change: Change) -> str:
    there = _array_at(case, change.path)
    if there is not None and not there.dtype.startswith("key<"):
        return f"{_IF_NEUTRAL}: {_neutral(there)} instead of None for `{change.path}`, or make two jax.jit wrappers"
    other = change.after if change.before == "None" else change.before
    return f"give `{change.path}` in every call: zeros like it ({other}) instead of None; or make two jax.jit wrappers"


def _array_at(case: Case, path: str) -> Leaf | None:
    return next((leaf for key in (case.key, case.old) for leaf in key.leaves if leaf.path == path), None)


def _neutral(leaf: Leaf) -> str:
    """Return code for an array of the leaf's shape and dtype that should not change the result, judged by its name."""
    kind = "ones" if leaf.dtype == "bool" or "mask" in leaf.path or "weight" in leaf.path else "zeros"
    return f"jnp.{kind}({shape_text(leaf.shape)}, {dtype_of(leaf.dtype)})"


def _guard(case: Case) -> str:
    name, _, after = case.key.guard
    if _is_number(after):
        return f"{name} = jnp.asarray({name})  # arrays may change from call to call; or pass it as an argument"
    if after.startswith("another "):
        return f"make `{name}` once, outside of the loop: each new one compiles again"
    return f"keep `{name}` the same, or pass it as an argument: each value is a program of its own"


def _hot_static(case: Case) -> str:
    new, path = case.static, case.chosen.leaf
    if new is not None and _is_number(new.value):
        remark = "as an array, if no shape and no Python branch depends on it"
        return assignment(path, f"jnp.asarray({path})", remark)
    return f"each `{path}` is a program of its own, compiled once; what changes often should be an array"


def _static(case: Case) -> str:
    new, old, path = case.static, case.old_static, case.chosen.part_of or case.chosen.leaf
    if path in ("static_argnums", "static_argnames"):
        return f"make one jax.jit({case.name}, …) with one {path} and call that"
    if "an array" in (case.chosen.before, case.chosen.after):
        if _FILTERED in case.key.wrapping:
            return assignment(path, f"jnp.asarray({path})", "in every call: values that aren't arrays are static")
        return f"make one jax.jit({case.name}, …), with `{path}` static or not, and call that"
    if new is None or old is None:
        value = (new or old or Static(path, "…", "")).value
        return f"{case.name}(…, {path}={value})  # in every call: a default left out is another signature"
    if new.keyword is not old.keyword and new.value == old.value:
        return f"{case.name}(…, {path}={new.value})  # by name in every call, or by position in every call"
    if case.chosen.part_of and case.chosen.before == case.chosen.after:
        return f"make `{case.chosen.leaf}` once, before the loop, and build each `{path}` with that one"
    if new.type in FUNCTIONS:
        return f"define `{path}` once, outside of the loop, and pass the same object each time"
    if new.value == old.value and new.type == old.type and not case.chosen.part_of:
        return _make_once(new)
    return _varying_static(case, new)


def _make_once(static: Static) -> str:
    kind = static.type.rpartition(".")[2]
    if static.path == "self":
        return f"make one {kind} and call its methods; or register {kind} as a pytree, so that `self` is an argument"
    if static.identity:
        return f"@dataclass(frozen=True)  # on class {kind}: equal by value; or make one `{static.path}` for all calls"
    return f"make one `{static.path}` before the loop and pass it each time; or give {kind} an __eq__ by value"


def _varying_static(case: Case, static: Static) -> str:
    path, often = static.path, case.value_count > 2
    if _FILTERED in case.key.wrapping and static.type in _NUMBERS:
        return _filtered_numbers(case) or _filtered_number(path, static)
    if static.type == "float" or (static.type == "int" and often):
        return f"leave `{path}` out of static_argnames: {case.name}(…, {path}=jnp.asarray({path}))"
    if static.type in ("int", "bool", "complex"):
        return f"leave `{path}` out of static_argnames if no shape and no Python branch depends on it"
    if often:
        part = case.chosen.part_of and case.chosen.leaf
        what = f"`{part}`, which changes," if part else "what changes each time"
        return f"pass one `{path}` in all calls; {what} belongs into an array argument"
    each = f"each `{case.chosen.leaf}` is a program of its own, which is compiled once"
    return f"{each}; what changes often should be an array argument"


def _filtered_numbers(case: Case) -> str:
    """Return code that turns each static number that changed into an array, one line each.

    Empty for a single number, or if something else of the same kind changed too.
    """
    # Every number that changed needs the fix: after a fix of one alone, the others still recompile.
    changed = {cause.leaf for cause in case.causes if cause.kind == case.chosen.kind}
    numbers = [static for static in case.key.statics if static.path in changed and static.type in _NUMBERS]
    if len(numbers) < 2 or len(numbers) < len(changed):
        return ""
    why = {"int": "if no shape and no Python branch or loop depends on it", "bool": "if no Python branch depends on it"}
    return "\n".join(
        assignment(
            static.path,
            f"jnp.asarray({static.path})",
            why.get(static.type, "eqx.filter_jit treats values that aren't arrays as static"),
        )
        for static in numbers
    )


def _filtered_number(path: str, static: Static) -> str:
    if static.type in ("int", "bool"):
        return (
            f"jnp.asarray({path}), if no shape and no Python branch or loop depends on it: "
            "eqx.filter_jit treats values that aren't arrays as static, and each value compiles"
        )
    return assignment(path, f"jnp.asarray({path})", "eqx.filter_jit treats values that aren't arrays as static")


def _function(case: Case) -> str:
    function, name = case.key.function, case.name
    if case.is_body:
        called = "while_loop" if function.name == "while" else function.name
        return f"define what jax.lax.{called} runs once, outside of the loop, or call it inside of a jax.jit function"
    if defined_in_a_cell(function) and not function.made:
        return f"define `{name}` in a cell of its own, and don't run that cell again unless it changed"
    made = function.made[0] if function.made else ""
    line = f"line {function.line}" if function.line and not is_library_file(function.file) else "its line"
    once = f"once, before the loop: {line} made {case.function_count} of them"
    if made == "lambda":
        return f"f = jax.jit(lambda …)  # {once}"
    if made == "derived":
        return f"put the jax.grad(…) or jax.vmap(…) of `{name}` under one jax.jit, and call that"
    if made == "partial":
        return f"{name}_jit = jax.jit(functools.partial({name}, …))  # {once}"
    if made == "method":
        return f"{name} = jax.jit(obj.{name})  # {once}"
    if function.made[:2] == ("jacfwd", "jacrev"):
        return f"hessian_{name} = jax.jit(jax.hessian({name}))  # {once}"
    if function.is_ahead:
        return f"{name}_exe = ex.compile({name}, …)  # {once}"
    if made == "pmap":
        return f"pmap_{name} = jax.pmap({name if name != 'f' else 'lambda …'})  # {once}"
    if made:
        return f"{made.lstrip('_')}_{name} = jax.jit({maker_name(made)}({name}))  # {once}"
    if not function.name.isidentifier():
        return f"f = jax.jit(obj)  # {once}"
    return f"{name} = jax.jit({name})  # {once}; define it outside of the function that runs each time"


def _transformation(case: Case) -> str:
    names = [maker_name("grad" if name == "linearize" else name) for name in case.key.transformations]
    whole = f"jax.jit({'('.join([*names, case.name])}{')' * len(names)})" if names else f"the jitted `{case.name}`"
    return f"each is compiled once; where the outer program is called often, call {whole} and make that once"


def _context(case: Case) -> str:
    name, value = case.chosen.leaf, case.chosen.after
    if name == "mesh":
        return "jax.set_mesh(mesh)  # once, at the start, or one `with` around all calls"
    if name.startswith("jax_"):
        # Recorded settings have no quotes; code needs them around a string.
        if value not in ("True", "False", "None") and not re.fullmatch(r"-?\d+(\.\d+)?|'[^']*'", value):
            device = re.fullmatch(r"(\w+):(\d+)", value)
            value = f'jax.devices("{device[1]}")[{device[2]}]' if device else f'"{value}"'
        update = f'jax.config.update("{name}", {value})'
        return f"keep one value in all calls: {update} once, at the start, if that is right for all results"
    return f"set `{name}` once, at the start, so that all calls have the same"


def _donation(case: Case) -> str:
    names = list(dict.fromkeys(root_of(path) for path in (*case.key.donated, *case.old.donated))) or ["…"]
    listed = ", ".join(f'"{name}"' for name in names)
    return f"{case.name} = jax.jit({case.name}, donate_argnames=({listed},))  # once, and call this one everywhere"


def _options(case: Case) -> str:
    return f"make one jax.jit({case.name}, …) and call that everywhere, with one {case.chosen.leaf}"


def _class(case: Case) -> str:
    name = case.chosen.before
    if defined_in_a_cell(case.key.function):
        return f"define `{name}` once: in a cell of its own, which is run again only if it changed"
    return f"define `{name}` once: outside of the function or loop that runs each time"


_FIXES = {
    "class": _class,
    "transformation": _transformation,
    "shape": fix_shape, "rank": fix_rank, "dtype": fix_type, "weak-type": fix_type, "structure": _structure,
    "static": _static, "function": _function, "context": _context, "donation": _donation, "options": _options,
    "sharding": fix_placement, "device": fix_placement, "layout": fix_placement, "committed": fix_placement,
}  # fmt: skip
# Fixes for users of hot paths, who wrote no jax.jit.
_HOT_FIXES: Mapping[str, Callable[[Case], str]] = {
    "guard": _guard,
    "static": _hot_static,
    "function": lambda case: f"define `{case.name}` once: each new definition is compiled separately",
}
