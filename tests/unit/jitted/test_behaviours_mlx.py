"""What who comes from MLX expects: the contract's rows in order, each test a behaviour."""

import gc
import os
import subprocess
import sys
import weakref
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

# The loops of these tests make functions at one line again and again; who means that warning asks for it.
pytestmark = pytest.mark.filterwarnings("ignore:.* functions from:explorer.errors.RecompilationWarning")

X = jnp.arange(4.0)


def counted(function):
    """A function whose `runs` are those of its Python."""

    def run(*args, **kwargs):
        run.runs += 1
        return function(*args, **kwargs)

    run.runs = 0
    return run


# Compiled at the first call; cached by shape, dtype and structure -----------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (X, X[:2], "x: f32[4] → f32[2]"),
        (X, X[None], "x: f32[4] → f32[1,4]"),
        (X, X.astype(jnp.int32), "x: f32[4] → i32[4]"),
        ([X], [X, X], "x[1]: not there → f32[4]"),
        ({"a": X}, {"b": X}, "x['b']: not there → f32[4]"),
    ],
    ids=["shape", "rank", "dtype", "length", "key"],
)
def test_another_shape_dtype_or_structure_is_compiled_anew_and_the_reason_is_told(first, second, reason):
    function = counted(lambda x: jax.tree.map(jnp.sin, x))
    fast = ex.jit(lambda x: function(x))
    for value in (first, second, first, second):
        fast(value)
    assert function.runs == 2
    told = [specialization.reason for specialization in fast.specializations]
    assert told[0] == "first call"
    assert reason in told[1]


# An anonymous function compiled in a loop ----------------------------------------------------------------------------


def jit_in_a_loop():
    for _ in range(10):
        ex.jit(lambda x: x + 1)(X)
        gc.collect()


@pytest.mark.slow
def test_an_anonymous_function_in_a_loop_misses_each_time_and_a_warning_names_its_line():
    with pytest.warns(ex.errors.RecompilationWarning) as caught:
        jit_in_a_loop()
    (warning,) = caught
    line = jit_in_a_loop.__code__.co_firstlineno + 2
    assert f"9 functions from test_behaviours_mlx.py, line {line} (<lambda>)" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, line)


# A traced value can't be looked at inside; disable_compile ------------------------------------------------------------


@pytest.mark.parametrize(
    "ask", [float, bool, np.asarray, lambda v: v.item(), lambda v: 1 if v > 0 else 2], ids=lambda ask: ask.__name__
)
def test_a_traced_value_has_no_value_inside_until_compilation_is_disabled(ask):
    @ex.jit
    def function(x):
        ask(x)
        return x + 1

    with pytest.raises(ex.errors.TracedValueError, match=r"test_behaviours_mlx\.py, line \d+"):
        function(X[1])
    with ex.disable_compile():
        assert function(X[1]) == 2
    with pytest.raises(ex.errors.TracedValueError):
        function(X[1])


def test_the_switch_reaches_functions_that_are_compiled_already():
    function = counted(lambda x: x + 1)
    fast = ex.jit(function)
    fast(X)
    ex.disable_compile()
    try:
        fast(X)
    finally:
        ex.enable_compile()
    fast(X)
    assert function.runs == 2


RUNS = "import explorer as ex; runs = []; f = ex.jit(lambda x: runs.append(1) or x); f(1.0); f(1.0); print(len(runs))"


@pytest.mark.slow
@pytest.mark.parametrize(("value", "runs"), [("1", 2), ("0", 1), ("false", 1), ("", 1)], ids=repr)
def test_the_environment_disables_compilation_and_0_does_not(value, runs):
    environment = os.environ | {"EXPLORER_DISABLE_COMPILE": value}
    done = subprocess.run([sys.executable, "-c", RUNS], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{runs}\n"


# Appended state leaks placeholders -----------------------------------------------------------------------------------


def test_a_leaked_placeholder_is_an_error_when_it_is_touched_in_another_function():
    kept = []
    ex.jit(lambda x: kept.append(x + 1) or x)(X)
    with pytest.raises(ex.errors.TracedValueError, match="kept from"):
        ex.jit(lambda x: x + kept[0])(X)


# Captured inputs and outputs -----------------------------------------------------------------------------------------


class Box:
    def __init__(self, value):
        self.value = value


class Slots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Pair(NamedTuple):
    one: Any
    two: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Frozen:
    value: Any


def nnx_module():
    nnx = pytest.importorskip("flax.nnx")
    return nnx.Linear(4, 4, rngs=nnx.Rngs(0))


def equinox_module():
    return [pytest.importorskip("equinox").nn.Linear(4, 4, key=jax.random.key(0))]


def optax_state():
    return [pytest.importorskip("optax").adam(1e-2).init({"w": X})]


def more(tree):
    """Every number in a state, one more, in the state itself; and what they were, summed up."""
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, [leaf + 1 for leaf in leaves]), sum(leaf.sum() for leaf in leaves)


STATES = [
    pytest.param(lambda: [X, [X]], lambda s: s, lambda s, new: s.__setitem__(slice(None), new), id="list"),
    pytest.param(lambda: {"a": X, "b": (X,)}, lambda s: s, lambda s, new: s.update(new), id="dict"),
    pytest.param(lambda: Box(X), lambda s: s.value, lambda s, new: setattr(s, "value", new), id="attribute"),
    pytest.param(lambda: Slots(X), lambda s: s.value, lambda s, new: setattr(s, "value", new), id="slots"),
    pytest.param(lambda: [Pair(X, X)], lambda s: s[0], lambda s, new: s.__setitem__(0, new), id="namedtuple"),
    pytest.param(lambda: Box(Frozen(X)), lambda s: s.value, lambda s, new: setattr(s, "value", new), id="pytree"),
    pytest.param(equinox_module, lambda s: s[0], lambda s, new: s.__setitem__(0, new), id="equinox"),
    pytest.param(optax_state, lambda s: s[0], lambda s, new: s.__setitem__(0, new), id="optax"),
    pytest.param(nnx_module, lambda s: s.kernel[...], lambda s, new: s.kernel.__setitem__(..., new), id="nnx"),
]


@pytest.mark.parametrize(("make", "get", "put"), STATES)
def test_state_is_read_and_written_in_place_at_each_call(make, get, put):
    state, plain = make(), make()

    def update(state, by):
        new, total = more(get(state))
        put(state, new)
        return total * by

    traced = counted(lambda by: update(state, by))
    fast = ex.jit(lambda by: traced(by), inputs=state, outputs=state)
    for by in (2.0, 3.0, 4.0):
        np.testing.assert_allclose(fast(by), update(plain, by), rtol=1e-6)
    for mine, theirs in zip(jax.tree.leaves(get(state)), jax.tree.leaves(get(plain)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert traced.runs == 1


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey], ids=["typed", "raw"])
def test_a_captured_random_key_advances_with_each_call(make):
    def draw(state):
        state["key"], key = jax.random.split(state["key"])
        return jax.random.normal(key)

    state, plain = {"key": make(0)}, {"key": make(0)}
    fast = ex.jit(lambda: draw(state), inputs=state, outputs=state)
    drawn = [float(fast()) for _ in range(3)]
    np.testing.assert_allclose(drawn, [float(draw(plain)) for _ in range(3)], rtol=1e-6)
    assert len(set(drawn)) == 3


# What a closure reads is baked in ------------------------------------------------------------------------------------


def test_what_a_closure_reads_is_a_constant_whatever_becomes_of_it():
    scale = [2.0]
    fast = ex.jit(lambda x: x * scale[0])
    np.testing.assert_array_equal(fast(X), 2 * X)
    scale[0] = 3.0
    np.testing.assert_array_equal(fast(X), 2 * X)
    fast.clear()
    np.testing.assert_array_equal(fast(X), 3 * X)


# Forward, backward and update compiled in one ------------------------------------------------------------------------


def trained(wrap):
    optax = pytest.importorskip("optax")
    x, y = jax.random.normal(jax.random.key(0), (8, 3)), jnp.arange(8.0)
    optimizer = optax.sgd(0.05, momentum=0.8)
    state = {"w": jnp.zeros(3)}
    state["optimizer"] = optimizer.init(state["w"])

    def step(x, y):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(state["w"])
        updates, state["optimizer"] = optimizer.update(gradient, state["optimizer"])
        state["w"] = optax.apply_updates(state["w"], updates)
        return loss

    fast = wrap(step, state)
    return [float(fast(x, y)) for _ in range(10)], fast


@pytest.mark.slow
def test_training_with_optax_is_one_program_and_gives_the_same_losses():
    losses, fast = trained(lambda step, state: ex.jit(step, inputs=state, outputs=state))
    np.testing.assert_allclose(losses, trained(lambda step, state: step)[0], rtol=1e-5)
    assert losses[-1] < losses[0]
    assert len(fast.specializations) == 1


# Transformations of compiled functions, and compiled transformations --------------------------------------------------


COMPOSED = [
    pytest.param(lambda jit, f: jax.vmap(jax.grad(jit(f))), id="grad-of-jit"),
    pytest.param(lambda jit, f: jax.vmap(jit(jax.grad(f))), id="jit-of-grad"),
    pytest.param(lambda jit, f: jax.vmap(jit(f)), id="vmap-of-jit"),
    pytest.param(lambda jit, f: jit(jax.vmap(f)), id="jit-of-vmap"),
    pytest.param(lambda jit, f: jit(lambda x: f(jit(f)(x))), id="jit-in-jit"),
]


@pytest.mark.parametrize("compose", COMPOSED)
@pytest.mark.parametrize("captured", [None, "inputs", "outputs"])
def test_transformations_compose_also_around_captured_state(compose, captured):
    state = [jnp.float32(3.0)]

    def function(x):
        return jnp.sin(x) * state[0]

    jit = ex.jit if captured is None else partial(ex.jit, **{captured: state})
    np.testing.assert_allclose(compose(jit, function)(X), compose(lambda f: f, function)(X), rtol=1e-6)


# shapeless=True ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_trace_for_all_shapes_is_a_symbolic_executable():
    function = counted(lambda x: x / x.shape[0])
    n = ex.NamedDimension("n", 1, 4, 64)
    fast = ex.compile(lambda x: function(x), args=[ex.InputInfo((n,), jnp.float32)])
    for size in (4, 1, 7):  # MLX bakes the first size into what was computed from it
        np.testing.assert_allclose(fast(jnp.ones(size)), np.full(size, 1 / size), rtol=1e-6)
    assert function.runs == 4  # at compile: with a symbol, and at the three sizes it is held against


# What its users ask for ----------------------------------------------------------------------------------------------


def call_with_sizes(function, sizes):
    for n in sizes:
        np.testing.assert_array_equal(function(jnp.ones(n)), np.full(n, 2.0))


def test_a_storm_of_recompiles_is_warned_of_once_and_says_what_varies():
    fast = ex.jit(lambda x: x + 1)
    with pytest.warns(ex.errors.RecompilationWarning) as caught:
        call_with_sizes(fast, range(1, 12))
    (warning,) = caught
    assert "traced 9 times" in str(warning.message)
    assert "x: f32[1], f32[2], f32[3], f32[4], … (9 in all)" in str(warning.message)


def test_variants_are_bounded_and_evicted():
    fast = ex.jit(lambda x: x + 1, max_specializations=2)
    with pytest.warns(ex.errors.RecompilationWarning, match="had 2 variants"):
        call_with_sizes(fast, (1, 2, 3))
    assert len(fast.specializations) <= 2


def test_another_python_number_is_not_compiled_again():
    function = counted(lambda x, y: x * y)
    fast = ex.jit(function)
    assert [float(fast(X[1], y)) for y in (0.5, 0.7, -1.0)] == pytest.approx([0.5, 0.7, -1.0])
    assert function.runs == 1


def test_a_class_of_ones_own_is_captured_without_being_registered():
    state = Box({"w": X, "inner": Box(X), "name": "layer"})

    @partial(ex.jit, inputs=state, outputs=state)
    def double():
        state.value["inner"].value = state.value["inner"].value * 2

    inner = state.value["inner"]
    double()
    assert state.value["inner"] is inner
    np.testing.assert_array_equal(inner.value, 2 * X)


def test_captured_state_that_was_replaced_is_never_stale():
    state = {"layer": Box(X)}
    fast = ex.jit(lambda x: x + state["layer"].value, inputs=state)
    np.testing.assert_array_equal(fast(X), 2 * X)
    state["layer"] = Box(10 * X)
    np.testing.assert_array_equal(fast(X), 11 * X)


def test_what_was_compiled_and_fused_can_be_seen():
    state = [X]
    capture = ex.jit(lambda x: jnp.tanh(x * 2) + state[0], inputs=state).explore(X)
    assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo", "hlo"]
    assert {node.group.kind for node in capture.hlo.graph.nodes} == {"entry", "fusion"}


@pytest.mark.parametrize("state", [X, (X, X), 3.0, "text"], ids=["array", "tuple", "number", "text"])
def test_what_can_not_be_captured_is_refused_with_what_can(state):
    with pytest.raises(ex.errors.StateError, match=r"(?s)outputs is .*allowed is a list, a dict, or an object.*Hint: "):
        ex.jit(lambda x: x, outputs=state)


# Defects there, not here ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_function_at_the_address_of_a_dead_one_is_another():
    addresses = set()
    for i in range(12):
        function = eval(f"lambda x: x + {i}")
        addresses.add(id(function))
        assert ex.jit(function)(0.0) == i
        del function
        gc.collect()
    assert len(addresses) < 12


def test_nothing_compiled_outlives_its_function():
    function = counted(lambda x: x + 1)
    fast, known = ex.jit(function), weakref.ref(function)
    fast(X)
    del function, fast
    gc.collect()
    assert known() is None


@pytest.mark.parametrize(
    ("first", "second"), [([[1], 2], [[1, 2]]), (True, 1), (1, 1.0), (0.0, -0.0), ("1", 1)], ids=repr
)
def test_constants_that_look_alike_are_not_taken_for_one_another(first, second):
    state = {"constant": first}
    fast = ex.jit(lambda x: jnp.asarray([ord(c) for c in repr(state["constant"])]) + x, inputs=state)
    for constant in (first, second, first):
        state["constant"] = constant
        assert "".join(map(chr, fast(0).tolist())) == repr(constant)
