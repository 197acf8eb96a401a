"""What JupyterLab's sidebar asks a kernel, as expressions: each answers with a value that is displayed as JSON.

The sidebar (`view/js/src/sidebar`) asks when it is seen and a cell has ended, and at no other time.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from explorer.ledger.watch import start_session
from explorer.sessions.session import session
from explorer.view.sessions.html import content, style
from explorer.view.sessions.link import open_item


class Answer:
    """A value that a front end gets as JSON."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"application/json": self.values, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"Answer({', '.join(self.values)})"


def page(known: str = "") -> Answer:
    """The page, with its version; the version alone where that is known already."""
    report = session().report()
    html = content(report)
    version = blake2b(html.encode(), digest_size=8).hexdigest()
    if version == known:
        return Answer(version=version)
    return Answer(version=version, html=html, style=style(), watching=report.watching == "now")


def item(key: str) -> Answer:
    """An item of a row as HTML, or why there is none."""
    return Answer(**open_item(session(), key))


def watch() -> Answer:
    """Watch what compiles from now on; the page as it is then."""
    start_session()
    return page()
