"""How long a function takes: eager, at its first call, and once it is compiled."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.measure.steady import steady

X = jnp.arange(8.0)
QUICK = {"seconds": 0.02, "progress": False}


def wavy(x):
    return jnp.tanh(x) * 2 + jnp.sin(x)


# What is measured ---------------------------------------------------------------------------------------------------


def test_a_plain_function_has_eager_first_and_steady_times_and_the_steps_of_its_first_call():
    timing = ex.time(wavy, X, **QUICK)
    assert timing.function == "wavy"
    assert timing.signature == "(x: f32[8])"
    assert list(timing.stages) == ["trace", "lower", "compile", "run"]
    assert timing.first_call.median == pytest.approx(sum(timing.stages.values()))
    assert timing.first_call.median > timing.steady.median > 0
    assert timing.eager.median > 0
    assert timing.warm_up[0] == timing.first_call.median
    assert set(timing.environment) == {"jax", "backend", "device", "cores"}


def test_the_first_call_is_compiled_from_scratch_however_often_the_function_ran():
    traced = []

    @jax.jit
    def counted(x):
        traced.append(1)
        return x + 1

    counted(X)
    for _ in range(2):
        before = len(traced)
        timing = ex.time(counted, X, eager=False, **QUICK)
        assert len(traced) == before + 1
        assert min(timing.stages.values()) > 0


def test_what_the_user_compiled_is_still_there_afterwards():
    traced = []

    @jax.jit
    def counted(x):
        traced.append(1)
        return x + 1

    counted(X)
    ex.time(counted, X, eager=False, **QUICK)
    before = len(traced)
    counted(X)
    assert len(traced) == before


def test_eager_runs_the_python_of_every_call_and_compiled_none_of_it():
    ran = []

    def counted(x):
        ran.append(isinstance(x, jax.core.Tracer))
        return x + 1

    timing = ex.time(counted, X, **QUICK)
    assert ran.count(True) in (1, 2), "once more where calls are short"
    assert ran.count(False) > timing.eager.count * timing.eager.calls
    ran.clear()
    assert ex.time(counted, X, eager=False, **QUICK).eager is None
    assert set(ran) == {True}


def test_of_a_jitted_function_eager_is_the_one_that_it_wraps():
    ran = []

    @jax.jit
    def counted(x):
        ran.append(isinstance(x, jax.core.Tracer))
        return x + 1

    assert ex.time(counted, X, **QUICK).eager.count > 0
    assert ran.count(False) > 0


def test_methods_partials_and_static_arguments_are_measured():
    class Model:
        scale = 3.0

        @partial(jax.jit, static_argnums=0)
        def jitted(self, x):
            return x * self.scale

        def plain(self, x):
            return x * self.scale

        def __call__(self, x):
            return x / self.scale

    @partial(jax.jit, static_argnames="times")
    def repeated(x, *, times):
        for _ in range(times):
            x = jnp.sin(x)
        return x

    model = Model()
    assert ex.time(model.plain, X, **QUICK).function == "plain"
    assert ex.time(model.jitted, X, **QUICK).eager.median > 0
    assert ex.time(model, X, **QUICK).function == "Model"
    assert ex.time(repeated, X, times=3, **QUICK).signature == "(x: f32[8], times: 3)"
    assert ex.time(partial(repeated, times=2), X, **QUICK).function == "repeated"


def test_an_executable_has_no_eager_calls_and_says_that_it_was_compiled_before():
    executable = ex.compile(wavy, args=[ex.InputInfo((8,), jnp.float32)])
    compiled = jax.jit(wavy).lower(X).compile()
    for one in (executable, compiled):
        timing = ex.time(one, X, **QUICK)
        assert timing.eager is None
        assert timing.speedup is None
        assert timing.break_even is None
        assert list(timing.stages) == ["run"]
        assert any("compiled before" in note for note in timing.notes)


def test_functions_of_other_libraries_are_measured():
    import equinox as eqx
    from flax import nnx

    for function in (eqx.filter_jit(wavy), nnx.jit(wavy), ex.jit(wavy)):
        timing = ex.time(function, X, **QUICK)
        assert timing.steady.median < timing.first_call.median
        assert timing.eager.median > 0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: {"a": x + 1, "b": (x * 2, [x - 1])},
        lambda x: (x + 1, None),
        lambda x: 3,
        lambda x: None,
        lambda x: (),
    ],
)
def test_whatever_a_function_returns_is_waited_for(function):
    timing = ex.time(function, X, **QUICK)
    assert timing.steady.count >= 3
    assert timing.eager.count >= 1


def test_a_function_that_only_runs_compiled_is_measured_without_eager():
    def needs_a_trace(x):
        if not isinstance(x, jax.core.Tracer):
            raise RuntimeError("not like this")
        return x + 1

    timing = ex.time(jax.jit(needs_a_trace), X, **QUICK)
    assert timing.eager is None
    assert "no eager calls: it only runs compiled (RuntimeError: not like this)" in timing.notes


# The border ---------------------------------------------------------------------------------------------------------


def test_what_can_t_be_called_is_refused():
    with pytest.raises(
        ex.errors.NotCallableError,
        match=r"time takes a function and its arguments; it got ArrayImpl.*\n?.*time\(f, x\)",
    ):
        ex.time(wavy(X), X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": -1}, "seconds is -1; allowed is a number above 0"),
        ({"seconds": 0}, "seconds is 0"),
        ({"seconds": float("inf")}, "seconds is inf"),
        ({"seconds": "1"}, "seconds is '1'"),
        ({"confidence": 95}, "confidence is 95; allowed is a number between 0 and 1"),
        ({"precision": 0}, "precision is 0"),
        ({"progress": "yes"}, "progress is 'yes'"),
    ],
)
def test_an_option_out_of_range_is_refused_before_anything_runs(options, message):
    ran = []
    with pytest.raises(ex.errors.OptionError, match=message):
        ex.time(lambda x: ran.append(1), X, **options)
    assert not ran


def test_arguments_that_don_t_fit_are_refused():
    with pytest.raises(ex.errors.ArgumentsError, match="wavy"):
        ex.time(wavy, X, X, **QUICK)
    with pytest.raises(ex.errors.ArgumentsError, match="repeats"):
        ex.time(wavy, X, repeats=3)


def test_a_function_that_can_t_be_traced_says_so_as_explore_does():
    with pytest.raises(ex.errors.TracedValueError, match="timed"):
        ex.time(lambda x: x if x[0] > 0 else -x, X, **QUICK)


def test_an_argument_with_the_name_of_an_option_goes_by_position():
    assert ex.time(lambda seconds: seconds * 2, X, **QUICK).signature == "(seconds: f32[8])"


# Progress -----------------------------------------------------------------------------------------------------------


def test_a_short_run_and_one_that_nobody_looks_on_show_no_bar(capsys):
    ex.time(wavy, X, seconds=0.05)
    steady(lambda: None, seconds=0.02)
    assert capsys.readouterr() == ("", "")


def test_progress_is_told_up_to_the_end():
    told = []
    steady(lambda: None, seconds=0.02, progress=told.append)
    assert told[-1] == 1.0
    assert told == sorted(told)
