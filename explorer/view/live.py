"""The live link: what a person selects in the browser becomes a Python value.

The wire is an anywidget that is never displayed: its `initialize` registers it in the page under the capture's id,
and a viewer of that capture finds it there. A saved notebook holds no trace of it, so nothing breaks when the kernel
is gone.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

from explorer.model.capture import Capture
from explorer.model.graph import Node

__all__ = ["connect", "selection", "widget"]

_REGISTER = """
export default {
  initialize({ model }) {
    const models = (window.explorerModels ??= new Map());
    const id = model.get("capture");
    models.set(id, model);
    return () => models.get(id) === model && models.delete(id);
  },
};
"""

_wires: WeakKeyDictionary[Capture, Any] = WeakKeyDictionary()
_selected: WeakKeyDictionary[Capture, tuple[Node, ...]] = WeakKeyDictionary()


def connect(capture: Capture) -> None:
    """Open the wire for a capture that is about to be displayed; nothing where no kernel runs."""
    if capture in _wires or not _in_kernel():
        return
    import anywidget
    import traitlets

    base: Any = anywidget.AnyWidget
    # `_esm` and the synchronised traits are anywidget's protocol, read from the class.
    kind = type(
        "ExplorerWire",
        (base,),
        {
            "_esm": _REGISTER,
            "capture": traitlets.Unicode().tag(sync=True),
            "selected": traitlets.Dict().tag(sync=True),
        },
    )
    wire = kind(capture=capture.id)
    _follow(wire, capture)
    _wires[capture] = wire


def selection(capture: Capture) -> tuple[Node, ...]:
    """The nodes last selected in any live view of this capture; empty before the first selection."""
    return _selected.get(capture, ())


def widget(capture: Capture) -> Any:
    """An ipywidget of the viewer; its `selection` trait lists the names of the selected nodes."""
    import anywidget
    import traitlets

    from explorer.view.html import bundle

    base: Any = anywidget.AnyWidget

    def describe(self: object, **kwargs: object) -> dict[str, Any]:
        # anywidget gives the data alone or with metadata, and its own text holds a memory address.
        shown: Any = base._repr_mimebundle_(self, **kwargs)
        data: Any = shown[0] if isinstance(shown, tuple) else shown  # pyright: ignore[reportUnknownVariableType]
        return {**data, "text/plain": repr(self)}

    def name(self: object) -> str:
        return f"Widget({capture!r})"

    kind = type(
        "ExplorerWidget",
        (base,),
        {
            "_esm": bundle(),
            "capture": traitlets.Unicode().tag(sync=True),
            "wire": traitlets.Bytes().tag(sync=True),
            "selected": traitlets.Dict().tag(sync=True),
            "selection": traitlets.List(traitlets.Unicode()),
            "_repr_mimebundle_": describe,
            "__repr__": name,
        },
    )
    made = kind(capture=capture.id, wire=capture.wire)
    _follow(made, capture)
    return made


def _follow(wire: Any, capture: Capture) -> None:
    """Keep what the browser says is selected; what it says is checked, as anything from outside."""

    def keep(change: dict[str, Any]) -> None:
        said = change["new"]
        stage = next((stage for stage in capture.stages if stage.name == said.get("stage")), None)
        indices = [i for i in said.get("nodes", ()) if isinstance(i, int)]
        nodes = tuple(Node(stage.graph, i) for i in sorted(indices) if 0 <= i < len(stage.graph)) if stage else ()
        _selected[capture] = nodes
        if wire.has_trait("selection"):
            wire.selection = [node.name for node in nodes]

    wire.observe(keep, "selected")


def _in_kernel() -> bool:
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None
