"""Retold from public threads: functions made anew, and static values that differ."""

import copy
import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import rows


@cause("function", source="pyro-ppl/numpyro#2171")
def a_loop_over_a_state_that_is_closed_over(cured):
    def body(state):
        return state + 1

    def run_closed(start):
        return jax.jit(lambda: jax.lax.fori_loop(0, 3, lambda i, state: body(state), start))()

    once = jax.jit(lambda start: jax.lax.fori_loop(0, 3, lambda i, state: body(state), start))
    start = jnp.zeros(2)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else run_closed)(start)


@cause("function", source="kazewong/flowMC#133")
def a_proposal_scanned_outside_of_any_jit(cured):
    def propose(key, position, once=None):
        def body(carry, step):
            return carry + 0.1 * step, carry

        return jax.lax.scan(once or body, position, steps)[0]

    def kept(carry, step):
        return carry + 0.1 * step, carry

    steps = jnp.arange(4.0)
    for turn in range(3):
        if turn == 2:
            yield
        propose(turn, jnp.zeros(()), kept if cured else None)


@cause("function", source="google/jaxopt#563")
def a_solver_whose_while_loop_is_no_longer_jitted(cured):
    def solve(init, limit, functions):
        condition, body = functions or (lambda state: state[0] < limit, lambda state: (state[0] + 1, state[1] * 0.5))
        return jax.lax.while_loop(condition, body, (jnp.int32(0), init))

    kept = lambda state: state[0] < 3, lambda state: (state[0] + 1, state[1] * 0.5)
    for turn in range(3):
        init = jnp.float32(turn)
        if turn == 2:
            yield
        solve(init, 3, kept if cured else None)


@cause("function", source="jax-ml/jax#14743")
def a_callable_that_hashes_alike_and_is_not_equal(cured):
    class Identity:
        def __call__(self, carry, x):
            return carry, x * 2

        def __hash__(self):
            return 0

    kept, numbers = Identity(), jnp.arange(3.0)
    for turn in range(3):
        if turn == 2:
            yield
        jax.lax.scan(kept if cured else Identity(), None, numbers)


@cause("function", source="patrick-kidger/equinox#268")
def a_method_of_each_of_several_modules_jitted(cured):
    class Scale(eqx.Module):
        factor: float

        def apply(self, x):
            return x * self.factor

    modules = [Scale(factor) for factor in (1.0, 2.0, 3.0)]
    once = jax.jit(lambda module, x: module.apply(x))
    for turn, module in enumerate(modules):
        if turn == 2:
            yield
        if cured:
            once(module, rows())
        else:
            jax.jit(module.apply)(rows())


@cause("static", "f", source="patrick-kidger/equinox#291")
def a_bound_method_of_another_module_as_a_static_argument(cured):
    class Model(eqx.Module):
        scale: float

        def forward(self, x):
            return x * self.scale

    apply = jax.jit(lambda f, x: f(x), static_argnums=0)
    apply(Model(2.0).forward, rows())
    method = Model(2.0 if cured else 3.0).forward
    yield
    apply(method, rows())


@cause("static", "perturbation", source="bardhh/cbfkit#22")
def a_default_made_where_none_is_given(cured):
    def nothing(x):
        return jnp.zeros_like(x)

    @functools.partial(jax.jit, static_argnames=("perturbation",))
    def simulate(x, perturbation):
        return x + perturbation(x)

    def execute(x, perturbation=None):
        default = nothing if cured else (lambda x: jnp.zeros_like(x))
        return simulate(x, perturbation=perturbation or default)

    execute(rows())
    execute(rows())
    yield
    execute(rows())


@cause("static", "weights", source="jax-ml/jax#4572")
def an_array_in_a_wrapper_that_hashes_by_its_sum(cured):
    class Hashed:
        def __init__(self, value):
            self.value = value

        def __hash__(self):
            return int(self.value.sum())

        def __eq__(self, other):
            return isinstance(other, Hashed) and bool((self.value == other.value).all())

    scale = jax.jit(lambda weights, x: x * weights.value, static_argnums=0)
    scale(Hashed(np.array([1.0, 2.0, 3.0, 4.0])), rows())
    other = Hashed(np.array([1.0, 2.0, 3.0, 4.0 if cured else 5.0]))
    yield
    scale(other, rows())


@cause("static", "problem", source="jax-ml/jax#9024")
def a_pytree_given_as_a_static_argument(cured):
    @jax.tree_util.register_pytree_node_class
    class Problem:
        def __init__(self, data):
            self.data = data

        def tree_flatten(self):
            return (self.data,), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    solve = jax.jit(lambda problem, x: x + problem.data.sum(), static_argnums=0)
    problem = Problem(np.arange(4))
    solve(problem, rows())
    other = problem if cured else Problem(np.arange(4))
    yield
    solve(other, rows())


@cause("structure", "x.x", "x", source="google/flax#3863")
def a_pytree_module_with_another_number(cured):
    class Block(nnx.Pytree):
        def __init__(self, x):
            self.w = jnp.ones(2)
            self.x = x

    total = jax.jit(lambda x: x.w.sum() * x.x)
    first, second = Block(1), Block(1 if cured else 2)
    total(first)
    yield
    total(second)


@cause("structure", "system", source="jax-ml/jax#1967")
def settings_in_a_dictionary_beside_the_children(cured):
    class System:
        def __init__(self, state, settings):
            self.state, self.settings = state, settings

    jax.tree_util.register_pytree_node(
        System,
        lambda system: ((system.state,), tuple(sorted(system.settings.items()))),
        lambda settings, children: System(children[0], dict(settings)),
    )
    step = jax.jit(lambda system: system.state * system.settings["dt"])
    step(System(rows(), {"dt": 0.1, "steps": 5}))
    yield
    step(System(rows(), {"dt": 0.1 if cured else 0.2, "steps": 5}))


@cause("structure", "shape.idx", source="jax-ml/jax#33043")
def an_index_that_the_method_never_reads(cured):
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Shape:
        length: object
        idx: int = dataclasses.field(default=1, metadata={"static": True})

    @jax.jit
    def area(shape):
        return shape.length * shape.length

    area(Shape(np.float32(10), 2))
    yield
    area(Shape(np.float32(10), 2 if cured else 3))


@cause("static", "T", source="jax-ml/jax#2251")
def an_epidemic_over_more_days(cured):
    @functools.partial(jax.jit, static_argnames=("T",))
    def pandemic(state, T):
        return jax.lax.scan(lambda s, _: (s * 1.1, s.sum()), state, None, length=T)

    pandemic(jnp.ones(3), T=5)
    yield
    pandemic(jnp.ones(3), T=5 if cured else 6)


@cause("static", "is_training", source="google-deepmind/dm-haiku#187")
def dropout_by_a_static_flag(cured):
    @functools.partial(jax.jit, static_argnums=(3,))
    def model_loss(params, rng, x, is_training):
        kept = jax.random.bernoulli(rng, 0.9, x.shape) if is_training else 1.0
        return jnp.sum(params * x * kept)

    rng = jax.random.key(0)
    model_loss(np.float32(2), rng, rows(), True)
    yield
    model_loss(np.float32(2), rng, rows(), cured)


@cause("static", "num_inference_steps", source="huggingface/diffusers#1096")
def more_denoising_steps_for_the_next_prompt(cured):
    @functools.partial(jax.jit, static_argnames=("num_inference_steps",))
    def generate(latents, num_inference_steps):
        for _ in range(num_inference_steps):
            latents = latents * 0.9
        return latents

    generate(jnp.ones((2, 4)), num_inference_steps=2)
    yield
    generate(jnp.ones((2, 4)), num_inference_steps=2 if cured else 3)


@cause("function", source="pyro-ppl/numpyro#514")
def a_sampler_that_was_pickled_and_read_back(cured):
    class Sampler:
        def __init__(self):
            self.scale = 2.0

        def sample(self, x):
            return x * self.scale

    sampler = Sampler()
    run = jax.jit(sampler.sample)
    run(rows())
    run(rows())
    again = run if cured else jax.jit(copy.deepcopy(sampler).sample)
    yield
    again(rows())


@cause("function", source="pyro-ppl/numpyro#1347")
def an_observation_closed_over_in_each_run(cured):
    def potential(z, y):
        return (z - y) ** 2

    def run(y):
        return jax.jit(lambda z: potential(z, y))(np.float32(0))

    once = jax.jit(potential)
    for turn in range(3):
        if turn == 2:
            yield
        once(np.float32(0), np.float32(turn)) if cured else run(np.float32(turn))


@cause("function", source="GalacticDynamics/unxt#906")
def a_conversion_wrapped_in_its_own_method(cured):
    class Track:
        def __init__(self, points):
            self.points = points

        def lengths(self):
            @jax.jit
            def length(points):
                return jnp.linalg.norm(points, axis=-1)

            return length(self.points)

    @jax.jit
    def length(points):
        return jnp.linalg.norm(points, axis=-1)

    track = Track(rows())
    for turn in range(3):
        if turn == 2:
            yield
        length(track.points) if cured else track.lengths()


@cause("shape", "hidden.shape[0]", source="vllm-project/tpu-inference#2223")
def logits_of_more_requests_than_were_warmed_up(cured):
    compute_logits = jax.jit(lambda head, hidden: hidden @ head)
    head = rows(4, 16)
    for requests in (8, 16, 32):
        compute_logits(head, jnp.ones((requests, 4)))
    other = jnp.ones((32 if cured else 24, 4))
    yield
    compute_logits(head, other)


@cause("static", "model", "model.act", source="patrick-kidger/equinox#1089")
def the_static_half_of_a_partition_made_again(cured):
    class Model(eqx.Module):
        weight: jax.Array
        act: object

        def __call__(self, x):
            return self.act(x @ self.weight)

    def make():
        return eqx.partition(Model(jnp.ones((4, 2)), lambda x: x * 2), eqx.is_array)

    forward = jax.jit(lambda arrays, model, x: eqx.combine(arrays, model)(x), static_argnums=1)
    arrays, static = make()
    forward(arrays, static, rows())
    other, again = (arrays, static) if cured else make()
    yield
    forward(other, again, rows())
