"""A recompile with everything known of it, and its reason as one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from explorer.analysis.recompiles.nearest import Difference, transformations_text
from explorer.model.declared import cached_property
from explorer.model.events.key import AHEAD, HOT, Function, Key, Leaf, Static
from explorer.model.events.leaves import LeafColumns, in_columns
from explorer.model.stage import is_library_file
from explorer.model.text import cut_middle, cut_middles, list_names, root_of, with_article

# Names of files for cells of a notebook and lines of an interactive session.
_CELL = re.compile(r"ipykernel_\d+|^<ipython-input|^<stdin>|__marimo__|^<python-input|cell_\d+")
# Types of code objects, which are equal only to themselves.
FUNCTIONS = frozenset({"function", "partial", "method", "builtin_function_or_method", "PjitFunction", "ufunc"})

_JAX_TRANSFORMS = frozenset({
    "grad", "value_and_grad", "vmap", "jvp", "vjp", "linearize", "checkpoint", "remat", "jacfwd", "jacrev", "hessian",
    "shard_map", "custom_vjp", "custom_jvp", "custom_gradient", "named_call", "pmap",
})  # fmt: skip


def maker_name(made: str) -> str:
    """Return the source text of a function's maker: `jax.grad`, or a decorator of the user's own."""
    name = made.lstrip("_")
    if name == AHEAD:
        return "ex.compile"
    if name == HOT:
        return "ex.auto_compile"
    return f"jax.{name}" if name in _JAX_TRANSFORMS else made


def defined_in_a_cell(function: Function) -> bool:
    return bool(_CELL.search(function.file))


def leaf_at(key: Key, at: int, path: str) -> Leaf | None:
    """Return the leaf with `path`, looked up first at index `at`; None if the key lacks it."""
    contents = LeafColumns.contents_at(at, path, [key.leaves])
    return Leaf(path, *contents[0]) if contents else None


def shape_text(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@dataclass(frozen=True)
class Case:
    """A call, the nearest earlier call, and the difference named as the reason.

    Args:
        earlier: All remembered earlier calls of the function, oldest first.
        value_counts: Number of values of each static argument in all calls.
        causes: All differences that can have caused the recompile, `chosen` among them.
    """

    key: Key
    old: Key
    chosen: Difference
    earlier: tuple[Key, ...]
    value_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    causes: tuple[Difference, ...] = ()

    @cached_property
    def leaf(self) -> Leaf | None:
        return self.key.leaves[self.chosen.at] if self.chosen.at >= 0 else None

    @cached_property
    def old_leaf(self) -> Leaf | None:
        leaf = self.leaf
        return leaf_at(self.old, self.chosen.at, leaf.path) if leaf is not None else None

    @property
    def static(self) -> Static | None:
        return self._of_static(self.key)

    @property
    def old_static(self) -> Static | None:
        return self._of_static(self.old)

    def _of_static(self, key: Key) -> Static | None:
        path = self.chosen.part_of or self.chosen.leaf
        return next((static for static in key.statics if static.path == path), None)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the distinct sizes of the chosen dimension in order of appearance, this call's last; else ()."""
        return self.sizes_of(self.chosen.axis) if self.chosen.axis >= 0 else ()

    def sizes_of(self, axis: int) -> tuple[int, ...]:
        return self._sizes_of_axes[axis] if axis < len(self._sizes_of_axes) else ()

    @cached_property
    def _sizes_of_axes(self) -> list[tuple[int, ...]]:
        of_axes = zip(*self._shapes, strict=True)
        return [tuple([size for size in dict.fromkeys(sizes) if isinstance(size, int)]) for sizes in of_axes]

    @cached_property
    def _shapes(self) -> list[tuple[int | str, ...]]:
        leaf = self.leaf
        if leaf is None:
            return []
        calls = [key.leaves for key in (*self.earlier, self.key)]
        shapes = [content.shape for content in LeafColumns.contents_at(self.chosen.at, leaf.path, calls)]
        return [shape for shape in shapes if len(shape) == len(leaf.shape)]

    @cached_property
    def value_count(self) -> int:
        statics = [static for key in (*self.earlier, self.key) for static in key.statics]
        path = self.chosen.part_of or self.chosen.leaf
        values = {(static.token, static.value) for static in statics if static.path == path}
        return max(len(values), self.value_counts.get(path, 0))

    @cached_property
    def function_count(self) -> str:
        """Return the number of function objects seen as text; `at least` it, as only the latest calls are kept."""
        functions = [key.function for key in (*self.earlier, self.key)]
        count = len({(function.identity, function.is_derived and function.wrapper) for function in functions})
        return f"at least {count}" if count > 8 and count > len(self.earlier) else str(count)

    @property
    def is_body(self) -> bool:
        """Return True if an eager `scan`, `cond`, … ran another body: its own function object stays."""
        same = self.key.function.identity == self.old.function.identity
        return self.chosen.kind == "function" and self.key.function.eager and same

    @property
    def name(self) -> str:
        name = self.key.function.name
        return name if name.isidentifier() else "f"

    @cached_property
    def roots(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(root_of, self.alike.paths)))

    @cached_property
    def alike(self) -> LeafColumns:
        return self.leaves_at(self.chosen.places)

    def leaves_at(self, places: Sequence[int]) -> LeafColumns:
        leaves = self.key.leaves
        columns = leaves if isinstance(leaves, LeafColumns) else in_columns(leaves)[0]
        return columns.take(places)


_MAX_LISTED = 4
_EMPTY = "something that prints as nothing"  # a user's class may have an empty repr
_MAKERS = {"partial": "functools.partial(…)", "method": "a bound method"}


def sentence(case: Case, others: Sequence[Difference]) -> str:
    """Return the reason as a sentence: the change, how often it happened, and what else changed."""
    kind = case.chosen.kind
    text = _SENTENCES[kind](case) if kind in _SENTENCES else _plain_sentence(case)
    more = len(set(case.chosen.places)) - 1
    if more > 0 and case.chosen.at >= 0:
        text += f", and {more} more {'leaf' if more == 1 else 'leaves'} likewise"
    if others:
        text += f"; {_list_others(case, others)} changed too"
    return text


def _list_others(case: Case, others: Sequence[Difference]) -> str:
    leaves = case.key.leaves
    named: list[str] = []
    count = 0
    for other in others:
        count += max(1, len(other.places))
        if len(named) < _MAX_LISTED:
            rest = other.leaf[len(leaves[other.at].path) :] if other.at >= 0 else other.leaf or other.kind
            named += [f"`{leaves[at].path}{rest}`" for at in other.places[:_MAX_LISTED]] or [f"`{rest}`"]
    named = named if count <= _MAX_LISTED else named[:3]
    return list_names(named) if count == len(named) else f"{', '.join(named)} and {count - len(named)} more"


def _plain_sentence(case: Case) -> str:
    return f"`{case.chosen.leaf}` {_before_after(case)}"


def _before_after(case: Case) -> str:
    before, after = cut_middles(case.chosen.before, case.chosen.after)
    return f"was {before or _EMPTY} and is now {after or _EMPTY}"


def _shape(case: Case) -> str:
    sizes = case.sizes
    if len(sizes) < 3:
        return _plain_sentence(case)
    shown = ", ".join([*map(str, sizes[:_MAX_LISTED]), *(["…"] if len(sizes) > _MAX_LISTED else [])])
    # Only the latest calls are remembered.
    count = f"one of at least {len(sizes)} sizes" if len(sizes) > 8 else f"its {_ordinal(len(sizes))} size"
    return f"{_plain_sentence(case)}: {count} ({shown})"


def _rank(case: Case) -> str:
    new, old = case.leaf, case.old_leaf
    if new is None or old is None:
        return _plain_sentence(case)
    return f"`{new.path}` had shape {shape_text(old.shape)} and now has {shape_text(new.shape)}"


def _weak(case: Case) -> str:
    leaf, old = case.leaf, case.old_leaf
    text = _plain_sentence(case)
    for either, when in ((old, "was"), (leaf, "is now")):
        if either is not None and either.weak and either.given in ("float", "int", "complex", "bool"):
            return f"{text}: it {when} a Python {either.given}, whose type is weak"
    return text


def _structure(case: Case) -> str:
    chosen, change = case.chosen, case.chosen.change
    if change is None:
        return "the structure of the arguments changed: static data of a class prints the same but is unequal"
    if change.how in ("added", "removed") and change.parent:
        key = chosen.leaf[len(change.parent) :].removeprefix("[").removesuffix("]")
        where = "to" if change.how == "added" else "from"
        return f"key {key} was {change.how} {where} `{change.parent}`"
    if change.how == "added":
        return f"argument `{chosen.leaf}` is given ({change.after}), which it was not before"
    if change.how == "removed":
        return f"argument `{chosen.leaf}` is no longer given"
    if change.how == "moved":
        return f"`{chosen.leaf}` was a {change.before} argument and is now a {change.after} one"
    if change.how == "field" and change.before == change.after:
        return f"`{chosen.leaf}`, not an array, is a new object: it prints the same, {change.after}, but is unequal"
    if change.how == "field":
        return f"`{chosen.leaf}`, which is not an array and so part of the program, {_before_after(case)}"
    if change.how == "kept" and change.before == change.after:
        leaf = chosen.leaf or "an argument"
        return f"the static data of `{leaf}`, {change.after}, prints the same but is unequal"
    if change.how == "kept":
        return f"the static data of `{chosen.leaf or 'an argument'}` changed: {change.before} → {change.after}"
    before, after = (text if text == "None" else with_article(text) for text in (change.before, change.after))
    return f"`{chosen.leaf or 'the arguments'}` was {before} and is now {after}"


def _static(case: Case) -> str:
    new, old, chosen = case.static, case.old_static, case.chosen
    if case.key.function.is_hot:  # hot paths make it static; the user declared nothing
        return f"`{chosen.leaf}`, which is not an array and so part of the program, {_before_after(case)}"
    if case.chosen.after == "an array":
        return f"`{chosen.leaf}` was a static argument ({cut_middle(chosen.before)}) and is now an array"
    if case.chosen.before == "an array":
        return f"`{chosen.leaf}` was an array and is now a static argument ({cut_middle(chosen.after)})"
    if chosen.leaf in ("static_argnums", "static_argnames"):
        return _options(case)
    if new is None or old is None:
        return f"the static argument `{chosen.leaf}` {_before_after(case)}"
    if chosen.part_of and chosen.before == chosen.after:
        where = f"`{chosen.leaf}`, in the static argument `{chosen.part_of}`,"
        return f"{where} is a new object: it prints the same, {chosen.after}, but is unequal"
    if chosen.part_of and new.keyword is old.keyword:
        return f"`{chosen.leaf}`, in the static argument `{chosen.part_of}`, {_before_after(case)}{_nth_value(case)}"
    if new.keyword is not old.keyword and new.value == old.value:
        before, after = ("by name", "by position") if old.keyword else ("by position", "by name")
        return f"the static argument `{new.path}` was given {before} and is now given {after}"
    if new.value == old.value and new.type == old.type:
        return f"the static argument `{new.path}` is {cut_middle(new.value)} as before, yet not equal: {_unequal(new)}"
    if new.value == old.value:  # NumPy 1 prints its numbers as Python does
        after, before = with_article(new.type), with_article(old.type)
        return f"the static argument `{new.path}` is {new.value} as before, but {after}, which was {before}"
    return f"the static argument `{chosen.leaf}` {_before_after(case)}{_nth_value(case)}"


def _nth_value(case: Case) -> str:
    whose = f"`{case.chosen.part_of}`'s" if case.chosen.part_of else "its"
    return f": {whose} {_ordinal(case.value_count)} value" if case.value_count > 2 else ""


def _class(case: Case) -> str:
    name, how = case.chosen.before, "its cell was" if defined_in_a_cell(case.key.function) else "its definition was"
    return f"`{name}` was redefined ({how} run twice): the class of `{case.chosen.leaf}` is now a different class"


def _unequal(static: Static) -> str:
    if static.type in FUNCTIONS:
        return "each function object is a different value"
    kind = static.type.rpartition(".")[2]
    if static.identity:
        return f"{kind} has no __eq__ of its own, so each object is a different value"
    return f"two {kind} objects that print alike are not equal"


def _function(case: Case) -> str:
    function = case.key.function
    name = f"`{function.name}`"
    if case.is_body:
        return f"{name} was given a new function to run: a lambda or function defined there is a new object each time"
    made = next((made for made in function.made if made != HOT), "")
    if defined_in_a_cell(function) and not made:
        return f"{name} was defined again{_place(function)}: a cell that is run again makes a new function"
    times = f"{case.function_count} functions from there so far"
    if made == "lambda":
        return f"a lambda created again{_place(function)} is another function each time: {times}"
    if made == "derived":
        return f"what JAX derived from {name}{_place(function)}, such as its gradient, is a new function: {times}"
    if made or not function.name.isidentifier():
        what = f"{_MAKERS.get(made, f'{maker_name(made)}(…)')} of {name}" if made else "a callable object"
        return f"{what}{_place(function)} was made again, a new function each time: {times}"
    return f"{name} was defined again{_place(function)}: {times}, and the caches treat each as a new function"


def _transformation(case: Case) -> str:
    now, before = case.key.transformations, case.old.transformations
    names = {names: f"inside of {transformations_text(names)}" if names else "directly" for names in (now, before)}
    each = "each transformation of it is a program of its own"
    of_grad = " (linearize is of jax.grad and jax.vjp)" * ("linearize" in (*now, *before))
    return f"`{case.key.function.name}` was called {names[before]} and is now called {names[now]}{of_grad}: {each}"


def _guard(case: Case) -> str:
    return f"`{case.chosen.leaf}`, which the hot function `{case.key.function.name}` reads, {_before_after(case)}"


def _place(function: Function) -> str:
    if not function.file or is_library_file(function.file):  # a library's line says nothing to its user
        return ""
    if defined_in_a_cell(function):
        return f" in a cell, line {function.line}"
    # A ledger may have been written on Windows.
    return f" at {function.file.replace(chr(92), '/').rsplit('/', 1)[-1]}, line {function.line}"


def _context(case: Case) -> str:
    return f"the setting `{case.chosen.leaf}` {_before_after(case)}"


def _options(case: Case) -> str:
    return f"the jax.jit option `{case.chosen.leaf}` {_before_after(case)}"


def _donation(case: Case) -> str:
    chosen = case.chosen
    leaf = chosen.leaf or "an argument"
    return f"`{leaf}` was {chosen.before} and is now {chosen.after}: another jax.jit(…) of the same function"


def _placed(case: Case) -> str:
    if case.chosen.at < 0:
        return _options(case)
    return f"the {case.chosen.kind} of `{case.chosen.leaf}` {_before_after(case)}"


def _ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


_SENTENCES = {
    "shape": _shape, "rank": _rank, "weak-type": _weak, "structure": _structure, "static": _static,
    "function": _function, "guard": _guard, "transformation": _transformation, "class": _class,
    "context": _context, "options": _options, "donation": _donation,
    "sharding": _placed, "device": _placed, "layout": _placed,
}  # fmt: skip
