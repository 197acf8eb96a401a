"""Names on the user's command line, which may run, and the names that a Python file defines itself.

Definitions are read from the file's syntax tree without importing or running anything. Allowed are functions, classes
and instances of the file's top level, and their methods and attributes. A name that the file imports, or binds to an
import (`wipe = tasks.wipe`), is not its own.
"""

from __future__ import annotations

import ast
import re
import reprlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from itertools import chain
from pathlib import Path

from explorer.capture.command_target import parse_shape_spec
from explorer.errors import OptionError
from explorer.files.disk import LARGEST_TEXT, read_bytes

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
        """Return the names of a command line by kind; OptionError if a file is missing or a name is of no such kind."""
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
        """Return the arguments of a shell's verb for an allowed function: its name, then `--arg=` for each argument.

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
                "  Hint: give NAME or NAME.METHOD of a function, class or instance that it defines at its top level."
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
        """Return all allowed names as one list in words, "nothing" for an empty one."""
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
        f"the argument {text!r} is code, or a name that the module doesn't define; allowed are a shape, "
        "as f32[8,128], a literal, as 3 or 'mean', and a name that the module defines, as params, each "
        "optionally after NAME=.\n"
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


_FOREIGN = None  # value bound by an import, a loop, a `with` or an `except`
_NO_NAMES = frozenset[str]()
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_Name = tuple[str, ...]  # `step`, or `model` and `step`
_Binding = tuple[str, ast.AST | None]
_Value = tuple[ast.AST | None, frozenset[str]]  # with the local names of the enclosing function


@dataclass(frozen=True)
class Definitions:
    """Values bound to each name of a file's top level."""

    _top: dict[str, list[ast.AST | None]]

    @classmethod
    def of(cls, place: str) -> Definitions:
        """Return the definitions of a file, or of a module found without an import; OptionError if Python can't read
        it.
        """
        path = Path(place) if place.endswith(".py") else _source(place)
        try:
            return cls(_by_name(_bindings(ast.parse(read_bytes(path, LARGEST_TEXT, "a script")).body)))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise OptionError(f"{path} can't be read as Python: {type(error).__name__}: {error}.") from None

    @property
    def names(self) -> list[str]:
        """Return the names of public functions, classes and instances, in the file's order."""
        return [name for name in self._top if "." not in name and self.has(name)]

    def has(self, name: str) -> bool:
        """Return True if the file itself defines a public name with at most one dot: `step`, `Model.loss`."""
        parts = name.split(".")
        if len(parts) > 2 or any(part.startswith("_") for part in parts):
            return False
        # A name is the file's own if all its values are; a cycle, as `x = x["layer"]`, adds nothing.
        seen, pending = set[_Name](), [tuple(parts)]
        while pending:
            each = pending.pop()
            if each in seen:
                continue
            seen.add(each)
            needed = list(self._needed_by(each))
            if _FOREIGN in needed:
                return False
            pending += filter(None, needed)
        return True

    def _needed_by(self, name: _Name) -> Iterator[_Name | None]:
        """Yield the names that the file must define for `name` to count as defined by the file.

        None stands for a value bound by an import, a loop, a `with` or an `except`.
        """
        first, *rest = name
        for value in self._top.get(".".join(name), ()) if rest else ():  # model.step = …
            yield from _names_of(value, _NO_NAMES)
        for value in self._top.get(first, [_FOREIGN]):
            if not rest:
                yield from _names_of(value, _NO_NAMES)
            elif isinstance(value, ast.Name):
                yield value.id, rest[0]
            else:
                for each, local in self._attribute(value, rest[0]) or [(_FOREIGN, _NO_NAMES)]:
                    yield from _names_of(each, local)

    def _attribute(self, value: ast.AST | None, attribute: str) -> list[_Value]:
        """Return the values that the file binds to an attribute of a class, or of an object that a call makes."""
        if isinstance(value, ast.ClassDef):
            return self._of_class(value, attribute, is_instance=False)
        if not isinstance(value, ast.Call):
            return []
        if (made := self._class_of(value)) is not None:
            return self._of_class(made, attribute, is_instance=True)
        return [(word.value, _NO_NAMES) for word in value.keywords if word.arg == attribute]  # SimpleNamespace(depth=3)

    def _class_of(self, call: ast.Call) -> ast.ClassDef | None:
        """Return the class in the file that a call makes: `Model()`, `Model.new()`, `make() -> Model`; else None."""
        maker = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        owner = self._only(maker)
        if isinstance(owner, _FUNCTION) and maker is call.func:
            owner = self._only(owner.returns)
        return owner if isinstance(owner, ast.ClassDef) else None

    def _only(self, name: ast.AST | None) -> ast.AST | None:
        """Return the syntax node bound to a name or a quoted annotation; None if the name has no value or several."""
        match name:
            case ast.Name(id=key) | ast.Constant(value=str(key)):
                values = self._top.get(key, [])
                return values[0] if len(values) == 1 else None
            case _:
                return None

    def _of_class(self, owner: ast.ClassDef, attribute: str, *, is_instance: bool) -> list[_Value]:
        """Return the values of an attribute in a class, or in its first base in the file that has it; empty if none."""
        classes, seen = [owner], set[str]()
        while classes:
            each = classes.pop(0)
            bound = (*_by_name(_bindings(each.body)).get(attribute, ()), *self._top.get(f"{each.name}.{attribute}", ()))
            values = [(value, _NO_NAMES) for value in bound]
            if is_instance:
                values += [*_fields(each, attribute), *_assigned_to_self(each, attribute)]
            if values:
                return values
            seen.add(each.name)
            bases = [self._only(base) for base in each.bases]
            classes += [base for base in bases if isinstance(base, ast.ClassDef) and base.name not in seen]
        return []


def _source(module: str) -> Path:
    """Return a module's file, found without running its packages; OptionError without Python source."""
    path, parts, spec = [str(Path.cwd()), *sys.path], module.split("."), None
    # Not `importlib.util.find_spec`, which imports the packages around a module.
    finders = dict.fromkeys([PathFinder, *sys.meta_path])
    for at in range(len(parts)):
        name = ".".join(parts[: at + 1])
        spec = next((spec for finder in finders if (spec := finder.find_spec(name, path)) is not None), None)
        if spec is None:
            raise OptionError(f"there is no module {name!r}.")
        path = list(spec.submodule_search_locations or ())
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise OptionError(f"the module {module!r} has no source, from which to know what it defines.")
    return Path(spec.origin)


def _names_of(value: ast.AST | None, local: frozenset[str]) -> Iterator[_Name | None]:
    """Yield the names whose values an expression returns or reads from; None if foreign, nothing for a new object."""
    match value:
        case None:
            yield _FOREIGN
        case ast.Name(id=name):
            yield from () if name in local else ((name,),)
        # Before the next case: `model.loss` may be the file's own although `model` has foreign parts.
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name not in local:
            yield name, attribute
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.NamedExpr(value=inner):
            yield from _names_of(inner, local)
        case ast.IfExp(body=body, orelse=other):
            yield from chain(_names_of(body, local), _names_of(other, local))
        case ast.BoolOp(values=values):
            yield from chain.from_iterable(_names_of(each, local) for each in values)
        case _:
            pass


def _by_name(bindings: Iterator[_Binding]) -> dict[str, list[ast.AST | None]]:
    names: dict[str, list[ast.AST | None]] = {}
    for name, value in bindings:
        if name == "*":  # a star import may rebind every earlier name
            names = {each: [_FOREIGN] for each in names}
        else:
            names.setdefault(name, []).append(value)
    return names


def _bindings(body: Sequence[ast.stmt]) -> Iterator[_Binding]:
    """Yield (name, value) for each name that statements bind, outside functions, in order; None for an import's."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, statement
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _assigned(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _assigned(target, value)
            case ast.AnnAssign():
                pass  # `depth: int` binds nothing
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for name in names:
                    yield (name.asname or name.name).partition(".")[0], _FOREIGN
            case ast.If(test=test, orelse=others) if ast.unparse(test) == "__name__ == '__main__'":
                yield from _bindings(others)  # an import doesn't run the body
            case _:
                yield from _others(statement)


def _others(statement: ast.AST) -> Iterator[_Binding]:
    """Yield (name, value) for the names that a compound statement and those inside it bind; None for its own names."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield from _bindings([child])
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id, _FOREIGN
        else:
            name = getattr(child, "name", None)  # of an `except`, or of a `match`
            if isinstance(name, str):
                yield name, _FOREIGN
            yield from _others(child)


def _assigned(target: ast.AST, value: ast.AST) -> Iterator[_Binding]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        yield f"{target.value.id}.{target.attr}", value
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        starred = any(isinstance(part, ast.Starred) for part in (*parts, *target.elts))
        pairs = zip(target.elts, parts, strict=True) if len(parts) == len(target.elts) and not starred else ()
        for part, its_value in pairs or ((part, value) for part in target.elts):
            yield from _assigned(part.value if isinstance(part, ast.Starred) else part, its_value)


def _fields(owner: ast.ClassDef, attribute: str) -> Iterator[_Value]:
    """Yield (annotation as a string constant, no local names) of a field without a value: `n: int`.

    Dataclasses and Equinox modules have such fields.
    """
    for statement in owner.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=None, annotation=annotation) if name == attribute:
                yield ast.Constant(ast.unparse(annotation)), _NO_NAMES
            case _:
                pass


def _assigned_to_self(owner: ast.ClassDef, attribute: str) -> Iterator[_Value]:
    """Yield (value, local names of the method) for each assignment to the attribute of a method's first argument."""
    for method in owner.body:
        if not isinstance(method, _FUNCTION):
            continue
        every = method.args
        parameters = [*every.posonlyargs, *every.args, *every.kwonlyargs, *filter(None, (every.vararg, every.kwarg))]
        nodes = list(ast.walk(method))
        stored = (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        local = frozenset(chain((parameter.arg for parameter in parameters), stored))
        for node in nodes:
            match node:
                case ast.Assign(targets=[*_, ast.Attribute(value=ast.Name(id=first), attr=name)], value=value):
                    pass
                case ast.AnnAssign(
                    target=ast.Attribute(value=ast.Name(id=first), attr=name), value=ast.expr() as value
                ):
                    pass
                case _:
                    continue
            if name == attribute and parameters and first == parameters[0].arg:
                yield value, local
