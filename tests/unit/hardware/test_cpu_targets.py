"""CPUs by their instructions, compiled for by JAX's own compiler in a process that is given no newer ones."""

import os
import platform
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.hardware import cpu_features
from explorer.hardware.cpu_features import lacking_feature, xla_flags
from explorer.hardware.names import parse_target

FLAGS = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else ""
has_avx512 = pytest.mark.skipif(
    platform.machine() != "x86_64" or " avx512f " not in FLAGS, reason="this machine's CPU has no AVX-512"
)
X = jax.ShapeDtypeStruct((256, 256), jnp.float32)


def sums(a, b):
    return jnp.sin(jnp.sort(a * b)) + jnp.cumsum(a, 0)


@pytest.mark.slow
@has_avx512
def test_code_for_avx2_has_no_register_of_avx512_and_the_session_compiles_as_before() -> None:
    pytest.importorskip("capstone")
    before = jax.jit(sums).lower(X, X).compile().as_text(), dict(os.environ), jax.devices()
    old, new = (ex.explore(sums, X, X, target=target) for target in ("avx2", "avx512"))
    assert old.environment["target"] == "avx2"
    assert old.environment["device"] == "x86-64 CPU with AVX2"
    codes = ["".join(row.texts["assembly"] for row in capture.machine_code) for capture in (old, new)]
    assert [bool(re.search(r"\bzmm\d+|\bymm(1[6-9]|2\d|3[01])\b", code)) for code in codes] == [False, True]
    assert all("ymm" in code for code in codes)
    assert before == (jax.jit(sums).lower(X, X).compile().as_text(), dict(os.environ), jax.devices())


@pytest.mark.slow
@has_avx512
def test_what_is_not_known_of_a_cpu_without_its_machine_is_not_said() -> None:
    capture = ex.explore(sums, X, X, target="avx2")
    assert capture.memory["argument"] == 2 * 256 * 256 * 4
    assert len(capture.estimates) == 0
    (row,) = ex.compare_targets(sums, X, X, targets=["avx2"])
    assert row.fits is None
    assert row.capacity == 0


def test_a_cpu_is_named_by_its_instructions_and_several_are_one_machine() -> None:
    assert parse_target("cpu-avx2") == parse_target("avx2")
    assert xla_flags(parse_target("8xavx512")) == "--xla_cpu_max_isa=AVX512 --xla_force_host_platform_device_count=8"
    assert xla_flags(parse_target("h100")) == ""


@pytest.mark.parametrize("name", ["neoverse", "neoverse-v2", "graviton", "aarch64"])
def test_arm_is_refused_in_a_line_that_says_where_it_can_be_had(name: str) -> None:
    with pytest.raises(ex.errors.UnknownTargetError, match="for ARM use explore") as raised:
        ex.target(name)
    assert "\n" not in str(raised.value)


def test_instructions_that_this_machine_lacks_are_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(cpu_features, "_features", lambda: frozenset({"avx", "avx2"}))
    assert not lacking_feature(parse_target("avx2").device)
    assert "avx512f" in lacking_feature(parse_target("avx512").device)
    rows = ex.targets()
    assert (rows["avx2"].is_installed, rows["amx"].is_installed) == (True, False)
    with pytest.raises(ex.errors.MissingCompilerError, match="amx needs a machine that has amx_tile"):
        ex.explore(sums, X, X, target="amx")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert "an x86-64 machine" in ex.targets()["avx2"].hint
    assert not lacking_feature(parse_target("h100").device)
