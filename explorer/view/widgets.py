"""The widgets: wires between a page and Python, and the viewer as an ipywidget. Loaded when a kernel shows something.

A wire is an anywidget that is never displayed: its `initialize` registers it in the page under a name, and the view of
that name finds it there. A saved notebook holds no trace of it, so nothing breaks when the kernel is gone.
"""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets
from ipywidgets import Layout, widget_serialization  # pyright: ignore[reportUnknownVariableType]
from ipywidgets.widgets.trait_types import InstanceDict

from explorer.model.capture import Capture
from explorer.view.page import module

_REGISTER = """
export default {
  initialize({ model }) {
    const models = (window.explorerModels ??= new Map());
    const id = model.get("capture");
    models.set(id, model);
    window.dispatchEvent(new CustomEvent("explorer-wire", { detail: id }));
    return () => models.get(id) === model && models.delete(id);
  },
};
"""


class Wire(anywidget.AnyWidget):
    """A wire that the page knows by the name `capture`; it carries messages."""

    # Each instance sends its whole module to the page, so this one is short.
    _esm = _REGISTER
    layout = traitlets.Any(None).tag(sync=True)  # a separate model, with a comm, that is never laid out
    capture = traitlets.Unicode().tag(sync=True)


class UpdateWire(Wire):
    """A wire that also carries what is new in a ledger, as JSON."""

    update = traitlets.Unicode().tag(sync=True)


class SelectionWire(Wire):
    """A wire that also carries what a person selected, and what Python shows."""

    selected = traitlets.Dict().tag(sync=True)
    place = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)


class _OfView:
    """Descriptor that forwards an attribute to the widget's live view."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, widget: Viewer, owner: type) -> Any:
        return getattr(widget.live_view, self.name)

    def __set__(self, widget: Viewer, value: Any) -> None:
        setattr(widget.live_view, self.name, value)


class Viewer(SelectionWire):
    """The viewer of a capture as a widget that is displayed, with the capture and the viewer's code in it.

    `highlight`, `filter`, `colour`, `stage` and `bookmark` are those of the capture's `view`.
    """

    _esm = module()
    layout = InstanceDict(Layout).tag(sync=True, **widget_serialization)
    wire = traitlets.Bytes().tag(sync=True)
    selection = traitlets.List(traitlets.Unicode())
    highlight, filter, colour, color, stage, bookmark = (_OfView() for _ in range(6))

    def __init__(self, shown_capture: Capture) -> None:
        super().__init__(capture=shown_capture.id, wire=shown_capture.wire)
        self.live_view = shown_capture.view
        self._text = f"Widget({shown_capture!r})"
        self.live_view.attach(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        # anywidget gives the data alone or with metadata, and its own text holds a memory address.
        base: Any = super()
        bundled: Any = base._repr_mimebundle_(**kwargs)
        return dict(bundled[0] if isinstance(bundled, tuple) else bundled, **{"text/plain": repr(self)})  # pyright: ignore

    def __repr__(self) -> str:
        return self._text
