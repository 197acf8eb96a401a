"""A padded executable in a file: its buckets' programs come along, and nothing else is needed to serve every size."""

import json
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

BATCH = ex.NamedDimension("batch", 1, 8, 16)
SEQ = ex.NamedDimension("seq", 2, 8, 16)
WEIGHTS = jnp.asarray(np.random.default_rng(0).normal(size=(64, 64)), jnp.float32)


def function(data, n):
    x, bias = data["x"] @ WEIGHTS, data["bias"]
    # Of -inf, which the file has to keep: the padding of what comes in is filled with it.
    most = bias.max()
    return {"mean": jax.nn.softmax(x, 1).sum((0, 1)), "more": x + most, "twice": jnp.arange(2 * n) + bias.sum()}


@pytest.fixture(scope="module")
def padded():
    described = {"x": ex.InputInfo((BATCH, SEQ, 64), "float32"), "bias": ex.InputInfo((BATCH,), "float32")}
    options = {"dynamic": "pad", "buckets": {"batch": 4, "seq": 16}}
    exe = ex.compile(function, args=[described, ex.compat.tripy.DimensionInputInfo(SEQ)], **options)
    return exe.compile_ahead(progress=False)


def check(loaded):
    for batch, seq in ((1, 2), (3, 7), (16, 16)):
        random = np.random.default_rng(seq)
        data = {"x": random.normal(size=(batch, seq, 64)), "bias": random.normal(size=(batch,))}
        data = jax.tree.map(lambda array: array.astype(np.float32), data)
        got, expected = loaded(data, seq), function(data, seq)
        for name, array in expected.items():
            assert got[name].shape == array.shape
            np.testing.assert_allclose(got[name], array, rtol=2e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
def test_a_loaded_one_serves_every_size_by_the_buckets_that_were_compiled(tmp_path, padded, native):
    padded.save(tmp_path / "exe", native=native)
    loaded = ex.Executable.load(tmp_path / "exe", trust_native_code=native)
    check(loaded)
    before, after = padded.dynamic_report, loaded.dynamic_report
    assert after.verdict == "padded"
    assert (after.why, after.rules, after.masks, after.buckets) == (
        before.why,
        before.rules,
        before.masks,
        before.buckets,
    )
    assert after.calls == 3
    # Without native code the largest is compiled on loading, and the other by demand, as ever.
    assert [row.sizes["batch"] for row in after.binaries] == ([16, 4] if native else [16])
    assert after.faults == ()
    loaded.compile_ahead(progress=False)
    assert [row.sizes["batch"] for row in loaded.dynamic_report.binaries] == [16, 4]


def test_what_was_loaded_can_be_saved_again_with_all_of_its_buckets(tmp_path, padded):
    padded.save(tmp_path / "one")
    ex.Executable.load(tmp_path / "one").save(tmp_path / "two")
    again = ex.Executable.load(tmp_path / "two")
    check(again)
    assert again.dynamic_report.buckets == {"batch": (4, 16), "seq": (16,)}


def test_a_constant_is_in_the_file_once_however_many_buckets_there_are(tmp_path, padded):
    padded.save(tmp_path / "exe")
    with zipfile.ZipFile(tmp_path / "exe") as file:
        sizes = {info.filename: info.file_size for info in file.infolist()}
    assert [name for name, size in sizes.items() if size >= WEIGHTS.nbytes] == ["constant-0.bin"]


@pytest.mark.parametrize("left", [lambda programs: [], lambda programs: programs[1:], lambda programs: programs * 600])
def test_a_file_without_the_largest_bucket_or_of_far_too_many_is_refused(tmp_path, padded, left):
    padded.save(tmp_path / "exe")
    with zipfile.ZipFile(tmp_path / "exe") as file, zipfile.ZipFile(tmp_path / "damaged", "w") as damaged:
        for name in file.namelist():
            content = file.read(name)
            if name.endswith(".json"):
                manifest = json.loads(content)
                padding = manifest["about"]["padding"]
                padding["programs"] = left(sorted(padding["programs"], key=lambda each: -each["bucket"]["batch"]))
                content = json.dumps(manifest).encode()
            damaged.writestr(name, content)
    with pytest.raises(ex.errors.ArchiveError):
        ex.Executable.load(tmp_path / "damaged")


def test_a_specialised_one_says_nothing_of_padding(tmp_path):
    ex.compile(lambda x: x * 2, args=[ex.InputInfo((BATCH,), "float32")]).save(tmp_path / "exe")
    with zipfile.ZipFile(tmp_path / "exe") as file:
        manifest = next(name for name in file.namelist() if name.endswith(".json"))
        assert "padding" not in json.loads(file.read(manifest))["about"]
    assert ex.Executable.load(tmp_path / "exe").dynamic_report.verdict == "specialised"
