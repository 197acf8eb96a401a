"""The same function and types of arguments as a capture's, compiled for other hardware."""

from __future__ import annotations

from explorer.capture.call import Call
from explorer.capture.explore import explore
from explorer.capture.origins import origin_of
from explorer.model.capture import Capture
from explorer.model.target import Target


def compiled_for(capture: Capture, target: str | Target | None) -> Capture:
    """See `Capture.compiled_for`."""
    __tracebackhide__ = True
    function, args, kwargs = origin_of(capture)
    return explore(Call(function, *args, **kwargs), target=target)
