"""Trials of sharding fixes: the program is compiled with a fix, and the gain is reported."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

from jax.sharding import PartitionSpec

from explorer._jax.numbering import mesh_in, resharded
from explorer.analysis.sharding.program import Waste
from explorer.capture.backends import Backend
from explorer.capture.explore import CompileRequest, compile_stages
from explorer.model.capture import Capture
from explorer.model.live_memory import needed_bytes
from explorer.model.units import bytes_text
from explorer.pitfalls.equations import Equation, is_literal, variables
from explorer.pitfalls.evidence import Evidence, entry_parameter

_MAX_COMPILES = 4  # compiles for one lint: each takes as long as the first
_ARGUMENTS = ("argument", "unsplit", "unlike", "contracted")
_OUTPUTS = ("output", "made output")
_CHOICES = {
    "idle": "which dimension to split is your choice",
    "asked output": "what its reader needs is yours to say",
    "cut again": "which sharding to give up is your choice",
    "sum in loop": "the loop itself has to change",
}
_AXES = re.compile(r"'([^']*)'")
_PARTS = re.compile(r"\([^()]*\)|'[^']*'|None")


class NotTried(Exception):
    """Reason why a fix can't be tried."""


class _Need(NamedTuple):
    """Bytes that each device sends and allocates. `takes` is 0 if the compiler doesn't report memory."""

    sends: int
    takes: int

    @staticmethod
    def of(capture: Capture) -> _Need:
        takes = int(needed_bytes(capture.memory)) if capture.memory else 0
        return _Need(int(capture.collectives.wire), takes)


@dataclass(frozen=True)
class _Place:
    """Place that gets another sharding: an argument, or outputs of equations."""

    shape: tuple[int, ...]  # of the array
    spec: PartitionSpec | None  # the sharding; None where it is open
    argument: int | None = None  # the position among the arrays that are passed, if it is one
    results: tuple[tuple[int, int], ...] = ()  # else equations by their `id`, each with which of its outputs is meant


@dataclass
class FixTrials:
    backend: Backend  # what compiles it
    left: int = _MAX_COMPILES  # how many more are compiled
    _trials: dict[Any, _Need] = field(default_factory=dict[Any, _Need])

    def outcome(self, evidence: Evidence, waste: Waste, line: int) -> str:
        """Return what a fix gains, or why it wasn't tried: `tried: each device sends 8.4 MB → 0 B`.

        If the fix leaves the sharding open, splits along single dimensions are tried, and the best is named.
        """
        if evidence.capture is None or evidence.traced is None:
            return "not tried: there is no compiled program"
        try:
            place = _place(evidence, waste, line)
            specs = [place.spec] if place.spec is not None else [*_splits(place.shape, waste)]
            trials = [self._trial(evidence, place, spec) for spec in specs]
        except NotTried as reason:
            return f"not tried: {reason}"
        before = _Need.of(evidence.capture)

        def cost(trial: tuple[PartitionSpec, _Need]) -> float:
            # Each relative to before, so that bytes sent and bytes allocated count alike.
            return sum(now / max(was, 1) for now, was in zip(trial[1], before, strict=True))

        spec, best = min(zip(specs, trials, strict=True), key=cost)
        named = "" if place.spec is not None else f" P({', '.join(map(repr, spec))})"
        return f"tried{named}: {_compared(before, best)}"

    def _trial(self, evidence: Evidence, place: _Place, spec: PartitionSpec) -> _Need:
        key = place.argument, tuple(place.results), spec
        if key not in self._trials:
            if not self.left:
                raise NotTried(f"{_MAX_COMPILES} other shardings were tried, each by a compile")
            self.left -= 1
            self._trials[key] = self._compiled(evidence, place, spec)
        return self._trials[key]

    def _compiled(self, evidence: Evidence, place: _Place, spec: PartitionSpec) -> _Need:
        arguments = {} if place.argument is None else {place.argument: spec}
        results = {equation: (at, spec) for equation, at in place.results}
        traced = resharded(evidence.traced, arguments, results)
        if traced is None:
            raise NotTried("this JAX keeps its traces in another way")
        request = CompileRequest(evidence.function, tuple(evidence.args), evidence.kwargs, traced=traced)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of the original program were shown already
                return _Need.of(compile_stages(replace(request, backend=self.backend)).capture)
        except Exception as error:  # the compiler may raise anything for a generated program
            cause = str(error.__cause__ or error).strip().partition("\n")[0]
            raise NotTried(f"it doesn't compile so: {cause}") from error


def _compared(before: _Need, after: _Need) -> str:
    """Return `each device sends 8.4 MB → 2.1 MB, takes 45 MB → 23 MB`, or that it brings nothing."""
    less: list[str] = []
    more: list[str] = []
    for verb, was, now in zip(("sends", "takes"), before, after, strict=True):
        if (text := bytes_text(was)) != (changed := bytes_text(now)):
            (less if now < was else more).append(f"{verb} {text} → {changed}")
    if not less:
        return f"it brings nothing{': each device ' * bool(more)}{', '.join(more)}"
    return f"each device {', '.join(less)}{', but ' * bool(more)}{', '.join(more)}"


def _splits(shape: Sequence[int], waste: Waste) -> Iterator[PartitionSpec]:
    axes = waste.axes[0] if len(waste.axes) == 1 else waste.axes
    dims = sorted((at for at, size in enumerate(shape) if size % waste.devices == 0), key=lambda at: -shape[at])
    if not dims or waste.devices < 2:
        raise NotTried("no dimension is divisible by the number of devices")
    for at in dims[:2]:
        yield PartitionSpec(*(axes if each == at else None for each in range(len(shape))))


def _place(evidence: Evidence, waste: Waste, line: int) -> _Place:
    """Return where a fix applies another sharding.

    Raises:
        NotTried: The place or its shape is unknown.
    """
    if waste.kind in _CHOICES:
        raise NotTried(_CHOICES[waste.kind])
    if mesh_in(evidence.traced) is None:
        raise NotTried("its arguments have no mesh, or shardings are part of their types")
    spec = parse_spec(waste.spec) if waste.spec else None
    if waste.kind in _ARGUMENTS:
        return _argument(evidence, waste, spec)
    if waste.kind in _OUTPUTS:
        return _output(evidence, waste.number, spec)
    if waste.results and spec is not None:
        return _Place((), spec, results=waste.results)
    if spec is None:
        raise NotTried("the sharding that would fix it is unknown")
    results = tuple(_of_line(evidence, waste, line, spec))
    if not results:
        raise NotTried("the result of this line has a different shape from the gathered array")
    return _Place((), spec, results=results)


def parse_spec(text: str) -> PartitionSpec:
    """Parse `P('data', None, ('x', 'y'))` as a partition spec.

    Example:
        >>> tuple(parse_spec("P('data', None, ('x', 'y'))"))
        ('data', None, ('x', 'y'))
    """
    parts = _PARTS.findall(text[1:].strip()[1:-1])
    axes = [tuple(_AXES.findall(part)) for part in parts]
    return PartitionSpec(*(None if not each else each[0] if len(each) == 1 else each for each in axes))


def _argument(evidence: Evidence, waste: Waste, spec: PartitionSpec | None) -> _Place:
    assert evidence.capture is not None
    node = entry_parameter(evidence.capture, waste.number) if waste.kind == "contracted" else waste.node
    jaxpr: Any = getattr(evidence.jaxpr, "jaxpr", evidence.jaxpr)
    names: list[str] = list(jaxpr.debug_info.arg_names or ())
    if node is None or names.count(node.scope) != 1:
        raise NotTried("the program doesn't show which argument it is")
    at = names.index(node.scope)
    return _Place(tuple(map(int, jaxpr.invars[at].aval.shape)), spec, argument=at)


def _output(evidence: Evidence, number: int, spec: PartitionSpec | None) -> _Place:
    body = evidence.program.main
    variable: Any = body.raw.outvars[number] if number < len(body.raw.outvars) else None
    equation = body.makers.get(variable) if variable is not None and not is_literal(variable) else None
    if variable is None or equation is None:
        raise NotTried("no equation of its own makes this output")
    shape = tuple(map(int, variable.aval.shape))
    of = id(equation.raw), list(equation.outputs).index(variable)
    return _Place(shape, spec if spec is not None and len(spec) == len(shape) else None, results=(of,))


def _of_line(evidence: Evidence, waste: Waste, line: int, spec: PartitionSpec) -> Iterator[tuple[int, int]]:
    """Yield (`id` of an equation, number of its output) for the outputs of a line with the wasted array's size."""
    for equation in evidence.program.equations:
        caller = equation.body.caller
        # If a call on the line contains the equation, the call's result counts.
        if _is_on(evidence, equation, line) and not (caller is not None and _is_on(evidence, caller, line)):
            for at, variable in enumerate(equation.outputs):
                shape: Any = getattr(variable.aval, "shape", ())
                is_meant = len(shape) == len(spec) and prod(shape) == waste.elements
                if is_meant and _is_given(evidence, equation, variable, line):
                    yield id(equation.raw), at


def _is_given(evidence: Evidence, equation: Equation, variable: Any, line: int) -> bool:
    """Return True if a variable is used outside of the line that computes it, or returned."""
    body = equation.body
    others = [other.inputs for other in body.equations if not _is_on(evidence, other, line)]
    return any(variable in variables(atoms) for atoms in (body.raw.outvars, *others))


def _is_on(evidence: Evidence, equation: Equation, line: int) -> bool:
    frame = evidence.program.called_from(equation)
    return frame is not None and frame.line == line
