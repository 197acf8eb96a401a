"""The points of a sweep: what a name may be, how values combine, and what is refused."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.measure.arguments import axis_of, distinct_labels, value_text
from explorer.measure.grid import grid_of
from explorer.model.results.statistics import growth_of


def scale(x, n, *, bias=0):
    return x, n, bias


def calls(grid):
    return [made.function(*made.args, **made.kwargs) for made in (point.make() for point in grid.points)]


def test_a_parameter_of_the_function_is_replaced():
    assert calls(grid_of(scale, [1, 9], {}, {"n": [2, 3]})) == [(1, 2, 0), (1, 3, 0)]


def test_a_swept_argument_may_be_left_out_wherever_it_stands():
    assert calls(grid_of(scale, [1], {}, {"n": [2]})) == [(1, 2, 0)]
    assert calls(grid_of(scale, [5], {}, {"x": [2]})) == [(2, 5, 0)]
    assert calls(grid_of(scale, [1, 2], {}, {"bias": [7]})) == [(1, 2, 7)]


def test_a_function_that_takes_any_name_is_given_it():
    def anything(x, **named):
        return x, named

    assert calls(grid_of(anything, [1], {"a": 2}, {"n": [3]})) == [(1, {"a": 2, "n": 3})]


def test_values_that_are_no_arrays_are_constants_of_the_program_and_arrays_are_arguments():
    (point,) = grid_of(scale, [jnp.ones(3)], {}, {"n": [2], "bias": [jnp.ones(1)]}).points
    made = point.make()
    assert made.function.keywords == {"n": 2}
    assert len(made.args) == 1
    assert list(made.kwargs) == ["bias"]


def test_a_jitted_function_knows_itself_what_is_static():
    function = jax.jit(lambda x, n: x, static_argnames="n")
    made = grid_of(function, [jnp.ones(3)], {}, {"n": [2]}).points[0].make()
    assert made.function is function
    assert made.args[1] == 2


def test_what_comes_before_a_positional_only_argument_is_not_held():
    def positional(n, x, /):
        return n, x

    made = grid_of(positional, [0, 5], {}, {"n": [2]}).points[0].make()
    assert made.args == (2, 5)


def test_a_parameter_of_args_makes_the_arguments_even_where_the_function_has_the_name():
    grid = grid_of(lambda n: n.shape, [], {}, {"n": [3, 4]}, lambda n: jnp.ones(n))
    assert calls(grid) == [(3,), (4,)]


def test_args_gives_a_tuple_of_arguments_or_the_only_one():
    assert calls(grid_of(scale, [], {}, {"k": [2]}, lambda k: (k, k + 1))) == [(2, 3, 0)]
    assert calls(grid_of(lambda x: x, [], {}, {"k": [2]}, lambda k: k)) == [2]


def test_args_are_made_when_their_turn_comes():
    asked = []
    grid = grid_of(lambda x: x, [], {}, {"k": [1, 2]}, lambda k: asked.append(k) or k)
    assert not asked
    grid.points[1].make()
    assert asked == [2]


def test_arguments_by_name_stay_beside_those_that_args_makes():
    assert calls(grid_of(scale, [], {"bias": 4}, {"k": [2]}, lambda k: (k, k))) == [(2, 2, 4)]


def test_options_are_one_by_one_or_in_dicts():
    grid = grid_of(scale, [1, 2], {}, {"options.xla_a": [1, 2]})
    assert [point.make().options for point in grid.points] == [{"xla_a": 1}, {"xla_a": 2}]
    grid = grid_of(scale, [1, 2], {}, {"options": [{}, {"xla_a": 1, "xla_b": True}]})
    assert [point.make().options for point in grid.points] == [{}, {"xla_a": 1, "xla_b": True}]
    assert grid.axes[0].labels == ("none", "xla_a=1, xla_b=True")


def test_dtype_casts_all_arguments_of_floating_point_and_nothing_else():
    given_ = [{"w": jnp.ones(2), "i": jnp.arange(2)}, np.ones(2, np.float16), 1.5]
    grid = grid_of(lambda a, b, c: None, given_, {}, {"dtype": [jnp.bfloat16, "float32"]})
    first, second = (point.make().args for point in grid.points)
    assert (first[0]["w"].dtype, first[0]["i"].dtype, first[1].dtype) == (jnp.bfloat16, jnp.int32, jnp.bfloat16)
    assert second[1].dtype == jnp.float32
    assert first[2] == 1.5
    assert grid.axes[0].labels == ("bfloat16", "float32")


def test_dtype_is_the_functions_own_where_it_has_such_a_parameter():
    (made,) = calls(grid_of(lambda x, dtype: dtype, [jnp.ones(2)], {}, {"dtype": [jnp.bfloat16]}))
    assert made is jnp.bfloat16


def test_dtype_casts_what_stands_for_an_array():
    info = ex.InputInfo((4,), jnp.float32)
    made = grid_of(lambda x: x, [info], {}, {"dtype": [jnp.bfloat16]}).points[0].make()
    assert made.args[0].dtype == jnp.bfloat16


def test_a_dict_names_its_values():
    axis = grid_of(scale, [1, 2], {}, {"n": {"few": 1, "many": 100}}).axes[0]
    assert (axis.labels, axis.numbers) == (("few", "many"), None)


@pytest.mark.parametrize("values", [range(2, 4), np.array([2, 3]), jnp.array([2, 3]), iter([2, 3])])
def test_any_iterable_gives_values_and_those_of_an_array_are_numbers(values):
    grid = grid_of(scale, [1], {}, {"n": values})
    assert calls(grid) == [(1, 2, 0), (1, 3, 0)]
    assert grid.axes[0].numbers == (2.0, 3.0)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_every_combination_is_a_point_the_last_axis_the_fastest(sizes):
    over = {f"a{i}": list(range(size)) for i, size in enumerate(sizes)}

    def function(**named):
        return tuple(named[name] for name in over)

    grid = grid_of(function, [], {}, over)
    assert calls(grid) == list(itertools.product(*over.values()))
    assert [point.at for point in grid.points] == [point for point in itertools.product(*map(range, sizes))]


@pytest.mark.parametrize(
    ("over", "told"),
    [
        ({}, "over is an empty dict"),
        ([1], r"over is \(1\)"),
        ({"n": []}, r"over\['n'\] has no values"),
        ({"n": "abc"}, "has abc for its values"),
        ({"n": 3}, "has 3 for its values"),
        ({3: [1]}, "has 3 for a name"),
        ({"bais": [1]}, "Did you mean `bias`"),
        ({"options": [1]}, "allowed are dicts of XLA's options"),
        ({"options.": [1]}, "no parameter of scale"),
    ],
)
def test_what_is_no_sweep_is_refused_with_what_is_allowed(over, told):
    with pytest.raises(ex.errors.OptionError, match=told):
        grid_of(scale, [1, 2], {}, over)


@pytest.mark.parametrize(
    ("dtype", "told"),
    [("flaot", "takes a dtype"), ("int8", "int8 is no such dtype"), ("float64", "JAX makes float32 of it")],
)
def test_a_dtype_that_nothing_can_be_cast_to_is_refused(dtype, told):
    with pytest.raises(ex.errors.OptionError, match=told):
        grid_of(scale, [jnp.ones(2), 1], {}, {"dtype": [dtype]})


def test_dtype_without_anything_to_cast_is_refused():
    with pytest.raises(ex.errors.OptionError, match="scale gets none"):
        grid_of(scale, [1, 2], {}, {"dtype": ["float32"]})


def test_arguments_that_do_not_fit_are_refused_before_anything_runs():
    with pytest.raises(ex.errors.ArgumentsError, match="missing a required argument: 'x'"):
        grid_of(scale, [], {}, {"n": [1]})
    with pytest.raises(ex.errors.ArgumentsError, match="too many"):
        grid_of(scale, [1, 2, 3], {}, {"n": [1]})


def test_args_that_asks_for_more_than_is_swept_is_refused():
    with pytest.raises(ex.errors.OptionError, match="args= asks for `m`"):
        grid_of(scale, [], {}, {"n": [1]}, lambda n, m: n)


def test_args_beside_arguments_by_position_and_what_is_no_callable_are_refused():
    with pytest.raises(ex.errors.OptionError, match="1 arguments by position and args="):
        grid_of(scale, [1], {}, {"n": [1]}, lambda n: n)
    with pytest.raises(ex.errors.NotCallableError, match="args of sweep is tuple"):
        grid_of(scale, [], {}, {"n": [1]}, (1, 2))
    with pytest.raises(ex.errors.NotCallableError, match="takes a function; it got int"):
        grid_of(3, [], {}, {"n": [1]})


class Opaque:
    pass


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1024, "1,024"), (True, "True"), (None, "None"), (0.25, "0.25"), ((8, 8), "(8, 8)"), (jnp.tanh, "tanh"),
        (jnp.dtype("bfloat16"), "bfloat16"), (np.ones((2, 3), np.int8), "i8[2,3]"), ([np.ones(1)] * 2, "2 arrays"),
        ({"a": 1.5}, "a=1.5"), (jax.ShapeDtypeStruct((4,), jnp.float32), "f32[4]"),
    ],
)  # fmt: skip
def test_values_are_called_what_they_are(value, told):
    assert value_text(value) == told


def test_a_value_of_a_class_of_the_users_has_no_address_in_its_label():
    assert "0x" not in value_text(Opaque())


def test_arrays_and_shapes_stand_where_their_number_of_elements_is_unless_two_have_the_same():
    assert axis_of("x", [(8, 8), (16, 8)]).numbers == (64.0, 128.0)
    assert axis_of("x", [np.ones(8), np.ones((2, 4))]).numbers is None
    assert axis_of("x", [8, "auto"]).numbers is None
    assert axis_of("x", [1.0, math.inf]).numbers is None
    assert axis_of("x", [True, False]).numbers is None


@given(st.lists(st.sampled_from(["a", "b", "a #2", "a #3"]), max_size=8))
def test_no_two_labels_are_alike(labels):
    made = distinct_labels(labels)
    assert len(set(made)) == len(labels)
    assert all(new.startswith(old) for new, old in zip(made, labels, strict=True))


@given(
    st.floats(-4, 4),
    st.floats(1e-6, 1e6),
    st.lists(st.floats(1, 1e5), min_size=3, max_size=8, unique_by=lambda x: round(math.log(x), 3)),
)
def test_a_power_is_found_again(power, factor, x):
    found = growth_of(x, [factor * value**power for value in x])
    assert found is not None
    assert found.power == pytest.approx(power, abs=1e-5)
    assert found.fit == pytest.approx(1, abs=1e-6) or abs(power) < 1e-3


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1e-9, 1e9)), min_size=3, max_size=10))
def test_a_fit_is_a_share_whatever_is_measured_and_scaling_changes_no_power(pairs):
    x, y = zip(*pairs, strict=True)
    found = growth_of(x, y)
    if found is None:
        assert len(set(x)) < 3 or max(math.log(v) for v in x) == min(math.log(v) for v in x)
    else:
        assert 0 <= found.fit <= 1
        again = growth_of(x, [value * 8 for value in y])
        assert again is not None
        assert again.power == pytest.approx(found.power, rel=1e-6, abs=1e-6 * max(1, abs(found.power)))


@pytest.mark.parametrize("y", [[1, 2, math.nan], [1, 2, 0], [1, 2, -1], [1, 2, math.inf]])
def test_what_is_no_number_above_zero_has_no_power(y):
    assert growth_of([1, 2, 3], y) is None


def test_two_points_are_no_power():
    assert growth_of([1, 2], [1, 2]) is None
    assert growth_of([1, 2, 2], [1, 2, 3]) is None
