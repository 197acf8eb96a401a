"""Public gotchas about gradients that are NaN, retold: each with points that show it, and what it computes in NumPy.

A function is a gotcha unless its name starts with `fine_`. Its docstring names where it was told of; `points` are
values of its first argument, the first of them those at which the gradient is NaN.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Case:
    """A function, values of its first argument, what it computes by NumPy in float64, and its other arguments."""

    function: object
    points: tuple
    oracle: object
    others: tuple = ()


CASES = []


def case(*points, oracle, others=()):
    def add(function):
        CASES.append(Case(function, tuple(np.asarray(point, float) for point in points), oracle, others))
        return function

    return add


def pick(test, yes, no):
    with np.errstate(all="ignore"):
        return np.where(test, yes(), no() if callable(no) else no).sum()


MASK = np.array([True, False, True])
V = [0.5, -1.5, 2.0]
P = [0.2, 0.7, 1.3]
CENTRES = np.array([[0.0, 0.0], [-1.0, 2.0]])
ROWS = np.array([[True, False, True], [False, False, False]])  # of which one is masked as a whole


@case([0.0, 1.0, -1.0], P, oracle=lambda x: pick(x > 0, lambda: np.log(x), 0.0))
def guarded_logarithm(x):
    """https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where"""
    return jnp.where(x > 0.0, jnp.log(x), 0.0).sum()


@case([0.0, 0.5, 4.0], V, oracle=lambda x: pick(x < 1, lambda: x, lambda: np.sqrt(np.abs(x))))
def root_above_one(x):
    """https://github.com/jax-ml/jax/issues/5798"""
    y = jnp.sqrt(jnp.abs(x))
    return jnp.where(x < 1.0, x, y).sum()


@case(
    [[0.0, 0.0], [3.0, 4.0], [0.1, 0.2]],
    [[1.0, 2.0], [3.0, 4.0], [0.1, 0.3]],
    oracle=lambda x: pick(np.sqrt((x**2).sum(1)) > 0.5, lambda: np.sqrt((x**2).sum(1)), 1.0),
)
def row_lengths(x):
    """https://github.com/jax-ml/jax/issues/347"""
    lengths = jnp.sqrt(jnp.sum(x**2, axis=1))
    return jnp.sum(jnp.where(lengths > 0.5, lengths, jnp.ones_like(lengths)))


@case([3.0, 0.0, -5.0], V, oracle=lambda a: np.where(np.array([0, 1, 0]) > 0.5, 0.0, np.arctan2(a, a)).sum())
def diagonal_angle(a):
    """https://github.com/jax-ml/jax/issues/1052"""
    b = jnp.arctan2(a, a)
    return jnp.sum(jnp.where(jnp.array([0.0, 1.0, 0.0]) > 0.5, 0.0, b))


@case([0.0, 0.0], [1.0, -2.0], oracle=lambda x: (x**2).sum())
def squared_norm(x):
    """https://github.com/jax-ml/jax/issues/4177"""
    return jnp.linalg.norm(x) ** 2


@case([0.0, 0.0, 0.0], V, oracle=lambda x: np.sqrt((x**2).sum()))
def plain_norm(x):
    """https://github.com/jax-ml/jax/issues/3058"""
    return jnp.linalg.norm(x)


@case([1.0, 1.0], [1.0, 3.0], oracle=np.std)
def deviation_of_a_constant(x):
    """https://github.com/jax-ml/jax/issues/11716"""
    return jnp.std(x)


@case([10.0, 0.5], [0.3, -0.2], oracle=lambda y: np.arccos(np.clip(y, -1, 1)).sum())
def clipped_angle(y):
    """https://github.com/jax-ml/jax/issues/23649"""
    return jnp.arccos(jnp.clip(y, -1.0, 1.0)).sum()


@case([1.0, 0.0, 0.0], [0.2, 0.5, 0.3], oracle=lambda p: np.arccos(min(p[0] ** 2, 1.0)))
def angle_to_an_axis(p):
    """https://github.com/jax-ml/jax/issues/15798"""
    return jnp.arccos(jnp.vdot(p, p * jnp.array([1.0, 0.0, 0.0])))


@case([0.0, 0.5, 1.5], P, oracle=lambda p: pick(p > 0, lambda: p * np.log2(3 * p), 0.0))
def sum_without_nan(p):
    """https://github.com/jax-ml/jax/issues/573"""
    return jnp.nansum(p * jnp.log2(p / jnp.full(3, 1 / 3)))


@case([0.0, 0.5, 0.5], [0.2, 0.3, 0.5], oracle=lambda p: pick(p > 0, lambda: p * np.log2(p * 3), 0.0))
def divergence_from_uniform(p):
    """https://github.com/jax-ml/jax/issues/573"""
    q = jnp.full(3, 1 / 3)
    return jnp.where(p > 0, p * jnp.log2(p / q), 0.0).sum()


@case([3.0, 10000.0, 1.0], V, oracle=lambda x: np.exp(np.where(MASK, x, -np.inf)).sum(), others=(MASK,))
def masked_exponentials(x, mask):
    """https://github.com/jax-ml/jax/issues/19490"""
    return jnp.sum(jnp.where(mask, jnp.exp(x), 0.0))


@case([0.0, 1.0, -2.0], V, oracle=lambda x: pick(x == 0, lambda: 1.0, lambda: np.sin(x) / x))
def own_sinc(x):
    """https://github.com/jax-ml/jax/pull/1722"""
    return jnp.where(x == 0, 1.0, jnp.sin(x) / x).sum()


@case([-1.0, 2.0, 0.5], P, oracle=lambda x: pick(x > 0, lambda: np.sqrt(x), 0.0))
def selected_root(x):
    """https://github.com/jax-ml/jax/issues/20601"""
    return jax.lax.select(x > 0, jnp.sqrt(x), jnp.zeros_like(x)).sum()


@case([0.0, 0.0, 0.0], V, oracle=lambda v: (v / np.sqrt((v**2).sum())).sum() if v.any() else 0.0)
def normalized(v):
    """https://github.com/jax-ml/jax/issues/9159"""
    length = jnp.linalg.norm(v)
    return jnp.where(length > 0, v / length, jnp.zeros_like(v)).sum()


@case([100.0, 1.0, -100.0], V, oracle=lambda x: np.logaddexp(x, 0).sum())
def own_softplus(x):
    """https://github.com/jax-ml/jax/issues/2107"""
    return jnp.where(x > 30.0, x, jnp.log(1.0 + jnp.exp(x))).sum()


@case([200.0, 0.5, -300.0], V, oracle=lambda x: np.tanh(x).sum())
def own_tanh(x):
    """https://github.com/jax-ml/jax/issues/764"""
    small = (jnp.exp(2 * x) - 1) / (jnp.exp(2 * x) + 1)
    return jnp.where(x > 20.0, 1.0, jnp.where(x < -20.0, -1.0, small)).sum()


@case([0.0, 1.0, 0.5], P, oracle=lambda p: -pick(p > 0, lambda: p * np.log(p), 0.0))
def entropy(p):
    """https://github.com/jax-ml/jax/pull/15737"""
    return -jnp.where(p > 0, p * jnp.log(p), 0.0).sum()


@case([0.0, 1.0, 2.5], [0.5, 1.5, 2.25], oracle=lambda x: np.sqrt(np.mod(x, 1) ** 2).sum())
def length_of_the_rest(x):
    """https://github.com/jax-ml/jax/issues/12409"""
    rest = x - jnp.floor(x)
    return jnp.power(rest**2, 0.5).sum()


@case([0.0, 0.0], [0.5, 2.0], oracle=lambda x: np.hypot(x[0], x[1]))
def own_hypot(x):
    """https://github.com/jax-ml/jax/pull/4893"""
    return jnp.sqrt(x[0] * x[0] + x[1] * x[1])


@case([0.0, 0.0], [0.5, 2.0], oracle=lambda x: np.arctan2(x[1], x[0]))
def phase(x):
    """https://github.com/jax-ml/jax/issues/15407"""
    return jnp.arctan2(x[1], x[0])


@case(
    [[0.0, 0.0], [1.0, 1.0]],
    [[0.0, 0.5], [1.0, 2.0]],
    oracle=lambda x: np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1)).sum(),
)
def all_distances(x):
    """https://github.com/jax-ml/jax/issues/3058"""
    return jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)).sum()


@case([[0.0, 0.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], oracle=lambda x: np.sqrt((x**2).sum(1)).sum())
def norms_of_rows(x):
    """https://github.com/jax-ml/jax/issues/3058"""
    return jnp.linalg.norm(x, axis=1).sum()


@case([0.0, 0.3, -0.4], V, oracle=lambda x: pick(np.abs(x) > 1e-6, lambda: (1 - np.cos(x)) / x**2, 0.5))
def small_rotation(x):
    """https://github.com/jax-ml/jax/issues/1052"""
    return jnp.where(jnp.abs(x) > 1e-6, (1 - jnp.cos(x)) / x**2, 0.5).sum()


@case([0.0, 2.0, -1.0], V, oracle=lambda x: pick(x != 0, lambda: np.expm1(x) / x, 1.0))
def growth_rate(x):
    """https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where"""
    ratio = jnp.expm1(x) / x
    return jnp.where(x != 0, ratio, 1.0).sum()


@case([1.0, 0.5, 3.0], P, oracle=lambda x: pick(x < 1, lambda: 2.0 / (1 - x), 0.0), others=(2.0,))
def pole_at_one(x, w):
    """https://github.com/jax-ml/jax/issues/1052"""
    return jnp.where(x < 1, w / (1 - x), 0).sum()


@case([-1.0, 0.5, -2.0], P, oracle=lambda x: pick(x > -1, lambda: np.log1p(x), 0.0))
def logarithm_of_one_plus(x):
    """https://github.com/jax-ml/jax/issues/5798"""
    return jnp.where(x > -1, jnp.log1p(x), 0).sum()


@case([0.0, 0.5, -1.0], P, oracle=lambda x: pick(x > 0, lambda: x**0.25, lambda: 2 * x))
def fourth_root(x):
    """https://github.com/jax-ml/jax/pull/383"""
    return jnp.where(x > 0, x**0.25, 2 * x).sum()


@case([0.0, 2.0, -1.0], P, oracle=lambda x: pick(x > 0, lambda: 1 / np.sqrt(x), 0.0))
def inverse_root(x):
    """https://github.com/jax-ml/jax/issues/5798"""
    return jnp.where(x > 0, jax.lax.rsqrt(x), 0.0).sum()


@case([1.0, 0.3, -1.0], [0.1, -0.4, 0.8], oracle=lambda x: pick(np.abs(x) < 1, lambda: np.arcsin(x), 0.0))
def arcsine_inside(x):
    """https://github.com/jax-ml/jax/issues/15798"""
    return jnp.where(jnp.abs(x) < 1, jnp.arcsin(x), 0.0).sum()


@case([0.0, 0.5, 0.2], P, oracle=lambda x: np.maximum(np.log(np.maximum(x, 1e-300)), -20).sum())
def bounded_logarithm(x):
    """https://github.com/jax-ml/jax/issues/23649"""
    return jnp.maximum(jnp.log(x), -20.0).sum()


@case([0.0, 0.5, 2.0], P, oracle=lambda x: np.minimum(1 / np.maximum(x, 1e-300), 100.0).sum())
def bounded_reciprocal(x):
    """https://github.com/jax-ml/jax/issues/23649"""
    return jnp.minimum(1.0 / jnp.abs(x), 100.0).sum()


@case([0.0, 1.0, 2.0], P, oracle=lambda x: np.nan_to_num(np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0.0)).sum())
def replaced_infinity(x):
    """https://github.com/jax-ml/jax/issues/12409"""
    return jnp.nan_to_num(jnp.log(x), neginf=0.0).sum()


@case([0.0, 1.0, 0.5], P, oracle=lambda x: pick(x > 0, lambda: x * np.log(x), 0.0))
def accumulated(x):
    """https://github.com/jax-ml/jax/pull/15737"""

    def step(total, y):
        return total + jnp.where(y > 0, y * jnp.log(y), 0.0), None

    return jax.lax.scan(step, 0.0, x)[0]


@case([0.0, 1.0, -1.0], P, oracle=lambda x: pick(x > 0, lambda: np.sqrt(x), 0.0))
def mapped_over(x):
    """https://github.com/jax-ml/jax/issues/9159"""
    return jax.vmap(lambda y: jnp.where(y > 0, jnp.sqrt(y), 0.0))(x).sum()


@case([0.0, 1.0, -1.0], P, oracle=lambda x: pick(x > 0, lambda: np.log(x), 0.0))
def inside_a_jit(x):
    """https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where"""

    @jax.jit
    def guarded(y):
        return jnp.where(y > 0, jnp.log(y), 0.0)

    return guarded(x).sum()


@case([0.0, 1.0, -1.0], P, oracle=lambda x: pick(x > 0, lambda: np.log(np.sqrt(x)), 0.0))
def nested_singularities(x):
    """https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where"""
    return jnp.where(x > 0, jnp.log(jnp.sqrt(x)), 0.0).sum()


@case([0.0, 2.0, 4.0], P, oracle=lambda x: pick(MASK & (x > 0), lambda: np.log(x), 0.0), others=(MASK,))
def padded_logarithm(x, mask):
    """https://github.com/jax-ml/jax/issues/17070"""
    return jnp.where(mask & (x > 0), jnp.log(x), 0.0).sum()


@case([0.0, 0.5, 2.0], P, oracle=lambda x: pick(x > 0, lambda: np.log(x), 0.0))
def sum_where(x):
    """https://github.com/jax-ml/jax/issues/17070"""
    return jnp.sum(jnp.log(x), where=x > 0, initial=0.0)


@case([1.0, 2.0, 0.5], [2.0, 3.0, 1.5], oracle=lambda x: pick(x > 1, lambda: np.arccosh(x), 0.0))
def inverse_hyperbolic(x):
    """https://github.com/jax-ml/jax/pull/14126"""
    return jnp.where(x > 1, jnp.arccosh(x), 0.0).sum()


@case([1.0, 0.2, -1.0], [0.2, -0.4, 0.7], oracle=lambda x: pick(np.abs(x) < 1, lambda: np.arctanh(x), 0.0))
def fisher_transform(x):
    """https://github.com/jax-ml/jax/issues/15798"""
    return jnp.where(jnp.abs(x) < 1, jnp.arctanh(x), 0.0).sum()


@case([0.0, 0.5, 1.5], P, oracle=lambda x: pick(x > 0, lambda: (x**0.5 - 1) / 0.5, 0.0))
def power_transform(x):
    """https://github.com/jax-ml/jax/issues/7440"""
    power = 0.5
    return jnp.where(x > 0, (x**power - 1) / power, 0.0).sum()


@case([2.0, 2.0, 2.0], V, oracle=lambda x: ((x - x.mean()) / x.std()).sum() if x.std() > 0 else 0.0)
def standard_score(x):
    """https://github.com/jax-ml/jax/issues/11716"""
    scale = jnp.std(x)
    return jnp.where(scale > 0, (x - x.mean()) / scale, 0.0).sum()


@case([0.0, 0.0, 0.0], V, oracle=lambda x: np.sqrt((x**2).mean()))
def root_mean_square(x):
    """https://github.com/jax-ml/jax/issues/21723"""
    return jnp.sqrt(jnp.mean(jnp.square(x)))


@case([0.0, 0.0, 0.0], V, oracle=lambda x: np.exp(-np.sqrt((x**2).sum())))
def exponential_kernel(x):
    """https://github.com/jax-ml/jax/issues/3058"""
    distance = jnp.sum(x**2) ** 0.5
    return jnp.exp(-distance)


@case([1.0, 1.0, 1.0], V, oracle=lambda x: np.sqrt(((x - 1) ** 2).sum()))
def distance_to_a_target(x):
    """https://github.com/jax-ml/jax/issues/21723"""
    return jnp.sqrt(jnp.sum((x - 1.0) ** 2))


@case([0.0, 1.0, -2.0], V, oracle=lambda x: pick(x == 0, lambda: 0.0, lambda: np.sin(x) ** 2 / x))
def condition_of_equality(x):
    """https://github.com/jax-ml/jax/pull/1722"""
    return jnp.where(x == 0, 0.0, jnp.sin(x) ** 2 / x).sum()


@case([-100.0, 0.5, 100.0], V, oracle=lambda x: (1 / (1 + np.exp(-x))).sum())
def own_sigmoid(x):
    """https://github.com/jax-ml/jax/issues/17117"""
    return jnp.where(x >= 0, 1 / (1 + jnp.exp(-x)), jnp.exp(x) / (1 + jnp.exp(x))).sum()


@case([100.0, 0.5, 2.0], P, oracle=lambda y: (y + np.log(-np.expm1(-y))).sum())
def inverse_softplus(y):
    """https://github.com/jax-ml/jax/issues/2107"""
    return jnp.where(y > 30, y, jnp.log(jnp.expm1(y))).sum()


@case(
    [[0.0, 0.0], [3.0, 4.0]],
    [[1.0, 2.0], [3.0, 5.0]],
    oracle=lambda x: np.sqrt(((x[:, None] - CENTRES[None]) ** 2).sum(-1)).sum(),
    others=(CENTRES.astype(np.float32),),
)
def distances_to_centres(x, centres):
    """https://github.com/jax-ml/jax/issues/3058"""
    return jnp.linalg.norm(x[:, None] - centres[None], axis=-1).sum()


# Not gotchas ---------------------------------------------------------------------------------------------------------


@case([0.0, 1.0, -1.0], P, oracle=lambda x: pick(x > 0, lambda: np.log(x), 0.0))
def fine_twice(x):
    """https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where"""
    return jnp.where(x > 0.0, jnp.log(jnp.where(x > 0.0, x, 1.0)), 0.0).sum()


@case([0.0, 1.0, -1.0], P, oracle=lambda x: pick(x > 0, lambda: np.sqrt(x), 0.0))
def fine_cond_under_vmap(x):
    """https://github.com/jax-ml/jax/pull/5658"""
    return jax.vmap(lambda y: jax.lax.cond(y > 0, lambda z: jnp.sqrt(z), lambda z: 0.0, y))(x).sum()


@case([0.0, 0.0, 0.0], V, oracle=lambda x: (x**2).sum())
def fine_sum_of_squares(x):
    """https://github.com/jax-ml/jax/issues/21723"""
    return jnp.sum(x**2)


@case([0.0, 1.0, -2.0], V, oracle=lambda x: np.sinc(x).sum())
def fine_sinc(x):
    """https://github.com/jax-ml/jax/pull/1722"""
    return jnp.sinc(x).sum()


@case([0.0, 100.0, -100.0], V, oracle=lambda x: np.logaddexp(x, 0).sum())
def fine_softplus(x):
    """https://github.com/jax-ml/jax/issues/2107"""
    return jax.nn.softplus(x).sum()


@case([1.0, 1.0], [1.0, 3.0], oracle=np.var)
def fine_variance(x):
    """https://github.com/jax-ml/jax/issues/11716"""
    return jnp.var(x)


@case([0.0, 1.0, -2.0], V, oracle=lambda x: np.maximum(x, 0.1 * x).sum())
def fine_leaky(x):
    """https://github.com/jax-ml/jax/issues/347"""
    return jnp.where(x > 0, x, 0.1 * x).sum()


@case([0.0, 0.0, 0.0], V, oracle=lambda x: np.sqrt((x**2).sum() + 1e-6))
def fine_smoothed_norm(x):
    """https://github.com/jax-ml/jax/issues/3058"""
    return jnp.sqrt(jnp.sum(x**2) + 1e-6)


@case([0.0, 1.0, 2.0], V, oracle=lambda x: np.where(MASK, x, 0.0).sum() / 2, others=(MASK,))
def fine_masked_mean(x, mask):
    """https://github.com/jax-ml/jax/issues/17070"""
    return jnp.where(mask, x, 0.0).sum() / jnp.maximum(mask.sum(), 1)


@case([10.0, 0.5], [0.3, -0.2], oracle=lambda y: np.arccos(np.clip(y, -0.999, 0.999)).sum())
def fine_clipped_inside(y):
    """https://github.com/jax-ml/jax/issues/23649"""
    return jnp.arccos(jnp.clip(y, -0.999, 0.999)).sum()


@case([0.0, 0.5, 0.5], P, oracle=lambda p: -(np.log(p + 1e-6) * p).sum())
def fine_entropy_with_a_floor(p):
    """https://github.com/jax-ml/jax/pull/15737"""
    return -jnp.sum(p * jnp.log(p + 1e-6))


@case(
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    oracle=lambda x: (np.exp(x[0]) * ROWS[0] / (np.exp(x[0]) * ROWS[0]).sum())[0],
    others=(ROWS,),
)
def fine_masked_softmax(x, mask):
    """https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where"""
    weights = jax.nn.softmax(jnp.where(mask, x, -jnp.inf), axis=-1)
    return jnp.where(mask, weights, 0.0)[:, 0].sum()


@case([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], oracle=lambda x: np.log(np.exp(x[0])[ROWS[0]].sum()), others=(ROWS,))
def fine_masked_logsumexp(x, mask):
    """https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where"""
    sums = jax.scipy.special.logsumexp(jnp.where(mask, x, -jnp.inf), axis=-1)
    return jnp.where(mask.any(-1), sums, 0.0).sum()
