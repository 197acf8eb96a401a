"""One executable for a range of shapes: traced once, compiled for each shape that comes, right for every one."""

import gc
import re
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import explorer as ex

pytestmark = pytest.mark.slow

BATCH = ex.NamedDimension("batch", 1, 4, 16)
ROWS = ex.InputInfo((BATCH, 2), jnp.float32)


def rows(n, width=2):
    return jnp.arange(n * width, dtype=jnp.float32).reshape(n, width) + 1


@contextmanager
def compiles():
    """Within: one entry for each compilation by XLA."""
    seen = []

    def listen(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.fixture
def sums():
    return ex.compile(lambda x: x.sum(1) * x.shape[0], args=[ROWS])


def test_the_shape_to_optimise_for_is_compiled_ahead_and_others_on_first_use_once(sums):
    calls = {n: rows(n) for n in (4, 3, 5)}
    for n, compiled in ((4, 0), (3, 1), (3, 0), (5, 1), (4, 0), (3, 0)):
        with compiles() as seen:
            result = sums(calls[n])
        assert len(seen) == compiled
        np.testing.assert_array_equal(result, calls[n].sum(1) * n)


def test_the_python_runs_at_compile_for_all_shapes_and_prints_once(capsys):
    runs = []

    def program(x):
        runs.append(x.shape)
        print("traced")
        return x * x.shape[0]

    fast = ex.compile(program, args=[ROWS])
    assert [str(shape[0]) for shape in runs] == ["batch", "4", "1", "16"]
    assert capsys.readouterr().out == "traced\n"
    for n in (1, 2, 16, 4):
        np.testing.assert_array_equal(fast(rows(n)), rows(n) * n)
    assert len(runs) == 4


def test_the_specializations_say_for_which_shapes_why_and_when(sums):
    sums(rows(3))
    sums.explore(rows(5))
    told = sums.specializations
    assert [repr(one) for one in told] == [
        "Specialization({x: (4, 2)}, 'optimised for')",
        "Specialization({x: (3, 2)}, 'called')",
        "Specialization({x: (5, 2)}, 'explored')",
    ]
    assert all(one.seconds > 0 for one in told)
    assert [one.when for one in told] == sorted(one.when for one in told)


def test_the_least_recently_used_binary_is_let_go_and_compiled_again_when_it_is_needed():
    fast = ex.compile(lambda x: x + 1, args=[ROWS], max_specializations=2)
    calls = {n: rows(n) for n in (1, 2, 3)}

    def kept():
        return {one.shapes["x"][0] for one in fast.specializations}

    for n, left in ((1, {4, 1}), (2, {1, 2}), (1, {1, 2}), (3, {1, 3})):
        np.testing.assert_array_equal(fast(calls[n]), calls[n] + 1)
        assert kept() == left
    with pytest.warns(ex.errors.RecompilationWarning, match="more shapes in turn than the 2"):
        fast(calls[2])
    for n, left in ((2, {2, 3}), (3, {2, 3})):
        np.testing.assert_array_equal(fast(calls[n]), calls[n] + 1)
        assert kept() == left


@pytest.mark.filterwarnings("ignore:.*more shapes in turn:explorer.errors.RecompilationWarning")
def test_at_most_that_many_binaries_are_kept_however_many_shapes_come():
    fast = ex.compile(lambda x: x + 1, args=[ROWS], max_specializations=1)
    for n in (1, 2, 3, 1, 2, 3):
        np.testing.assert_array_equal(fast(rows(n)), rows(n) + 1)
        assert len(fast.specializations) == 1


@pytest.mark.parametrize("shapes", [range(5, 13), [7] * 8], ids=["eight shapes", "one shape"])
def test_eight_threads_compile_each_shape_once(sums, shapes):
    calls = [rows(n) for n in shapes]
    ready = threading.Barrier(8)

    def call(x):
        ready.wait()
        return sums(x)

    with compiles() as seen, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(call, calls))
    assert len(seen) == len(set(shapes))
    for result, x in zip(results, calls, strict=True):
        np.testing.assert_allclose(result, x.sum(1) * x.shape[0])


def test_a_shape_that_fails_to_compile_fails_alone_and_again():
    def program(x):
        if x.shape[0] > 5:
            raise ArithmeticError("too long")
        return x

    with pytest.warns(ex.errors.TracedPerShapeWarning):
        fast = ex.compile(program, args=[ROWS])
    for _ in range(2):
        with pytest.raises(ex.errors.ExploreError, match="too long"):
            fast(rows(6))
        np.testing.assert_array_equal(fast(rows(5)), rows(5))


def test_output_infos_name_the_sizes_and_what_is_made_of_them():
    seq = ex.NamedDimension("seq", 1, 4, 16)
    fast = ex.compile(
        lambda x: {"two": jnp.concatenate([x, x], 1), "flat": x.reshape(-1), "half": x[:, : x.shape[1] // 2]},
        args=[ex.InputInfo((BATCH, seq), jnp.float32)],
    )
    assert {name: info.shape for name, info in fast.output_infos.items()} == {
        "result.flat": ("batch*seq",),
        "result.half": ("batch", "floordiv(seq,2)"),
        "result.two": ("batch", "2*seq"),
    }


TRAPS = [
    lambda x: x * 10 if x.shape[0] == 1 else x,
    lambda x: x * 10 if x.shape[0] != 1 else x,
    lambda x: x * 10 if x.shape[0] == 4 else x,
    lambda x: x * 10 if x.shape[0] == 16 else x,
    lambda x: x * 10 if x.shape[0] in (3, 7) else x,
    lambda x: x * 10 if x.shape[0] % 2 == 1 else x,
    lambda x: x * 10 if x.shape == (4, 2) else x,
    lambda x: x * 10 if x.shape[0] > 4 else x,
    lambda x: x * 10 if 2 * x.shape[0] <= 7 else x,
    lambda x: x * 10 if x.shape[0] in {1, 4} else x,
    lambda x: x * {1: 10}[x.shape[0]] if x.shape[0] in {1: 10} else x,
    lambda x: x * 10 if x.shape[0] % 2 else x,
    lambda x: x * 10 if not x.shape[0] - 1 else x,
    lambda x: x * [10, 1][min(x.shape[0], 2) - 1],
    lambda x: x * 10 if max(x.shape) == 4 else x,
    lambda x: jax.lax.fori_loop(0, 2, lambda i, y: y * 10 if y.shape[0] == 1 else y, x),
    lambda x: jax.jit(lambda y: y * 10 if y.shape[0] == 1 else y)(x),
    lambda x: jax.grad(lambda y: (y * 10 if y.shape[0] == 1 else y).sum())(x),
    lambda x: jax.vmap(lambda y: y * 10 if y.shape[0] == 1 else y, in_axes=1)(x),
]


@pytest.mark.parametrize("program", TRAPS)
def test_a_branch_on_a_size_is_right_at_every_size(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.errors.TracedPerShapeWarning)
        fast = ex.compile(program, args=[ROWS])
    for n in (1, 2, 3, 4, 5, 16):
        np.testing.assert_array_equal(fast(rows(n)), program(rows(n)))


def test_a_branch_on_a_size_is_warned_about_with_its_line():
    def program(x):
        return x if x.shape[0] == 9 else -x

    line = program.__code__.co_firstlineno + 1
    with pytest.warns(
        ex.errors.TracedPerShapeWarning, match=rf"`batch == 9`(.|\n)*test_dynamic\.py, line {line}:"
    ) as caught:
        fast = ex.compile(program, args=[ROWS])
    assert caught[0].filename == __file__
    assert "each shape traced separately" in repr(fast)
    fast(rows(3))
    assert re.search(rf"called; traced separately(.|\n)*line {line}:", fast.specializations[-1].reason)


SMALL = [
    (lambda x: x * 10 if x.shape[0] == 1 else x, 2),
    (lambda x: x * 10 if x.shape[0] == 1 else x * 3 if 2 * x.shape[0] == 4 else x, 3),
    (jnp.vectorize(lambda v: v / v.sum(), signature="(n)->(n)"), 2),
]


@pytest.mark.parametrize(("program", "least"), SMALL)
def test_a_small_size_that_is_asked_for_has_a_program_of_its_own_and_all_others_share_one(program, least, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = ex.compile(program, args=[ROWS])
    fast.save(tmp_path / "small.explorer", derivatives=1)
    for executable in (fast, ex.Executable.load(tmp_path / "small.explorer")):
        for n in (1, 2, 3, 16):
            np.testing.assert_allclose(executable(rows(n) + 1), program(rows(n) + 1), rtol=1e-6)
            gradient = jax.grad(lambda x, exe=executable: (exe(x) ** 2).sum())(rows(n) + 1)
            np.testing.assert_allclose(gradient, jax.grad(lambda x: (program(x) ** 2).sum())(rows(n) + 1), atol=1e-5)
    apart = [
        next(iter(one.shapes.values()))[0] for one in fast.specializations if "holds for some sizes only" in one.reason
    ]
    assert apart == [n for n in (1, 2, 3, 16) if n < least]
    with pytest.raises(ex.errors.TransformationError, match=r"`batch == 1`"):
        fast.trace()


@pytest.mark.parametrize("ahead", [0, 4])
def test_an_empty_dimension_has_a_program_of_its_own(ahead):
    fast = ex.compile(lambda x: (x.sum(), 2 * x), args=[ex.InputInfo(((0, ahead, 8), 2), jnp.float32)])
    for n in (0, 1, 8, 0):
        total, doubled = fast(rows(n))
        assert float(total) == float(rows(n).sum())
        assert doubled.shape == (n, 2)
    (empty,) = [one for one in fast.specializations if one.shapes["x"] == (0, 2)]
    assert "no symbol can be 0" in empty.reason


def test_what_may_be_empty_in_two_dimensions_goes_through_a_file(tmp_path):
    dims = [ex.NamedDimension(name, 0, 2, 4) for name in ("b", "n")]
    fast = ex.compile(lambda x: x * x.shape[0] + x.shape[1], args=[ex.InputInfo(tuple(dims), "float32")])
    fast.save(tmp_path / "fast.explorer")
    loaded = ex.Executable.load(tmp_path / "fast.explorer")
    for shape in ((0, 0), (0, 3), (3, 0), (3, 4)):
        np.testing.assert_array_equal(loaded(jnp.ones(shape)), fast(jnp.ones(shape)))


def test_a_dimension_of_one_size_is_no_symbol():
    one = ex.NamedDimension("one", 3, 3, 3)
    fast = ex.compile(lambda x, y: x if x.shape[0] == 3 else y, args=[ex.InputInfo((one,), "float32")] * 2)
    assert fast(jnp.ones(3), jnp.zeros(3)).tolist() == [1, 1, 1]
    assert repr(fast) == "Executable(<lambda>(x: f32[one], y: f32[one]) → f32[3])"
    with pytest.raises(ex.errors.InputShapeError):
        fast(jnp.ones(4), jnp.ones(4))


def test_a_size_of_its_own_is_used_in_shapes_and_in_arithmetic():
    def program(n, x):
        return jnp.full((n, 2), n * 1.0) + x[0] * (n + 1) // 2

    fast = ex.compile(program, args=[ex.compat.tripy.DimensionInputInfo((1, 2, 8)), ROWS])
    for n in (1, 2, 8):
        np.testing.assert_array_equal(fast(n, rows(3)), program(n, rows(3)))


def test_a_size_of_its_own_equals_the_dimension_of_its_name():
    fast = ex.compile(lambda x, n: x.reshape(n, -1) + n, args=[ROWS, ex.compat.tripy.DimensionInputInfo(BATCH)])
    np.testing.assert_array_equal(fast(rows(3), 3), rows(3) + 3)
    with pytest.raises(
        ex.errors.InputShapeError, match=r"`batch` has several sizes in one call: 3 in `x` \(dimension 0\), 4"
    ):
        fast(rows(3), 4)


@pytest.mark.parametrize("value", [2.0, True, "2", None, jnp.float32(2), [2]])
def test_a_size_that_is_no_int_is_refused(value):
    fast = ex.compile(lambda n: jnp.zeros(n), args=[ex.compat.tripy.DimensionInputInfo((1, 2, 8))])
    with pytest.raises((ex.errors.NotAnArrayError, ex.errors.InputStructureError)):
        fast(value)
    assert fast(jnp.int32(2)).shape == (2,)


def test_inputs_of_one_name_must_agree_and_the_error_names_all():
    fast = ex.compile(lambda x, y: x + y, args=[ROWS, ROWS])
    for _ in range(2):
        with pytest.raises(ex.errors.InputShapeError) as caught:
            fast(rows(3), rows(5))
    assert str(caught.value).startswith(
        "dimension `batch` has several sizes in one call: 3 in `x` (dimension 0), 5 in `y` (dimension 0).\n"
        "  compiled for one size in all places of `batch`\n  called at  test_dynamic.py, line "
    )
    np.testing.assert_array_equal(fast(rows(3), rows(3)), 2 * rows(3))


@pytest.mark.parametrize(("n", "wider"), [(17, "1, 4, 17"), (0, "0, 4, 16")])
def test_a_size_out_of_range_is_refused_with_the_range_and_the_cure(sums, n, wider):
    with pytest.raises(ex.errors.InputShapeError) as caught:
        sums(rows(n))
    text = str(caught.value)
    assert f"input `x` has shape ({n}, 2), outside the range this executable was compiled for." in text
    assert f"dimension 0 (`batch`) is {n}; compiled for 1 ≤ batch ≤ 16 (optimised for 4)" in text
    assert f"Hint: compile with NamedDimension('batch', {wider})" in text


def program(x):
    return jnp.tanh(x) * x.shape[0] + lax.cumsum(x, 1)


KINDS = {
    "static": lambda: ex.compile(program, args=[ex.InputInfo((3, 2), "float32")]),
    "dynamic": lambda: ex.compile(program, args=[ROWS]),
    "per shape": lambda: ex.compile(lambda x: program(x) if x.shape[0] == 3 else x, args=[ROWS]),
    "level 1": lambda: ex.compile(program, 1, args=[ROWS]),
    "donated": lambda: ex.compile(program, args=[ROWS], donate=["x"]),
}
TRANSFORMS = {
    "jit": lambda f: jax.jit(lambda x: f(x) + 1),
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "jacobian": lambda f: jax.jacobian(f),
    "hessian": lambda f: jax.hessian(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x + 1])),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(lambda x: f(x).sum()))(jnp.stack([x, x + 1])),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), c.sum()), x, None, length=3),
    "checkpoint": lambda f: jax.grad(lambda x: jax.checkpoint(f)(x).sum()),
    "eval_shape": lambda f: lambda x: jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(f, x)),
}


@pytest.fixture(scope="module", params=KINDS)
def transformable(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.errors.TracedPerShapeWarning)
        return KINDS[request.param]()


@pytest.mark.slow
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_an_executable_under_a_transformation_is_the_function(transformable, transform):
    x = rows(3) / 4
    found, wanted = jax.jit(TRANSFORMS[transform](transformable))(x), jax.jit(TRANSFORMS[transform](program))(x)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert not x.is_deleted()


def test_a_shape_that_does_not_fit_is_refused_under_a_transformation_too(sums):
    for call in (jax.jit(sums), jax.vmap(sums), jax.grad(lambda x: sums(x).sum())):
        with pytest.raises(ex.errors.InputError, match=r"called at  test_dynamic\.py"):
            call(jnp.ones((17, 17, 2)))


def test_executables_inside_executables_keep_their_checks_and_their_symbols():
    half = ex.compile(lambda x: x / 2, args=[ex.InputInfo(((1, 4, 8), 2), jnp.float32)])
    fast = ex.compile(lambda x: half(half(x)) + x.shape[0], args=[ex.InputInfo((4, 2), jnp.float32)])
    np.testing.assert_array_equal(fast(rows(4)), rows(4) / 4 + 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.errors.TracedPerShapeWarning)
        outer = ex.compile(lambda x: half(x) + x.shape[0], args=[ROWS])
    for n in (1, 3, 8):
        np.testing.assert_array_equal(outer(rows(n)), rows(n) / 2 + n)
    with pytest.raises((ex.errors.InputShapeError, ex.errors.ExploreError), match="outside the range"):
        outer(rows(9))


def test_an_exception_of_the_users_comes_with_the_line_it_was_raised_at():
    def program(x):
        raise ArithmeticError("mine")

    with pytest.raises(ex.errors.ExploreError, match=r"mine(.|\n)*test_dynamic\.py, line") as caught:
        ex.compile(program, args=[ROWS])
    assert isinstance(caught.value.__cause__, ArithmeticError)


def test_what_a_shape_needed_dies_with_its_binary():
    class Mine(np.ndarray):
        """NumPy's own can't be referred to weakly."""

    weight = np.ones(2, np.float32).view(Mine)
    known = weakref.ref(weight)
    fast = ex.compile(lambda x, w: x @ jnp.asarray(w), args=[ROWS, weight])
    fast(rows(3))
    del weight, fast
    gc.collect()
    assert known() is None


@pytest.mark.slow
@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.sampled_from(["b", "n", 2, 3]), st.sampled_from(["b", "n", 1, 2])), min_size=1, max_size=3),
    st.data(),
)
def test_any_shapes_that_fit_give_the_right_result_and_any_others_a_clear_error(shapes, data):
    dims = {"b": ex.NamedDimension("b", 1, 2, 4), "n": ex.NamedDimension("n", 0, 3, 4)}
    infos = [ex.InputInfo(tuple(dims.get(d, d) for d in shape), "float32") for shape in shapes]

    def program(*arrays):
        return [(a * a.shape[0]).sum(1) for a in arrays], sum(a.size for a in arrays)

    fast = ex.compile(program, args=infos)
    for _ in range(3):
        given = [tuple(data.draw(st.integers(0, 5)) if d in dims else d for d in shape) for shape in shapes]
        arrays = [jnp.ones(shape) for shape in given]
        sizes = [
            (d, size) for shape, got in zip(shapes, given, strict=True) for d, size in zip(shape, got, strict=True)
        ]
        fits = all(dims[d].min <= size <= dims[d].max for d, size in sizes if d in dims)
        agrees = all(len({size for d, size in sizes if d == name}) <= 1 for name in dims)
        if fits and agrees:
            for one, other in zip(jax.tree.leaves(fast(*arrays)), jax.tree.leaves(program(*arrays)), strict=True):
                np.testing.assert_array_equal(one, other)
        else:
            with pytest.raises(ex.errors.InputShapeError, match="called at"):
                fast(*arrays)
