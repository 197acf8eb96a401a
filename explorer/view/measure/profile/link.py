"""The wire of a displayed profile: a click asks the kernel for the compiled program, which opens below the view."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

from explorer.model.results.profile import Profile
from explorer.view.cell import shown
from explorer.view.session import open_wire

_wires: WeakKeyDictionary[Profile, Any] = WeakKeyDictionary()


def linked(profile: Profile) -> str:
    """The name that the page finds the profile's wire by, opened when it is displayed first."""
    if profile not in _wires:
        name = uuid4().hex[:16]
        wire = open_wire(name)

        def answer(wire: Any, message: Any, _: object) -> None:
            request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
            if request.get("ask") == "capture":
                wire.send({"of": request.get("of"), **html_of_program(profile, request.get("program"))})

        wire.on_msg(answer)
        _wires[profile] = wire
    wire = _wires[profile]
    shown.add(wire.capture, partial(_disconnect, ref(profile), wire))
    return wire.capture


def _disconnect(profile: ref[Profile], wire: Any) -> None:
    """No cell shows the profile any more. It may be displayed anew."""
    live = profile()
    if live is not None:
        _wires.pop(live, None)
    wire.close()


def html_of_program(profile: Profile, program: object) -> dict[str, str]:
    """The capture of a profiled program as an output's HTML, or why there is none."""
    capture = profile.captures.get(program) if isinstance(program, int) else None
    if capture is None:
        return {"failed": "This program was not kept with the profile."}
    try:
        return {"html": capture._repr_mimebundle_()["text/html"]}  # pyright: ignore[reportPrivateUsage]
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
