"""jit(): compiled at the first call, with captured state; what it does equals plain Python."""

import gc
import inspect
import os
import subprocess
import sys
import threading
import weakref
from collections import deque, namedtuple
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.jitted import (
    Jitted,
    LeakedStateError,
    RecompilationWarning,
    StateError,
    UnwrittenStateWarning,
    disable_compile,
    enable_compile,
    jit,
    registry,
)

X = jnp.arange(3.0)


def tracers_in(*trees):
    return [leaf for leaf in jax.tree.leaves(trees) if isinstance(leaf, jax.core.Tracer)]


def counted(function):
    """A function and the list that each run of its Python makes longer."""
    runs = []

    def run(*args, **kwargs):
        runs.append(1)
        return function(*args, **kwargs)

    return run, runs


# The seed's examples -------------------------------------------------------------------------------------------------


def test_the_first_example_gives_the_same_compiled():
    def fun(x, y):
        return jnp.exp(-x) + y

    np.testing.assert_allclose(jit(fun)(jnp.array(1.0), jnp.array(2.0)), fun(1.0, 2.0), rtol=1e-6)


def test_the_same_function_jitted_again_is_compiled_once():
    run, runs = counted(lambda x, y: jnp.exp(-x) + y)
    jit(run)(X, X)
    jit(run)(X, X)
    assert len(runs) == 1
    assert len(jit(run).specializations) == 1


def test_another_shape_or_dtype_or_number_of_inputs_is_traced_anew_and_says_why():
    step = jit(lambda *xs: sum(xs))
    step(X)
    step(jnp.arange(4.0))
    step(X.astype("int32"))
    step(X, X)
    assert [s.reason for s in step.specializations] == [
        "first call",
        "xs[0]: f32[3] → f32[4]",
        "xs[0]: f32[4] → i32[3]",
        "xs[1]: not there → f32[3]",
    ]
    assert [s.shapes for s in step.specializations][1:3] == [{"xs[0]": (4,)}, {"xs[0]": (3,)}]
    assert all(s.seconds > 0 for s in step.specializations)


def test_appended_state_is_an_output():
    state = []

    @partial(jit, outputs=state)
    def fun(x, y):
        z = x + y
        state.append(z)
        return jnp.exp(z), state

    _, returned = fun(jnp.array(1.0), jnp.array(2.0))
    assert [float(z) for z in state] == [3.0]
    assert [float(z) for z in returned] == [3.0]
    fun(jnp.array(2.0), jnp.array(3.0))
    assert [float(z) for z in state] == [3.0, 5.0]


def test_a_closure_read_is_a_constant_and_an_input_is_not():
    state = [jnp.array(1.0)]

    def fun(x):
        return x + state[0]

    constant, read = jit(fun), jit(fun, inputs=state)
    assert (float(constant(1.0)), float(read(1.0))) == (2.0, 2.0)
    state[0] = jnp.array(5.0)
    assert (float(constant(1.0)), float(read(1.0))) == (2.0, 6.0)


@pytest.mark.slow
def test_a_training_step_with_momentum_equals_the_uncompiled_one():
    def made():
        key = jax.random.key(0)
        x = jax.random.uniform(key, (4, 10))
        weights = {"w": jnp.zeros(10), "b": jnp.zeros(())}
        return x, [weights, jax.tree.map(jnp.zeros_like, weights)]

    def step_on(state):
        def loss_of(weights, x, y):
            logits = x @ weights["w"] + weights["b"]
            return jnp.mean(jnp.logaddexp(0, logits) - y * logits)

        def step(x, y):
            weights, momentum = state
            loss, gradient = jax.value_and_grad(loss_of)(weights, x, y)
            for name in weights:
                momentum[name] = 0.8 * momentum[name] + gradient[name]
                weights[name] = weights[name] - 0.1 * momentum[name]
            return loss

        return step

    y = jnp.array([0.0, 1.0, 0.0, 1.0])
    (x, plain), (_, compiled) = made(), made()
    by_hand, step = step_on(plain), jit(step_on(compiled), inputs=compiled, outputs=compiled)
    weights = compiled[0]
    losses = [(float(by_hand(x, y)), float(step(x, y))) for _ in range(10)]
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-5)
    assert losses[-1][1] < losses[0][1]
    assert compiled[0] is weights
    assert len(step.specializations) == 1


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_a_captured_random_key_advances_at_each_call(make):
    state = {"key": make(0)}

    @jit(inputs=state, outputs=state)
    def dropout(x):
        state["key"], key = jax.random.split(state["key"])
        return x * jax.random.bernoulli(key, 0.5, x.shape)

    masks = [np.asarray(dropout(jnp.ones(64))) for _ in range(3)]
    assert not np.array_equal(masks[0], masks[1])
    assert not np.array_equal(masks[1], masks[2])
    assert len(dropout.specializations) == 1


def test_transformations_of_a_compiled_function_and_the_reverse():
    sine = jit(jnp.sin)
    np.testing.assert_allclose(jax.grad(sine)(1.0), np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jit(jax.grad(jnp.sin))(1.0), np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(sine)(X), jnp.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jit(jax.vmap(jnp.sin))(X), jnp.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jit(lambda x: sine(sine(x)))(X), jnp.sin(jnp.sin(X)), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(sine)(X), jnp.sin(X), rtol=1e-6)


def test_a_lambda_jitted_anew_in_a_loop_is_noticed_with_its_line():
    def loop():
        for _ in range(12):
            jit(lambda x: x + 1)(X)

    with pytest.warns(RecompilationWarning, match=r"9 functions from test_jit.py, line \d+ \(<lambda>\)") as told:
        loop()
    assert len(told) == 1
    assert told[0].filename == __file__


# State ---------------------------------------------------------------------------------------------------------------


class Slotted:
    __slots__ = ("_hidden", "weight")

    def __init__(self, weight):
        self.weight = weight


@dataclass
class Data:
    weight: object


Pair = namedtuple("Pair", "weight other")

MADE = {
    "list": (lambda: [X], lambda s: s[0], lambda s, v: s.__setitem__(0, v)),
    "dict": (lambda: {"a": X}, lambda s: s["a"], lambda s, v: s.__setitem__("a", v)),
    "deque": (lambda: deque([X]), lambda s: s[0], lambda s, v: s.__setitem__(0, v)),
    "object": (lambda: SimpleNamespace(weight=X), lambda s: s.weight, lambda s, v: setattr(s, "weight", v)),
    "dataclass": (lambda: Data(X), lambda s: s.weight, lambda s, v: setattr(s, "weight", v)),
    "slots": (lambda: Slotted(X), lambda s: s.weight, lambda s, v: setattr(s, "weight", v)),
    "nested": (lambda: {"a": [Data((X, 1))]}, lambda s: s["a"][0].weight[0], lambda s, v: _set_nested(s, v)),
    "namedtuple": (lambda: [Pair(X, X)], lambda s: s[0].weight, lambda s, v: _set_pair(s, v)),
    "tuple of holders": (lambda: ([X], {}), lambda s: s[0][0], lambda s, v: s[0].__setitem__(0, v)),
}


def _set_nested(state, value):
    state["a"][0].weight = (value, 1)


def _set_pair(state, value):
    state[0] = state[0]._replace(weight=value)


@pytest.mark.parametrize("kind", MADE)
def test_any_container_is_read_and_written_in_place(kind):
    make, get, put = MADE[kind]
    state = make()

    @jit(inputs=state, outputs=state)
    def step(x):
        put(state, get(state) + x)
        return get(state) * 2

    for i in (1, 2, 3):
        np.testing.assert_allclose(step(1.0), (X + i) * 2)
        np.testing.assert_allclose(get(state), X + i)
    assert type(get(state)) is type(X)
    assert len(step.specializations) == 1
    put(state, X)
    np.testing.assert_allclose(step(1.0), (X + 1) * 2)


def test_nested_containers_keep_their_identity():
    inner, item = [X], {"w": X}
    state = {"inner": inner, "item": item}

    @jit(inputs=state, outputs=state)
    def step():
        state["inner"][0] = state["inner"][0] + 1
        state["item"]["w"] = state["item"]["w"] + 2

    step()
    assert state["inner"] is inner
    assert state["item"] is item
    np.testing.assert_allclose(inner[0], X + 1)
    np.testing.assert_allclose(item["w"], X + 2)


def test_a_container_that_the_function_replaces_is_another_and_the_old_one_is_left():
    old = {"w": X}
    state = {"params": old}

    @jit(inputs=state, outputs=state)
    def step():
        state["params"] = {"w": state["params"]["w"] + 1, "a": X}

    for i in (1, 2):
        step()
        np.testing.assert_allclose(state["params"]["w"], X + i)
        np.testing.assert_allclose(old["w"], X)
    assert set(state["params"]) == {"w", "a"}


@pytest.mark.parametrize("nested", [False, True])
def test_the_order_of_keys_says_nothing(nested):
    inner = {"w": X, "b": X * 2}
    state = {"p": inner} if nested else inner

    @jit(inputs=state, outputs=state)
    def step():
        state.update(jax.tree.map(lambda x: x + 1, dict(state)))

    for i in (1, 2, 3):
        step()
        now = state["p"] if nested else state
        np.testing.assert_allclose(now["w"], X + i)
        np.testing.assert_allclose(now["b"], X * 2 + i)
    assert len(step.specializations) == 1


def test_containers_that_change_places_keep_their_identity():
    a, b = [X], [X + 1]
    state = [a, b]

    @jit(inputs=state, outputs=state)
    def swap():
        state.reverse()
        state[0].append(X)

    swap()
    assert state[0] is b
    assert state[1] is a
    assert (len(a), len(b)) == (1, 2)


def test_keys_and_attributes_come_and_go():
    state = {"gone": X, "kept": X}

    @jit(inputs=state, outputs=state)
    def step():
        if "gone" in state:
            state["new"] = state.pop("gone") * 2

    step()
    assert list(state) == ["kept", "new"]
    step()
    np.testing.assert_allclose(state["new"], X * 2)


def test_shared_parts_and_cycles_are_one():
    shared = [X]
    state = {"one": shared, "other": shared}
    state["self"] = state

    @jit(inputs=state, outputs=state)
    def step():
        state["self"]["one"][0] = state["other"][0] + 1
        return state["other"][0]

    np.testing.assert_allclose(step(), X + 1)
    np.testing.assert_allclose(shared[0], X + 1)
    state["other"] = [X + 10]
    np.testing.assert_allclose(step(), X + 10)
    np.testing.assert_allclose(shared[0], X + 11)


def test_an_unchanged_array_stays_the_same_object():
    state = [X, X + 1]

    @jit(inputs=state, outputs=state)
    def step():
        state[1] = state[1] + state[0]

    step()
    assert state[0] is X


def test_numpy_arrays_and_jax_arrays_share_a_trace():
    state = {"a": np.arange(3, dtype="float32")}
    step = jit(lambda: state.update(a=state["a"] + 1), inputs=state, outputs=state)
    step()
    step()
    np.testing.assert_allclose(state["a"], X + 2)
    assert len(step.specializations) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [(True, 1), (1, 1.0), ([[1], 2], [[1, 2]]), (0.0, -0.0), ("a", "b"), ((), []), ({1}, {2})],
)
def test_a_constant_in_the_state_that_changes_is_traced_anew(one, other):
    state = {"constant": one, "x": X}
    run, runs = counted(lambda: (repr(state["constant"]), state["x"])[1])
    step = jit(run, inputs=state)
    for value in (one, other, one, other):
        state["constant"] = value
        step()
    assert len(runs) == 2


def test_a_nan_constant_is_not_traced_anew():
    state = [float("nan"), X]
    run, runs = counted(lambda: state[1])
    step = jit(run, inputs=state)
    step()
    state[0] = float("nan")
    step()
    assert len(runs) == 1


def test_a_constant_that_the_function_sets_is_set_by_later_calls_too():
    state = {"phase": "start", "x": X}

    @jit(inputs=state, outputs=state)
    def step():
        state["phase"] = "done"
        return state["x"]

    for _ in range(3):
        state["phase"] = "start"
        step()
        assert state["phase"] == "done"


def test_a_change_of_what_is_inputs_only_is_dropped_with_a_warning():
    state = {"x": X}

    def step():
        state["x"] = state["x"] + 1

    with pytest.warns(UnwrittenStateWarning, match="step changed state, which is captured as `inputs` only"):
        jit(step, inputs=state)()
    assert state["x"] is X


@pytest.mark.parametrize("root", [(X, X), X, np.ones(3), (), 3, "text", Pair(X, X), len])
@pytest.mark.parametrize("option", ["inputs", "outputs"])
def test_what_cannot_be_captured_is_refused_at_once(root, option):
    with pytest.raises(StateError, match=f"^{option} is ") as told:
        jit(lambda: None, **{option: root})
    assert isinstance(told.value, ex.ExplorerError)
    assert "called at  test_jit.py, line" in str(told.value)
    assert "Hint:" in str(told.value)


def test_a_frozen_dataclass_can_be_inputs_and_not_outputs():
    @dataclass(frozen=True)
    class Frozen:
        weight: jax.Array

    model = Frozen(X)
    np.testing.assert_allclose(jit(lambda x: x + model.weight, inputs=model)(1.0), X + 1)
    assert model.weight is X
    with pytest.raises(StateError, match="Frozen, whose attributes can't be set"):
        jit(lambda: None, outputs=model)


# Failures ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_while_tracing_leaves_the_state_as_it_was(error):
    inner, array = [X], jnp.ones(3)
    state = {"inner": inner, "array": array}

    def fail():
        state["array"] = state["array"] + 1
        inner.append(state["array"])
        state["new"] = inner
        raise error("no")

    with pytest.raises(error, match="no"):
        jit(fail, inputs=state, outputs=state)()
    assert list(state) == ["inner", "array"]
    assert state["array"] is array
    assert state["inner"] is inner
    assert len(inner) == 1
    assert inner[0] is X


@pytest.mark.filterwarnings("ignore")
def test_an_exception_while_running_leaves_the_state_as_it_was():
    state = [X]

    def fail(x):
        raise ValueError("no")

    @jit(inputs=state, outputs=state)
    def step():
        state[0] = jax.pure_callback(fail, jax.ShapeDtypeStruct((3,), "float32"), state[0])

    with pytest.raises(Exception, match="no"):
        step()
    assert state[0] is X


def test_a_traced_value_that_is_asked_for_is_told_in_the_users_words_and_the_next_call_works():
    state = [X]

    @jit(inputs=state, outputs=state)
    def step(x):
        state[0] = state[0] + x
        return float(x.sum()) if x.ndim else None

    with pytest.raises(
        ex.errors.TracedValueError, match=r"(?s)step could not be compiled: .*float.*test_jit.py, line"
    ) as told:
        step(X)
    assert isinstance(told.value.__cause__, jax.errors.ConcretizationTypeError)
    with pytest.raises(ex.errors.TracedValueError, match="step could not be explored: "):
        step.explore(X)
    assert state[0] is X
    step(jnp.zeros(()))
    np.testing.assert_allclose(state[0], X)


def test_calling_it_wrongly_is_a_type_error_with_the_functions_name():
    with pytest.raises(TypeError, match=r"missing .*'y'"):
        jit(lambda x, y: x)(X)
    with pytest.raises(ex.errors.NotCallableError, match=r"jit takes a function; it got ArrayImpl"):
        jit(jnp.sin(X))
    with pytest.raises(ex.errors.OptionError, match="max_specializations is 0"):
        jit(jnp.sin, max_specializations=0)


# Nesting -------------------------------------------------------------------------------------------------------------


def test_an_inner_function_with_state_inside_an_outer_that_captures_it():
    state = [X]

    @jit(inputs=state, outputs=state)
    def inner():
        state[0] = state[0] + 1
        return state[0]

    @jit(inputs=state, outputs=state)
    def outer():
        return inner() + inner()

    for i in (1, 3):
        np.testing.assert_allclose(outer(), 2 * X + 2 * i + 1)
        np.testing.assert_allclose(state[0], X + i + 1)


def test_an_outer_trace_that_does_not_capture_the_state_is_refused_where_it_is_written():
    state = [X]

    @jit(inputs=state, outputs=state)
    def step(x):
        state[0] = state[0] + x
        return state[0].sum()

    for outer, x in ((jax.jit(step), 1.0), (jax.grad(step), 1.0), (jax.vmap(step), X)):
        with pytest.raises(LeakedStateError, match=r"(?s)step (is called|reads its state).* while .*Hint: ex.jit"):
            outer(x)
        assert state[0] is X


def test_a_transformation_between_the_outer_trace_and_the_write_is_refused_too():
    state = [X]

    @jit(inputs=state, outputs=state)
    def step(x):
        state[0] = state[0] + x
        return state[0].sum()

    inside = {
        "grad": lambda x: jax.grad(step)(x),
        "cond": lambda x: jax.lax.cond(x > 0, step, lambda x: x, x),
    }
    for transformed in inside.values():
        with pytest.raises(LeakedStateError, match=r"step is called while"):
            jit(transformed, inputs=state, outputs=state)(1.0)
        assert state[0] is X


def test_arguments_may_have_the_states_name():
    state = [X]
    step = jit(lambda state_, captured, state=2.0: state_ + captured + state, inputs=state)
    np.testing.assert_allclose(step(1.0, captured=2.0, state=3.0), 6.0)


def test_inputs_alone_work_under_any_transformation():
    state = [X]
    step = jit(lambda x: (state[0] * x).sum(), inputs=state)
    np.testing.assert_allclose(jax.grad(step)(2.0), 3.0)
    np.testing.assert_allclose(jax.vmap(step)(X), [0.0, 3.0, 6.0])
    np.testing.assert_allclose(jit(jax.grad(step), inputs=state)(2.0), 3.0)


@pytest.mark.parametrize(
    "outer",
    [
        jax.jit,
        lambda step: jax.jit(jax.grad(step)),
        jax.checkpoint,
        lambda step: lambda x: jax.lax.map(step, jnp.stack([x])),
        lambda step: lambda x: jax.make_jaxpr(step)(x),
        lambda step: jit(step, inputs=[X]),
    ],
)
def test_state_is_never_baked_into_an_outer_trace(outer):
    state = [X, {"by": X}]
    step = jit(lambda x: (state[1]["by"] * x).sum(), inputs=state)
    with pytest.raises(
        LeakedStateError, match=r"(?s)<lambda> reads its state \(`\[0\]`\) while .* called at .*Hint: ex.jit"
    ):
        outer(step)(2.0)


def test_state_made_within_a_trace_may_hold_its_values():
    @jax.jit
    def outer(x):
        state = {"x": x}
        jit(lambda: state.update(x=state["x"] * 2), inputs=state, outputs=state)()
        return state["x"]

    np.testing.assert_allclose(outer(X), X * 2)


# Options -------------------------------------------------------------------------------------------------------------


def test_static_arguments_by_position_and_name():
    state = [X]

    def power(x, n, mode="a"):
        assert isinstance(n, int)
        assert isinstance(mode, str)
        return x**n + state[0]

    for captured in ({}, {"inputs": state}):
        for options in ({"static_argnums": (1, 2)}, {"static_argnames": ("n", "mode")}):
            step = jit(power, **options, **captured)
            np.testing.assert_allclose(step(X, 2, "b"), X**2 + X)
            np.testing.assert_allclose(step(X, n=3, mode="b"), X**3 + X)
            assert step.specializations[1].reason == "n: 2 → 3"
        from_the_end = jit(power, static_argnums=(-1, -2), **captured)
        np.testing.assert_allclose(from_the_end(X, 2, "b"), X**2 + X)


def test_a_donated_argument_is_the_one_that_was_meant():
    state = [X]
    step = jit(lambda a, b: (a + 1, b + state[0]), inputs=state, donate_argnums=1)
    a, b = jnp.ones(3), jnp.ones(3)
    step(a, b)
    assert (a.is_deleted(), b.is_deleted(), X.is_deleted()) == (False, True, False)


def test_a_python_number_as_argument_is_traced_once():
    run, runs = counted(lambda x, a: x * a)
    step = jit(run)
    np.testing.assert_allclose(step(X, 0.5), X * 0.5)
    np.testing.assert_allclose(step(X, 0.7), X * 0.7, rtol=1e-6)
    assert len(runs) == 1


def test_a_storm_is_warned_about_once_with_what_varies_and_the_cure():
    step = jit(lambda x, n: x * n, static_argnums=1)
    with pytest.warns(RecompilationWarning) as told:
        [step(X, n) for n in range(12)]
    assert len(told) == 1
    assert "<lambda> was traced 9 times. What varies:\n  n: 0, 1, 2, 3, … (9 in all)" in str(told[0].message)
    assert told[0].filename == __file__


def test_a_storm_by_a_constant_in_the_state_names_it():
    state = {"step": 0, "x": X}

    @jit(inputs=state, outputs=state)
    def count():
        state["step"] += 1

    with pytest.warns(RecompilationWarning, match=r"state\['step'\]: 0, 1, 2, 3, … \(9 in all\)"):
        [count() for _ in range(10)]
    assert state["step"] == 10


def test_the_variants_are_bounded_and_it_is_said_when_they_go():
    state = {"mode": 0, "x": X}
    for captured in ({}, {"inputs": state}):
        step = jit(lambda n: state["x"] * n, static_argnums=0, max_specializations=3, **captured)
        with pytest.warns(RecompilationWarning, match="had 3 variants; all were dropped"):
            [step(n) for n in range(4)]
        assert [s.reason for s in step.specializations] == ["evicted: 3 variants were kept, and all were dropped"]
        for _ in range(3):
            np.testing.assert_allclose(step(3), X * 3)
        assert len(step.specializations) <= 2


def test_clear_compiles_anew():
    run, runs = counted(lambda x: x)
    step = jit(run)
    step(X)
    step.clear()
    assert step.specializations == ()
    step(X)
    assert len(runs) == 2


# The function that comes out -----------------------------------------------------------------------------------------


def test_it_looks_like_the_function():
    state = [X]

    @jit(inputs=state, static_argnames="n")
    def step(x, *, n=2):
        """Doubles."""
        return x * n

    assert isinstance(step, Jitted)
    assert (step.__name__, step.__doc__) == ("step", "Doubles.")
    assert str(inspect.signature(step)) == str(step.__signature__) == "(x, *, n=2)"
    assert step.__wrapped__(3) == 6
    assert repr(step) == "jit(step, inputs=…, static_argnames=('n',))"
    assert repr(jit(jnp.sin)) == "jit(sin)"


def test_explore_shows_it_without_running_it_and_leaves_the_state():
    state = [X]

    @jit(inputs=state, outputs=state)
    def step(x):
        state[0] = state[0] * x
        return state[0]

    assert repr(step.explore(2.0)) == "Capture(step: jaxpr → stablehlo → hlo)"
    assert repr(ex.explore(step, 2.0)) == "Capture(step: jaxpr → stablehlo → hlo)"
    assert step.explore(2.0).file == __file__
    assert step.explore(2.0).signature == "(state: f32[3], x: f32[])"
    assert "(state[0])" in step.explore(2.0).jaxpr.text
    assert state[0] is X
    assert repr(jit(lambda: state[0] + 1, inputs=state).explore()) == "Capture(<lambda>: jaxpr → stablehlo → hlo)"


def test_it_works_as_a_method():
    class Model:
        def __init__(self, scale):
            self.scale, self.runs = scale, 0

        @jit
        def apply(self, x, y=1):
            self.runs += 1
            return x * self.scale + y

    two, three = Model(2.0), Model(3.0)
    for _ in range(2):
        np.testing.assert_allclose(two.apply(X), X * 2 + 1)
        np.testing.assert_allclose(three.apply(X, y=0), X * 3)
    assert (two.runs, three.runs) == (1, 1)
    assert two.apply.__name__ == "apply"
    assert str(inspect.signature(two.apply)) == "(x, y=1)"


def test_a_method_of_a_pytree_takes_it_as_an_argument():
    @jax.tree_util.register_pytree_node_class
    class Model:
        def __init__(self, w):
            self.w = w

        def tree_flatten(self):
            return (self.w,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

        @jit
        def apply(self, x):
            return self.w * x

    np.testing.assert_allclose(Model(X).apply(2.0), X * 2)
    np.testing.assert_allclose(Model(X + 1).apply(2.0), X * 2 + 2)
    assert len(Model.apply.specializations) == 1


def test_any_callable_is_taken():
    class Adder:
        def __call__(self, x):
            return x + 1

    np.testing.assert_allclose(jit(Adder())(X), X + 1)
    np.testing.assert_allclose(jit(partial(jnp.add, 1))(X), X + 1)
    np.testing.assert_allclose(jit(jax.jit(jnp.sin))(X), jnp.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jit(jit(jnp.sin))(X), jnp.sin(X), rtol=1e-6)


# The registry --------------------------------------------------------------------------------------------------------


def test_an_entry_dies_with_its_function():
    def function(x):
        return x + 1

    dead = weakref.ref(function)
    jit(function)(X)
    mine = [program for program in registry if program.name == "function"]
    assert len(mine) == 1
    del function, mine
    gc.collect()
    assert dead() is None
    assert not [program for program in registry if program.name == "function"]


def test_an_entry_of_a_method_dies_with_its_object():
    class Model:
        def special_apply(self, x):
            return x + 1

    model = Model()
    dead = weakref.ref(model)
    jit(model.special_apply, inputs=model)(X)
    jit(model.special_apply, inputs=model)(X)
    assert [len(program.traces) for program in registry if program.name == "special_apply"] == [1]
    del model
    gc.collect()
    assert dead() is None
    assert not [program for program in registry if program.name == "special_apply"]


def test_a_new_function_at_a_recycled_address_gets_its_own_result():
    def made(n):
        class Adder:
            def __call__(self, x):
                return x + n

        return Adder

    classes = [made(0), made(1)]
    addresses = [set(), set()]
    for i in range(20):
        function = classes[i % 2]()
        addresses[i % 2].add(id(function))
        assert float(jit(function)(jnp.zeros(()))) == i % 2
        del function
    assert addresses[0] & addresses[1], "no address came again: this test shows nothing"


def test_the_registry_is_bounded():
    for i in range(registry.limit + 5):
        jit(partial(jnp.add, i))
    kept = [partial(jnp.add, i) for i in range(registry.limit + 5)]
    for function in kept:
        jit(function)
    assert len(registry) == registry.limit
    assert repr(registry).startswith("Registry(")


def test_other_state_is_another_entry():
    one, other = [X], [X + 1]
    states = [one]

    def step():
        return states[0][0]

    first = jit(step, inputs=one)
    states[0] = other
    second = jit(step, inputs=other)
    np.testing.assert_allclose(second(), X + 1)
    states[0] = one
    np.testing.assert_allclose(first(), X)
    states[0] = other
    np.testing.assert_allclose(second(), X + 1)


# Threads -------------------------------------------------------------------------------------------------------------


def test_threads_calling_at_once_lose_no_update():
    state = {"count": jnp.zeros((), "int32"), "by": {}}

    @jit(inputs=state, outputs=state)
    def add(x):
        state["count"] = state["count"] + x.size
        state["by"]["last"] = x.sum()

    def work(size):
        for _ in range(25):
            add(jnp.ones(size))

    threads = [threading.Thread(target=work, args=(size,)) for size in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(state["count"]) == 25 * 10
    assert not tracers_in(state)


# The switch ----------------------------------------------------------------------------------------------------------


def test_disabled_it_is_plain_python_at_once(capsys):
    state = []

    @jit(outputs=state)
    def fun(x):
        print(-x)
        state.append(x)
        return jnp.exp(-x)

    disable_compile()
    try:
        np.testing.assert_allclose(fun(jnp.array(5.0)), np.exp(-5.0), rtol=1e-6)
    finally:
        enable_compile()
    assert capsys.readouterr().out == "-5.0\n"
    assert len(state) == 1
    assert fun.specializations == ()
    fun(jnp.array(5.0))
    assert "JitTracer" in capsys.readouterr().out
    assert len(state) == 2


def test_the_switch_as_a_context_restores_what_was_before():
    run, runs = counted(lambda x: x)
    step = jit(run)
    with disable_compile():
        step(X)
        with enable_compile():
            step(X)
            step(X)
        step(X)
        with disable_compile():
            step(X)
        step(X)
    step(X)
    assert len(runs) == 5


@pytest.mark.parametrize(
    ("value", "disables"), [("1", True), ("true", True), ("0", False), ("No", False), ("off", False), ("", False)]
)
def test_the_environment_variable_disables_unless_it_says_no(value, disables):
    code = "from explorer.jitted.switch import is_enabled; print(is_enabled())"
    environment = {**os.environ, "EXPLORER_DISABLE_COMPILE": value, "PYTHONPATH": os.pathsep.join(sys.path)}
    # The switch alone: without JAX, which takes long to import.
    code = code.replace("explorer.jitted.switch", "switch")
    folder = os.path.dirname(inspect.getfile(disable_compile))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=folder
    )
    assert done.stdout.strip() == str(not disables)
