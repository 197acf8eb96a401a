"""HTML that upgrades itself, and the page around it.

A static picture and a table stand there for readers without scripts (code hosts, untrusted notebooks, mail). Where a
script runs, it replaces them with the viewer: code and data lie beside it, packed, so that a page needs no network, no
kernel and no other file.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from explorer.model.text import code_parts
from explorer.view.base85 import pack
from explorer.view.scripts import elements, loader


def interactive(
    name: str,
    data: bytes,
    static: str,
    part: str = "capture",
    chunks: tuple[str, ...] = (),
    later: tuple[str, ...] = (),
    bookmark: Mapping[str, Any] | None = None,
) -> str:
    """What shows `static` until, and where, a script can show the data as the viewer does.

    Args:
        name: Tells this output among others of the page.
        data: What the viewer reads: the bytes of a capture, a diff, a ledger or a profile.
        static: HTML for readers without scripts.
        part: What the data is: `capture`, `diff`, `ledger` or `profile`.
        chunks, later: What it starts with, and what else can be shown of it, as chunks of the viewer's code.
        bookmark: Where it opens, as `Bookmark.to_dict` gives it.
    """
    opens = f' data-bookmark="{html.escape(json.dumps(bookmark, ensure_ascii=False))}"' if bookmark else ""
    code = part if part in ("ledger", "profile") else "viewer"
    return (
        f'<div class="explorer-output" data-explorer="{name}"{opens}>{static}'
        f'<script type="text/plain" data-part="{part}">{pack(data)}</script>{elements(code, chunks, later)}</div>'
        f'<script type="module">{loader(name, code)}</script>'
    )


def sentence(text: str) -> str:
    """Text as HTML, its lines kept: what stands between backticks is code.

    Example:
        >>> sentence("`y = x @ w`: 2 < 3")
        '<code>y = x @ w</code>: 2 &lt; 3'
    """
    parts = ((html.escape(part), is_code) for part, is_code in code_parts(text))
    return "".join(f"<code>{part}</code>" if is_code else part for part, is_code in parts).replace("\n", "<br>")


def document(title: str, body: str) -> str:
    """A page around an output."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        "<style>body{margin:12px;font:14px/1.45 system-ui,sans-serif}img{max-width:100%}"
        "summary{line-height:24px}h1{position:absolute;clip-path:inset(50%);margin:0;font-size:1px;white-space:nowrap}</style></head>"
        f'<body class="explorer-page"><main><h1>{html.escape(title)}</h1>{body}</main></body></html>\n'
    )
