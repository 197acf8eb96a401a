"""What describes an input: every form of it, what it refuses, and that it is a value that text can say."""

import json
import os
import subprocess
import sys
import weakref
from contextlib import suppress
from keyword import iskeyword

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex

BATCH = ex.NamedDimension("batch", 1, 8, 64)
F32 = ex.InputInfo((2, 8), jnp.float32)
X = jnp.arange(16, dtype=jnp.float32).reshape(2, 8)


@pytest.mark.parametrize(
    ("shape", "bounds"),
    [
        ((), ((), (), ())),
        ((2, 8), ((2, 8), (2, 8), (2, 8))),
        ([2, np.int64(8)], ((2, 8), (2, 8), (2, 8))),
        (((1, 8, 64), 8), ((1, 8), (8, 8), (64, 8))),
        (([1, 8, 64], 8), ((1, 8), (8, 8), (64, 8))),
        (((0, 0, 64),), ((0,), (0,), (64,))),
        ((BATCH, BATCH), ((1, 1), (8, 8), (64, 64))),
        (((3, 3, 3),), ((3,), (3,), (3,))),
    ],
)
def test_a_shape_has_a_smallest_a_best_and_a_largest(shape, bounds):
    info = ex.InputInfo(shape, "float32")
    assert info.shape_bounds == bounds
    assert info.is_dynamic == (bounds[0] != bounds[2])
    assert info.to_struct() == jax.ShapeDtypeStruct(bounds[1], jnp.float32)


@pytest.mark.parametrize(
    "bounds", [(2, 1, 3), (1, 4, 3), (-1, 0, 1), (1.0, 2, 3), (True, 2, 3), (1, 2, 2**63), ("1",) * 3]
)
def test_bounds_that_are_not_in_order_are_refused_wherever_they_stand(bounds):
    for make in (
        lambda: ex.InputInfo((bounds, 8), "float32"),
        lambda: ex.NamedDimension("batch", *bounds),
        lambda: ex.compat.tripy.DimensionInputInfo(bounds),
    ):
        with pytest.raises(
            ex.errors.InputInfoError, match=r"has the bounds .* allowed are ints with 0 ≤ min ≤ opt ≤ max"
        ):
            make()


@pytest.mark.parametrize("name", ["", "a b", "1st", "a-b", "for", "max", "mod", 5, None])
def test_a_name_that_no_expression_can_use_is_refused(name):
    with pytest.raises(ex.errors.InputInfoError, match="can't name a dimension"):
        ex.NamedDimension(name, 1, 2, 3)


OTHER = ex.NamedDimension("batch", 1, 4, 64)


@pytest.mark.parametrize(
    "args",
    [
        [ex.InputInfo((BATCH,), "float32"), ex.InputInfo((OTHER,), "float32")],
        [ex.InputInfo((BATCH, OTHER), "float32")],
        [ex.InputInfo((BATCH,), "float32"), ex.compat.tripy.DimensionInputInfo(OTHER)],
        [{"a": [ex.InputInfo((BATCH,), "float32")], "b": ex.compat.tripy.DimensionInputInfo(OTHER)}],
    ],
)
def test_one_name_has_one_range_wherever_it_stands(args):
    with pytest.raises(ex.errors.InputInfoError, match=r"`batch` has two bounds: \(1, 8, 64\) in .* \(1, 4, 64\) in "):
        ex.compile(lambda *args: jnp.zeros(2), args=args)


@pytest.mark.parametrize(
    ("shape", "dtype", "says"),
    [
        (8, "float32", "a shape is a tuple of ints"),
        ((2, -1), "float32", "dimension 1 of a shape is -1"),
        ((2.0,), "float32", r"dimension 0 of a shape is 2\.0"),
        ((True,), "float32", "dimension 0 of a shape is True"),
        (((1, 2), 4), "float32", r"dimension 0 of a shape is \(1, 2\)"),
        ({2}, "float32", "a shape is a tuple of ints"),
        ((2**63,), "float32", "dimension 0 of a shape is 9223372036854775808"),
        ((2,), "float33", "is no dtype"),
        ((2,), None, "None is no dtype"),
        ((2,), object, "is no dtype"),
        ((2,), "U3", "is no dtype"),
        ((2,), ">f4", "is no dtype"),
        ((2,), "float64", "would become float32"),
    ],
)
def test_a_shape_or_dtype_that_no_input_can_have_is_refused(shape, dtype, says):
    with pytest.raises(ex.errors.InputInfoError, match=says):
        ex.InputInfo(shape, dtype)


@given(st.lists(st.integers(0, 2**63 - 1), max_size=6), st.sampled_from(["float32", "bfloat16", "int8", "bool"]))
def test_every_shape_of_natural_numbers_is_kept_as_it_came(shape, dtype):
    info = ex.InputInfo(shape, dtype)
    assert info.shape == tuple(shape)
    assert info == ex.InputInfo.like(info.to_struct())


ANYTHING = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists)


@pytest.mark.slow
@given(ANYTHING, ANYTHING)
def test_an_input_info_is_made_or_refused_never_a_crash(shape, dtype):
    with suppress(ex.errors.InputInfoError):
        assert hash(ex.InputInfo(shape, dtype)) == hash(ex.InputInfo(shape, dtype))


def test_an_array_says_what_an_input_is_like():
    assert ex.InputInfo.like(X) == ex.InputInfo.like(np.asarray(X)) == F32
    with pytest.raises(ex.errors.InputInfoError, match="float has no shape and dtype"):
        ex.InputInfo.like(1.0)


def test_input_infos_are_values():
    assert ex.InputInfo([2, 8], "float32") == F32
    assert hash(ex.InputInfo((np.int64(2), 8), np.float32)) == hash(F32)
    assert repr(F32) == "InputInfo((2, 8), float32)"


def test_an_array_and_a_struct_stand_for_their_shape_and_dtype():
    struct = jax.ShapeDtypeStruct((2, 8), jnp.float32)
    assert ex.InputInfo(X) == ex.InputInfo(np.asarray(X)) == ex.InputInfo(struct) == ex.InputInfo.like(struct) == F32
    assert ex.InputInfo(X, "int8") == ex.InputInfo((2, 8), "int8")
    assert ex.InputInfo.like(np.float32(1)) == ex.InputInfo((), "float32")
    assert ex.compile(lambda x: 2 * x, args=[struct]).input_infos == {"x": F32}


def test_what_an_input_is_like_keeps_no_array_alive():
    array = jnp.ones(3) * 2
    known = weakref.ref(array)
    info = ex.InputInfo.like(array)
    del array
    assert known() is None
    assert info.shape == (3,)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_a_random_keys_dtype_is_a_dtype_and_text_can_say_it(impl):
    keys = jax.random.split(jax.random.key(0, impl=impl), 3)
    info = ex.InputInfo.like(keys)
    assert info == ex.InputInfo((3,), keys.dtype) == ex.InputInfo.from_json(json.loads(json.dumps(info.to_json())))
    assert hash(info) == hash(ex.InputInfo((3,), keys.dtype))


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (F32, "InputInfo((2, 8), float32)"),
        (ex.InputInfo((), "int8"), "InputInfo((), int8)"),
        (ex.InputInfo((2,), "bfloat16"), "InputInfo((2,), bfloat16)"),
        (ex.InputInfo(((1, 8, 64), 2), bool), "InputInfo(((1, 8, 64), 2), bool)"),
        (ex.InputInfo((BATCH,), "float32"), "InputInfo((NamedDimension('batch', 1, 8, 64),), float32)"),
        (ex.compat.tripy.DimensionInputInfo((1, 8, 64)), "DimensionInputInfo((1, 8, 64))"),
        (ex.compat.tripy.DimensionInputInfo(BATCH), "DimensionInputInfo(NamedDimension('batch', 1, 8, 64))"),
        (ex.compat.tripy.DimensionInputInfo(3), "DimensionInputInfo(3)"),
        (ex.types.OutputInfo(("batch",), np.dtype("float32")), "OutputInfo((batch,), float32)"),
    ],
)
def test_a_description_is_shown_as_it_is_written(info, text):
    assert repr(info) == text


def test_equality_includes_names_and_bounds_and_dtype():
    same = [ex.InputInfo((ex.NamedDimension("batch", 1, 8, 64),), jnp.float32) for _ in range(2)]
    others = [
        ex.InputInfo((ex.NamedDimension("rows", 1, 8, 64),), jnp.float32),
        ex.InputInfo((ex.NamedDimension("batch", 1, 9, 64),), jnp.float32),
        ex.InputInfo(((1, 8, 64),), jnp.float32),
        ex.InputInfo((ex.NamedDimension("batch", 1, 8, 64),), jnp.int32),
        ex.InputInfo((8,), jnp.float32),
        ex.compat.tripy.DimensionInputInfo(ex.NamedDimension("batch", 1, 8, 64)),
    ]
    assert same[0] == same[1]
    assert len({*same, *others}) == 1 + len(others)


def test_a_description_can_not_be_changed():
    for info, field in ((F32, "shape"), (BATCH, "max"), (ex.compat.tripy.DimensionInputInfo(2), "dimension")):
        with pytest.raises(AttributeError):
            setattr(info, field, 3)


BOUNDS = st.lists(st.integers(0, 2**63 - 1), min_size=3, max_size=3).map(sorted).map(tuple)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True).filter(
    lambda name: name not in ("max", "min", "mod") and not iskeyword(name)
)
DIMENSIONS = (
    st.integers(0, 2**63 - 1) | BOUNDS | st.builds(lambda name, bounds: ex.NamedDimension(name, *bounds), NAMES, BOUNDS)
)
INFOS = st.builds(
    ex.InputInfo,
    st.lists(DIMENSIONS, max_size=5),
    st.sampled_from(["float32", "bfloat16", "int4", "bool", "complex64"]),
) | st.builds(ex.compat.tripy.DimensionInputInfo, DIMENSIONS)


@given(INFOS)
def test_a_description_goes_through_json_and_stays_the_same(info):
    back = type(info).from_json(json.loads(json.dumps(info.to_json())))
    assert (back, hash(back), repr(back)) == (info, hash(info), repr(info))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["shape", "dtype", "value", "name", "min"]), inner)
    ),
    max_leaves=6,
)


@given(INFOS, JSON, st.data())
def test_altered_json_describes_an_input_or_is_refused(info, junk, data):
    said = json.loads(json.dumps(info.to_json()))
    where = said
    while isinstance(where, (dict, list)) and where:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(where[key], (dict, list)) or data.draw(st.booleans()):
            where[key] = junk
            break
        where = where[key]
    for kind in (ex.InputInfo, ex.compat.tripy.DimensionInputInfo):
        with suppress(ex.errors.InputInfoError):
            assert isinstance(hash(kind.from_json(said)), int)


@given(JSON)
def test_no_json_at_all_is_a_crash(junk):
    for kind in (ex.InputInfo, ex.compat.tripy.DimensionInputInfo):
        with suppress(ex.errors.InputInfoError):
            kind.from_json(junk)
        with suppress(ex.errors.InputInfoError):
            kind.from_json({"shape": [2], "dtype": "float32", "sharding": junk})


FOUR_DEVICES = """
import json, warnings
import jax, jax.numpy as jnp, numpy as np
import explorer as ex
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P, SingleDeviceSharding
warnings.simplefilter("error")

told = {}
def tell(name, call):
    try:
        told[name] = str(call())
    except ex.ExplorerError as error:
        told[name] = f"{type(error).__name__}: {error}"

def spread(array):
    return f"{array.sum()} on {len(array.devices())}"

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
split, whole, third = NamedSharding(mesh, P("x")), NamedSharding(mesh, P()), SingleDeviceSharding(jax.devices()[2])
x = jnp.arange(8.0)
def double(x):
    return 2 * x
def info(sharding=None, shape=(8,)):
    return ex.InputInfo(shape, "float32", sharding=sharding)

def same_from_json(sharding):
    there = info(sharding)
    return ex.InputInfo.from_json(json.loads(json.dumps(there.to_json()))) == there

for name, sharding in (("split", split), ("whole", whole), ("third", third), ("two axes", NamedSharding(
        jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2), P(("a", "b"))))):
    tell("json " + name, lambda: same_from_json(sharding))
last = NamedSharding(jax.sharding.Mesh(jax.devices()[2:], ("x",)), P("x"))
tell("json of some devices", lambda: info(last).to_json())
for name, mutate in (
    ("too many devices", lambda said: said["sharding"]["mesh"][0].__setitem__(1, 8)),
    ("no such axis", lambda said: said["sharding"].update(spec=["y"])),
    ("no such device", lambda said: said.update(sharding={"device": 9})),
    ("device before the first", lambda said: said.update(sharding={"device": -1})),
    ("too many dimensions", lambda said: said.update(shape=[])),
):
    said = info(split).to_json()
    mutate(said)
    tell("json " + name, lambda: ex.InputInfo.from_json(said))
tell("uneven", lambda: info(split, (6,)))
tell("uneven at the smallest", lambda: info(split, ((1, 8, 16),)))
tell("scalar", lambda: info(split, ()))
tell("no sharding", lambda: info("x"))
tell("like", lambda: ex.InputInfo.like(jax.device_put(x, split)) == info(split))
tell("like one device", lambda: ex.InputInfo.like(jax.device_put(x, third)) == info())

fast = ex.compile(double, args=[info(split)])
for name, value in (("free", x), ("numpy", np.arange(8, dtype="f4")), ("split", jax.device_put(x, split)),
                    ("third", jax.device_put(x, third)), ("whole", jax.device_put(x, whole))):
    for turn in (1, 2, 3, 4):
        tell(f"call {name} {turn}", lambda: spread(fast(value)))
tell("under jit", lambda: spread(jax.jit(lambda x: fast(x) + 0)(jax.device_put(x, split))))

plain = ex.compile(double, args=[info()])
for name, value in (("free", x), ("first", jax.device_put(x, jax.devices()[0])), ("third", jax.device_put(x, third)),
                    ("numpy", np.arange(8, dtype="f4"))):
    for turn in (1, 2, 3, 4):
        tell(f"plain {name} {turn}", lambda: spread(plain(value)))
some = ex.compile(double, args=[info(split, ((4, 8, 16),))])
for n in (4, 6, 16):
    tell(f"range {n}", lambda: spread(some(jnp.ones(n))))
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told():
    """What happened on four devices, which only a new process can have."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", FOUR_DEVICES], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ELSEWHERE = "InputDeviceError: input `x` is on "
DESCRIBED = "InputInfoError: "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "starts"),
    [
        ("json split", "True"),
        ("json whole", "True"),
        ("json third", "True"),
        ("json two axes", "True"),
        ("json of some devices", DESCRIBED + "NamedSharding("),
        ("json too many devices", DESCRIBED + "{'mesh': [['x', 8, 'Auto']], 'spec': ['x']} is no sharding over the 4"),
        ("json no such axis", DESCRIBED),
        ("json no such device", DESCRIBED + "{'device': 9} is no sharding over the 4 devices there are"),
        ("json device before the first", DESCRIBED),
        ("json too many dimensions", DESCRIBED + "the sharding doesn't fit the shape ()"),
        ("uneven", DESCRIBED + "the sharding doesn't fit the shape (6,): "),
        ("uneven at the smallest", DESCRIBED + "the sharding doesn't fit the shape ((1, 8, 16),): "),
        ("scalar", DESCRIBED + "the sharding doesn't fit the shape (): "),
        ("no sharding", DESCRIBED + "sharding is str; allowed is a jax.sharding.Sharding"),
        ("like", "True"),
        ("like one device", "True"),
        *((f"call {name} {turn}", "56.0 on 4") for name in ("free", "numpy", "split") for turn in (1, 2, 3, 4)),
        *((f"call third {turn}", ELSEWHERE + "cpu:2, spread as SingleDeviceSharding(") for turn in (1, 2, 3, 4)),
        *((f"call whole {turn}", ELSEWHERE + "cpu:0, cpu:1, cpu:2, cpu:3, spread as ") for turn in (1, 2, 3, 4)),
        ("under jit", "56.0 on 4"),
        *((f"plain {name} {turn}", "56.0 on 1") for name in ("free", "first", "numpy") for turn in (1, 2, 3, 4)),
        *((f"plain third {turn}", ELSEWHERE + "cpu:2.\n  compiled for cpu:0") for turn in (1, 2, 3, 4)),
        ("range 4", "8.0 on 4"),
        ("range 6", "InputShapeError: input `x` has shape (6,), which can't be split evenly."),
        ("range 16", "32.0 on 4"),
    ],
)
def test_over_several_devices(told, name, starts):
    assert told[name].startswith(starts)
