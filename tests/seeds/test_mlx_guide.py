"""MLX's guide "Compilation", its samples in order, in JAX."""

import math
import re
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import erf

import explorer as ex

pytestmark = pytest.mark.slow

x = jnp.array(1.0)
y = jnp.array(2.0)


# Basics of Compile


def test_a_compiled_function_gives_what_the_function_gives():
    def fun(x, y):
        return jnp.exp(-x) + y

    np.testing.assert_allclose(fun(x, y), 2.36788, rtol=1e-6)
    compiled_fun = ex.jit(fun)
    np.testing.assert_allclose(compiled_fun(x, y), 2.36788, rtol=1e-6)


def test_a_function_is_compiled_at_its_first_call_and_not_again_not_even_by_another_jit():
    traces = []

    def fun(x, y):
        traces.append("traced")
        return jnp.exp(-x) + y

    compiled_fun = ex.jit(fun)
    assert traces == []
    compiled_fun(x, y)
    assert traces == ["traced"]
    compiled_fun(x, y)
    assert traces == ["traced"]
    ex.jit(fun)(x, y)
    assert traces == ["traced"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((jnp.ones(3),), id="the-shape"),
        pytest.param((jnp.ones((1, 2)),), id="the-number-of-dimensions"),
        pytest.param((jnp.int32(1),), id="the-type"),
        pytest.param((x, y), id="the-number-of-inputs"),
    ],
)
def test_a_function_is_compiled_again_for_another(other):
    def fun(*args):
        return sum(args)

    compiled_fun = ex.jit(fun)
    compiled_fun(x)
    compiled_fun(x)
    assert len(compiled_fun.specializations) == 1
    compiled_fun(*other)
    compiled_fun(x)
    assert len(compiled_fun.specializations) == 2


def test_an_anonymous_function_in_a_loop_is_compiled_at_each_iteration():
    traces = []

    def absolute(x):
        traces.append("traced")
        return jnp.abs(x)

    a = jnp.array(1.0)
    # Don't do this, compiles lambda at each iteration
    for _ in range(5):
        ex.jit(lambda x: jnp.exp(absolute(x)))(a)
    assert len(traces) == 5


# Example Speedup


def gelu(x):
    return x * (1 + erf(x / math.sqrt(2))) / 2


def timeit(fun, x):
    # warm up
    for _ in range(10):
        jax.block_until_ready(fun(x))

    tic = time.perf_counter()
    for _ in range(100):
        jax.block_until_ready(fun(x))
    toc = time.perf_counter()
    tpi = 1e3 * (toc - tic) / 100
    print(f"Time per iteration {tpi:.3f} (ms)")


def test_gelu_is_timed_with_and_without_a_compiler(capsys):
    x = jax.random.uniform(jax.random.key(0), (32, 41))
    timeit(gelu, x)
    timeit(ex.jit(gelu), x)
    printed = capsys.readouterr().out
    assert re.fullmatch(r"(Time per iteration \d+\.\d{3} \(ms\)\n){2}", printed)
    np.testing.assert_allclose(ex.jit(gelu)(x), gelu(x), rtol=1e-5)


def test_all_operations_of_gelu_are_fused_into_one_kernel():
    capture = ex.jit(gelu).explore(jnp.ones((32, 1000)))
    assert [node.op for node in capture.jaxpr.graph.nodes] == ["parameter", "div", "erf", "add", "mul", "div"]
    entry = [node.op for node in capture.hlo.graph.nodes if node.group.kind == "entry"]
    assert entry == ["parameter", "fusion"]


# Debugging


def test_a_print_inside_shows_a_placeholder_and_a_value_can_not_be_had(capsys):
    @ex.jit
    def fun(x):
        z = -x
        print(z)  # no crash here, and no value
        return jnp.exp(z)

    np.testing.assert_allclose(fun(jnp.array(5.0)), math.exp(-5), rtol=1e-6)
    assert re.search(r"Tracer.*float32\[\]", capsys.readouterr().out)

    @ex.jit
    def fun(x):
        z = -x
        print(float(z))  # Crash
        return jnp.exp(z)

    with pytest.raises(ex.errors.TracedValueError, match=r"(?s)`float\(z\)` needs a value.*print\(float\(z\)\)"):
        fun(jnp.array(5.0))


def test_with_compilation_disabled_a_print_inside_shows_the_value(capsys):
    @ex.jit
    def fun(x):
        z = -x
        print(float(z))  # Okay
        return jnp.exp(z)

    ex.disable_compile()
    try:
        fun(jnp.array(5.0))
    finally:
        ex.enable_compile()
    assert capsys.readouterr().out == "-5.0\n"


# Pure Functions


def test_what_a_list_outside_keeps_of_a_trace_is_a_placeholder():
    state = []

    @ex.jit
    def fun(x, y):
        z = x + y
        state.append(z)
        return jnp.exp(z)

    fun(jnp.array(1.0), jnp.array(2.0))
    assert "Tracer" in repr(state)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        state[0] + 1  # Crash!


def test_state_may_simply_be_returned():
    state = []

    @ex.jit
    def fun(x, y):
        z = x + y
        return jnp.exp(z), [*state, z]

    _, state = fun(jnp.float32(1.0), jnp.float32(2.0))
    assert repr(state) == "[Array(3., dtype=float32)]"


def test_state_is_captured_as_an_output():
    state = []

    # Tell jit to capture state as an output
    @partial(ex.jit, outputs=state)
    def fun(x, y):
        z = x + y
        state.append(z)
        return jnp.exp(z), state

    fun(jnp.float32(1.0), jnp.float32(2.0))
    assert repr(state) == "[Array(3., dtype=float32)]"


def test_what_is_not_in_the_parameter_list_is_a_constant():
    state = [jnp.array(1.0)]

    @ex.jit
    def fun(x):
        return x + state[0]

    assert fun(jnp.array(1.0)) == 2
    # Update state
    state[0] = jnp.array(5.0)
    # Still 2
    assert fun(jnp.array(1.0)) == 2


def test_state_is_captured_as_an_input():
    state = [jnp.array(1.0)]

    # Tell jit to capture state as an input
    @partial(ex.jit, inputs=state)
    def fun(x):
        return x + state[0]

    assert fun(jnp.array(1.0)) == 2
    # Update state
    state[0] = jnp.array(5.0)
    assert fun(jnp.array(1.0)) == 6


# Compiling Training Graphs


def examples():
    # 4 examples with 10 features each, and 0, 1 targets
    return jax.random.uniform(jax.random.key(0), (4, 10)), jnp.array([0, 1, 0, 1])


def trained(compiled):
    """The losses of 10 steps of gradient descent."""
    nnx = pytest.importorskip("flax.nnx")
    optax = pytest.importorskip("optax")
    x, y = examples()
    # Simple linear model
    model = nnx.Linear(10, 1, rngs=nnx.Rngs(0))
    # SGD with momentum
    optimizer = nnx.Optimizer(model, optax.sgd(learning_rate=0.1, momentum=0.8), wrt=nnx.Param)

    def loss_fn(model, x, y):
        logits = model(x).squeeze()
        return optax.sigmoid_binary_cross_entropy(logits, y).mean()

    def step(x, y):
        loss_and_grad_fn = nnx.value_and_grad(loss_fn)
        loss, grads = loss_and_grad_fn(model, x, y)
        optimizer.update(model, grads)
        return loss

    if compiled:
        # The state that will be captured as input and output
        state = [model, optimizer]
        step = partial(ex.jit, inputs=state, outputs=state)(step)
    return [float(step(x, y)) for it in range(10)]


def test_a_model_is_trained_without_a_compiler():
    losses = trained(compiled=False)
    assert losses[-1] < losses[0]


def test_forward_backward_and_update_are_compiled_together():
    np.testing.assert_allclose(trained(compiled=True), trained(compiled=False), rtol=1e-5)


class Linear:
    def __init__(self, inputs, outputs):
        self.weight = jnp.zeros((inputs, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x):
        return x @ self.weight + self.bias


class SGD:
    def __init__(self, learning_rate, momentum):
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.state = {}

    def update(self, model, gradients):
        for name, gradient in gradients.items():
            velocity = self.momentum * self.state.get(name, 0.0) + gradient
            self.state[name] = velocity
            setattr(model, name, getattr(model, name) - self.learning_rate * velocity)


def trained_plainly(compiled):
    """The same with classes of one's own: what the guide's libraries do, without one."""
    x, y = examples()
    model = Linear(10, 1)
    optimizer = SGD(learning_rate=0.1, momentum=0.8)

    def loss_fn(parameters, x, y):
        logits = (x @ parameters["weight"] + parameters["bias"]).squeeze()
        return jnp.mean(jnp.logaddexp(0.0, logits) - y * logits)

    def step(x, y):
        loss, grads = jax.value_and_grad(loss_fn)(vars(model), x, y)
        optimizer.update(model, grads)
        return loss

    state = [model, optimizer.state]
    if compiled:
        step = partial(ex.jit, inputs=state, outputs=state)(step)
    return [float(step(x, y)) for it in range(10)]


def test_a_model_and_an_optimizer_of_ones_own_classes_are_trained_the_same():
    losses = trained_plainly(compiled=True)
    np.testing.assert_allclose(losses, trained_plainly(compiled=False), rtol=1e-5)
    np.testing.assert_allclose(losses[0], math.log(2), rtol=1e-6)  # of a model that knows nothing
    assert losses == sorted(losses, reverse=True)


def test_a_model_that_samples_includes_the_random_state():
    random = {"key": jax.random.key(0)}

    def dropout(x):
        random["key"], key = jax.random.split(random["key"])
        return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x / 0.5, 0.0)

    fun = partial(ex.jit, inputs=random, outputs=random)(dropout)
    first, second = fun(jnp.ones(64)), fun(jnp.ones(64))
    assert not np.array_equal(first, second)
    random["key"] = jax.random.key(0)
    np.testing.assert_array_equal(dropout(jnp.ones(64)), first)
    np.testing.assert_array_equal(dropout(jnp.ones(64)), second)


# Transformations with Compile


def test_a_compiled_gradient_is_the_gradient():
    grad_fn = jax.grad(jnp.exp)
    compiled_grad_fn = ex.jit(grad_fn)
    np.testing.assert_allclose(grad_fn(jnp.array(1.0)), 2.71828, rtol=1e-6)
    np.testing.assert_allclose(compiled_grad_fn(jnp.array(1.0)), 2.71828, rtol=1e-6)


def test_a_compiled_function_is_transformed_and_the_result_compiled():
    compiled_exp = ex.jit(jnp.exp)
    np.testing.assert_allclose(jax.grad(compiled_exp)(x), math.e, rtol=1e-6)
    np.testing.assert_allclose(ex.jit(jax.grad(compiled_exp))(x), math.e, rtol=1e-6)


def test_a_compiled_function_calls_compiled_functions():
    @ex.jit
    def inner(x):
        return jnp.exp(-jnp.abs(x))

    def outer(x):
        return inner(inner(x))

    # Compiling the outer function is good to do as it will likely
    # be faster even though the inner functions are compiled
    fun = ex.jit(outer)
    np.testing.assert_allclose(fun(x), math.exp(-math.exp(-1)), rtol=1e-6)
    np.testing.assert_allclose(fun(x), outer(x), rtol=1e-6)
