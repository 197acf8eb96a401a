"""MLX's own tests of its compile, retold in JAX's terms; what differs is in docs/exceptions.md.

Most hold a program against itself uncompiled; those are a table.
"""

import gc
import inspect
import math
import threading
from functools import wraps
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

pytestmark = pytest.mark.slow

ONE, TWO = jnp.asarray(1.0), jnp.asarray([1.0, 2.0])
SQUARE = jnp.arange(4.0).reshape(2, 2) - 1
EYE = jnp.ones((2, 2))
KEY = jax.random.key(0)


class Point(NamedTuple):
    a: object
    b: object


def normal(*shape):
    return jax.random.normal(KEY, shape)


def accumulated(x):
    sums = [x]
    for _ in range(5):
        sums.append(sums[-1] + x)
    return sums, sums[-1].sum()


def halved(arrays):
    while len(arrays) > 1:
        arrays = [x + y for x, y in zip(arrays[::2], arrays[1::2], strict=True)]
    return arrays[0]


def first_halves(x):
    first = [x + x] * 32
    return halved(first), first


def two_sums(*xs):
    return sum(xs[:10]) + sum(xs[10:])


def product_of_sums(xs):
    return (xs[0] + xs[1]) * (xs[2] + xs[3]) * (xs[4] + xs[5])


def squares(w):
    return w @ (w + w) + (w + w) @ (w + w)


def pulled_back(w):
    result, pull = jax.vjp(squares, w)
    return result, pull(jnp.ones_like(result))


def one_step(w1, w2, x):
    def loss(w1, w2, x):
        one, two = x @ w1, x @ w2
        return ((one + two * two) ** 2).sum()

    value, gradient = jax.value_and_grad(loss)(w1, w2, x)
    return value, w1 + gradient


def normalised(emb, w, x):
    def loss(emb, w):
        rows = emb[x]
        return ((rows - rows.mean(-1, keepdims=True)) / jnp.sqrt(rows.var(-1, keepdims=True) + 1e-4) * w).sum()

    return jax.value_and_grad(loss, argnums=(0, 1))(emb, w)


def counted_down(a, b):
    for _ in range(10):
        a, b = a - 1.0, b - 1.0
    return a + b


def many_broadcasts(x):
    return sum(jnp.float32(2 * i) * x * jnp.float32(i) for i in range(20))


PROGRAMS = {
    "simple": (
        lambda x, y: x + y,
        [(ONE, ONE), (ONE, ONE), (TWO, ONE), (TWO, TWO), (TWO.astype(int), TWO.astype(int))],
    ),
    "nonfinite constants": (
        lambda *xs: [jnp.where(x > 0, x, jnp.asarray(c, x.dtype)) for x in xs for c in (math.nan, -math.inf)],
        [tuple(jnp.asarray([1.0, -1.0], d) for d in ("float32", "float16", "bfloat16"))],
    ),
    "gradient": (jax.grad(lambda x: jnp.exp(x).sum()), [(jnp.asarray([0.5, -0.5, 1.2]),)] * 2),
    "value and gradient": (
        jax.value_and_grad(lambda x: (jnp.exp(x).sum(), jnp.sin(x)), has_aux=True),
        [(jnp.asarray([0.5, -0.5, 1.2]),)],
    ),
    "inputs that were computed": (lambda x, y: x * y, [(jnp.arange(3) * 5, jnp.arange(3) + 5)] * 2),
    "it makes an array": (lambda x: x + jnp.asarray(1), [(jnp.asarray(3),)] * 2),
    "gradient of two": (jax.grad(lambda w, x: (x * w * jnp.exp(x * w)).sum()), [(normal(4), normal(4) + 1)]),
    "evaluated inside": (jax.grad(lambda x: ex.jit(lambda x: jnp.exp(jnp.abs(x)))(x).sum()), [(normal(3),)]),
    "by keyword": (lambda x, y=0, z=0: x + y + z, [(ONE, TWO, SQUARE)]),
    "an infinity": (lambda x: jnp.isinf(x + 2), [(jnp.zeros(1),)]),
    "a list is made": (lambda: [0.1 * jnp.zeros(2), 0.1 * jnp.zeros(2)], [()]),
    "pulled back": (pulled_back, [(jnp.zeros((2, 2)),), (SQUARE,)]),
    "a step": (one_step, [(normal(4, 4), normal(4, 4), normal(4, 4))]),
    "broadcast alone": (lambda a: jnp.broadcast_to(a, (1,)) * 2, [(ONE,)]),
    "a long chain": (counted_down, [(jnp.asarray(10.0), jnp.asarray(20.0))]),
    "several outputs": (accumulated, [(jnp.ones(1, int),)]),
    "infinity of halves": (lambda x: jnp.where(jnp.isinf(x), 0, 1), [(jnp.asarray([0, math.inf, 1], "bfloat16"),)]),
    "a maximum that is compared": (lambda x: x == x.max((1, 2), keepdims=True), [(normal(1, 2, 2),)]),
    "small types": (
        lambda *xs: [x * 1 + 0 for x in xs],
        [tuple(jnp.arange(4).astype(d) for d in ("bool", "int8", "uint8", "int16", "uint16"))],
    ),
    "many dimensions": (lambda a, b: jnp.abs(a + b), [(normal(*[2] * 10).T, normal(*[2] * 10))]),
    "many inputs": (two_sums, [tuple(jnp.ones((2, 2, 2, 2)) for _ in range(20))]),
    "many inputs in a list": (halved, [([TWO] * 64,)]),
    "half precision sums": (product_of_sums, [([jnp.arange(64).astype("float16")] * 6,)]),
    "many outputs": (first_halves, [(TWO,)]),
    "a constant of double precision": (lambda x: (x + math.pi) * 2.0, [(ONE,)]),
    "a shared broadcast": (
        lambda x, y, z: (x + jnp.broadcast_to(y, z.shape) * z, jnp.broadcast_to(y, z.shape).sum()),
        [(normal(10, 10), jnp.asarray(0.1), normal(10, 10))],
    ),
    "many broadcasts": (many_broadcasts, [(normal(2, 2),)] * 2),
    "none": (lambda x, y: jnp.abs(x - 2.0) if y is None else jnp.abs(x + y), [(ONE, None), (ONE, ONE * 2)]),
    "other outputs, the first": (lambda x: (jnp.abs(-x), jnp.abs(jnp.abs(-x))), [(-ONE,)]),
    "other outputs, the second": (lambda x: jnp.abs(jnp.abs(-x)), [(-ONE,)]),
    "named tuples": (lambda p: Point(p.a + 10, p.b * 10), [(Point(ONE, ONE),), (Point(TWO, TWO),)]),
    "tuples": (lambda p: (p[0] + 10, p[1] * 10), [((ONE, ONE),), ((TWO, TWO),)]),
    "one of two outputs": (lambda x, y: jnp.divmod(jnp.abs(x), jnp.abs(y))[0], [(ONE, ONE)]),
    "a normalised embedding": (normalised, [(normal(10, 32), jnp.ones(32), jnp.zeros((4, 32), int))]),
    "backwards": (lambda x: 2.0 * x[::-1], [(jnp.arange(8.0),)]),
    "backwards, written": (lambda x: jnp.zeros_like(x).at[::-1].add(2.0 * x[::-1]), [(jnp.arange(8.0),)]),
    "backwards and forwards": (lambda x: x[::-1, ::2] * 3.0, [(jnp.arange(24.0).reshape(4, 6),)]),
    "backwards, four dimensions": (lambda x: x + 1.0, [(jnp.arange(120.0).reshape(2, 3, 4, 5)[::-1, :, ::-1],)]),
    "unsigned": (lambda *xs: [abs(x) + 1 for x in xs], [tuple(jnp.arange(3).astype(f"uint{n}") for n in (8, 16, 32))]),
    "logarithms": (
        lambda p: jnp.stack([-(p * jnp.log(p)).sum(), -(p * jnp.log2(p)).sum()]),
        [(jnp.asarray([0.1, 0.2, 0.3, 0.4]),)],
    ),
    "equal nans": (
        lambda x: jnp.stack([jnp.array_equal(x, x), jnp.array_equal(x, x, equal_nan=True)]),
        [(jnp.asarray([1.0, math.nan]),)],
    ),
    "what differs by type": (
        lambda x, y: 2 * x if y is None else [x + y] if y.dtype == jnp.float32 else {"a": x, "b": y * x},
        [(ONE, ONE), (ONE, jnp.asarray(True)), (ONE, None)],
    ),
}
BATCHES = [jnp.zeros((2, 1, 4, 2)), jnp.zeros((3, 2, 5)), jnp.zeros((3, 1, 4, 2)), jnp.zeros((2, 2, 5))]
SHAPELESS = {
    "a sum": (lambda x: x + 1, [(jnp.arange(n),) for n in (2, 3)] + [(TWO,), (jnp.ones((1, 3), int),)], 3),
    "broadcasts": (lambda x, y: x * y, [(EYE, TWO), (TWO, EYE), (EYE, jnp.ones((1, 1))), (jnp.ones((1, 1)), EYE)], 4),
    "a reduction": (lambda x, y: x + y.sum(0, keepdims=True) + 1, [(jnp.ones((n, n), int),) * 2 for n in (2, 3)], 1),
    "a row's sum": (
        lambda x: x * x.sum(-1, keepdims=True),
        [(jnp.arange(6).reshape(3, 2),), (jnp.ones((1, 2), int),)],
        1,
    ),
    "a row": (lambda x: x * x.sum(-1, keepdims=False), [(jnp.ones((1, 2), int),)], 1),
    "unflattened": (lambda x: x.reshape(*x.shape[:-1], 4, -1), [(jnp.zeros((1, 1, 128)),)], 1),
    "the last": (lambda x: x[:, -1, :], [(jnp.zeros((1, 1, 32)),), (jnp.zeros((2, 5, 16)),)], 1),
    "zeros alike": (jnp.zeros_like, [(jnp.ones((1, 1, 32)),), (jnp.ones((2, 2, 16)),)], 1),
    "ones alike": (jnp.ones_like, [(jnp.zeros((1, 1, 32)),), (jnp.zeros((2, 2, 16)),)], 1),
    "batched products": (
        lambda x: jnp.einsum("bmk,bkn->bmn", x, jnp.ones((4, 64, 32))),
        [(jnp.ones((4, n, 64)),) for n in (4, 8, 16)],
        2,
    ),
    "a mean": (lambda x: x.mean(keepdims=True), [(jnp.ones(n),) for n in (2, 4, 7)], 1),
    "a product of vectors": (lambda a, b: a @ b, [(jnp.arange(3.0),) * 2], 1),
    "a product and a sum": (
        lambda c, a, b: c + a @ b,
        [
            (jnp.ones((2, 4)), jnp.ones((2, 3)), jnp.ones((3, 4))),
            (jnp.ones((3, 5)), jnp.ones((3, 6)), jnp.ones((6, 5))),
        ],
        1,
    ),
    "with factors": (
        lambda c, a, b: 3.0 * c + 2.0 * (a @ b),
        [(jnp.ones((2, 4)), jnp.ones((2, 3)), jnp.ones((3, 4)))],
        1,
    ),
    "an update": (lambda x: x.at[2].set(3.0), [(jnp.arange(n),) for n in (4.0, 5.0)], 1),
    "a reshape": (
        lambda x: x.reshape(x.shape[0] * x.shape[1], -1),
        [(jnp.zeros((2, 3, 4)),), (jnp.zeros((2, 3, 8)),), (jnp.zeros((5, 5, 5)),)],
        1,
    ),
    "broadcast to one another": (lambda a, b: jnp.broadcast_arrays(a, b), [(ONE, EYE)], 1),
    "a product of batches": (lambda a, b: a @ b, [tuple(BATCHES[:2])], 1),
    "a gradient of sums": (jax.grad(lambda args: sum(args).sum()), [((ONE, EYE),), ((EYE, ONE),)], 2),
    "a gradient of batches": (
        jax.grad(lambda args: (args[0] @ args[1]).sum()),
        [(tuple(BATCHES[:2]),), (tuple(BATCHES[2:]),)],
        2,
    ),
}
for reduction in (jnp.sum, jnp.mean, jnp.prod, jnp.min, jnp.max, jnp.all, jnp.any, jnp.argmin, jnp.argmax):
    for sizes in ((1, 2, 3, 4), (2, 1)):
        SHAPELESS[f"{reduction.__name__} of what was taken, {sizes}"] = (
            lambda buffer, indices, reduction=reduction: reduction(jnp.take(buffer, indices, axis=0)),
            [(jnp.arange(10.0, 60.0, 10.0), jnp.arange(n)) for n in sizes],
            2,
        )


def assert_alike(ours, theirs):
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(
            np.asarray(one, "float64"),
            np.asarray(other, "float64"),
            rtol=1e-2 if one.dtype.itemsize < 4 else 1e-5,
            atol=1e-5,
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_uncompiled(name):
    function, calls = PROGRAMS[name]
    fast = ex.jit(function)
    for arguments in calls:
        assert_alike(fast(*arguments), function(*arguments))


@pytest.mark.parametrize("name", SHAPELESS)
def test_a_shapeless_program_gives_what_it_gives_uncompiled(name):
    function, calls, traces = SHAPELESS[name]
    fast = ex.jit(function, shapeless=True)
    for arguments in calls:
        assert_alike(fast(*arguments), function(*arguments))
    assert len(fast.specializations) <= traces


@pytest.mark.parametrize(
    "transform", [jax.vmap, lambda f: jax.vmap(f, in_axes=(0, 1)), lambda f: jax.vmap(f, in_axes=(0, None))]
)
def test_mapped(transform):
    def binary(x, y):
        return jnp.abs(jnp.exp(x + y) + y)

    x, y = jnp.asarray([[1.0, -3.0], [0.5, -0.5]]), jnp.asarray([[2.0, -1.0], [0.25, -0.25]])
    assert_alike(transform(ex.jit(binary))(x, y), transform(binary)(x, y))


def test_mapped_with_what_the_outer_computed():
    def outer(x):
        x = jnp.abs(x)
        return ex.jit(lambda z: -jnp.exp(x) + 0 * z)(x)

    assert_alike(jax.vmap(outer)(SQUARE), -jnp.exp(jnp.abs(SQUARE)))


def test_pushed_forward_and_pulled_back():
    def binary(x, y):
        return jnp.abs(jnp.exp(x + y) + y)

    x, y = SQUARE, SQUARE + 2
    assert_alike(jax.jvp(ex.jit(binary), (x, y), (EYE, EYE)), jax.jvp(binary, (x, y), (EYE, EYE)))
    ours, theirs = jax.vjp(ex.jit(binary), x, y), jax.vjp(binary, x, y)
    assert_alike((ours[0], ours[1](EYE)), (theirs[0], theirs[1](EYE)))


def test_a_closure_is_a_constant_also_when_a_shape_in_it_changes():
    tree = {"a": jnp.asarray(1), "b": jnp.asarray(2)}
    fast = ex.jit(lambda y: tree["a"] + y + tree["b"])
    for value in (1, jnp.asarray([4, 5]), jnp.asarray([-6, -8])):
        tree["a"] = value
        assert fast(jnp.asarray(1)) == 4


def test_the_switch_there_and_back():
    runs = []
    fast = ex.jit(lambda x: runs.append(1) or x + 1)
    fast(ONE), fast(ONE)
    with ex.disable_compile():
        fast(ONE), fast(ONE)
    fast(ONE)
    assert len(runs) == 3


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"y": jnp.asarray(2)}, lambda s: (s, "y")),
        ([jnp.asarray(2)], lambda s: (s, 0)),
        (([jnp.asarray(2)],), lambda s: (s[0], 0)),
    ],
    ids=["dict", "list", "tuple of lists"],
)
def test_state_that_is_captured_is_read_at_each_call(state, place):
    holder, label = place(state)
    fast = ex.jit(lambda x: x + holder[label], inputs=state)
    assert fast(jnp.asarray(1)) == 3
    assert holder[label] == 2
    holder[label] = jnp.asarray(3)
    assert fast(jnp.asarray(1)) == 4


def test_state_that_comes_into_being_is_traced_anew():
    state = {}

    @ex.jit
    def nothing(x):
        return x

    def step(x):
        y = state.get("y", jnp.asarray(0))
        state["y"] = x + y
        return x + 2 * y

    fast = ex.jit(step, inputs=state, outputs=state)
    assert [int(fast(jnp.asarray(1))) for _ in range(3)] == [1, 3, 5]
    assert state["y"] == 3
    assert nothing(ONE) == 1


def test_a_key_in_the_state_advances_on_whichever_thread_and_beside_other_state():
    counter, random = {"v": jnp.asarray(0.0)}, {"key": KEY}
    state = [counter, random]

    def draw():
        random["key"], key = jax.random.split(random["key"])
        counter["v"] = counter["v"] + 1.0
        return jax.random.uniform(key, (2,))

    fast, drawn = ex.jit(draw, inputs=state, outputs=state), []
    thread = threading.Thread(target=lambda: drawn.extend([fast(), fast()]))
    thread.start()
    thread.join()
    assert not np.allclose(*drawn)
    random["key"] = KEY
    np.testing.assert_array_equal(fast(), drawn[0])
    assert counter["v"] == 3


def test_constants_are_static_arguments():
    def chosen(x, how, by=(1, 2)):
        return x + (by[0] if how == "one" else by[1])

    fast = ex.jit(chosen, static_argnames=("how", "by"))
    assert [int(fast(jnp.asarray(1), how)) for how in ("one", "two")] == [2, 3]
    assert fast(jnp.asarray(1), "one", (5, 6)) == 6
    y = 1.0
    closed = ex.jit(lambda x, constant: x + y, static_argnums=1)
    assert closed(ONE, "abc") == 2
    y = 2.0
    assert closed(ONE, b"abc".decode()) == 2  # equal, another object
    assert closed(ONE, "xyz") == 3


def test_numbers_are_traced_and_other_positions_are_another_trace():
    fast = ex.jit(lambda x, y: x + y)
    assert [float(fast(ONE, 1.0)), float(fast(ONE, 2.0)), float(fast(ONE, y=3.0))] == [2.0, 3.0, 4.0]
    assert fast(1, jnp.asarray(1)) == 2


def test_an_object_that_is_no_array_is_refused():
    class Own:
        value = 1

    fast = ex.jit(lambda x, y: x + y.value)
    for call in (lambda: fast(ONE, Own()), lambda: fast(ONE, y=Own())):
        with pytest.raises(TypeError, match="Own"):
            call()


def test_a_function_that_keeps_what_was_traced_is_refused_at_its_next_use():
    kept = None

    def keep(x):
        nonlocal kept
        kept = x + (0 if kept is None else kept)
        return kept

    ex.jit(keep)(ONE)
    with pytest.raises((ex.errors.TracedValueError, jax.errors.UnexpectedTracerError)):
        ex.jit(keep)(TWO)


def test_nothing_leaks_from_a_closure_that_holds_itself():
    def outer():
        scope = {}
        scope["f"] = ex.jit(lambda x: scope["x"])
        scope["x"] = jnp.zeros(1000)
        return scope

    gc.collect()
    before = len(jax.live_arrays())
    for _ in range(5):
        outer()
    gc.collect()
    assert len(jax.live_arrays()) == before


def test_on_one_thread_after_another():
    fast, results = ex.jit(lambda x: (x + 1, x * 2)), []
    for _ in range(3):
        thread = threading.Thread(target=lambda: results.append([float(y) for y in fast(ONE)]))
        thread.start()
        thread.join()
    assert results == [[2.0, 2.0]] * 3


def test_what_wraps_it_and_what_it_looks_like():
    def inner(x: jax.Array, y: str):
        """A useful function."""

    fast = ex.jit(inner)

    @wraps(fast)
    def wrapper():
        pass

    for name in ("__name__", "__qualname__", "__doc__"):
        assert getattr(fast, name) == getattr(inner, name) == getattr(wrapper, name)
    assert inspect.signature(fast) == inspect.signature(inner)


def test_state_and_outputs_that_differ_by_the_arguments_type():
    state = [jnp.asarray(1.0)]

    @ex.jit(inputs=state, outputs=state)
    def step(y):
        x = state[0]
        if y.dtype == jnp.float32:
            state[0] = 2 * y
            return [x, y, x + y]
        state[0] = state[0] * 2
        return x + y

    for _ in range(10):
        assert isinstance(step(jnp.asarray(1.0)), list)
        assert step(jnp.asarray(1)).shape == ()
    assert state[0] == 4


def test_two_functions_that_close_over_one_array():
    def run(jit):
        b = jnp.ones((6,))[:, None] * ((1.0 - jnp.ones(10)) * 0.0 + 3.0)
        c = b * jnp.ones(10)
        return jit(lambda x: x @ c.T)(jit(lambda x: x @ b)(jnp.ones(6)))

    assert_alike(run(ex.jit), run(lambda f: f))


def test_a_buffer_is_reused_where_it_is_donated():
    x = jnp.arange(16.0)
    where = x.unsafe_buffer_pointer()
    assert ex.jit(lambda x: jnp.sin(x) + 1, donate_argnums=0)(x).unsafe_buffer_pointer() == where


def test_a_shapeless_function_keeps_what_it_closed_over():
    y = 1
    fast = ex.jit(lambda x: x + y, shapeless=True)
    assert fast(jnp.asarray([1, 2])).tolist() == [2, 3]
    y = 2
    assert fast(jnp.asarray([1, 2, 3])).tolist() == [2, 3, 4]  # not traced again
    assert fast(jnp.asarray([1.0, 2.0, 3.0])).tolist() == [3, 4, 5]  # another dtype is
    assert fast(jnp.asarray([[1, 2, 3]])).tolist() == [[3, 4, 5]]  # and another rank
    assert len(fast.specializations) == 3


def test_a_shape_that_does_not_fit_is_an_error_of_the_function():
    fast = ex.jit(lambda a: jnp.broadcast_to(a, EYE.shape), shapeless=True)
    assert fast(ONE).shape == (2, 2)
    with pytest.raises(ValueError, match="broadcast"):
        fast(jnp.zeros((1, 1, 1)))
