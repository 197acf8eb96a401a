"""Names on the user's command line, which may run: functions, scripts, golden files."""

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
_MAX_CHARACTERS, _MAX_ARGUMENTS = 1_000, 100  # characters of a name or an argument
_MAX_NAMES = 20  # of a file, in an error


@dataclass(frozen=True)
class Named:
    """Names of a command line, by kind.

    Args:
        functions: `train.py:step`, `package.module:step`.
        modules: Files and modules named as a whole: each function that they define is allowed.
        scripts: Files that may run as programs, each with its arguments, by their text on the command line.
        goldens: Golden files.
    """

    functions: tuple[str, ...]
    modules: tuple[str, ...]
    scripts: dict[str, tuple[str, ...]]
    goldens: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> Named:
        """Sort the names of a command line; OptionError if a file is missing, or a name is of no such kind."""
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
        """Return the words of a shell's verb for an allowed function and its arguments.

        Raises:
            OptionError: The command line named neither the function nor its module, the module doesn't define the
                function, or an argument is code.
        """
        if len(arguments) > _MAX_ARGUMENTS:
            raise OptionError(f"{len(arguments)} arguments were given; allowed are {_MAX_ARGUMENTS}.")
        place, _, function = _short(name, "the function").rpartition(":")
        if name not in self.functions and place not in self.modules:
            raise OptionError(f"{name!r} was not named on the command line; there are: {self.text}.")
        if name in self.functions and not arguments:
            return [name]
        definitions = Definitions.of(place)
        if name not in self.functions and not definitions.has(function):
            own = ", ".join(definitions.names[:_MAX_NAMES]) or "nothing"
            raise OptionError(
                f"{place} defines no {function!r}; it defines {own}.\n"
                "  Hint: NAME or NAME.METHOD: a function, class or instance of its top level, nothing that it imports."
            )
        return [name, *(f"--arg={argument(text, definitions)}" for text in arguments)]

    def script(self, name: str) -> tuple[str, ...]:
        """Return an allowed script with its arguments; OptionError if the command line didn't name it."""
        if name in self.scripts:
            return self.scripts[name]
        there = ", ".join(map(repr, self.scripts)) or "none"
        raise OptionError(
            f"{_short(name, 'the script')!r} was not named on the command line as a script; there are: {there}."
        )

    @property
    def text(self) -> str:
        """Return all names in words."""
        every = [f"each function of {module}" for module in self.modules]
        scripts = [f"the script {name!r}" for name in self.scripts]
        return ", ".join([*self.functions, *every, *scripts, *self.goldens]) or "nothing"


def argument(text: str, definitions: Definitions) -> str:
    """Return `text` if it is a shape, a literal or a name that the module defines; else raise OptionError."""
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
    if len(text) > _MAX_CHARACTERS or "\0" in text:
        raise OptionError(
            f"{what} {reprlib.repr(text)} has {len(text)} characters; allowed are {_MAX_CHARACTERS}, without NUL."
        )
    return text


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True
