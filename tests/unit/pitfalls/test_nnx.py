"""Modules of flax.nnx: `nnx.jit` brings back what a call changed in them, and `jax.jit` doesn't."""

import jax.numpy as jnp
from flax import nnx

from tests.examples.linted import found, hits

X = jnp.ones(3)


class Sown(nnx.Module):
    def __init__(self):
        self.scale = nnx.Param(jnp.ones(()))

    def __call__(self, x):
        self.last = nnx.Intermediate(x * 2)
        return x * self.scale


def applied(model, x):
    return model(x)


def fills(model, log):
    log["last"] = model.scale * 2  # DICT


def test_what_nnx_jit_brings_back_is_changed_for_the_caller():
    model = Sown()
    assert not found("argument-mutation", nnx.jit(applied), model, X)
    nnx.jit(applied)(model, X)
    assert model.last[...].tolist() == [2, 2, 2]  # which is so


def test_a_dict_beside_a_module_is_still_a_copy():
    (one,) = hits("argument-mutation", nnx.jit(fills), Sown(), {}, mark="DICT")
    assert "copy of `log`" in one.message
