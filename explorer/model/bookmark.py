"""Bookmark of a place in a capture's view, with notes; it can be sent and saved.

It refers to nodes and lines by name, so it remains valid after the page and the kernel are gone and for another compile
of the same function. The browser writes and reads the same: `explorer/view/js/src/keep/bookmark.ts`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast
from urllib.parse import quote, unquote

from explorer.errors import ViewError

PANES = ("graph", "text", "table", "lines", "why", "memory", "passes")
_MOST = 10_000  # names, notes, and letters of a text: a larger input is no bookmark
_READABLE = "/:@"  # with letters, digits and _.-~: characters without a meaning in the fragment of an address


@dataclass(frozen=True)
class Note:
    """Note of a user on a node, a group or a line.

    Args:
        on: Object of the note, as in `Bookmark.selection`: `"dot.3"`, `"/forward"`, `":12"`.
        text: Text of the note.
        stage: Stage of the node or group; empty for a source line.

    Example:
        >>> import explorer
        >>> note = explorer.Note(":12", "why f32?")
        >>> explorer.Bookmark("hlo", notes=(note,)).notes[0].text
        'why f32?'
    """

    on: str
    text: str
    stage: str = ""


@dataclass(frozen=True)
class Bookmark:
    """Place in the view of a capture, with notes.

    `cap.bookmark` is the current place; `cap.view.bookmark = …` and `cap.to_html(path, bookmark=…)` open a place.
    Names that the capture lacks are skipped, and the view lists them.

    Args:
        stage: Visible stage; empty for the default.
        pane: Visible pane: `graph`, `text`, `table`, `lines`, `why`, `memory` or `passes`.
        selection: Names of nodes of the stage (`"dot.3"`), one group by its path (`"/forward/block"`), or one source
            line (`":12"`; in a file other than the function's, `"layers.py:12"`).
        search: Search text, instead of a selection.
        open_groups: Open groups of the graph, by name or path; None for the view's default.
        notes: Notes in order of creation.

    Raises:
        ViewError: A value is invalid.

    Example:
        >>> import explorer
        >>> mark = explorer.Bookmark("hlo", selection=("dot.3",), notes=(explorer.Note(":12", "why f32?"),))
        >>> mark.address
        'stage=hlo&at=dot.3&note=:12,why%20f32%3F'
        >>> explorer.Bookmark.from_address("https://mail.example/report.html#" + mark.address) == mark
        True
    """

    stage: str = ""
    pane: str = "graph"
    selection: tuple[str, ...] = ()
    search: str = ""
    open_groups: tuple[str, ...] | None = None
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        if self.pane not in PANES:
            raise ViewError(f"a view has no pane {self.pane!r:.40}; it has: {', '.join(PANES)}.")
        # Lists are what people write, and what JSON has.
        object.__setattr__(self, "selection", _names(self.selection, "selection"))
        if self.open_groups is not None:
            object.__setattr__(self, "open_groups", _names(self.open_groups, "open_groups"))
        for name in ("stage", "search"):
            _text(getattr(self, name), name)
        if not isinstance(self.notes, Sequence) or len(self.notes) > _MOST:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ViewError(f"notes are a sequence of at most {_MOST:,}; got {self.notes!r:.60}.")
        for note in self.notes:
            if not isinstance(note, Note):  # pyright: ignore[reportUnnecessaryIsInstance]: users write no types
                raise ViewError(f"notes are explorer.Note(on, text); got {note!r:.60}.")
            for name in ("on", "text", "stage"):
                _text(getattr(note, name), f"a note's {name}")
        object.__setattr__(self, "notes", tuple(self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Return the bookmark as a dictionary that JSON can store; fields with default values are left out."""
        # The default pane is empty here, because empty values are left out.
        given: dict[str, Any] = {
            "stage": self.stage,
            "pane": "" if self.pane == "graph" else self.pane,
            "selection": list(self.selection),
            "search": self.search,
            "notes": [[note.on, note.text, note.stage] for note in self.notes],
        }
        opened = {} if self.open_groups is None else {"open_groups": list(self.open_groups)}
        return {name: value for name, value in given.items() if value} | opened

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return the bookmark of a dictionary from `to_dict`.

        Raises:
            ViewError: The dictionary is no bookmark.
        """
        if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: it may be from a file
            raise ViewError(f"a bookmark is an object with names; got {given!r:.60}.")
        unknown = sorted(set(given) - {"stage", "pane", "selection", "search", "open_groups", "notes"})
        if unknown:
            raise ViewError(f"a bookmark has no {unknown[0]!r:.40}.")
        notes: Any = given.get("notes", ())
        if not isinstance(notes, list | tuple):
            raise ViewError(f"a note is a row of target, text and stage; got {notes!r:.60}.")
        rows = tuple(map(_note, cast(Sequence[Any], notes)))
        fields: dict[str, Any] = {**given, "pane": given.get("pane") or "graph", "notes": rows}
        return cls(**fields)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the bookmark of a text from `to_json`.

        Raises:
            ViewError: The text is no bookmark.
        """
        try:
            given = json.loads(text)
        # JSON that is nested deeply enough exceeds Python's recursion limit.
        except (ValueError, RecursionError) as error:
            raise ViewError(f"this is no bookmark: {error}.") from None
        return cls.from_dict(given)

    @property
    def address(self) -> str:
        """Return the text after `#` in a page's address that opens this place: `stage=hlo&at=dot.3`."""
        pane = "" if self.pane == "graph" else self.pane
        single = {"stage": self.stage, "pane": pane, "find": self.search}
        pairs = [(key, [value]) for key, value in single.items() if value]
        pairs += [("at", list(self.selection))] if self.selection else []
        pairs += [] if self.open_groups is None else [("open", list(self.open_groups))]
        for note in self.notes:
            pairs.append(("note", [note.on, note.text, *filter(None, [note.stage])]))
        return "&".join(f"{key}={','.join(map(_quoted, values))}" for key, values in pairs)

    @classmethod
    def from_address(cls, address: str) -> Self:
        """Return the bookmark in a page's address or in its fragment; without one, an empty bookmark.

        Raises:
            ViewError: A value in the address is invalid, such as an unknown pane.
        """
        given: dict[str, Any] = {}
        notes: list[tuple[str, str, str]] = []
        for pair in address.rpartition("#")[2].split("&"):
            key, _, value = pair.partition("=")
            parts = [unquote(part) for part in value.split(",")] if value else []
            if key in ("stage", "pane"):
                given[key] = unquote(value)
            elif key == "find":
                given["search"] = unquote(value)
            elif key in ("at", "open"):
                given[{"at": "selection", "open": "open_groups"}[key]] = parts
            elif key == "note" and len(parts) in (2, 3):
                notes.append((parts[0], parts[1], "".join(parts[2:])))
        return cls.from_dict({**given, "notes": notes})

    def __bool__(self) -> bool:
        """Return True unless the bookmark is empty."""
        return bool(self.to_dict())


def _note(row: Any) -> Note:
    if not isinstance(row, list | tuple) or len(cast(Sequence[Any], row)) != 3:
        raise ViewError(f"a note is a row of target, text and stage; got {row!r:.60}.")
    return Note(*cast(Sequence[Any], row))


def _quoted(text: str) -> str:
    # Names from a file may have lone surrogates, which UTF-8 can't encode.
    return quote(text, safe=_READABLE, errors="replace")


def _text(value: object, name: str) -> None:
    if not isinstance(value, str) or len(value) > _MOST:
        raise ViewError(f"{name} is a text of at most {_MOST:,} letters; got {value!r:.60}.")


def _names(values: object, name: str) -> tuple[str, ...]:
    """Return `values` as a tuple of names.

    Raise ViewError, with `name` as their name, unless they are a sequence of nonempty texts of at most 10,000 letters.
    """
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) > _MOST:  # pyright: ignore
        raise ViewError(f"{name} is a sequence of at most {_MOST:,} names; got {values!r:.60}.")
    for value in values:  # pyright: ignore[reportUnknownVariableType]
        _text(value, f"a name of {name}")  # pyright: ignore[reportUnknownArgumentType]
        if not value:
            raise ViewError(f"a name of {name} is empty.")
    return tuple(values)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
