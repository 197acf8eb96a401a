"""A table of calls whose second one compiles again: what changed, before and after. They are our own."""

import collections
import datetime
import functools
import typing
from fractions import Fraction
from pathlib import PurePosixPath

import equinox as eqx
import flax.core
import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np

from tests.corpus_recompiles.causes import cause

F, H, INT = (np.ones(shape, kind) for shape, kind in (((8, 4), np.float32), ((8, 4), np.float16), ((8, 4), np.int32)))
J, SMALL, LAST = jnp.asarray(F), np.ones((5, 4), np.float32), np.ones((3, 4), np.float32)
KEY, RAW, KEYS = jax.random.key(0), jax.random.PRNGKey(0), jax.random.split(jax.random.key(0), 4)
BF16, C64, B = F.astype(jnp.bfloat16), F.astype(np.complex64), F.astype(bool)
SCALAR, ONE = np.float32(1), np.ones(1, np.float32)
WEAK = jnp.asarray(1.0)


class Pair(typing.NamedTuple):
    a: typing.Any
    b: typing.Any


def touch(tree):
    return [leaf for leaf in jax.tree.leaves(tree)]


def f(x):
    return touch(x)


def _of_argument(name, kind, leaf, before, after):
    def scenario(cured):
        jitted = jax.jit(lambda x: f(x))  # looked up here: a fix is executed around it
        jitted(before)
        yield
        jitted(before if cured else after)

    scenario.__name__ = name
    cause(kind, *((leaf,) if isinstance(leaf, str) else leaf))(scenario)


for _row in (
    ("an_epochs_last_batch_of_three", "shape", "x.shape[0]", F, LAST),
    ("a_batch_in_a_dict_with_labels", "shape", ("x['image'].shape[0]", "x['label'].shape[0]"),
     {"image": F, "label": np.ones(8)}, {"image": SMALL, "label": np.ones(5)}),
    ("a_pair_of_which_one_grew", "shape", "x[1].shape[1]", (F, F), (F, np.ones((8, 6), np.float32))),
    ("a_named_pair_of_which_one_grew", "shape", "x.b.shape[1]", Pair(F, F), Pair(F, np.ones((8, 6), np.float32))),
    ("an_image_without_its_batch", "rank", "x.ndim", np.ones((1, 8, 8, 3)), np.ones((8, 8, 3))),
    ("a_loss_scale_of_shape_one", "rank", "x.ndim", SCALAR, ONE),
    ("half_precision_for_evaluation", "dtype", "x", F, H),
    ("bfloat16_activations", "dtype", "x", F, BF16),
    ("labels_as_integers", "dtype", "x['label']", {"label": F}, {"label": INT}),
    ("a_mask_as_floats", "dtype", "x['mask']", {"mask": B}, {"mask": F}),
    ("a_spectrum", "dtype", "x", F, C64),
    ("int_then_float_step", "dtype", "x", 1, 1.0),
    ("a_flag_as_a_number", "dtype", "x", True, 1),
    ("uint8_images", "dtype", "x", F, F.astype(np.uint8)),
    ("int8_weights", "dtype", "x['w']", {"w": F}, {"w": F.astype(np.int8)}),
    ("a_python_rate_then_an_array", "weak-type", "x", 0.1, np.float32(0.1)),
    ("a_weak_array_from_jnp", "weak-type", "x", SCALAR, WEAK),
    ("a_counter_in_a_state", "weak-type", "x['step']", {"step": 0}, {"step": np.int32(1)}),
    ("a_temperature_in_a_list", "weak-type", "x[0]", [1.0], [np.float32(1.0)]),
    ("a_typed_key_after_a_raw_one", "dtype", "x", RAW, KEY),
    ("keys_for_each_device", "rank", "x.ndim", KEY, KEYS),
    ("a_list_that_became_a_tuple", "structure", "x", [F, F], (F, F)),
    ("a_tuple_that_became_a_named_one", "structure", "x", (F, F), Pair(F, F)),
    ("a_frozen_dict", "structure", "x", {"w": F}, flax.core.freeze({"w": F})),
    ("an_ordered_dict", "structure", "x", {"a": F, "b": F}, collections.OrderedDict(a=F, b=F)),
    ("an_ordered_dict_in_another_order", "structure", "x",
     collections.OrderedDict(a=F, b=F), collections.OrderedDict(b=F, a=F)),
    ("a_default_dict", "structure", "x", {"w": F}, collections.defaultdict(list, {"w": F})),
    ("a_layer_more", "structure", "x", [F, F], [F, F, F]),
    ("a_mask_that_appears", "structure", "x['mask']", {"x": F}, {"x": F, "mask": B}),
    ("a_mask_that_goes", "structure", "x['mask']", {"x": F, "mask": B}, {"x": F}),
    ("a_mask_that_is_none", "structure", "x['mask']", {"x": F, "mask": None}, {"x": F, "mask": B}),
    ("a_cache_that_was_none", "structure", "x.b", Pair(F, None), Pair(F, F)),
    ("a_key_by_number", "structure", "x[1]", {0: F}, {0: F, 1: F}),
    ("statistics_of_a_batch", "structure", "x['batch_stats']", {"params": F}, {"params": F, "batch_stats": F}),
    ("a_nested_key", "structure", "x['a']['c']", {"a": {"b": F}}, {"a": {"b": F, "c": F}}),
    ("an_array_in_place_of_a_dict", "structure", "x", {"w": F}, F),
):  # fmt: skip
    _of_argument(*_row)


def _of_static(name, leaf, before, after):
    def scenario(cured):
        jitted = jax.jit(lambda x, n: x + 1, static_argnums=1)
        jitted(F, before)
        yield
        jitted(F, before if cured else after)

    scenario.__name__ = name
    cause("static", leaf)(scenario)


for _row in (
    ("a_number_of_steps", "n", 10, 11), ("a_reduction_by_name", "n", "mean", "sum"),
    ("a_training_flag", "n", True, False), ("a_rate_as_a_static_float", "n", 1e-3, 1e-4),
    ("axes_as_a_tuple", "n[1]", (0, 1), (0, 2)), ("axes_of_another_number", "n", (0, 1), (0,)),
    ("a_module_of_linen", "n.features", nn.Dense(2), nn.Dense(3)),
    ("a_nested_module_of_linen", "n.layers[0].features", nn.Sequential((nn.Dense(2),)), nn.Sequential((nn.Dense(3),))),
    ("a_path_as_a_static_argument", "n", PurePosixPath("a"), PurePosixPath("b")),
    ("a_date_as_a_static_argument", "n", datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)),
    ("a_fraction", "n", Fraction(1, 2), Fraction(1, 3)), ("bytes_as_a_static_argument", "n", b"a", b"b"),
    ("a_range", "n", range(3), range(4)), ("a_slice_in_a_tuple", "n[0][1]", ((0, 4),), ((0, 5),)),
    ("a_dtype_by_name", "n", "float32", "bfloat16"), ("an_activation", "n", jax.nn.relu, jax.nn.gelu),
    ("a_partial_made_each_time", "n", functools.partial(jnp.sum, axis=0), functools.partial(jnp.sum, axis=0)),
    ("a_lambda_made_each_time", "n", lambda x: x, lambda x: x),
    ("an_infinite_bound", "n", float("inf"), -float("inf")), ("a_large_integer", "n", 2**70, 2**70 + 1),
    ("minus_one_after_minus_two", "n[0]", (-2,), (-1,)),
):  # fmt: skip
    _of_static(*_row)


def _of_filtered(name, leaf, before, after):
    def scenario(cured):
        jitted = eqx.filter_jit(lambda config, x: x + 1)
        jitted(before, J)
        yield
        jitted(before if cured else after, J)

    scenario.__name__ = name
    cause("static", leaf)(scenario)


for _row in (
    ("a_rate_in_a_dict_through_filter_jit", "config['lr']", {"lr": 0.1}, {"lr": 0.2}),
    ("a_name_in_a_tuple_through_filter_jit", "config[1]", (1, "a"), (1, "b")),
    ("a_flag_through_filter_jit", "config", True, False),
    ("a_function_through_filter_jit", "config", jnp.sin, jnp.cos),
    ("a_depth_in_a_named_tuple_through_filter_jit", "config.b", Pair(1, 2), Pair(1, 3)),
):
    _of_filtered(*_row)


def _of_function(name, make, kind="function"):
    def scenario(cured):
        kept = make()
        kept(F)
        other = kept if cured else make()
        yield
        other(F)

    scenario.__name__ = name
    cause(kind)(scenario)


class _Trainer:
    def __init__(self):
        self.step = jax.jit(self.run)

    def run(self, x):
        return x + 1

    def __call__(self, x):
        return self.step(x)


class _Callable:
    def __call__(self, x):
        return x * 3


def _scaled(x, by):
    return x * by


for _name, _make in (
    ("a_lambda_jitted_in_a_loop", lambda: jax.jit(lambda x: x + 2)),
    ("a_bound_method_jitted_in_a_loop", lambda: _Trainer()),
    ("a_partial_jitted_in_a_loop", lambda: jax.jit(functools.partial(_scaled, by=2))),
    ("a_gradient_jitted_in_a_loop", lambda: jax.jit(jax.grad(lambda x: x.sum()))),
    ("a_vmap_jitted_in_a_loop", lambda: jax.jit(jax.vmap(lambda x: x.sum()))),
    ("a_checkpoint_jitted_in_a_loop", lambda: jax.jit(jax.checkpoint(lambda x: x.sum()))),
    ("a_callable_object_jitted_in_a_loop", lambda: jax.jit(_Callable())),
    ("a_filter_jit_in_a_loop", lambda: eqx.filter_jit(lambda x: x + 3)),
    ("an_nnx_jit_in_a_loop", lambda: nnx.jit(lambda x: x + 4)),
    ("a_second_derivative_in_a_loop", lambda: jax.jit(jax.jacfwd(lambda x: x.sum()))),
):
    _of_function(_name, _make)
