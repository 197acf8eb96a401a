"""What is done while the compiler works: the compiler has the settings of the thread that called."""

from threading import get_ident

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.backends import HereBackend
from explorer.capture.explore import CompileRequest, compile_stages, explore_call
from explorer.ledger.watch import watch


class Observed(HereBackend):
    """JAX's compiler, and in what thread it ran with which settings."""

    def compile(self, lowered, options):
        self.thread = get_ident()
        self.settings = jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision
        return super().compile(lowered, options)


def test_the_compiler_has_the_settings_of_the_thread_that_called():
    backend, threads = Observed(), []
    with jax.enable_x64(True), jax.default_matmul_precision("float32"):
        request = CompileRequest(
            jnp.sin, (jnp.ones(3),), {}, backend=backend, meanwhile=lambda so_far: threads.append(get_ident())
        )
        capture = compile_stages(request).capture
    assert backend.settings == (True, "float32")
    assert threads == [get_ident()] != [backend.thread]
    assert "f64[3]" in capture.hlo.text


def test_what_is_done_meanwhile_sees_the_stages_before_the_compiler():
    stages = []
    call = ex.Call(jnp.sin, jnp.ones(3))
    capture = explore_call(call, meanwhile=lambda so_far: stages.extend(stage.name for stage in so_far.stages))
    assert stages == ["jaxpr", "stablehlo"]
    assert capture.hlo.graph.nodes


def test_no_watch_records_a_compile_of_explorers_own_thread():
    x = jnp.ones(7)
    with watch() as ledger:
        ex.record(lambda x: jnp.cos(x) + 41, x)
    assert not [event for event in ledger.events if event.kind == "compile"]


def test_a_program_that_does_not_compile_says_so_though_something_else_is_done_meanwhile():
    done = []
    request = CompileRequest(
        jnp.sin, (jnp.ones(3),), {}, options={"xla_no_such_option": True}, meanwhile=lambda so_far: done.append(so_far)
    )
    with pytest.raises(ex.errors.ExploreError, match="xla_no_such_option") as raised:
        compile_stages(request)
    assert [stage.name for stage in raised.value.capture.stages] == ["jaxpr", "stablehlo"]
    assert done
