"""Retold from Flax's tracker and documentation: linen, nnx, train states."""

import flax
import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import on_device, rows

_LINEN, _NNX = "flax-linen.readthedocs.io", "flax.readthedocs.io"


def _state(features=2, tx=None, model=None, inputs=4):
    model = model or nn.Dense(features)
    params = {"kernel": np.ones((inputs, features), np.float32), "bias": np.zeros(features, np.float32)}
    return TrainState.create(apply_fn=model.apply, params=on_device(params), tx=tx or _SGD)


_SGD = optax.sgd(0.1)


def _step():
    @jax.jit
    def train_step(state, x):
        def loss(params):
            return (state.apply_fn({"params": params}, x) ** 2).mean()

        return state.apply_gradients(grads=jax.grad(loss)(state.params))

    return train_step


@cause("structure", "state.tx", source="google/flax#1306")
def a_train_state_with_an_optimizer_made_anew(cured):
    step, model = _step(), nn.Dense(2)
    step(_state(tx=optax.sgd(0.1) if not cured else _SGD, model=model), rows())
    other = _state(tx=optax.sgd(0.1) if not cured else _SGD, model=model)
    yield
    step(other, rows())


@cause("structure", "state.apply_fn", source="google/flax#1011")
def a_train_state_of_a_model_with_another_setting(cured):
    step = _step()
    model = nn.Dense(2)
    step(_state(model=model), rows())
    other = _state(model=model if cured else nn.Dense(2, name="head"))
    yield
    step(other, rows())


@cause("structure", "state.apply_fn", source=f"{_LINEN}/guides/training_techniques/transfer_learning")
def a_train_state_whose_apply_is_a_lambda(cured):
    step, model = _step(), nn.Dense(2)
    kept = model.apply
    step(_state(model=model).replace(apply_fn=kept if cured else lambda v, x: model.apply(v, x)), rows())
    other = _state(model=model).replace(apply_fn=kept if cured else lambda v, x: model.apply(v, x))
    yield
    step(other, rows())


@cause("weak-type", "state.step", source="google/flax#1404")
def a_train_state_whose_step_was_restored_as_an_array(cured):
    step, state = _step(), _state()
    step(state.replace(step=np.int32(0)) if cured else state, rows())
    yield
    step(state.replace(step=np.int32(7)), rows())


@cause("shape", "state.params['kernel'].shape[1]", "state.params['bias'].shape[0]",
       source=f"{_LINEN}/guides/training_techniques/transfer_learning")  # fmt: skip
def a_train_state_with_a_wider_head(cured):
    norm = jax.jit(lambda state: optax.tree.norm(state.params))
    model = nn.Dense(2)
    norm(_state(2, model=model))
    other = _state(2 if cured else 3, model=model)
    yield
    norm(other)


@cause("structure", "state.opt_state[0]", "state.tx",
       source=f"{_LINEN}/guides/converting_and_upgrading/optax_update_guide")  # fmt: skip
def a_train_state_whose_optimizer_gets_a_momentum(cured):
    step, model = _step(), nn.Dense(2)
    step(_state(model=model), rows())
    other = _state(tx=_SGD if cured else optax.sgd(0.1, momentum=0.9), model=model)
    yield
    step(other, rows())


@cause("structure", "state.batch_stats", source=f"{_LINEN}/guides/training_techniques/batch_norm")
def a_train_state_with_statistics_from_the_second_step_on(cured):
    class State(TrainState):
        batch_stats: object = None

    model = nn.Dense(2)
    plain = State.create(apply_fn=model.apply, params=on_device({"kernel": rows(4, 2)}), tx=_SGD)
    stats = plain.replace(batch_stats={"mean": np.zeros(2, np.float32)})
    norm = jax.jit(lambda state: optax.tree.norm(state.params))
    norm(stats if cured else plain)
    yield
    norm(stats)


@cause("dtype", "state.key", source=f"{_LINEN}/guides/training_techniques/dropout")
def a_train_state_whose_dropout_key_is_of_another_kind(cured):
    class State(TrainState):
        key: object = None

    model = nn.Dense(2)
    state = State.create(apply_fn=model.apply, params=on_device({"kernel": rows(4, 2)}), tx=_SGD)
    draw = jax.jit(lambda state: jax.random.normal(state.key, (2,)))
    draw(state.replace(key=jax.random.key(0)))
    other = state.replace(key=jax.random.key(1) if cured else jax.random.PRNGKey(1))
    yield
    draw(other)


@cause("function", source="google/flax#663")
def a_model_applied_in_a_lambda_in_each_step(cured):
    model = nn.Dense(2)
    params = on_device({"params": {"kernel": rows(4, 2), "bias": np.zeros(2, np.float32)}})
    once = jax.jit(lambda p, x: model.apply(p, x))
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(lambda p, x: model.apply(p, x)))(params, rows())


@cause("function", source="google/flax#912")
def a_linen_init_jitted_for_each_seed(cured):
    model = nn.Dense(2)
    once = jax.jit(model.init)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(model.init))(jax.random.key(turn), rows())


@cause("static", "train", source=f"{_LINEN}/guides/training_techniques/dropout")
def a_linen_model_switched_to_evaluation(cured):
    model = nn.Dropout(0.5)

    @jax.jit
    def key():
        return jax.random.key(0)

    apply = jax.jit(
        lambda x, key, train: model.apply({}, x, deterministic=not train, rngs={"dropout": key}),
        static_argnames="train",
    )
    apply(rows(), key(), train=True)
    yield
    apply(rows(), key(), train=cured)


@cause("structure", "variables['batch_stats']", source=f"{_LINEN}/guides/training_techniques/batch_norm")
def a_linen_apply_without_its_statistics(cured):
    norm = jax.jit(lambda variables: optax.tree.norm(variables))
    params, stats = {"w": rows(4, 2)}, {"mean": np.zeros(2, np.float32)}
    norm({"params": params, "batch_stats": stats})
    yield
    norm({"params": params, "batch_stats": stats} if cured else {"params": params})


@cause("structure", "params", source="google/flax#1223")
def parameters_frozen_by_a_restore(cured):
    norm = jax.jit(lambda params: optax.tree.norm(params))
    norm({"w": rows(4, 2)})
    yield
    norm({"w": rows(4, 2)} if cured else flax.core.freeze({"w": rows(4, 2)}))


@cause("structure", "metrics.name", source=f"{_LINEN}/api_reference/flax.struct")
def a_struct_with_a_static_name(cured):
    @flax.struct.dataclass
    class Metrics:
        total: np.ndarray
        name: str = flax.struct.field(pytree_node=False, default="loss")

    mean = jax.jit(lambda metrics: metrics.total.mean())
    mean(Metrics(rows()))
    yield
    mean(Metrics(rows(), "loss" if cured else "accuracy"))


@cause("structure", "cell.reverse", source=f"{_LINEN}/api_reference/flax.struct")
def a_pytree_node_with_a_flag(cured):
    class Cell(flax.struct.PyTreeNode):
        w: np.ndarray
        units: int = flax.struct.field(pytree_node=False)
        reverse: bool = flax.struct.field(pytree_node=False)

    run = jax.jit(lambda cell, x: (x[::-1] if cell.reverse else x) @ cell.w)
    run(Cell(rows(4, 2), 2, False), rows())
    yield
    run(Cell(rows(4, 2), 2, not cured), rows())


class _Net(nnx.Module):
    def __init__(self, rngs, width=3, depth=1, activation=jnp.tanh):
        self.layers = nnx.List([nnx.Linear(4 if i == 0 else width, width, rngs=rngs) for i in range(depth)])
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.activation = activation

    def __call__(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return self.drop(x)


def _forward():
    @nnx.jit
    def forward(model, x):
        return model(x)

    return forward


@cause("structure", "model.drop.deterministic", source=f"{_NNX}/mnist_tutorial")
def an_nnx_dropout_set_to_evaluation(cured):
    model, forward = _Net(nnx.Rngs(0)), _forward()
    forward(model, rows())
    if not cured:
        model.eval()
    yield
    forward(model, rows())


@cause("structure", "model.activation", source="google/flax#4329")
def an_nnx_module_built_again_with_a_lambda(cured):
    forward = _forward()
    forward(_Net(nnx.Rngs(0), activation=jnp.tanh if cured else lambda x: x * 2), rows())
    other = _Net(nnx.Rngs(1), activation=jnp.tanh if cured else lambda x: x * 2)
    yield
    forward(other, rows())


def _train():
    @nnx.jit
    def train_one_epoch(model, optimizer, x):
        grads = nnx.grad(lambda m: (m(x) ** 2).mean())(model)
        optimizer.update(model, grads)

    return train_one_epoch


@cause("structure", "optimizer.tx", source="google/flax#5548")
def an_nnx_optimizer_built_in_each_epoch(cured):
    train, tx = _train(), optax.adam(0.1)
    model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))
    train(model, nnx.Optimizer(model, tx if cured else optax.adam(0.1), wrt=nnx.Param), rows())
    other = nnx.Linear(4, 2, rngs=nnx.Rngs(1))
    optimizer = nnx.Optimizer(other, tx if cured else optax.adam(0.1), wrt=nnx.Param)
    yield
    train(other, optimizer, rows())


@cause("shape", "model.layers[0].kernel.shape[1]", "model.layers[0].bias.shape[0]", source=f"{_NNX}/nnx_basics")
def an_nnx_module_of_another_width(cured):
    class Shared(nnx.Module):
        def __init__(self, width, rngs):
            self.layers = nnx.List([nnx.Linear(4, width, rngs=rngs)])

        def __call__(self, x):
            return self.layers[0](x)

    @nnx.jit
    def norm(model):
        return sum((leaf**2).sum() for leaf in jax.tree.leaves(nnx.state(model)))

    first, second = Shared(3, nnx.Rngs(0)), Shared(3 if cured else 5, nnx.Rngs(0))
    for each, width in ((first, 3), (second, 3)):
        each.layers[0].out_features = width
    norm(first)
    yield
    norm(second)


@cause("structure", "model.layers", source=f"{_NNX}/nnx_basics")
def an_nnx_module_with_one_layer_more(cured):
    forward = _forward()
    forward(_Net(nnx.Rngs(0), width=4), rows())
    other = _Net(nnx.Rngs(0), width=4, depth=1 if cured else 2)
    yield
    forward(other, rows())


@cause("structure", "model.scale", source=f"{_NNX}/guides/performance")
def an_nnx_attribute_that_is_a_python_number(cured):
    class Scaled(nnx.Module):
        def __init__(self):
            self.w = nnx.Param(jnp.ones(4))
            self.scale = 1.0

        def __call__(self, x):
            return x * self.w[...] * self.scale

    model, forward = Scaled(), _forward()
    forward(model, rows())
    model.scale = 1.0 if cured else 0.5
    yield
    forward(model, rows())


@cause("shape", "x.shape[0]", source=f"{_NNX}/mnist_tutorial")
def an_nnx_model_on_the_rest_of_the_test_set(cured):
    model, forward = _Net(nnx.Rngs(0)), _forward()
    forward(model, rows(8))
    yield
    forward(model, rows(8 if cured else 6))


@cause("function", source="energnn/energnn#75")
def an_nnx_jit_made_in_each_training_step(cured):
    model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))

    def make():
        return nnx.jit(lambda m, x: m(x))

    once = make()
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else make())(model, rows())


@cause("structure", "state", "state['bias']", source=f"{_NNX}/guides/surgery")
def an_nnx_state_with_a_parameter_filtered_out(cured):
    model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))
    state = nnx.state(model)
    norm = jax.jit(lambda state: optax.tree.norm(jax.tree.leaves(state)))
    norm(state)
    other = state if cured else nnx.State({"kernel": state["kernel"]})
    yield
    norm(other)


@cause("static", "graphdef", source=f"{_NNX}/guides/performance")
def a_graphdef_passed_as_a_static_argument(cured):
    first, second = _Net(nnx.Rngs(0)), _Net(nnx.Rngs(0))
    if not cured:
        second.eval()
    apply = jax.jit(lambda graphdef, state, x: nnx.merge(graphdef, state)(x), static_argnums=0)
    apply(*nnx.split(first), rows())
    split = nnx.split(second)
    yield
    apply(*split, rows())


@cause("dtype", "model.kernel", "model.bias", source=f"{_NNX}/guides/flax_gspmd")
def an_nnx_model_cast_to_half_precision(cured):
    @nnx.jit
    def norm(model):
        return (model.kernel[...].astype(np.float32) ** 2).sum()

    model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))
    norm(model)
    if not cured:
        nnx.update(model, jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), nnx.state(model)))
    yield
    norm(model)


@cause("structure", "metrics.loss", "metrics", source=f"{_NNX}/mnist_tutorial")
def an_nnx_metric_more(cured):
    @nnx.jit
    def update(metrics, values):
        metrics.update(values=values)

    one = nnx.MultiMetric(accuracy=nnx.metrics.Average())
    two = nnx.MultiMetric(accuracy=nnx.metrics.Average(), loss=nnx.metrics.Average())
    update(two if cured else one, rows())
    yield
    update(two, rows())


@cause("committed", "model.kernel", "model.bias", source=f"{_NNX}/guides/flax_gspmd")
def an_nnx_model_put_on_its_device_late(cured):
    model, forward = nnx.Linear(4, 2, rngs=nnx.Rngs(0)), _forward()
    forward(model, on_device(rows()))
    if not cured:
        nnx.update(model, jax.device_put(nnx.state(model), jax.devices()[0]))
    yield
    forward(model, on_device(rows()))
