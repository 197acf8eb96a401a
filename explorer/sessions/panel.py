"""Answers to JupyterLab's sidebar, which sends these calls as expressions and gets JSON.

The sidebar (`view/js/src/sidebar`) calls them only when it is visible and a cell has ended.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from explorer.ledger.watch import start_session
from explorer.sessions.session import session
from explorer.view.sessions import content, open_item, style


class Answer:
    """Value that a front end gets as JSON."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"application/json": self.values, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"Answer({', '.join(self.values)})"


def page(known: str = "") -> Answer:
    """Return the session's page (`html`, `style`, `watching`) with its `version`; only the version if it equals
    `known`.
    """
    report = session().report()
    html = content(report)
    version = blake2b(html.encode(), digest_size=8).hexdigest()
    if version == known:
        return Answer(version=version)
    return Answer(version=version, html=html, style=style(), watching=report.watching == "now")


def item(key: str) -> Answer:
    """Return an item of a row as HTML, or the reason for a failure; `key` is its `SessionItem.key`."""
    return Answer(**open_item(session(), key))


def watch() -> Answer:
    """Turn on the session's watch if it is off, and return the page as `page` does."""
    start_session()
    return page()
