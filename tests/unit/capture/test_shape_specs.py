"""What a text or an annotation says of an array's shape and dtype."""

import inspect

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.command_target import annotated_arguments, parse_shape_spec, parse_symbolic_spec


def struct(shape, dtype):
    return jax.ShapeDtypeStruct(shape, dtype)


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("f32[8,128]", (8, 128), "float32"),
        ("f64[3]", (3,), "float64"),
        ("f16[3]", (3,), "float16"),
        ("bf16[2]", (2,), "bfloat16"),
        ("i8[4]", (4,), "int8"),
        ("s32[4]", (4,), "int32"),  # as HLO has it
        ("u16[4]", (4,), "uint16"),
        ("c64[4]", (4,), "complex64"),
        ("float32[2]", (2,), "float32"),
        ("uint8[2]", (2,), "uint8"),
        ("F32[2]", (2,), "float32"),
        ("bool[]", (), "bool"),
        ("pred[2]", (2,), "bool"),
        ("PRED[2]", (2,), "bool"),
        ("f8_e4m3fn[2]", (2,), "float8_e4m3fn"),
        ("float8_e4m3fn[2]", (2,), "float8_e4m3fn"),
        (" f32 [ 8 , 128 , ] ", (8, 128), "float32"),
        ("f32[0]", (0,), "float32"),
        ("f32[]", (), "float32"),
        ("f32", None, None),
        ("f32[a]", None, None),
        ("f32[8][2]", None, None),
        ("f32[,]", None, None),
        ("f7[2]", None, None),
        ("table[2]", None, None),
        ("str[2]", None, None),  # NumPy has it, JAX doesn't
        ("object[2]", None, None),
        ("datetime64[2]", None, None),
        ("timedelta64[2]", None, None),
        # NumPy's codes of a letter: of a name in the module, these are items.
        ("d[2]", None, None),
        ("a[0]", None, None),
        ("b[1]", None, None),
        ("m8[1]", None, None),
        *((f"{letter}[3]", None, None) for letter in "fisucF"),
        ("jnp.ones(3)", None, None),
    ],
)
def test_a_text_stands_for_an_array_or_for_none(text, shape, dtype):
    parsed = parse_shape_spec(text)
    assert parsed == (None if shape is None else struct(shape, jnp.dtype(dtype)))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("f32[batch,seq,64]", (("batch", "seq", 64), "float32")),
        ("bf16[ n ]", (("n",), "bfloat16")),
        ("i32[n,]", (("n",), "int32")),
        ("f32[8]", None),  # that is an array of one size
        ("f32[]", None),
        ("f32[2*n]", None),
        ("f32[n,,m]", None),
        ("table[row]", None),
        ("n", None),
    ],
)
def test_sizes_may_have_names(text, parsed):
    symbolic = parse_symbolic_spec(text)
    assert symbolic == (None if parsed is None else (parsed[0], jnp.dtype(parsed[1])))


class Typed:
    """As jaxtyping's annotations are: the sizes as text, and the dtypes that are allowed."""

    def __init__(self, dim_str, dtypes):
        self.dim_str, self.dtypes = dim_str, dtypes


def described(a, b: float, /, c: "int", d: Typed("3 4", ["int8", "float32"]), *rest: int, e: bool, f=3, **more):
    return a


described.__annotations__["a"] = "f32[2]"


def test_annotations_describe_what_is_not_given_by_position_first():
    arguments = [*annotated_arguments(described, 0, ())]
    assert arguments == [
        (None, struct((2,), jnp.float32)),
        (None, 1.0),
        ("c", 1),
        ("d", struct((3, 4), jnp.float32)),
        ("e", True),
    ]
    assert [*annotated_arguments(described, 2, ("d",))] == [arguments[2], arguments[4]]
    assert [*annotated_arguments(described, 3, ("e",))] == [arguments[3]]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Typed("8", ["float32", "float64"]), struct((8,), jnp.float32)),
        (Typed("", ["int8", "int32"]), struct((), jnp.int32)),
        (Typed("8", ["uint8"]), struct((8,), jnp.uint8)),  # none of the usual
        (Typed("8", ["bool", "complex64"]), struct((8,), jnp.bool_)),
        (struct((5,), jnp.int8), struct((5,), jnp.int8)),
        ("'f32[2]'", struct((2,), jnp.float32)),
        ("bool", True),
        (int, 1),
    ],
)
def test_an_annotation_is_an_array_or_a_number(annotation, value):
    def f(x):
        return x

    f.__annotations__["x"] = annotation
    assert [*annotated_arguments(f, 0, ())] == [("x", value)]


@pytest.mark.parametrize("annotation", [Typed("n 4", ["float32"]), Typed("8", []), dict, "dict", "list[int]", None])
def test_what_says_no_shape_is_asked_for_with_what_to_write(annotation):
    def step(x, y=1):
        return x

    if annotation is not None:
        step.__annotations__["x"] = annotation
    with pytest.raises(ex.errors.OptionError) as refused:
        [*annotated_arguments(step, 0, ())]
    assert str(refused.value) == (
        "the argument `x` of step is missing, and no annotation describes it.\n"
        "  Hint: --arg 'x=f32[8,128]', or --arg 'x=jnp.ones(3)'; or annotate it: x: \"f32[8,128]\""
    )


def test_of_a_function_without_a_signature_nothing_is_described():
    class Opaque:
        __signature__ = "none"

        def __call__(self, x: float):
            return x

    with pytest.raises((TypeError, ValueError)):
        inspect.signature(Opaque())
    assert [*annotated_arguments(Opaque(), 0, ())] == []
