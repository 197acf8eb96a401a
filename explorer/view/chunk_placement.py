"""Which outputs of a notebook carry every pane of the viewer.

All carry what a view starts with: it is alive whatever became of the others. What is opened later, panes and the
answers of the field, would make ten views larger than a megabyte; so two cells carry that (a person may delete one),
the others find it in the page, or ask the kernel. Where the cell is not known, or each output is a page of its own,
every output carries all.
"""

from __future__ import annotations

import sys
from typing import Any

from explorer.view.cell import parent_request

_ENOUGH = 2
_carriers: list[str] = []


def carries_all() -> bool:
    """Whether the output that is about to be displayed shall carry every pane."""
    request = parent_request()
    metadata: Any = request.get("metadata") or {}
    cell = metadata.get("cellId") or _text_of(request)
    if not isinstance(cell, str) or "google.colab" in sys.modules:
        return True
    deleted: Any = metadata.get("deletedCells") or ()  # since the cell that was run before
    _carriers[:] = [carrier for carrier in _carriers if carrier not in deleted]
    if cell not in _carriers and len(_carriers) < _ENOUGH:
        _carriers.append(cell)
    return cell in _carriers


def _text_of(request: dict[str, Any]) -> str | None:
    """The cell's own text, where nobody is there to change it: nbclient runs a notebook once, and takes no input."""
    content: Any = request.get("content") or {}
    return content.get("code") if content.get("allow_stdin") is False else None
