"""Results as saved files, and what each looks like: text, picture, page, chart, and what a script and other tools get.

A picture holds a thousand small decisions that no assertion lists. What changes it on purpose writes it anew, and the
difference is read like any other:

    python -m tests.support.displays
"""

import gzip
import importlib.util
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import explorer as ex
from explorer.model.results.profile import Kind
from explorer.view.interface import View
from explorer.view.ledger.message import message as ledger_message
from explorer.view.ledger.message import tables_of
from explorer.view.measure.profile import message as profile_message
from explorer.view.registry import view_of
from tests.support import answers
from tests.support.displays.values import VALUES

FOLDER = Path(__file__).parent
_FILES = {path.stem: path for path in sorted(FOLDER.glob("*.json*"))}
_FILES |= {f"Capture_{name}": path for name, path in answers.SAVED.items() if "unrecorded" not in name}
SAVED = (*_FILES, *VALUES)
HAS_PLOTLY = importlib.util.find_spec("plotly") is not None
HAS_PANDAS = importlib.util.find_spec("pandas") is not None
_PACKED = {"plotly", "sent", "perfetto"}  # long, and read where they differ alone


def saved(name: str) -> Any:
    """One of the results."""
    if name in VALUES:
        return VALUES[name]()
    kind = name.partition("_")[0]
    return getattr(ex if kind in ex.__all__ else ex.types, kind).load(_FILES[name])


def looks(name: str) -> dict[str, str]:
    """What a saved result looks like, by the ending of the file that keeps it; pages without what is packed in them."""
    return {ending: text.rstrip("\n") + "\n" for ending, text in _drawn(saved(name))}


def kept(name: str, ending: str) -> str:
    """What was written down."""
    if ending in _PACKED:
        return gzip.decompress((FOLDER / f"{name}.{ending}.gz").read_bytes()).decode()
    return (FOLDER / f"{name}.{ending}").read_text(encoding="utf-8")


def keep(name: str, ending: str, text: str) -> None:
    """Write it down, the same bytes for the same text."""
    if ending in _PACKED:
        (FOLDER / f"{name}.{ending}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        (FOLDER / f"{name}.{ending}").write_text(text, encoding="utf-8")


def _drawn(result: Any) -> Iterator[tuple[str, str]]:
    view = view_of(type(result))
    yield "txt", result.to_text()
    yield "html", _page(view.html(result))
    yield from _exported(result)
    if type(view).svg is View.svg:  # a table or text alone
        return
    yield "svg", view.svg(result).replace("><", ">\n<")
    if isinstance(result, ex.Ledger):
        tables, left_out = tables_of(result)
        sent = ledger_message(result, tables, None, left_out)
        yield "sent", _as_text({**sent, "status": {**sent["status"], "now": 0}})
    if isinstance(result, ex.Profile):
        yield "sent", _as_text(profile_message(result))
    if HAS_PLOTLY and not isinstance(result, ex.Capture):
        drawn = json.loads(view.chart(result).figure.to_json())
        drawn["layout"].pop("template", None)  # plotly's own, of a thousand lines
        yield "plotly", _as_text(drawn)


def _exported(result: Any) -> Iterator[tuple[str, str]]:
    """What other tools get."""
    if HAS_PANDAS and hasattr(result, "to_frame"):
        frames = [result.to_frame()]
        if isinstance(result, ex.Profile):
            frames = [result.to_frame(kind) for kind in get_args(Kind)]
        elif isinstance(result, ex.Timing | ex.types.Comparison):
            frames.append(result.to_frame(samples=True))
        yield "frame", "\n".join(frame.to_csv(index=False, float_format="%.9g") for frame in frames)
    if isinstance(result, ex.Profile):
        with tempfile.TemporaryDirectory() as folder:
            yield "perfetto", result.to_perfetto(Path(folder) / "trace.json").read_text(encoding="utf-8")


def _page(html: str) -> str:
    """What stands in a page, without its scripts, its picture and the name made from what they hold."""
    html = re.sub(r"(?s)<(script|style)[^>]*>.*?</\1>", "", html)
    html = re.sub(r'(?<=base64,)[^"]*|(?<=data-explorer=")[^"]*', "", html)
    return html.replace("><", ">\n<")


def _as_text(value: Any) -> str:
    return json.dumps(value, indent=0, default=str)
