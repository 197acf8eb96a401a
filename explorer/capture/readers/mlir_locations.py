"""MLIR locations: `loc(…)` of an operation → the scope path and the Python stack that it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from explorer.model.graph import Frame

_DEFINITION = re.compile(r"#(loc\d*) = loc\((.*)\)\s*$")
_STRING = r'"((?:[^"\\]|\\.)*+)"'
_FILE = re.compile(_STRING + r":(\d{1,9}):(\d{1,9})(?: to (\d{0,9}):(\d{1,9}))?")
_NAME = re.compile(_STRING)
_ALIAS = re.compile(r"#(loc\d*)")
_FUSED = re.compile(r"fused(?:<[^<>]*+>)?\[")
_DEEPEST = 100  # locations inside each other on one line
_LONGEST = 1000  # frames of a stack: a file can name one location twice in another, again and again

Place = tuple[str, tuple[Frame, ...]]
_NOWHERE: Place = ("", ())


class Locations:
    """The locations that a module defines by name (`#loc3 = loc(…)`), and those written out.

    Args:
        lines: The module's text.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._definitions = {m[1]: m[2] for line in lines if line.startswith("#loc") and (m := _DEFINITION.match(line))}
        self._known: dict[str, Place] = {}

    def read(self, text: str) -> Place:
        """The scope path and the stack, innermost first, of what stands between the parentheses of `loc(…)`."""
        return _Reading(self, text).location(0)

    def named(self, alias: str) -> Place:
        """The same of `#loc3`, given as `loc3`."""
        if alias not in self._known:
            self._resolve(alias)
        return self._known[alias]

    def _resolve(self, alias: str) -> None:
        """Read a definition after those it is made of, without recursion: a stack is as deep as the user's program."""
        todo = [alias]
        while todo:
            at = todo[-1]
            text = self._definitions.get(at, "")
            if at not in self._known:
                self._known[at] = _NOWHERE  # what a location that refers to itself gets
                missing = [other for other in _ALIAS.findall(text) if other not in self._known]
                if missing:
                    todo += missing
                    continue
            todo.pop()
            self._known[at] = self.read(text)


class _Reading:
    """One location's text, read from left to right."""

    def __init__(self, locations: Locations, text: str) -> None:
        self.locations, self.text = locations, text
        self.at: int = 0

    def location(self, depth: int) -> Place:
        text, at = self.text, self.at
        if depth > _DEEPEST:
            self.at = len(text)
            return _NOWHERE
        if alias := _ALIAS.match(text, at):
            self.at = alias.end()
            return self.locations.named(alias[1])
        if file := _FILE.match(text, at):
            self.at = file.end()
            # MLIR prints `-` where what it read had no location.
            return "", (_frame(file),) if file[1] != "-" else ()
        if name := _NAME.match(text, at):
            self.at = name.end()
            return self.named(_plain(name[1]), self.inner("(", ")", depth)[:1])
        if text.startswith("callsite(", at):
            self.at = at + len("callsite")
            return _call_site(self.inner("(", ")", depth))
        if fused := _FUSED.match(text, at):
            self.at = fused.end() - 1
            return _fused(self.inner("[", "]", depth))
        self.at = len(text)
        return _NOWHERE

    def inner(self, opening: str, closing: str, depth: int) -> list[Place]:
        """The locations between brackets, separated by `at` or a comma; none where there are no brackets."""
        places: list[Place] = []
        if not self.text.startswith(opening, self.at):
            return places
        self.at += 1
        while self.at < len(self.text) and not self.text.startswith(closing, self.at):
            places.append(self.location(depth + 1))
            separator = _SEPARATOR.match(self.text, self.at)
            self.at = separator.end() if separator else self.at
            if separator is None and not self.text.startswith(closing, self.at):
                self.at = len(self.text)
        self.at += 1
        return places

    def named(self, name: str, inside: list[Place]) -> Place:
        scope, frames = inside[0] if inside else _NOWHERE
        if len(frames) == 1 and not frames[0].function and "/" not in name and "(" not in name:
            # JAX wraps a file location in its function's name; an operation's own name comes around that.
            return scope, (replace(frames[0], function=name),)
        return name, frames


_SEPARATOR = re.compile(r",\s*| at ")
_ESCAPED = re.compile(r"\\(.)")


def _frame(file: re.Match[str]) -> Frame:
    """Of `"f.py":3:8 to :20`, whose end may be on the same line or not there."""
    line, end_line = int(file[2]), int(file[4] or file[2])
    return Frame(_plain(file[1]), "", line, int(file[3]), end_line, int(file[5] or 0))


def _call_site(places: list[Place]) -> Place:
    """The stack of `callsite(callee at caller)`."""
    return "", tuple(frame for _, frames in places for frame in frames)[:_LONGEST]


def _fused(places: list[Place]) -> Place:
    """Of the places of several operations that became one: the first that has a stack."""
    return next((place for place in places if place[1]), places[0] if places else _NOWHERE)


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
