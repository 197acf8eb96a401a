"""The user's lines on a stack when something compiles."""

from __future__ import annotations

import linecache
from types import FrameType

from explorer.capture.sources import label
from explorer.model.events.event import Place
from explorer.model.stage import is_library_file

# Packages that run the user's code: their frames and callers are not the user's.
_RUNNERS = frozenset(
    ("IPython", "ipykernel", "tornado", "asyncio", "_pytest", "pluggy", "pytest", "nbclient", "runpy", "threading")
)
# Between the user's line and what it calls.
_OURS = frozenset(("explorer", "jax", "jaxlib", "contextlib", "functools"))
_DEEPEST = 200  # frames: deeper ones of a recursion repeat
_MANY = 4_096

_kinds: dict[str, str] = {}
_places: dict[tuple[str, int, str, str], Place] = {}


def user_places(frame: FrameType | None) -> tuple[Place, ...]:
    """Return the user's frames on a stack, innermost first; those of libraries only if there are no others."""
    users: list[Place] = []
    libraries: list[Place] = []
    for _ in range(_DEEPEST):
        if frame is None:
            break
        kind = _kinds.get(frame.f_code.co_filename) or _kind(frame)
        if kind == "runner" and users:  # a runner that the user's code called, as in `thread.join()`
            break
        if kind == "users":
            users.append(_place_at(frame))
        elif kind == "library" and not users:
            libraries.append(_place_at(frame))
        frame = frame.f_back
    return tuple(users or libraries)


def place_of(file: str, line: int, function: str = "") -> Place:
    """Return a line of a file with its label and its current text. Equal places are one object."""
    key = (file, line, label(file), function)
    place = _places.get(key)
    if place is None:
        if len(_places) >= _MANY:
            _places.clear()
        text = linecache.getline(file, line).strip()
        place = _places[key] = Place(file, line, key[2], text, function)
    return place


def _place_at(frame: FrameType) -> Place:
    code = frame.f_code
    function = "" if code.co_name == "<module>" else code.co_qualname.rpartition("<locals>.")[2]
    return place_of(code.co_filename, frame.f_lineno or code.co_firstlineno, function)


def _kind(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    if package in _OURS:
        kind = "ours"
    elif package in _RUNNERS:
        kind = "runner"
    else:
        kind = "library" if is_library_file(file) else "users"
    if file.startswith("<"):  # code that was made from a string has no name of its own
        return kind
    if len(_kinds) >= _MANY:
        _kinds.clear()
    _kinds[file] = kind
    return kind
