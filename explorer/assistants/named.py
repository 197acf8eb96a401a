"""What the user's own command line named, and so may run: functions, scripts, golden files."""

from __future__ import annotations

import ast
import re
import reprlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from explorer.assistants.definitions import Definitions
from explorer.capture.command_target import parse_shape_spec
from explorer.errors import OptionError

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_LONGEST, _MOST = 1_000, 100  # characters of a name or an argument; arguments
_SHOWN = 20  # names of a file


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

    def call(self, name: str, arguments: Sequence[str]) -> list[str]:
        """Return the words of a shell's verb for a function that may be looked at, and its arguments.

        Raises:
            OptionError: The command line named neither the function nor its module, or the module doesn't define it; or
                an argument is code.
        """
        if len(arguments) > _MOST:
            raise OptionError(f"{len(arguments)} arguments were given; allowed are {_MOST}.")
        place, _, function = _short(name, "the function").rpartition(":")
        if name not in self.functions and place not in self.modules:
            raise OptionError(f"{name!r} was not named on the command line; there are: {self.text}.")
        if name in self.functions and not arguments:
            return [name]
        definitions = Definitions.of(place)
        if name not in self.functions and not definitions.has(function):
            own = ", ".join(definitions.names[:_SHOWN]) or "nothing"
            raise OptionError(
                f"{place} defines no {function!r}; it defines {own}.\n"
                "  Hint: NAME or NAME.METHOD: a function, class or instance of its top level, nothing that it imports."
            )
        return [name, *(f"--arg={argument(text, definitions)}" for text in arguments)]

    def script(self, name: str) -> tuple[str, ...]:
        """A script that may run, with its arguments.

        Raises:
            OptionError: The command line didn't name it.
        """
        if name in self.scripts:
            return self.scripts[name]
        there = ", ".join(map(repr, self.scripts)) or "none"
        raise OptionError(
            f"{_short(name, 'the script')!r} was not named on the command line as a script; there are: {there}."
        )

    @property
    def text(self) -> str:
        """All of them, in words."""
        every = [f"each function of {module}" for module in self.modules]
        scripts = [f"the script {name!r}" for name in self.scripts]
        return ", ".join([*self.functions, *every, *scripts, *self.goldens]) or "nothing"


def argument(text: str, definitions: Definitions) -> str:
    """Return an argument that is no code: a shape, a literal, or a name that the function's module defines.

    Raises:
        OptionError: It is something else.
    """
    name, equal, value = _short(text, "the argument").partition("=")
    value = value.strip() if equal and name.strip().isidentifier() else text.strip()
    if parse_shape_spec(value) is not None or _is_literal(value):
        return text
    if _NAME.fullmatch(value) and definitions.has(value):
        return text
    raise OptionError(
        f"the argument {text!r} is code, or no name of the module; allowed are a shape, as f32[8,128], a literal, as 3 "
        "or 'mean', and a name that the module defines, as params, each perhaps behind NAME=.\n"
        "  Hint: give what is computed or imported a name in the module: dtype = jnp.dtype('bfloat16')."
    )


def _short(text: str, what: str) -> str:
    if len(text) > _LONGEST or "\0" in text:
        raise OptionError(
            f"{what} {reprlib.repr(text)} has {len(text)} characters; allowed are {_LONGEST}, without NUL."
        )
    return text


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True
