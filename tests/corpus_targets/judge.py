"""One program for one target: whether all of it opens, or it says in a line what the target lacks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import explorer as ex
from explorer.hardware.names import parse_target
from tests.corpus_targets.programs import Program


@dataclass(frozen=True)
class Outcome:
    """What came of a program.

    Args:
        name, target: Which, and for what.
        opens: Whether stages, links, fates and memory are there, and a page.
        coverage: The part of the instructions that are linked to a line.
        fates: How many equations have one.
        needed: Bytes that the compiler allocates on a device.
        live: Bytes alive at the fullest step of the program's schedule, as Explorer reads it.
        error: Why it doesn't open, in a line; empty where it does.
        stained: What of the session changed; empty where nothing did.
    """

    name: str
    target: str
    opens: bool
    coverage: float = 0.0
    fates: int = 0
    needed: int = 0
    live: float = 0.0
    error: str = ""
    stained: str = ""

    @property
    def is_fine(self) -> bool:
        return (self.opens or bool(self.error)) and not self.stained

    def __str__(self) -> str:
        error = self.error or "not whole"
        what = f"{self.coverage:4.0%} linked, {self.fates:4} fates, {self.needed:>12,} B" if self.opens else error
        return f"{self.target:10} {self.name:28} {what}{f'  STAINED: {self.stained}' if self.stained else ''}"


def judge(program: Program, target: str) -> Outcome:
    """Explore it, and look at everything that there is to see."""
    before = jax.devices(), dict(os.environ)
    try:
        capture = ex.explore(ex.Call(program.function, *split(program.args, parse_target(target).count)), target=target)
        outcome = _opened(program, target, capture)
    except ex.errors.ExploreError as error:
        line = str(error.__cause__ or error).strip().partition("\n")[0]
        outcome = Outcome(program.name, target, False, error=line[:160])
    after = jax.devices(), dict(os.environ)
    changed = [name for name, one, other in zip(("devices", "environment"), before, after, strict=True) if one != other]
    return Outcome(**{**vars(outcome), "stained": ", ".join(changed)})


def split(args: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The arguments on so many devices: rows of the last array over eight of them where they can be, else on each."""
    if count == 1:
        return args
    mesh = AbstractMesh((8, count // 8), ("data", "rest"), axis_types=(AxisType.Auto,) * 2)
    last = len(args) - 1

    def placed(at: int, struct: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        is_split = at == last and len(struct.shape) > 0 and struct.shape[0] % 8 == 0
        return jax.ShapeDtypeStruct(
            struct.shape, struct.dtype, sharding=NamedSharding(mesh, P("data") if is_split else P())
        )

    return tuple(placed(at, struct) for at, struct in enumerate(args))


def _opened(program: Program, target: str, capture: ex.Capture) -> Outcome:
    equations = sum(1 for node in capture.jaxpr.graph.nodes if node.op not in ("parameter", "constant"))
    fates = sum(capture.fates().values())
    memory = capture.memory
    needed = memory["argument"] + memory["output"] + memory["temp"] - memory["alias"]
    page = capture._repr_mimebundle_()["text/html"]
    is_whole = (
        len(capture.stages) == 3 and needed > 0 and fates >= min(equations, 1) and escape(capture.function) in page
    )
    live = capture.live_memory
    peak = live.peak if live.is_scheduled else float("nan")
    return Outcome(program.name, target, is_whole, capture.coverage("hlo"), fates, needed, peak)
