"""Retold from JAX's tracker and documentation: what people found compiling again."""

import functools
from collections import namedtuple
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import on_device, rows, weights

_DOCS = "docs.jax.dev"


@cause("weak-type", "total", source="jax-ml/jax#3163")
def a_running_sum_that_starts_as_a_python_int(cured):
    add = jax.jit(lambda total, i: total + i)
    total = add(np.int32(0) if cured else 0, np.int32(0))
    yield
    add(total, np.int32(1))


@cause("weak-type", "x", source="jax-ml/jax#4274")
def a_result_fed_back_for_a_python_float(cured):
    shift = jax.jit(lambda x: x + np.float32(0))
    x = shift(np.float32(0) if cured else 0.0)
    yield
    shift(x)


@cause("dtype", "x", source="jax-ml/jax#4274")
def ones_in_one_test_and_a_range_in_another(cured):
    double = jax.jit(lambda x: x * 2)
    double(np.ones(10, np.float32))
    yield
    double(np.arange(10, dtype=np.float32 if cured else np.int32))


@dataclass(eq=False)
class _Settings:
    value: int


@cause("static", "config", source="jax-ml/jax#3701")
def a_dataclass_that_is_built_in_each_evaluation(cured):
    @functools.partial(jax.jit, static_argnums=1)
    def work(data, config):
        return data * config.value

    kept = _Settings(3)
    work(rows(), kept)
    yield
    work(rows(), kept if cured else _Settings(3))


class _Boxed:
    def __init__(self, values):
        self.values = values

    def __hash__(self):
        return hash(tuple(self.values))


@cause("static", "dummy", source="jax-ml/jax#4712")
def a_list_boxed_to_be_hashable_but_not_equal(cured):
    shifted = jax.jit(lambda dummy, x: x + 1, static_argnums=0)
    kept = _Boxed([0])
    shifted(kept, rows())
    yield
    shifted(kept if cured else _Boxed([0]), rows())


class _Counter:
    def __init__(self):
        self.a = 1

    @functools.partial(jax.jit, static_argnums=0)
    def f(self, x):
        return x + self.a

    def __hash__(self):
        return hash(self.a)

    def __eq__(self, other):
        return isinstance(other, _Counter) and other.a == self.a


@cause("static", "self", source="jax-ml/jax#28418")
def a_method_whose_object_hashes_by_its_contents(cured):
    first, second = _Counter(), _Counter()
    second.a = 1 if cured else 2
    first.f(rows())
    yield
    second.f(rows())


@cause("committed", "x", source="jax-ml/jax#15924")
def pretrained_weights_put_beside_fresh_ones(cured):
    same = jax.jit(lambda x: x * 1)
    fresh = on_device(np.zeros(1, np.float32))
    same(fresh)
    loaded = jax.device_put(np.zeros(1, np.float32), None if cured else fresh.sharding)
    yield
    same(loaded)


@cause("function", devices=2, source="jax-ml/jax#1600")
def a_pmap_of_a_function_made_in_each_round(cured):
    x = np.ones((2, 3), np.float32)
    once = jax.pmap(lambda v: v * 2)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.pmap(lambda v: v * 2))(x)


@cause("shape", "v.shape[1]", devices=2, source="jax-ml/jax#2021")
def a_pmap_on_a_shorter_last_batch(cured):
    double = jax.pmap(lambda v: v * 2)
    double(np.ones((2, 4), np.float32))
    yield
    double(np.ones((2, 4 if cured else 3), np.float32))


@cause("context", "mesh", devices=4, source="jax-ml/jax#6483")
def a_mesh_that_is_built_anew_with_other_axes(cured):
    double = jax.jit(lambda x: x * 2)
    with jax.set_mesh(jax.make_mesh((4,), ("a",))):
        double(rows())
    yield
    with jax.set_mesh(jax.make_mesh((4,), ("a" if cured else "b",))):
        double(rows())


@cause("function", source="jax-ml/jax#19129")
def a_function_redefined_in_a_loop(cured):
    once = jax.jit(lambda x: 2 * x)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(lambda x: 2 * x))(np.int32(3))


@cause("structure", "y", source="jax-ml/jax#19129")
def a_call_with_another_keyword_signature(cured):
    @jax.jit
    def f(x, y):
        return jnp.sin(x) + y["hi"]

    f(np.float32(1), {"hi": np.ones(4, np.float32)})
    yield
    if cured:
        f(np.float32(1), {"hi": np.ones(4, np.float32)})
    else:
        f(np.float32(1), y={"hi": np.ones(4, np.float32)})


@cause("shape", "y['hi'].shape[0]", source="jax-ml/jax#19129")
def a_leaf_of_a_dictionary_with_another_shape(cured):
    f = jax.jit(lambda x, y: jnp.sin(x) + y["hi"])
    f(np.float32(1), {"hi": np.ones(3, np.float32)})
    yield
    f(np.float32(1), {"hi": np.ones(3 if cured else 4, np.float32)})


@functools.partial(jax.tree_util.register_dataclass, data_fields=["a"], meta_fields=["name"])
@dataclass
class _Named:
    a: np.ndarray
    name: str


@cause("structure", "foo.name", source="jax-ml/jax#24204")
def a_static_field_of_a_registered_dataclass(cured):
    total = jax.jit(lambda foo: foo.a.sum())
    total(_Named(rows(), "first"))
    yield
    total(_Named(rows(), "first" if cured else "second"))


@cause("static", "s", "s[0]", source="jax-ml/jax#3708")
def a_slice_as_a_static_argument(cured):
    part = jax.jit(lambda arr, s: arr[s[0] : s[1]], static_argnums=1)
    part(rows(), (1, 2))
    yield
    part(rows(), (1, 2) if cured else (2, 4))


@cause("function", source="jax-ml/jax#1394")
def an_eager_loop_whose_body_is_written_inside_it(cured):
    zero = on_device(np.float32(0))

    def body(i, total):
        return total + i

    for turn in range(3):
        if turn == 2:
            yield
        jax.lax.fori_loop(0, 3, body if cured else lambda i, total: total + i, zero)


@cause("function", source="jax-ml/jax#2814")
def a_jit_written_inside_a_helper(cured):
    def helper(x):
        @jax.jit
        def inner(v):
            return v * 3

        return inner

    once = helper(None)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else helper(None))(rows())


@cause("shape", "x.shape[0]", source="jax-ml/jax#2814")
def a_square_of_another_length(cured):
    square = jax.jit(lambda x: x * x)
    square(np.ones(3, np.float32))
    yield
    square(np.ones(3 if cured else 4, np.float32))


@cause("shape", "frames.shape[0]", "query_points.shape[0]", source="google-deepmind/tapnet#44")
def videos_of_another_length(cured):
    @jax.jit
    def track(frames, query_points):
        return frames.mean(axis=(1, 2, 3))[:, None] + query_points.sum()

    track(np.ones((6, 4, 4, 3), np.float32), np.ones((5, 3), np.float32))
    yield
    track(np.ones((6 if cured else 9, 4, 4, 3), np.float32), np.ones((5, 3), np.float32))


@cause("weak-type", "data.time", source="google-deepmind/mujoco#2306")
def a_simulation_whose_time_starts_weak(cured):
    Data = namedtuple("Data", "q time")
    step = jax.jit(lambda data: Data(data.q + 1, data.time + np.float32(0.002)))
    data = step(Data(np.zeros(3, np.float32), np.float32(0) if cured else 0.0))
    yield
    step(data)


@cause("weak-type", "state.stepsize", source="google/jaxopt#451")
def a_solver_whose_first_state_has_a_weak_step_size(cured):
    State = namedtuple("State", "iter stepsize")

    @jax.jit
    def update(params, state):
        return params - state.stepsize, State(state.iter + 1, jnp.minimum(state.stepsize * 2, jnp.float32(1)))

    params, state = update(rows(), State(np.int32(0), np.float32(1) if cured else 1.0))
    yield
    update(params, state)


@cause("committed", "surface", source="uwplasma/vmex#321")
def a_lane_first_called_with_uncommitted_arrays(cured):
    residual = jax.jit(lambda surface: surface.sum())
    residual(on_device(rows()))
    here = jax.device_put(rows(), jax.devices()[0])
    yield
    residual(on_device(rows()) if cured else here)


@cause("static", "n", source=f"{_DOCS}/jit-compilation")
def a_loop_count_that_is_static(cured):
    @functools.partial(jax.jit, static_argnames=["n"])
    def g(x, n):
        i = 0
        while i < n:
            i += 1
        return x + i

    g(np.int32(10), 20)
    yield
    g(np.int32(10), 20 if cured else 21)


@cause("function", source=f"{_DOCS}/jit-compilation")
def a_partial_of_a_loop_body_in_a_loop(cured):
    def unjitted(prev, i):
        return prev + i

    def once():
        return functools.partial(unjitted)

    kept = jax.jit(once())
    for turn in range(3):
        if turn == 2:
            yield
        (kept if cured else jax.jit(once()))(np.int32(1), np.int32(2))


@cause("static", "is_training", source=f"{_DOCS}/control-flow")
def a_python_branch_on_a_flag(cured):
    @functools.partial(jax.jit, static_argnames="is_training")
    def f(x, is_training):
        return x * 2 if is_training else x

    f(rows(), is_training=True)
    yield
    f(rows(), is_training=cured)


@cause("static", "length", source=f"{_DOCS}/control-flow")
def an_example_loop_over_a_length(cured):
    @functools.partial(jax.jit, static_argnums=(1,))
    def example(x, length):
        return jnp.ones((length,)) * x

    example(np.float32(4), 10)
    yield
    example(np.float32(4), 10 if cured else 12)


@cause("static", "mult", source=f"{_DOCS}/faq")
def a_method_with_its_object_static(cured):
    class Custom:
        def __init__(self, x, mult):
            self.x = x
            self.mult = mult

        def calc(self, y):
            return _calc(self.mult, self.x, y)

    @functools.partial(jax.jit, static_argnums=0)
    def _calc(mult, x, y):
        return x * y if mult else y

    Custom(np.float32(2), True).calc(np.float32(3))
    yield
    Custom(np.float32(2), cured).calc(np.float32(3))


@jax.tree_util.register_pytree_node_class
class _Scaled:
    def __init__(self, x, mult):
        self.x = x
        self.mult = mult

    def tree_flatten(self):
        return (self.x,), {"mult": self.mult}

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children, **aux)


@cause("structure", "c['mult']", "c.mult", source=f"{_DOCS}/faq")
def a_registered_class_with_a_flag_beside_its_arrays(cured):
    calc = jax.jit(lambda c, y: c.x * y if c.mult else y)
    calc(_Scaled(np.float32(2), True), np.float32(3))
    yield
    calc(_Scaled(np.float32(2), cured), np.float32(3))


@cause("weak-type", "b", source=f"{_DOCS}/type_promotion")
def a_scalar_that_is_weak_in_one_call(cured):
    product = jax.jit(lambda a, b: a * b)
    product(rows(), np.float32(2))
    yield
    product(rows(), np.float32(2) if cured else 2.0)


@cause("dtype", "key", source=f"{_DOCS}/jep/9263-typed-keys")
def a_raw_key_from_an_old_checkpoint(cured):
    draw = jax.jit(lambda key: jax.random.normal(key, (3,)))
    draw(jax.random.key(0))
    old = jax.random.key(1) if cured else jax.random.PRNGKey(1)
    yield
    draw(old)


@cause("context", "jax_enable_x64", source=f"{_DOCS}/default_dtypes")
def double_precision_switched_on_after_the_first_cell(cured):
    total = jax.jit(lambda x: x.sum())
    total(rows())
    yield
    if cured:
        total(rows())
    else:
        jax.config.update("jax_enable_x64", True)
        try:
            total(rows())
        finally:
            jax.config.update("jax_enable_x64", False)


@cause("donation", "x", source=f"{_DOCS}/faq#buffer-donation")
def a_buffer_donated_in_the_second_cell(cured):
    def add(x, y):
        return x + y

    jax.jit(add)(rows(), rows())
    other = jax.jit(add) if cured else jax.jit(add, donate_argnums=0)
    yield
    other(rows(), rows())


@cause("shape", "x.shape[0]", source=f"{_DOCS}/aot")
def a_call_beside_a_program_compiled_ahead(cured):
    f = jax.jit(lambda x, y: 2 * x + y)
    f.lower(np.ones(3, np.float32), np.float32(4)).compile()
    f(np.ones(3, np.float32), np.float32(4))
    yield
    f(np.ones(3 if cured else 5, np.float32), np.float32(4))


@cause("function", source=f"{_DOCS}/automatic-differentiation")
def a_gradient_taken_in_each_step(cured):
    def loss(w, x):
        return ((x @ w) ** 2).mean()

    once = jax.jit(jax.grad(loss))
    w = rows(4, 1)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(jax.grad(loss)))(w, rows())


@cause("function", source=f"{_DOCS}/automatic-vectorization")
def a_convolution_mapped_in_each_call(cured):
    def convolve(x, w):
        return (x[:3] * w).sum()

    once = jax.jit(jax.vmap(convolve, in_axes=(0, None)))
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(jax.vmap(convolve, in_axes=(0, None))))(rows(), np.ones(3, np.float32))


@cause("rank", "x.ndim", source=f"{_DOCS}/automatic-vectorization")
def a_single_example_after_a_batch(cured):
    predict = jax.jit(lambda w, x: x @ w)
    predict(rows(4, 2), rows(8))
    yield
    predict(rows(4, 2), rows(8) if cured else rows(8)[0])


@cause("function", source=f"{_DOCS}/notebooks/autodiff_cookbook")
def a_jacobian_made_in_each_call(cured):
    def f(w):
        return jnp.tanh(w)

    once = jax.jit(jax.jacrev(f))
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(jax.jacrev(f)))(np.ones(3, np.float32))


@cause("function", source=f"{_DOCS}/gradient-checkpointing")
def a_checkpointed_block_written_in_the_loop(cured):
    def block(x):
        return jnp.sin(jnp.sin(x))

    once = jax.jit(jax.checkpoint(block))
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(jax.checkpoint(block)))(rows())


@cause("function", source=f"{_DOCS}/external-callbacks")
def a_callback_in_a_function_that_is_rebuilt(cured):
    def make():
        @jax.jit
        def f(x):
            return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

        return f

    once = make()
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else make())(np.ones(4, np.float32))


@cause("structure", "params[1]", source=f"{_DOCS}/working-with-pytrees")
def a_layer_that_became_a_list_of_its_arrays(cured):
    forward = jax.jit(lambda params, x: sum(leaf.sum() for leaf in jax.tree.leaves(params)) + x.sum())
    both = [{"w": rows(), "b": rows()}, {"w": rows(), "b": rows()}]
    forward(both, rows())
    yield
    forward(both if cured else [both[0], [rows(), rows()]], rows())


@cause("structure", "tree['b']", source=f"{_DOCS}/working-with-pytrees")
def none_is_a_node_and_no_leaf(cured):
    norm = jax.jit(lambda tree: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree)))
    norm({"a": rows(), "b": rows()})
    yield
    norm({"a": rows(), "b": rows() if cured else None})


@cause("function", source=f"{_DOCS}/sharp-bits")
def a_function_that_reads_a_global_and_is_rewrapped(cured):
    state = {"g": 0.0}

    def make():
        return jax.jit(lambda x: x + state["g"])

    once = make()
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else make())(np.float32(4))


@cause("dtype", "counts", source=f"{_DOCS}/sharp-bits")
def a_count_that_overflowed_into_a_wider_type(cured):
    rate = jax.jit(lambda counts: counts / 2)
    rate(np.ones(4, np.int8))
    yield
    rate(np.ones(4, np.int8 if cured else np.int16))


@cause("shape", "x.shape[0]", source=f"{_DOCS}/export/shape_poly")
def batches_of_eight_and_sixteen(cured):
    f = jax.jit(lambda x: x.sum(axis=1))
    for size in (8, 16, 24):
        f(rows(32 if cured else size))
    yield
    f(rows(32))


@cause("shape", "x.shape[0]", source="openillumi.com/jax-jit-recompile-dynamic-shape")
def one_axis_whose_number_of_elements_varies(cured):
    f = jax.jit(lambda x: (x + 10) * 100)
    f(np.ones((3, 2, 2), np.float32))
    yield
    f(np.ones((3 if cured else 4, 2, 2), np.float32))


@cause("structure", "cfg.scale", "cfg['scale']", source="pytroubles.com/jax-jit-scan-and-pytrees")
def a_config_box_scanned_with_another_scale(cured):
    class ConfigBox(_Scaled):
        def __init__(self, vec, scale):
            self.vec, self.scale = vec, scale

        def tree_flatten(self):
            return (self.vec,), {"scale": self.scale}

    jax.tree_util.register_pytree_node_class(ConfigBox)
    run = jax.jit(lambda cfg: cfg.vec + jnp.ones(cfg.scale))
    run(ConfigBox(np.ones(2, np.float32), 2))
    yield
    run(ConfigBox(np.ones(2, np.float32), 2 if cured else 1))


@cause("evicted", source=f"{_DOCS}/_autosummary/jax.clear_caches")
def caches_cleared_against_a_leak_of_memory(cured):
    f = jax.jit(lambda x: x * 2)
    f(rows())
    yield
    if not cured:
        jax.clear_caches()
    f(rows())


@cause("layout", "x", source=f"{_DOCS}/notebooks/layout")
def a_result_in_a_layout_that_xla_chose(cured):
    from jax.experimental.layout import Format, Layout

    transposed = jax.device_put(rows(8, 4), Format(Layout((1, 0)), jax.sharding.SingleDeviceSharding(jax.devices()[0])))
    plain = jax.device_put(rows(8, 4), jax.devices()[0])
    total = jax.jit(lambda x: x.sum())
    total(plain)
    yield
    total(plain if cured else transposed)


@cause("options", "xla_cpu_enable_fast_math", source=f"{_DOCS}/xla_flags")
def a_second_wrapper_with_a_flag_of_xlas(cured):
    def f(x):
        return x / 3

    jax.jit(f)(rows())
    other = jax.jit(f, compiler_options=None if cured else {"xla_cpu_enable_fast_math": True})
    yield
    other(rows())


@cause("device", "x", devices=2, source=f"{_DOCS}/faq#controlling-data-and-computation-placement-on-devices")
def data_put_on_the_third_device(cured):
    add = jax.jit(lambda x: x + 1)
    add(jax.device_put(rows(), jax.devices()[0]))
    other = jax.device_put(rows(), jax.devices()[0 if cured else 1])
    yield
    add(other)


@cause("shape", "params['layer0']['w'].shape[0]", "x.shape[1]", source=f"{_DOCS}/notebooks/thinking_in_jax")
def a_model_with_more_features(cured):
    from tests.corpus_recompiles.models import fresh, predict

    f = jax.jit(fresh(predict))
    f(weights(4, 2), rows(8, 4))
    yield
    width = 4 if cured else 6
    f(weights(width, 2), rows(8, width))
