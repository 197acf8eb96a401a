"""compile(dynamic="pad"): one binary serves every size, the others come beside it, and nobody waits or gets less."""

import gc
import threading
import warnings
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.padding.transfer import Resize

BATCH = ex.NamedDimension("batch", 1, 8, 16)
SEQ = ex.NamedDimension("seq", 1, 8, 16)
WEIGHTS = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def attention(x):
    scores = jax.nn.softmax(x @ WEIGHTS @ x.transpose(0, 2, 1), axis=-1)
    return {"values": scores @ x, "mean": (scores @ x).mean((1, 2)), "weights": jnp.asarray(WEIGHTS)}


def padded(function, *infos, **options):
    return ex.compile(function, args=list(infos), dynamic="pad", **options)


@pytest.fixture(scope="module")
def attended():
    return padded(attention, ex.InputInfo((BATCH, SEQ, 8), "float32"))


def same(got, expected):
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert isinstance(one, jax.Array)
        assert (one.shape, one.dtype, one.weak_type) == (other.shape, other.dtype, other.weak_type)
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray], ids=["NumPy", "JAX"])
@pytest.mark.parametrize("shape", [(1, 1, 8), (3, 7, 8), (16, 2, 8), (16, 16, 8)])
def test_one_binary_serves_every_size(attended, shape, kind):
    x = normal(*shape)
    same(attended(kind(x)), jax.jit(attention)(x))
    assert len([row for row in attended.dynamic_report.binaries if row.is_padded]) == 1


def test_large_arrays_are_handed_over_without_a_copy_and_are_right():
    many = ex.NamedDimension("many", 1, 8, 2048)
    double = padded(lambda x: x * 2, ex.InputInfo((many, 512), "float32"))
    x = normal(1500, 512)
    kept = double(jnp.asarray(x))
    double(jnp.asarray(x + 1))
    np.testing.assert_array_equal(np.asarray(kept), x * 2)


def test_what_does_not_vary_is_neither_padded_nor_cut(attended):
    out = attended(normal(3, 7, 8))
    assert out["weights"].shape == (8, 8)


def test_shared_names_sizes_as_arguments_and_trees():
    def function(data, n, scale):
        return data["x"] @ data["y"][0] + jnp.arange(n)[:, None] * scale

    exe = padded(
        function,
        {"x": ex.InputInfo((BATCH, SEQ), "float32"), "y": [ex.InputInfo((SEQ, 4), "float32")]},
        ex.compat.tripy.DimensionInputInfo(BATCH),
        ex.InputInfo((), "float32"),
    )
    for rows, columns in ((3, 5), (16, 1), (1, 16)):
        data = {"x": normal(rows, columns), "y": [normal(columns, 4)]}
        same(exe(data, rows, np.float32(2)), jax.jit(function, static_argnums=1)(data, rows, np.float32(2)))
    assert exe.dynamic_report.calls == 3


def test_keys_of_random_numbers_are_padded_and_cut():
    resize = Resize([(5, 2)], [(8, 4)])
    keys = jax.random.split(jax.random.key(1), (5, 2))
    (more,) = resize.pad([keys], is_on_host=True)
    assert more.shape == (8, 4)
    (back,) = Resize([(8, 4)], [(5, 2)]).cut([more], is_on_host=True)
    np.testing.assert_array_equal(jax.random.key_data(back), jax.random.key_data(keys))


def test_a_weak_type_comes_out_weak():
    exe = padded(lambda x: jnp.broadcast_to(2.0, x.shape), ex.InputInfo((BATCH,), "float32"))
    assert exe(jnp.ones(3)).weak_type == jax.jit(lambda x: jnp.broadcast_to(2.0, x.shape))(jnp.ones(3)).weak_type


def test_a_donated_array_is_gone_whatever_its_size():
    exe = padded(lambda x: x + 1, ex.InputInfo((BATCH, 8), "float32"), donate="x")
    for rows in (5, 16):
        x = jnp.asarray(normal(rows, 8))
        expected = np.asarray(x) + 1
        np.testing.assert_array_equal(exe(x), expected)
        assert x.is_deleted()
        with pytest.raises(ex.errors.DonatedInputError):
            exe(x)
    assert exe.dynamic_report.faults == ()


def test_what_is_on_a_device_is_no_transfer_and_what_is_not_still_is(attended):
    x = normal(3, 5, 8)
    on_device = jnp.asarray(x)
    expected = attention(x)
    with jax.transfer_guard("disallow"):
        got = attended(on_device)
        with pytest.raises(Exception, match="Disallowed host-to-device transfer"):
            attended(normal(3, 6, 8))
    same(got, expected)


@pytest.mark.slow
def test_under_transformations_the_program_is_the_one_for_every_size(attended):
    x = normal(3, 5, 8)

    def total(function):
        return lambda x: function(x)["mean"].sum()

    np.testing.assert_allclose(jax.grad(total(attended))(x), jax.grad(total(attention))(x), rtol=1e-4, atol=1e-6)
    same(jax.jit(lambda x: attended(x)["mean"])(x), jax.jit(lambda x: attention(x)["mean"])(x))
    stacked = jnp.stack([x, 2 * x])
    same(jax.vmap(attended)(stacked)["values"], jax.vmap(attention)(stacked)["values"])

    def step(carry, x):
        return carry, attended(x)["mean"]

    same(jax.lax.scan(step, 0.0, stacked)[1], jnp.stack([attention(x)["mean"], attention(2 * x)["mean"]]))


def test_within_a_trace_arrays_that_are_there_are_computed_with_at_once():
    exe = padded(lambda x: x * 2, ex.InputInfo((BATCH, 8), "float32"))
    x = jnp.asarray(normal(5, 8))
    computed = []

    @jax.jit
    def outer(y):
        computed.append(exe(x))
        return y + computed[0].sum()

    np.testing.assert_allclose(outer(1.0), 1 + 2 * x.sum(), rtol=1e-5)
    np.testing.assert_array_equal(computed[0], 2 * x)
    np.testing.assert_array_equal(exe(x), 2 * x)
    assert exe.dynamic_report.faults == ()


def test_an_empty_dimension_which_no_symbol_can_be_has_a_binary_of_its_own():
    exe = padded(lambda x: x.sum(1), ex.InputInfo(((0, 4, 8), 3), "float32"))
    assert exe(normal(0, 3)).shape == (0,)
    assert [row.sizes for row in exe.dynamic_report.binaries if not row.is_padded] == [{"x_0": 0}]


def test_where_jax_looks_for_nans_nothing_is_padded():
    def inverse(x):
        return 1 / x

    exe = padded(inverse, ex.InputInfo((BATCH,), "float32"))
    with jax.debug_nans(True), jax.debug_infs(True):
        np.testing.assert_array_equal(exe(jnp.ones(3)), np.ones(3))


def test_a_call_that_is_wrong_is_refused_as_ever(attended):
    with pytest.raises(ex.errors.InputShapeError, match="17; compiled for"):
        attended(normal(17, 3, 8))
    with pytest.raises(ex.errors.InputDtypeError):
        attended(np.ones((2, 3, 8), np.int32))


# What comes in the background ----------------------------------------------------------------------------------------


MIXING = np.random.default_rng(1).normal(size=(256, 256)).astype(np.float32) / 16


def busy(x):
    for _ in range(3):
        x = jnp.tanh(x @ MIXING)
    return x.sum(-1)


def test_other_buckets_and_hot_sizes_come_in_the_background_and_results_stay():
    exe = padded(busy, ex.InputInfo(((1, 64, 2048), 256), "float32"), buckets={"x_0": (256,)})
    x = jnp.asarray(normal(200, 256))
    expected = jax.jit(busy)(x)
    for _ in range(400):
        same(exe(x), expected)
        if any(not row.is_padded for row in exe.dynamic_report.binaries):
            break
    assert exe.padded.join(60)
    report = exe.dynamic_report
    by_background = [(row.sizes["x_0"], row.is_padded) for row in report.binaries if row.is_background]
    # Measured times decide whether the smaller bucket or the size's own binary is compiled first.
    assert by_background
    assert {*by_background} <= {(256, True), (200, False)}
    assert report.faults == ()
    same(exe(x), expected)
    assert threading.active_count() == len([t for t in threading.enumerate() if t.name != "explorer-padding"])


@pytest.mark.slow
def test_compiled_ahead_there_is_nothing_left_to_compile():
    exe = padded(attention, ex.InputInfo((BATCH, SEQ, 8), "float32"), buckets={"batch": (4,), "seq": (8,)})
    assert exe.compile_ahead(progress=False) is exe
    report = exe.dynamic_report
    assert [tuple(row.sizes.values()) for row in report.binaries] == [(16, 16), (16, 8), (4, 16), (4, 8)]
    x = normal(3, 7, 8)
    same(exe(x), attention(x))
    assert exe.dynamic_report.sizes[0].bucket == {"batch": 4, "seq": 8}


def test_exact_sizes_can_be_compiled_ahead():
    exe = padded(lambda x: x.sum(1), ex.InputInfo((BATCH, 8), "float32"))
    exe.compile_ahead([{"batch": 3}, {"batch": 5}])
    assert [row.sizes for row in exe.dynamic_report.binaries if not row.is_padded] == [{"batch": 3}, {"batch": 5}]
    with pytest.raises(ex.errors.OptionError, match=r"allowed is a dict with 1 ≤ batch ≤ 16"):
        exe.compile_ahead([{"batch": 17}])


def test_a_fault_in_the_background_costs_nobody_a_result(monkeypatch):
    exe = padded(busy, ex.InputInfo(((1, 64, 2048), 256), "float32"), buckets={"x_0": (256,)})

    def fails(*_):
        raise RuntimeError("no memory")

    monkeypatch.setattr(exe.padded._binaries, "compile_padded", fails)
    monkeypatch.setattr(exe.padded._binaries, "binary", fails)
    x = jnp.asarray(normal(200, 256))
    expected = jax.jit(busy)(x)
    for _ in range(400):
        same(exe(x), expected)
        if exe.dynamic_report.faults:
            break
    assert exe.dynamic_report.faults[0].endswith(": RuntimeError: no memory")


def test_a_fault_in_padding_is_answered_by_a_binary_of_the_size(monkeypatch):
    exe = padded(lambda x: x.sum(1), ex.InputInfo((BATCH, 8), "float32"))

    def fails(*_):
        raise RuntimeError("no memory")

    monkeypatch.setattr(exe.padded, "_serve", fails)
    x = normal(5, 8)
    np.testing.assert_allclose(exe(x), x.sum(1), rtol=1e-5)
    assert exe.dynamic_report.faults == ("a call with batch = 5: RuntimeError: no memory",)
    np.testing.assert_allclose(exe(x), x.sum(1), rtol=1e-5)
    assert len(exe.dynamic_report.faults) == 1


def numpy_busy(x):
    for _ in range(3):
        x = np.tanh(x @ MIXING)
    return x.sum(-1)


@pytest.mark.slow
def test_several_threads_call_while_binaries_come():
    exe = padded(busy, ex.InputInfo(((1, 64, 1024), 256), "float32"), buckets={"x_0": (64, 256)})
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        for rows in random.integers(1, 1025, 20):
            x = normal(int(rows), 256)
            try:
                np.testing.assert_allclose(exe(x), numpy_busy(x), rtol=2e-3, atol=2e-3)
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert exe.dynamic_report.calls == 60


def closing_over(weights):
    return lambda x: x @ weights


def test_it_is_freed_with_what_it_closes_over():
    gc.collect()
    gc.disable()
    try:
        weights = jnp.ones((8, 4))
        exe = padded(closing_over(weights), ex.InputInfo((BATCH, 8), "float32"))
        exe(normal(3, 8))
        gone = [weakref.ref(weights), weakref.ref(exe)]
        del weights, exe
        assert [reference() is None for reference in gone] == [True] * 2
    finally:
        gc.enable()


# What is decided ------------------------------------------------------------------------------------------------------


def test_by_itself_each_size_has_its_own_binary():
    exe = ex.compile(lambda x: x.sum(1), args=[ex.InputInfo((BATCH, 8), "float32")])
    exe(normal(3, 8))
    assert exe.dynamic_report.verdict == "specialised"
    assert [row.sizes["batch"] for row in exe.dynamic_report.binaries] == [8, 3]


def test_auto_pads_what_is_proven_and_says_so():
    exe = ex.compile(lambda x: x.sum(1), args=[ex.InputInfo((BATCH, 8), "float32")], dynamic="auto")
    assert exe.dynamic_report.verdict == "padded"
    assert exe.dynamic_report.why.startswith("padding is proven safe for all 1 equations")
    assert repr(exe) == "Executable(<lambda>(x: f32[batch,8]) → f32[batch], padded)"


@pytest.mark.parametrize(
    ("dimension", "verdict", "why"),
    [(4, "static", "no size varies"), ((1, 2, 3), "specialised", "only 3 sizes")],
)
def test_auto_says_why_there_is_nothing_to_pad(dimension, verdict, why):
    exe = ex.compile(lambda x: x.sum(1), args=[ex.InputInfo((dimension, 8), "float32")], dynamic="auto")
    assert exe.dynamic_report.verdict == verdict
    assert exe.dynamic_report.why.startswith(why)


def two_refused(x):
    first = jax.lax.linalg.svd(x, compute_uv=False)
    return jax.lax.linalg.svd(x + 1, compute_uv=False), first


def test_what_cannot_be_padded_is_an_error_with_every_line_or_specialised():
    square = ex.InputInfo((SEQ, 8), "float32")
    with pytest.raises(ex.errors.PaddingError) as caught:
        padded(two_refused, square)
    line = two_refused.__code__.co_firstlineno
    text = str(caught.value)
    assert "two_refused can't be padded" in text
    assert f"line {line + 1}:   first = jax.lax.linalg.svd(x, compute_uv=False)" in text
    assert f"line {line + 2}:   return jax.lax.linalg.svd(x + 1, compute_uv=False), first" in text
    exe = ex.compile(two_refused, args=[square], dynamic="auto")
    report = exe.dynamic_report
    assert report.verdict == "specialised"
    assert {refusal.line for refusal in report.refusals} == {line + 1, line + 2}
    assert "can't be padded" in report.why


def test_what_cannot_be_traced_for_every_size_can_not_be_padded():
    with pytest.raises(ex.errors.PaddingError, match=r"no symbol can stand for its sizes(?s:.*)x.shape\[0\] > 5"):
        padded(lambda x: x if x.shape[0] > 5 else -x, ex.InputInfo((BATCH, 8), "float32"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dynamic": "padded"}, "dynamic is 'padded'; allowed are 'auto', 'pad', 'specialise'"),
        ({"buckets": {"batch": 4}}, "but nothing is padded"),
        ({"dynamic": "pad", "buckets": {"x": 4}}, "the dimensions that vary are batch"),
    ],
)
def test_options_that_are_none_are_refused(options, message):
    with pytest.raises(ex.errors.OptionError, match=message):
        ex.compile(lambda x: x, args=[ex.InputInfo((BATCH,), "float32")], **options)


def test_the_report_says_what_padding_wastes():
    exe = padded(lambda x: x @ WEIGHTS, ex.InputInfo((BATCH, 8), "float32"))
    for rows in (4, 4, 16):
        exe(normal(rows, 8))
    small, full = exe.dynamic_report.sizes
    assert (small.sizes, small.bucket, small.calls) == ({"batch": 4}, {"batch": 16}, 2)
    assert (small.bytes, small.padded_bytes) == (4 * 8 * 4 * 2, 16 * 8 * 4 * 2)
    assert small.flops == 2 * 4 * 8 * 8
    assert small.wasted_flops == 3 * small.flops
    assert (full.wasted_bytes, full.wasted_flops) == (0, 0)
    assert exe.dynamic_report.wasted_flops == 2 * small.wasted_flops
    assert len(small.seconds) == 2
    assert all(seconds > 0 for seconds in small.seconds)


def test_what_is_asked_of_one_program_is_of_the_usual_sizes_and_compiled_then():
    exe = padded(lambda x: x @ WEIGHTS, ex.InputInfo((BATCH, 8), "float32"))
    assert "f32[16,8]" in exe.explore().hlo.text  # what serves is the largest bucket
    assert "f32[16,8]" not in exe.as_text()
    assert exe.explore(normal(3, 8)) is exe.explore()


def test_nothing_is_said_of_what_is_not_donated():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        padded(lambda x: x @ WEIGHTS, ex.InputInfo((BATCH, 8), "float32"))(normal(3, 8))
