"""Kernel side of the live views: the user's selection, and what Python highlights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Lock, Thread
from typing import Any
from weakref import ref

from explorer.analysis.questions import answers, plain
from explorer.errors import ViewError
from explorer.model.bookmark import Bookmark
from explorer.model.capture import Capture
from explorer.model.graph import Node
from explorer.model.stage import Stage
from explorer.view.capture.what_if_link import WhatIfTrials

_RECORDED = 1.3  # of a compile: what it takes that also writes the module after each pass
Selectable = str | Node | Iterable[Node] | None
"""Selection of nodes: a query, a node, nodes, or None."""


class LiveView:
    """All live views of one capture, in any output of this kernel.

    An assignment changes every view, also those that are displayed later.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> view = explorer.explore(lambda x: jnp.tanh(x) * 2, jnp.ones(8)).view
        >>> view.highlight = "op:tanh"
        >>> [node.op for node in view.highlight]
        ['tanh']
        >>> view.colour, view.selection
        ('', ())
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._wires: list[Any] = []
        self._selection: tuple[Node, ...] = ()
        self._stage = capture.stages[-1].name if capture.stages else ""
        self._highlight: tuple[Node, ...] = ()
        self._filter: tuple[Node, ...] = ()
        self._colour = ""
        self._values: dict[str, Any] = {}
        self._bookmark = self._opening = capture.saved_bookmark
        self._records = Lock()
        self.trials = WhatIfTrials(capture)

    @property
    def selection(self) -> tuple[Node, ...]:
        """Return the nodes last selected in the browser, in program order; empty before the first selection."""
        return self._selection

    @property
    def stage(self) -> str:
        """Return the name of the stage shown; assign a name to switch."""
        return self._stage

    @stage.setter
    def stage(self, name: str) -> None:
        self._stage = self._capture.stage(name).name
        self._publish()

    @property
    def highlight(self) -> tuple[Node, ...]:
        """Return the nodes that Python highlights; empty without a highlight.

        Assign a query for the stage shown, nodes of one stage, or None. The view switches to their stage.

        Raises:
            QueryError: The query can't be parsed.
            ViewError: The nodes are of another capture, or of several stages.
        """
        return self._highlight

    @highlight.setter
    def highlight(self, shown: Selectable) -> None:
        self._highlight = self._nodes(shown)
        self._publish()

    @property
    def filter(self) -> tuple[Node, ...]:
        """Return the nodes that are not dimmed; assign as for `highlight`, None for all."""
        return self._filter

    @filter.setter
    def filter(self, shown: Selectable) -> None:
        self._filter = self._nodes(shown)
        self._publish()

    @property
    def colour(self) -> str:
        """Return the measure or property that colors the boxes; empty for the source line.

        Assign `"bytes"`, `"flops"`, `"op"`, `"dtype"`, … as in the menu of the view; a mapping from nodes, or names of
        nodes of the stage shown, to numbers; or None.
        """
        return self._colour

    @colour.setter
    def colour(self, by: str | Mapping[Node | str, float] | None) -> None:
        if isinstance(by, Mapping):
            self._values = self._numbers(by)
            self._colour = "python"
        else:
            self._values = {}
            self._colour = by or ""
        self._publish()

    color = colour

    @property
    def bookmark(self) -> Bookmark:
        """Return the place that the user looks at, with their notes; assign a bookmark to move the views.

        The view used last sets the place. Before any use, the bookmark is the place where a view opens.
        """
        return self._bookmark

    @bookmark.setter
    def bookmark(self, place: Bookmark) -> None:
        if not isinstance(place, Bookmark):  # pyright: ignore[reportUnnecessaryIsInstance]: users write no types
            raise ViewError(f"a view goes to an explorer.Bookmark; it got {type(place).__name__}: {place!r:.60}.")
        self._bookmark = self._opening = place
        self._publish()

    @property
    def opening(self) -> Bookmark:
        """Return the place where a view opens, with the current notes.

        The place is the bookmark assigned last, else the bookmark of the file.
        """
        return replace(self._opening, notes=self._bookmark.notes)

    def receive_bookmark(self, message: Mapping[str, Any]) -> None:
        """Store the bookmark that the browser sent; if its notes changed, send them to every view."""
        with suppress(ViewError):  # untrusted input: an invalid bookmark is ignored
            before, self._bookmark = self._bookmark, Bookmark.from_dict(message)
            # Displays share only the notes; each keeps its own place.
            if before.notes != self._bookmark.notes:
                self._publish()

    def attach(self, wire: Any) -> None:
        """Connect a wire to the browser: a widget with the traits `selected` and `shown`."""
        self._wires.append(wire)
        wire.shown = self._message()
        reference = ref(self)  # ipywidgets keeps open widgets alive: they must not keep the capture

        def keep(change: dict[str, Any]) -> None:
            view = reference()
            if view is not None:
                view.receive(change["new"], wire)

        def answer(_: Any, message: Any, __: object) -> None:
            view = reference()
            if view is not None and message in ({"ask": "record"}, {"ask": "machine-code"}):
                what = "passes" if message["ask"] == "record" else "machine_code"
                # On a thread, because a compile would hold up the kernel's messages.
                Thread(target=view.record, args=(what,), daemon=True).start()
            elif view is not None and isinstance(message, dict) and message.get("ask") in ("question", "answers"):  # pyright: ignore[reportUnknownMemberType]
                Thread(target=view.answer, args=(message, wire), daemon=True).start()  # pyright: ignore[reportUnknownArgumentType]
            elif view is not None and isinstance(message, dict) and message.get("ask") == "extract":  # pyright: ignore[reportUnknownMemberType]
                wire.send(view.extract(message))  # pyright: ignore[reportUnknownArgumentType]
            elif view is not None and isinstance(message, dict) and message.get("ask") in ("what-if", "cancel"):  # pyright: ignore[reportUnknownMemberType]
                view.trials.receive(message, wire.send)  # pyright: ignore[reportUnknownArgumentType]

        def keep_bookmark(change: dict[str, Any]) -> None:
            view = reference()
            if view is not None:
                view.receive_bookmark(change["new"])

        wire.observe(keep, "selected")
        wire.observe(keep_bookmark, "place")
        wire.on_msg(answer)

    def detach(self, wire: Any) -> None:
        """Disconnect a wire."""
        self._wires.remove(wire)

    def record(self, what: str = "passes") -> None:
        """Read the passes or the machine code, and send the capture again to every live view.

        Passes that are not kept, and machine code, take one more compilation; call this on a thread of its own. Does
        nothing while another call runs.

        Args:
            what: `passes` or `machine_code`.
        """
        if not self._records.acquire(blocking=False):
            return
        compiles = what != "passes" or self._capture.read_passes is None
        self._send({"recording": "started", "expected": self._expected if compiles else self._capture.reading_passes})
        try:
            getattr(self._capture, what)
            self._send({"recording": "done"}, self._capture.wire)
        except Exception as error:  # the page that requested it shows the error
            self._send({"recording": "failed", "why": str(error) or type(error).__name__})
        finally:
            self._records.release()
        self._publish()

    @property
    def _expected(self) -> float:
        """Return the estimated seconds of one more compilation that records its passes."""
        return _RECORDED * self._capture.durations.done.get("compile", 0.0)

    def extract(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a page that requests an instruction as a module: its text, or the error.

        Args:
            message: `stage`, `node` and `height` as in `Capture.extract`, and the `key` of the reply; untrusted.
        """
        key, node, height = str(message.get("key")), message.get("node"), message.get("height")
        try:
            graph = self._capture.stage(str(message.get("stage"))).graph
            if not isinstance(node, int) or not 0 <= node < len(graph) or not isinstance(height, int):
                raise ViewError(f"a page requested instruction {node!r:.20} with height {height!r:.20}.")
            return {"extracted": key, "module": self._capture.extract(Node(graph, node), height)}
        except Exception as error:  # the page copies the Python call instead, which raises it
            return {"extracted": key, "why": str(error) or type(error).__name__}

    def answer(self, message: Mapping[str, Any], wire: Any) -> None:
        """Send the answer to the question `of`, or everything that a page without a kernel has, to `answers`."""
        of = str(message.get("of"))
        try:
            if message["ask"] == "answers":
                wire.send({"of": of, "answers": answers(self._capture)})
            else:
                wire.send({"of": of, "answer": plain(self._capture.ask(of))})
        except Exception as error:  # the page shows the answer it has
            wire.send({"of": of, "failed": str(error) or type(error).__name__})

    def _send(self, message: dict[str, Any], *buffers: bytes) -> None:
        for wire in self._wires:
            wire.send(message, list(buffers))

    def receive(self, message: Mapping[str, Any], wire: Any) -> None:
        """Store the selection that the browser sent; untrusted, so unknown nodes are dropped."""
        stage = next((stage for stage in self._capture.stages if stage.name == message.get("stage")), None)
        indices = [i for i in message.get("nodes", ()) if isinstance(i, int)]
        nodes = tuple(Node(stage.graph, i) for i in sorted(indices) if 0 <= i < len(stage.graph)) if stage else ()
        self._selection = nodes
        self._stage = stage.name if stage else self._stage
        # Only the widget that users display has this trait.
        if wire.has_trait("selection"):
            wire.selection = [node.name for node in nodes]

    def _publish(self) -> None:
        for wire in self._wires:
            wire.shown = self._message()

    def _message(self) -> dict[str, Any]:
        colour = {"by": self._colour, **self._values}
        capture = self._capture
        opening = {"bookmark": self._opening.to_dict()} if self._opening else {}
        return {
            **opening,
            "notes": self._bookmark.to_dict().get("notes", []),
            "stage": self._stage,
            "highlight": self._rows(self._highlight),
            "filter": self._rows(self._filter),
            **({"colour": colour} if self._colour else {}),
            **({"reads": True} if capture.read_passes is not None and not capture.has_passes else {}),
            **({"records": self._expected} if capture.record is not None and not capture.has_passes else {}),
            **({"codes": True} if capture.write_code is not None and not capture.has_machine_code else {}),
            **({"changes": True} if capture.can_change else {}),
        }

    def _rows(self, nodes: tuple[Node, ...]) -> dict[str, Any] | None:
        return {"stage": self._home(nodes).name, "nodes": [node.index for node in nodes]} if nodes else None

    def _nodes(self, shown: Selectable) -> tuple[Node, ...]:
        if shown is None:
            return ()
        if isinstance(shown, str):
            return self._capture.stage(self._stage).graph.where(shown)
        nodes = (shown,) if isinstance(shown, Node) else tuple(shown)
        for node in nodes:
            if not isinstance(node, Node):  # pyright: ignore[reportUnnecessaryIsInstance]: users write no types
                raise ViewError(
                    f"a view shows nodes; it got {type(node).__name__}: {node!r:.60}. "
                    "Hint: give a query such as 'op:dot', or what graph.where() or cap.nodes_at() gave."
                )
        if nodes:
            self._stage = self._home(nodes).name
        return nodes

    def _home(self, nodes: Iterable[Node]) -> Stage:
        graphs = {id(node.graph) for node in nodes}
        for stage in self._capture.stages:
            if graphs == {id(stage.graph)}:
                return stage
        if len(graphs) > 1:
            raise ViewError("the nodes are of several stages: pass nodes of one, which a view shows.")
        raise ViewError(f"the nodes are of another capture: take them from the capture of {self._capture.function}.")

    def _numbers(self, by: Mapping[Node | str, float]) -> dict[str, Any]:
        graph = self._capture.stage(self._stage).graph
        nodes = tuple(graph[key] if isinstance(key, str) else key for key in by)
        rows = self._rows(nodes) or {"stage": self._stage, "nodes": []}
        values = [float(value) for value in by.values()]
        # JSON has no NaN.
        return {**rows, "values": [value if math.isfinite(value) else None for value in values]}

    def __repr__(self) -> str:
        what = [f"{len(self._selection):,} selected"]
        what += [
            f"{len(nodes):,} {name}" for name, nodes in (("lit", self._highlight), ("kept", self._filter)) if nodes
        ]
        what += [f"coloured by {self._colour}"] if self._colour else []
        return f"View({self._capture.function}, {self._stage or 'nothing'}: {', '.join(what)})"
