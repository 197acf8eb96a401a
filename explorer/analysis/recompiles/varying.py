"""What of a function's calls was always the same and what was not, argument by argument."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from explorer.analysis.recompiles.summary import counted
from explorer.model.events.compaction import Form, forms_of
from explorer.model.events.event import Event
from explorer.model.events.key import Key
from explorer.model.events.pytree import TreeNode
from explorer.model.events.tally import BUILDING, FamilyKey, family_key

__all__ = ["Value", "Variation", "Variations", "varying"]

ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Value:
    """One value that a property had: in how many compiled calls, and the ids of those."""

    text: str
    count: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variation:
    """One property of one argument over all compiled calls of a function.

    Args:
        leaf: The array or static argument: `batch['x']`; empty for what is no argument.
        aspect: `shape[0]`, `rank`, `dtype`, `weak type`, `committed`, `sharding`, `devices`, `layout`, `given`,
            `value`, `type`, `object`, `structure`, `function object`, `wrapper`, `donated`, or a setting's name.
        values: What it was, in the order of coming.
    """

    leaf: str
    aspect: str
    values: tuple[Value, ...]

    @property
    def is_constant(self) -> bool:
        return len(self.values) == 1

    @property
    def name(self) -> str:
        """`batch['x'].shape[0]`, `x dtype`, `structure`."""
        joint = "." if self.aspect.startswith("shape[") else " "
        return f"{self.leaf}{joint}{self.aspect}" if self.leaf else self.aspect

    def __repr__(self) -> str:
        few = ", ".join(f"{value.text} {value.count}×" for value in self.values[:4])
        return f"Variation({self.name}: {few}{', …' if len(self.values) > 4 else ''})"


@dataclass(frozen=True, slots=True)
class Variations:
    """All properties of a function's compiled calls.

    Args:
        function: Its name.
        calls: How many compiled calls there are to compare.
        rows: All properties, in the order of the arguments.

    Example:
        >>> from explorer.model.events.event import Event
        >>> from explorer.model.events.key import Function, Leaf
        >>> from explorer.model.events.ledger import Ledger
        >>> ledger = Ledger()
        >>> for n in (8, 9):
        ...     key = Key(Function("step"), (Leaf("x", (n, 4), "float32"),))
        ...     ledger.add((Event("compile", "step", key=key, id=f"[step/{n - 8}]", call=n),))
        >>> print(ledger.varying("step"))
        step: 2 compiled calls
          x.shape[0]  8 1× [step/0], 9 1× [step/1]
        The same in all: x.shape[1] = 4, x dtype = float32
    """

    function: str
    calls: int
    rows: tuple[Variation, ...]

    @property
    def varying(self) -> tuple[Variation, ...]:
        """The properties with several values."""
        return tuple(row for row in self.rows if not row.is_constant)

    @property
    def constant(self) -> tuple[Variation, ...]:
        """The properties that were the same in every call."""
        return tuple(row for row in self.rows if row.is_constant)

    def __iter__(self) -> Iterator[Variation]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def text(self) -> str:
        """What varies, line by line with its values; below it what doesn't, as far as it says something."""
        varying = self.varying
        width = max((len(row.name) for row in varying), default=0)
        lines = [f"{self.function}: {counted(self.calls, 'compiled call')}"]
        lines += [f"  {row.name:<{width}}  {_values(row)}" for row in varying]
        if not varying and self.calls > 1:
            lines.append("  Nothing that could be seen varies.")
        told = [f"{row.name} = {row.values[0].text}" for row in self.constant if _is_telling(row)]
        if told:
            more = f" and {len(told) - 12} more" if len(told) > 12 else ""
            lines.append(f"The same in all: {', '.join(told[:12])}{more}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        names = ", ".join(row.name for row in self.varying[:4]) or "nothing varies"
        return f"Variations({self.function}, {counted(self.calls, 'compiled call')}: {names})"


def varying(events: Sequence[Event], families: Collection[FamilyKey], most: int | None = None) -> Variations:
    """The properties of the compiled calls of some families, taken for one function; of the last `most` of them."""
    calls: dict[tuple[str, int], tuple[Key, str]] = {}
    for event in reversed(events):
        if event.key is not None and event.kind in BUILDING and family_key(event) in families:
            call = event.process, event.call or -len(calls) - 1
            if call not in calls and len(calls) == most:
                break
            calls.setdefault(call, (event.key, event.id))
    name = min(family[1] for family in families)
    return Variations(name, len(calls), _rows(list(calls.values())[::-1]))


def _rows(calls: list[tuple[Key, str]]) -> tuple[Variation, ...]:
    ids = [id for _, id in calls]
    found = [*_of_leaves([key for key, _ in calls]), *_of_the_rest([key for key, _ in calls])]
    return tuple(Variation(leaf, name, _counted(held, ids)) for leaf, name, held in found)


_Held = dict[str, list[int]]  # the calls of each value


def _counted(held: _Held, ids: list[str]) -> tuple[Value, ...]:
    in_order = sorted((sorted(calls), text) for text, calls in held.items())
    return tuple(Value(text, len(calls), tuple(ids[i] for i in calls if ids[i])) for calls, text in in_order)


def _of_leaves(keys: list[Key]) -> Iterator[tuple[str, str, _Held]]:
    """Sizes, and whatever else arrays have; read once for all calls in which a leaf has the same of it."""
    forms: dict[str, dict[tuple[Form, int], list[int]]] = {}
    sizes: dict[tuple[str, int], _Held] = {}
    for index, key in enumerate(keys):
        for form, shape in forms_of(key.leaves):
            forms.setdefault(form[0], {}).setdefault((form, len(shape)), []).append(index)
            for dimension, size in enumerate(shape):
                sizes.setdefault((form[0], dimension), {}).setdefault(str(size), []).append(index)
    for path, ranked in forms.items():
        for dimension in range(max(rank for _, rank in ranked)):
            yield path, f"shape[{dimension}]", sizes[path, dimension]
        yield from _gathered((path, ranked[form], [*_of_leaf(form[0], form[1])]) for form in ranked)


def _gathered(rows: Iterable[tuple[str, list[int], list[tuple[str, str]]]]) -> Iterator[tuple[str, str, _Held]]:
    """Leaf, its calls, and its properties in those: by property."""
    table: dict[tuple[str, str], _Held] = {}
    for leaf, calls, properties in rows:
        for name, value in properties:
            table.setdefault((leaf, name), {}).setdefault(value, []).extend(calls)
    return ((leaf, name, held) for (leaf, name), held in table.items())


def _of_leaf(form: Form, rank: int) -> Iterator[tuple[str, str]]:
    _, dtype, weak, given, committed, sharding, devices, layout = form
    yield "rank", str(rank)
    yield "dtype", dtype
    yield "weak type", "yes" if weak else "no"
    yield "given", given
    if committed is not None:  # what is no JAX array is nowhere yet
        yield "committed", "yes" if committed else "no"
        yield "sharding", sharding
        yield "devices", ", ".join(devices)
        yield "layout", layout


def _of_the_rest(keys: list[Key]) -> Iterator[tuple[str, str, _Held]]:
    """Static arguments, and what is no argument: the structure, the function object, settings."""
    objects: dict[str, dict[int, int]] = {}

    def numbered(kind: str, identity: int) -> str:
        known = objects.setdefault(kind, {})
        return f"object {known.setdefault(identity, len(known) + 1)}"

    trees: dict[TreeNode | None, str] = {None: ""}

    def printed(tree: TreeNode | None) -> str:
        if tree not in trees:
            trees[tree] = str(tree)
        return trees[tree]

    def properties(key: Key) -> Iterator[tuple[str, str, str]]:
        for static in key.statics:
            yield static.path, "value", static.value
            yield static.path, "type", static.type
            if static.identity:
                yield static.path, "object", numbered(static.path, static.identity)
        yield "", "structure", printed(key.tree)
        if key.function.identity:
            yield "", "function object", numbered("function object", key.function.identity)
        if key.function.wrapper:
            yield "", "wrapper", numbered("wrapper", key.function.wrapper)
        yield "", "donated", ", ".join(key.donated)
        for name, value in (*key.options, *key.wrapping):
            yield "", name, value

    rows = ((leaf, [index], [(name, value)]) for index, key in enumerate(keys) for leaf, name, value in properties(key))
    contexts: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for index, key in enumerate(keys):
        contexts.setdefault(key.context, []).append(index)
    settings = (("", calls, [*context]) for context, calls in contexts.items())
    for leaf, name, held in _gathered(chain(rows, settings)):
        if not leaf:  # a setting can be absent; an argument that is makes another structure, told there
            missing = set(range(len(keys))).difference(*held.values())
            if missing:
                held = {**held, ABSENT: [*missing]}
        yield leaf, name, held


def _values(row: Variation) -> str:
    """The values with their counts and, where they are few, ids: the most frequent first, however many."""
    most = sorted(row.values, key=lambda value: -value.count)
    few = [f"{value.text or 'none'} {value.count}×{_ids(value)}" for value in most[:6]]
    return ", ".join(few) + (f", … ({len(most)} in all)" if len(most) > 6 else "")


def _ids(value: Value) -> str:
    return "".join(f" {id}" for id in value.ids) if 0 < len(value.ids) <= 2 else ""


def _is_telling(row: Variation) -> bool:
    """Is it worth a word though it never changes?"""
    return bool(row.leaf) and (row.aspect in ("dtype", "value") or row.aspect.startswith("shape["))
