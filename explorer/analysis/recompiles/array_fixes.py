"""What to write so that an array argument doesn't make a call compile again."""

from __future__ import annotations

import re
from itertools import pairwise

from explorer.analysis.recompiles.case import Case, root
from explorer.model.events.key import Leaf
from explorer.model.events.placement import spec_of

_PYTHON = ("bool", "int", "float", "complex")
# What was generated so far, and the keys and values for it, grow by a few a call.
_GROWS_BY = 4
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


def with_comment(code: str, remark: str) -> str:
    """Code, and behind it why or when."""
    return f"{code}{',' if '  # ' in code else '  #'} {remark}" if remark else code


def fix_shape(case: Case) -> str:
    """Pad the last batch, give what grows its last size at once, or keep to a few sizes."""
    leaf, axis, sizes = case.leaf, case.chosen.axis, case.sizes
    if leaf is None:
        return ""
    if root(leaf.path) in _MODEL:
        return (
            f"each size of `{root(leaf.path)}` is a program of its own, which is compiled once: keep to one, or to few"
        )
    if len(sizes) > 2 and all(0 < b - a <= _GROWS_BY for a, b in pairwise(sizes)):
        return _preallocate(leaf, axis, sizes)
    if len(sizes) == 2 and sizes[1] < sizes[0] and axis == 0:
        return _pad(leaf, axis, sizes[0], "and mask what is added; or drop the last, smaller batch")
    if leaf.dtype.startswith("key<") or not all(isinstance(size, int) for size in leaf.shape) or not sizes:
        return f"keep {leaf.path}.shape[{axis}] the same from call to call"
    return _pad_to_buckets(case, leaf)


def _preallocate(leaf: Leaf, axis: int, sizes: tuple[int, ...]) -> str:
    """It grows a little with each call, as what was generated so far does: give it its last size at once."""
    size = max(16, 1 << (2 * sizes[-1] - 1).bit_length() - 1)
    whole = shape_literal((*leaf.shape[:axis], size, *leaf.shape[axis + 1 :]))
    start = ", ".join("n" if i == axis else "0" for i in range(len(leaf.shape)))
    start = f"({start}{',' if len(leaf.shape) == 1 else ''})"
    zeros = assignment(leaf.path, f"jnp.zeros({whole}, {dtype_of(leaf.dtype)})")
    return with_comment(zeros, f"its last size at once; then jax.lax.dynamic_update_slice({leaf.path}, new, {start})")


def _pad(leaf: Leaf, axis: int, size: int, remark: str) -> str:
    pads = ", ".join(
        f"(0, {size} - {leaf.path}.shape[{axis}])" if i == axis else "(0, 0)" for i in range(len(leaf.shape))
    )
    return with_comment(assignment(leaf.path, f"jnp.pad({leaf.path}, [{pads}])"), remark)


def _pad_to_buckets(case: Case, leaf: Leaf) -> str:
    """A few sizes instead of many. A named dimension spares traces, but each size still has a program of its own."""
    steps = {axis: _step(case.sizes_of(axis)) for axis in range(len(leaf.shape)) if len(case.sizes_of(axis)) > 1}
    tree = root(leaf.path)
    whole = len(case.alike) > 1 and tree != leaf.path
    name = "leaf" if whole else leaf.path
    pads = ", ".join(
        f"(0, -{name}.shape[{a}] % {steps[a]})" if a in steps else "(0, 0)" for a in range(len(leaf.shape))
    )
    padded = f"jnp.pad({name}, [{pads}])"
    code = f"{tree} = jax.tree.map(lambda leaf: {padded}, {tree})" if whole else assignment(leaf.path, padded)
    info = f"InputInfo({_bounds(case, leaf)}, {dtype_of(leaf.dtype)})"
    alone = leaf.path.isidentifier() and len(case.key.leaves) == 1
    compiled = f"ex.compile({case.name}, args=[{info if alone else '…'}])" + ("" if alone else f" with {info}")
    return (
        f"{with_comment(code, f'{_fewer(case, steps)}; mask what is added')}\n"
        f"# traced once for all sizes, with a program for each: {compiled}"
    )


def _step(sizes: tuple[int, ...]) -> int:
    """A power of two, so that a range of sizes has about four multiples of it."""
    return max(8, 1 << (-(-(max(sizes) - min(sizes)) // 4) - 1).bit_length())


def _fewer(case: Case, steps: dict[int, int]) -> str:
    sizes = case.sizes_of(case.chosen.axis)
    step = steps[case.chosen.axis]
    return f"{-(-max(sizes) // step) - -(-min(sizes) // step) + 1} sizes at most for {min(sizes)} … {max(sizes)}"


def _bounds(case: Case, leaf: Leaf) -> str:
    """The shape, with a named dimension wherever there were several sizes."""
    dimensions: list[str] = []
    for axis, size in enumerate(leaf.shape):
        sizes = case.sizes_of(axis)
        name = _dimension(leaf, axis)
        several = f'NamedDimension("{name}", {min(sizes)}, {sizes[-1]}, {max(sizes)})' if len(sizes) > 1 else ""
        dimensions.append(several or str(size))
    return f"({', '.join(dimensions)}{',' if len(dimensions) == 1 else ''})"


def _dimension(leaf: Leaf, axis: int) -> str:
    if axis == 0:
        return "batch"
    if axis == 1 and (len(leaf.shape) == 3 or leaf.dtype.startswith(("int", "uint"))):
        return "length"
    words = re.findall(r"[A-Za-z_]\w*", leaf.path)
    return f"{words[-1]}_{axis}" if words else f"size_{axis}"


def fix_rank(case: Case) -> str:
    """Make the odd one like the others: of two ranks, as a rule, the larger is the one with the batch."""
    new, old = case.leaf, case.old_leaf
    if new is None or old is None:
        return ""
    path, (short, long) = new.path, sorted((new, old), key=lambda leaf: len(leaf.shape))
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
        return with_comment(assignment(path, f"{path}[None]"), f"where its shape is {shape_literal(short.shape)}")
    if long.shape[:-1] == short.shape:
        return with_comment(assignment(path, f"{path}[..., None]"), f"where its shape is {shape_literal(short.shape)}")
    return f"give `{path}` one number of dimensions in all calls: {len(old.shape)} or {len(new.shape)}"


def fix_type(case: Case) -> str:
    """The earlier type is the one to keep, unless it was a Python number's."""
    new, old = case.leaf, case.old_leaf
    if new is None or old is None:
        return ""
    if new.dtype.startswith("key<") and old.dtype.startswith("key<"):
        return f'jax.config.update("jax_default_prng_impl", …)  # one kind of key: {old.dtype} or {new.dtype}'
    if "key<" in new.dtype + old.dtype:
        return with_comment(assignment(new.path, "jax.random.key(…)"), "everywhere, in place of jax.random.PRNGKey(…)")
    if new.given in _PYTHON and old.given in _PYTHON and new.dtype != old.dtype:
        kind = old.given if {new.given, old.given} == {"bool", "int"} else max(new.given, old.given, key=_PYTHON.index)
        return with_comment(assignment(new.path, f"{kind}({new.path})"), "before each call")
    return _fix_array_type(case, new, old)


def _fix_array_type(case: Case, new: Leaf, old: Leaf) -> str:
    # A program that begins with a number's weak type goes on with its own result, which is an array: keep that type.
    starts_odd = old.given in _PYTHON or (old.weak and not new.weak)
    wanted, odd = (new, old) if starts_odd else (old, new)
    when = "from the first call on" if starts_odd else "before this call"
    dtype = dtype_of(wanted.dtype)
    if odd.given in _PYTHON:
        return with_comment(
            assignment(new.path, f"{dtype}({new.path})"), f"{when}: a Python {odd.given} has a weak type"
        )
    tree = root(new.path)
    if len(case.alike) > 1 and len(case.alike) == sum(root(leaf.path) == tree for leaf in case.key.leaves):
        return with_comment(f"{tree} = jax.tree.map(lambda leaf: leaf.astype({dtype}), {tree})", when)
    if odd.weak:
        return with_comment(assignment(new.path, f"jnp.asarray({new.path}, {dtype})"), when)
    return with_comment(assignment(new.path, f"{new.path}.astype({dtype})"), when)


def fix_placement(case: Case) -> str:
    """Put it where it will be, once, before the first call; a whole argument at once where several leaves moved."""
    leaf, old = case.leaf, case.old_leaf
    if leaf is None or old is None:
        return f"make one jax.jit({case.name}, …) and call that everywhere, with one {case.chosen.leaf}"
    more = f"; likewise {', '.join(f'`{name}`' for name in case.roots[1:])}" if len(case.roots) > 1 else ""
    if case.chosen.kind == "layout":
        path, more = leaf.path, "; likewise those that changed with it" if len(case.alike) > 1 else ""
        return with_comment(
            assignment(path, f"jax.device_put({path}, {_format(old, path)})"), f"as in the first call{more}"
        )
    path = root(leaf.path) if len(case.alike) > 1 else leaf.path
    spread = leaf.sharding or old.sharding
    spread = "" if spread.startswith("SingleDeviceSharding(") else spread
    where = (
        f"NamedSharding(mesh, {spec_of(spread)})" if "spec=" in spread else "sharding" if spread else _device(leaf, old)
    )
    remark = "in every call" if "numpy" in (leaf.given, old.given) else _ALL_BATCHES
    return with_comment(assignment(path, f"jax.device_put({path}, {where})"), f"{remark}{more}")


def _format(old: Leaf, path: str) -> str:
    """XLA counts dimensions from the minor one, JAX from the major one."""
    minor_first = re.fullmatch(r"\{([\d,]+)\}", old.layout)
    order = minor_first[1].split(",")[::-1] if minor_first else [str(axis) for axis in range(len(old.shape))]
    return f"Format(Layout(({', '.join(order)})), {path}.sharding)"


def _device(leaf: Leaf, old: Leaf) -> str:
    name = (leaf.devices if leaf.committed or not old.committed else old.devices) or old.devices or ("device",)
    platform, _, number = name[0].partition(":")
    return f'jax.devices("{platform}")[{number}]' if number.isdigit() else "device"
