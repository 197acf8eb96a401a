"""Arrays come back from their bytes exactly, or are refused."""

import json
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.aot.encoding import array_from_bytes, array_to_bytes
from explorer.errors import ArchiveError

pytestmark = pytest.mark.slow

DTYPES = sorted({k.dtype.name for k in vars(jnp).values() if isinstance(getattr(k, "dtype", None), np.dtype)})


def through_bytes(array):
    said, content = array_to_bytes(array)
    return array_from_bytes(json.loads(json.dumps({"member": "a.bin", **said})), content)


def test_there_are_all_dtypes_of_jax():
    wanted = {"bool", "int2", "int4", "uint4", "int8", "uint64", "bfloat16", "float16", "float32", "complex64"}
    assert wanted | {"float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"} <= set(DTYPES)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 1)], ids=str)
def test_an_array_of_any_dtype_and_rank_comes_back_exactly(name, shape):
    count = int(np.prod(shape))
    array = np.asarray([0, 1] * 3)[:count].reshape(shape).astype(jnp.dtype(name))
    for order in ("C", "F"):
        found = through_bytes(np.asarray(array, order=order))
        assert (found.dtype, found.shape) == (array.dtype, shape)
        assert found.tobytes() == array.tobytes()


def test_every_bit_of_a_float_comes_back():
    bits = np.asarray([0x7FC00001, 0xFFC12345, 0x80000000, 1, 0x7F800000], "uint32")
    found = through_bytes(bits.view("float32"))
    np.testing.assert_array_equal(found.view("uint32"), bits)


def test_jaxs_own_arrays_come_back():
    array = jnp.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(jnp.asarray(through_bytes(array)), array)
    small = jnp.arange(-8, 8, dtype="int4")
    assert (jnp.asarray(through_bytes(small)) == small).all()


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_a_prng_key_comes_back_as_one(kind):
    for key in (jax.random.key(7, impl=kind), jax.random.split(jax.random.key(7, impl=kind), (2, 3))):
        found = through_bytes(key)
        assert (found.dtype, found.shape) == (key.dtype, key.shape)
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(key))


def test_the_other_byte_order_is_turned_round():
    said, content = array_to_bytes(np.asarray([1, 2], ">i4"))
    assert (said, content) == ({"dtype": "int32", "shape": [2]}, struct.pack("<2i", 1, 2))


@pytest.mark.parametrize(
    "array", [np.asarray(["a"]), np.asarray([object()]), np.zeros(1, "M8[s]"), np.zeros(1, "i4,i4")]
)
def test_an_array_of_another_dtype_is_refused(array):
    with pytest.raises(ArchiveError, match="can't be in a file"):
        array_to_bytes(array)


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ({}, b""),
        ({"dtype": "float32"}, b""),
        ({"dtype": "float33", "shape": [1]}, bytes(4)),
        ({"dtype": "object", "shape": [1]}, bytes(8)),
        ({"dtype": ">f4", "shape": [1]}, bytes(4)),
        ({"dtype": "float32", "shape": [2]}, bytes(4)),
        ({"dtype": "float32", "shape": [-1, -1]}, bytes(4)),
        ({"dtype": "float32", "shape": [True]}, bytes(4)),
        ({"dtype": "float32", "shape": [1.0]}, bytes(4)),
        ({"dtype": "float32", "shape": 1}, bytes(4)),
        ({"dtype": "int8", "shape": [1] * 100}, bytes(1)),
        ({"dtype": "int8", "shape": [0, 2**70]}, b""),
        ({"dtype": "bool", "shape": [2]}, b"\1\2"),
        ({"dtype": "uint32", "shape": [2], "key": "none"}, bytes(8)),
        ({"dtype": "uint32", "shape": [3], "key": "threefry2x32"}, bytes(12)),
        ({"dtype": "float32", "shape": [2], "key": "threefry2x32"}, bytes(8)),
        ({"dtype": "uint32", "shape": [2], "key": []}, bytes(8)),
    ],
    ids=str,
)
def test_what_describes_no_array_is_refused(said, content):
    with pytest.raises(ArchiveError):
        array_from_bytes(said, content)
