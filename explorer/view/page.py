"""HTML that upgrades itself, its scripts, and the page around it.

Readers without scripts (code hosts, untrusted notebooks, mail) see a static picture and a table. A script replaces them
with the viewer. Code and data are packed into the HTML, so a page needs no network, no kernel and no other file.

An output contains only the code that it can use. The viewer therefore has a core and one chunk per pane
(explorer/view/js/build.mjs makes them): the initial chunks are packed together, and the later ones are packed together
and unpacked on demand. On a page with several outputs each chunk runs once.
"""

from __future__ import annotations

import base64
import bz2
import html
import json
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from explorer.files.disk import read_text
from explorer.model.text import code_parts

# Base85 uses characters that HTML escapes, and two that end or fill a template string; ours has none of these.
_THEIRS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
ALPHABET = _THEIRS.translate(str.maketrans("$&<>`", "',.:/"))
_TO_OURS = str.maketrans(_THEIRS, ALPHABET)
_TO_THEIRS = str.maketrans(ALPHABET, _THEIRS)


def pack(data: bytes) -> str:
    return base64.b85encode(data).decode("ascii").translate(_TO_OURS)


def unpack(text: str) -> bytes:
    """Return the data that `pack` encoded.

    Raises:
        ValueError: The text doesn't come from `pack`.
    """
    return base64.b85decode(text.translate(_TO_THEIRS))


STATIC = Path(__file__).parent / "static"


@cache
def bundle(name: str) -> str:
    """Return the JavaScript of a view or of a chunk.

    Args:
        name: `viewer` (captures and diffs), `ledger`, `profile`, `loader`, or a chunk such as `viewer.why_pane`.
    """
    return read_text(STATIC / f"{name}.js").rstrip()


@cache
def chunks(name: str = "viewer") -> tuple[str, ...]:
    """Return the names of a view's chunks, such as `why_pane`, sorted; without `core`."""
    return tuple(sorted(file.name.split(".")[1] for file in STATIC.glob(f"{name}.*.js")))


@cache
def packed(name: str = "viewer", names: tuple[str, ...] = ("core",)) -> str:
    """Return the JavaScript of a view's chunks, compressed and encoded by `pack`; `core` is the view itself."""
    texts = [bundle(name if chunk == "core" else f"{name}.{chunk}") for chunk in names]
    # bzip2: an eighth shorter than gzip.
    return pack(bz2.compress("\f".join(texts).encode()))


@cache
def version(name: str = "viewer") -> str:
    """Return a hash of a view's code in hex, which distinguishes views and versions on one page."""
    code = "".join(bundle(file) for file in (name, *(f"{name}.{chunk}" for chunk in chunks(name))))
    return blake2b(code.encode(), digest_size=6).hexdigest()


@cache
def elements(name: str, first: tuple[str, ...], later: tuple[str, ...] = ()) -> str:
    """Return one `<script>` with a view's core and `first` chunks, and one with the `later` chunks if there are any."""
    return "".join(_element(name, names) for names in (("core", *first), later) if names)


def _element(name: str, names: tuple[str, ...]) -> str:
    return (
        f'<script type="text/plain" data-part="viewer" data-version="{version(name)}" data-chunks="{" ".join(names)}">'
        f"{packed(name, names)}</script>"
    )


def loader(output: str, name: str) -> str:
    """Return the JavaScript that starts the view `name` in the output whose id is `output`."""
    constants = {"ID": output, "VERSION": version(name), "ALPHABET": ALPHABET}
    return f"const {', '.join(f'{key}={json.dumps(value)}' for key, value in constants.items())};{bundle('loader')}"


@cache
def module() -> str:
    """Return the JavaScript module of a widget: the viewer with all its panes."""
    texts = (bundle("viewer"), *(bundle(f"viewer.{chunk}") for chunk in chunks()))
    return "".join(f"{text}\n" for text in texts) + "export default core.widget;\n"


def answer_code(wire: Any, message: Any, _: object = None) -> None:
    """Send a chunk to a page that requests it with `{"ask": "code", "chunk": name}`; ignore other messages."""
    request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    chunk = request.get("chunk")
    # Only names of chunks, so that a request can't read another file.
    if request.get("ask") == "code" and chunk in chunks():
        wire.send({"chunk": chunk, "code": packed("viewer", (chunk,))})


def interactive(
    name: str,
    data: bytes,
    static: str,
    part: str = "capture",
    chunks: tuple[str, ...] = (),
    later: tuple[str, ...] = (),
    bookmark: Mapping[str, Any] | None = None,
) -> str:
    """Return HTML that shows `static` until a script replaces it with the viewer.

    Args:
        name: Name of this output on the page.
        data: Encoded capture, diff, ledger or profile.
        static: HTML for readers without scripts.
        part: Kind of data: `capture`, `diff`, `ledger` or `profile`.
        chunks, later: Initial and later chunks of the viewer's code.
        bookmark: Place to open, from `Bookmark.to_dict`.
    """
    opens = f' data-bookmark="{html.escape(json.dumps(bookmark, ensure_ascii=False))}"' if bookmark else ""
    # Captures and diffs share the viewer's code.
    code = part if part in ("ledger", "profile") else "viewer"
    return (
        f'<div class="explorer-output" data-explorer="{name}"{opens}>{static}'
        f'<script type="text/plain" data-part="{part}">{pack(data)}</script>{elements(code, chunks, later)}</div>'
        f'<script type="module">{loader(name, code)}</script>'
    )


def sentence(text: str) -> str:
    """Return text as escaped HTML: newlines become `<br>`, and text between backticks `<code>`.

    Example:
        >>> sentence("`y = x @ w`: 2 < 3")
        '<code>y = x @ w</code>: 2 &lt; 3'
    """
    parts = ((html.escape(part), is_code) for part, is_code in code_parts(text))
    return "".join(f"<code>{part}</code>" if is_code else part for part, is_code in parts).replace("\n", "<br>")


def document(title: str, body: str) -> str:
    """Return an HTML page with a title around an output's HTML, `body`."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        "<style>body{margin:12px;font:14px/1.45 system-ui,sans-serif}img{max-width:100%}"
        "summary{line-height:24px}h1{position:absolute;clip-path:inset(50%);margin:0;font-size:1px;white-space:nowrap}</style></head>"
        f'<body class="explorer-page"><main><h1>{html.escape(title)}</h1>{body}</main></body></html>\n'
    )
