"""The scripts of a page: code of the views, as each output carries it.

An output holds what it can show, and nothing else: it starts without another output, a kernel or a network. So the
viewer is a core and a chunk for each pane (explorer/view/js/build.mjs makes them): what a view starts with is packed
together, and what it may be asked for later together, to be unpacked then. Where a page holds several outputs, each
piece of code runs once.
"""

from __future__ import annotations

import bz2
import json
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from explorer.files.disk import read_text
from explorer.view.base85 import ALPHABET, pack

STATIC = Path(__file__).parent / "static"


@cache
def bundle(name: str) -> str:
    """A file of code: a view's (`viewer`: captures and diffs, `ledger`, `profile`), or a chunk (`viewer.why_pane`)."""
    return read_text(STATIC / f"{name}.js").rstrip()


@cache
def chunks(name: str = "viewer") -> tuple[str, ...]:
    """All chunks of a view."""
    return tuple(sorted(file.name.split(".")[1] for file in STATIC.glob(f"{name}.*.js")))


@cache
def packed(name: str = "viewer", names: tuple[str, ...] = ("core",)) -> str:
    """The core of a view and chunks of it, in one packed text: an eighth shorter with bzip2 than with gzip."""
    texts = [bundle(name if chunk == "core" else f"{name}.{chunk}") for chunk in names]
    return pack(bz2.compress("\f".join(texts).encode()))


@cache
def version(name: str = "viewer") -> str:
    """Tells bundles apart when a page holds outputs of several views or versions."""
    code = "".join(bundle(file) for file in (name, *(f"{name}.{chunk}" for chunk in chunks(name))))
    return blake2b(code.encode(), digest_size=6).hexdigest()


@cache
def elements(name: str, first: tuple[str, ...], later: tuple[str, ...] = ()) -> str:
    """The core of a view and chunks of it as elements of an output: what it starts with, what it may be asked for."""
    return "".join(_element(name, names) for names in (("core", *first), later) if names)


def _element(name: str, names: tuple[str, ...]) -> str:
    return (
        f'<script type="text/plain" data-part="viewer" data-version="{version(name)}" data-chunks="{" ".join(names)}">'
        f"{packed(name, names)}</script>"
    )


def loader(output: str, name: str) -> str:
    """The script that starts a view in the output of this name."""
    constants = {"ID": output, "VERSION": version(name), "ALPHABET": ALPHABET}
    return f"const {', '.join(f'{key}={json.dumps(value)}' for key, value in constants.items())};{bundle('loader')}"


@cache
def module() -> str:
    """The viewer with all its panes as the module of a widget."""
    texts = (bundle("viewer"), *(bundle(f"viewer.{chunk}") for chunk in chunks()))
    return "".join(f"{text}\n" for text in texts) + "export default core.widget;\n"


def answer_code(wire: Any, message: Any, _: object = None) -> None:
    """Send a chunk to a page that has no output with it: `{"ask": "code", "chunk": name}`."""
    request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    chunk = request.get("chunk")
    if request.get("ask") == "code" and chunk in chunks():
        wire.send({"chunk": chunk, "code": packed("viewer", (chunk,))})
