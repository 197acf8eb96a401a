"""How Explorer leaves a trace of its own accord."""

from __future__ import annotations


class CallLeft(Exception):
    """Raised out of a trace that nobody will compile, for the call is answered otherwise: it is no event."""
