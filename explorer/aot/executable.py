"""What compile() gives: a program for one set of shapes, called like the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.aot.arguments import Parameter, bind
from explorer.aot.fit import check
from explorer.aot.inputs import InputInfo
from explorer.capture.jaxpr import short_type
from explorer.model.capture import Capture

__all__ = ["Executable", "Specialization"]


@dataclass(frozen=True)
class Specialization:
    """One binary of an executable.

    Args:
        shapes: Of each input, by name.
        reason: Why it was compiled.
        seconds: What trace, lower and compile took.
    """

    shapes: dict[str, tuple[int, ...]]
    reason: str
    seconds: float

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {shape}" for name, shape in self.shapes.items())
        return f"Specialization({{{shapes}}}, {self.reason!r})"


class Executable:
    """A compiled function. Call it with the arguments that were described to compile(), by position or name.

    A call is checked before it runs. Raises on a call:
        MissingArgumentError, ExtraArgumentError, DuplicateArgumentError: The arguments are not the ones compiled for.
        NotAnArrayError, InputStructureError, InputShapeError, InputRankError, InputDtypeError: One of them isn't what
            was compiled for.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        program: Callable[..., Any],
        outputs: dict[str, InputInfo],
        capture: Capture,
    ) -> None:
        self._parameters = tuple(parameters)
        self._program = program
        self._outputs = outputs
        self._capture = capture
        self._inputs = {
            name: info for parameter in parameters for name, info in zip(parameter.names, parameter.infos, strict=True)
        }
        # Ready for the cached path: how many arguments a call by position has, and what each input must look like.
        self._count = -1 if any(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters) else len(parameters)
        self._is_flat = all(parameter.paths == ((),) for parameter in parameters)
        self._expected = [(info.shape, info.dtype) for info in self._inputs.values()]
        self.__name__ = capture.function
        self.__signature__ = inspect.Signature([inspect.Parameter(p.name, p.kind) for p in parameters])

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        values = args if not kwargs and len(args) == self._count else bind(self._parameters, args, kwargs)
        leaves = values
        if not self._is_flat:
            leaves = [leaf for p, value in zip(self._parameters, values, strict=True) for leaf in p.leaves(value)]
        for leaf, (shape, dtype) in zip(leaves, self._expected, strict=True):
            if getattr(leaf, "shape", None) != shape or getattr(leaf, "dtype", None) != dtype:
                for value, (name, info) in zip(leaves, self._inputs.items(), strict=True):
                    check(name, info, value)
        return self._program(*leaves)

    @property
    def input_infos(self) -> dict[str, InputInfo]:
        """By name, what each input must look like."""
        return dict(self._inputs)

    @property
    def output_infos(self) -> dict[str, InputInfo]:
        """By name, what each output looks like: `result`, or its place in the returned tree."""
        return dict(self._outputs)

    @property
    def specializations(self) -> tuple[Specialization, ...]:
        """The binaries there are: one, for the shapes it was compiled for."""
        durations = self._capture.durations
        seconds = durations.trace + durations.lower + durations.compile
        return (Specialization({name: info.shape for name, info in self.input_infos.items()}, "compiled", seconds),)

    def explore(self) -> Capture:
        """What the compiler did in this very compilation."""
        return self._capture

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {_short(info)}" for name, info in self.input_infos.items())
        outputs = ", ".join(_short(info) for info in self._outputs.values())
        return f"Executable({self.__name__}({inputs}) → {outputs})"


def _short(info: InputInfo) -> str:
    return short_type(info.to_struct())
