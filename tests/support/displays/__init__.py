"""Measured results as saved files, and what each looked like: its text and its static page or picture.

A picture holds a thousand small decisions that no assertion lists. What changes it on purpose writes it anew, and the
difference is read like any other:

    python -m tests.support.displays
"""

import re
from pathlib import Path

import explorer as ex
from explorer.view.interface import FigureView
from explorer.view.ledger import LedgerView
from explorer.view.registry import view_of

FOLDER = Path(__file__).parent
SAVED = {path.stem: path for path in sorted(FOLDER.glob("*.json*"))}


def looks(name: str) -> dict[str, str]:
    """What a saved result looks like, by the ending of the file that keeps it; pages without their picture."""
    result = getattr(ex, name.partition("_")[0]).load(SAVED[name])
    view = view_of(type(result))
    drawn = {"txt": result.to_text()}
    if isinstance(view, FigureView | LedgerView):
        drawn["svg"] = view.svg(result).replace("><", ">\n<")
    if isinstance(view, FigureView):
        drawn["html"] = re.sub(r'(?<=base64,)[^"]*', "", view.html(result)).replace("><", ">\n<")
    return {ending: text.rstrip("\n") + "\n" for ending, text in drawn.items()}
