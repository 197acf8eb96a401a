"""jit(shapeless=True): the function's Python runs for a rank and dtype, and every shape gets its own right answer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.jitted.shapeless import patterns

TABLE = {4: 2.0}


def as_int(n):
    try:
        return int(n)
    except Exception:
        return 1


# By name: a function of one array of two dimensions.
FUNCTIONS = {
    "elementwise": lambda x: jnp.sin(x) * 2,
    "a custom derivative": lambda x: jax.nn.relu(x - 2).sum(0),
    "softmax": lambda x: jax.nn.softmax(x, axis=-1),
    "its size as a number": lambda x: x / x.shape[0],
    "its size in a slice": lambda x: x[: x.shape[0] // 2 + 1].sum(),
    "reshaped": lambda x: x.reshape(-1),
    "times itself": lambda x: x @ x.T,
    "a loop over a size": lambda x: jax.lax.fori_loop(0, x.shape[0], lambda i, total: total + x[i].sum() * i, 0.0),
    "scanned": lambda x: jax.lax.scan(lambda carry, row: (carry + row, carry.sum()), jnp.zeros(x.shape[1]), x),
}
# What no symbol answers: each shape is traced for itself, and it is said, or the trial is found out.
LYING = {
    "a comparison": lambda x: x * 2 if x.shape[0] > 3 else x,
    "an equality": lambda x: x * 2 if x.shape[0] == 4 else x,
    "a table": lambda x: x * TABLE.get(x.shape[0], 3.0),
    "its class": lambda x: x * (2.0 if isinstance(x.shape[0], int) else 3.0),
    "its class, for constants of one shape": lambda x: (
        x.sum() * np.full(2, 2.0 + isinstance(x.shape[0], int), "float32")
    ),
    "a number of it": lambda x: x * as_int(x.shape[0]),
    "a text of it": lambda x: x * len(f"{x.shape[0]}"),
    "unrolled": lambda x: sum(x[i] * i for i in range(x.shape[0])),
}
SHAPES = [(4, 3), (2, 3), (5, 7), (4, 4), (1, 3), (3, 1)]


def arrays():
    return [jnp.arange(float(np.prod(shape))).reshape(shape) for shape in SHAPES]


def assert_alike(ours, theirs):
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_trace_gives_each_shape_its_answer_and_its_gradient(name):
    function = FUNCTIONS[name]
    fast = ex.jit(function, shapeless=True)
    for x in arrays():
        assert_alike(fast(x), function(x))
        if x.shape not in ((4, 3), (5, 7), (1, 3)):
            continue
        gradient = jax.grad(lambda x, f=fast: sum(leaf.sum() for leaf in jax.tree.leaves(f(x))))
        if name != "a loop over a size":
            expected = jax.grad(lambda x: sum(leaf.sum() for leaf in jax.tree.leaves(function(x))))
            assert_alike(gradient(x), expected(x))
        assert_alike(jax.vmap(fast)(jnp.stack([x, x])), jax.vmap(function)(jnp.stack([x, x])))
    # A custom derivative is the user's Python, which runs for each shape that it is asked for.
    assert len(fast.specializations) <= (4 if "derivative" not in name and "loop" not in name else 4 + len(SHAPES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::explorer.errors.RecompilationWarning")
@pytest.mark.parametrize("name", LYING)
def test_what_no_symbol_answers_is_never_a_wrong_answer(name):
    function = LYING[name]
    fast = ex.jit(function, shapeless=True)
    for x in arrays():
        assert_alike(fast(x), function(x))


@pytest.mark.filterwarnings("ignore::explorer.errors.RecompilationWarning")
def test_a_constant_array_that_is_chosen_by_the_class_of_a_size_is_never_that_of_a_symbol():
    def scaled(x):
        return x.sum() * np.full(2, 2.0 if isinstance(x.shape[0], int) else 3.0, "float32")

    fast = ex.jit(scaled, shapeless=True)
    for n in (3, 5, 6):
        assert fast(jnp.ones(n)).tolist() == [2.0 * n] * 2


def test_a_size_that_is_asked_is_told_with_its_line_at_the_second_shape():
    def choose(x):
        return x * 2 if x.shape[0] > 3 else x

    fast = ex.jit(choose, shapeless=True)
    fast(jnp.ones(2))
    with pytest.warns(
        ex.errors.RecompilationWarning, match=r"choose is traced for each shape(?s:.*)test_shapeless.py, line \d+"
    ):
        fast(jnp.ones(5))
    np.testing.assert_array_equal(fast(jnp.ones(6)), 2 * jnp.ones(6))
    assert len(fast.specializations) == 3


def test_captured_state_is_read_and_written_at_each_call():
    state = {"w": jnp.ones(3), "n": jnp.zeros(())}

    @ex.jit(inputs=state, outputs=state, shapeless=True)
    def step(x):
        state["n"] = state["n"] + x.shape[0]
        return x @ state["w"]

    for rows in (2, 5, 7, 1):
        np.testing.assert_array_equal(step(jnp.ones((rows, 3))), 3 * jnp.ones(rows))
    assert float(state["n"]) == 15
    assert len(step.specializations) <= 3  # of the first sizes, of any number of rows, of one row
    state["w"] = 2 * state["w"]
    np.testing.assert_array_equal(step(jnp.ones((4, 3))), 6 * jnp.ones(4))


def test_its_traces_say_which_sizes_are_open():
    fast = ex.jit(lambda x, y: x * y, shapeless=True)
    fast(jnp.ones((2, 3)), jnp.ones(3))
    (trace,) = fast.specializations
    assert trace.shapes == {"x": ("n0", "n1"), "y": ("n1",)}
    fast.clear()
    assert fast.specializations == ()


def test_sizes_that_were_equal_by_chance_are_told_apart_by_the_second_call():
    runs = []
    fast = ex.jit(lambda x, y: runs.append(1) or x @ y, shapeless=True)
    for a, b, c in ((2, 2, 2), (2, 3, 4), (5, 6, 7), (8, 9, 10)):
        assert fast(jnp.ones((a, b)), jnp.ones((b, c))).shape == (a, c)
    assert len(fast.specializations) == 2
    before = len(runs)
    fast(jnp.ones((3, 5)), jnp.ones((5, 11)))
    assert len(runs) == before


def test_a_closure_over_another_trace_is_part_of_that_trace():
    def outer(x):
        return ex.jit(lambda y: y * x.sum(), shapeless=True)(jnp.ones(3)).sum()

    assert float(jax.grad(outer)(jnp.ones(2))[0]) == 3.0
    inner = []

    def twice(x):
        if not inner:
            inner.append(ex.jit(lambda y: y * scale[0], shapeless=True))
        scale[0] = x
        return inner[0](jnp.ones(4)).sum()

    scale = [None]
    assert float(jax.jit(twice)(2.0)) == 8.0


def test_an_empty_dimension_is_traced_for_itself():
    fast = ex.jit(lambda x: x.sum() + x.shape[0], shapeless=True)
    assert [float(fast(jnp.ones(n))) for n in (0, 3, 0, 5)] == [0.0, 6.0, 0.0, 10.0]


def test_static_arguments_and_keywords():
    fast = ex.jit(lambda x, n, *, by=1.0: x**n * by, static_argnames="n", shapeless=True)
    for size in (2, 3):
        for n in (1, 2):
            np.testing.assert_array_equal(fast(jnp.full(size, 3.0), n, by=2.0), np.full(size, 2 * 3.0**n))
    assert len(fast.specializations) == 2


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([[(2, 3)]], [(("d0_0", "d0_1"),), (("d0_0", "d0_1"),), (("n0", "n1"),)]),
        ([[(1,), (2,)]], [(("d0_0",), ("d1_0",)), ((1,), ("d1_0",)), ((1,), ("n0",))]),
        (
            [[(2,), (2,)], [(2,), (3,)]],
            [(("d0_0",), ("d1_0",)), (("d0_0",), ("d1_0",)), (("n0",), ("n1",)), ((2,), ("n1",))],
        ),
        ([[()]], []),
        ([[(0,)]], []),
    ],
)
def test_which_dimensions_may_be_symbols(history, expected):
    assert [pattern.shapes for pattern in patterns(history)] == expected
