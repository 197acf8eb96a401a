"""What a traced function writes outside of itself, or leaves there."""

import collections
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.examples.linted import found, hits, piece

X = jnp.ones(3)

calls = 0
log = []
cache = {}
seen = set()
recent = collections.deque()
buffer = np.zeros(3)


class Counter:
    total = 0

    def __init__(self):
        self.n = 0
        self.items = []
        self.last = None

    def step(self, x):
        self.n += 1  # HIT
        self.items.append(  # HIT
            self.n
        )
        Counter.total += 1  # HIT
        setattr(self, "extra", 1)  # noqa: B010  # HIT
        return x

    def keep(self, x):
        self.last = x * 2  # LEAK
        return x


def put(where):
    where["new"] = 1


def writes(x):
    global calls
    calls += 1  # HIT
    log.append(3)  # HIT
    seen.add(3)  # HIT
    recent.append(1)  # HIT
    cache["a"] = 1  # HIT
    buffer[0] = 1  # HIT
    writes.count = 1  # HIT
    inner = []
    inner.append(x)
    own = {}
    own["x"] = x
    if x is None:
        log.append(4)
    return x


@pytest.fixture
def emptied():
    yield
    global calls
    calls = 0
    for one in (log, cache, seen, recent):
        one.clear()
    buffer[:] = 0
    vars(writes).pop("count", None)


def test_writes_to_what_outlives_the_trace_are_found(emptied):
    findings = hits("state-write", writes, X)
    assert findings[0].evidence == "`calls` was 0 before the trace and is 1 after it"
    assert piece(findings[1]) == "log.append(3)"
    assert {one.severity for one in findings} == {"warning"}


def test_writes_to_objects_are_found():
    counter = Counter()
    findings = hits("state-write", counter.step, X)
    assert "`self.n` was 0 before" in findings[0].evidence
    assert piece(findings[1]).startswith("self.items.append(")
    Counter.total = 0


def test_a_write_in_a_function_that_was_given_the_container_is_found(emptied):
    def function(x):
        put(cache)
        return x

    [one] = found("state-write", function, X)
    assert one.text == 'where["new"] = 1'


def test_keeping_what_was_made_once_is_a_note(emptied):
    def function(x):
        if "mask" not in cache:
            cache["mask"] = 3  # HIT
        return x * cache["mask"]

    [one] = hits("state-write", function, X)
    assert one.severity == "note"


def test_what_a_function_makes_and_changes_itself_is_its_own():
    def function(x):
        total = 0
        parts = []
        for i in range(3):
            total += i
            parts.append(x * i)
        by_name = {"a": x}
        by_name.update(b=x)

        def add(y):
            nonlocal total
            total += 1
            parts.append(y)

        add(x)
        return sum(parts) + total

    assert not found("state-write", function, X)
    assert not found("leaked-tracer", function, X)


holder = {"h": [None]}


def test_a_leaked_tracer_is_an_error_with_its_path_and_line():
    def function(x):
        holder["h"][0] = x + 1  # HIT
        return x

    try:
        [one] = hits("leaked-tracer", function, X)
        assert one.severity == "error"
        assert "`holder['h'][0]`" in one.message
        assert "a traced float32[3]" in one.evidence
        assert not found("state-write", function, X)
    finally:
        holder["h"][0] = None


def test_leaks_into_lists_and_objects_are_found_once():
    counter, kept = Counter(), []

    def function(x):
        for i in range(3):
            kept.append(x * i)  # HIT
        return counter.keep(x)

    both = found("leaked-tracer", function, X)
    assert [one.text.split("  #")[0] for one in sorted(both, key=lambda one: one.line)] == [
        "self.last = x * 2",
        "kept.append(x * i)",
    ]


def test_a_tracer_that_an_earlier_trace_left_is_found():
    kept = []

    def leave(x):
        kept.append(x)
        return x

    def use(x):
        return x + len(kept)

    jax.jit(leave)(X)
    [one] = found("leaked-tracer", use, X)
    assert "earlier trace" in one.message


def test_a_value_that_is_returned_leaks_nothing():
    def function(x):
        return {"all": [x, (x * 2, x)]}

    assert not found("leaked-tracer", function, X)


def test_slots_and_frozen_objects_are_read():
    class Slotted:
        __slots__ = ("empty", "n")

        def __init__(self):
            self.n = 1

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        rate: float = 1.0

    slotted, frozen = Slotted(), Frozen()

    def function(x):
        slotted.n += 1  # HIT
        return x * frozen.rate

    [one] = hits("state-write", function, X)
    assert "`slotted.n` was 1 before the trace and is 2 after it" in one.evidence
