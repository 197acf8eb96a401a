"""Ledgers as JSON lines, one object with one entry each: `{"event": {…}}`. Everything is checked before use.

The first line says what the file is: `{"explorer": "ledger", "version": 2, …}`. Repeated values (places, functions,
forms of leaves, settings, nodes of argument trees, keys, reasons) have a line of their own before the first event
that needs them, and are referred to by number: the first `place` is 0. `{"forget": true}` restarts all numbering, so
that a process that writes for days need not remember everything. Default values are left out. Times are in seconds,
`start` since 1970.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from explorer.errors import LedgerFileError
from explorer.files.container import boolean, integer, json_list, json_object, number, text, texts
from explorer.files.disk import parse_json, read_lines, replacing
from explorer.model.events.event import KINDS, REASONS, Event, Place, Reason
from explorer.model.events.family_counts import STORM, Prediction
from explorer.model.events.key import TREE_KINDS, Function, Key, Leaf, Static, TreeNode
from explorer.model.events.leaves import FORM, Compactor, Form, forms_of
from explorer.model.events.ledger import Ledger
from explorer.model.text import brief

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
        for written, at in self._keys:
            if written is key:
                return at
        references: dict[str, Any] = {"function": self._shared("function", key.function, _given)}
        if key.leaves:
            references["leaves"] = [self._leaf(*leaf) for leaf in forms_of(key.leaves)]
        if key.tree is not None:
            references["tree"] = self._tree(key.tree)
        if key.statics:
            references["statics"] = [_given(static, **self._parts(static)) for static in key.statics]
        for name in SETTINGS:
            if settings := getattr(key, name):
                references[name] = self._shared("settings", settings, list)
        number = self._numbered("key", _given(key, **references))
        self._keys = [(key, number), *self._keys[:15]]
        return number

    def _parts(self, static: Static) -> dict[str, int]:
        return {"parts": self._shared("parts", static.parts, list)} if static.parts else {}

    def _tree(self, tree: TreeNode) -> int:
        """Write a line for each node not yet written, children first, and return the root's number."""
        number = self._numbers.get(("tree", tree))
        if number is None:
            # Children come before their parents: a line refers only to earlier lines.
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
        return [self._shared("form", form, _form_fields), *shape]

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
    """Return a dict of a dataclass's fields that differ from their default; `references` replace values."""
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


def _form_fields(form: Form) -> dict[str, Any]:
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
        # A forked child shares the file's position: its lines would mix with its parent's.
        if os.getpid() != self._process:
            raise OSError("it is the file of the process that this one was forked from")
        self._writer.events(events)
        self._file.flush()  # the ledger doesn't keep these events

    def __del__(self) -> None:
        if (file := getattr(self, "_file", None)) is not None:
            file.close()


_Check = Callable[[Any], Any]
# Raised by Python for values of a wrong type or range.
_WRONG = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError)
_LARGEST_TREE = 10_000_000  # nodes: a few lines that refer to each other could make one that fills the memory
_HINT = "Hint: ledgers are what Ledger.save(path) writes."


class EventSink(Protocol):
    """Receiver of a file's events, in their order."""

    def add(self, events: tuple[Event, ...]) -> None: ...

    def predict(self, predictions: Iterable[Prediction]) -> None: ...


def load(path: str | os.PathLike[str], *, storm: int = STORM) -> Ledger:
    """Return the ledger in a file; its `note` reports a last line that was cut off, and events in another file."""
    ledger = Ledger(limit=None, storm=storm)
    ledger.dropped, ledger.note = read_into(ledger, path)
    return ledger


def read_into(sink: EventSink, path: str | os.PathLike[str]) -> tuple[int, str]:
    """Pass every event and prediction of a file to a sink, without keeping any.

    Returns:
        The number of events dropped before the file was written, and a note about the file.

    Raises:
        LedgerFileError: The file holds no ledger, is altered, or has a newer format.
    """
    reader, note = _Reader(sink), ""
    lines = read_lines(path, "a ledger", LedgerFileError)
    header = _header(next(lines, b""))
    for index, line in enumerate(lines, 2):
        try:
            reader.read(line)
        except _WRONG as error:
            if isinstance(error, LedgerFileError):
                raise
            # A killed process leaves half a line; the lines before it are whole.
            if not line.endswith(b"\n"):
                note = "the file's last line was cut off and is left out"
                break
            raise LedgerFileError(
                f"line {index} of this ledger does not fit its format: {_error_text(error):.300}"
            ) from error
    if header["spilled"]:
        note = "; ".join(filter(None, [note, f"{header['spilled']:,} older events are in another file"]))
    return header["dropped"], note


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__} {error}" if isinstance(error, KeyError | RecursionError) else f"{error}."


def _header(line: bytes) -> dict[str, int]:
    try:
        header = parse_json(line)
        if header["explorer"] != "ledger":
            raise ValueError("of something else")
        version = integer(header["version"])
    except _WRONG as error:
        start = line[:40].decode("ascii", "replace").strip()
        raise LedgerFileError(
            f'this is no ledger: it starts with {start!r}, a ledger with \'{{"explorer":"ledger"\'. {_HINT}'
        ) from error
    if version > VERSION:
        raise LedgerFileError(
            f"this ledger has format {version}; this Explorer reads formats up to {VERSION}. Hint: upgrade explorer."
        )
    try:
        counts = {name: _count(header.get(name, 0)) for name in ("dropped", "spilled")}
        if version < 1:
            raise ValueError(f"no format is {version}")
    except _WRONG as error:
        raise LedgerFileError(f"line 1 of this ledger does not fit its format: {error!s:.300}.") from error
    return counts


def _count(value: object) -> int:
    if (count := integer(value)) < 0:
        raise ValueError(f"a count can't be {brief(value)}")
    return count


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(texts(value))


def _one_of(allowed: tuple[str, ...]) -> _Check:
    def check(value: object) -> str:
        if value not in allowed:
            raise ValueError(f"{brief(value)} is none of {', '.join(allowed)}")
        return text(value)

    return check


def _family(value: object) -> tuple[str, str, str, int]:
    process, name, file, line = json_list(value)
    return text(process), text(name), text(file), integer(line)


_CHECKS: Mapping[str, _Check] = {
    "str": text,
    "int": integer,
    "float": lambda value: float(number(value)),
    "bool": boolean,
    "bool | None": lambda value: None if value is None else boolean(value),
    "tuple[str, ...]": _strings,
    "FamilyKey": _family,
}


def _dataclass_from(kind: Any, content: object, /, **checks: _Check) -> Any:
    """Return an instance of `kind` with checked values of a JSON object; TypeError for an unknown field."""
    types = _types(kind)
    values: dict[str, Any] = {}
    for name, value in json_object(content).items():
        check = checks.get(name) or types.get(name)
        if check is None:
            raise TypeError(f"{brief(name)} is no field of {kind.__name__}")
        values[name] = check(value)
    return kind(**values)


@cache
def _types(kind: Any) -> dict[str, _Check]:
    if is_dataclass(kind):
        types = {field.name: str(field.type) for field in fields(kind)}
    else:  # a NamedTuple
        types = {name: str(getattr(of, "__forward_arg__", of)) for name, of in kind.__annotations__.items()}
    return {name: _CHECKS[of] for name, of in types.items() if of in _CHECKS}


class _Reader:
    """Builder of each line's value; numbers refer to earlier lines."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._compactor = Compactor()
        self._kinds: dict[str, _Check] = {
            "place": lambda content: _dataclass_from(Place, content),
            "function": lambda content: _dataclass_from(Function, content),
            "form": _form,
            "settings": _settings,
            "parts": _static_fields,
            "tree": self._tree,
            "reason": lambda content: _dataclass_from(Reason, content, kind=_one_of(REASONS)),
            "key": self._key,
        }
        self._tree_checks: dict[str, _Check] = {
            "kind": _one_of(TREE_KINDS),
            "name": text,
            "steps": _strings,
            "static": text,
            "children": lambda indices: tuple(self._at("tree", index) for index in json_list(indices)),
            "fields": _static_fields,
        }
        self._event_checks: dict[str, _Check] = {
            "kind": _one_of(KINDS),
            "reason": lambda index: self._at("reason", index),
            "call_site": lambda index: self._at("place", index),
            "stack": lambda indices: tuple(self._at("place", index) for index in json_list(indices)),
            "key": lambda index: self._at("key", index),
        }
        self._forget(True)

    def _forget(self, value: object) -> None:
        boolean(value)
        self._tables: dict[str, list[Any]] = {kind: [] for kind in self._kinds}

    def read(self, line: bytes) -> None:
        content = parse_json(line)
        ((kind, value),) = _items(content)
        if kind == "event":
            self._sink.add((_dataclass_from(Event, value, **self._event_checks),))
        elif kind == "prediction":
            self._sink.predict([_dataclass_from(Prediction, value)])
        elif kind == "forget":
            self._forget(value)
        elif kind in self._kinds:
            self._tables[kind].append(self._kinds[kind](value))
        else:
            raise ValueError(f"a line can't be of {brief(kind)}")

    def _at(self, kind: str, index: object) -> Any:
        table = self._tables[kind]
        if not 0 <= integer(index) < len(table):
            raise IndexError(f"there is no {kind} {brief(index)} before it")
        return table[integer(index)]

    def _key(self, content: object) -> Key:
        def settings(index: object) -> Any:
            return self._at("settings", index)

        key = _dataclass_from(
            Key,
            content,
            function=lambda index: self._at("function", index),
            leaves=lambda rows: tuple(self._leaf(row) for row in json_list(rows)),
            tree=lambda index: self._at("tree", index),
            statics=lambda rows: tuple(
                _dataclass_from(Static, row, parts=lambda index: self._at("parts", index)) for row in json_list(rows)
            ),
            **dict.fromkeys(SETTINGS, settings),
        )
        return self._compactor.key(key)  # compact, because all keys are held until the file is read

    def _tree(self, content: object) -> TreeNode:
        if isinstance(content, str):  # format 1 has the printed tree
            return TreeNode("text", static=content)
        entries = json_object(content)
        values = {name: check(entries[name]) for name, check in self._tree_checks.items() if name in entries}
        if unknown := entries.keys() - values.keys():
            raise TypeError(f"{brief(min(unknown))} is no field of a tree of arguments")
        tree = TreeNode(**values)
        if tree.size > _LARGEST_TREE:
            raise ValueError(f"a tree can't have {tree.size:,} nodes")
        return tree

    def _leaf(self, row: object) -> Leaf:
        index, *shape = json_list(row)
        form: Leaf = self._at("form", index)
        for size in shape:
            if type(size) is not str and (type(size) is not int or size < 0):
                _count(size)  # raises the fitting error
        return Leaf(
            form.path, tuple(shape), form.dtype, form.weak, form.given, form.committed, form.sharding, form.devices,
            form.layout, form.spread,
        )  # fmt: skip


def _items(content: object) -> Iterator[tuple[str, Any]]:
    entries = json_object(content)
    if len(entries) != 1:
        raise ValueError(f"a line has one entry, not {len(entries)}")
    return iter(entries.items())


def _settings(content: object) -> tuple[tuple[str, str], ...]:
    pairs = [json_list(row) for row in json_list(content)]
    return tuple((text(name), text(value)) for name, value in pairs)


def _static_fields(content: object) -> tuple[tuple[str, str, int], ...]:
    rows = [json_list(row) for row in json_list(content)]
    return tuple((text(step), text(value), integer(token)) for step, value, token in rows)


def _form(content: Any) -> Leaf:
    if "shape" in content:
        raise TypeError("a form has no shape")
    return _dataclass_from(Leaf, {**content, "shape": ()}, shape=tuple, spread=_spread)


def _spread(content: object) -> tuple[str, str, str] | tuple[()]:
    parts = _strings(content)
    if len(parts) not in (0, 3):
        raise ValueError(f"a leaf's sharding (`spread`) has 3 parts, not {len(parts)}")
    return cast("tuple[str, str, str]", parts)
