"""Whose a keyword is: the function's, where it has a parameter of that name, and else the verb's."""

import functools
import inspect
import re
import warnings

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.call import Call, takes_call
from explorer.model.results.roofline import Peaks

X = jnp.ones(8)
BRIEF = 0.01
SPELLING = "explorer.verb(explorer.Call(f, x, seconds=…), seconds=…)"
VERBS = ("explore", "lint", "time", "profile", "roofline", "memory", "compare", "sweep", "what_if")


@takes_call
def verb(function, /, *args, seconds=1.0, rules=None, **kwargs):
    """A verb that returns what it understood."""
    call = Call.of(function, args, kwargs)
    return call.args, call.kwargs, {"seconds": seconds, "rules": rules}


@takes_call
def needy(function, /, *args, over, **kwargs):
    return Call.of(function, args, kwargs).kwargs, over


def plain(x):
    return x * 2


def decay(x, seconds=1.0):
    return x * jnp.exp(-seconds)


def any_names(x, **kwargs):
    return x * kwargs.get("seconds", 1.0)


class Model:
    def step(self, x, seconds):
        return x * seconds

    @functools.partial(jax.jit, static_argnums=0)
    def jitted(self, x, seconds):
        return x * seconds

    def __call__(self, x, *, seconds):
        return x * seconds


def test_a_keyword_that_the_function_lacks_is_the_verbs():
    assert verb(plain, X, seconds=3)[1:] == ({}, {"seconds": 3, "rules": None})


@pytest.mark.parametrize(
    "function",
    [
        decay,
        jax.jit(decay),
        jax.jit(decay, static_argnames="seconds"),
        Model().step,
        Model().jitted,
        Model(),
        functools.partial(decay),
        functools.wraps(decay)(lambda *args, **kwargs: decay(*args, **kwargs)),
    ],
    ids=["function", "jit", "static", "method", "jitted method", "callable", "partial", "decorated"],
)
def test_a_keyword_that_both_have_goes_to_the_function_and_a_warning_shows_the_other_spelling(function):
    with pytest.warns(ex.errors.AmbiguousOptionWarning, match=re.escape(SPELLING)):
        args, kwargs, options = verb(function, X, seconds=3.0, rules="all")
    assert (args, kwargs, options) == ((X,), {"seconds": 3.0}, {"seconds": 1.0, "rules": "all"})


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (decay, (X, 3.0)),
        (functools.partial(decay, seconds=3.0), (X,)),
        (jax.jit(functools.partial(decay, seconds=3.0)), (X,)),
        (Model().step, (X, 3.0)),
        (any_names, (X,)),
        (max, (X,)),
    ],
    ids=["by position", "bound", "jit of bound", "method", "**kwargs", "builtin"],
)
def test_a_parameter_that_has_its_value_or_no_name_leaves_the_keyword_to_the_verb(function, args):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert verb(function, *args, seconds=2.0) == (args, {}, {"seconds": 2.0, "rules": None})


def test_a_call_is_never_ambiguous():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert verb(Call(decay, X, seconds=3), seconds=1) == ((X,), {"seconds": 3}, {"seconds": 1, "rules": None})
        assert verb(Call(any_names, X, rules=3))[1:] == ({"rules": 3}, {"seconds": 1.0, "rules": None})
    assert repr(Call(decay, X, seconds=3)) == "Call(decay, 2 arguments)"


def test_arguments_beside_a_call_are_refused():
    with pytest.raises(ex.errors.ArgumentsError, match=r"verb got a Call.*further arguments: 1 by position, y"):
        verb(Call(plain, X), X, y=2)


def test_an_option_that_the_verb_can_not_do_without_is_an_error_that_names_the_other_spelling():
    def f(x, over):
        return x + over

    with pytest.raises(ex.errors.OptionError, match=r"explorer\.needy\(explorer\.Call\(f, x, over=…\), over=…\)"):
        needy(f, X, over=2)
    assert needy(Call(f, X, over=2), over=[1]) == ({"over": 2}, [1])


def test_the_warning_names_the_users_line():
    with pytest.warns(ex.errors.AmbiguousOptionWarning) as caught:
        verb(decay, X, seconds=3)
    assert caught[0].filename == __file__


def test_a_verb_without_arguments_is_refused_by_its_own_name():
    with pytest.raises(TypeError, match=r"^verb\(\) missing"):
        verb()


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_keeps_its_signature_and_takes_a_call(name):
    function = getattr(ex, name)
    parameters = list(inspect.signature(function).parameters.values())
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY
    assert parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
    with pytest.raises(ex.errors.ArgumentsError, match="got a Call"):
        function(Call(plain, X), X)


def test_explore_has_no_options_to_swallow_an_argument():
    assert "seconds" in ex.explore(jax.jit(decay), X, seconds=3.0).signature
    assert "rules" in ex.explore(lambda x, rules: x * rules, X, rules=2.0).signature
    assert ex.explore(Call(decay, X, seconds=3.0)).function == "decay"


def test_lint_gives_the_function_its_argument():
    def f(x, rules):
        return x * rules

    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        assert not ex.lint(f, X, rules=2.0).failure
    assert not ex.lint(Call(f, X, rules=2.0), rules="impure-print").failure


@pytest.mark.slow
def test_time_gives_the_function_its_argument():
    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        timing = ex.time(decay, X, seconds=3.0, eager=False, precision=0.9)
    assert timing.signature == "(x: f32[8], seconds: 3.0)"
    assert ex.time(Call(decay, X, seconds=3.0), seconds=BRIEF).signature == timing.signature


def test_profile_gives_the_function_its_argument():
    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        profile = ex.profile(jax.jit(decay), X, seconds=3.0, runs=3)
    assert profile.signature == "(x: f32[8], seconds: 3.0)"
    assert ex.profile(Call(jax.jit(decay), X, seconds=3.0), runs=3).signature == profile.signature


@pytest.mark.slow
def test_roofline_gives_the_function_its_argument():
    def f(x, profile):
        return x @ x * profile

    machine = Peaks("a machine", bandwidth=1e9, matmul={"f32": 1e9}, fma={"f32": 1e9})
    x = jnp.ones((64, 64))
    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        assert ex.roofline(jax.jit(f), x, profile=2.0, peaks=machine).points
    # What profile() has for an option is none of roofline's.
    assert "seconds: 3.0" in ex.roofline(jax.jit(decay), X, seconds=3.0, peaks=machine).signature


def test_memory_gives_the_function_its_argument():
    def f(x, limit):
        return x * limit

    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        use = ex.memory(f, X, limit=2.0)
    assert "limit" in use.signature
    assert ex.memory(Call(f, X, limit=2.0), limit=10**9).limit == 10**9


@pytest.mark.slow
def test_compare_gives_the_functions_their_argument():
    candidates = {"a": decay, "b": jax.jit(decay)}
    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        compared = ex.compare(candidates, X, seconds=0.05, precision=0.9)
    assert compared.signature == "(x: f32[8], seconds: 0.05)"
    own = {"a": Call(decay, X, seconds=2.0), "b": Call(jax.jit(decay), X, seconds=2.0)}
    assert ex.compare(own, seconds=BRIEF).rounds >= 3


def test_sweep_gives_the_function_its_argument():
    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        swept = ex.sweep(decay, seconds=2.0, over={"x": [X]}, time=False)
    assert not swept.failed
    swept = ex.sweep(Call(decay, seconds=2.0), over={"x": [X]}, seconds=BRIEF)
    assert swept.rows[0].seconds > 0


def test_what_if_gives_the_function_its_argument():
    def f(x, grad):
        return (x * grad).sum()

    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        tried = ex.what_if(f, X, grad=2.0, donate=0, time=False)
    assert "grad" in tried.plain.capture.signature
    assert not ex.what_if(Call(f, X, grad=2.0), grad=True, remat=True, time=False).plain.error
