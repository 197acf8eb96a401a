"""What a line costs, without asking any profiler: the model is timed with the line, and with something trivial for it.

Lines of a model that do something end in `# without: EXPRESSION`: what stands for the line's value where it is left
out. It has the same shape and needs all that the line needs, so that nothing but the line's own work goes away.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

__all__ = ["LIBRARIES", "MODELS", "Call", "Candidate", "Model", "ablated", "load", "seconds_of"]

_CANDIDATE = re.compile(r"^(\s*(?:return|[\w, ]+ =) )(.*?)  # (hot; )?without: (.*)$")
_FOLDERS = ("models", "libraries")
MODELS, LIBRARIES = (sorted(path.stem for path in Path(__file__).parent.glob(f"{name}/[a-z]*.py")) for name in _FOLDERS)


@dataclass(frozen=True)
class Candidate:
    """A line that may be the hottest: its number from 1, its text, what stands for it, whether a person marked it."""

    line: int
    text: str
    without: str
    is_marked: bool


@dataclass(frozen=True)
class Call:
    """A compiled function, and what it is called with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self) -> Any:
        return jax.block_until_ready(self.function(*self.arguments))


@dataclass(frozen=True)
class Model:
    """One model, as it is in its file."""

    name: str
    file: str
    lines: Sequence[str]
    candidates: Mapping[int, Candidate]
    full: Call

    @property
    def marked(self) -> int:
        """The line that who wrote the model says is the hottest."""
        (marked,) = [one.line for one in self.candidates.values() if one.is_marked]
        return marked


def load(name: str) -> Model:
    """A model by its name, with its arguments on the device."""
    folder = "libraries" if name in LIBRARIES else "models"
    module = import_module(f"tests.corpus_profile.{folder}.{name}")
    file = Path(str(module.__file__))
    lines = file.read_text().splitlines()
    found = {
        number: Candidate(number, line.partition("  #")[0].strip(), match[4], bool(match[3]))
        for number, line in enumerate(lines, 1)
        if (match := _CANDIDATE.match(line))
    }
    full = Call(_compiled(module.full), jax.block_until_ready(module.arguments()))
    return Model(name, str(file), lines, found, full)


def ablated(model: Model, line: int) -> Call:
    """The model without one of its lines, with its arguments: those may have the model's code in their methods."""
    lines = list(model.lines)
    lines[line - 1] = _CANDIDATE.sub(r"\1\4", lines[line - 1])
    module = ModuleType(f"{model.name}_without_{line}")
    sys.modules[module.__name__] = module  # where a dataclass looks up the names in its annotations
    exec(compile("\n".join(lines), f"{model.name} without line {line}", "exec"), vars(module))
    return Call(_compiled(module.full), jax.block_until_ready(module.arguments()))


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return function if hasattr(function, "lower") or _calls_jitted(function) else jax.jit(function)


def _calls_jitted(function: Callable[..., Any]) -> bool:
    """A step in Python, of which the parts are compiled."""
    return any(hasattr(function.__globals__.get(name), "lower") for name in function.__code__.co_names)


def seconds_of(calls: Sequence[Call], rounds: int) -> list[float]:
    """The least seconds of each, called in turn: what disturbs the machine for a while disturbs all of them."""
    for call in calls:
        call()
    least = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            least[i] = min(least[i], time.perf_counter() - begin)
    return least
