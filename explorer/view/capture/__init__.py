"""Views of a capture: text, picture, page and live output."""

from __future__ import annotations

from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

from explorer.files.disk import write_text
from explorer.model.bookmark import Bookmark
from explorer.model.capture import Capture
from explorer.view.capture.html import fragment, picture
from explorer.view.capture.live_view import LiveView
from explorer.view.capture.summary import summarize
from explorer.view.interface import View
from explorer.view.page import answer_code, document
from explorer.view.session import carries_all, in_kernel, open_wire, shown

__all__ = ["CaptureView", "live_view"]

# Weak keys: a wire must not keep a capture that the user has dropped.
_wires: WeakKeyDictionary[Capture, Any] = WeakKeyDictionary()


class CaptureView(View[Capture]):
    """View of a capture: interactive, or a picture and a table where no script runs."""

    def title(self, value: Capture) -> str:
        return value.function

    def html(self, value: Capture) -> str:
        return _page(value, value.bookmark)

    def output(self, value: Capture) -> dict[str, str]:
        _connect(value)
        return {"text/html": fragment(value, carries_all(), value.view.opening if in_kernel() else value.bookmark)}

    def interim(self, value: Capture, name: str) -> str:
        return fragment(value, name=name)

    def svg(self, value: Capture) -> str:
        return picture(summarize(value))


def to_html(capture: Capture, path: str | PathLike[str], bookmark: Bookmark | None = None) -> Path:
    """Write the page of a capture and return its path; see `Capture.to_html`."""
    if capture.read_passes is not None:  # a display doesn't wait for passes that take long to read; a file does
        _ = capture.passes
    body = _page(capture, capture.bookmark if bookmark is None else bookmark)
    return write_text(path, document(f"{capture.function} – Explorer", body))


def _page(capture: Capture, bookmark: Bookmark) -> str:
    return fragment(capture, bookmark=bookmark, with_answers=True)


def live_view(capture: Capture) -> LiveView:
    """Return the object behind `Capture.view`: all live views of the capture in this kernel."""
    return LiveView(capture)


def _connect(capture: Capture) -> None:
    """Open the wire for a capture that is about to be displayed; do nothing without a kernel."""
    if not in_kernel():
        return
    wire = _wires.get(capture)
    if wire is None:
        wire = _wires[capture] = open_wire(capture.id, "SelectionWire")
        wire.on_msg(answer_code)
        capture.view.attach(wire)
    # Weak, because the list of displays must not keep the capture.
    shown.add(capture.id, partial(_disconnect, ref(capture), wire))


def _disconnect(capture: ref[Capture], wire: Any) -> None:
    """Close the wire of a capture that no cell shows any more; the next display opens another."""
    live = capture()
    if live is not None and _wires.pop(live, None):
        live.view.detach(wire)
    wire.close()
