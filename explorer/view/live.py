"""The live link: what a person selects in the browser becomes a Python value, and what Python sets is shown.

The wire is an anywidget that is never displayed: its `initialize` registers it in the page under the capture's id,
and a viewer of that capture finds it there. A saved notebook holds no trace of it, so nothing breaks when the kernel
is gone.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakSet

from explorer.model.capture import Capture

__all__ = ["connect", "in_kernel", "in_terminal", "made_wire", "shell", "widget"]

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


_connected: WeakSet[Capture] = WeakSet()


def connect(capture: Capture) -> None:
    """Open the wire for a capture that is about to be displayed; nothing where no kernel runs."""
    if capture in _connected or not in_kernel():
        return
    _connected.add(capture)
    wire = made_wire(capture.id, selected="Dict", shown="Dict")
    wire.on_msg(_answer)
    capture.view.attach(wire)


def made_wire(name: str, **traits: str) -> Any:
    """A wire that the page knows by a name, with these synchronised traits: names with the kinds of traitlets."""
    import anywidget
    import traitlets

    base: Any = anywidget.AnyWidget
    # `_esm` and the synchronised traits are anywidget's protocol, read from the class.
    synchronised = {trait: getattr(traitlets, kind)().tag(sync=True) for trait, kind in traits.items()}
    named = traitlets.Unicode().tag(sync=True)
    return type("ExplorerWire", (base,), {"_esm": _REGISTER, "capture": named, **synchronised})(capture=name)


def _answer(wire: Any, said: Any, _: object) -> None:
    """An output that found the viewer's code nowhere in its page asks for it."""
    if isinstance(said, dict) and said.get("ask") == "viewer":  # pyright: ignore[reportUnknownMemberType]
        from explorer.view.html import packed_bundle

        wire.send({"viewer": packed_bundle()})


def widget(capture: Capture) -> Any:
    """An ipywidget of the viewer: a wire that is displayed, with the capture and the viewer themselves."""
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
            "shown": traitlets.Dict().tag(sync=True),
            "selection": traitlets.List(traitlets.Unicode()),
            **{name: _steering(capture, name) for name in ("highlight", "filter", "colour", "color", "stage")},
            "_repr_mimebundle_": describe,
            "__repr__": name,
        },
    )
    made = kind(capture=capture.id, wire=capture.wire)
    capture.view.attach(made)
    return made


def _steering(capture: Capture, name: str) -> property:
    def get(_: object) -> Any:
        return getattr(capture.view, name)

    def set_(_: object, value: Any) -> None:
        setattr(capture.view, name, value)

    return property(get, set_)


def in_terminal() -> bool:
    """Whether this is IPython in a terminal: it shows text, and packing a page for it is lost work."""
    return any(kind.__name__ == "TerminalInteractiveShell" for kind in type(shell()).__mro__)


def in_kernel() -> bool:
    """Whether a kernel runs this: what is displayed can be talked to."""
    return getattr(shell(), "kernel", None) is not None


def shell() -> Any:
    """IPython's, if it runs this; IPython is not imported for the question."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None
