"""Whole programs, loops and all, give and print under hot paths what they do without."""

import collections
import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import random

import explorer as ex
from tests.unit.hotpath.oracle import described

pytestmark = pytest.mark.slow
KEY = random.key(0)
X = random.normal(KEY, (64, 8))
Y = jnp.sin(X.sum(1, keepdims=True))
WORLD = {}


def adam_over_batches():
    params = {"in": random.normal(KEY, (8, 16)) * 0.3, "out": random.normal(KEY, (16, 1)) * 0.3}
    optimizer = optax.adam(optax.exponential_decay(1e-2, 10, 0.9))
    state = optimizer.init(params)

    def loss(params, x, y):
        return jnp.mean((jnp.tanh(x @ params["in"]) @ params["out"] - y) ** 2)

    def step(params, state, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    for turn in range(40):
        batch = np.arange(16) + turn % 4 * 16
        params, state, value = step(params, state, X[batch], Y[batch])
        if turn % 10 == 0:
            print(turn, f"{float(value):.3f}")
    return params


def a_rate_that_falls_by_a_global():
    WORLD["rate"] = 0.1

    def step(w):
        return w - WORLD["rate"] * jax.grad(lambda w: jnp.sum((w - 3) ** 2))(w)

    w = jnp.zeros(4)
    for turn in range(30):
        if turn == 15:
            WORLD["rate"] = 0.01
        w = step(w)
    return w


def a_loop_that_stops_early():
    def step(w):
        value, grad = jax.value_and_grad(lambda w: jnp.sum((w - 1) ** 4))(w)
        return w - 0.05 * grad, value

    w, best = jnp.zeros(3), 1e9
    for turn in range(60):
        w, value = step(w)
        if float(value) < 0.01:
            print("stopped at", turn)
            break
        best = min(best, float(value))
    return w


def a_walk_of_metropolis():
    def log_density(x):
        return -0.5 * jnp.sum(x**2)

    def move(key, x):
        first, second = random.split(key)
        proposed = x + 0.5 * random.normal(first, x.shape)
        taken = jnp.log(random.uniform(second)) < log_density(proposed) - log_density(x)
        return jnp.where(taken, proposed, x), taken

    x, key, count, walk = jnp.zeros(3), KEY, 0, []
    for _ in range(50):
        key, used = random.split(key)
        x, taken = move(used, x)
        count += int(taken)
        walk.append(x)
    print(count, "were taken")
    return jnp.stack(walk)


def a_hamiltonian_walk_whose_step_is_adapted():
    State = collections.namedtuple("State", "place value slope")

    def log_density(q):
        return -jnp.sum(q**4) / 4

    def leapfrog(state, momentum, size, count):
        q, slope, value = state.place, state.slope, state.value
        for _ in range(count):
            momentum = momentum + 0.5 * size * slope
            q = q + size * momentum
            value, slope = jax.value_and_grad(log_density)(q)
            momentum = momentum + 0.5 * size * slope
        return State(q, value, slope), momentum

    q = jnp.ones(2)
    state, key, walk = State(q, *jax.value_and_grad(log_density)(q)), KEY, []
    for turn in range(25):
        key, first = random.split(key)
        size = 0.1 if turn < 12 else 0.05
        state, _ = leapfrog(state, random.normal(first, (2,)), size, 3)
        walk.append(state.place)
    return jnp.stack(walk)


def springs():
    def pull(x):
        return -2.0 * x + jnp.roll(x, 1, 0) * 0.5 + jnp.roll(x, -1, 0) * 0.5

    def step(x, v, dt=0.01):
        v = v + dt / 2 * pull(x)
        x = x + dt * v
        return x, v + dt / 2 * pull(x)

    x, v = random.normal(KEY, (6, 2)), jnp.zeros((6, 2))
    for turn in range(40):
        x, v = step(x, v) if turn % 7 else step(x, v, dt=0.02)
    return x, v


def an_average_that_an_object_keeps():
    class Average:
        def __init__(self):
            self.value, self.count = jnp.zeros(8), 0

        def update(self, x):
            self.count += 1
            self.value = 0.9 * self.value + 0.1 * x
            return self.value

    average = Average()
    for row in X[:30]:
        average.update(row)
    print(average.count, "rows")
    return average.value


def results_that_are_kept_in_a_dict():
    kept = {}

    def squares(n):
        if n not in kept:
            print("made for", n)
            kept[n] = jnp.linspace(0, 1, n) ** 2
        return kept[n].sum()

    return [squares(turn % 5 + 2) for turn in range(30)]


def a_table_of_values_of_a_game():
    def updated(table, state, action, reward, after):
        return table.at[state, action].add(0.1 * (reward + 0.9 * jnp.max(table[after]) - table[state, action]))

    rng, table, state = np.random.default_rng(0), jnp.zeros((5, 2)), 0
    for _ in range(60):
        action = int(rng.integers(2))
        after = min(4, max(0, state + (1 if action else -1)))
        table, state = updated(table, state, action, float(after == 4), after), after
    return table


def modes_that_are_texts_and_one_that_is_wrong():
    def normalised(x, kind="l2", axis=-1):
        if kind == "l2":
            return x / jnp.linalg.norm(x, axis=axis, keepdims=True)
        if kind == "max":
            return x / jnp.max(jnp.abs(x), axis=axis, keepdims=True)
        raise ValueError(kind)

    last = [normalised(X, ["l2", "max"][turn % 2], axis=turn % 3 - 1) for turn in range(30)]
    with contextlib.suppress(ValueError):
        normalised(X, "l7")
        print("never")
    return last[-3:]


def a_measurement_that_is_no_number():
    def updated(mean, spread, seen):
        gain = spread / (spread + 0.5)
        return mean + gain * (seen - mean), (1 - gain) * spread

    mean, spread = jnp.zeros(2), jnp.ones(2)
    for turn in range(30):
        mean, spread = updated(mean, spread, X[turn, :2] * (jnp.nan if turn == 20 else 1))
    return mean, spread


def a_row_that_grows():
    def longer(row):
        return jnp.concatenate([row, row[-1:] * 1.1])[-20:]

    row = jnp.ones((1, 3))
    for _ in range(40):
        row = longer(row)
    return row


PROGRAMS = [
    adam_over_batches,
    a_rate_that_falls_by_a_global,
    a_loop_that_stops_early,
    a_walk_of_metropolis,
    a_hamiltonian_walk_whose_step_is_adapted,
    springs,
    an_average_that_an_object_keeps,
    results_that_are_kept_in_a_dict,
    a_table_of_values_of_a_game,
    modes_that_are_texts_and_one_that_is_wrong,
    a_measurement_that_is_no_number,
    a_row_that_grows,
]


def run(program):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = described(program())
    return result, printed.getvalue()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_gives_and_prints_the_same(program, monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)  # whether it is worth it must not decide
    monkeypatch.setattr("explorer.hotpath.counting.SampledCalls._EVERY", 0.0005)  # what is short is seen too
    expected = run(program)
    with ex.auto_compile(background=False, seconds=0.0, threshold=3):
        found = run(program)
    assert found == expected
