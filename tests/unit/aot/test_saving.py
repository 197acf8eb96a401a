"""Executable.save and load: what was compiled, from a file, on other platforms and with derivatives."""

import os
import subprocess
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import export

import explorer as ex
from explorer.files import executable_archive
from explorer.files.executable_archive import read_archive, write_archive

ROWS = ex.NamedDimension("rows", 1, 2, 8)
X = jnp.arange(12, dtype=jnp.float32).reshape(4, 3)
WEIGHTS = jnp.arange(9, dtype=jnp.float32).reshape(3, 3)


class Pair(NamedTuple):
    one: object
    other: object


def layer(x, options, *, shift):
    return {
        "y": jnp.tanh(x @ WEIGHTS) * options["scale"] + shift,
        "twice": Pair(jnp.concatenate([x, x]), x.shape[0] * shift),
    }


@pytest.fixture(scope="module")
def compiled():
    described = [ex.InputInfo((ROWS, 3), "float32"), {"scale": ex.InputInfo((), "float32"), "name": "constant"}]
    return ex.compile(layer, args=described, kwargs={"shift": ex.InputInfo((3,), "float32")})


def call(executable, x=X):
    return executable(x, {"scale": jnp.float32(2)}, shift=jnp.ones(3))


def same(one, other):
    return jax.tree.structure(one) == jax.tree.structure(other) and jax.tree.all(
        jax.tree.map(lambda a, b: a.dtype == b.dtype and np.array_equal(a, b), one, other)
    )


@pytest.mark.parametrize("native", [False, True], ids=["StableHLO", "native code"])
def test_a_loaded_executable_is_the_one_that_was_saved(compiled, tmp_path, native):
    expected = call(compiled)
    compiled.save(tmp_path / "layer.explorer", native=native)
    loaded = ex.Executable.load(tmp_path / "layer.explorer", trust_native_code=native, types=(Pair,))
    assert same(call(loaded), expected)
    assert same(call(loaded, X[:1]), call(compiled, X[:1]))  # a shape it first meets now
    assert repr(loaded) == repr(compiled)
    assert loaded.__signature__ == compiled.__signature__
    assert (loaded.input_infos, loaded.output_infos) == (compiled.input_infos, compiled.output_infos)
    with pytest.raises(ex.errors.InputShapeError, match="1 ≤ rows ≤ 8"):
        call(loaded, jnp.ones((9, 3)))


def test_native_code_is_used_only_if_it_is_trusted(compiled, tmp_path):
    compiled.save(tmp_path / "layer.explorer", native=True)
    for trusted, reason in ((True, "native code from a file"), (False, "optimised for; from a file")):
        loaded = ex.Executable.load(tmp_path / "layer.explorer", trust_native_code=trusted, types=(Pair,))
        assert loaded.specializations[0].reason == reason


@pytest.mark.slow
def test_native_code_of_another_machine_is_passed_over(compiled, tmp_path):
    compiled.save(tmp_path / "layer.explorer", native=True)
    code = (
        "import sys, explorer as ex; exe = ex.Executable.load(sys.argv[1], trust_native_code=True);"
        "print(exe.specializations[0].reason)"
    )
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}  # as good as another machine
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "layer.explorer")],
        capture_output=True,
        text=True,
        env={**os.environ, **flags},
        check=True,
    )
    assert done.stdout.strip() == "optimised for; from a file"


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"xla_dump_to": "FOLDER", "xla_dump_hlo_as_text": True},
        {"xla_backend_optimization_level": 99},
        {"xla_llvm_disable_expensive_passes": 1},
        {"xla_cpu_prefer_vector_width": "512"},
        {"xla_backend_optimization_level": None},
    ],
)
def test_a_file_sets_no_other_options_of_xla_than_a_level_does(compiled, tmp_path, options, trusted):
    compiled.save(tmp_path / "layer.explorer")
    archive = read_archive(tmp_path / "layer.explorer")
    folder = tmp_path / "written"
    hostile = {name: str(folder) if value == "FOLDER" else value for name, value in options.items()}
    write_archive(tmp_path / "hostile", {**archive.about, "options": hostile}, dict(archive.members))
    with pytest.raises(ex.errors.ArchiveError, match=f"has the XLA option '{next(iter(options))}'"):
        ex.Executable.load(tmp_path / "hostile", trust_native_code=trusted, types=(Pair,))
    assert not folder.exists()


@pytest.mark.parametrize("level", range(5))
def test_what_each_level_sets_is_loaded_again(tmp_path, level):
    ex.compile(jnp.sin, args=[ex.InputInfo((2,), "float32")], optimization_level=level).save(tmp_path / "sine")
    assert ex.Executable.load(tmp_path / "sine")(jnp.zeros(2)).tolist() == [0, 0]


def test_a_file_writes_no_escape_sequence_to_the_terminal(compiled, tmp_path):
    compiled.save(tmp_path / "layer.explorer")
    archive = read_archive(tmp_path / "layer.explorer")
    about = {**archive.about, "function": {**archive.about["function"], "name": "\x1b[2J"}}
    write_archive(tmp_path / "hostile", about, dict(archive.members))
    assert repr(ex.Executable.load(tmp_path / "hostile", types=(Pair,))).startswith("Executable(␛[2J(")


def test_a_loaded_executable_can_be_saved_again(compiled, tmp_path):
    compiled.save(tmp_path / "one")
    ex.Executable.load(tmp_path / "one", types=(Pair,)).save(tmp_path / "two")
    assert same(call(ex.Executable.load(tmp_path / "two", types=(Pair,))), call(compiled))


def test_it_is_differentiated_as_often_as_it_was_saved_for(tmp_path):
    cube = ex.compile(lambda x: (x**3).sum(), args=[ex.InputInfo((ROWS,), "float32")])
    cube.save(tmp_path / "cube", derivatives=1)
    loaded = ex.Executable.load(tmp_path / "cube")
    np.testing.assert_allclose(jax.grad(loaded)(jnp.arange(4.0)), 3 * jnp.arange(4.0) ** 2)
    with pytest.raises(ex.errors.TransformationError, match=r"vmap and forward-mode") as refused:
        jax.vmap(loaded)(jnp.ones((2, 4)))
    assert "jax.vmap(loaded)(jnp.ones((2, 4)))" in str(refused.value)


def test_without_a_derivative_it_says_so_and_how_to_have_one(tmp_path):
    ex.compile(lambda x: x.sum(), args=[ex.InputInfo((3,), "float32")]).save(tmp_path / "sum")
    with pytest.raises(ex.errors.TransformationError, match=r"derivatives=1"):
        jax.grad(ex.Executable.load(tmp_path / "sum"))(jnp.ones(3))


@pytest.mark.slow
def test_an_empty_batch_is_in_the_file_too(tmp_path):
    mean = ex.compile(lambda x: x.sum(0) + x.shape[0], args=[ex.InputInfo(((0, 2, 8), 3), "float32")])
    mean.save(tmp_path / "mean")
    loaded = ex.Executable.load(tmp_path / "mean")
    for rows in (0, 1, 5):
        np.testing.assert_array_equal(loaded(jnp.ones((rows, 3))), mean(jnp.ones((rows, 3))))


def branching(rows=ROWS, **options):
    with pytest.warns(ex.errors.TracedPerShapeWarning):
        return ex.compile(lambda x: x * 10 if x.shape[0] > 2 else x, args=[ex.InputInfo((rows,), "float32")], **options)


def test_what_is_traced_for_each_shape_has_the_shapes_it_met_and_says_that_it_lacks_the_others(tmp_path):
    branch = branching()
    branch(jnp.ones(5))
    with pytest.warns(
        ex.errors.TracedPerShapeWarning, match="programs for these sizes alone: rows = 2; rows = 5"
    ) as warned:
        branch.save(tmp_path / "branch")
    assert "Of 1 ≤ rows ≤ 8, a loaded one refuses the others" in str(warned[0].message)
    assert warned[0].filename == __file__
    loaded = ex.Executable.load(tmp_path / "branch")
    assert loaded(jnp.ones(5))[0] == 10
    assert loaded(jnp.ones(2))[0] == 1
    with pytest.raises(ex.errors.InputShapeError, match=r"no program for rows = 3\.\n  there is rows = 2; rows = 5"):
        loaded(jnp.ones(3))


@pytest.mark.slow
def test_a_file_with_every_shape_warns_of_nothing(tmp_path, recwarn):
    branch = branching((1, 2, 3))
    for rows in (1, 2, 3):
        branch(jnp.ones(rows))
    recwarn.clear()
    branch.save(tmp_path / "branch")
    assert not recwarn
    loaded = ex.Executable.load(tmp_path / "branch")
    assert [loaded(jnp.ones(rows))[0] for rows in (1, 2, 3)] == [1, 1, 10]


@pytest.mark.filterwarnings(
    "ignore::explorer.errors.TracedPerShapeWarning", "ignore::explorer.errors.RecompilationWarning"
)
@pytest.mark.parametrize("native", [False, True])
def test_the_outputs_of_what_is_traced_for_each_shape_are_those_to_optimise_for(tmp_path, native):
    branch = branching(max_specializations=1)
    branch(jnp.ones(5))  # and the one to optimise for is let go
    branch.save(tmp_path / "branch", native=native)
    loaded = ex.Executable.load(tmp_path / "branch", trust_native_code=native)
    assert loaded.output_infos == branch.output_infos == {"result": ex.types.OutputInfo((2,), jnp.float32)}
    assert repr(loaded) == repr(branch)
    for rows in (5, 2):
        assert loaded(jnp.ones(rows)).tolist() == branch(jnp.ones(rows)).tolist()


@pytest.mark.parametrize("platforms", [("cpu", "cuda"), ("tpu", "rocm", "cpu")])
def test_one_file_serves_several_platforms(compiled, tmp_path, platforms):
    compiled.save(tmp_path / "layer", platforms=platforms)
    assert same(call(ex.Executable.load(tmp_path / "layer", types=(Pair,))), call(compiled))


def test_a_file_for_other_platforms_is_refused_and_names_them(compiled, tmp_path):
    compiled.save(tmp_path / "layer", platforms=("cuda",))
    with pytest.raises(ex.errors.ArchiveError, match=r"for cuda; this process runs on cpu"):
        ex.Executable.load(tmp_path / "layer", types=(Pair,))


@pytest.mark.parametrize("platforms", ["cpu", ("gpu",), ("cpu", "nonsense"), ()])
def test_a_platform_that_is_none_is_refused(compiled, tmp_path, platforms):
    with pytest.raises(ex.errors.OptionError, match="allowed are some of cpu, cuda, rocm, tpu"):
        compiled.save(tmp_path / "layer", platforms=platforms)


def test_what_calls_back_to_python_can_not_be_saved_and_leaves_an_older_file_whole(compiled, tmp_path):
    compiled.save(tmp_path / "layer")
    before = (tmp_path / "layer").read_bytes()
    printing = ex.compile(lambda x: [jax.debug.print("{}", x), x][1], args=[ex.InputInfo((3,), "float32")])
    with pytest.raises(ex.errors.ArchiveError, match=r"jax\.debug\.print"):
        printing.save(tmp_path / "layer")
    assert (tmp_path / "layer").read_bytes() == before
    assert os.listdir(tmp_path) == ["layer"]


def test_a_class_in_the_tree_is_asked_for_by_name(compiled, tmp_path):
    @jax.tree_util.register_pytree_node_class
    class Box:
        def __init__(self, value):
            self.value = value

        def tree_flatten(self):
            return (self.value,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    boxed = ex.compile(lambda x: Box(x), args=[ex.InputInfo((3,), "float32")])
    boxed.save(tmp_path / "boxed")
    with pytest.raises(ex.errors.ArchiveError, match=r"types=\(.*Box"):
        ex.Executable.load(tmp_path / "boxed")
    assert isinstance(ex.Executable.load(tmp_path / "boxed", types=(Box,))(jnp.ones(3)), Box)


@pytest.fixture(scope="module")
def saved(compiled, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "layer"
    compiled.save(path)
    return path


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_altered_file_is_refused_or_gives_the_same_results(compiled, saved, data):
    content = bytearray(saved.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    altered = saved.with_name("altered")
    altered.write_bytes(content)
    try:
        loaded = ex.Executable.load(altered, types=(Pair,))
    except ex.errors.ArchiveError:
        return
    assert same(call(loaded), call(compiled))


@pytest.mark.parametrize("derivatives", [0, 1])
@pytest.mark.parametrize("trusted", [False, True])
def test_a_program_that_calls_into_the_process_is_refused(tmp_path, trusted, derivatives):
    """JAX exports such a call only when told to; what it reads it doesn't look at."""
    target = "xla_ffi_python_cpu_callback"  # runs the Python function of that number
    struct = jax.ShapeDtypeStruct((3,), jnp.float32)

    @jax.custom_vjp
    def run(x):
        return x * 2

    def call(x):
        return jax.ffi.ffi_call(target, struct)(x, index=np.uint64(0))

    # In the program itself, or only in the derivative that it brings along.
    run.defvjp(lambda x: (x * 2, None), lambda _, cotangent: (call(cotangent),))
    function = run if derivatives else call
    ex.compile(lambda x: x * 2, args=[ex.InputInfo((3,), "float32")]).save(tmp_path / "double")
    archive = read_archive(tmp_path / "double")
    check = export.DisabledSafetyCheck.custom_call(target)
    exported = export.export(jax.jit(lambda constants, x: [function(x)]), disabled_checks=[check])([], struct)
    program = bytes(exported.serialize(vjp_order=derivatives))
    write_archive(tmp_path / "hostile", archive.about, {**archive.members, "program-0.stablehlo": program})
    with pytest.raises(
        ex.errors.ArchiveError, match=rf"calls '{target}', which nothing that Executable\.save writes does"
    ):
        ex.Executable.load(tmp_path / "hostile", trust_native_code=trusted)


def test_a_program_that_another_jax_wrote_and_this_one_can_not_read_says_which(saved, tmp_path):
    archive = read_archive(saved)
    about = {**archive.about, "machine": {**archive.about["machine"], "jax": "99.1.0"}}
    write_archive(tmp_path / "newer", about, {**archive.members, "program-0.stablehlo": b"what nobody knows today"})
    with pytest.raises(
        ex.errors.ArchiveError, match=rf"Hint: JAX 99\.1\.0 wrote it; load it with that version, not {jax.__version__}"
    ):
        ex.Executable.load(tmp_path / "newer", types=(Pair,))


def test_a_loaded_executable_shows_no_file_from_outside_of_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "secret.py").write_text("the secret = 1\n")
    ex.compile(lambda x: x * 2, args=[ex.InputInfo((3,), "float32")]).save("double")
    archive = read_archive("double")
    function = {"name": "f", "file": str(tmp_path / "secret.py"), "line": 1}
    write_archive("hostile", {**archive.about, "function": function}, dict(archive.members))
    capture = ex.Executable.load("hostile").explore()
    assert capture.file == str(tmp_path / "secret.py")
    assert "secret = 1" not in str(capture.sources)


def test_weights_that_shrink_to_nothing_are_kept_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(executable_archive, "_ALWAYS", 2**20)  # 256 MiB take seconds to pack
    zeros = {"zeros.bin": bytes(2_000_000)}
    write_archive(tmp_path / "f", {}, zeros)
    assert (tmp_path / "f").stat().st_size > 2_000_000
    assert len(read_archive(tmp_path / "f").members["zeros.bin"]) == 2_000_000


def test_a_file_whose_parameters_are_none_is_refused(saved, tmp_path):
    archive = read_archive(saved)
    first, *others = archive.about["parameters"]
    for parameters in ([first, first, *others], [*others, first]):  # one name twice; by name before by position
        write_archive(tmp_path / "hostile", {**archive.about, "parameters": parameters}, dict(archive.members))
        with pytest.raises(ex.errors.ArchiveError, match=r"hostile is no executable: ValueError: .*parameter"):
            ex.Executable.load(tmp_path / "hostile", types=(Pair,))
