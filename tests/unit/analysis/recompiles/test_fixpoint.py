"""State that comes back as another type than it went in as: said at the first compile, before the second call."""

from functools import partial

import equinox as eqx
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import optax
import pytest

from explorer.analysis.recompiles.reasons import Part, predictions
from explorer.ledger.watch import watch
from explorer.model.events.key import Function, Leaf

X = jnp.ones((4, 3))


def made():
    """A function that no other test has compiled."""

    def counting(state, batch):
        return {"w": state["w"] - batch.mean(), "step": state["step"] + jnp.int32(1)}

    return counting


def predict_recompiles(function, *args, **kwargs):
    with watch() as ledger:
        function(*args, **kwargs)
    assert ledger.faults == ()
    return [(one.leaf, one.before, one.after) for one in ledger.predictions]


def start():
    return {"w": jnp.ones(3), "step": 0}


# What is foreseen ----------------------------------------------------------------------------------------------------


def test_a_python_int_that_comes_back_as_an_array_is_foreseen_at_the_first_compile_and_comes_true_at_the_second():
    step = jax.jit(made())
    with watch() as ledger:
        state = step(start(), X)
        (before,) = ledger.predictions
        state = step(state, X)
        (after,) = ledger.predictions
        step(state, X)
    assert (before.function, before.leaf, before.before, before.after) == (
        "counting", "state['step']", "int32, weak", "int32",
    )  # fmt: skip
    assert before.text == (
        "counting takes `state['step']` as int32, weak and returns it as int32: if the result is passed in again, "
        "counting compiles again."
    )
    assert before.fix == "jnp.asarray(state['step'], dtype=jnp.int32)"
    assert (before.came_true, after.came_true) == ("", "[counting/2]")
    assert [event.reason.kind for event in ledger.recompiles(step)] == ["weak-type"]


def test_a_prediction_is_said_in_the_text_with_its_cure_and_once_it_came_true_with_the_compile():
    step = jax.jit(made())
    with watch() as ledger:
        state = step(start(), X)
        before = ledger.text(200)
        step(state, X)
    assert "predicted: counting takes `state['step']` as int32, weak" in before
    assert "fix: jnp.asarray(state['step'], dtype=jnp.int32)" in before
    assert "predicted, and happened: counting takes" in ledger.text(200)
    assert "[counting/2]" in ledger.text(200)


def test_the_cure_cures():
    step = jax.jit(made())
    with watch() as ledger:
        state = start()
        state["step"] = jnp.asarray(state["step"], dtype=jnp.int32)
        for _ in range(3):
            state = step(state, X)
    assert ledger.predictions == ()
    assert ledger.recompiles(step) == ()


def test_state_among_several_results_is_found():
    step = jax.jit(lambda state, batch: (made()(state, batch), batch.sum()))
    with watch() as ledger:
        step(start(), X)
    (prediction,) = ledger.predictions
    assert prediction.result == "result[0]"
    assert "if result[0] is passed in again" in prediction.text


def test_a_wider_type_than_went_in_is_foreseen_for_all_arrays_at_once():
    def update(params, scale):
        return jax.tree.map(lambda p: p * scale, params)

    params = {name: jnp.ones(3, jnp.bfloat16) for name in "abc"}
    with watch() as ledger:
        jax.jit(update)(params, jnp.float32(2))
    (prediction,) = ledger.predictions
    assert (prediction.before, prediction.after) == ("bfloat16", "float32")
    assert prediction.leaves == ("params['a']", "params['b']", "params['c']")
    assert "like 2 more of its arrays" in prediction.text


def test_a_single_number_that_is_carried_is_foreseen():
    assert predict_recompiles(jax.jit(lambda x: x * jnp.float32(2)), 1.0) == [("x", "float32, weak", "float32")]


def test_a_number_by_itself_in_a_dict_is_foreseen_wherever_it_comes_back():
    def update(params, state):
        return params - state["rate"] * params, {"rate": jnp.minimum(state["rate"], params.max())}

    assert predict_recompiles(jax.jit(update), X, {"rate": 1.0}) == [("state['rate']", "float32, weak", "float32")]
    assert predict_recompiles(jax.jit(update), X, {"rate": jnp.float32(1)}) == []


def test_what_does_not_come_back_does_not_come_true():
    step = jax.jit(made())
    with watch() as ledger:
        step(start(), X)
        step(start(), X)
        step(start(), X[:2])
    assert [one.came_true for one in ledger.predictions] == [""]


def test_keyword_arguments_are_state_too():
    assert predict_recompiles(jax.jit(made()), batch=X, state=start()) == [("state['step']", "int32, weak", "int32")]


def test_static_arguments_are_passed_over():
    step = jax.jit(lambda n, state: made()(state, X * n), static_argnums=0)
    assert predict_recompiles(step, 3, start()) == [("state['step']", "int32, weak", "int32")]


# What is not ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "optimizer", [optax.sgd(0.1), optax.adam(1e-3), optax.adamw(optax.cosine_decay_schedule(1e-3, 9))]
)
def test_an_optax_step_is_a_fixpoint(optimizer):
    params = {"w": jnp.ones(3), "b": jnp.zeros(())}

    @jax.jit
    def step(params, state, x, rate):
        loss, grads = jax.value_and_grad(lambda p: ((x @ p["w"] + p["b"]) ** 2).mean() * rate)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    assert predict_recompiles(step, params, optimizer.init(params), X, 0.5) == []


@pytest.mark.slow
def test_an_equinox_step_is_a_fixpoint():
    model = eqx.nn.MLP(3, 1, 8, 2, key=jax.random.key(0))
    optimizer = optax.adam(1e-3)

    @eqx.filter_jit
    def step(model, state, x):
        grads = eqx.filter_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(model)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(model, updates), state

    assert predict_recompiles(step, model, optimizer.init(eqx.filter(model, eqx.is_array)), X) == []


def test_a_flax_step_is_a_fixpoint():
    model = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x):
        loss, grads = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
        optimizer.update(model, grads)
        return loss

    assert predict_recompiles(step, model, optimizer, X) == []


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: x / 2, (jnp.arange(3),)),  # one array to one of its shape: any function's
        (lambda image: image.astype(jnp.float32) / 255, (jnp.ones((4, 4), jnp.uint8),)),
        (lambda w, rate: (w * rate, (w * rate).sum()), (jnp.ones(3), 0.1)),  # the loss is no rate
        (lambda a, b: a + b, (jnp.float32(1), 2.0)),
        (lambda pair: (pair[0].sum(), pair[1]), ((X, X),)),
        (lambda x: (), (1.0,)),
        (lambda: jnp.ones(3), ()),
        (lambda n: n + 1, (0,)),  # stays weak
    ],
)
def test_what_cannot_be_carried_or_stays_what_it_is_raises_no_alarm(function, args):
    assert predict_recompiles(jax.jit(function), *args) == []


def test_of_two_results_that_fit_the_one_of_the_same_type_is_meant():
    def step(state):
        return jax.tree.map(lambda x: x.astype(jnp.bfloat16), state), state

    assert predict_recompiles(jax.jit(step), {"a": X, "b": X}) == []


def test_single_operations_foresee_nothing():
    assert predict_recompiles(lambda: jnp.add(1.0, jnp.ones(()))) == []


def test_a_prediction_is_made_once_though_the_function_is_first_called_in_two_ways():
    counting = made()
    step = jax.jit(counting)
    with watch() as ledger:
        step(start(), X)
        jax.jit(partial(counting))(start(), X)
        step(start(), X[:1])
    assert len([one for one in ledger.predictions if one.function == "counting"]) == 1


def test_parts_of_no_arrays_are_no_state():
    assert predictions(Function("f"), [Part("a", "()", ())], [Part("result", "()", ())]) == ()


def test_another_structure_or_another_size_is_no_state():
    def part(tree, size):
        return Part("s", tree, (Leaf("a", (size,), "int32", True), Leaf("b", (), "int32")))

    taken = part("t", 2)
    changed = Part("result", "t", (Leaf("a", (2,), "int32"), Leaf("b", (), "int32")))
    assert len(predictions(Function("f"), [taken], [changed])) == 1
    for other in (part("u", 2), part("t", 3)):
        assert predictions(Function("f"), [taken], [other]) == ()


# By hand -------------------------------------------------------------------------------------------------------------


def part(path, *types, tree="t"):
    """A part whose arrays have these types; a star after one says that it is weak, a size before it its length."""
    leaves = []
    for at, text in enumerate(types):
        size, _, dtype = text.rpartition(" ")
        name = path if tree == "*" else f"{path}[{at}]"
        leaves.append(Leaf(name, (int(size),) if size else (), dtype.rstrip("*"), dtype.endswith("*")))
    return Part(path, tree, tuple(leaves))


@pytest.mark.parametrize(
    ("arguments", "results", "expected"),
    [
        # A bare array is held against the whole result and the first one of it, if it is the first argument.
        ([part("n", "i*", tree="*")], [part("result", "i", tree="*")], [("n", "result")]),
        (
            [part("n", "i*", tree="*")],
            [part("result", "i", "f"), part("result[0]", "i", tree="*")],
            [("n", "result[0]")],
        ),
        (
            [part("n", "i*", tree="*")],
            [part("result", "f", "i"), part("result[0]", "f", tree="*"), part("result[1]", "i", tree="*")],
            [],
        ),
        ([part("x", "f", tree="*"), part("n", "i*", tree="*")], [part("result", "i", tree="*")], []),
        # In a dict it is state wherever it comes back, but not as another type than a weak or a strong one.
        (
            [part("x", "f", tree="*"), part("n", "i*")],
            [part("result", "f", "i", tree="2"), part("result[0]", "f", tree="*"), part("result[1]", "i")],
            [("n[0]", "result[1]")],
        ),
        ([part("n", "i")], [part("result", "f")], []),
        ([part("n", "i", tree="*")], [part("result", "f", tree="*")], []),
        # Several arrays are state of any type, if structure and shapes are the same.
        ([part("s", "f", "i")], [part("result", "g", "i")], [("s[0]", "result")]),
        ([part("s", "f", "i")], [part("result", "g", "i", tree="u")], []),
        ([part("s", "f", "2 i")], [part("result", "g", "3 i")], []),
        ([part("s", "f", "i")], [part("result", "g", "i", "i")], []),
        # Of several results the one that differs least is what is fed back.
        ([part("s", "f", "i")], [part("result", "g", "j"), part("result[0]", "f", "j")], [("s[1]", "result[0]")]),
        ([part("s", "f", "i")], [part("result", "g", "j"), part("result[0]", "f", "i")], []),
    ],
)
def test_what_is_held_against_which_result(arguments, results, expected):
    predicted = predictions(Function("f"), arguments, results)
    assert [(one.leaf, one.result) for one in predicted] == expected


def test_arrays_that_change_alike_are_one_prediction():
    state, result = part("s", "f*", "f*", "i", "f*"), part("result", "f", "f", "j", "f")
    floats, integers = predictions(Function("step", "a.py", 3), [state], [result])
    assert floats.text == (
        "step takes `s[0]` as f, weak and returns it as f, like 2 more of its arrays: "
        "if the result is passed in again, step compiles again."
    )
    assert floats.leaves == ("s[0]", "s[1]", "s[3]")
    assert floats.fix == "jnp.asarray(s[0], dtype=jnp.f)"
    assert integers.text == (
        "step takes `s[2]` as i and returns it as j: if the result is passed in again, step compiles again."
    )
    assert integers.fix == "return ….astype(jnp.i) for s[2]"
    back = predictions(
        Function("step"), [part("s", "f", "i")], [part("r", "g", tree="u"), part("result[1]", "f*", "i")]
    )
    assert back[0].text.endswith("if result[1] is passed in again, step compiles again.")
    assert back[0].fix == "return jnp.asarray(…, dtype=jnp.f) for s[0]"
