"""`ex.auto_compile`: on, off, one inside another, and what it shows."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer._jax import settings
from explorer._jax.settings import measured_options
from explorer.hotpath.auto import active

X = jnp.linspace(0.1, 1.0, 32 * 32).reshape(32, 32)


@pytest.fixture(autouse=True)
def _worth_it_however_busy_the_machine_is(monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)


def made():
    """A function of its own for each test: chain(x), which only computes."""

    def chain(x):
        for _ in range(8):
            x = jnp.tanh(x @ x) * 2 + 1
        return x

    return chain


def until(hot, function, state, calls=4000):
    """Call a function until it is in a state."""
    for _ in range(calls):
        function(X)
        if any(row.state == state for row in hot.functions):
            return
    pytest.fail(f"after {calls} calls: {hot}")


def test_a_function_that_is_called_often_runs_compiled_and_is_what_it_was_after():
    chain = made()
    code, expected = chain.__code__, np.asarray(chain(X))
    with ex.auto_compile(background=False) as hot:
        until(hot, chain, "compiled")
        np.testing.assert_allclose(chain(X), expected, rtol=1e-5)
        assert hot.on
        assert active() is hot
    assert chain.__code__ is code
    assert not hot.on
    assert active() is None
    (row,) = hot.functions
    assert row.name.endswith("chain")
    assert row.compiled_calls
    assert [event.kind for event in hot.events][:2] == ["detected", "trigger"]
    assert repr(hot).startswith("HotPaths(`made.<locals>.chain` runs compiled")
    assert list(hot.to_frame()["name"]) == [row.name]


def test_beside_the_program_it_goes_on_eagerly_until_the_copy_is_there():
    chain = made()
    with ex.auto_compile() as hot:
        until(hot, chain, "compiled")
    (row,) = hot.functions
    # No call waited for the compile.
    assert row.is_background
    assert row.compile_seconds
    assert max(row.times.seconds[1:]) < row.compile_seconds + 0.5


def test_what_was_learned_serves_again():
    chain = made()
    hot = ex.auto_compile(background=False).start()
    until(hot, chain, "compiled")
    hot.stop()
    hot.stop()
    before = hot.functions[0].compiled_calls
    chain(X)
    assert hot.functions[0].compiled_calls == before
    with hot:
        chain(X)
        assert hot.functions[0].compiled_calls == before + 1


def test_one_inside_another_takes_over_until_it_is_off():
    chain = made()
    with ex.auto_compile(background=False) as outer:
        until(outer, chain, "compiled")
        before = outer.functions[0].calls
        with ex.auto_compile(background=False) as inner:
            until(inner, chain, "compiled")
            assert outer.functions[0].calls == before
            assert active() is inner
        assert active() is outer
        chain(X)
        assert outer.functions[0].calls == before + 1


def test_the_outer_one_may_end_first():
    chain = made()
    code = chain.__code__
    outer, inner = ex.auto_compile(background=False).start(), ex.auto_compile(background=False).start()
    outer.stop()
    until(inner, chain, "compiled")
    inner.stop()
    assert active() is None
    assert chain.__code__ is code


def test_the_same_one_twice_is_refused():
    with ex.auto_compile() as hot, pytest.raises(ex.errors.HotPathsError, match="on already"):
        hot.start()
    assert active() is None


def test_threads_turn_theirs_on_and_off_and_nothing_stays_on():
    def work():
        for _ in range(5):
            with ex.auto_compile():
                chain(X)

    chain = made()
    code = chain.__code__
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert active() is None
    assert chain.__code__ is code


def test_an_error_of_the_block_is_the_users_and_all_is_restored():
    chain = made()
    code = chain.__code__

    def block():
        with ex.auto_compile(background=False) as hot:
            until(hot, chain, "compiled")
            raise KeyError

    with pytest.raises(KeyError):
        block()
    assert chain.__code__ is code


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "threshold of auto_compile\\(\\) is 0; allowed is a number of calls from 1 on"),
        ({"threshold": True}, "threshold of auto_compile\\(\\) is True"),
        ({"threshold": 2.5}, "threshold of auto_compile\\(\\) is 2.5"),
        ({"seconds": -1}, "seconds of auto_compile\\(\\) is -1"),
        ({"seconds": float("nan")}, "seconds of auto_compile\\(\\) is nan"),
        ({"mode": "max-autotun"}, "'reduce-overhead', 'max-autotune'. Did you mean `max-autotune`"),
        ({"mode": None}, "mode of auto_compile\\(\\) is None"),
        ({"background": 1}, "background of auto_compile\\(\\) is 1"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ex.errors.OptionError, match=message):
        ex.auto_compile(**options)


def test_reduced_overhead_compiles_after_three_calls():
    report = ex.auto_compile(mode="reduce-overhead").report()
    assert (report.threshold, report.mode) == (3, "reduce-overhead")


def test_autotuning_tries_several_sets_of_options_and_gives_the_same(monkeypatch):
    def double(x):
        return jnp.sin(x) * 2

    monkeypatch.setitem(settings.TRIED, jax.default_backend(), ({"xla_backend_optimization_level": 1},))
    counted = []
    monkeypatch.setattr("explorer.hotpath.auto.measured_options", lambda: counted.append(1) or measured_options())
    hot = ex.auto_compile(mode="max-autotune", background=False, threshold=1, seconds=0)
    assert counted == []  # to ask for them starts the backend
    with hot:
        until(hot, double, "compiled")
        np.testing.assert_allclose(double(X), np.sin(X) * 2, rtol=1e-5)
    assert counted == [1]


def test_a_function_that_each_call_defines_anew_says_so_with_its_cure():
    with ex.auto_compile(background=False, seconds=0.0, threshold=10**6) as hot:
        hot.nominate(made())  # as it is seen often by its code, and dropped
        row = hot.report()["made.<locals>.chain"]
    assert (row.state, row.reason) == ("eager", "`made` creates it again on every call")
    assert "  eager" in repr(hot)
    assert " `made` creates it again on every call (test_auto.py, line " in repr(hot)
    assert row.cure == "define it once, outside of `made`, and pass what it reads from there"
    assert (row.reason_file, row.reason_line) == (__file__, made.__code__.co_firstlineno + 3)


def test_a_function_that_is_held_somewhere_isnt_taken_for_one_that_is_defined_anew():
    chain = made()
    with ex.auto_compile(background=False, seconds=0.0, threshold=10**6) as hot:
        hot.nominate(chain)
        assert not hot.functions
        chain(X)
        chain(X)
        assert [row.state for row in hot.functions] == ["counting"]
