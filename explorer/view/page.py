"""HTML that upgrades itself, and the page around it.

A static picture and a table stand there for readers without scripts (code hosts, untrusted notebooks, mail). Where a
script runs, it replaces them with the viewer: bundle and capture lie beside it, packed, so that a page needs no
network, no kernel and no other file.
"""

from __future__ import annotations

import gzip
import html
import json
from functools import cache
from hashlib import blake2b
from pathlib import Path

from explorer.view.base85 import ALPHABET, pack

_STATIC = Path(__file__).parent / "static"


@cache
def bundle(name: str = "viewer") -> str:
    """A view's JavaScript, a module: `viewer` shows captures and diffs, `ledger` ledgers, `profile` profiles."""
    return (_STATIC / f"{name}.js").read_text(encoding="utf-8")


@cache
def _viewer(name: str) -> str:
    version = _version(name)
    return f'<script type="text/plain" data-part="viewer" data-version="{version}">{packed_bundle(name)}</script>'


@cache
def packed_bundle(name: str = "viewer") -> str:
    """A view's code, as the outputs carry it."""
    return pack(gzip.compress(bundle(name).encode(), 9, mtime=0))


@cache
def _loader() -> str:
    """The script that starts the viewer, without the comment on top of it."""
    lines = (_STATIC / "loader.js").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("//"))


@cache
def _version(name: str) -> str:
    """Tells bundles apart when a page holds outputs of several views or versions."""
    return blake2b(bundle(name).encode(), digest_size=6).hexdigest()


def interactive(name: str, data: bytes, static: str, includes_bundle: bool = True, part: str = "capture") -> str:
    """What shows `static` until, and where, a script can show the data as the viewer does.

    Args:
        name: Tells this output among others of the page.
        data: What the viewer reads: the bytes of a capture, a diff, a ledger or a profile.
        static: HTML for readers without scripts.
        includes_bundle: Whether the viewer's code is in this output, or to be found in another one of the page.
        part: What the data is: `capture`, `diff`, `ledger` or `profile`.
    """
    code = part if part in ("ledger", "profile") else "viewer"
    constants = {"ID": name, "VERSION": _version(code), "ALPHABET": ALPHABET}
    loader = f"const {', '.join(f'{key} = {json.dumps(value)}' for key, value in constants.items())};\n{_loader()}"
    return (
        f'<div class="explorer-output" data-explorer="{name}">{static}'
        f'<script type="text/plain" data-part="{part}">{pack(data)}</script>'
        f"{_viewer(code) if includes_bundle else ''}</div>"
        f'<script type="module">{loader}</script>'
    )


def document(title: str, body: str) -> str:
    """A page around an output."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        "<style>body{margin:12px;font-family:system-ui,sans-serif}img{max-width:100%}"
        ".explorer .panes{height:calc(100vh - 130px)!important}</style></head>"
        f"<body>{body}</body></html>\n"
    )
