"""One trace with symbols, given its sizes afterwards: the same program as a trace at those sizes."""

import math
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import export, lax
from jax.extend.core import jaxpr_as_fun

import explorer as ex
from explorer._jax.symbolic import at_sizes, undecided_equalities

pytestmark = pytest.mark.slow

SIZES = [(1, 1), (3, 5)]


@jax.custom_jvp
def leaky(x):
    return jnp.where(x > 0, x, 0.1 * x)


leaky.defjvp(lambda primals, tangents: (leaky(*primals), jnp.where(primals[0] > 0, 1.0, 0.1) * tangents[0]))


@jax.custom_vjp
def doubled_slope(x):
    return jnp.sin(x)


doubled_slope.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (2 * g * jnp.cos(x),))


@jax.jit
def inner(x, by):
    return x * by + x.shape[1]


def attention(x):
    q = x[:, :, None] * jnp.arange(1.0, 5.0)
    scores = jnp.einsum("bid,bjd->bij", q, 0.3 * q) / jnp.sqrt(q.shape[-1])
    seen = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ q


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def convolution(x):
    return lax.conv_general_dilated(x[:, None, :], jnp.ones((3, 1, 3)), (1,), "SAME")


def pooling(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 1), "SAME")


def scan(x):
    return lax.scan(lambda c, row: (c * 0.5 + row, c.sum()), jnp.zeros(x.shape[1]), x)


def while_loop(x):
    return lax.while_loop(lambda s: s[0] < s[1].shape[1], lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))


def fori_loop(x):
    return lax.fori_loop(0, 3, lambda i, a: a.at[:, 0].add(i * 1.0), x)


def loop_over_a_size(x):
    return lax.fori_loop(0, x.shape[0], lambda i, total: total + x[i].sum(), 0.0)


def cond(x):
    return lax.cond(x.sum() > 0, lambda x: jnp.sin(x) * x.shape[0], lambda x: x - x.shape[1], x)


def vmap(x):
    return jax.vmap(lambda row: row.cumsum() * row.shape[0])(x)


def grad(x):
    return jax.grad(lambda x: (jnp.tanh(x) ** 2).sum() / x.size)(x)


def jvp(x):
    return jax.jvp(lambda x: jax.nn.logsumexp(x, axis=0), (x,), (jnp.ones_like(x),))


def checkpoint(x):
    return jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).mean())(x))(x)


def custom_jvp(x):
    return leaky(x)


def custom_vjp(x):
    return doubled_slope(x)


def grad_of_custom(x):
    return jax.grad(lambda x: (leaky(x) * doubled_slope(x)).sum())(x)


def random(x):
    return x + jax.random.normal(jax.random.key(0), x.shape)


def sort(x):
    return jnp.sort(x, axis=1), jnp.argsort(x, axis=0)


def top_k(x):
    return lax.top_k(x, 1)


def gather(x):
    return x[jnp.array([0, 0])], x[:, ::-1], jnp.take_along_axis(x, jnp.zeros((x.shape[0], 1), int), 1), x[-1]


def scatter(x):
    return x.at[0].set(1.0), x.at[:, jnp.array([0, 0])].add(2.0), x.at[-1, -1].mul(3.0)


def cumulative(x):
    return jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 0)


def einsum(x):
    return jnp.einsum("ij,kj->ik", x, x), jnp.tensordot(x, x, 2)


def concatenate(x):
    return jnp.concatenate([x, x[:, :1], 2 * x], 1), jnp.tile(x, (2, 1)), jnp.repeat(x, 3, axis=1)


def pad(x):
    return jnp.pad(x, ((1, 2), (0, 3))), jnp.pad(x, 1, mode="edge")


def reshape(x):
    wide = jnp.broadcast_to(x[:, :, None], (*x.shape, 4))
    return x.reshape(-1), x.reshape(x.shape[1], x.shape[0]), wide.reshape(2 * x.shape[0], -1)


def dynamic_slice(x):
    row = lax.dynamic_slice(x, (x.shape[0] - 1, 0), (1, x.shape[1]))
    return row, lax.dynamic_update_slice(x, jnp.zeros((1, 1)), (x.shape[0] // 2, 0))


def slices(x):
    return x[: x.shape[0] // 2], x[:, 1:], x[::2], jnp.roll(x, 1, 0)


def callbacks(x):
    jax.debug.callback(lambda value: None, x)
    return jax.pure_callback(lambda value: np.asarray(value) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def nested_jit(x):
    return inner(inner(x, 2.0), 3.0) + jax.jit(lambda y: y[:, :1])(x)


def linear_algebra(x):
    return jnp.linalg.cholesky(x.T @ x + jnp.eye(x.shape[1])), jnp.linalg.norm(x, axis=1)


def statistics(x):
    return x.std(), x.mean(0), jnp.max(x), x.argmax(1)


def ranges(x):
    return jnp.arange(x.shape[0]) * x.shape[1], jnp.linspace(0.0, 1.0, x.shape[0] + 2), jnp.eye(*x.shape)


def size_arithmetic(x):
    b, n = x.shape
    return x * (b * n + b // 2 + n % 3) + jnp.zeros((b, n)).at[0, 0].set(b - n)


def adam(x):
    moments = jax.tree.map(jnp.zeros_like, {"w": x})
    slopes = jax.grad(lambda p: (p["w"] ** 2).sum())({"w": x})
    return jax.tree.map(lambda m, g: 0.9 * m + g, moments, slopes)


PROGRAMS = [
    attention, layer_norm, convolution, pooling, scan, while_loop, fori_loop, loop_over_a_size, cond, vmap, grad, jvp,
    checkpoint, custom_jvp, custom_vjp, grad_of_custom, random, sort, top_k, gather, scatter, cumulative, einsum,
    concatenate, pad, reshape, dynamic_slice, slices, callbacks, nested_jit, linear_algebra, statistics, ranges,
    size_arithmetic, adam,
]  # fmt: skip


def traced(function, *names):
    limits = [limit for name in names for limit in (f"{name} >= 1", f"{name} <= 64")]
    shape = export.symbolic_shape(", ".join(names), constraints=limits)
    return jax.jit(function).trace(jax.ShapeDtypeStruct(shape, jnp.float32)).jaxpr


def example(sizes):
    return np.sin(np.arange(1, 1 + math.prod(sizes), dtype=np.float32)).reshape(sizes)


def assert_same(found, wanted):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_given_its_sizes_computes_what_one_traced_for_them_does(program):
    runs = []

    def counted(x):
        runs.append(x.shape)
        return program(x)

    symbolic = traced(counted, "b", "n")
    before = len(runs)
    for b, n in SIZES:
        concrete = at_sizes(symbolic, {"b": b, "n": n})
        x = example((b, n))
        assert_same(jax.jit(jaxpr_as_fun(concrete))(x), jax.jit(program)(x))
    assert len(runs) == before


def slopes(function):
    def total(x):
        leaves = jax.tree.leaves(function(x))
        return sum(leaf.sum() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating))

    return jax.jit(jax.grad(total))


WITH_DERIVATIVES = [attention, scan, loop_over_a_size, custom_jvp, custom_vjp, nested_jit]


@pytest.mark.parametrize("program", WITH_DERIVATIVES, ids=lambda program: program.__name__)
def test_an_executable_of_every_size_has_the_functions_derivatives(program):
    fast = ex.compile(program, args=[ex.InputInfo(((1, 2, 64), (1, 2, 64)), jnp.float32)])
    for sizes in SIZES:
        x = example(sizes)
        assert_same(slopes(fast)(x), slopes(program)(x))


@pytest.mark.parametrize("program", [jnp.linalg.det, jnp.linalg.inv], ids=["det", "inv"])
def test_where_jaxs_libraries_ask_for_a_size_the_answer_is_right(program):
    def square(x):
        return program(x.T @ x + jnp.eye(x.shape[1]))

    with warnings.catch_warnings():  # which of them ask depends on the version
        warnings.simplefilter("ignore", ex.errors.TracedPerShapeWarning)
        fast = ex.compile(square, args=[ex.InputInfo((4, (1, 2, 8)), jnp.float32)])
    for n in (1, 2):
        x = example((4, n))
        assert_same(fast(x), jax.jit(square)(x))
        assert_same(slopes(fast)(x), slopes(square)(x))


def test_a_program_for_one_size_still_knows_the_users_lines():
    def lines(x):
        y = jnp.sin(x)
        return y @ y.T

    fast = ex.compile(lines, args=[ex.InputInfo(((1, 4, 64), 8), jnp.float32)])
    capture = fast.explore(np.ones((5, 8), np.float32))
    first = lines.__code__.co_firstlineno
    assert "f32[5,8]" in capture.hlo.text
    assert [node.op for node in capture.nodes_at(first + 2, stage="jaxpr") if node.op == "dot_general"]
    assert capture.nodes_at(first + 1)
    assert capture.coverage("hlo") == fast.explore(np.ones((4, 8), np.float32)).coverage("hlo") > 0.5


SIZE = st.deferred(
    lambda: (
        st.sampled_from(["b", "n", 1, 2, 3])
        | st.tuples(st.sampled_from(["+", "*"]), SIZE, SIZE)
        | st.tuples(st.sampled_from(["//", "%"]), SIZE, st.integers(1, 3))
    )
)


def worked_out(size, b, n):
    match size:
        case "b" | "n":
            return {"b": b, "n": n}[size]
        case (operation, left, right):
            left, right = worked_out(left, b, n), worked_out(right, b, n)
            return {"+": lambda: left + right, "*": lambda: left * right, "//": lambda: left // right,
                    "%": lambda: left % right}[operation]()  # fmt: skip
        case number:
            return number


@settings(max_examples=15)
@given(SIZE, st.integers(1, 6), st.integers(1, 6))
def test_arithmetic_with_sizes_comes_out_as_with_numbers(size, b, n):
    def program(x):
        number = worked_out(size, *x.shape)
        return jnp.zeros((number % 7 + 1, 2)), x.sum() * 0 + number

    concrete = at_sizes(traced(program, "b", "n"), {"b": b, "n": n})
    assert_same(jaxpr_as_fun(concrete)(example((b, n))), program(example((b, n))))


def undecided(function):
    with undecided_equalities() as found:
        traced(function, "b", "n")
    return [equality.text for equality in found]


def helper(shape):
    return 2 in shape


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (lambda x: x if x.shape[0] == 1 else 2 * x, ["b == 1"]),
        (lambda x: x if x.shape[0] != 1 else 2 * x, ["b == 1"]),
        (lambda x: x if 1 == x.shape[0] else 2 * x, ["b == 1"]),  # noqa: SIM300 - that is the case
        (lambda x: x if x.shape[0] in (1, 2) else 2 * x, ["b == 1", "b == 2"]),
        (lambda x: x if x.shape[0] % 2 == 0 else 2 * x, ["mod(b, 2) == 0"]),
        (lambda x: x if x.shape[0] == x.shape[1] else 2 * x, ["b == n"]),
        (lambda x: x if x.shape == (1, 1) else 2 * x, ["b == 1"]),
        (lambda x: x if helper(x.shape) else 2 * x, ["b == 2", "n == 2"]),
        (lambda x: x if x.size == 4 else 2 * x, ["b*n == 4"]),
        (lambda x: x if x.shape[0] % 2 else 2 * x, ["mod(b, 2) != 0"]),
        (lambda x: x if not x.shape[0] - 1 else 2 * x, ["b - 1 != 0"]),
        (lambda x: x if x.shape[0] in {1, 2} else 2 * x, ["b in {…}"]),
        (lambda x: x if x.shape[0] in {1: "one"} else 2 * x, ["b in {…}"]),
        (lambda x: x if x.shape in {(1, 1): "one"} else 2 * x, ["b in {…}", "n in {…}"]),
        (lambda x: x if x.shape[0] and x.size else 2 * x, []),
        (lambda x: x if hash(x.shape) else 2 * x, []),
        (lambda x: x if x.shape[0] == 65 else 2 * x, []),
        (lambda x: x if x.shape[0] == 0 else 2 * x, []),
        (lambda x: x if x.shape[0] == x.shape[0] else 2 * x, []),
        (lambda x: x if x.shape[0] + 1 == x.shape[0] else 2 * x, []),
        (lambda x: x if x.shape[0] == "text" else 2 * x, []),
        (lambda x: x if x.shape[0] is None else 2 * x, []),
    ],
)
def test_an_equality_that_holds_for_some_sizes_only_is_told(asks, told):
    assert undecided(asks) == told


@pytest.mark.parametrize("program", [attention, convolution, random, pad, reshape, scatter, statistics, nested_jit])
def test_what_jax_asks_for_itself_is_not_told(program):
    assert undecided(program) == []


def test_where_an_equality_is_asked_is_told():
    def asks(x):
        return x if x.shape[0] == 1 else 2 * x

    with undecided_equalities() as found:
        traced(asks, "b", "n")
    assert [(one.file, one.line) for one in found] == [(__file__, asks.__code__.co_firstlineno + 1)]


def test_nothing_of_jax_is_changed_afterwards_whatever_happens():
    kind = type(export.symbolic_shape("b")[0])
    before = dict(vars(kind))

    def fails(x):
        assert vars(kind) != before
        raise ArithmeticError

    with pytest.raises(ArithmeticError), undecided_equalities(), undecided_equalities():
        traced(fails, "b")
    assert vars(kind) == before


def test_each_thread_is_told_its_own_equalities_only():
    kind = type(export.symbolic_shape("b")[0])
    before = dict(vars(kind))
    found, all_in = {}, threading.Barrier(4)

    def watch(number):
        (size,) = export.symbolic_shape("b")
        with undecided_equalities() as mine:
            all_in.wait()
            assert not size == number  # noqa: SIM201 - `==` is what is asked
            all_in.wait()
        found[number] = [one.text for one in mine]

    threads = [threading.Thread(target=watch, args=[number]) for number in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [f"b == {number}"] for number in (1, 2, 3, 4)}
    assert vars(kind) == before


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x + jnp.arange(32.0)[: x.shape[0]],
        lambda x: x[: x.shape[0] // 2],
        lambda x: x[x.shape[0] // 2 :],
        lambda x: x[1:] - x[:-1],
        lambda x: jnp.arange(32.0).at[: x.shape[0]].set(x),
        lambda x: x + jnp.arange(32.0).at[: x.shape[0]].get(),
        lambda x: x + jnp.linspace(0.0, 1.0, x.shape[0]),
        lambda x: jax.lax.dynamic_update_slice(jnp.zeros(32), x, (0,)),
    ],
)
def test_slices_by_a_size_are_traced_once_for_all(program):
    executable = ex.compile(program, args=[ex.InputInfo(((2, 4, 16),), jnp.float32)])
    for n in (4, 2, 7, 16):
        x = jnp.arange(1.0, n + 1)
        np.testing.assert_allclose(executable(x), program(x), rtol=1e-6)
    assert "each shape" not in repr(executable)


def test_what_jax_cant_export_with_symbols_is_saved_for_the_sizes_that_it_has(tmp_path):
    def blurred(x):
        return jax.vmap(lambda x, kernel: convolution_of(x[None], kernel))(x, jnp.ones((x.shape[0], 1, 1, 3)))

    def convolution_of(x, kernel):
        return lax.conv_general_dilated(x[None], kernel, (1,), "SAME")

    executable = ex.compile(blurred, args=[ex.InputInfo(((1, 2, 8), 16), jnp.float32)])
    assert "each shape" not in repr(executable)
    executable(example((3, 16)))
    with pytest.warns(
        ex.errors.TracedPerShapeWarning, match=r"x_0 = 2; x_0 = 3\.(?s:.)*JAX can't export it for every size: Conv"
    ):
        executable.save(tmp_path / "e.explorer")
    loaded = ex.Executable.load(tmp_path / "e.explorer")
    for n in (2, 3):
        assert_same(loaded(example((n, 16))), blurred(example((n, 16))))
    with pytest.raises(
        ex.errors.InputShapeError, match=r"no program for x_0 = 4(?s:.)*JAX can't export it for every size"
    ):
        loaded(example((4, 16)))
