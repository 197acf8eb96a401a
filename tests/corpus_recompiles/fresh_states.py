"""Our own, written after the ledger learned of them: configurations, classes, transformations, meshes."""

import dataclasses
import enum
import typing
from functools import partial

import equinox as eqx
import flax.nnx as nnx
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import rows


@dataclasses.dataclass(frozen=True)
class _Attention:
    heads: int = 4
    dropout: float = 0.1
    window: tuple = (128, 128)


@dataclasses.dataclass(frozen=True)
class _Model:
    name: str = "a model with a long name, as its checkpoint has it, with a date and a hash behind it 2024-05-01-abcdef"
    layers: int = 12
    attention: _Attention = _Attention()
    schedule: tuple = tuple(range(40))
    activation: typing.Any = jax.nn.gelu


class _Sizes(typing.NamedTuple):
    width: int = 8
    depth: int = 2


class _Mode(enum.Enum):
    TRAIN = 1
    EVAL = 2


def _apply():
    return jax.jit(lambda x, config: x * 2, static_argnames="config")


def _changed(before, after):
    def scenario(cured):
        apply = _apply()
        apply(rows(), config=before)
        yield
        apply(rows(), config=before if cured else after)

    return scenario


def _config(name, leaf, before, after):
    scenario = _changed(before, after)
    scenario.__name__ = name
    cause("static", leaf)(scenario)


_config("a_head_more_in_a_nested_config", "config.attention.heads", _Model(), _Model(attention=_Attention(8)))
_config(
    "dropout_switched_off_for_evaluation", "config.attention.dropout", _Model(),
    _Model(attention=_Attention(dropout=0.0)),
)  # fmt: skip
_config("a_window_in_a_tuple", "config.attention.window[1]", _Model(), _Model(attention=_Attention(window=(128, 64))))
_config("a_layer_more_behind_a_long_name", "config.layers", _Model(), _Model(layers=13))
_config("the_last_entry_of_a_schedule", "config.schedule[39]", _Model(), _Model(schedule=(*range(39), 0)))
_config("a_schedule_of_another_length", "config.schedule", _Model(), _Model(schedule=(1, 2)))
_config("another_activation_in_a_config", "config.activation", _Model(), _Model(activation=jax.nn.relu))
_config("a_lambda_in_a_config", "config.activation", _Model(), _Model(activation=lambda x: x))
_config("a_named_tuple_of_sizes", "config.depth", _Sizes(), _Sizes(depth=3))
_config("a_member_of_an_enum", "config", _Mode.TRAIN, _Mode.EVAL)
_config("a_frozen_dict_of_settings", "config['optimizer']['lr']",
        flax.core.freeze({"optimizer": {"lr": 0.1}}), flax.core.freeze({"optimizer": {"lr": 0.2}}))  # fmt: skip
_config("a_shape_as_a_static_tuple", "config[0]", (4, 128), (5, 128))
_config("minus_one_and_minus_two_as_axes", "config", -1, -2)
_config("a_long_prompt_that_differs_at_its_end", "config", "p" * 200 + "a", "p" * 200 + "b")
_config("a_dtype_as_a_static_argument", "config", jnp.float32, jnp.bfloat16)
_config("a_frozenset_of_names", "config", frozenset({"a"}), frozenset({"a", "b"}))
_config("a_none_that_became_a_number", "config", None, 3)


class _Net(eqx.Module):
    weight: jax.Array
    config: _Model = eqx.field(static=True, default=_Model())


@flax.struct.dataclass
class _State:
    weight: jax.Array
    config: _Model = flax.struct.field(pytree_node=False, default=_Model())


class _Block(nnx.Module):
    def __init__(self, config=_Model()):
        self.weight = nnx.Param(jnp.ones(4))
        self.config = config

    def __call__(self, x):
        return x * self.weight[...]


def _static_field(name, jit, make, leaf):
    def scenario(cured):
        apply = jit(lambda model, x: (model.weight[...] if hasattr(model, "is_nnx") else model.weight) * x)
        apply(make(_Model()), rows())
        other = make(_Model() if cured else _Model(attention=_Attention(8)))
        yield
        apply(other, rows())

    scenario.__name__ = name
    cause("structure", leaf)(scenario)


_W, _BATCH = jnp.ones(4), jnp.ones((3, 4))
_static_field("a_config_in_an_equinox_module", jax.jit, lambda c: _Net(_W, c), "model.config.attention.heads")
_static_field(
    "a_config_in_an_equinox_module_through_filter_jit", eqx.filter_jit, lambda c: _Net(_W, c),
    "model.config.attention.heads",
)  # fmt: skip
_static_field("a_config_in_a_flax_dataclass", jax.jit, lambda c: _State(_W, c), "model.config.attention.heads")
_static_field("a_config_in_an_nnx_module", nnx.jit, _Block, "model.config.attention.heads")


def _named_tuple():
    class State(typing.NamedTuple):
        weight: jax.Array

    return State(_W)


def _dataclass():
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        weight: jax.Array

    return State(_W)


def _pytree_node():
    @jax.tree_util.register_pytree_node_class
    class State:
        def __init__(self, weight):
            self.weight = weight

        def tree_flatten(self):
            return (self.weight,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    return State(_W)


def _flax_dataclass():
    @flax.struct.dataclass
    class State:
        weight: jax.Array

    return State(_W)


def _equinox():
    class State(eqx.Module):
        weight: jax.Array

    return State(_W)


def _nnx():
    class State(nnx.Module):
        def __init__(self):
            self.weight = nnx.Param(_W)

    return State()


def _redefined(name, make, jit, leaf="state", wrap=lambda state: state, read=lambda state: state):
    def scenario(cured):
        apply = jit(lambda state, x: read(state).weight * x)
        kept = make()
        apply(wrap(kept), rows())
        other = kept if cured else make()
        yield
        apply(wrap(other), rows())

    scenario.__name__ = name
    cause("class", leaf)(scenario)


_redefined("a_named_tuple_defined_twice", _named_tuple, jax.jit)
_redefined("a_dataclass_defined_twice", _dataclass, jax.jit)
_redefined("a_node_class_defined_twice", _pytree_node, jax.jit)
_redefined("a_flax_dataclass_defined_twice", _flax_dataclass, jax.jit)
_redefined("an_equinox_module_defined_twice", _equinox, jax.jit)
_redefined("an_equinox_module_defined_twice_through_filter_jit", _equinox, eqx.filter_jit)
_redefined("an_nnx_module_defined_twice", _nnx, nnx.jit)
_redefined(
    "a_class_inside_of_a_list_defined_twice", _named_tuple, jax.jit, "state['opt'][0]",
    lambda state: {"opt": [state]}, lambda state: state["opt"][0],
)  # fmt: skip


@cause("class", "config")
def a_frozen_config_defined_twice(cured):
    def make():
        @dataclasses.dataclass(frozen=True)
        class Config:
            rate: float = 0.1

        return Config()

    apply, kept = _apply(), make()
    apply(rows(), config=kept)
    other = kept if cured else make()
    yield
    apply(rows(), config=other)


def _transformed(name, transform, plain=lambda f: f(_W)):
    def scenario(cured):
        transform(lambda x: x.sum())  # with what it runs outside of any jit
        f = jax.jit(lambda x: jnp.sin(x).sum())
        plain(f)
        transform(lambda x: f(x)) if cured else None
        yield
        transform(lambda x: f(x))

    scenario.__name__ = name
    cause("transformation")(scenario)


_transformed("a_loss_that_is_differentiated_too", lambda f: jax.grad(f)(_W))
_transformed("a_value_and_its_gradient", lambda f: jax.value_and_grad(f)(_W))
_transformed("a_jacobian_vector_product", lambda f: jax.jvp(f, (_W,), (_W,)))
_transformed("a_vector_jacobian_product", lambda f: jax.vjp(f, _W))
_transformed("a_linearization", lambda f: jax.linearize(f, _W))
_transformed("a_batch_by_vmap", lambda f: jax.vmap(f)(_BATCH))
_transformed("gradients_of_each_example", lambda f: jax.vmap(jax.grad(f))(_BATCH))
_transformed("a_gradient_after_a_batch", lambda f: jax.grad(f)(_W), lambda f: jax.vmap(f)(_BATCH))
_transformed("a_gradient_and_a_value_in_a_batch", lambda f: jax.vmap(jax.value_and_grad(f))(_BATCH))
_transformed("a_forward_jacobian", lambda f: jax.jacfwd(f)(_W))
_transformed("a_second_derivative", lambda f: jax.jvp(jax.grad(f), (_W,), (_W,)), lambda f: jax.grad(f)(_W))


def _mesh(order):
    return Mesh(np.array(jax.devices())[order], "data")


@cause("sharding", "x", devices=4)
def a_mesh_in_another_order(cured):
    step = jax.jit(lambda x: x * 2)
    orders = [0, 1, 2, 3], [3, 2, 1, 0]
    one, two = (jax.device_put(rows(), NamedSharding(_mesh(order), P("data"))) for order in orders)
    step(one)
    yield
    step(one if cured else two)


@cause("sharding", "x", devices=4)
def two_devices_swapped_in_a_mesh(cured):
    step = jax.jit(lambda x: x.sum())
    orders = [0, 1, 2, 3], [0, 2, 1, 3]
    one, two = (jax.device_put(rows(), NamedSharding(_mesh(order), P("data"))) for order in orders)
    step(one)
    yield
    step(one if cured else two)


@cause("sharding", "x", devices=4)
def a_device_and_a_mesh_of_that_device(cured):
    step = jax.jit(lambda x: x * 2)
    device = jax.devices()[0]
    one, two = (jax.device_put(rows(), where) for where in (device, NamedSharding(_mesh([0]), P("data"))))
    step(one)
    yield
    step(one if cured else two)


@cause("context", "mesh", devices=4)
def a_mesh_around_a_call_in_another_order(cured):
    step = jax.jit(lambda x: x * 2)
    with jax.set_mesh(_mesh([0, 1, 2, 3])):
        step(rows())
    yield
    with jax.set_mesh(_mesh([0, 1, 2, 3] if cured else [3, 2, 1, 0])):
        step(rows())


@cause("structure", "batch['inputs']", "batch['input']")
def a_column_that_was_renamed(cured):
    step = jax.jit(lambda batch: sum(leaf.sum() for leaf in jax.tree.leaves(batch)))
    step({"input": rows(), "y": rows()})
    yield
    step({"input" if cured else "inputs": rows(), "y": rows()})


@cause("structure", "params['head']")
def a_head_that_was_added_to_the_parameters(cured):
    step = jax.jit(lambda params, x: sum(leaf.sum() for leaf in jax.tree.leaves(params)) * x)
    step({"body": rows()}, rows())
    yield
    step({"body": rows()} if cured else {"body": rows(), "head": rows()}, rows())


@cause("structure", "opt_state[0]")
def another_optimizer_in_the_second_phase(cured):
    step = jax.jit(lambda opt_state, g: jax.tree.map(lambda leaf: leaf * 2, (opt_state, g)))
    params = {"w": _W}
    step(optax.sgd(0.1).init(params), params)
    other = optax.sgd(0.1).init(params) if cured else optax.sgd(0.1, momentum=0.9).init(params)
    yield
    step(other, params)


@cause("context", "jax_default_matmul_precision")
def a_precision_around_some_calls(cured):
    step = jax.jit(lambda x: x @ x.T)
    step(rows())
    yield
    with jax.default_matmul_precision("bfloat16" if not cured else None):
        step(rows())


@cause("donation", "state['w']")
def a_second_wrapper_that_donates(cured):
    def step(state):
        return jax.tree.map(lambda leaf: leaf + 1, state)

    jax.jit(step)({"w": rows()})
    yield
    jax.jit(step, **({} if cured else {"donate_argnames": "state"}))({"w": rows()})


@cause("static", "n")
def a_static_default_that_is_given_once(cured):
    @partial(jax.jit, static_argnames="n")
    def repeat(x, n=2):
        return jnp.tile(x, n)

    repeat(rows())
    yield
    repeat(rows()) if cured else repeat(rows(), n=2)
