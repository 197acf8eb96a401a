"""What to write so that an array argument doesn't make a call compile again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from explorer.analysis.recompiles.case import Case, leaf_at, root
from explorer.model.events.key import Key, Leaf
from explorer.model.events.leaves import Content, LeafColumns, in_columns

_PYTHON = ("bool", "int", "float", "complex")
_WASTE = 16  # times as much work for what is padded, and one program less is no gain
_LINES = 3
_OF_TYPE = ("dtype", "weak-type")
_MODEL = frozenset({"params", "weights", "model", "variables", "opt_state", "state", "train_state", "grads"})
_ALL_BATCHES = "once, before the first call"


def dtype_of(name: str) -> str:
    """`jnp.float32`."""
    return f"jnp.{name}_" if name == "bool" else f"jnp.{name}"


def shape_literal(shape: tuple[int | str, ...]) -> str:
    """A shape in code."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def assignment(path: str, value: str) -> str:
    """`x = …`, in code; what is in a tuple or an object that may be frozen isn't assigned to."""
    if path.isidentifier() or path.endswith(("']", '"]')):
        return f"{path} = {value}"
    return f"{value}  # in place of {path}"


def is_all_of(key: Key, leaves: LeafColumns) -> bool:
    """Whether these are all the arrays of one argument."""
    tree = root(leaves.paths[0])
    (every,) = in_columns(key.leaves)
    count = _count_inside(leaves.paths, tree)
    return count == len(leaves) and (count == len(every) or count == _count_inside(every.paths, tree))


@lru_cache(64)  # hundreds of paths, and the same ones in each call
def _count_inside(paths: tuple[str, ...], tree: str) -> int:
    inside = (f"{tree}[", f"{tree}.")
    return sum([path.startswith(inside) for path in paths])


def with_comment(code: str, remark: str) -> str:
    """Code, and behind it why or when."""
    return f"{code}{',' if '  # ' in code else '  #'} {remark}" if remark else code


def fix_shape(case: Case) -> str:
    """Pad the last batch, give what grows its last size at once, or keep to a few sizes."""
    leaf, axis, sizes = case.leaf, case.chosen.axis, case.sizes
    if leaf is None:
        return ""
    tree = root(leaf.path)
    if tree in _MODEL:
        return f"each size of `{tree}` is a program of its own, which is compiled once: keep to one, or to few"
    if leaf.dtype.startswith("key<") or not all(isinstance(size, int) for size in leaf.shape) or len(sizes) < 2:
        return f"keep {leaf.path}.shape[{axis}] the same from call to call"
    if leaf.path in case.key.grown and all(a < b for a, b in pairwise(sizes)):
        return _preallocate(case, leaf, axis, sizes)
    return _fix_of_two(case, sizes) or _pad_to_buckets(case, leaf)


def _fix_of_two(case: Case, sizes: tuple[int, ...]) -> str:
    axis = case.chosen.axis
    if len(sizes) != 2:
        return ""
    if max(sizes) > _WASTE * min(sizes):
        return (
            f"{sizes[0]} and {sizes[1]} are too far apart to pad: each is a program of its own, compiled once; "
            "of more sizes keep to a few"
        )
    if sizes[1] < sizes[0] and axis == 0:
        padding = _Padding({axis: f"{sizes[0]} - {{}}.shape[{axis}]"})
        return padding.code(case, "and mask what is added; or drop the last, smaller batch")
    return ""


def _preallocate(case: Case, leaf: Leaf, axis: int, sizes: tuple[int, ...]) -> str:
    """It grows a little with each call, as what was generated so far does: give it its last size at once."""
    size = max(16, 1 << (2 * sizes[-1] - 1).bit_length() - 1)
    whole = shape_literal((*leaf.shape[:axis], size, *leaf.shape[axis + 1 :]))
    start = ", ".join("n" if i == axis else "0" for i in range(len(leaf.shape)))
    start = f"({start}{',' if len(leaf.shape) == 1 else ''})"
    zeros = assignment(leaf.path, f"jnp.zeros({whole}, {dtype_of(leaf.dtype)})")
    others = [f"`{path}`" for path in case.key.grown if path != leaf.path]
    more = f"; likewise {', '.join(others[:_LINES])}" if others else ""
    remark = f"its last size at once; then jax.lax.dynamic_update_slice({leaf.path}, new, {start}){more}"
    return with_comment(zeros, remark)


class _Padding(NamedTuple):
    """How far to pad each dimension: an expression of the array's name, for those that are padded."""

    amounts: dict[int, str]

    def code(self, case: Case, remark: str) -> str:
        places: set[int] = set()
        places.update(*[difference.places for difference in case.causes if difference.axis in self.amounts])
        places.discard(case.chosen.at)
        leaves = case.leaves_at([case.chosen.at, *sorted(places)])
        if len(leaves) > 1 and is_all_of(case.key, leaves):
            tree = root(leaves.paths[0])
            padded = self._padded("leaf", leaves.distinct())
            return with_comment(f"{tree} = jax.tree.map(lambda leaf: {padded}, {tree})", remark)
        lines = [assignment(leaf.path, self._padded(leaf.path, [leaf])) for leaf in islice(leaves, _LINES)]
        more = f"; likewise {len(leaves) - _LINES} more" if len(leaves) > _LINES else ""
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
    """A few sizes instead of many. Or the ranges are declared: padded without code, where it is proven that it may be.

    Nobody has proven it here: which of both it is, compile() says.
    """
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
        """A power of two of which the range has about four multiples, which merges a third of the sizes."""
        sizes, least, most = self
        step = max(8, 1 << (-(-(most - least) // 4) - 1).bit_length())
        # One that is as large as the largest holds all but a size of 0, which stays as it is.
        while step < most and len({-(-size // step) for size in sizes}) > len(sizes) * 2 // 3:
            step *= 2
        return step

    def fewer(self, step: int) -> str:
        count = -(-self.most // step) - -(-self.least // step) + 1
        text = "1 size" if count == 1 else f"{count} sizes at most"
        return f"{text} for {self.least} … {self.most}"


def _bounds(leaf: Leaf, ranges: dict[int, _Range]) -> str:
    dimensions: list[str] = []
    for axis, size in enumerate(leaf.shape):
        if axis in ranges:
            sizes, least, most = ranges[axis]
            dimensions.append(f'NamedDimension("{_dimension(leaf, axis)}", {least}, {sizes[-1]}, {most})')
        else:
            dimensions.append(str(size))
    return f"({', '.join(dimensions)}{',' if len(dimensions) == 1 else ''})"


def _dimension(leaf: Leaf, axis: int) -> str:
    if axis == 0:
        return "batch"
    if axis == 1 and (len(leaf.shape) == 3 or leaf.dtype.startswith(("int", "uint"))):
        return "length"
    words = re.findall(r"[A-Za-z_]\w*", leaf.path)
    return f"{words[-1]}_{axis}" if words else f"size_{axis}"


def fix_rank(case: Case) -> str:
    """Make the odd ones like the others: of two ranks, as a rule, the larger is the one with the batch."""
    places = sorted({at for difference in case.causes if difference.kind == "rank" for at in difference.places})
    return _each(case, places, _one_rank)


def _each(case: Case, places: Sequence[int], fix: Callable[[Leaf, Leaf], str]) -> str:
    pairs = [(case.key.leaves[at], leaf_at(case.old, at, case.key.leaves[at].path)) for at in places[:_LINES]]
    lines = [fix(new, old) for new, old in pairs if old is not None]
    return "\n".join(lines) + (f"\n# likewise {len(places) - _LINES} more" if len(places) > _LINES else "")


def _one_rank(new: Leaf, old: Leaf) -> str:
    path, (short, long) = new.path, sorted((new, old), key=lambda leaf: len(leaf.shape))
    where = f"where its shape is {shape_literal(short.shape)}"
    if not short.shape and long.shape == (1,):
        return with_comment(
            assignment(path, f"jnp.reshape({path}, ())"), f"where its shape is {shape_literal(long.shape)}"
        )
    if not short.shape:
        return with_comment(
            assignment(path, f"jnp.full({shape_literal(long.shape)}, {path}, {dtype_of(long.dtype)})"),
            "where it is a number",
        )
    if long.shape[1:] == short.shape:
        return _as_a_batch(path, short, long, where)
    if long.shape[:-1] == short.shape and long.shape[-1] == 1:
        return with_comment(assignment(path, f"{path}[..., None]"), where)
    return f"give `{path}` one number of dimensions in all calls: {len(old.shape)} or {len(new.shape)}"


def _as_a_batch(path: str, short: Leaf, long: Leaf, where: str) -> str:
    """One example as a batch of as many as there are else: as a batch of one it would be another size."""
    count = long.shape[0]
    if count == 1:
        return with_comment(assignment(path, f"{path}[None]"), where)
    if not isinstance(count, int) or count > _WASTE:
        return f"`{path}[None]`, {where}, would be another size: jax.vmap what takes one"
    widths = ", ".join([f"(0, {count - 1})", *["(0, 0)"] * len(short.shape)])
    library = "np" if short.given == "numpy" else "jnp"
    padded = f"{library}.pad({path}[None], [{widths}])"
    return with_comment(assignment(path, padded), f"{where}; mask what is added")


def fix_type(case: Case) -> str:
    """The earlier type is the one to keep, unless it was a Python number's."""
    new, old = case.leaf, case.old_leaf
    if new is None or old is None:
        return ""
    if new.dtype.startswith("key<") and old.dtype.startswith("key<"):
        return f'jax.config.update("jax_default_prng_impl", …)  # one kind of key: {old.dtype} or {new.dtype}'
    if "key<" in new.dtype + old.dtype:
        return with_comment(assignment(new.path, "jax.random.key(…)"), "everywhere, in place of jax.random.PRNGKey(…)")
    others = [at for d in case.causes if d.kind in _OF_TYPE and d is not case.chosen for at in d.places]
    if not others and len(case.alike) > 1 and is_all_of(case.key, case.alike):
        return _cast_tree(new, old)
    return _each(case, [*case.chosen.places, *sorted(others)], _cast)


def _cast(new: Leaf, old: Leaf) -> str:
    if new.given in _PYTHON and old.given in _PYTHON and new.dtype != old.dtype:
        kind = old.given if {new.given, old.given} == {"bool", "int"} else max(new.given, old.given, key=_PYTHON.index)
        return with_comment(assignment(new.path, f"{kind}({new.path})"), "before each call")
    wanted, odd, when = _wanted(new, old)
    dtype = dtype_of(wanted.dtype)
    if odd.given in _PYTHON:
        remark = f"{when}: a Python {odd.given} has a weak type"
        return with_comment(assignment(new.path, f"{dtype}({new.path})"), remark)
    value = f"jnp.asarray({new.path}, {dtype})" if odd.weak else f"{new.path}.astype({dtype})"
    return with_comment(assignment(new.path, value), when)


def _cast_tree(new: Leaf, old: Leaf) -> str:
    wanted, odd, when = _wanted(new, old)
    tree, dtype = root(new.path), dtype_of(wanted.dtype)
    cast = dtype if odd.given in _PYTHON else f"lambda leaf: leaf.astype({dtype})"
    return with_comment(f"{tree} = jax.tree.map({cast}, {tree})", when)


def _wanted(new: Leaf, old: Leaf) -> tuple[Leaf, Leaf, str]:
    # A program that begins with a number's weak type goes on with its own result, which is an array: keep that type.
    if old.given in _PYTHON or (old.weak and not new.weak):
        return new, old, "from the first call on"
    return old, new, "before this call"


def fix_placement(case: Case) -> str:
    """Put it where it will be, once, before the first call; a whole argument at once where several leaves moved."""
    leaf, old = case.leaf, case.old_leaf
    if leaf is None or old is None:
        return f"make one jax.jit({case.name}, …) and call that everywhere, with one {case.chosen.leaf}"
    if case.chosen.kind == "layout":
        path, more = leaf.path, "; likewise those that changed with it" if len(case.alike) > 1 else ""
        return with_comment(
            assignment(path, f"jax.device_put({path}, {_format(old, path)})"), f"as in the first call{more}"
        )
    path = root(leaf.path) if len(case.alike) > 1 else leaf.path
    where = _destination(leaf, old, path)
    remark = "in every call" if "numpy" in (leaf.given, old.given) else _ALL_BATCHES
    names = (path, *case.roots[1:])
    lines = [assignment(name, f"jax.device_put({name}, {where})") for name in names[:_LINES]]
    lines += [f"# likewise {len(names) - _LINES} more"] if len(names) > _LINES else []
    return "\n".join([with_comment(lines[0], remark), *lines[1:]])


def _destination(leaf: Leaf, old: Leaf, path: str) -> str:
    """What to give `jax.device_put`, so that both of two arrays would have been there."""
    spreads = [held.spread for held in (leaf, old) if held.spread]
    specs = [spec for spec, _, _ in spreads if spec]
    if specs:
        return f"NamedSharding(mesh, {specs[0]})"
    if any(memory for _, _, memory in spreads):
        return f'{path}.sharding.with_memory_kind("device")'
    return "sharding" if len(leaf.devices) > 1 or len(old.devices) > 1 else _device(leaf, old)


def _format(old: Leaf, path: str) -> str:
    """XLA counts dimensions from the minor one, JAX from the major one."""
    axes = old.layout.strip("{}").split(",") if old.layout else [str(axis) for axis in range(len(old.shape))][::-1]
    order = axes[::-1]
    return f"Format(Layout(({', '.join(order)})), {path}.sharding)"


def _device(leaf: Leaf, old: Leaf) -> str:
    name = (leaf.devices if leaf.committed or not old.committed else old.devices) or old.devices or ("device",)
    platform, _, number = name[0].partition(":")
    return f'jax.devices("{platform}")[{number}]' if number.isdigit() else "device"
