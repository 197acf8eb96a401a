"""How often loops run: what their own instructions prove is what XLA found, or what running them by hand gives."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import explorer as ex
from explorer.analysis.loops import proven_trip_counts, trip_counts, unknown_loops
from explorer.capture.readers.hlo import read_hlo
from tests.unit.hardware.conftest import require

SAMPLES = Path(__file__).parents[3] / "support" / "hlo_samples"
X = jax.ShapeDtypeStruct((8, 8), jnp.float32)


def scanned(x):
    return lax.scan(lambda carry, row: (jnp.tanh(carry @ x + row), carry.sum()), x[0], jnp.stack([x[0]] * 12))


def gradient(x):
    return jax.grad(lambda x: scanned(x)[0].sum())(x)


def nested(x):
    def outer(carry, _):
        return lax.scan(lambda inner, _: (jnp.sin(inner) @ inner, None), carry, None, length=3)[0] + 1, None

    return lax.scan(outer, x, None, length=7)[0]


def after_one_another(x):
    for length in (5, 9, 2):
        x = lax.fori_loop(0, length, lambda i, carry: jnp.sin(carry) @ carry * i, x)
    return x


def counted(x, start, step, limit, go_on):
    def body(carry):
        return carry[0] + step, jnp.sin(carry[1]) @ carry[1]

    return lax.while_loop(lambda carry: go_on(carry[0], limit), body, (start, x))[1]


def in_a_branch(x):
    return lax.cond(x.sum() > 0, nested, lambda x: x, x)


# With how often the source says that each runs, inner loops first.
PROGRAMS = {
    "scan": (scanned, [12]),
    "gradient of a scan": (gradient, [12, 12]),
    "nested": (nested, [3, 7]),
    "one after another": (after_one_another, [2, 5, 9]),
    "up by seven": (lambda x: counted(x, 3, 7, 100, lambda i, n: i < n), [14]),
    "down by three": (lambda x: counted(x, 50, -3, 0, lambda i, n: i > n), [17]),
    "up to the limit": (lambda x: counted(x, 0, 2, 10, lambda i, n: i <= n), [6]),
    "limit on the left": (lambda x: counted(x, 0, 1, 10, lambda i, n: n > i), [10]),
    "until it is met": (lambda x: counted(x, 0, 2, 10, lambda i, n: i != n), [5]),
    "in a branch": (in_a_branch, [3, 7]),
}


@pytest.fixture(scope="module")
def compiled():
    """By program, its text without and with what XLA found out about its loops."""
    texts = {name: jax.jit(function).lower(X).compile().as_text() for name, (function, _) in PROGRAMS.items()}
    return {
        name: (read_hlo(text.replace("known_trip_count", "hidden")), read_hlo(text)) for name, text in texts.items()
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_xla_prints_of_its_loops_is_proven_without_it(name, compiled):
    hidden, printed = compiled[name]
    by_xla = printed.attribute_table.integers("known_trip_count")
    expected = {printed.names[node]: int(by_xla[node]) for node in np.flatnonzero(by_xla >= 0)}
    assert {hidden.names[node]: count for node, count in proven_trip_counts(hidden).items()} == expected
    assert sorted(expected.values()) == PROGRAMS[name][1]
    assert len(unknown_loops(hidden)) == 0
    np.testing.assert_array_equal(hidden.measures["runs"], printed.measures["runs"])
    assert proven_trip_counts(printed) == {}  # what is printed needs no proof


def collatz(x):
    def body(carry):
        steps, number = carry
        return steps + 1, jnp.where(number % 2 == 0, number // 2, 3 * number + 1)

    return lax.while_loop(lambda carry: carry[1] != 1, body, (0, x[0, 0].astype(int)))


UNKNOWN = {
    "sum of an array": lambda x: lax.while_loop(lambda c: c.sum() < 5.0, lambda c: jnp.sin(c) @ c, x),
    "data": collatz,
    "counter or data": lambda x: lax.while_loop(
        lambda c: (c[0] < 10) & (c[1].sum() < 5.0), lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x)
    ),
    "limit is an argument": lambda x: counted(x, 0, 1, x[0, 0].astype(int), lambda i, n: i < n),
    "start is an argument": lambda x: counted(x, x[0, 0].astype(int), 1, 10, lambda i, n: i < n),
    "step is an argument": lambda x: counted(x, 0, x[0, 0].astype(int), 10, lambda i, n: i < n),
    "as often as the loop around it ran": lambda x: lax.fori_loop(
        0, 4, lambda i, c: counted(c, 0, 1, i, lambda i, n: i < n), x
    ),
    "doubled": lambda x: lax.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 2, jnp.sin(c[1])), (1, x)),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_loop_that_depends_on_data_stays_unknown(name):
    graph = read_hlo(jax.jit(UNKNOWN[name]).lower(X).compile().as_text().replace("known_trip_count", "hidden"))
    expected = [4] if "around" in name else []
    assert list(proven_trip_counts(graph).values()) == expected
    assert len(unknown_loops(graph)) == 1


def test_the_loops_of_a_tpu_are_counted_though_its_compiler_prints_no_counts():
    """`nested` above, as libtpu 0.0.42 compiles it for a v5e; three iterations in each of seven."""
    text = (SAMPLES / "tpu_loops.hlo").read_text()
    assert "known_trip_count" not in text
    graph = read_hlo(text)
    assert sorted(trip_counts(graph).values()) == [3, 7]
    runs = graph.measures["runs"]
    assert {runs[node.index] for node in graph.nodes if node.op == "convolution"} == {21.0}
    assert len(unknown_loops(graph)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tpus_compiler_turns_as_many_loops_as_often(name):
    require("tpu")
    function, counts = PROGRAMS[name]
    graph = ex.explore(function, X, target="v5e").hlo.graph
    assert sorted(trip_counts(graph).values()) == counts
    assert len(unknown_loops(graph)) == 0


LOOP = """HloModule m

%body (b: ({d}[], {d}[])) -> ({d}[], {d}[]) {{
  %b = ({d}[], {d}[]) parameter(0)
  %i = {d}[] get-tuple-element(%b), index=0
  %n = {d}[] get-tuple-element(%b), index=1
  %step = {d}[] constant({step})
  %next = {d}[] {op}(%i, %step)
  ROOT %t = ({d}[], {d}[]) tuple(%next, {kept})
}}

%condition (c: ({d}[], {d}[])) -> pred[] {{
  %c = ({d}[], {d}[]) parameter(0)
  %k = {d}[] get-tuple-element(%c), index=0
  %m = {d}[] get-tuple-element(%c), index=1
  %plus = {d}[] constant({offset})
  %moved = {d}[] add(%k, %plus)
  ROOT %more = pred[] compare({sides}), direction={direction}
}}

ENTRY %e (a: {d}[]) -> {d}[] {{
  %a = {d}[] parameter(0)
  %start = {d}[] constant({start})
  %copied = {d}[] copy(%start)
  %limit = {d}[] constant({limit})
  %s = ({d}[], {d}[]) tuple(%copied, %limit)
  %loop = ({d}[], {d}[]) while(%s), condition=%condition, body=%body
  ROOT %r = {d}[] get-tuple-element(%loop), index=0
}}
"""
COMPARES = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal}
COMPARES |= {"NE": np.not_equal}
TYPES = {"s8": np.int8, "u8": np.uint8}


def run(dtype, start, step, op, offset, limit, direction, is_mirrored):
    """The loop, run with numbers that overflow as the machine's do: how often, and whether one of them did."""
    type_, count, overflows = TYPES[dtype], 0, False
    info, exact = np.iinfo(type_), start
    while count < 300:
        value = np.array(exact).astype(type_)
        moved = np.array(int(value) + offset).astype(type_)
        overflows |= not (info.min <= exact <= info.max and int(moved) == int(value) + offset)
        pair = (type_(limit), moved) if is_mirrored else (moved, type_(limit))
        if not COMPARES[direction](*pair):
            return count, overflows
        count, exact = count + 1, exact + (step if op == "add" else -step)
    return None, True


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    dtype=st.sampled_from(list(TYPES)),
    start=st.integers(-128, 255),
    step=st.integers(-128, 255),
    op=st.sampled_from(["add", "subtract"]),
    offset=st.sampled_from([0, 0, 0, 1, -1, 5]),
    limit=st.integers(-128, 255),
    direction=st.sampled_from(list(COMPARES)),
    is_mirrored=st.booleans(),
)
def test_what_is_proven_is_what_running_the_loop_gives(dtype, start, step, op, offset, limit, direction, is_mirrored):
    info = np.iinfo(TYPES[dtype])
    start, limit = (max(info.min, min(info.max, each)) for each in (start, limit))
    step, offset = (max(info.min, min(info.max, each)) for each in (step, offset))
    sides = "%m, %moved" if is_mirrored else "%moved, %m"
    text = LOOP.format(
        d=dtype, start=start, step=step, op=op, offset=offset, limit=limit, direction=direction, sides=sides, kept="%n"
    )
    proven = proven_trip_counts(read_hlo(text))
    count, overflows = run(dtype, start, step, op, offset, limit, direction, is_mirrored)
    # Whatever ends without an overflow is proven; what overflows isn't, whatever becomes of it.
    assert list(proven.values()) == ([] if overflows else [count])


PLAIN = {"d": "s32", "start": 0, "step": 1, "op": "add", "offset": 0, "limit": 9, "direction": "LT"}
PLAIN |= {"sides": "%moved, %m", "kept": "%n"}


@pytest.mark.parametrize(
    "change",
    [
        ("limit moves", {"kept": "%next"}, "", ""),
        ("limit and counter change places", {"op": "add", "kept": "%i"}, "tuple(%next, %i)", "tuple(%n, %i)"),
        ("step is carried and changes", {"kept": "%next"}, "add(%i, %step)", "add(%i, %n)"),
        ("no step", {}, "tuple(%next", "tuple(%i"),
        ("another operation", {}, "%next = s32[] add", "%next = s32[] multiply"),
        ("a float", {"d": "f32"}, "", ""),
        ("no body", {}, "body=%body", "body=%elsewhere"),
        ("no condition", {}, "condition=%condition", "condition=%elsewhere"),
        ("no operand", {}, "while(%s)", "while()"),
        ("no start", {}, "tuple(%copied, %limit)", "tuple(%a, %limit)"),
        ("no number", {}, "%limit = s32[] constant(9)", "%limit = s32[] constant({...})"),
        ("no direction", {}, ", direction=LT", ""),
        ("from itself", {}, "%copied = s32[] copy(%start)", "%copied = s32[] copy(%copied)"),
        ("sum of itself", {}, "add(%i, %step)", "add(%next, %step)"),
        ("a body that is called", {}, "  ROOT %r", "  %q = (s32[], s32[]) call(%loop), to_apply=%body\n  ROOT %r"),
    ],
    ids=lambda change: change[0],
)  # fmt: skip
def test_what_cannot_be_proven_stays_unknown(change):
    _, given_, before, after = change
    assert list(proven_trip_counts(read_hlo(LOOP.format(**PLAIN))).values()) == [9]
    text = LOOP.format(**PLAIN | given_)
    assert before in text
    assert proven_trip_counts(read_hlo(text.replace(before, after) if before else text)) == {}


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("%copied = s32[] copy(%start)", "%copied = s32[] convert(%small)", 6),
        ("%more = pred[] compare(%moved, %m), direction=LT", "%more = pred[] constant(false)", 0),
        ("%limit = s32[] constant(9)", "%begin = (s32[]) tuple(%start)\n  %limit = s32[] constant(4)", 4),
    ],
)
def test_what_passes_a_constant_on_is_seen_through(before, after, count):
    small = "  %small = s8[] constant(3)\n  %start ="
    text = LOOP.format(**PLAIN).replace("  %start =", small).replace(before, after)
    assert list(proven_trip_counts(read_hlo(text)).values()) == [count]


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, 14_000), cut=st.integers(0, 80), put=st.text("%{}()[],=0a1s ", max_size=8))
def test_a_damaged_loop_raises_nothing(at, cut, put):
    text = (SAMPLES / "tpu_loops.hlo").read_text() + LOOP.format(**PLAIN)
    graph = read_hlo(text[: at % len(text)] + put + text[at % len(text) + cut :])
    assert all(count >= 0 for count in proven_trip_counts(graph).values())
