"""A trace for hardware that isn't here: the platform and the cuDNN that it sees, and nothing of it afterwards."""

import threading

import jax
import jax.numpy as jnp
import pytest

from explorer._jax.target_trace import traced_for

DEVICE = jax.devices()[0]


@pytest.mark.parametrize(("platform", "seen"), [("tpu", "tpu"), ("cuda", "gpu"), ("rocm", "gpu"), ("cpu", "cpu")])
def test_a_device_has_the_targets_platform_for_a_while(platform: str, seen: str) -> None:
    with traced_for("x", platform):
        assert DEVICE.platform == seen
        assert jax.default_backend() == "cpu"  # what JAX itself reads
    assert DEVICE.platform == "cpu"


def test_an_error_ends_it_too() -> None:
    with pytest.raises(ZeroDivisionError), traced_for("x", "tpu"):
        raise ZeroDivisionError
    assert DEVICE.platform == "cpu"


def test_another_thread_sees_the_real_platform() -> None:
    seen = []
    with traced_for("x", "tpu"):
        thread = threading.Thread(target=lambda: seen.append(DEVICE.platform))
        thread.start()
        thread.join()
    assert seen == ["cpu"]


def test_a_trace_for_a_target_is_never_taken_for_another() -> None:
    step = jax.jit(lambda x: jnp.sin(x) if DEVICE.platform == "cpu" else jnp.cos(x))

    def op() -> str:
        return step.trace(1.0).jaxpr.eqns[0].primitive.name

    with traced_for("v5e", "tpu"):
        assert op() == "cos"
    assert op() == "sin"
    with traced_for("avx2", "cpu"):
        assert op() == "sin"
    with traced_for("v5e", "tpu"):
        assert op() == "cos"


@pytest.mark.parametrize(("capability", "heads"), [("8.0", False), ("9.0a", True)])
def test_cudnn_attention_is_traced_by_the_targets_capability(capability: str, heads: bool) -> None:
    x = jax.ShapeDtypeStruct((4, 512, 8, 256), jnp.bfloat16)  # heads of 256 need a Hopper

    def attention(x):
        return jax.nn.dot_product_attention(x, x, x, implementation="cudnn")

    with traced_for(capability, "cuda", capability):
        if heads:
            assert jax.eval_shape(attention, x).shape == x.shape
        else:
            with pytest.raises(NotImplementedError, match="head dim must be <= 128"):
                jax.eval_shape(attention, x)
    with pytest.raises(RuntimeError, match="cuDNN is not detected"):
        jax.eval_shape(attention, x)
