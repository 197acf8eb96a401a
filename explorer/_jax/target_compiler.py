"""Compiler for hardware that is not here; imported only in the subprocess that `explorer.hardware` starts.

The topology is JAX's own (`jax.experimental.topologies`). The program comes as the session lowered it, and the compiler
is called as `jax.stages.Lowered.compile` calls it. The public `jax.export` would inline everything from another
function, lose donation, and lower twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np
from jax._src import compiler as jax_compiler  # non-public: the options that JAX itself compiles with
from jax._src.interpreters import mlir  # non-public: a context that knows JAX's dialects
from jax.experimental import topologies
from jaxlib import xla_client  # non-public: DeviceList, which a compile-only client wants
from jaxlib.mlir import ir

_USES = ("argument", "output", "temp", "alias", "generated_code")
_ASSIGNED = re.compile(r"\(color=0\)\s+Total bytes: (\d+)")  # 0 is the device's own memory
_COSTS = ("flops", "transcendentals", "bytes accessed", "optimal_seconds")


@dataclass(frozen=True)
class Compiled:
    """The optimized HLO of all modules, bytes by use on one device, and the compiler's estimates."""

    text: str
    memory: Mapping[str, int]
    cost: Mapping[str, float]


def devices_of(platform: str, topology: str, config: str, slices: int = 1) -> Sequence[Any]:
    """Return the devices of a topology, which need not be here; for `cpu` those of this process.

    A topology is `v5e:4x4`, of which there are `slices`, or of GPUs slices, hosts and devices, `1x1x8`. The `config` is
    a `GpuTargetConfigProto` as text, or the use of a TPU chip's cores.
    """
    if platform == "cpu":
        return jax.devices()  # pyright: ignore[reportUnknownVariableType]
    if platform == "tpu":
        options: dict[str, Any] = {"chip_config_name": config} if config else {}
        if slices > 1:
            options["num_slices"] = slices
        described: Any = topologies.get_topology_desc(topology, "tpu", **options)
    else:
        described = topologies.get_topology_desc("", platform, target_config=config, topology=topology)
    return described.devices


def compile_for(devices: Sequence[Any], program: bytes, options: Mapping[str, Any], code: str = "") -> Compiled:
    """Return the HLO, memory and costs of MLIR bytecode, compiled for devices that run one program together.

    `code` is a folder for the file `executable`, which a compiler that can serialize its result writes; "" for none.
    """
    client: Any = devices[0].client
    if client.platform != "tpu" or "xla_dump_to" in options:
        return _compile(client, devices, program, options, code)
    with TemporaryDirectory(prefix="explorer-") as folder:
        reports = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        return _compile(client, devices, program, {**options, **reports}, code)


def _compile(client: Any, devices: Sequence[Any], program: bytes, options: Mapping[str, Any], code: str) -> Compiled:
    assignment = np.array(devices, dtype=object).reshape(1, len(devices))
    compile_options: Any = jax_compiler.get_compile_options(  # pyright: ignore
        num_replicas=1,
        num_partitions=len(devices),
        device_assignment=assignment,
        env_options_overrides=dict(options),
        backend=client,
    )
    with mlir.make_ir_context():  # pyright: ignore
        module: Any = ir.Module.parse(program)  # pyright: ignore
        # A client that only compiles has `compile`; the CPU's loads what it made, which isn't run.
        compiles = client.compile_and_load if client.platform == "cpu" else client.compile
        compiled: Any = compiles(
            module,
            executable_devices=xla_client.DeviceList(tuple(devices)),  # pyright: ignore
            compile_options=compile_options,
        )
    if code:
        with suppress(Exception):  # a compiler that can't raises any error; then less is known
            Path(code, "executable").write_bytes(compiled.serialize())
    text = "\n".join(module.to_string() for module in compiled.hlo_modules())
    memory = _memory(compiled)
    if client.platform == "tpu":
        memory = _with_assignment(memory, Path(options["xla_dump_to"]))
    return Compiled(text, memory, _cost(compiled))


def _with_assignment(memory: Mapping[str, int], folder: Path) -> Mapping[str, int]:
    """Return the bytes by use, with temporaries and `reserved`, the total, as a TPU's compiler assigned them.

    The assignment decides if the compiler refuses a program. Its `memory_analysis()` counts more where there are loops:
    for the gradient of a scan it reported 18.6 GiB, and compiled it for the 15.75 GiB of a v5e. Only a dump has the
    assignment; it cost no measurable time (75 s of a training step both ways). Without one `memory` is returned.
    """
    reports = [path.read_text(encoding="utf-8") for path in folder.glob("*memory-usage-report.txt")]
    totals = [int(match[1]) for match in map(_ASSIGNED.search, reports) if match]
    if not totals or not memory:
        return memory
    temp = max(totals) - memory["argument"] - memory["output"] + memory["alias"]
    return {**memory, "temp": max(temp, 0), "reserved": max(totals)}


def _memory(compiled: Any) -> dict[str, int]:
    try:
        stats = compiled.get_compiled_memory_stats()
    except Exception:  # a compiler without it raises any error
        return {}
    return {use.replace("_", " "): int(getattr(stats, f"{use}_size_in_bytes")) for use in _USES}


def _cost(compiled: Any) -> dict[str, float]:
    try:
        analysis: Mapping[str, float] = compiled.cost_analysis() or {}
    except Exception:  # "UNIMPLEMENTED" of a GPU's
        return {}
    return {key: float(analysis[key]) for key in _COSTS if float(analysis.get(key, -1)) >= 0}
