"""What is known of a padded array's padding."""

from jax import ShapeDtypeStruct

from explorer.padding.interpreter import make_value


def test_of_axes_that_an_operation_wrote_the_fill_is_unknown_and_of_the_others_it_stays():
    value = make_value(None, ShapeDtypeStruct((4, 5, 6), "float32"), fills=[0.0, 1.0, None])
    assert value.fills_without([0]) == [None, 1.0, None]
    assert value.fills_without([1, 2]) == [0.0, None, None]
    assert value.fills_without([]) == [0.0, 1.0, None]
