"""The process that compiles: its limits, its end by an interrupt or a crash, and what the user is told of it."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.hardware.limits import Limits, limits_of
from explorer.hardware.process import running
from tests.examples.training import initial, step


@cache
def arguments() -> tuple[Any, jax.Array]:
    """Made before a clock starts: that takes seconds."""
    return initial(6), jnp.ones((8, 65), jnp.int32)


def long_compile(target: str | ex.types.Target) -> ex.Capture:
    """Ten seconds or more of a compiler's work."""
    return ex.explore(step, *arguments(), target=target)


@contextmanager
def after(seconds: float, pid: int, number: int) -> Iterator[None]:
    arguments()
    timer = Timer(seconds, os.kill, (pid, number))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_a_limit_of_time_ends_the_compile_and_its_process(cuda: str) -> None:
    ex.explore(jnp.sin, jnp.ones(3), target=cuda)
    child = running()["cuda"]
    with pytest.raises(ex.errors.ExploreError, match=r"given up after 0\.5 s, its limit") as raised:
        long_compile(ex.target(cuda, compile_seconds=0.5))
    assert not is_running(child)
    assert [stage.name for stage in raised.value.capture.stages] == ["jaxpr", "stablehlo"]


@pytest.mark.slow
def test_a_limit_of_memory_ends_that_compile_alone_and_the_next_has_none(
    cuda: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_TARGET_MEMORY", "300e6")
    with pytest.raises(ex.errors.ExploreError, match="its limit of 300 MB"):
        long_compile(cuda)
    monkeypatch.delenv("EXPLORER_TARGET_MEMORY")
    assert ex.explore(jnp.sin, jnp.ones(3), target=cuda).hlo.graph


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGKILL, "ended by SIGKILL: probably"), (signal.SIGSEGV, "crashed, and ended by SIGSEGV")],
)
def test_a_crash_is_one_line_with_what_to_do_and_the_next_compile_works(cuda: str, number: int, said: str) -> None:
    ex.explore(jnp.sin, jnp.ones(3), target=cuda)
    with after(0.5, running()["cuda"], number), pytest.raises(ex.errors.ExploreError, match=said) as raised:
        long_compile(cuda)
    first, *hints = str(raised.value.__cause__).splitlines()
    assert "compiler" in first
    assert all("Hint:" in hint for hint in hints)
    assert ex.explore(jnp.cos, jnp.ones(3), target=cuda).hlo.graph


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """A worker of pytest-xdist ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_an_interrupt_ends_the_compile_keeps_the_stages_before_it_and_leaves_no_process(
    cuda: str, hears_interrupts: None
) -> None:
    ex.explore(jnp.sin, jnp.ones(3), target=cuda)
    child = running()["cuda"]
    with after(4, os.getpid(), signal.SIGINT), pytest.raises(KeyboardInterrupt) as raised:
        long_compile(cuda)
    capture: ex.Capture = raised.value.capture  # type: ignore[attr-defined]
    assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo"]
    assert not is_running(child)
    assert "cuda" not in running()


@pytest.mark.slow
def test_two_sessions_of_one_machine_compile_for_tpus_at_once(tpu: str) -> None:
    """libtpu has a lock for the machine's chips, and refuses who comes second."""
    program = textwrap.dedent(f"""
        import jax.numpy as jnp, explorer as ex
        ex.explore(jnp.sin, jnp.ones(3), target={tpu!r})
        print("compiled")
    """)
    ex.explore(jnp.sin, jnp.ones(3), target=tpu)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("compiled\n", "")
    assert ex.explore(jnp.cos, jnp.ones(3), target=tpu).hlo.graph


@pytest.mark.parametrize("text", ["much", "-1", "inf", "nan"])
def test_a_limit_in_the_environment_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_TARGET_SECONDS", text)
    with pytest.raises(ex.errors.OptionError, match="EXPLORER_TARGET_SECONDS"):
        limits_of(ex.target("h100"))


@pytest.mark.parametrize("value", [-1, float("nan"), "60", True])
def test_a_limit_of_a_target_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(ex.errors.OptionError, match="compile_seconds"):
        ex.target("h100", compile_seconds=value)  # type: ignore[arg-type]


def test_the_targets_own_limits_go_before_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_TARGET_SECONDS", "60")
    monkeypatch.setenv("EXPLORER_TARGET_MEMORY", "8e9")
    assert limits_of(ex.target("h100")) == Limits(60.0, 8_000_000_000)
    assert limits_of(ex.target("h100", compile_seconds=5, compile_memory=100)) == Limits(5, 100)
