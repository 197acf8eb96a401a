"""What runs one by one is recorded as it is, and nothing else changes."""

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer._jax.calls import suppress_recording
from explorer.hotpath.recorder import Recorder

X = jnp.arange(12.0).reshape(3, 4)


def recorded(program):
    """The steps of a program that JAX has compiled all of."""
    program()
    with Recorder() as recorder:
        program()
    assert recorder.problem == ""
    return recorder.steps()


def names(steps):
    return [step.operation.name if step.operation else step.observed for step in steps]


def test_operations_come_in_order_with_their_values():
    def program():
        y = jnp.matmul(X, X.T)
        return jnp.tanh(y) + y

    transpose, matmul, tanh, add = recorded(program)
    assert names([transpose, matmul, tanh, add]) == ["transpose", "matmul", "tanh", "add"]
    assert matmul.inputs == (*transpose.inputs, *transpose.outputs)
    assert tanh.inputs == matmul.outputs
    assert add.inputs == (*tanh.outputs, *matmul.outputs)
    assert str(matmul.operation) == "matmul(f32[3,4], f32[4,3]) -> f32[3,3]"


def test_a_sum_by_rows_is_another_operation_than_one_by_columns():
    rows, columns, again = recorded(lambda: (jnp.sum(X, axis=0), jnp.sum(X, axis=1), jnp.sum(X, axis=0)))
    assert rows.operation == again.operation != columns.operation
    assert "axis=0" in rows.operation.parameters


def test_numbers_that_the_program_takes_are_no_parameters():
    first, second = recorded(lambda: (X * 2.0, X * 3.0))
    assert first.operation == second.operation
    assert first.operation.inputs == ("f32[3,4]", "float")
    assert first.inputs[1] == 0


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, False)])
def test_static_values_that_are_equal_but_of_another_class_are_others(one, other):
    scaled = jax.jit(lambda x, by: x + by, static_argnums=1)
    first, second = recorded(lambda: (scaled(X, one), scaled(X, other)))
    assert first.operation != second.operation


def test_other_types_are_another_operation():
    narrow = X.astype(jnp.bfloat16)
    steps = recorded(lambda: (jnp.exp(X), jnp.exp(X[:2]), jnp.exp(narrow), jnp.exp(jnp.float32(1)), jnp.exp(X)))
    kinds = [step.operation for step in steps if step.operation.name == "exp"]
    assert len(set(kinds)) == 4
    assert kinds[0] == kinds[-1]


def test_lines_are_the_users():
    def program():
        y = jnp.exp(X)
        return jnp.log(y)

    first, second = recorded(program)
    assert first.file == second.file == __file__
    assert (first.line, second.line) == (program.__code__.co_firstlineno + 1, program.__code__.co_firstlineno + 2)


def test_the_line_at_the_top_of_a_script():
    text = "def f(x):\n    return jnp.exp(x)\n\ny = f(X)\ny = (\n    f(y)\n)\n"
    steps = recorded(lambda: exec(compile(text, "train.py", "exec"), {"jnp": jnp, "X": X}))
    assert [(step.file, step.line, step.top_line) for step in steps] == [("train.py", 2, 4), ("train.py", 2, 6)]


@pytest.mark.parametrize(
    "look",
    [
        lambda x: float(x[0, 0]), lambda x: bool(x[0, 0]), lambda x: int(x[0, 0]), lambda x: x[0, 0].item(),
        lambda x: x.tolist(), lambda x: repr(x), lambda x: f"{x[0, 0]:.3f}", lambda x: x.block_until_ready(),
        lambda x: jax.device_get(x),
    ],
)  # fmt: skip
def test_looking_at_a_value_is_a_step(look):
    def program():
        y = jnp.exp(X)
        look(y)
        jnp.log(y)

    steps = recorded(program)
    assert steps[0].operation.name == "exp"
    assert sum(bool(step.observed) for step in steps) == 1
    assert steps[-1].operation.name == "log"
    assert not steps[-1].observed


def test_what_a_derivative_runs_is_recorded_and_a_trace_is_not():
    def loss(w):
        return jnp.sum(jnp.tanh(X @ w))

    w = jnp.ones((4,))
    once, again = recorded(lambda: jax.grad(loss)(w)), recorded(lambda: jax.grad(loss)(w))
    assert len(once) > 3
    assert names(once) == names(again)
    compiled = jax.jit(jax.grad(loss))
    assert names(recorded(lambda: compiled(w))) == ["loss"]
    with Recorder() as recorder:
        jax.make_jaxpr(loss)(w)
    assert recorder.steps() == ()


def test_repeats_of_a_derivative_are_the_same_operations():
    w = jnp.ones((4,))

    def program():
        for _ in range(2):
            jax.grad(lambda w: jnp.sum(jnp.tanh(X @ w)))(w)

    steps = recorded(program)
    half = len(steps) // 2
    assert [step.operation for step in steps[:half]] == [step.operation for step in steps[half:]]


def test_each_thread_has_its_own():
    jnp.exp(X), jnp.log(X)
    with Recorder() as recorder:
        other = threading.Thread(target=lambda: jnp.log(X), name="other")
        other.start()
        jnp.exp(X)
        other.join()
    assert names(recorder.steps()) == ["exp"]
    assert names(recorder.steps("other")) == ["log"]
    assert set(recorder.threads) == {"other", threading.current_thread().name}


def test_no_array_is_kept_alive():
    jnp.exp(X)
    with Recorder() as recorder:
        y = jnp.exp(X)
        gone = weakref.ref(y)
        del y
        gc.collect()
        assert gone() is None
    assert len(recorder.steps()) == 1


def test_an_array_in_the_place_of_one_that_is_gone_is_another():
    with Recorder() as recorder:
        for _ in range(50):
            jnp.exp(X)  # its result is gone at once, and its address is free
    outputs = [step.outputs for step in recorder.steps()]
    assert len(set(outputs)) == len(outputs)


def test_a_fault_ends_the_recording_alone():
    def told(step):
        raise ValueError("full")

    jnp.exp(X)
    with Recorder(told) as recorder:
        np.testing.assert_allclose(jnp.exp(X), np.exp(np.asarray(X)), rtol=1e-6)
    assert recorder.problem == "recording ended: ValueError('full')"


def test_afterwards_everything_is_as_before():
    array = type(X)
    before = {name: vars(array).get(name) for name in ("_value", "item", "__array__", "block_until_ready")}
    with Recorder(), Recorder():
        assert vars(array)["_value"] is not before["_value"]
    assert {name: vars(array).get(name) for name in before} == before


def test_jaxs_check_for_nans_goes_on():
    jnp.log(X)
    with jax.debug_nans(True), Recorder(), pytest.raises(FloatingPointError):
        jnp.log(-jnp.ones(3))


def test_recording_goes_on_where_the_check_for_nans_was_on():
    jnp.log(X)
    with jax.debug_nans(True):
        pass
    with Recorder() as recorder:
        jnp.log(X)
    assert names(recorder.steps()) == ["log"]
    with jax.debug_nans(True), Recorder() as recorder:
        jnp.log(jnp.exp(X))
    assert names(recorder.steps()) == ["exp", "log"]


def test_it_is_said_where_the_check_for_nans_takes_its_place():
    with Recorder() as recorder, jax.debug_nans(True):
        pass
    assert "check for NaNs" in recorder.problem


def test_explorers_own_operations_are_not_recorded():
    jnp.exp(X)
    with Recorder() as recorder, suppress_recording():
        jnp.exp(X)
    assert recorder.steps() == ()


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr("explorer.hotpath.recorder._STEPS", 10)
    monkeypatch.setattr("explorer.hotpath.recorder._KEPT", 4)
    sizes = [np.ones(n, np.float32) for n in range(1, 12)]
    [jnp.exp(size) for size in sizes]
    with Recorder() as recorder:
        for _ in range(5):
            for size in sizes:
                jnp.exp(size)
        assert len(recorder._operations) <= 4
    assert len(recorder.steps()) == 10
    assert recorder.seen == 55


def test_keys_are_arrays():
    key = jax.random.key(0)

    def program():
        one, two = jax.random.split(key)
        return jax.random.normal(one, (2,)) + jax.random.normal(two, (2,))

    *steps, last = recorded(program)
    assert any("key<fry>[]" in step.operation.inputs for step in steps)
    assert last.operation.name == "add"
