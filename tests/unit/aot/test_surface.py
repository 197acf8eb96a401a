"""What code around jax.jit and jax.stages.Compiled asks of an Executable."""

import inspect
from collections import OrderedDict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import explorer as ex

BATCH = ex.NamedDimension("batch", 1, 2, 64)
ROWS = ex.InputInfo((BATCH, 3), jnp.float32)
X = jnp.arange(6.0).reshape(2, 3)


def rows(n):
    return jnp.arange(3.0 * n).reshape(n, 3)


def scaled(x: jax.Array, by: float) -> jax.Array:
    """Scale."""
    return x * by


@pytest.fixture(scope="module")
def double():
    return ex.compile(scaled, args=[ROWS, 2.0])


def test_names_are_those_of_the_function(double):
    assert (double.__name__, double.__qualname__, double.__doc__) == ("scaled", "scaled", "Scale.")
    assert (double.__wrapped__, double.__module__) == (scaled, __name__)


def test_the_signature_says_what_goes_in_and_what_comes_out(double):
    assert str(inspect.signature(double)) == "(x: jax.Array) -> jax.Array"
    assert double.__annotations__ == {"x": jax.Array, "return": jax.Array}
    many = ex.compile(
        lambda x, n, *, data: (x, [data["a"]]),
        args=[ROWS, ex.compat.tripy.DimensionInputInfo((1, 2, 4))],
        kwargs={"data": {"a": ROWS}},
    )
    assert str(inspect.signature(many)) == "(x: jax.Array, n: int, *, data: dict) -> tuple[jax.Array, list]"


def test_export_of_an_executable_has_its_dimensions_and_bounds(double):
    exported = export.export(double)()
    assert str(exported.in_avals) == "(ShapedArray(float32[batch,3]),)"
    assert exported.fun_name == "scaled"
    again = export.deserialize(exported.serialize())
    for n in (1, 5, 64):
        np.testing.assert_array_equal(again.call(rows(n)), 2 * rows(n))
    with pytest.raises(ValueError, match="shapes"):
        again.call(rows(65))


def test_export_of_an_executable_for_given_shapes_or_the_callers_own_symbols(double):
    assert export.export(double)(X).in_avals[0].shape == (2, 3)
    scope = export.SymbolicScope(("b >= 1", "b <= 32"))
    own = export.export(double)(jax.ShapeDtypeStruct(export.symbolic_shape("2*b, 3", scope=scope), jnp.float32))
    assert str(own.out_avals) == "(ShapedArray(float32[2*b,3]),)"
    np.testing.assert_array_equal(own.call(rows(8)), 2 * rows(8))
    with pytest.raises(ex.errors.InputShapeError, match=r"symbolic dimension b, which may be outside .*\n.*batch ≤ 64"):
        export.export(double)(jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), jnp.float32))


def test_export_keeps_a_size_that_became_a_number():
    mean = ex.compile(lambda x: x.sum(0) / x.shape[0], args=[ROWS])
    scope = export.SymbolicScope(("b <= 64",))
    exported = export.export(mean)(jax.ShapeDtypeStruct(export.symbolic_shape("b, 3", scope=scope), jnp.float32))
    for n in (1, 7):
        np.testing.assert_allclose(exported.call(rows(n)), rows(n).mean(0))


def test_export_refuses_what_has_no_program_for_every_size():
    with pytest.warns(ex.errors.TracedPerShapeWarning):
        each = ex.compile(lambda x: x if x.shape[0] > 5 else -x, args=[ROWS])
    with pytest.raises(ex.errors.TransformationError, match="no program for every size at once"):
        export.export(each)()
    np.testing.assert_array_equal(export.export(each)(rows(8)).call(rows(8)), rows(8))


def test_a_loaded_executable_is_exported_too(double, tmp_path):
    double.save(tmp_path / "f.explorer")
    loaded = ex.Executable.load(tmp_path / "f.explorer")
    np.testing.assert_array_equal(export.export(loaded)().call(rows(4)), 2 * rows(4))
    assert inspect.signature(loaded) == inspect.signature(double)


def test_trace_lower_and_eval_shape_are_as_of_jax_jit(double):
    theirs = jax.jit(scaled, static_argnums=1)
    assert str(double.trace(X).jaxpr.in_avals) == str(theirs.trace(X, 2.0).jaxpr.in_avals)
    assert isinstance(double.lower(X), jax.stages.Lowered)
    np.testing.assert_array_equal(double.lower().compile()(X), 2 * X)
    assert double.eval_shape(rows(7)) == theirs.eval_shape(rows(7), 2.0)
    with pytest.raises(ex.errors.InputShapeError, match="dimension 0"):
        double.lower(rows(65))


def test_a_size_is_given_to_trace_as_in_a_call():
    many = ex.compile(
        lambda x, n: jnp.broadcast_to(x, (n, *x.shape)),
        args=[ex.InputInfo((3,), jnp.float32), ex.compat.tripy.DimensionInputInfo((1, 2, 4))],
    )
    assert many.eval_shape(X[0], 3).shape == (3, 3)
    assert many.lower().compile().out_info.shape == (2, 3)
    with pytest.raises(ex.errors.TransformationError, match="one of its arguments is a size"):
        many.trace()


def test_what_is_asked_of_a_compiled_program_is_answered_for_the_usual_sizes(double):
    theirs = jax.jit(scaled, static_argnums=1).lower(X, 2.0).compile()
    assert double.as_text().count("fusion") == theirs.as_text().count("fusion")
    assert double.cost_analysis()["flops"] == theirs.cost_analysis()["flops"]
    assert double.memory_analysis().argument_size_in_bytes == theirs.memory_analysis().argument_size_in_bytes
    assert double.out_tree == theirs.out_tree
    assert double.out_info.shape == theirs.out_info.shape == (2, 3)
    assert str(double.args_info[0][0].shape) == "(2, 3)"
    assert double.runtime_executable() is not None
    assert not hasattr(double, "nothing")
    assert isinstance(double.compiled, jax.stages.Compiled)


def test_clear_cache_keeps_the_usual_sizes_only(double):
    for n in (1, 2, 3):
        double(rows(n))
    double.clear_cache()
    assert [s.shapes for s in double.specializations] == [{"x": (2, 3)}]
    np.testing.assert_array_equal(double(rows(3)), 2 * rows(3))
    assert len(double.specializations) == 2


def test_dimension_names_say_which_axis_is_which():
    assert ex.InputInfo((2, BATCH, (1, 2, 3), BATCH), "int8").dimension_names == {1: "batch", 3: "batch"}
    assert ex.InputInfo((), "int8").dimension_names == {}


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_tuple_is_taken_where_a_list_was_described_and_the_reverse(dynamic):
    info = ROWS if dynamic else ex.InputInfo((2, 3), jnp.float32)
    whole = ex.compile(lambda d: d["a"][0] + d["a"][1][0], args=[{"a": [info, (info,)]}])
    constant = ex.compile(lambda d: d[0] + d[1][0] * d[1][1], args=[[info, [info, 3.0]]])
    for _ in range(2):
        for given in ({"a": [X, (X,)]}, {"a": (X, (X,))}, {"a": (X, [X])}):
            np.testing.assert_array_equal(whole(given), 2 * X)
        for given in ([X, [X, 3.0]], (X, (X, None)), [X, (X,)]):
            np.testing.assert_array_equal(constant(given), 4 * X)
    with pytest.raises(ex.errors.InputStructureError):
        whole({"a": (X, [X, X])})
    with pytest.raises(ex.errors.InputStructureError):
        whole(OrderedDict(a=[X, (X,)]))


def test_masked_arrays_and_tables_are_refused_as_jax_does(double):
    pandas = pytest.importorskip("pandas")
    values = np.asarray(X)
    given = [
        (np.ma.array(values, mask=values > 2), "numpy's MaskedArray", "x.filled(0)"),
        (pandas.Series(values[0]), "pandas's Series", "x.to_numpy('float32')"),
        (pandas.DataFrame(values), "pandas's DataFrame", "x.to_numpy('float32')"),
    ]
    for value, kind, hint in given:
        with pytest.raises((TypeError, ValueError)):
            jax.jit(lambda x: x)(value)
        with pytest.raises(ex.errors.NotAnArrayError) as caught:
            double(value)
        assert f"input `x` is no array but {kind}" in str(caught.value)
        assert hint in str(caught.value)
        assert "called at  test_surface.py" in str(caught.value)


def test_an_object_that_is_an_array_to_jax_is_one(double):
    class Wrapped:
        shape, dtype = X.shape, X.dtype

        def __jax_array__(self):
            return X

    np.testing.assert_array_equal(double(Wrapped()), 2 * X)


@pytest.mark.parametrize("donate", ["x", ["x"], 1, [-1], (1,)])
def test_donated_parameters_are_given_by_name_or_number(donate):
    step = ex.compile(lambda mode, x: x + 1, args=["fast", ex.InputInfo((2, 3), jnp.float32)], donate=donate)
    given = jnp.ones((2, 3))
    step(given)
    assert given.is_deleted()
