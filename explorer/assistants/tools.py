"""Tools of `python -m explorer mcp`: each runs one verb and returns a few sentences and the paths of its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from explorer.assistants.child import unconfined
from explorer.assistants.named import Named
from explorer.assistants.verbs import Limits, run_verb, summary_of
from explorer.errors import OptionError

Function = Annotated[str, "MODULE:FUNCTION, as the command line named it"]
Arguments = Annotated[
    list[str],
    "The function's arguments: shapes as f32[8,128], literals, or names in its module; by position or as name=value. "
    "Those left out come from its annotations and defaults.",
]


@dataclass
class Tools:
    """Tools for an assistant.

    Args:
        named: Code that may run.
        folder: Folder of pages and reports.
        limits: Limits for each answer.
    """

    named: Named
    folder: Path
    limits: Limits
    _numbers: count[int] = field(default_factory=lambda: count(1))
    # One at a time: two would disturb each other's measurements.
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def all(self) -> Sequence[Callable[..., Any]]:
        return (self.explore, self.lint, self.recompiles, self.profile, self.diff, self.targets, self.check)

    async def explore(self, function: Function, arguments: Arguments | None = None, target: str = "") -> str:
        """Compile a function, and return its kernels, bytes and memory by source line.

        Nothing runs but the function's Python, once, to be traced. `target` compiles for hardware that needn't be here:
        h100, v5e:4x4; see `targets`. The page is for the user's browser; the capture can be given to `diff`.
        """
        place = self._place("explore", function)
        files = [place.with_suffix(".html"), place.with_suffix(".capture")]
        hardware = [f"--target={target[:_MAX_TARGET]}"] if target else []
        return await self._answer(place, "explore", *self.named.call(function, arguments or ()), *hardware, files=files)

    async def lint(self, function: Function, arguments: Arguments | None = None) -> str:
        """Find pitfalls of a function under JAX, each with its line, the evidence and a fix.

        Nothing runs but its Python, once, to be traced.
        """
        return await self._answer(self._place("lint", function), "lint", *self.named.call(function, arguments or ()))

    async def recompiles(self, script: Annotated[str, "As the command line named it"]) -> str:
        """Run a script, and return its compiles, the reasons for recompiles, their cost, and fixes."""
        place, page = self._place("recompiles", script), ["--html"]
        command = self.named.script(script)
        files = [place.with_suffix(".html")]
        return await self._answer(place, "recompiles", *page, str(files[0]), *command, written=files)

    async def profile(self, function: Function, arguments: Arguments | None = None) -> str:
        """Run a function several times, and return its time by source line, measured by XLA's own profiler."""
        place = self._place("profile", function)
        files = [place.with_suffix(".html")]
        return await self._answer(place, "profile", *self.named.call(function, arguments or ()), files=files)

    async def diff(
        self,
        a: Annotated[str, "A named function, or the path of a capture that `explore` wrote"],
        b: Annotated[str, "The function or capture to compare it with"],
        arguments: Arguments | None = None,
    ) -> str:
        """Compare two functions, or a capture from before an edit with the function as it is now."""
        (first, *given), (second, *also) = (self._side(side, arguments or ()) for side in (a, b))
        place = self._place("diff", "")
        return await self._answer(place, "diff", first, second, *(given or also), files=[place.with_suffix(".html")])

    async def targets(self) -> str:
        """List the hardware that `explore` can compile for without having it."""
        return await self._answer(self._place("targets", ""), "targets")

    async def check(self) -> str:
        """Compare the functions of the named golden files with their records, and return each growth with its line."""
        if not self.named.goldens:
            raise OptionError("no golden file was named.\n  Hint: `python -m explorer mcp step.golden`.")
        return await self._answer(self._place("check", ""), "check", *self.named.goldens)

    def _place(self, verb: str, name: str) -> Path:
        """Return the path of an answer's files, without a suffix."""
        stem = "".join(letter if letter.isalnum() else "-" for letter in name.rpartition(":")[2])[:40].strip("-")
        return self.folder / "-".join(filter(None, (f"{next(self._numbers):03}", verb, stem)))

    def _side(self, side: str, arguments: Sequence[str]) -> list[str]:
        """Return the path of a capture that `explore` wrote, or a function with its arguments."""
        if side.endswith(".capture") and "\0" not in side:
            path = Path(side)
            if path.resolve().parent == self.folder and path.is_file():
                return [str(path)]
        return self.named.call(side, arguments)

    async def _answer(self, place: Path, *verb: str, files: Sequence[Path] = (), written: Sequence[Path] = ()) -> str:
        output = [part for path in files for part in ("-o", str(path))]
        report = place.with_suffix(".json")
        async with self._turn:
            answer = await run_verb([*verb, *output], report, self.limits)
        paths = [path for path in (*files, *written, report) if path.is_file()]
        warning = [f"The code was not confined: on this system it may {may}."] if (may := unconfined()) else []
        return "\n".join([*summary_of(answer), *warning, *(f"{_KINDS[path.suffix]}: {path}" for path in paths)])


_MAX_TARGET = 100  # characters
_KINDS = {".html": "page", ".capture": "capture", ".json": "report"}
