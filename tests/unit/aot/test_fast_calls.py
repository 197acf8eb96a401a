"""Calls that JAX's dispatcher answers in C++: which they are, and that they are in nothing other than the first."""

import contextlib
import functools
import gc
import itertools
import sys
import threading
import warnings
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from tests.support.quick import quick

PAIR = ex.InputInfo((2,), jnp.float32)
ROWS = ex.InputInfo((ex.NamedDimension("rows", 1, 2, 8),), jnp.float32)
SCALAR = ex.InputInfo((), jnp.float32)
X = jnp.array([1.0, 2.0])
NUMPY = np.array([1, 2], np.float32)


class Point(NamedTuple):
    x: Any
    y: Any


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    w: Any
    bias: Any


def explorers_python(call):
    """The functions of Explorer's that a call runs, by name."""
    names = []

    def note(frame, event, _):
        if event == "call" and str(frame.f_globals.get("__name__")).startswith("explorer"):
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


def summed(*trees):
    return sum(leaf for leaf in jax.tree.leaves(trees) if isinstance(leaf, jax.Array))


def filled(n, x):
    return jnp.zeros(n) + x.sum()


KINDS = {
    "an array": (summed, [PAIR], [X]),
    "a range": (summed, [ROWS], [X]),
    "a bound array": (summed, [PAIR], [jax.device_put(X, jax.devices()[0])]),
    "leaves": (summed, [[PAIR, (PAIR, {"b": PAIR})]], [[X, (X, {"b": X})]]),
    "a weak type": (summed, [SCALAR], [jnp.asarray(3.0)]),
    "a number beside": (summed, [{"x": PAIR, "by": 3.0}], [{"x": X, "by": 4.0}]),
    "a text beside": (summed, [{"x": ROWS, "by": "relu"}], [{"x": X, "by": "gelu"}]),
    "a function beside": (summed, [{"x": PAIR, "by": len}], [{"x": X, "by": max}]),
    "an array beside": (summed, [[PAIR, np.ones(3)]], [[X, np.ones(3)]]),
    "a list beside": (summed, [{"x": PAIR, "by": 3.0}], [{"x": X, "by": [1, [2, "a"]]}]),
    "nothing beside": (summed, [{"x": PAIR, "by": 3.0}], [{"x": X}]),
    "a named tuple": (summed, [Point(PAIR, None)], [Point(X, None)]),
    "an ordered dict": (summed, [OrderedDict(b=PAIR, a=PAIR)], [OrderedDict(b=X, a=X)]),
    "a class of one's own": (summed, [Layer(PAIR, "none")], [Layer(X, "none")]),
    "a random key": (jax.random.normal, [ex.InputInfo.like(jax.random.key(0))], [jax.random.key(0)]),
    "a size": (filled, [ex.compat.tripy.DimensionInputInfo((1, 2, 8)), ROWS], [3, X]),
    "a size within": (
        lambda d: filled(**d),
        [{"n": ex.compat.tripy.DimensionInputInfo((1, 2, 8)), "x": PAIR}],
        [{"n": 3, "x": X}],
    ),
}
LOOKED_AT = {
    "NumPy": (summed, [PAIR], [NUMPY]),
    "a range of NumPy": (summed, [ROWS], [NUMPY]),
    "NumPy leaves": (summed, [[PAIR, PAIR]], [[NUMPY, X]]),
    "a scalar of NumPy": (summed, [SCALAR], [np.float32(3)]),
    "wide NumPy beside": (summed, [{"x": PAIR, "table": np.ones(3)}], [{"x": NUMPY, "table": np.ones(3)}]),
    "two of NumPy": (summed, [PAIR, PAIR], [NUMPY, X]),
    "a random key beside NumPy": (
        lambda key, x: jax.random.normal(key) + x,
        [ex.InputInfo.like(jax.random.key(0)), PAIR],
        [jax.random.key(0), NUMPY],
    ),
    "a size beside NumPy": (filled, [ex.compat.tripy.DimensionInputInfo((1, 2, 8)), ROWS], [3, NUMPY]),
}


@pytest.mark.parametrize("kind", [*KINDS, *LOOKED_AT])
def test_a_call_like_an_earlier_one_runs_nothing_of_explorers(kind):
    function, described, arguments = (KINDS | LOOKED_AT)[kind]
    executable = ex.compile(function, args=described)
    first = executable(*arguments)
    executable(*arguments), executable(*arguments)
    later = []
    assert explorers_python(lambda: later.append(executable(*arguments))) == ["checked"] * (kind in LOOKED_AT)
    np.testing.assert_array_equal(later[0], first)


def test_names_in_another_order_than_the_function_has_them_cost_no_checks():
    executable = ex.compile(lambda y, x: y - x, args=[PAIR, PAIR])
    for _ in range(3):
        np.testing.assert_array_equal(executable(x=X, y=3 * X), 2 * X)
        np.testing.assert_array_equal(executable(3 * X, x=X), 2 * X)
    assert "bind" not in explorers_python(lambda: executable(x=X, y=X))
    assert explorers_python(lambda: executable(X, x=X)) == []


# In any order of calls each is as if it were the first -----------------------------------------------------------


def program(d, n, pair, i):
    return {"d": d["x"] * d["by"] + len(d["kind"]), "n": filled(n, i), "pair": pair[0] + pair[1]}


@functools.cache
def compiled():
    """An executable with a binary for each size, so that another one with the same needs no compiler."""
    described = [
        {"x": PAIR, "by": 3.0, "kind": "relu"},
        ex.compat.tripy.DimensionInputInfo((1, 2, 4)),
        [SCALAR, 7],
        ex.InputInfo((2,), jnp.int32),
    ]
    executable = ex.compile(program, args=described)
    for n in range(1, 5):
        executable(d={"x": X, "by": 3.0, "kind": ""}, n=n, pair=[jnp.float32(1), 7], i=jnp.array([1, 2]))
    return executable


def new():
    return ex.Executable(compiled().plan, compiled().binaries)


def outcome(executable, setting, args, kwargs):
    try:
        with setting():
            result = executable(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    leaves, structure = jax.tree.flatten(result)
    return structure, [(x.dtype, x.weak_type, x.committed, x.sharding, x.tolist()) for x in leaves]


class MyFloat(np.float32):
    """One of NumPy's scalars, but not quite."""


class Text(str):
    """A text, but not quite."""


BOUND = jax.device_put(X, jax.devices()[0])
FITTING = {
    "x": [X, 3 * X, NUMPY, NUMPY * 5, BOUND, NUMPY[:1].repeat(2)],
    "scalar": [jnp.float32(2), jnp.asarray(2.0), np.float32(2), np.array(3, np.float32), MyFloat(4)],
    "n": [1, 2, 3, 4, np.int64(3), jnp.int32(3)],
    "i": [jnp.array([3, 4]), np.array([3, 4], np.int32)],
}
OTHERS = {
    "x": [np.ones(2), np.array([1, 2], ">f4"), np.ma.array(NUMPY, mask=[1, 0]), jnp.ones(3), 3.0, None, "relu", [X]],
    "scalar": [np.float64(2), np.array(3.0), 2.0, 2, True, jnp.int32(2), np.int32(2), None, X, np.float32],
    "n": [0, 5, True, np.int32(2), np.array(2), 2.0, "2", None, []],
    "i": [np.arange(2), jnp.array([3, 4]) * 1.0, np.array([1, 2], np.uint32), [1, 2], np.array([3, 4], ">i4")],
}
NUMBERS = [3.0, 4.0, 7, 2**70, True, None, 1j, np.float64(1), jnp.float32(2)]
ARRAYS = [X, NUMPY, np.ones(2), np.ones((2, 2)), np.array(["a"]), np.ma.array(NUMPY, mask=[1, 0])]
OBJECTS = ["relu", "gelu", Text("relu"), b"x", [], [X], {"a": 1}, object(), len, {1, 2}, Point(1, X), Layer(X, 1)]
CONSTANTS = st.sampled_from([*NUMBERS, *ARRAYS, *OBJECTS])
SETTINGS = st.sampled_from(
    [contextlib.nullcontext] * 6
    + [lambda: jax.enable_x64(True), lambda: jax.transfer_guard("disallow"), jax.disable_jit]
    + [lambda: jax.default_device(jax.devices()[0])]
)


@st.composite
def calls(draw):
    """One that fits, or that differs in one input or in its structure from one that does."""
    which = {name: draw(st.sampled_from(fitting)) for name, fitting in FITTING.items()}
    wrong = draw(st.sampled_from([None] * 8 + [*OTHERS]))
    if wrong is not None:
        which[wrong] = draw(st.sampled_from(OTHERS[wrong]))
    d = {"x": which["x"], "by": draw(CONSTANTS), "kind": draw(CONSTANTS)}
    for name in draw(st.sampled_from([[]] * 8 + [["by"], ["kind"], ["by", "kind"], ["x"]])):
        del d[name]
    pair = [which["scalar"], draw(CONSTANTS)]
    pair = draw(st.sampled_from([pair] * 8 + [tuple(pair), pair[:1], [*pair, 1]]))
    values = {"d": d, "n": which["n"], "pair": pair, "i": which["i"]}
    cut = draw(st.integers(0, 4))
    names = draw(st.permutations(list(values)[cut:]))
    return draw(SETTINGS), [values[name] for name in list(values)[:cut]], {name: values[name] for name in names}


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(calls(), min_size=1, max_size=5), st.data())
def test_each_of_any_calls_gives_what_it_would_have_given_as_the_first(sequence, data):
    executable = new()
    for at in data.draw(st.lists(st.integers(0, len(sequence) - 1), min_size=2, max_size=12)):
        first = outcome(new(), *sequence[at])
        for _ in range(4):  # the first of NumPy's has the later ones looked at, the second is kept
            assert outcome(executable, *sequence[at]) == first


RIGHT = {
    "d": [{"x": x, "by": by, "kind": kind} for x in (X, NUMPY) for by in (1.0, "a") for kind in ("relu", None)],
    "n": [1, 2],
    "pair": [[jnp.asarray(2.0), 7], [np.float32(3), None]],
    "i": [jnp.array([3, 4]), np.array([5, 6], np.int32)],
}


def test_kinds_of_right_calls_in_turn_are_not_mixed_up():
    executable = new()
    sequence = [dict(zip(RIGHT, values, strict=True)) for values in itertools.product(*RIGHT.values())]
    for _ in range(3):
        for values in sequence:
            found = executable(**values)
            np.testing.assert_array_equal(found["d"], np.asarray(values["d"]["x"]) * 3 + 4)
            np.testing.assert_array_equal(found["n"], np.full(values["n"], np.asarray(values["i"]).sum()))
            assert found["pair"] == values["pair"][0] + 7


# As jax.jit does -------------------------------------------------------------------------------------------------

GIVEN = {"an array": X, "NumPy": NUMPY, "a weak type": jnp.asarray(3.0), "a scalar": np.float32(3)}


@pytest.mark.parametrize("level", ["log", "disallow", "log_explicit", "disallow_explicit"])
@pytest.mark.parametrize("is_known", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("what", quick(GIVEN, {"an array", "a scalar"}))
def test_a_transfer_guard_sees_what_it_sees_of_jax_jit(what, is_known, level, capfd):
    def seen(function):
        for _ in range(3 * is_known):
            function(GIVEN[what])
        capfd.readouterr()
        try:
            with jax.transfer_guard(level):
                function(GIVEN[what])
        except Exception as error:
            return type(error), str(error).splitlines()[0]
        return capfd.readouterr().err.count("host-to-device transfer")

    executable = ex.compile(lambda x: x + x, args=[ex.InputInfo(np.shape(GIVEN[what]), jnp.float32)])
    assert seen(executable) == seen(jax.jit(lambda x: x + x))


def test_the_two_numpy_widths_are_told_apart_by_many_threads_at_once():
    executable = ex.compile(lambda x: x + x, args=[PAIR])
    start, wrong = threading.Barrier(8), []

    def work(dtype):
        value = np.ones(2, dtype)
        start.wait()
        for _ in range(50):
            try:
                executable(value)
                wrong.extend(["taken"] if dtype == np.float64 else [])
            except ex.errors.InputDtypeError:
                wrong.extend(["refused"] if dtype == np.float32 else [])

    threads = [threading.Thread(target=work, args=(dtype,)) for dtype in [np.float32, np.float64] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_was_compiled_with_64_bits_gets_64_bits_where_jax_narrows_them():
    with jax.enable_x64(True):
        executable = ex.compile(lambda x: x + x, args=[ex.InputInfo((2,), jnp.float64)])
        wide = jnp.ones(2) / 3
        np.testing.assert_array_equal(executable(wide), wide + wide)
    for _ in range(3):
        np.testing.assert_array_equal(executable(wide), 2 * np.ones(2) / 3)
        with pytest.raises(ex.errors.InputDtypeError):
            executable(np.ones(2, np.float32))


def test_a_donated_array_of_a_weak_type_is_gone_as_with_jax_jit():
    executable = ex.compile(lambda x: x + 1, args=[SCALAR], donate=["x"])
    for _ in range(3):
        weak = jnp.asarray(3.0)
        assert executable(weak) == 4
        assert weak.is_deleted()


def test_classes_of_constants_go_with_the_executable():
    executable = ex.compile(lambda d: d["x"] + 1, args=[{"x": PAIR, "by": 1}])
    kind = type("Own", (), {})
    for _ in range(3):
        executable({"x": X, "by": kind()})
    alive = weakref.ref(kind)
    del kind, executable
    gc.collect()
    assert alive() is None


# More shapes than are kept ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_more_shapes_in_turn_than_are_kept_warn_once_with_the_sizes_and_what_to_do():
    executable = ex.compile(lambda x: x + 1, args=[ROWS], max_specializations=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            for n in (2, 3, 4):
                executable(jnp.ones(n))
    assert [w.category for w in caught] == [ex.errors.RecompilationWarning]
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert "rows: 2, 3, 4\n" in text
    assert "max_specializations=3" in text


def test_as_many_shapes_as_are_kept_and_one_that_never_comes_again_warn_of_nothing():
    executable = ex.compile(lambda x: x + 1, args=[ROWS], max_specializations=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (3, 4, 3, 4, 5, 6, 5, 6):
            executable(jnp.ones(n))
