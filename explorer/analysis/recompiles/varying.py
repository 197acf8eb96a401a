"""What of a function's calls was always the same and what was not, argument by argument."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from weakref import WeakKeyDictionary

from explorer.errors import NotRecordedError
from explorer.model.events.event import Event
from explorer.model.events.family_counts import BUILDING, FamilyKey, Which, family_key
from explorer.model.events.key import Key, TreeNode
from explorer.model.events.leaves import Form, forms_of
from explorer.model.events.ledger import Ledger
from explorer.model.events.variations import Value, Variation, Variations

ABSENT = "(absent)"


_Result = tuple[tuple[int, int, int], Variations]
# A live view asks at each change, mostly of functions of which no more has compiled since.
_results: WeakKeyDictionary[Ledger, dict[tuple[frozenset[FamilyKey], int | None], _Result]] = WeakKeyDictionary()
_MOST_RESULTS = 64  # of one ledger


def varying(ledger: Ledger, function: Which | None = None, *, calls: int | None = None) -> Variations:
    """The properties of a function's compiled calls, or of its last `calls` ones; see `Ledger.varying`."""
    families = frozenset({_worst(ledger)} if function is None else ledger.families(function))
    built = sum(counts.built for counts in ledger.family_counts if counts.key in families)
    state = built, ledger.dropped, ledger.spilled
    results = _results.setdefault(ledger, {})
    result = results.get((families, calls))
    if result is not None and result[0] == state:
        return result[1]
    if len(results) >= _MOST_RESULTS:
        results.clear()
    variations = _variations(ledger.events, families, calls)
    results[families, calls] = state, variations
    return variations


def _worst(ledger: Ledger) -> FamilyKey:
    """The family with the most recompiles; of single operations only if there are no others."""
    family_counts = [counts for counts in ledger.family_counts if counts.built]
    if not family_counts:
        raise NotRecordedError("nothing was compiled while the ledger watched, so nothing varies.")
    return max(family_counts, key=lambda counts: (counts.recompiles, not counts.eager)).key


def _variations(events: Sequence[Event], families: Collection[FamilyKey], most: int | None) -> Variations:
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
    properties = [*_of_leaves([key for key, _ in calls]), *_of_the_rest([key for key, _ in calls])]
    return tuple(Variation(leaf, name, _values(calls_by_value, ids)) for leaf, name, calls_by_value in properties)


_CallsByValue = dict[str, list[int]]  # the calls of each value


def _values(calls_by_value: _CallsByValue, ids: list[str]) -> tuple[Value, ...]:
    in_order = sorted((sorted(calls), text) for text, calls in calls_by_value.items())
    return tuple(Value(text, len(calls), tuple(ids[i] for i in calls if ids[i])) for calls, text in in_order)


def _of_leaves(keys: list[Key]) -> Iterator[tuple[str, str, _CallsByValue]]:
    """Sizes, and whatever else arrays have; read once for all calls in which a leaf has the same of it."""
    forms: dict[str, dict[tuple[Form, int], list[int]]] = {}
    sizes: dict[tuple[str, int], _CallsByValue] = {}
    for index, key in enumerate(keys):
        for form, shape in forms_of(key.leaves):
            forms.setdefault(form[0], {}).setdefault((form, len(shape)), []).append(index)
            for dimension, size in enumerate(shape):
                sizes.setdefault((form[0], dimension), {}).setdefault(str(size), []).append(index)
    for path, ranked in forms.items():
        for dimension in range(max(rank for _, rank in ranked)):
            yield path, f"shape[{dimension}]", sizes[path, dimension]
        yield from _by_property((path, ranked[form], [*_of_leaf(form[0], form[1])]) for form in ranked)


def _by_property(
    rows: Iterable[tuple[str, list[int], list[tuple[str, str]]]],
) -> Iterator[tuple[str, str, _CallsByValue]]:
    """Leaf, its calls, and its properties in those: by property."""
    table: dict[tuple[str, str], _CallsByValue] = {}
    for leaf, calls, properties in rows:
        for name, value in properties:
            table.setdefault((leaf, name), {}).setdefault(value, []).extend(calls)
    return ((leaf, name, calls_by_value) for (leaf, name), calls_by_value in table.items())


def _of_leaf(form: Form, rank: int) -> Iterator[tuple[str, str]]:
    _, dtype, weak, given, committed, sharding, devices, layout, _spread = form
    yield "rank", str(rank)
    yield "dtype", dtype
    yield "weak type", "yes" if weak else "no"
    yield "given", given
    if committed is not None:  # what is no JAX array is nowhere yet
        yield "committed", "yes" if committed else "no"
        yield "sharding", sharding
        yield "devices", ", ".join(devices)
        yield "layout", layout


def _of_the_rest(keys: list[Key]) -> Iterator[tuple[str, str, _CallsByValue]]:
    """Static arguments, and what is no argument: the structure, the function object, settings."""
    objects: dict[str, dict[int, int]] = {}

    def numbered(kind: str, identity: int) -> str:
        numbers = objects.setdefault(kind, {})
        return f"object {numbers.setdefault(identity, len(numbers) + 1)}"

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
    for leaf, name, calls_by_value in _by_property(chain(rows, settings)):
        if not leaf:  # a setting can be absent; an argument that is makes another structure, and that is a row
            missing = set(range(len(keys))).difference(*calls_by_value.values())
            if missing:
                calls_by_value = {**calls_by_value, ABSENT: [*missing]}
        yield leaf, name, calls_by_value
