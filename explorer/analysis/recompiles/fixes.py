"""What to write so that a call doesn't compile again, in code and with the user's own names."""

from __future__ import annotations

import re

from explorer.analysis.recompiles.array_fixes import (
    assignment,
    dtype_of,
    fix_placement,
    fix_rank,
    fix_shape,
    fix_type,
    shape_literal,
    with_comment,
)
from explorer.analysis.recompiles.case import FUNCTIONS, Case, defined_in_a_cell, maker_name, root
from explorer.analysis.recompiles.structure_changes import Change
from explorer.model.events.key import Leaf, Static

# Of a call of Equinox's own jit, which hands everything to one jax.jit.
_FILTERED = ("filter_jit", "equinox")
_NUMBERS = ("int", "bool", "float", "complex")


def fix(case: Case) -> str:
    """Code, or one sentence where no code can be given."""
    if case.key.function.eager and case.chosen.kind == "function" and not case.is_body:
        return f"make what calls `{case.key.function.name}` once, outside of the loop, and call it inside of a jax.jit"
    if case.key.function.eager and not case.is_body:
        same = f", and keep {case.chosen.leaf} the same" if case.chosen.kind == "shape" else ""
        return f"put `{case.key.function.name}` under jax.jit with the code around it{same}"
    if case.key.function.is_hot and case.chosen.kind in _HOT_FIXES:
        return _HOT_FIXES[case.chosen.kind](case)
    written = _FIXES[case.chosen.kind](case)
    return written.replace("jax.jit(", "eqx.filter_jit(") if _FILTERED in case.key.wrapping else written


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
        return f"make the function in `{leaf}` once, outside of the loop: one that is made anew is unequal to the last"
    return f"pass the same `{leaf}` each time, or make what changes in it an array: all else in it is static"


def _field(change: Change) -> str:
    leaf, owner = change.path, change.parent or "it"
    if change.before == change.after:
        return f"make `{leaf}` once, before the loop, and build each `{owner}` with that one"
    if _is_number(change.after):
        return f"make `{leaf}` an array, if no shape and no Python branch depends on it: as it is, each value compiles"
    return f"keep `{leaf}` the same; where two values are meant, each is a program of its own, compiled once"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one_kind(change: Change) -> str:
    leaf, before, after = change.path, change.before.split(" ")[0], change.after.split(" ")[0]
    if {before, after} == {"list", "tuple"} and not change.is_outer:
        return f"give `{leaf}` one structure in all calls, inside too: what restores it needs the first as its target"
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
        return f"give `{whole}` the same {'keys' if change.parent else 'arguments'} in every call, or make two wrappers"
    value = _neutral(there)
    if change.parent:
        key = path[len(change.parent) :].removeprefix("[").removesuffix("]")
        return f"{change.parent}.setdefault({key}, {value})  # `{change.parent}` with the same keys in every call"
    if not path.isidentifier():  # one of *args
        return f"give `{root(path)}` as one list, padded to one length, or the same number of arguments in every call"
    return f"{path} = {value}  # where it is not given; or make two wrappers, one for each"


def _never_none(case: Case, change: Change) -> str:
    there = _array_at(case, change.path)
    if there is not None and not there.dtype.startswith("key<"):
        remark = "where it is None; or make two wrappers, one for each"
        return with_comment(assignment(change.path, _neutral(there)), remark)
    other = change.after if change.before == "None" else change.before
    return f"give `{change.path}` in every call, where it is None zeros like it ({other}); or make two wrappers"


def _array_at(case: Case, path: str) -> Leaf | None:
    return next((leaf for key in (case.key, case.old) for leaf in key.leaves if leaf.path == path), None)


def _neutral(leaf: Leaf) -> str:
    """An array of its shape and type that changes nothing, as far as its name tells."""
    kind = "ones" if leaf.dtype == "bool" or "mask" in leaf.path or "weight" in leaf.path else "zeros"
    return f"jnp.{kind}({shape_literal(leaf.shape)}, {dtype_of(leaf.dtype)})"


def _guard(case: Case) -> str:
    name, _, after = case.key.guard
    if _is_number(after):
        return f"{name} = jnp.asarray({name})  # an array may be another at each call; or pass it as an argument"
    if after.startswith("another "):
        return f"make `{name}` once, outside of the loop: another one is another program"
    return f"keep `{name}` the same, or pass it as an argument: each value is a program of its own"


def _hot_static(case: Case) -> str:
    new, path = case.static, case.chosen.leaf
    if new is not None and _is_number(new.value):
        remark = "as an array, if no shape and no Python branch depends on it"
        return with_comment(assignment(path, f"jnp.asarray({path})"), remark)
    return f"each `{path}` is a program of its own, compiled once; what changes often should be an array"


def _hot_function(case: Case) -> str:
    return f"define `{case.name}` once: each function that is defined is compiled for itself"


def _static(case: Case) -> str:
    new, old, path = case.static, case.old_static, case.chosen.leaf
    if path in ("static_argnums", "static_argnames"):
        return f"make one jax.jit({case.name}, …) with one {path} and call that"
    if "an array" in (case.chosen.before, case.chosen.after):
        if _FILTERED in case.key.wrapping:
            return with_comment(assignment(path, f"jnp.asarray({path})"), "in every call: what is no array is static")
        return f"make one jax.jit({case.name}, …), with `{path}` static or not, and call that"
    if new is None or old is None:
        value = (new or old or Static(path, "…", "")).value
        return f"{case.name}(…, {path}={value})  # in every call: a default left out is another signature"
    if new.keyword is not old.keyword and new.value == old.value:
        return f"{case.name}(…, {path}={new.value})  # by name in every call, or by position in every call"
    if new.type in FUNCTIONS:
        return f"define `{path}` once, outside of the loop, and pass the same object each time"
    if new.value == old.value and new.type == old.type:
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
        return f"pass one `{path}` in all calls; what changes each time belongs into an array argument"
    return (
        f"each `{path}` is a program of its own, which is compiled once; what changes often should be an array argument"
    )


def _filtered_numbers(case: Case) -> str:
    """A line for each of several numbers that changed at once; empty for one: to cure that alone would cure nothing."""
    changed = {cause.leaf for cause in case.causes if cause.kind == case.chosen.kind}
    numbers = [static for static in case.key.statics if static.path in changed and static.type in _NUMBERS]
    if len(numbers) < 2 or len(numbers) < len(changed):
        return ""
    why = {"int": "if no shape and no Python branch or loop depends on it", "bool": "if no Python branch depends on it"}
    return "\n".join(
        with_comment(
            assignment(static.path, f"jnp.asarray({static.path})"),
            why.get(static.type, "eqx.filter_jit takes what is no array as static"),
        )
        for static in numbers
    )


def _filtered_number(path: str, static: Static) -> str:
    if static.type in ("int", "bool"):
        return (
            f"jnp.asarray({path}), if no shape and no Python branch or loop depends on it: "
            "eqx.filter_jit takes what is no array as static, and each value compiles"
        )
    return with_comment(assignment(path, f"jnp.asarray({path})"), "eqx.filter_jit takes what is no array as static")


def _function(case: Case) -> str:
    function, name = case.key.function, case.name
    if case.is_body:
        called = "while_loop" if function.name == "while" else function.name
        return f"define what jax.lax.{called} runs once, outside of the loop, or call it inside of a jax.jit function"
    if defined_in_a_cell(function) and not function.made:
        return f"define `{name}` in a cell of its own, and don't run that cell again unless it changed"
    made = function.made[0] if function.made else ""
    line = f"line {function.line}" if function.line else "its line"
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


def _context(case: Case) -> str:
    name, value = case.chosen.leaf, case.chosen.after
    if name == "mesh":
        return "jax.set_mesh(mesh)  # once, at the start, or one `with` around all calls"
    if name.startswith("jax_"):
        return f'jax.config.update("{name}", {_literal(value)})  # once, at the start, not around some calls'
    return f"set `{name}` once, at the start, so that all calls have the same"


def _literal(value: str) -> str:
    if value in ("True", "False", "None") or re.fullmatch(r"-?\d+(\.\d+)?|'[^']*'", value):
        return value
    device = re.fullmatch(r"(\w+):(\d+)", value)
    return f'jax.devices("{device[1]}")[{device[2]}]' if device else f'"{value}"'


def _donation(case: Case) -> str:
    names = list(dict.fromkeys(root(path) for path in (*case.key.donated, *case.old.donated))) or ["…"]
    listed = ", ".join(f'"{name}"' for name in names)
    return f"{case.name} = jax.jit({case.name}, donate_argnames=({listed},))  # once, and call this one everywhere"


def _options(case: Case) -> str:
    return f"make one jax.jit({case.name}, …) and call that everywhere, with one {case.chosen.leaf}"


_FIXES = {
    "shape": fix_shape, "rank": fix_rank, "dtype": fix_type, "weak-type": fix_type, "structure": _structure,
    "static": _static, "function": _function, "context": _context, "donation": _donation, "options": _options,
    "sharding": fix_placement, "device": fix_placement, "layout": fix_placement, "committed": fix_placement,
}  # fmt: skip
# For who wrote no jax.jit.
_HOT_FIXES = {"guard": _guard, "static": _hot_static, "function": _hot_function}
