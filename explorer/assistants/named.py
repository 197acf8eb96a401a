"""What the user's own command line named, and so may run: functions, scripts, golden files."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from explorer.capture.shape_specs import parse_shape_spec
from explorer.errors import OptionError

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Named:
    """The names of a command line, by what they are.

    Args:
        functions: `train.py:step`, `package.module:step`.
        modules: Files and modules that were named whole: each function of theirs may be looked at.
        scripts: Files that may run as programs, each with its arguments; by name as it was given.
        goldens: Golden files.
    """

    functions: tuple[str, ...]
    modules: tuple[str, ...]
    scripts: dict[str, tuple[str, ...]]
    goldens: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> Named:
        """The names as they stand on the command line.

        Raises:
            OptionError: A file isn't there, or a name can be nothing that runs.
        """
        functions: list[str] = []
        modules: list[str] = []
        scripts: dict[str, tuple[str, ...]] = {}
        goldens: list[str] = []
        for name in names:
            first, *arguments = shlex.split(name) or [""]
            place, colon, function = first.rpartition(":")
            path = Path(place if colon else first)
            if path.suffix in (".py", ".golden") and not path.is_file():
                raise OptionError(f"there is no file {str(path)!r}.")
            if path.suffix == ".golden":
                goldens.append(first)
            elif colon and _NAME.fullmatch(function) and not arguments:
                functions.append(first)
            elif path.suffix == ".py" and not colon:
                scripts[name] = (first, *arguments)
                if not arguments:
                    modules.append(first)
            elif _NAME.fullmatch(first) and not arguments:
                modules.append(first)
            else:
                raise OptionError(
                    f"{name!r} is no function, script or golden file.\n"
                    "  Hint: train.py:step, package.module:step, 'train.py --steps 3', step.golden."
                )
        return cls(tuple(functions), tuple(modules), scripts, tuple(goldens))

    def function(self, name: str) -> str:
        """A function that may be looked at.

        Raises:
            OptionError: The command line named neither it nor its module.
        """
        place, colon, function = name.rpartition(":")
        if name in self.functions or (colon and place in self.modules and _NAME.fullmatch(function)):
            return name
        raise OptionError(f"{name!r} was not named on the command line; there are: {self.text}.")

    def script(self, name: str) -> tuple[str, ...]:
        """A script that may run, with its arguments.

        Raises:
            OptionError: The command line didn't name it.
        """
        if name in self.scripts:
            return self.scripts[name]
        there = ", ".join(map(repr, self.scripts)) or "none"
        raise OptionError(f"{name!r} was not named on the command line as a script; there are: {there}.")

    @property
    def text(self) -> str:
        """All of them, in words."""
        every = [f"each function of {module}" for module in self.modules]
        scripts = [f"the script {name!r}" for name in self.scripts]
        return ", ".join([*self.functions, *every, *scripts, *self.goldens]) or "nothing"


def argument(text: str) -> str:
    """An argument of a function, which is no code: a shape, a literal, or a name of the module.

    Raises:
        OptionError: It is something else.

    Example:
        >>> argument("f32[8,128]"), argument("rate=0.1"), argument("params")
        ('f32[8,128]', 'rate=0.1', 'params')
    """
    name, equal, value = text.partition("=")
    value = value.strip() if equal and name.strip().isidentifier() else text.strip()
    if parse_shape_spec(value) is not None or _NAME.fullmatch(value) or _is_literal(value):
        return text
    raise OptionError(
        f"the argument {text!r} is code; allowed are a shape, as f32[8,128], a literal, as 3 or 'mean', and a name of "
        "the module, as params, each perhaps behind NAME=.\n  Hint: what must be computed, give a name in the module."
    )


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True
