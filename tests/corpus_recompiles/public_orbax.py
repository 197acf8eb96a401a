"""Retold from Orbax's documentation: what a restore gives is another thing than what was saved."""

import tempfile
from collections import namedtuple

import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import serialization
from flax.training.train_state import TrainState

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import on_device, rows, weights

_ORBAX = "orbax.readthedocs.io/guides/checkpoint/checkpointing_pytrees"
_FLAX = "flax.readthedocs.io/guides/training_techniques/use_checkpointing"


def _restored(tree, target=None, **options):
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(f"{folder}/1", tree)
        checkpointer.wait_until_finished()
        return checkpointer.restore(f"{folder}/1", target, **options)


def _norm(name="state"):
    return jax.jit(lambda state: sum(leaf.sum() for leaf in jax.tree.leaves(state)))


@cause(
    "committed",
    "state['layer0']['b']",
    "state['layer0']['w']",
    source=_ORBAX,
)
def a_restored_state_is_committed(cured):
    norm, state = _norm(), on_device(weights(4, 2))
    restored = _restored(state)
    norm(restored if cured else state)
    yield
    norm(restored)


@cause("structure", "state", source=_ORBAX)
def a_named_tuple_restored_as_a_dictionary(cured):
    State = namedtuple("State", "params step")
    norm, state = _norm(), State(on_device(rows()), on_device(np.float32(1)))
    restored = _restored(state._asdict())
    other = State(**restored)
    norm(other if cured else state)
    yield
    norm(other if cured else restored)


@cause("structure", "state['opt'][0]", "state['opt']", source=_ORBAX)
def an_optimizer_state_restored_without_a_target(cured):
    norm, params = _norm(), weights(4, 2)
    state = {"opt": optax.adam(0.1).init(params)}
    restored = _restored(state, jax.tree.map(ocp.utils.to_shape_dtype_struct, state) if cured else None)
    norm(restored if cured else state)
    yield
    norm(restored)


@cause(
    "sharding",
    "state['layer0']['b']",
    "state['layer0']['w']",
    devices=4,
    source=_ORBAX,
)
def a_restore_onto_a_mesh(cured):
    spread = jax.sharding.NamedSharding(jax.make_mesh((4,), ("data",)), jax.sharding.PartitionSpec())
    norm, state = _norm(), jax.device_put(weights(4, 2), jax.devices()[0])
    target = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=spread), state)
    restored = _restored(state, target)
    norm(restored if cured else state)
    yield
    norm(restored)


@cause("dtype", "state['layer0']['b']", "state['layer0']['w']", source=_ORBAX)
def a_restore_into_half_precision(cured):
    norm, state = _norm(), weights(4, 2)
    kind = np.float32 if cured else np.float16
    target = jax.tree.map(lambda a: np.zeros(a.shape, kind), state)
    restored = _restored(state, target)
    norm(state)
    yield
    norm(restored)


@cause(
    "structure",
    "state['opt_state']",
    "state",
    source=_FLAX,
)
def a_checkpoint_without_the_optimizer(cured):
    norm, params = _norm(), weights(4, 2)
    whole = {"params": params, "opt_state": {"m": rows()}}
    restored = _restored(whole if cured else {"params": params})
    norm(jax.tree.map(np.asarray, whole))
    yield
    norm(jax.tree.map(np.asarray, restored))


@cause("structure", "state", source=_FLAX)
def a_train_state_restored_as_a_state_dict(cured):
    state = TrainState.create(apply_fn=len, params=on_device(weights(4, 2)), tx=_TX)
    norm = jax.jit(lambda state: sum(leaf.sum() for leaf in jax.tree.leaves(state)))
    as_dict = serialization.to_state_dict(state)
    norm(state)
    back = serialization.from_state_dict(state, as_dict) if cured else as_dict
    yield
    norm(back)


_TX = optax.sgd(0.1)
