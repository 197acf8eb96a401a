"""Backends that lower and compile a traced program: JAX for the devices here, or the compiler of other hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import jax

from explorer._jax.interrupts import kept_for_xla
from explorer._jax.target_trace import traced_for
from explorer.analysis.least_time import GpuLimits, limits_of
from explorer.errors import MissingCompilerError, TargetCompileError, UnknownTargetError
from explorer.hardware.cpu_features import lacking_feature
from explorer.hardware.installed import compiler_of, path_of
from explorer.hardware.names import parse_target
from explorer.hardware.process import compile_apart, start
from explorer.model.target import Target


@dataclass(frozen=True)
class CompiledProgram:
    """The result of a compilation: a function that returns the optimized HLO, estimates, and bytes by use.

    Estimates and bytes may be empty. `compiled` is missing without a device to load it.
    """

    text: Callable[[], str]
    cost: Mapping[str, float] = field(default_factory=dict[str, float])
    memory: Mapping[str, int] = field(default_factory=dict[str, int])
    compiled: Any = None


def environment() -> dict[str, str]:
    return {"jax": jax.__version__, "backend": jax.default_backend(), "device": jax.devices()[0].device_kind}


class Backend(Protocol):
    """Lowering and compiling of a program.

    A trace runs inside `tracing()`. `light_options` save time after the passes, which stay the same. `write_code`
    compiles once more, with everything below HLO written to a folder.
    """

    @property
    def is_here(self) -> bool: ...
    @property
    def light_options(self) -> Mapping[str, Any]: ...
    @property
    def gpu_limits(self) -> GpuLimits | None: ...
    def tracing(self) -> AbstractContextManager[None]: ...
    def lower(self, traced: Any) -> Any: ...
    def compile(self, lowered: Any, options: Mapping[str, Any] | None) -> CompiledProgram: ...
    def write_code(self, lowered: Any, options: Mapping[str, Any] | None, folder: Path) -> CompiledProgram: ...
    def environment(self) -> dict[str, str]: ...


class HereBackend:
    is_here = True
    gpu_limits = None  # a device that is here doesn't say which of the published GPUs it is

    @property
    def light_options(self) -> Mapping[str, Any]:
        """Return the compiler options that make code generation cheap on a CPU; empty on other backends.

        A CPU's code is generated after the last recorded pass, and takes most of the time.
        The option also gives the compilation a key of its own in JAX's persistent cache, which ignores dump options.
        """
        return {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else {}

    def tracing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def lower(self, traced: Any) -> Any:
        return traced.lower()

    def compile(self, lowered: Any, options: Mapping[str, Any] | None) -> CompiledProgram:
        with kept_for_xla():
            compiled = lowered.compile(compiler_options=options)
        return CompiledProgram(compiled.as_text, _cost(compiled), _memory(compiled), compiled)

    def write_code(self, lowered: Any, options: Mapping[str, Any] | None, folder: Path) -> CompiledProgram:
        return self.compile(lowered, {**(options or {}), **_code_options(jax.default_backend(), folder)})

    def environment(self) -> dict[str, str]:
        return environment()


class TargetBackend:
    """The compiler of hardware that isn't here, in a subprocess."""

    is_here = False
    light_options: Mapping[str, Any] = {}

    def __init__(self, target: Target) -> None:
        """Start the target's compiler in a subprocess; raise MissingCompilerError if it or a CPU feature is missing."""
        path_of(compiler_of(target.platform))
        if lacks := lacking_feature(target.device):
            raise MissingCompilerError(
                f"{target} needs {lacks}.\n  Hint: explorer.targets() lists the hardware to compile for."
            )
        self.target = target
        start(target)  # the subprocess starts while the function is traced and lowered

    def tracing(self) -> AbstractContextManager[None]:
        """Return a context in which the user's code sees the target's platform on devices."""
        capability = self.target.device.compiler.get("capability", "") if self.target.platform == "cuda" else ""
        return traced_for(str(self.target), self.target.platform, capability)

    def lower(self, traced: Any) -> Any:
        """Return the program lowered for the target's platform, which needs no plugin."""
        return traced.lower(lowering_platforms=(self.target.platform,))

    def compile(self, lowered: Any, options: Mapping[str, Any] | None) -> CompiledProgram:
        """Return the program as the target's compiler makes it, in a subprocess.

        Raises:
            UnknownTargetError: The program needs more devices than the target has.
            TargetCompileError: The compiler refuses the program.
        """
        __tracebackhide__ = True
        return self._compile(lowered, options or {})

    def write_code(self, lowered: Any, options: Mapping[str, Any] | None, folder: Path) -> CompiledProgram:
        __tracebackhide__ = True
        return self._compile(lowered, {**(options or {}), **_code_options(self.target.platform, folder)}, folder)

    @property
    def gpu_limits(self) -> GpuLimits | None:
        return limits_of(self.target.device.compiler)

    def _compile(self, lowered: Any, options: Mapping[str, Any], code: Path | None = None) -> CompiledProgram:
        __tracebackhide__ = True
        module = lowered.compiler_ir("stablehlo").operation
        count = int(module.attributes["mhlo.num_partitions"].value)
        if count > self.target.count:
            key = self.target.device.key
            is_tpu = self.target.platform == "tpu"
            larger = f"a topology of {count} chips or more, as '{key}:…'." if is_tpu else f"'{count}x{key}'."
            raise UnknownTargetError(
                f"the program needs {count} devices, and {self.target} has {self.target.count}.\n  Hint: {larger}"
            )
        written = BytesIO()
        module.write_bytecode(written)
        compile_program = partial(compile_apart, self.target, written.getvalue(), count)
        estimates = {"xla_gpu_collect_cost_model_stats": True} if self.target.platform in ("cuda", "rocm") else {}
        try:
            made = compile_program({**estimates, **options}, code)
        except TargetCompileError as error:
            # XLA has measured tables of products for some GPUs, and fails without one: for sm_80 and sm_89.
            if not estimates or "Cannot find key: " not in str(error):
                raise
            made = compile_program(options, code)
        return CompiledProgram(lambda: made.text, made.cost, made.memory)

    def environment(self) -> dict[str, str]:
        """Return `jax` (a version), `backend`, `device`, `target`, and `devices` (a number) and `caveat` if any."""
        target = self.target
        facts = {"jax": jax.__version__, "backend": target.platform, "device": target.device.name}
        facts["target"] = str(target)
        if target.count > 1:
            facts["devices"] = str(target.count)
        return {**facts, "caveat": target.caveat} if target.caveat else facts


def backend_of(target: str | Target | None) -> Backend:
    """Return a target's backend, JAX for the devices here if None; raise UnknownTargetError, MissingCompilerError."""
    return HereBackend() if target is None else TargetBackend(parse_target(target))


def _code_options(platform: str, folder: Path) -> dict[str, Any]:
    """Return XLA's options that write the code below HLO; empty for a TPU.

    Emitters are named, because `.*` writes every pass of MLIR, in ten times the time. With these names nothing was
    measurable: a training step of two layers took 17 s for an H100, and 21 s without. Up to jaxlib 0.10 the option is
    Triton's alone, and LLVM's code is written anyway.
    """
    if platform == "tpu":  # its compiler writes code from its start on, or not at all
        return {}
    emitters = "^(llvm|ptx|triton-fusion)$"
    return {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True, "xla_dump_emitter_re": emitters}


def _cost(compiled: Any) -> dict[str, float]:
    try:
        analysis: dict[str, Any] = compiled.cost_analysis() or {}
    except Exception:  # a backend without it raises any error
        return {}
    wanted = ("flops", "transcendentals", "bytes accessed")
    return {key: float(analysis[key]) for key in wanted if float(analysis.get(key, -1)) >= 0}


def _memory(compiled: Any) -> dict[str, int]:
    try:
        stats = compiled.memory_analysis()
    except Exception:  # as above
        return {}
    uses = ("argument", "output", "temp", "alias", "generated_code")
    return {
        use.replace("_", " "): size
        for use in uses
        if (size := getattr(stats, f"{use}_size_in_bytes", None)) is not None
    }
