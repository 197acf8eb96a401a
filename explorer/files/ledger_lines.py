"""Ledgers as JSON lines, one object with one entry each: `{"event": {…}}`. `ledger_reader` reads them.

The first line says what the file is: `{"explorer": "ledger", "version": 2, …}`. Repeated values (places, functions,
forms of leaves, settings, nodes of argument trees, keys, reasons) have a line of their own before the first event
that needs them, and are referred to by number: the first `place` is 0. `{"forget": true}` restarts all numbering, so
that a process that writes for days need not remember everything. Default values are left out. Times are in seconds,
`start` since 1970.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, cast

from explorer.errors import LedgerFileError
from explorer.files.disk import replacing
from explorer.model.events.event import Event
from explorer.model.events.family_counts import Prediction
from explorer.model.events.key import Key, Leaf, TreeNode
from explorer.model.events.leaves import FORM, Form, forms_of
from explorer.model.events.ledger import Ledger

VERSION = 2  # 2: trees are nodes that refer to each other; in 1 each was its print
_REFERENCES = ("call_site", "key", "stack", "reason")
SETTINGS = ("context", "options", "wrapping")
_REMEMBERED = 50_000  # shared values; past this, numbering restarts


class Writer:
    """Writer of events as lines, each shared value before the first event that has it.

    Args:
        write: Takes a text of whole lines.
    """

    def __init__(self, write: Callable[[str], object], header: dict[str, Any] | None = None) -> None:
        self._write = write
        self._forget()
        self._write(_line({"explorer": "ledger", "version": VERSION, **(header or {})}))

    def _forget(self) -> None:
        self._numbers: dict[tuple[str, object], int] = {}
        self._counts: dict[str, int] = {}
        self._keys: list[tuple[Key, int]] = []  # the last few: events of one call share theirs

    def events(self, events: Iterable[Event]) -> None:
        for event in events:
            if len(self._numbers) > _REMEMBERED:
                self._forget()
                self._write(_line({"forget": True}))
            self._write(_line({"event": self._event(event)}))

    def predictions(self, predictions: Iterable[Prediction]) -> None:
        for prediction in predictions:
            self._write(_line({"prediction": _given(prediction, family=list(prediction.family))}))

    def _event(self, event: Event) -> dict[str, Any]:
        changes: dict[str, Any] = {"reason": self._shared("reason", event.reason, _given)}
        if event.call_site is not None:
            changes["call_site"] = self._shared("place", event.call_site, _given)
        if event.stack:
            changes["stack"] = [self._shared("place", place, _given) for place in event.stack]
        if event.key is not None:
            changes["key"] = self._key(event.key)
        return _given(event, **changes)

    def _key(self, key: Key) -> int:
        for written, number in self._keys:
            if written is key:
                return number
        references: dict[str, Any] = {"function": self._shared("function", key.function, _given)}
        if key.leaves:
            references["leaves"] = [self._leaf(*leaf) for leaf in forms_of(key.leaves)]
        if key.tree is not None:
            references["tree"] = self._tree(key.tree)
        if key.statics:
            references["statics"] = [_given(static) for static in key.statics]
        for name in SETTINGS:
            if settings := getattr(key, name):
                references[name] = self._shared("settings", settings, list)
        number = self._numbered("key", _given(key, **references))
        self._keys = [(key, number), *self._keys[:15]]
        return number

    def _tree(self, tree: TreeNode) -> int:
        """Write a line for each node not yet written, children first, and return the root's number."""
        number = self._numbers.get(("tree", tree))
        if number is None:
            for node in tree.distinct():
                number = self._shared("tree", node, self._node)
        return cast("int", number)

    def _node(self, node: TreeNode) -> dict[str, Any]:
        texts = {"name": node.name, "static": node.static}
        content: dict[str, Any] = {"kind": node.kind, **{name: text for name, text in texts.items() if text}}
        if node.children:
            content["steps"] = node.steps
            content["children"] = [self._numbers["tree", child] for child in node.children]
        if node.fields:
            content["fields"] = node.fields
        return content

    def _leaf(self, form: Form, shape: tuple[int | str, ...]) -> list[int | str]:
        return [self._shared("form", form, _form), *shape]

    def _shared(self, kind: str, value: Any, content: Callable[[Any], Any]) -> int:
        number = self._numbers.get((kind, value))
        if number is None:
            number = self._numbers[kind, value] = self._numbered(kind, content(value))
        return number

    def _numbered(self, kind: str, content: Any) -> int:
        self._write(_line({kind: content}))
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        return number


def _given(value: Any, **references: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their default, and the given references."""
    content: dict[str, Any] = {}
    for name, default in _fields(value.__class__):
        if name in references:
            content[name] = references[name]
        elif name not in _REFERENCES and (held := getattr(value, name)) != default:
            content[name] = held
    return content


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in fields(kind))


def _form(form: Form) -> dict[str, Any]:
    usual = Leaf._field_defaults
    return {name: value for name, value in zip(FORM, form, strict=True) if name not in usual or value != usual[name]}


def _line(content: dict[str, Any]) -> str:
    # Only ASCII: file names may hold lone surrogates.
    return json.dumps(content, separators=(",", ":")) + "\n"


def save(ledger: Ledger, path: str | os.PathLike[str]) -> None:
    """Write a ledger to a file, whole or not at all."""
    header = {"dropped": ledger.dropped, "spilled": ledger.spilled}
    with replacing(path) as file:
        writer = Writer(
            lambda text: file.write(text.encode("ascii")), {name: count for name, count in header.items() if count}
        )
        writer.events(ledger.events)
        writer.predictions(ledger.predictions)


class Spill:
    """File for a ledger's oldest events, open as long as the ledger lives.

    Raises:
        LedgerFileError: The file exists already.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._file = Path(path).open("x", encoding="ascii", newline="\n")  # noqa: SIM115 - it outlives the call
        except FileExistsError:
            raise LedgerFileError(
                f"{os.fspath(path)} is there already, and nothing is written over it.\n"
                "  Hint: name another file for the oldest events, or read that one with Ledger.load(path)."
            ) from None
        self._process = os.getpid()
        self._writer = Writer(self._file.write)
        self._file.flush()

    def write(self, events: Iterable[Event]) -> None:
        if os.getpid() != self._process:
            raise OSError("it is the file of the process that this one was forked from")
        self._writer.events(events)
        self._file.flush()  # the ledger doesn't keep these events

    def __del__(self) -> None:
        if (file := getattr(self, "_file", None)) is not None:
            file.close()
