"""A constant is in an executable's file once, and in memory once, however many shapes the function was traced for."""

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from explorer.aot import encoding
from explorer.aot.encoding import ConstantMembers, join
from explorer.files.executable_archive import read_archive, write_archive

SIDE = 512
SIZES = range(1, 9)
WEIGHTS = np.random.default_rng(0).standard_normal((SIDE, SIDE), np.float32)  # which no packing makes smaller

pytestmark = pytest.mark.filterwarnings("ignore::explorer.errors.TracedPerShapeWarning")


def on_device():
    weights = jnp.asarray(WEIGHTS)
    return lambda x: x @ weights * (2.0 if x.shape[0] > 4 else 1.0)  # a branch by size: each shape has its own trace


def of_numpy():
    return lambda x: jnp.dot(x, WEIGHTS) * (2.0 if x.shape[0] > 4 else 1.0)


def made_of_numpy():
    return lambda x: x @ jnp.asarray(WEIGHTS) * (2.0 if x.shape[0] > 4 else 1.0)


def expected(rows):
    return np.ones((rows, SIDE), np.float32) @ WEIGHTS * (2.0 if rows > 4 else 1.0)


def compiled(make, sizes=SIZES):
    executable = ex.compile(make(), args=[ex.InputInfo(((1, 4, 8), SIDE), "float32")])
    for rows in sizes:
        executable(jnp.ones((rows, SIDE)))
    assert len(executable.specializations) == len(sizes)
    return executable


@pytest.fixture(scope="module")
def executable():
    return compiled(of_numpy)


@pytest.mark.slow
def test_a_file_of_eight_signatures_has_a_constant_once(executable, tmp_path):
    executable.save(tmp_path / "f")
    assert (tmp_path / "f").stat().st_size <= 1.1 * WEIGHTS.nbytes
    loaded = ex.Executable.load(tmp_path / "f")
    for rows in (4, 5):
        np.testing.assert_allclose(loaded(jnp.ones((rows, SIDE))), expected(rows), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("make", [on_device, made_of_numpy])
def test_so_it_is_however_the_function_has_it(tmp_path, make):
    compiled(make, (4, 5)).save(tmp_path / "f")
    assert (tmp_path / "f").stat().st_size <= 1.1 * WEIGHTS.nbytes
    loaded = ex.Executable.load(tmp_path / "f")
    for rows in (4, 5):
        np.testing.assert_allclose(loaded(jnp.ones((rows, SIDE))), expected(rows), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_in_memory_they_share_it_too_when_they_are_compiled_and_when_they_are_loaded(executable, tmp_path):
    """What XLA compiles has the constants in it, as with jax.jit: this is what Python holds, which NumPy reports."""
    executable.save(tmp_path / "f")
    describe = [ex.InputInfo(((1, 4, 8), SIDE), "float32")]
    for make in (lambda: ex.compile(of_numpy(), args=describe), lambda: ex.Executable.load(tmp_path / "f")):
        tracemalloc.start()
        try:
            run = make()
            before, _ = tracemalloc.get_traced_memory()
            for rows in SIZES:
                run(jnp.ones((rows, SIDE)))
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(run.specializations) == len(SIZES)
        assert after - before < WEIGHTS.nbytes


def test_native_code_has_no_copy_of_it_either(executable, tmp_path):
    executable.save(tmp_path / "plain")
    executable.save(tmp_path / "native", native=True)
    beside = (tmp_path / "native").stat().st_size - (tmp_path / "plain").stat().st_size
    assert beside < WEIGHTS.nbytes
    loaded = ex.Executable.load(tmp_path / "native", trust_native_code=True)
    for rows in SIZES:
        assert np.array_equal(loaded(jnp.ones((rows, SIDE))), executable(jnp.ones((rows, SIDE))))
    assert {each.reason for each in loaded.specializations} == {"native code from a file"}


def test_constants_of_other_bits_are_kept_apart(tmp_path):
    numbers = np.arange(12, dtype=np.float32)
    others = (
        numbers.view(np.int32),
        numbers.reshape(3, 4),
        -numbers,
        np.zeros(12, np.float32),
        -np.zeros(12, np.float32),
    )

    def every(x):
        return [x + jnp.asarray(each).sum() for each in (numbers, *others)] + [jnp.asarray(each) for each in others]

    x = jnp.float32(1)
    executable = ex.compile(every, args=[ex.InputInfo((), "float32")])
    executable.save(tmp_path / "f")
    for one, other in zip(ex.Executable.load(tmp_path / "f")(x), executable(x), strict=True):
        assert one.dtype == other.dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=6), min_size=1, max_size=4), st.lists(st.integers(0, 7), max_size=12))
def test_code_is_put_together_as_it_was_wherever_its_constants_stand(contents, order):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_MIN_CUT", 1)
        members = {}
        table = ConstantMembers(members)
        for content in contents:
            table.to_json(np.frombuffer(content, np.uint8))
        code = b"".join(contents[i] if i < len(contents) else bytes([i]) for i in order)
        left, cuts = table.split(code)
    assert join(left, cuts, members, len(code)) == code
    assert len(left) + sum(len(members[name]) for _, name in cuts) == len(code)


@pytest.mark.parametrize(
    ("cuts", "size"),
    [
        ([[5, "c"]], 7),  # beyond the end
        ([[2, "c"], [1, "c"]], 10),  # backwards
        ([[-1, "c"]], 7),
        ([[True, "c"]], 7),
        ([["1", "c"]], 7),
        ([[1, "c"]], 8),  # another size
        ([[1, "c"]] * 1_000_000, 7),
    ],
)
def test_code_that_does_not_fit_its_constants_is_refused(cuts, size):
    with pytest.raises(ValueError, match="don't fit"):
        join(b"code", cuts, {"c": b"123"}, size)


def test_an_older_explorer_passes_native_code_over_that_it_could_not_put_together(executable, tmp_path):
    executable.save(tmp_path / "f", native=True)
    about = read_archive(tmp_path / "f").about
    assert about["native"][0]["constants"]
    assert about["machine"]["native"] == "without constants"  # it compares the whole with its own machine
    write_archive(
        tmp_path / "g",
        {**about, "machine": {**about["machine"], "native": "of tomorrow"}},
        dict(read_archive(tmp_path / "f").members),
    )
    loaded = ex.Executable.load(tmp_path / "g", trust_native_code=True)
    assert loaded.specializations[0].reason.startswith("optimised for; from a file")
