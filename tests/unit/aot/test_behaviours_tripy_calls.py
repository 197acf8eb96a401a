"""What who comes from Tripy expects: the contract's rows in order, from the first call on."""

import gc
import inspect
import json
import os
import subprocess
import sys
import threading
import weakref
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

pytestmark = pytest.mark.slow

F32 = ex.InputInfo((2, 8), jnp.float32)
X = jnp.arange(16, dtype=jnp.float32).reshape(2, 8)
BATCH = ex.NamedDimension("batch", 1, 2, 4)
SEQ = ex.NamedDimension("seq", 1, 4, 8)
ROWS = ex.InputInfo((BATCH, 8), jnp.float32)


def rows(n):
    return jnp.arange(8.0 * n).reshape(n, 8)


@contextmanager
def refused(kind, *says):
    with pytest.raises(kind) as caught:
        yield
    for words in says:
        assert words in str(caught.value)


# Missing, extra, duplicate: three errors that list the expected names ------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "kind", "says"),
    [
        ((X,), {}, ex.errors.MissingArgumentError, "argument `y` is missing"),
        ((), {"y": X}, ex.errors.MissingArgumentError, "argument `x` is missing"),
        ((X, X, X), {}, ex.errors.ExtraArgumentError, "3 arguments by position, of at most 2"),
        ((X, X), {"z": X}, ex.errors.ExtraArgumentError, "unexpected argument `z`"),
        ((X, X), {"y": X}, ex.errors.DuplicateArgumentError, "argument `y` is given twice"),
    ],
)
def test_arguments_that_are_not_the_expected_ones_each_have_their_error(args, kwargs, kind, says):
    fast = ex.compile(lambda x, y: x + y, args=[F32, F32])
    with refused(kind, says, "expected: (x, y)", "called at  test_behaviours_tripy_calls.py"):
        fast(*args, **kwargs)
    assert len({ex.errors.MissingArgumentError, ex.errors.ExtraArgumentError, ex.errors.DuplicateArgumentError}) == 3


# Wrong dtype, rank, shape, device, no array: each its own error, before anything runs ---------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        (X.astype(jnp.int32), ex.errors.InputDtypeError, "has dtype int32, not float32"),
        (np.ones((2, 8)), ex.errors.InputDtypeError, "has dtype float64, not float32"),
        (X[0], ex.errors.InputRankError, "has rank 1, shape (8,), not rank 2"),
        (X[:, :7], ex.errors.InputShapeError, "dimension 1 is 7, not 8"),
        (
            rows(5),
            ex.errors.InputShapeError,
            "dimension 0 (`batch`) is 5; compiled for 1 ≤ batch ≤ 4 (optimised for 2)",
        ),
        (3.0, ex.errors.NotAnArrayError, "is no array but float"),
        ("text", ex.errors.NotAnArrayError, "is no array but str"),
        ([[1.0] * 8], ex.errors.NotAnArrayError, "is no array but list"),
    ],
    ids=["dtype", "float64", "rank", "shape", "bounds", "float", "text", "list"],
)
def test_a_wrong_input_is_refused_by_its_kind_naming_the_argument(value, kind, says):
    runs = []
    fast = ex.compile(lambda data: (jax.debug.callback(lambda: runs.append(1)), data + 1)[1], args=[ROWS])
    with refused(kind, "input `data`", says, "called at  test_behaviours_tripy_calls.py", "Hint: "):
        fast(value)
    jax.effects_barrier()
    assert runs == []


ON_TWO_DEVICES = """
import jax, jax.numpy as jnp, explorer as ex
here, there = map(jax.sharding.SingleDeviceSharding, jax.devices())
fast = ex.compile(lambda x: x + 1, args=[ex.InputInfo((2,), jnp.float32, sharding=here)])
try:
    fast(jax.device_put(jnp.ones(2), there))
except ex.errors.InputDeviceError as error:
    print(error)
"""


def test_an_input_on_another_device_is_refused():
    two = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", ON_TWO_DEVICES], env=two, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("input `x` is on cpu:1")


# The signature, the text, what goes in and what comes out ------------------------------------------------------------


def test_an_executable_tells_what_it_takes_and_gives_with_symbolic_sizes():
    def both(x, y):
        return {"joined": jnp.concatenate([y, y], 1), "sum": x.sum(1)}

    y = ex.InputInfo((BATCH, SEQ), jnp.int32)
    fast = ex.compile(both, args=[ROWS, y])
    assert str(inspect.signature(fast)) == "(x: jax.Array, y: jax.Array) -> dict"
    assert str(fast) == "Executable(both(x: f32[batch,8], y: i32[batch,seq]) → i32[batch,2*seq], f32[batch])"
    assert fast.input_infos == fast.get_input_info() == {"x": ROWS, "y": y}
    assert fast.output_infos == fast.get_output_info()
    assert repr(fast.output_infos) == (
        "{'result.joined': OutputInfo((batch, 2*seq), int32), 'result.sum': OutputInfo((batch,), float32)}"
    )


# save and load -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    weights = jnp.arange(8.0)
    fast = ex.compile(
        lambda x, data: {"y": [x @ weights + data["k"][0]]}, args=[ROWS, {"k": [ex.InputInfo((), "float32")]}]
    )
    path = tmp_path_factory.mktemp("saved") / "f.explorer"
    fast.save(path)
    return fast, path


def test_a_loaded_executable_has_the_same_signature_infos_and_results(saved):
    fast, path = saved
    loaded = ex.Executable.load(path)
    assert inspect.signature(loaded) == inspect.signature(fast)
    assert (loaded.input_infos, loaded.output_infos, repr(loaded)) == (fast.input_infos, fast.output_infos, repr(fast))
    for n in (1, 2, 4):
        given = rows(n), {"k": [jnp.float32(n)]}
        np.testing.assert_array_equal(loaded(*given)["y"][0], fast(*given)["y"][0])
    with refused(ex.errors.InputShapeError, "compiled for 1 ≤ batch ≤ 4"):
        loaded(rows(5), {"k": [jnp.float32(0)]})


def test_a_file_that_is_no_executable_is_refused(tmp_path):
    path = tmp_path / "f.explorer"
    path.write_bytes(b"hello")
    with pytest.raises(ex.errors.ArchiveError):
        ex.Executable.load(path)


def test_a_truncated_file_is_refused(saved, tmp_path):
    whole = saved[1].read_bytes()
    path = tmp_path / "f.explorer"
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ex.errors.ArchiveError):
            ex.Executable.load(path)


def test_an_altered_file_is_refused(saved, tmp_path):
    whole = saved[1].read_bytes()
    path = tmp_path / "f.explorer"
    with zipfile.ZipFile(saved[1]) as archive:
        ends = [member.header_offset for member in archive.infolist()[1:]] + [archive.start_dir]
    for end in ends:  # of the manifest, the constant and the program
        altered = bytearray(whole)
        altered[end - 5] ^= 1
        path.write_bytes(altered)
        with pytest.raises(ex.errors.ArchiveError):
            ex.Executable.load(path)


def test_a_newer_file_is_refused_and_says_to_upgrade(saved, tmp_path):
    path = tmp_path / "f.explorer"
    with zipfile.ZipFile(saved[1]) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            member = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(member)
                member = json.dumps(manifest | {"version": manifest["version"] + 1}).encode()
            new.writestr(name, member)
    with refused(ex.errors.ArchiveError, "newer", "upgrade"):
        ex.Executable.load(path)


# One executable feeds another; outputs are freed; concurrent compiles ------------------------------------------------


def test_one_executable_feeds_another():
    double, total = ex.compile(lambda x: x * 2, args=[ROWS]), ex.compile(lambda x: x.sum(1), args=[ROWS])
    np.testing.assert_array_equal(total(double(rows(3))), (2 * rows(3)).sum(1))


def test_an_output_is_freed_with_its_last_reference():
    fast = ex.compile(lambda x: x + 1, args=[F32])
    gc.disable()
    try:
        out = weakref.ref(fast(X))
        assert out() is None
    finally:
        gc.enable()


def test_threads_compile_and_call_at_once():
    results = {}

    def work(n):
        fast = ex.compile(lambda x: x * n, args=[ROWS])
        results[n] = [np.array_equal(fast(rows(size)), n * rows(size)) for size in (1, 2, 3)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), [True] * 3)


# Modules -------------------------------------------------------------------------------------------------------------


class Linear:
    def __init__(self):
        self.weight = jnp.ones((8, 2))

    def __call__(self, x):
        return x @ self.weight


class Model:
    def __init__(self):
        self.layers = [Linear(), Linear()]
        self.bias = {"out": jnp.ones(2)}

    def forward(self, x):
        return self.layers[1](x) + self.bias["out"]


@jax.tree_util.register_dataclass
@dataclass
class DataclassModel:
    weight: Any

    def __call__(self, x):
        return x @ self.weight


def equinox_model():
    return jax.vmap(pytest.importorskip("equinox").nn.Linear(8, 2, key=jax.random.key(0)))


def nnx_model():
    nnx = pytest.importorskip("flax.nnx")
    return nnx.Linear(8, 2, rngs=nnx.Rngs(0))


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (Linear, {"self.weight"}),
        (lambda: Model().forward, {"self.layers[1].weight", "self.bias['out']"}),
        (lambda: DataclassModel(jnp.ones((8, 2))), {"self.weight"}),
        (equinox_model, {"self.weight", "self.bias"}),
        (nnx_model, {"self.kernel.value", "self.bias.value"}),
    ],
    ids=["object", "bound-method", "dataclass", "equinox", "nnx"],
)
def test_a_modules_weights_are_constants_named_by_their_path_and_it_is_not_changed(make, names):
    model = make()
    before = [id(leaf) for leaf in jax.tree.leaves(getattr(model, "__dict__", {}))]
    fast = ex.compile(model, args=[F32])
    assert {constant.name for constant in fast.explore().constants} == names
    np.testing.assert_allclose(fast(X), model(X), rtol=1e-5)
    assert [id(leaf) for leaf in jax.tree.leaves(getattr(model, "__dict__", {}))] == before
    assert not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(getattr(model, "__dict__", {})))


def test_an_array_given_to_compile_is_a_constant_named_by_its_argument():
    fast = ex.compile(lambda x, model: x @ model["w"], args=[F32, {"w": jnp.ones((8, 2))}])
    assert [constant.name for constant in fast.explore().constants] == ["model.w"]


# The older form ------------------------------------------------------------------------------------------------------


def test_the_older_compiler_takes_inputs_and_constants_as_they_are():
    fast = ex.compat.tripy.Compiler(lambda x, by, *, y: x * by + y).compile(ROWS, 3.0, y=ROWS, optimization_level=1)
    np.testing.assert_array_equal(fast(rows(3), y=rows(3)), 4 * rows(3))


# Optimization levels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", range(6))
def test_every_level_gives_the_same_result(level):
    fast = ex.compile(lambda x: jnp.tanh(x @ x.T), level, args=[F32])
    np.testing.assert_allclose(fast(X / 16), jnp.tanh(X / 16 @ X.T / 16), rtol=1e-5)


def test_level_5_keeps_the_fastest_that_it_measured_and_shows_the_table():
    tuning = ex.compile(lambda x: jnp.tanh(x @ x.T), 5, args=[F32]).autotuning
    assert [bool(row[-1]) for row in tuning.rows()].count(True) == 1
    default = tuning.candidates[0]
    assert default.name == "XLA's default"
    assert tuning.chosen is default or tuning.chosen.seconds == min(c.seconds for c in tuning.candidates)
    assert len(str(tuning).splitlines()) == 1 + len(tuning.candidates) > 2


@pytest.mark.parametrize("level", [-1, 6, True, "3"])
def test_a_level_out_of_range_is_an_error(level):
    with refused(ex.errors.OptionError, f"optimization_level is {level!r}; allowed are 0 to 5"):
        ex.compile(lambda x: x, level, args=[F32])


# Defects there, not here ---------------------------------------------------------------------------------------------


def test_weights_die_with_the_executable_and_the_module():
    model = Linear()
    weight = weakref.ref(model.weight)
    fast = ex.compile(model, args=[ROWS])
    for n in (1, 2, 3):
        fast(rows(n))
    del model, fast
    gc.collect()
    assert weight() is None


def test_old_binaries_are_let_go():
    fast = ex.compile(lambda x: x + 1, args=[ROWS], max_specializations=2)
    for n in (1, 2, 3, 4):
        np.testing.assert_array_equal(fast(rows(n)), rows(n) + 1)
    assert [s.shapes["x"][0] for s in fast.specializations] == [3, 4]


def test_a_name_mismatch_is_told_in_the_users_own_names():
    fast = ex.compile(lambda image: image + 1, args=[F32])
    with pytest.raises(ex.errors.ExtraArgumentError) as caught:
        fast(picture=X)
    assert str(caught.value).splitlines()[:2] == [
        "unexpected argument `picture`.",
        "  expected: (image)",
    ]
