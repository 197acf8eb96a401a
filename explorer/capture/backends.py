"""What lowers and compiles a traced program: JAX for the devices that are here, or the compiler of other hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Protocol

import jax

from explorer.errors import UnknownTargetError
from explorer.hardware.installed import compiler_of, path_of
from explorer.hardware.process import compile_apart
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
    def light_options(self) -> Mapping[str, Any]:
        """Options with which the program's passes are the same, and what comes after them takes less time."""
        ...

    def lower(self, traced: Any) -> Any:
        """The `jax.stages.Lowered` of a `jax.stages.Traced`."""
        ...

    def compile(self, lowered: Any, options: Mapping[str, Any] | None) -> CompiledProgram:
        """What the compiler makes of a lowered program."""
        ...

    def environment(self) -> dict[str, str]:
        """What a capture says of where it was made, and for what."""
        ...


class HereBackend:
    """JAX, for the devices of this process."""

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

    def environment(self) -> dict[str, str]:
        """This process's JAX and its first device."""
        return environment()


class TargetBackend:
    """The compiler of hardware that isn't here, in a process of its own.

    Args:
        target: What it compiles for.
    """

    light_options: Mapping[str, Any] = {}

    def __init__(self, target: Target) -> None:
        """Raise MissingCompilerError where its compiler is not installed: better before the trace than after it."""
        path_of(compiler_of(target.platform))
        self.target = target

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
        module = lowered.compiler_ir("stablehlo").operation
        count = int(module.attributes["mhlo.num_partitions"].value)
        if count > self.target.count:
            raise UnknownTargetError(
                f"the program is one for {count} devices, and {self.target} is {self.target.count}.\n"
                f"  Hint: {_larger(self.target, count)}"
            )
        written = BytesIO()
        module.write_bytecode(written)
        made = compile_apart(self.target, written.getvalue(), count, dict(options or {}))
        return CompiledProgram(lambda: made.text, made.cost, made.memory)

    def environment(self) -> dict[str, str]:
        """The target, as the compiler knows it, and what is not as it would be there."""
        target = self.target
        facts = {"jax": jax.__version__, "backend": target.platform, "device": target.device.name}
        facts["target"] = str(target)
        return {**facts, "caveat": target.caveat} if target.caveat else facts


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
