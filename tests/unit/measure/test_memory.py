"""How much memory a function needs, of how much there is, and the largest size that fits."""

import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import explorer as ex
from explorer.measure import memory as module
from explorer.measure import own_process
from explorer.measure.arguments import abstract_arguments
from explorer.model.results.memory_use import Largest, MemoryRow, MemoryUse, fitted_size
from explorer.model.results.statistics import Axis
from explorer.model.units import bytes_text


def squared(x):
    return jnp.tanh(x @ x) @ x


def square(n):
    return jnp.ones((n, n))


def use_of(*sizes, limit=1000, **more):
    axis = Axis("n", tuple(map(str, range(len(sizes)))), tuple(float(i + 1) for i in range(len(sizes))))
    rows = [MemoryRow((i,), {"n": i + 1}, {"argument": size}) for i, size in enumerate(sizes)]
    return MemoryUse("f", "", (axis,), rows, "this machine", limit, **more)


# -- one size


def test_what_is_needed_is_what_the_compiler_planned_without_what_lies_twice_in_one_place():
    row = MemoryRow((), {}, {"argument": 100, "output": 50, "temp": 30, "alias": 40, "generated code": 1})
    assert row.needed == 141
    use = MemoryUse("f", "", (), [row], "this machine", 1000)
    assert sum(use.parts(row).values()) == row.needed


def test_a_function_is_told_its_memory_without_being_run():
    def fails_if_run(x):
        jax.debug.callback(lambda: 1 / 0)
        return squared(x)

    use = ex.memory(fails_if_run, jax.ShapeDtypeStruct((512, 512), jnp.float32))
    (row,) = use
    assert row.uses["argument"] == row.uses["output"] == 512 * 512 * 4
    assert row.needed == sum(use.parts(row).values())
    assert 0 < row.live <= row.needed * 1.1
    assert use.signature == "(x: f32[512,512])"


def test_what_is_donated_is_needed_once():
    donating = ex.memory(jax.jit(lambda x: x + 1, donate_argnums=0), jnp.ones(1000))
    keeping = ex.memory(lambda x: x + 1, jnp.ones(1000))
    assert donating.rows[0].uses["alias"] == 4000
    assert keeping.rows[0].needed - donating.rows[0].needed == 4000


def test_baked_in_arrays_are_counted_as_constants():
    table = jnp.arange(1000.0)
    assert ex.memory(lambda x: x + table, jnp.ones(1000)).rows[0].constants == 4000


def test_an_executable_is_asked_and_not_compiled_again():
    executable = ex.compile(squared, args=[ex.InputInfo((64, 64), jnp.float32)])
    (row,) = ex.memory(executable)
    assert row.capture is executable.explore()
    assert row.uses["argument"] == 64 * 64 * 4


def test_a_function_that_needs_more_than_there_is_does_not_fit_and_says_so():
    use = ex.memory(squared, jnp.ones((64, 64)), limit=20_000)
    assert not use.fits(use.rows[0])
    assert "more than the 20.0 kB allowed: it doesn't fit" in use.headline
    assert "no" in use.to_text()


def test_the_machine_tells_its_limit():
    use = ex.memory(squared, jnp.ones((8, 8)))
    assert use.limit >= 1 << 28
    assert "this machine has" in use.headline


def test_one_that_fails_to_compile_says_why():
    with pytest.raises(ex.errors.ExploreError):
        ex.memory(lambda x: x @ x, jnp.ones((2, 3)))


# -- what a process takes


def outside_peak(code):
    """Bytes by which a process of Python grows while a line of it runs, seen by somebody who looks from outside."""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        status = Path(f"/proc/{process.pid}/status")

        def resident():
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read_text())[1]) << 10

        assert process.stdout.readline() == b"ready\n"
        before = peak = resident()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        os.set_blocking(process.stdout.fileno(), False)
        written = b""
        while not written.endswith(b"done\n"):  # which may come in pieces
            assert process.poll() is None
            written += process.stdout.read() or b""
            peak = max(peak, resident())
        process.kill()
    return peak - before


LINUX = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux alone tells what a process takes")


@LINUX
@pytest.mark.slow
def test_what_is_measured_is_what_somebody_outside_sees():
    seen = outside_peak(
        "import jax, jax.numpy as jnp; x = jnp.ones(4_000_000);"
        "f = jax.jit(jnp.sort).lower(x).compile(); print('ready', flush=True); input();"
        "y = f(x).block_until_ready(); print('done', flush=True); input()"
    )
    (row,) = ex.memory(jnp.sort, jax.ShapeDtypeStruct((4_000_000,), jnp.float32), measure=True)
    assert row.measured == pytest.approx(16_000_000 + seen, rel=0.1)
    assert row.measured > 2.5 * row.needed


@pytest.mark.slow
@LINUX
def test_a_program_without_scratch_takes_what_xla_plans_and_one_with_takes_more():
    sine = ex.memory(lambda x: jnp.sin(x), jax.ShapeDtypeStruct((2000, 2000), jnp.float32))
    assert sine.rows[0].measured == pytest.approx(sine.rows[0].needed, rel=0.05, abs=3e6)
    sort = ex.memory(lambda x: jnp.sort(x), jax.ShapeDtypeStruct((2_000_000,), jnp.float32), limit=20_000_000)
    (row,) = sort
    assert row.needed < 20_000_000 < row.taken == row.measured
    assert not sort.fits(row)
    assert sum(sort.parts(row).values()) == row.taken
    for shown in (sort.headline, repr(sort), sort.to_text()):
        assert "a lower bound" in shown
        assert bytes_text(row.measured) in shown
    assert sort.notes == ()
    assert list(sort.to_frame()["measured"]) == [row.measured]


def test_small_programs_and_several_sizes_are_not_run_unless_asked(monkeypatch):
    monkeypatch.setattr(module, "peak_of_process", lambda *_: pytest.fail("it ran"))
    use = ex.memory(squared, jnp.ones((64, 64)))
    assert math.isnan(use.rows[0].measured)
    assert "without other memory of the runtime" in use.headline
    ex.memory(squared, over={"n": [2000]}, args=square, limit=10**9)
    ex.memory(squared, jax.ShapeDtypeStruct((2000, 2000), jnp.float32), measure=False)


@pytest.mark.slow
@LINUX
def test_random_keys_and_donated_arguments_can_be_measured_and_each_size_if_asked():
    def draw(key, x):
        return x + jax.random.normal(key, x.shape)

    key = jax.eval_shape(jax.random.key, 0)
    (row,) = ex.memory(
        jax.jit(draw, donate_argnums=1), key, jax.ShapeDtypeStruct((500_000,), jnp.float32), measure=True
    )
    assert row.measured == pytest.approx(row.needed, abs=3e6)
    sizes = ex.memory(lambda x: x + 1, over={"n": [256, 512]}, args=square, limit=10**9, measure=True)
    assert not any(math.isnan(row.measured) for row in sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "says"),
    [
        (
            lambda x: jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((4,), jnp.float32), x),
            "calls back to the host",
        ),
        (lambda x: jax.lax.while_loop(lambda x: x[0] >= 0, lambda x: x + 1, x), "not done after 4 s"),
    ],
)
def test_what_can_not_be_measured_says_why(function, says, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_ASKED", 4.0)
    use = ex.memory(function, jnp.ones(4), measure=True)
    assert math.isnan(use.rows[0].measured)
    assert says in use.notes[0]
    assert f"note: {use.notes[0]}" in repr(use)


def test_what_is_too_large_is_not_run(monkeypatch):
    monkeypatch.setattr(own_process, "free_bytes", lambda: 1 << 20)
    use = ex.memory(squared, jax.ShapeDtypeStruct((2000, 2000), jnp.float32))
    assert "and 1.0 MB are free" in use.notes[0]
    assert math.isnan(use.rows[0].measured)


def test_a_machine_that_starts_no_process_says_so(monkeypatch):
    monkeypatch.setattr(own_process.sys, "executable", "/nowhere/python")
    use = ex.memory(squared, jnp.ones((64, 64)), measure=True)
    assert "no process can be started" in use.notes[0]


def test_a_program_that_fails_leaves_the_last_line_of_what_it_said(monkeypatch):
    monkeypatch.setattr(own_process, "_ALLOCATOR", {"XLA_FLAGS": "--no_such_flag=1"})
    use = ex.memory(squared, jnp.ones((64, 64)), measure=True)
    assert "was not measured" in use.notes[0]


@pytest.mark.slow
def test_the_session_stays_as_it_is():
    before = (len(jax.live_arrays()), jax.config.values.copy(), dict(os.environ))
    ex.memory(squared, jax.ShapeDtypeStruct((64, 64), jnp.float32), measure=True)
    assert (len(jax.live_arrays()), jax.config.values, dict(os.environ)) == before


# -- several sizes


def test_sizes_that_do_not_exist_on_this_machine_can_be_asked_for():
    use = ex.memory(squared, over={"n": [1 << 10, 1 << 20]}, args=square, limit=10**9)
    assert [row.uses["argument"] for row in use] == [4 << 20, 4 << 40]
    assert [use.fits(row) for row in use] == [True, False]
    assert [row.is_least for row in use] == [False, True]  # its arguments alone are too large: it is not compiled
    assert "over 4.4 TB" in use.to_text()


def test_the_largest_size_that_fits_is_compiled_and_the_next_one_does_not_fit():
    use = ex.memory(squared, over={"n": [64, 128, 256]}, args=square, limit=10**8)
    needed = 3 * 4 * use.largest.size**2
    assert use.largest.needed == pytest.approx(needed, rel=0.01)
    assert use.largest.is_exact
    assert use.largest.needed <= 10**8 < 3 * 4 * use.largest.too_large**2
    assert f"up to n = {use.largest.size:,} fits" in use.headline


@pytest.mark.slow
def test_a_step_in_memory_is_found_though_the_curve_before_does_not_show_it(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", math.inf)

    def steps(x):
        return squared(x) if len(x) > 600 else x[0]  # one row of the largest is all that the small ones give

    use = ex.memory(steps, over={"n": [64, 128, 256]}, args=square, limit=2_000_000)
    assert use.largest.size == 600
    assert use.largest.predicted > 650
    assert use.largest.is_exact


def test_none_that_fits_is_said():
    use = ex.memory(squared, over={"n": [64, 128]}, args=square, limit=5)
    assert use.largest.size == 0
    assert "none fits" in use.headline


@pytest.mark.slow
def test_ranges_of_an_input_are_varied_from_their_smallest_to_their_largest():
    batch = ex.NamedDimension("batch", 1, 8, 64)
    use = ex.memory(lambda x, y: x @ y, ex.InputInfo((batch, 16), jnp.float32), jnp.ones((16, 4)), limit=10**6)
    assert [row.values for row in use] == [{"batch": 1}, {"batch": 8}, {"batch": 64}]
    assert [row.uses["output"] for row in use] == [4 * 4, 8 * 4 * 4, 64 * 4 * 4]
    assert use.largest.name == "batch"
    nameless = ex.memory(lambda x: x + 1, ex.InputInfo((4, (1, 2, 8)), jnp.float32))
    assert [row.values for row in nameless] == [{"arg0.shape[1]": size} for size in (1, 2, 8)]
    one_size = ex.NamedDimension("rows", 4, 4, 4)
    mixed = ex.memory(lambda x: x + 1, ex.InputInfo((one_size, (1, 2, 8)), jnp.float32))
    assert [list(row.values) for row in mixed] == [["arg0.shape[1]"]] * 3  # what can't vary is no axis


def test_kinds_are_compared_and_no_largest_is_looked_for():
    use = ex.memory(squared, over={"dtype": [jnp.float32, jnp.bfloat16]}, args=lambda dtype: jnp.ones((64, 64), dtype))
    assert use.largest is None
    assert [row.uses["argument"] for row in use] == [64 * 64 * 4, 64 * 64 * 2]


def test_a_size_that_cannot_be_compiled_costs_only_its_own_row():
    use = ex.memory(lambda x: x.reshape(8, -1), over={"n": [4, 8]}, args=lambda n: jnp.ones(n), limit=10**6)
    assert "TypeError" in use.rows[0].error
    assert not use.rows[1].error
    assert math.isnan(use.rows[0].needed)
    assert not use.fits(use.rows[0])


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"over": {}}, ex.errors.OptionError, "over is an empty dict"),
        ({"over": {"m": [1]}}, ex.errors.OptionError, "no parameter of squared"),
        ({"args": square}, ex.errors.OptionError, "over=, which is not given"),
        ({"limit": 0}, ex.errors.OptionError, "limit is 0"),
        ({"limit": 1e9}, ex.errors.OptionError, "limit is 1000000000.0"),
        ({"limit": True}, ex.errors.OptionError, "limit is True"),
    ],
)
def test_what_cannot_be_is_refused(options, kind, says):
    with pytest.raises(kind, match=says):
        ex.memory(squared, **options)


def test_what_is_no_function_is_refused():
    with pytest.raises(ex.errors.NotCallableError, match="memory takes a function"):
        ex.memory(jnp.ones(3))


# -- the curve


@given(a=st.integers(0, 10**6), b=st.integers(1, 10**6), c=st.integers(0, 10**6), size=st.integers(20, 10**5))
def test_a_parabola_is_found_through_its_points(a, b, c, size):
    def needed(n):
        return a + b * n + c * n * n

    found = fitted_size([4, 8, 16], [needed(4), needed(8), needed(16)], needed(size))
    assert found == pytest.approx(size, rel=1e-3)


@given(
    st.dictionaries(st.integers(1, 10**6), st.floats(1, 1e15), min_size=1, max_size=6),
    st.floats(1, 1e15),
    st.booleans(),
)
def test_the_next_size_to_try_is_one_that_nobody_has_tried(known, limit, halve):
    known = dict(sorted(known.items()))
    needed = sorted(known.values())
    known = dict(zip(known, needed, strict=True))  # more takes more
    size = module._next(known, limit, halve)
    assume(size is not None)
    assert size not in known
    below = max((one for one in known if known[one] <= limit), default=0)
    above = min((one for one in known if one > below), default=math.inf)
    assert below < size < above


@pytest.mark.parametrize(
    ("known", "limit", "middle"),
    [({3: 2.0, 5: 5.0, 11: 5.0, 29: 500.0}, 100.0, 20), ({8: 50.0, 13: 50.0}, 1.5, 4)],
)
def test_where_no_curve_goes_through_the_sizes_the_middle_is_tried(known, limit, middle):
    assert module._next(known, limit) == middle


@pytest.mark.parametrize(("sizes", "needed"), [([1, 2], [5, 5]), ([1, 2, 3], [5, 5, 5]), ([1], [0])])
def test_what_does_not_grow_reaches_no_limit(sizes, needed):
    assert math.isnan(fitted_size(sizes, needed, 100))


# -- arguments without their memory


def test_arguments_are_made_as_shapes_and_what_is_no_array_stays():
    x, n, words = abstract_arguments(lambda n: (jnp.ones((n, n)), n, ["a", None]), {"n": 1 << 20})
    assert (x.shape, x.dtype, n, words) == ((1 << 20, 1 << 20), jnp.float32, 1 << 20, ["a", None])
    struct = jax.ShapeDtypeStruct((3,), jnp.int8)
    assert abstract_arguments(lambda: struct, {}) is struct


def test_arguments_that_need_values_are_made():
    made = abstract_arguments(lambda n: jnp.ones(int(jnp.asarray(n) + 1)), {"n": 2})
    assert made.shape == (3,)


# -- told


def test_its_repr_names_what_it_needs_and_its_frame_has_every_figure():
    use = use_of(10, 100)
    assert use.headline in repr(use)
    assert "100 B" in repr(use)
    frame = use.to_frame()
    assert list(frame["needed"]) == [10, 100]
    assert list(frame["fits"]) == [True, True]


def test_the_headline_says_whether_larger_ones_were_tried():
    largest = Largest("n", 7, 990.0, 7.4)
    assert "no size that doesn't fit was tried" in use_of(10, 100, largest=largest).headline
    assert "9 doesn't, by XLA's buffers alone" in use_of(10, 100, largest=replace(largest, too_large=9)).headline
    assert "and no more, by XLA's buffers alone" in use_of(10, 100, largest=replace(largest, too_large=8)).headline


def test_nothing_known_is_said():
    use = MemoryUse("f", "", (), [MemoryRow((), {}, error="XlaRuntimeError: no")], "this machine", 10)
    assert "is unknown" in use.headline
    assert "is unknown" in repr(use)
