"""A call through `equinox.filter_jit` is told in the words of its author: names, places, functions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import explorer as ex


def _rows(count=8):
    return np.ones((count, 4), np.float32)


def _last(ledger):
    return ledger.events[-1]


def test_arrays_have_the_names_of_the_arguments_they_came_in():
    model = eqx.nn.Linear(4, 2, key=jax.random.key(0))

    @eqx.filter_jit
    def forward(model, x, *others, scale):
        return jax.vmap(model)(x) * scale

    with ex.watch() as ledger:
        forward(model, _rows(), _rows(), scale=np.float32(2))
    paths = [leaf.path for leaf in _last(ledger).key.leaves]
    assert paths == ["model.weight", "model.bias", "x", "others[0]", "scale"]
    assert _last(ledger).key.function.file == __file__


def test_what_is_no_array_is_a_static_argument_of_its_own():
    @eqx.filter_jit
    def step(x, rate, name="sgd"):
        return x * rate

    with ex.watch() as ledger:
        step(_rows(), 0.1)
        step(_rows(), 0.05)
    reason = _last(ledger).reason
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("static", "rate", "0.1", "0.05")
    assert reason.fix.startswith("rate = jnp.asarray(rate)")


def test_an_array_in_place_of_a_number_is_no_longer_static():
    @eqx.filter_jit
    def step(x, rate):
        return x * rate

    with ex.watch() as ledger:
        step(_rows(), 0.1)
        step(_rows(), jnp.float32(0.1))
    reason = _last(ledger).reason
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("static", "rate", "0.1", "an array")
    assert reason.text == "`rate` was a static argument (0.1) and is now an array"
    assert reason.fix.startswith("rate = jnp.asarray(rate)")


def test_a_function_made_anew_is_told_from_the_wrapper_that_equinox_keeps():
    with ex.watch() as ledger:
        for _ in range(2):
            eqx.filter_jit(lambda x: x * 2)(_rows())
    reason = _last(ledger).reason
    assert reason.kind == "function"
    assert reason.fix.startswith("f = eqx.filter_jit(lambda …)")


def test_a_donated_argument_keeps_its_name():
    @eqx.filter_jit(donate="all")
    def double(state):
        return jax.tree.map(lambda x: x * 2, state)

    with ex.watch() as ledger:
        double({"w": jnp.ones(4), "b": jnp.ones(4)})
    assert set(_last(ledger).key.donated) == {"state['b']", "state['w']"}


def test_a_module_that_is_called_is_named_self():
    class Scaled(eqx.Module):
        weight: jax.Array

        @eqx.filter_jit
        def __call__(self, x):
            return x * self.weight

    model = Scaled(jnp.ones(4))
    with ex.watch() as ledger:
        model(_rows(8))
        model(_rows(6))
    assert [leaf.path for leaf in _last(ledger).key.leaves] == ["self.weight", "x"]
    assert _last(ledger).reason.leaf == "x.shape[0]"


def test_a_function_without_arguments_has_a_key():
    with ex.watch() as ledger:
        eqx.filter_jit(lambda: jnp.ones(3))()
    assert _last(ledger).key.leaves == ()
    assert ledger.faults == ()


def test_several_numbers_that_changed_at_once_are_cured_together():
    """https://github.com/patrick-kidger/equinox/issues/645"""
    traces = []

    @eqx.filter_jit
    def scaled(x, i, y):
        traces.append(1)
        return x * y + i

    with ex.watch(storm=0) as ledger:
        scaled(2.0, 0, _rows())
        scaled(4.0, 1, _rows())
    (event,) = ledger.recompiles()
    assert "`i` changed too" in event.reason.text
    for x, i in ((6.0, 2), (8.0, 3)):
        given = {"x": x, "i": i, "jnp": jnp}
        exec(event.reason.fix, given)
        scaled(given["x"], given["i"], _rows())
    assert len(traces) == 3  # one for arrays, after the two
