"""One function's way: what it meets, it gives what the function as it was written gives."""

import gc
import pickle
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.hotpath.compiled import at_once
from explorer.hotpath.hot import HotFunction, Options
from explorer.hotpath.swap import code_of

X = jnp.linspace(0.1, 1.0, 12).reshape(3, 4)
SCALE = jnp.float32(3)
FACTOR = 2.0


@pytest.fixture
def hot():
    """Makes functions hot, compiled from the first call on whether it is faster or not; they are restored after."""
    made = []

    def make(function, **options):
        made.append(HotFunction(function, Options(1, 0.0, at_once, is_forced=True, **options)))
        made[-1].watch()
        return made[-1]

    yield make
    for one in made:
        one.release()


def scaled(x):
    for _ in range(3):
        x = jnp.tanh(x * SCALE) + FACTOR
    return x


def raised(call):
    """The type and text of what a call raises, and the lines of its traceback below this function."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - compared with another one
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    mine = [(frame.filename, frame.lineno, frame.name) for frame in frames if frame.filename == __file__]
    return type(caught.value), str(caught.value), mine[2:], caught.value.__context__ is None


def test_an_error_of_a_compiled_call_is_the_users_own_at_the_users_line(hot):
    def f(x, y):
        z = x * 2
        return z @ y

    given = X, jnp.ones((4, 2))
    expected = raised(lambda: f(X, jnp.ones((5, 2))))
    one = hot(f)
    for _ in range(6):
        f(*given)
    assert one.calls["compiled"]
    assert raised(lambda: f(X, jnp.ones((5, 2)))) == expected
    gone = jnp.ones((4, 2))
    f(X, gone)
    gone.delete()
    del given
    error, text, lines, is_alone = raised(lambda: f(X, gone))
    assert (error, is_alone) == (RuntimeError, True)
    assert "deleted" in text
    assert lines[-1][2] == "f"
    assert one.state == "eager"
    assert not one.variants


def test_a_new_shape_never_compiles_in_the_call_and_is_compiled_once_it_comes_again(hot):
    one = hot(scaled)
    waiting = []
    for _ in range(5):
        scaled(X)
    one._options = Options(1, 0.0, waiting.append, is_forced=True)
    before = one.calls["compiled"]
    scaled(X[:2])
    scaled(X[:2])
    assert (one.calls["compiled"], len(waiting), len(one.variants)) == (before, 1, 1)
    waiting[0]()
    for _ in range(4):
        scaled(X[:2])
    assert one.calls["compiled"] == before + 1
    assert len(one.variants) == 2


def test_shapes_that_never_end_are_compiled_up_to_a_bound(hot, monkeypatch):
    monkeypatch.setattr("explorer.hotpath.hot._VARIANTS", 3)

    def scaled(x):
        return x * (SCALE / int(x.shape[0]))  # so that it can't be padded

    one = hot(scaled)
    for size in range(1, 6):
        for _ in range(2):
            assert scaled(jnp.ones(size)).shape == (size,)
    assert len(one.variants) == 3
    for turn in range(100):
        scaled(jnp.ones(6 + turn % 4))
    assert one.state == "eager"
    assert "3 kinds of arguments" in one.refusal.reason


@pytest.mark.parametrize(
    "settings",
    [
        lambda: jax.default_matmul_precision("highest"),
        lambda: jax.enable_x64(True),
        lambda: jax.numpy_rank_promotion("raise"),
        lambda: jax.debug_nans(True),
        lambda: jax.disable_jit(),
        lambda: jax.default_device(jax.devices()[0]),
    ],
)
def test_other_settings_run_eagerly_and_give_what_they_give(hot, settings):
    def f(x):
        return jnp.asarray(1.5) * x + jnp.arange(4)[None]

    with settings():
        expected = f(X)
    one = hot(f)
    for _ in range(6):
        f(X)
    compiled = one.calls["compiled"]
    assert compiled
    with settings():
        found = f(X)
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
    assert one.calls["compiled"] == compiled


def test_what_is_compiled_beside_the_program_has_the_settings_of_the_call():
    def f(x):
        return jnp.asarray(1.5) * x

    with ThreadPoolExecutor(1) as pool:
        works = []
        one = HotFunction(f, Options(1, 0.0, lambda work: works.append(pool.submit(work)), is_forced=True))
        one.watch()
        with jax.enable_x64(True):
            x = jnp.ones(3, "float64")
            for _ in range(2):
                f(x)
            works[0].result()
            for _ in range(6):
                assert f(x).dtype == "float64"
        one.release()
    assert one.calls["compiled"]
    assert one.refusal is None


def test_within_transformations_the_original_runs(hot):
    one = hot(scaled)
    for _ in range(6):
        scaled(X)
    before = dict(one.calls)
    jax.jit(scaled)(X)
    jax.grad(lambda x: scaled(x).sum())(X)
    jax.vmap(scaled)(X)
    jax.lax.scan(lambda c, x: (c, scaled(x)), 0.0, X)
    assert one.calls == before


def test_a_hot_function_inside_another_one_is_part_of_its_program(hot):
    def inner(x):
        return jnp.sin(x) * 2

    def outer(x):
        return inner(x) + inner(x + 1)

    within, around = hot(inner), hot(outer)
    expected = [outer(X) for _ in range(1)]
    for _ in range(12):
        expected.append(outer(X))
    assert around.calls["compiled"]
    inside = dict(within.calls)
    outer(X)
    assert within.calls == inside
    np.testing.assert_allclose(expected[0], expected[-1], rtol=1e-6)


def test_zeros_and_their_signs_numbers_and_truths_are_told_apart(hot):
    def f(x, a):
        return jnp.full((2,), a) + x.sum() * 0

    one = hot(f)
    for value in (0.0, -0.0, 1, True, 1.0, np.float32(2), 0.0, -0.0):
        for _ in range(6):
            given, expected = f(X, value), jnp.full((2,), value) + X.sum() * 0
            assert (given.dtype, given.tolist()) == (expected.dtype, expected.tolist())
            assert np.signbit(given).tolist() == np.signbit(expected).tolist()
    assert one.refusal is None


def test_an_object_is_an_argument_by_itself_and_by_what_is_read_from_it(hot):
    class Model:
        def __init__(self, w):
            self.w, self.power = w, 2

    def f(model, x):
        return (x @ model.w) ** model.power

    one, model = hot(f), Model(jnp.ones((4, 2)))
    for _ in range(6):
        f(model, X)
    assert one.calls["compiled"]
    model.w = model.w * 3
    assert f(model, X).tolist() == ((X @ model.w) ** 2).tolist()
    model.power = 3
    assert f(model, X).tolist() == ((X @ model.w) ** 3).tolist()
    other = Model(jnp.zeros((4, 2)))
    assert f(other, X).tolist() == [[0.0, 0.0]] * 3


def test_defaults_that_change_are_what_is_used(hot):
    def f(x, scale=2.0):
        return x * scale + 1

    hot(f)
    for _ in range(6):
        f(X)
    f.__defaults__ = (5.0,)
    assert f(X).tolist() == (X * 5.0 + 1).tolist()


def test_a_fault_in_looking_at_what_changed_reaches_no_call(hot, monkeypatch):
    made = hot(scaled)
    while made.state != "compiled":
        scaled(X)
    before = np.asarray(scaled(X))

    def fails(self):
        raise RuntimeError("ours")

    monkeypatch.setattr("explorer.hotpath.guards.Guards.changed", fails)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    result = scaled(X)
    assert made.state == "eager"
    assert "ours" in made.refusal.reason
    np.testing.assert_array_equal(result, scaled(X))
    assert not np.allclose(result, before)


def test_a_copy_that_gets_slower_is_judged_again_and_given_up(monkeypatch):
    one = HotFunction(scaled, Options(1, 0.0, at_once))
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)
    one.watch()
    for _ in range(6):
        scaled(X)
    (variant,) = one.variants.values()
    assert variant.is_trusted
    run = variant.run

    def slow(read, arrays):
        time.sleep(0.005)
        return run(read, arrays)

    variant.run = slow
    monkeypatch.setattr("explorer.hotpath.hot._CHECKED", 4)
    monkeypatch.setattr("explorer.hotpath.hot._TIMED", 1)
    for _ in range(100):
        scaled(X)
    assert one.state == "eager"
    assert "by now" in one.refusal.reason


def interrupted_at(step, function, calls):
    """Raise KeyboardInterrupt at one line that runs, of Explorer's or the user's; whether there were so many lines."""
    count, thread = 0, threading.get_ident()

    def tracer(frame, event, argument):
        nonlocal count
        file = frame.f_code.co_filename
        if ("explorer/hotpath" not in file and file != __file__) or threading.get_ident() != thread:
            return None
        if event == "line" and frame.f_code.co_name not in ("interrupted_at", "tracer"):
            count += 1
            if count == step:
                raise KeyboardInterrupt
        return tracer

    others = sys.gettrace()  # of coverage, which would see nothing of all tests after this one
    sys.settrace(tracer)
    try:
        for _ in range(calls):
            function(X)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(others)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("start", range(4))
def test_an_interrupt_at_any_line_leaves_the_function_as_it_was(start):
    def f(x):
        return jnp.sin(x) * SCALE + 1

    own, expected = f.__code__, f(X).tolist()
    step = 1 + start * 17
    while True:
        one = HotFunction(f, Options(1, 0.0, at_once, is_forced=True))
        one.watch()
        was_interrupted = interrupted_at(step, f, 6)
        for _ in range(6):
            np.testing.assert_allclose(f(X).tolist(), expected, rtol=1e-6)
        one.release()
        assert f.__code__ is own
        if not was_interrupted:
            break
        step += 67 if step > 100 else 17  # each line once in a while: all of them take minutes
    assert step > 300


@pytest.mark.slow
def test_eight_threads_call_while_it_is_swapped_in_and_out():
    expected = scaled(X)
    one = HotFunction(scaled, Options(1, 0.0, at_once, is_forced=True))
    wrong, over, calls = [], threading.Event(), [0] * 8

    def call(at):
        while not over.is_set():
            try:
                if not np.allclose(scaled(X), expected, rtol=1e-5):
                    wrong.append("result")
            except Exception as error:
                wrong.append(error)
            calls[at] += 1

    threads = [threading.Thread(target=call, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    ends = time.monotonic() + 1.5
    while time.monotonic() < ends:
        one.watch()
        time.sleep(0.02)
        one.release()
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert one.state == "compiled"
    assert 0 < sum(one.calls.values()) <= sum(calls)
    assert code_of(scaled) is scaled.__code__


def test_nothing_is_kept_alive_but_what_guards_hold(hot):
    def alive():
        gc.collect()
        return len([array for array in jax.live_arrays() if array.shape == X.shape])

    one, before = hot(scaled), alive()
    for _ in range(6):
        scaled(X + 0)
    assert alive() - before <= 3
    assert pickle.dumps(scaled)
    assert one.calls["compiled"]


def test_a_function_that_is_timed_as_it_is_written_runs_so(hot):
    one = hot(scaled)
    for _ in range(8):
        scaled(X)
    compiled, eager = one.calls["compiled"], one.calls["eager"]
    timing = ex.time(scaled, X, seconds=0.05)
    assert timing.eager.count >= 1
    assert (one.calls["compiled"], one.calls["eager"]) == (compiled, eager)
    scaled(X)
    assert one.calls["compiled"] == compiled + 1 > 1
