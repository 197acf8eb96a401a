"""What who comes from Tripy expects: the contract's rows in order, each test a behaviour."""

import inspect
import json
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

F32 = ex.InputInfo((2, 8), jnp.float32)
X = jnp.arange(16, dtype=jnp.float32).reshape(2, 8)
BATCH = ex.NamedDimension("batch", 1, 2, 4)
ROWS = ex.InputInfo((BATCH, 8), jnp.float32)


def rows(n):
    return jnp.arange(8.0 * n).reshape(n, 8)


@contextmanager
def refused(kind, *says):
    with pytest.raises(kind) as caught:
        yield
    for words in says:
        assert words in str(caught.value)


# compile() traces once, returns an Executable ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "info", [F32, ROWS, ex.InputInfo(((0, 2, 4), 8), jnp.float32)], ids=["fixed", "named", "range"]
)
def test_python_runs_at_compile_and_at_no_call(info):
    runs = []

    def double(x):
        runs.append(x.shape)
        return x * 2

    fast = ex.compile(double, args=[info])
    # A trace for all sizes is held against one at the usual, the smallest and the largest size; Tripy has one alone.
    assert len(runs) == (1 if info is F32 else 4)
    sizes = (2,) if info is F32 else (1, 2, 3, 4, 3)
    for n in sizes:
        np.testing.assert_array_equal(fast(rows(n)), 2 * rows(n))
    assert isinstance(fast, ex.Executable)
    assert len(runs) == (1 if info is F32 else 4)


# InputInfo leaves, nested in any tree, become inputs; all else is constant -------------------------------------------


class Point(NamedTuple):
    x: Any
    y: Any


@jax.tree_util.register_dataclass
@dataclass
class Batch:
    image: Any
    label: Any


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        ({"b": {"list": [1.0, F32]}}, ["data.b.list[1]"]),
        ((F32, (2.0, F32)), ["data[0]", "data[1][1]"]),
        (Point(1.0, F32), ["data.y"]),
        ({3: F32, 1: 2.0}, ["data[3]"]),
        (OrderedDict(z=F32, a=F32), ["data.z", "data.a"]),
        (Batch(F32, 3.0), ["data.image"]),
    ],
    ids=["dict-and-list", "tuple", "namedtuple", "int-keys", "ordered-dict", "dataclass"],
)
def test_an_input_in_a_tree_has_a_name_and_the_rest_is_constant(tree, names):
    def total(data):
        return sum(jax.tree.leaves(data))

    fast = ex.compile(total, args=[tree])
    assert list(fast.input_infos) == names
    given = jax.tree.map(lambda leaf: X if leaf is F32 else leaf, tree, is_leaf=lambda leaf: leaf is F32)
    np.testing.assert_array_equal(fast(given), total(given))


# An argument without any input leaves the signature ------------------------------------------------------------------


def test_an_argument_without_an_input_is_no_argument_any_more():
    fast = ex.compile(lambda x, mode, scale: x * scale, args=[F32, "fast", 2.0])
    assert str(inspect.signature(fast)) == "(x: jax.Array) -> jax.Array"
    np.testing.assert_array_equal(fast(X), 2 * X)


def test_a_constant_dict_key_may_be_omitted_and_a_constant_list_slot_may_be_anything():
    fast = ex.compile(lambda d: d["x"] * d["k"] + d["l"][0], args=[{"x": F32, "k": 2.0, "l": [3.0, F32]}])
    for slot in (None, "text", X, 4.0):
        np.testing.assert_array_equal(fast({"x": X, "l": [slot, X]}), 2 * X + 3)


# Parameter order follows the function; kwargs; what *args and **kwargs took is frozen ---------------------------------


def test_parameters_keep_the_functions_order_not_that_of_the_description():
    fast = ex.compile(lambda a, b, c: a - b + c, kwargs={"c": F32, "b": F32, "a": F32})
    assert list(inspect.signature(fast).parameters) == ["a", "b", "c"]
    np.testing.assert_array_equal(fast(X, 2 * X, 3 * X), 2 * X)
    np.testing.assert_array_equal(fast(X, c=3 * X, b=2 * X), 2 * X)


def test_variadics_are_frozen_to_what_was_compiled():
    fast = ex.compile(lambda *args, **kwargs: sum(args) * kwargs["k"], args=[F32, F32], kwargs={"k": F32})
    assert list(inspect.signature(fast).parameters) == ["args0", "args1", "k"]
    with refused(ex.errors.ExtraArgumentError, "3 arguments by position, of at most 2"):
        fast(X, X, X, k=X)
    with refused(ex.errors.ExtraArgumentError, "unexpected argument `other`"):
        fast(X, X, k=X, other=X)


def test_a_frozen_argument_never_takes_the_name_of_another():
    fast = ex.compile(lambda args0, *args: args0 - args[0], args=[F32, F32])
    assert len(set(inspect.signature(fast).parameters)) == 2
    np.testing.assert_array_equal(fast(3 * X, X), 2 * X)


# Every form of a shape, its bounds checked ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("info", "bounds"),
    [
        (ex.InputInfo((2, 8), "float32"), ((2, 8), (2, 8), (2, 8))),
        (ex.InputInfo(((1, 2, 4), 8), jnp.float32), ((1, 8), (2, 8), (4, 8))),
        (ROWS, ((1, 8), (2, 8), (4, 8))),
        (ex.InputInfo(X), ((2, 8), (2, 8), (2, 8))),
        (ex.InputInfo(jax.ShapeDtypeStruct((2, 8), jnp.float32)), ((2, 8), (2, 8), (2, 8))),
        (ex.InputInfo.like(np.asarray(X)), ((2, 8), (2, 8), (2, 8))),
        (ex.InputInfo((), jnp.float32), ((), (), ())),
    ],
    ids=["ints", "range", "named", "array", "struct", "like", "scalar"],
)
def test_a_shape_is_written_in_many_forms(info, bounds):
    assert info.shape_bounds == bounds
    assert ex.InputInfo.from_json(json.loads(json.dumps(info.to_json()))) == info


def test_a_shape_dtype_struct_is_an_input_as_it_is():
    assert ex.compile(jnp.sin, args=[jax.ShapeDtypeStruct((2, 8), jnp.float32)]).input_infos == {"x": F32}


def test_an_input_may_say_over_which_devices_it_is_spread():
    sharding = jax.NamedSharding(jax.make_mesh((1,), ("d",)), jax.P("d"))
    fast = ex.compile(lambda x: x + 1, args=[ex.InputInfo((2, 8), jnp.float32, sharding=sharding)])
    assert fast.input_infos["x"].sharding == sharding
    np.testing.assert_array_equal(fast(jax.device_put(X, sharding)), X + 1)


@pytest.mark.slow
def test_a_size_is_an_input_of_its_own():
    many = ex.compile(
        lambda x, n: jnp.broadcast_to(x, (n, *x.shape)) * n,
        args=[ex.InputInfo((8,), jnp.float32), ex.compat.tripy.DimensionInputInfo((1, 2, 4))],
    )
    for n in (2, 1, 3, 2):
        np.testing.assert_array_equal(many(X[0], n), [n * X[0]] * n)
    with refused(ex.errors.InputShapeError, "input `n` is 5, outside of 1 ≤ n ≤ 4"):
        many(X[0], 5)


@pytest.mark.parametrize("bounds", [(4, 2, 8), (1, 9, 8), (-1, 2, 4), (1, 2), (1.0, 2, 4), (True, 2, 4)], ids=str)
def test_bounds_that_are_not_in_order_are_refused(bounds):
    with refused(ex.errors.InputInfoError, repr(bounds), "(1, 8, 64)"):
        ex.InputInfo((bounds, 8), jnp.float32)
    with refused(ex.errors.InputInfoError, repr(bounds)):
        ex.compat.tripy.DimensionInputInfo(bounds)


def test_one_name_has_one_range():
    other = ex.InputInfo((ex.NamedDimension("batch", 1, 2, 5), 8), jnp.float32)
    with refused(ex.errors.InputInfoError, "`batch` has two bounds: (1, 2, 4) in dimension 0 of `x`, (1, 2, 5)", "`y`"):
        ex.compile(lambda x, y: (x, y), args=[ROWS, other])


# Dimensions of one name are equal at run time ------------------------------------------------------------------------


def test_unequal_sizes_of_one_name_are_refused_naming_both_inputs():
    runs = []
    fast = ex.compile(lambda x, y: (jax.debug.callback(lambda: runs.append(1)), x + y)[1], args=[ROWS, ROWS])
    with refused(ex.errors.InputShapeError, "`batch` has several sizes in one call: 2 in `x` (dimension 0), 3 in `y`"):
        fast(rows(2), rows(3))
    jax.effects_barrier()
    assert runs == []


# No inputs; several outputs; a list of one stays one -----------------------------------------------------------------


def test_a_function_without_inputs_compiles():
    fast = ex.compile(lambda: jnp.ones((2, 3)))
    assert fast.input_infos == {}
    np.testing.assert_array_equal(fast(), np.ones((2, 3)))


@pytest.mark.parametrize(
    "tree", [lambda x: (x, x + 1), lambda x: [x], lambda x: (x,), lambda x: {"a": [x], "b": Point(x, ())}]
)
def test_outputs_keep_the_functions_own_tree(tree):
    out = ex.compile(tree, args=[F32])(X)
    assert jax.tree.structure(out) == jax.tree.structure(tree(X))
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(out), jax.tree.leaves(tree(X)), strict=True))


# Only arrays are returned --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "text", object], ids=["None", "text", "a-class"])
def test_what_is_no_array_is_no_output_and_the_error_names_its_place_and_value(value):
    with refused(ex.errors.OutputError, f"returns {value!r} as `result[1]`", "only arrays"):
        ex.compile(lambda x: (x, value), args=[F32])


# Evaluating a traced value points at the user's line, with the fix ---------------------------------------------------


def helper(ask, x):
    return ask(x)


EVALUATIONS = [
    pytest.param(lambda x: float(x.sum()), "`float(x.sum())`", id="float"),
    pytest.param(lambda x: bool(x.any()), "`bool(x.any())`", id="bool"),
    pytest.param(lambda x: np.asarray(x), "`np.asarray(x)`", id="asarray"),
    pytest.param(lambda x: x.sum().item(), "`x.sum().item()`", id="item"),
    pytest.param(lambda x: 1 if x.sum() > 0 else 2, "`if x.sum() > 0`", id="if"),
]


@pytest.mark.parametrize(("ask", "what"), EVALUATIONS)
@pytest.mark.parametrize("nested", [False, True], ids=["direct", "nested"])
def test_evaluating_a_traced_value_points_at_the_line_and_says_what_to_write(ask, what, nested):
    def function(x):
        return x * (helper(ask, x) if nested else ask(x))

    line = inspect.getsourcelines(ask)[1]
    with refused(ex.errors.TracedValueError, what, f"test_behaviours_tripy.py, line {line}:", "Hint: "):
        ex.compile(function, args=[F32])


@pytest.mark.parametrize(
    ("ask", "fix"),
    [
        (lambda x: x if x.sum() > 0 else -x, "jax.lax.cond"),
        (lambda x: x if x.sum() > 0 else -x, "jnp.where"),
        (lambda x: print(float(x.sum())) or x, "jax.debug.print"),
        (lambda x: np.asarray(x) + 1, "jnp"),
    ],
    ids=["cond", "where", "print", "numpy"],
)
def test_the_hint_of_a_traced_value_is_the_fix_for_what_was_asked(ask, fix):
    with pytest.raises(ex.errors.TracedValueError) as caught:
        ex.compile(ask, args=[F32])
    assert fix in str(caught.value).partition("Hint: ")[2]


def test_the_hint_for_an_input_that_should_be_a_constant_says_so():
    with refused(ex.errors.TracedValueError, "`range(n)`", "argument `n`", "constant"):
        ex.compile(lambda x, n: [x for _ in range(n)], args=[F32, ex.InputInfo((), jnp.int32)])


# Evaluating what doesn't reach the outputs ---------------------------------------------------------------------------


def test_printing_a_traced_value_is_no_error(capsys):
    fast = ex.compile(lambda x: print("x is", x) or x + 1, args=[F32])
    np.testing.assert_array_equal(fast(X), X + 1)
    assert capsys.readouterr().out.count("x is") == 1
