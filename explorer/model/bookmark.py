"""What a person looks at in the view of a capture, and what they wrote there: a value that can be sent and kept.

It names what it means as the stages and the source do, so it outlives the page, the kernel and another compilation of
the same function. The browser writes and reads the same: `explorer/view/js/src/keep/bookmark.ts`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast
from urllib.parse import quote, unquote

from explorer.errors import ViewError

PANES = ("graph", "text", "table", "lines", "why", "memory", "passes")
_MOST = 10_000  # names, notes, and letters of a text: more is no bookmark, whoever sent it
_READABLE = "/:@"  # beside letters, digits and _.-~: they mean nothing in the part of an address behind its #


@dataclass(frozen=True)
class Note:
    """What a person wrote on something.

    Args:
        on: What it is written on, as in `Bookmark.selection`: `"dot.3"`, `"/forward"`, `":12"`.
        text: What they wrote.
        stage: The stage of a node or a group; empty for a line of the source.

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
    """A place in the view of a capture, with the notes that were written in it.

    `cap.bookmark` is where a person looks now; `cap.view.bookmark = …` and `cap.to_html(path, bookmark=…)` open there.
    What it names and the capture lacks is passed over, and the view says what.

    Args:
        stage: The stage that is shown; empty for the one that a view opens with.
        pane: How it is shown: `graph`, `text`, `table`, `lines`, `why`, `memory` or `passes`.
        selection: What is chosen: names of nodes of the stage (`"dot.3"`), one group of it by its path
            (`"/forward/block"`), or one line of the source (`":12"`; of another file than the function's,
            `"layers.py:12"`).
        search: What is searched, instead of a selection.
        open_groups: What is open in the graph of the stage, by name or path; None: what the view opens by itself.
        notes: What was written, in the order in which that was first done.

    Raises:
        ViewError: A value is none that a view has.

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
        """As JSON has it; what is as in an empty bookmark is left out."""
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
        """What `to_dict` gave.

        Raises:
            ViewError: It is no bookmark's.
        """
        if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: it may be from a file
            raise ViewError(f"a bookmark is an object with names; got {given!r:.60}.")
        unknown = sorted(set(given) - {"stage", "pane", "selection", "search", "open_groups", "notes"})
        if unknown:
            raise ViewError(f"a bookmark has no {unknown[0]!r:.40}.")
        notes: Any = given.get("notes", ())
        if not isinstance(notes, list | tuple):
            raise ViewError(f"notes are rows of what they are on, a text and a stage; got {notes!r:.60}.")
        rows = tuple(map(_note, cast(Sequence[Any], notes)))
        fields: dict[str, Any] = {**given, "pane": given.get("pane") or "graph", "notes": rows}
        return cls(**fields)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` gave.

        Raises:
            ViewError: The text is no bookmark.
        """
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ViewError(f"this is no bookmark: {error}.") from None
        return cls.from_dict(given)

    @property
    def address(self) -> str:
        """What stands behind the `#` of a page's address, and opens it there; a browser's own leaves long notes out."""
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
        """The bookmark in the address of a page, or in what stands behind its `#`; of no bookmark an empty one.

        Raises:
            ViewError: It names a pane that no view has.
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
        """Whether it says anything."""
        return bool(self.to_dict())


def _note(row: Any) -> Note:
    if not isinstance(row, list | tuple) or len(cast(Sequence[Any], row)) != 3:
        raise ViewError(f"notes are rows of what they are on, a text and a stage; got {row!r:.60}.")
    return Note(*cast(Sequence[Any], row))


def _quoted(text: str) -> str:
    return quote(text, safe=_READABLE, errors="replace")


def _text(value: object, name: str) -> None:
    if not isinstance(value, str) or len(value) > _MOST:
        raise ViewError(f"{name} is a text of at most {_MOST:,} letters; got {value!r:.60}.")


def _names(values: object, name: str) -> tuple[str, ...]:
    """As a tuple; none of them is empty, for in an address there would be nothing of it."""
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) > _MOST:  # pyright: ignore
        raise ViewError(f"{name} is a sequence of at most {_MOST:,} names; got {values!r:.60}.")
    for value in values:  # pyright: ignore[reportUnknownVariableType]
        _text(value, f"a name of {name}")  # pyright: ignore[reportUnknownArgumentType]
        if not value:
            raise ViewError(f"a name of {name} is empty.")
    return tuple(values)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
