"""compile(): InputInfo leaves become inputs, all else is constant; a call that doesn't fit is refused first."""

import gc
import inspect
import keyword
import re
import weakref
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

F32 = ex.InputInfo((2, 8), jnp.float32)
X = jnp.arange(16, dtype=jnp.float32).reshape(2, 8)


class GEGLU:
    """The seeds' module, in JAX."""

    def __init__(self, inputs, outputs):
        self.weight = jnp.ones((inputs, 2 * outputs))
        self.bias = jnp.ones(2 * outputs)

    def __call__(self, x):
        x, gate = jnp.split(x @ self.weight + self.bias, 2, axis=-1)
        return x * jax.nn.gelu(gate)


def test_every_executable_is_of_the_public_class_and_answers_calls_by_a_function_of_its_own():
    one, other = (ex.compile(lambda x, n=n: x * n, args=[ex.InputInfo((2,), "float32")]) for n in (2, 3))
    assert type(one) is type(other) is ex.Executable
    x = jnp.ones(2)
    assert [(one(x).tolist(), other(x).tolist()) for _ in range(3)] == [([2.0, 2.0], [3.0, 3.0])] * 3


def test_a_module_compiles_with_its_weights_as_constants():
    layer = GEGLU(8, 4)
    fast = ex.compile(layer, args=[F32])
    np.testing.assert_allclose(fast(X), layer(X), rtol=1e-6)
    assert repr(fast) == "Executable(GEGLU(x: f32[2,8]) → f32[2,4])"
    assert {constant.name for constant in fast.explore().constants} == {"self.weight", "self.bias"}


def test_the_seeds_example_gives_the_seeds_numbers():
    fast = ex.compile(GEGLU(2, 1), args=[ex.InputInfo(shape=(1, 2), dtype=jnp.float32)])
    three = jnp.full((1, 1), 3.0)  # 1·1 + 1·1 + 1: the value, and its gate
    np.testing.assert_allclose(fast(jnp.ones((1, 2))), three * jax.nn.gelu(three), rtol=1e-6)


def test_sizes_whose_compile_failed_or_was_interrupted_leave_no_lock_and_compile_at_the_next_call(monkeypatch):
    batch = ex.NamedDimension("batch", 1, 2, 8)
    double = ex.compile(lambda x: x * 2, args=[ex.InputInfo((batch,), jnp.float32)], dynamic="specialise")
    for error in (MemoryError, KeyboardInterrupt):
        with monkeypatch.context() as failing:
            failing.setattr("explorer.aot.binaries.compile_with_findings", Mock(side_effect=error))
            with pytest.raises(error):
                double(jnp.ones(5))
    assert not double._binaries._locks
    assert double(jnp.ones(5)).tolist() == [2.0] * 5


def test_the_python_runs_once_whatever_the_calls():
    runs = []

    def double(x):
        runs.append(1)
        return x * 2

    fast = ex.compile(double, args=[F32])
    for _ in range(3):
        fast(X)
    assert len(runs) == 1


def test_explore_shows_the_very_same_compilation():
    fast = ex.compile(GEGLU(8, 4), args=[F32])
    assert fast.explore() is fast.explore() is ex.explore(fast)
    assert repr(fast.explore()) == "Capture(GEGLU: jaxpr → stablehlo → hlo)"
    assert fast.explore().signature == "(x: f32[2,8])"


def test_explore_takes_input_infos():
    assert ex.explore(lambda x: x * 2, F32).signature == "(x: f32[2,8])"


class Point(NamedTuple):
    x: object
    y: object


def nested(data, scale, point, *, offset):
    return {"sum": data["a"] + data["b"][1] * scale + point.y[3], "offset": offset}


def test_inputs_are_found_in_any_tree_and_named_by_their_path():
    fast = ex.compile(
        nested,
        args=[{"a": F32, "b": [None, F32]}, 2.0, Point(None, {3: F32})],
        kwargs={"offset": ex.InputInfo((), "int32")},
    )
    assert list(fast.input_infos) == ["data.a", "data.b[1]", "point.y[3]", "offset"]
    assert list(inspect.signature(fast).parameters) == ["data", "point", "offset"]
    out = fast({"a": X, "b": [None, X]}, offset=jnp.int32(3), point=Point(None, {3: X}))
    np.testing.assert_array_equal(out["sum"], 4 * X)
    assert out["offset"] == 3
    assert fast.output_infos == {
        "result.offset": ex.types.OutputInfo((), np.dtype("int32")),
        "result.sum": ex.types.OutputInfo((2, 8), np.dtype("float32")),
    }


def test_a_constant_slot_may_hold_anything_and_a_constant_key_may_be_left_out():
    fast = ex.compile(lambda d, s: d["x"] * d["k"] + s[1], args=[{"x": F32, "k": 3.0}, [7, F32]])
    np.testing.assert_array_equal(fast({"x": X}, ["anything", X]), 4 * X)


@jax.tree_util.register_dataclass
@dataclass
class Batch:
    image: object
    label: object


def test_a_dataclass_tree_holds_inputs():
    fast = ex.compile(lambda batch: batch.image * batch.label, args=[Batch(F32, 2.0)])
    assert list(fast.input_infos) == ["batch.image"]
    np.testing.assert_array_equal(fast(Batch(X, 2.0)), 2 * X)
    with pytest.raises(ex.errors.InputStructureError, match="`batch` is dict, not Batch"):
        fast({"image": X})


@jax.tree_util.register_dataclass
@dataclass
class Scaled:
    array: object
    by: int = field(metadata={"static": True})


def test_another_static_value_than_the_one_compiled_in_is_refused():
    fast = ex.compile(lambda s: s.array * s.by, args=[Scaled(F32, 2)])
    np.testing.assert_array_equal(fast(Scaled(X, 2)), 2 * X)
    with pytest.raises(ex.errors.InputStructureError, match="`s` has the structure"):
        fast(Scaled(X, 3))


def test_the_compiler_calls_the_inputs_by_their_paths():
    infos = [{"a-b": F32, "b": [F32]}, F32]
    capture = ex.compile(lambda d, y: d["a-b"] + d["b"][0] + y, args=infos).explore()
    assert capture.signature == "(d: 2 arrays, y: f32[2,8])"
    assert "d['b'][0]" in capture.stablehlo.text


def test_variadic_arguments_are_frozen_to_what_was_compiled():
    def total(*args, **kwargs):
        return sum(args) + sum(kwargs.values())

    fast = ex.compile(total, args=[F32, 1.0, F32], kwargs={"b": F32, "a": 2.0})
    assert list(fast.input_infos) == ["args0", "args2", "b"]
    np.testing.assert_array_equal(fast(X, X, b=X), 3 * X + 3)


def test_the_kinds_of_parameters_are_kept():
    def both(x, /, y, *, z):
        return x + y * z

    fast = ex.compile(both, args=[F32, F32], kwargs={"z": F32})
    assert str(inspect.signature(fast)) == "(x: jax.Array, /, y: jax.Array, *, z: jax.Array) -> jax.Array"
    np.testing.assert_array_equal(fast(X, y=X, z=X), X + X * X)
    with pytest.raises(ex.errors.ExtraArgumentError, match="3 arguments by position, of at most 2"):
        fast(X, X, X)
    with pytest.raises(ex.errors.ExtraArgumentError, match="`x` is given by name"):
        fast(x=X, y=X, z=X)


def test_no_two_parameters_share_a_name():
    def positional(args0, *args):
        return args0 - args[0]

    def named(x, /, **kwargs):
        return x - kwargs["x"]

    def bound(self):
        return self * 2

    fast = ex.compile(positional, args=[F32, F32])
    assert list(inspect.signature(fast).parameters) == ["args0", "args0_"]
    np.testing.assert_array_equal(fast(2 * X, X), X)
    np.testing.assert_array_equal(ex.compile(named, args=[F32], kwargs={"x": F32})(2 * X, x=X), X)
    np.testing.assert_array_equal(ex.compile(bound, args=[F32])(self=X), 2 * X)


@pytest.mark.parametrize("name", ["a-b", keyword.kwlist[0]])
def test_a_keyword_that_no_signature_can_show_is_refused(name):
    with pytest.raises(ex.errors.ArgumentsError, match=f"'{name}' is no valid argument name"):
        ex.compile(lambda **kwargs: sum(kwargs.values()), kwargs={name: F32})


def test_a_function_without_inputs_compiles():
    assert ex.compile(lambda: jnp.arange(3))().tolist() == [0, 1, 2]


def test_bound_methods_and_partials_compile():
    layer = GEGLU(8, 4)
    np.testing.assert_allclose(ex.compile(layer.__call__, args=[F32])(X), layer(X), rtol=1e-6)
    np.testing.assert_array_equal(ex.compile(partial(jnp.multiply, 2.0), args=[F32])(X), 2 * X)


def test_outputs_keep_the_functions_own_tree():
    out = ex.compile(lambda x: [Point(x, (x,))], args=[F32])(X)
    assert isinstance(out, list)
    assert isinstance(out[0], Point)
    assert isinstance(out[0].y, tuple)


def test_there_is_one_specialization_with_its_shapes():
    (one,) = ex.compile(lambda x: x, args=[F32]).specializations
    assert repr(one) == "Specialization({x: (2, 8)}, 'compiled')"
    assert one.seconds > 0


@pytest.fixture(scope="module")
def add():
    return ex.compile(lambda x, y: x + y, args=[F32, F32])


BAD_CALLS = [
    ((X,), {}, ex.errors.MissingArgumentError, "argument `y` is missing"),
    ((X, X, X), {}, ex.errors.ExtraArgumentError, "3 arguments by position, of at most 2"),
    ((X, X), {"z": X}, ex.errors.ExtraArgumentError, "unexpected argument `z`"),
    ((X,), {"x": X}, ex.errors.DuplicateArgumentError, "argument `x` is given twice"),
    ((X, X[:1]), {}, ex.errors.InputShapeError, r"`y` has shape \(1, 8\); dimension 0 is 1, not 2"),
    ((X, X[0]), {}, ex.errors.InputRankError, r"`y` has rank 1, shape \(8,\), not rank 2"),
    ((X, np.ones((2, 8))), {}, ex.errors.InputDtypeError, "`y` has dtype float64, not float32"),
    ((X, X.astype(jnp.int32)), {}, ex.errors.InputDtypeError, "`y` has dtype int32, not float32"),
    ((X, 1.0), {}, ex.errors.NotAnArrayError, "`y` is no array but float"),
    ((X, [X]), {}, ex.errors.NotAnArrayError, "`y` is no array but list"),
]


@pytest.mark.parametrize(("args", "kwargs", "kind", "says"), BAD_CALLS)
def test_a_call_that_does_not_fit_is_refused_and_says_where(add, args, kwargs, kind, says):
    line = inspect.currentframe().f_lineno + 2
    with pytest.raises(kind, match=says) as caught:
        add(*args, **kwargs)
    assert re.search(
        rf"called at  test_compile.py, line {line}:   add\(\*args, \*\*kwargs\)\n  Hint: ", str(caught.value)
    )
    np.testing.assert_array_equal(add(X, X), 2 * X)


def test_a_missing_part_of_a_tree_is_named():
    fast = ex.compile(lambda d: d["a"][0] + d["b"], args=[{"a": [F32], "b": F32}])
    with pytest.raises(
        ex.errors.InputStructureError, match=r"input `d\.a\[0\]` is not there: list has nothing at \[0\]"
    ):
        fast({"a": [], "b": X})


MISFITS = [
    ({"a": [X, X], "b": X}, r"`d\.a` has more than it was compiled with: 2 elements, not 1"),
    ({"a": [X], "b": X, "c": X}, "`d` has more than it was compiled with: 'c'"),
    ({"a": {0: X}, "b": X}, r"`d\.a` is dict, not list"),
    ([X, X], "`d` is list, not dict"),
]


@pytest.mark.parametrize(("value", "says"), MISFITS)
@pytest.mark.parametrize("constant", [{}, {"k": 3.0}])
def test_nothing_that_is_given_is_dropped_in_silence(value, says, constant):
    fast = ex.compile(lambda d: d["a"][0] + d["b"], args=[{"a": [F32], "b": F32, **constant}])
    with pytest.raises(ex.errors.InputStructureError, match=says):
        fast(value)


def test_a_call_keeps_nothing_alive():
    class Mine(np.ndarray):
        """NumPy's own can't be referred to weakly."""

    fast = ex.compile(lambda x: x * 2, args=[F32])
    given = np.asarray(X).copy().view(Mine)
    known = weakref.ref(given)
    gc.disable()
    try:
        fast(given)
        del given
        assert known() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("returned", [None, "text"])
def test_an_output_that_is_no_array_is_refused_by_its_place(returned):
    with pytest.raises(ex.errors.OutputError, match=rf"returns {returned!r} as `result\[1\]`"):
        ex.compile(lambda x: (x, returned), args=[F32])


def test_a_trace_that_fails_points_at_the_users_line_and_keeps_their_error():
    def branch(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(ex.errors.ExploreError, match=r"test_compile.py, line \d+:   return x if") as caught:
        ex.compile(branch, args=[F32])
    assert isinstance(caught.value.__cause__, jax.errors.TracerBoolConversionError)


def test_a_random_key_is_an_input():
    key = jax.random.key(0)
    fast = ex.compile(lambda key: jax.random.normal(key, (2,)), args=[ex.InputInfo.like(key)])
    np.testing.assert_array_equal(fast(key), jax.random.normal(key, (2,)))


def test_arguments_that_do_not_fit_the_function_are_refused_before_tracing():
    with pytest.raises(ex.errors.ArgumentsError, match="missing a required argument: 'y'"):
        ex.compile(lambda x, y: x + y, args=[F32])
    with pytest.raises(ex.errors.NotCallableError):
        ex.compile(X, args=[F32])
    with pytest.raises(
        ex.errors.ArgumentsError, match="args is InputInfo, kwargs is dict; allowed are a list and a dict"
    ):
        ex.compile(lambda x: x, args=F32)
