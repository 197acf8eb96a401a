"""What lowers and compiles a traced program: JAX for the devices that are here, or the compiler of other hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import jax

from explorer.analysis.cost.least_time import GpuLimits, limits_of
from explorer.errors import MissingCompilerError, TargetCompileError, UnknownTargetError
from explorer.hardware.cpu_features import lacking_feature
from explorer.hardware.installed import compiler_of, path_of
from explorer.hardware.names import parse_target
from explorer.hardware.process import compile_apart, start
from explorer.model.target import Target


@dataclass(frozen=True)
class CompiledProgram:
    """What a compiler made of a program.

    Args:
        text: Gives the optimised HLO.
        cost: The compiler's estimate of the whole program; empty where it has none.
        memory: Bytes by use; empty where the compiler doesn't tell.
        compiled: The `jax.stages.Compiled`; None where there is no device to load it.
    """

    text: Callable[[], str]
    cost: Mapping[str, float] = field(default_factory=dict[str, float])
    memory: Mapping[str, int] = field(default_factory=dict[str, int])
    compiled: Any = None


def environment() -> dict[str, str]:
    """Where this process runs: its JAX and its first device."""
    return {"jax": jax.__version__, "backend": jax.default_backend(), "device": jax.devices()[0].device_kind}


class Backend(Protocol):
    """Lowers and compiles."""

    @property
    def is_here(self) -> bool:
        """Whether JAX does so in this process."""
        ...

    @property
    def light_options(self) -> Mapping[str, Any]:
        """Options with which the program's passes are the same, and what comes after them takes less time."""
        ...

    def lower(self, traced: Any) -> Any:
        """The `jax.stages.Lowered` of a `jax.stages.Traced`."""
        ...

    def compile(self, lowered: Any, options: Mapping[str, Any] | None) -> CompiledProgram:
        """What the compiler makes of a lowered program."""
        ...

    def write_code(self, lowered: Any, options: Mapping[str, Any] | None, folder: Path) -> CompiledProgram:
        """Compile a lowered program once more, with all that is below HLO written to a folder."""
        ...

    @property
    def gpu_limits(self) -> GpuLimits | None:
        """What a multiprocessor has, of a GPU of which that is known."""
        ...

    def environment(self) -> dict[str, str]:
        """What a capture says of where it was made, and for what."""
        ...


class HereBackend:
    """JAX, for the devices of this process."""

    is_here = True

    @property
    def light_options(self) -> Mapping[str, Any]:
        """A CPU's code is generated after the last pass that is recorded, and that takes most of the time.

        The option also tells the compilation from the user's own for JAX's persistent cache, which knows no dump
        options.
        """
        return {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else {}

    def lower(self, traced: Any) -> Any:
        """As `jax.stages.Traced.lower`."""
        return traced.lower()

    def compile(self, lowered: Any, options: Mapping[str, Any] | None) -> CompiledProgram:
        """As `jax.stages.Lowered.compile`."""
        compiled = lowered.compile(compiler_options=options)
        return CompiledProgram(compiled.as_text, _cost(compiled), _memory(compiled), compiled)

    def write_code(self, lowered: Any, options: Mapping[str, Any] | None, folder: Path) -> CompiledProgram:
        """With options that every compiler of XLA's takes."""
        return self.compile(lowered, {**(options or {}), **_code_options(jax.default_backend(), folder)})

    @property
    def gpu_limits(self) -> GpuLimits | None:
        """Not known: a device that is here doesn't say which of the published ones it is."""
        return None

    def environment(self) -> dict[str, str]:
        """This process's JAX and its first device."""
        return environment()


class TargetBackend:
    """The compiler of hardware that isn't here, in a process of its own.

    Args:
        target: What it compiles for.
    """

    light_options: Mapping[str, Any] = {}

    is_here = False

    def __init__(self, target: Target) -> None:
        """Raise MissingCompilerError where its compiler is not installed: better before the trace than after it."""
        path_of(compiler_of(target.platform))
        if lacks := lacking_feature(target.device):
            raise MissingCompilerError(
                f"{target} needs {lacks}.\n  Hint: explorer.targets() has what can be compiled for."
            )
        self.target = target
        start(target)  # which gets ready while the function is traced and lowered

    def lower(self, traced: Any) -> Any:
        """For the target's platform; no plugin is needed for that."""
        return traced.lower(lowering_platforms=(self.target.platform,))

    def compile(self, lowered: Any, options: Mapping[str, Any] | None) -> CompiledProgram:
        """What the target's compiler makes of it.

        Raises:
            UnknownTargetError: The program is one for more devices than the target has.
            MissingCompilerError: The compiler is not installed.
            TargetCompileError: It refused the program.
        """
        __tracebackhide__ = True
        return self._compile(lowered, options or {})

    def write_code(self, lowered: Any, options: Mapping[str, Any] | None, folder: Path) -> CompiledProgram:
        """As `compile`, which raises the same."""
        __tracebackhide__ = True
        return self._compile(lowered, {**(options or {}), **_code_options(self.target.platform, folder)}, folder)

    @property
    def gpu_limits(self) -> GpuLimits | None:
        """Published ones."""
        return limits_of(self.target.device.compiler)

    def _compile(self, lowered: Any, options: Mapping[str, Any], code: Path | None = None) -> CompiledProgram:
        __tracebackhide__ = True
        module = lowered.compiler_ir("stablehlo").operation
        count = int(module.attributes["mhlo.num_partitions"].value)
        if count > self.target.count:
            raise UnknownTargetError(
                f"the program is one for {count} devices, and {self.target} is {self.target.count}.\n"
                f"  Hint: {_larger(self.target, count)}"
            )
        written = BytesIO()
        module.write_bytecode(written)
        compile_program = partial(compile_apart, self.target, written.getvalue(), count)
        estimates = {"xla_gpu_collect_cost_model_stats": True} if self.target.platform in ("cuda", "rocm") else {}
        try:
            made = compile_program({**estimates, **options}, code)
        except TargetCompileError as error:
            # XLA has measured tables of products for some GPUs, and gives up where it has none: of sm_80 and sm_89.
            if not estimates or "Cannot find key: " not in str(error):
                raise
            made = compile_program(options, code)
        return CompiledProgram(lambda: made.text, made.cost, made.memory)

    def environment(self) -> dict[str, str]:
        """The target, as the compiler knows it, and what is not as it would be there."""
        target = self.target
        facts = {"jax": jax.__version__, "backend": target.platform, "device": target.device.name}
        facts["target"] = str(target)
        if target.count > 1:
            facts["devices"] = str(target.count)
        return {**facts, "caveat": target.caveat} if target.caveat else facts


def backend_of(target: str | Target | None) -> Backend:
    """What compiles for a target; JAX for the devices that are here where that is None.

    Raises:
        UnknownTargetError: `target` names no hardware that is known.
        MissingCompilerError: Its compiler is not installed.
    """
    return HereBackend() if target is None else TargetBackend(parse_target(target))


def _code_options(platform: str, folder: Path) -> dict[str, Any]:
    """XLA's options that write what is below HLO.

    Emitters by their names, for those of all (`.*`) write every pass of MLIR: ten times the time. With these nothing
    could be measured: a training step of two layers took 17 s for an H100, and 21 s without. Up to jaxlib 0.10 the
    option is of Triton alone, and what LLVM made is written anyway.
    """
    if platform == "tpu":  # whose compiler writes it from its start on, or not at all
        return {}
    emitters = "^(llvm|ptx|triton-fusion)$"
    return {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True, "xla_dump_emitter_re": emitters}


def _larger(target: Target, count: int) -> str:
    if target.platform == "tpu":
        return f"a topology of {count} chips or more, as '{target.device.key}:…'."
    return f"'{count}x{target.device.key}'."


def _cost(compiled: Any) -> dict[str, float]:
    """XLA's estimate of the whole program; a backend may have none."""
    try:
        analysis: dict[str, Any] = compiled.cost_analysis() or {}
    except Exception:  # a backend without it raises whatever it likes, and a view can do without
        return {}
    wanted = ("flops", "transcendentals", "bytes accessed")
    return {key: float(analysis[key]) for key in wanted if float(analysis.get(key, -1)) >= 0}


def _memory(compiled: Any) -> dict[str, int]:
    """Bytes by use; a backend may not tell."""
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
