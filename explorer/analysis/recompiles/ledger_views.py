"""Views of a ledger: storms, the tree of call stacks, varying arguments, its repr, and merged processes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge as merged
from itertools import chain
from weakref import WeakKeyDictionary

from explorer.errors import NotRecordedError, OptionError
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.family_counts import (
    BUILDING,
    STORM,
    FamilyCounts,
    FamilyKey,
    Storm,
    Summary,
    Which,
    family_key,
)
from explorer.model.events.key import Key, TreeNode
from explorer.model.events.leaves import Form, forms_of
from explorer.model.events.ledger import Ledger
from explorer.model.events.variations import StackTree, Value, Variation, Variations
from explorer.model.units import count_text, duration_text

# Building a model runs one line of a layer for each shape. Only a loop compiles far more operations than that.
_EAGER_FACTOR = 4


def storms(ledger: Ledger) -> tuple[Storm, ...]:
    """Return the functions compiled more often than the ledger's limit, most compiles first.

    A single operation counts only if one line compiled it more than four times as often.
    """
    storming = [_storm(ledger, counts) for counts in ledger.family_counts if _is_storm(counts, ledger.storm)]
    return tuple(sorted(storming, key=lambda storm: -storm.compiles))


def storm_of(ledger: Ledger, event: Event) -> Storm | None:
    counts = ledger.counts_of(family_key(event))
    return _storm(ledger, counts) if counts is not None and _is_storm(counts, ledger.storm) else None


def _is_storm(counts: FamilyCounts, limit: int) -> bool:
    """Return True if a function has more than `limit` compiles, or an operation far more at one line; False for 0."""
    if not limit or counts.built <= limit:
        return False
    return not counts.eager or max(counts.sites.values(), default=0) > limit * _EAGER_FACTOR


def _storm(ledger: Ledger, counts: FamilyCounts) -> Storm:
    cause = counts.main_cause()
    last = counts.last
    return Storm(
        counts.key[1],
        counts.key,
        counts.built,
        counts.total,
        cause.count if cause else 0,
        cause.last if cause else Reason("unknown"),
        last.call_site if last else None,
        counts.eager,
        ledger.called(counts.key[2]),
    )


ABSENT = "(absent)"


# A live view reads variations after each event, mostly of functions that didn't compile since: keep the results.
_Result = tuple[tuple[int, int, int], Variations]
_results: WeakKeyDictionary[Ledger, dict[tuple[frozenset[FamilyKey], int | None], _Result]] = WeakKeyDictionary()
_MAX_RESULTS = 64  # of one ledger


def varying(ledger: Ledger, function: Which | None = None, *, calls: int | None = None) -> Variations:
    """Return all argument properties of a function's compiled calls with their values; see `Ledger.varying`.

    Args:
        function: The function; None for the function with the most recompiles.
        calls: Restrict to the last `calls` compiled calls; None for all.

    Raises:
        NotRecordedError: The ledger has no such function, or nothing was compiled.
    """
    if function is None:
        # The family with the most recompiles, functions before single operations.
        family_counts = [counts for counts in ledger.family_counts if counts.built]
        if not family_counts:
            raise NotRecordedError("nothing was compiled while the ledger watched, so nothing varies.")
        families = frozenset({max(family_counts, key=lambda counts: (counts.recompiles, not counts.eager)).key})
    else:
        families = frozenset(ledger.families(function))
    built = sum(counts.built for counts in ledger.family_counts if counts.key in families)
    state = built, ledger.dropped, ledger.spilled
    results = _results.setdefault(ledger, {})
    result = results.get((families, calls))
    if result is not None and result[0] == state:
        return result[1]
    if len(results) >= _MAX_RESULTS:
        results.clear()
    variations = _variations(ledger.events, families, calls)
    results[families, calls] = state, variations
    return variations


def _latest_calls(events: Sequence[Event], families: Collection[FamilyKey], most: int | None) -> list[tuple[Key, str]]:
    """Return (key, id) of the latest `most` calls of some families that built a program, the latest first."""
    calls: dict[tuple[str, int], tuple[Key, str]] = {}
    for event in reversed(events):
        if event.key is not None and event.kind in BUILDING and family_key(event) in families:
            # An event without a number is a call of its own.
            call = event.process, event.call or -len(calls) - 1
            if call not in calls and len(calls) == most:
                break
            calls.setdefault(call, (event.key, event.id))
    return [*calls.values()]


def _variations(events: Sequence[Event], families: Collection[FamilyKey], most: int | None) -> Variations:
    calls = _latest_calls(events, families, most)[::-1]
    name = min(family[1] for family in families)
    keys, ids = [key for key, _ in calls], [id for _, id in calls]
    rows: list[Variation] = []
    for leaf, property_, calls_by_value in (*_of_leaves(keys), *_of_the_rest(keys)):
        # By the first call that had a value.
        in_order = sorted((sorted(indices), text) for text, indices in calls_by_value.items())
        values = (Value(text, len(at), tuple(ids[i] for i in at if ids[i])) for at, text in in_order)
        rows.append(Variation(leaf, property_, tuple(values)))
    return Variations(name, len(calls), tuple(rows))


_CallsByValue = dict[str, list[int]]  # the calls of each value


def _of_leaves(keys: list[Key]) -> Iterator[tuple[str, str, _CallsByValue]]:
    """Yield (path, property, indices in `keys` by value) of each leaf; keys with equal forms of a leaf share a look."""
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
    if committed is not None:  # only a JAX array has a placement
        yield "committed", "yes" if committed else "no"
        yield "sharding", sharding
        yield "devices", ", ".join(devices)
        yield "layout", layout


def _of_the_rest(keys: list[Key]) -> Iterator[tuple[str, str, _CallsByValue]]:
    objects: dict[str, dict[int, int]] = {}

    def numbered(kind: str, identity: int) -> str:
        # An identity is an address, which tells a reader nothing: number the objects as they appear.
        numbers = objects.setdefault(kind, {})
        return f"object {numbers.setdefault(identity, len(numbers) + 1)}"

    # Most calls have equal trees, so each distinct one is printed once.
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
        if not leaf:  # a setting can be absent; an absent argument shows in the row of the structure
            missing = set(range(len(keys))).difference(*calls_by_value.values())
            if missing:
                calls_by_value = {**calls_by_value, ABSENT: [*missing]}
        yield leaf, name, calls_by_value


def stack_tree(ledger: Ledger) -> StackTree:
    """Return the tree of all calls that traced, lowered or compiled, with the seconds of their events."""
    root = StackTree()
    nodes: dict[tuple[int, object], StackTree] = {}
    calls: set[tuple[str, int]] = set()
    for index, event in enumerate(ledger.events):
        if event.kind not in BUILDING:
            continue
        call = (event.process, event.call or -index - 1)
        _add(root, event, nodes, is_new=call not in calls)
        calls.add(call)
    return root


def _add(root: StackTree, event: Event, nodes: dict[tuple[int, object], StackTree], *, is_new: bool) -> None:
    path = [root]
    if event.process:
        path.append(_child(path[-1], event.process, StackTree(function=event.process), nodes))
    for place in reversed(event.stack or ((event.call_site,) if event.call_site else ())):
        path.append(_child(path[-1], place, StackTree(place), nodes))
    path[-1].self_seconds += event.seconds
    path.append(_child(path[-1], family_key(event), StackTree(function=event.function, process=event.process), nodes))
    path[-1].self_seconds += event.seconds
    for node in path:
        # A call with several events counts once.
        node.count += is_new
        node.seconds += event.seconds
    # Events of one call follow each other, with one id.
    if event.id and event.id not in path[-1].ids[-1:]:
        path[-1].ids.append(event.id)


def _child(parent: StackTree, key: object, new: StackTree, nodes: dict[tuple[int, object], StackTree]) -> StackTree:
    child = nodes.get((id(parent), key))  # the tree keeps parents alive, so ids stay unique
    if child is None:
        child = nodes[id(parent), key] = new
        parent.children.append(new)
    return child


_DEAR = 1.0  # seconds of one line in single operations that are worth a word


def ledger_repr(ledger: Ledger) -> str:
    """Return a ledger in a line: `Ledger(5 compiles of 2 functions; step: batch['x'].shape[0] changed 3 times)`."""
    rows = ledger.functions()
    own = [row for row in rows if not row.eager]
    operations = sum(row.compiles + row.cache_hits for row in rows if row.eager)
    parts = [_compiles(own, operations)]
    seconds: dict[Place, float] = {}
    for counts in ledger.family_counts:
        for site, spent in counts.site_seconds.items():
            if site is not None:
                seconds[site] = seconds.get(site, 0.0) + spent
    dearest = max(seconds, key=seconds.__getitem__, default=None)
    if dearest is not None and seconds[dearest] >= _DEAR:
        parts.append(f"single operations at {dearest} took {duration_text(seconds[dearest])}")
    worst = min(own, key=lambda row: (-row.recompiles, row.name, row.file, row.line), default=None)
    if worst is not None and worst.recompiles:
        parts.append(_why(worst))
    if ledger.dropped:
        parts.append(f"the oldest {count_text(ledger.dropped, 'event')} dropped")
    if ledger.spilled:
        parts.append(f"the oldest {count_text(ledger.spilled, 'event')} spilled")
    parts += [ledger.note] if ledger.note else []
    return f"{type(ledger).__name__}({'; '.join(parts)})"


def _compiles(own: list[Summary], operations: int) -> str:
    compiled = sum(row.compiles + row.cache_hits for row in own)
    hits = sum(row.cache_hits for row in own)
    text = count_text(compiled, "compile")
    if own:
        text += f" of {count_text(len(own), 'function')}"
    if hits:
        text += f", {'all' if hits == compiled else hits} from the persistent cache"
    return text + (f", {operations} of single operations" if operations else "")


def _why(worst: Summary) -> str:
    if worst.varying:
        leaf, count = worst.varying[0]
        return f"{worst.name}: {leaf} changed {often(count)}"
    kind, count = worst.reasons[0]
    return f"{worst.name}: compiled again {often(count)} ({kind})"


def often(count: int) -> str:
    """Return a count as text: `once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def merge(*ledgers: Ledger, names: Iterable[str] | None = None, storm: int = STORM) -> Ledger:
    """Return one ledger in clock order. Calls stay whole and get new numbers.

    A function that two processes compiled counts as two. Event ids stay, and each event names its process. Ledgers that
    were merged before keep the names of their processes after the new name: `host1/0`.
    """
    process_names = _names(ledgers, names)
    streams = [
        _calls(index, ledger, name) for index, (ledger, name) in enumerate(zip(ledgers, process_names, strict=True))
    ]
    # No limit, as a merge must not drop what each ledger kept.
    whole = Ledger(limit=None, storm=storm)
    for number, (_, _, _, events) in enumerate(merged(*streams, key=lambda call: call[:3]), 1):
        whole.add(tuple(replace(event, call=number) for event in events))
    for ledger, name in zip(ledgers, process_names, strict=True):
        whole.predict(
            replace(prediction, family=(_under(name, prediction.family[0]), *prediction.family[1:]))
            for prediction in ledger.predictions
        )
    whole.dropped = sum(ledger.dropped for ledger in ledgers)
    whole.spilled = sum(ledger.spilled for ledger in ledgers)
    notes = [f"{name}: {ledger.note}" for ledger, name in zip(ledgers, process_names, strict=True) if ledger.note]
    whole.note = "; ".join(notes)
    return whole


def _names(ledgers: Sequence[Ledger], names: Iterable[str] | None) -> list[str]:
    if names is None:
        own = [{event.process for event in ledger} for ledger in ledgers]
        kept = [process for processes in own for process in processes]
        if all(kept) and len(set(kept)) == len(kept):
            return [""] * len(ledgers)  # the events already name their processes
        return [str(index) for index in range(len(ledgers))]
    given_names = [str(name) for name in names]
    if len(given_names) != len(ledgers):
        raise OptionError(
            f"merge() got {len(ledgers)} ledgers and {len(given_names)} names.\n  Hint: one name for each."
        )
    twice = {name for name in given_names if given_names.count(name) > 1}
    if twice:
        raise OptionError(
            f"merge() got the name {min(twice)!r} for several ledgers; their events could not be distinguished.\n"
            "  Hint: name them by host or process index."
        )
    return given_names


def _under(name: str, process: str) -> str:
    return "/".join(filter(None, [name, process]))


def _calls(index: int, ledger: Ledger, name: str) -> Iterator[tuple[float, int, int, list[Event]]]:
    """Return calls by start as (start, ledger, position, events): a merged ledger may scatter a call's events."""
    calls: dict[tuple[str, int], list[Event]] = {}
    for position, event in enumerate(ledger.events):
        events = calls.setdefault((event.process, event.call or -position - 1), [])
        events.append(replace(event, process=_under(name, event.process)))
    starts = ((min(event.start for event in events), index, at, events) for at, events in enumerate(calls.values()))
    return iter(sorted(starts, key=lambda call: call[:3]))
