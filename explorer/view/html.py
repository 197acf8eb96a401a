"""A capture as HTML that upgrades itself.

A static picture and a table stand there for readers without scripts (code hosts, untrusted notebooks, mail). Where a
script runs, it replaces them with the viewer: bundle and capture lie beside it, packed, so that a page needs no
network, no kernel and no other file.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from functools import cache
from pathlib import Path

from explorer.model.capture import Capture
from explorer.view.packed import ALPHABET, pack
from explorer.view.picture import picture, summary

__all__ = ["bundle", "fragment", "packed_bundle", "page"]

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
    from hashlib import blake2b

    return blake2b(bundle(name).encode(), digest_size=6).hexdigest()


def fragment(capture: Capture, carries: bool = True) -> str:
    """The HTML of one notebook output; `carries` the viewer's code, or finds it in another output."""
    static = _static(capture)
    if not capture.stages:
        return static
    return interactive(capture.id, capture.wire, static, carries)


def interactive(name: str, data: bytes, static: str, carries: bool = True, part: str = "capture") -> str:
    """What shows `static` until, and where, a script can show the data as the viewer does.

    Args:
        name: Tells this output among others of the page.
        data: What the viewer reads: the bytes of a capture, a diff, a ledger or a profile.
        static: HTML for readers without scripts.
        carries: Whether the viewer's code is in this output, or to be found in another one of the page.
        part: What the data is: `capture`, `diff`, `ledger` or `profile`.
    """
    code = part if part in ("ledger", "profile") else "viewer"
    known = {"ID": name, "VERSION": _version(code), "ALPHABET": ALPHABET}
    loader = f"const {', '.join(f'{key} = {json.dumps(value)}' for key, value in known.items())};\n{_loader()}"
    return (
        f'<div class="explorer-output" data-explorer="{name}">{static}'
        f'<script type="text/plain" data-part="{part}">{pack(data)}</script>'
        f"{_viewer(code) if carries else ''}</div>"
        f'<script type="module">{loader}</script>'
    )


def page(capture: Capture) -> str:
    """One self-contained page: the viewer at the height of the window."""
    return document(f"{capture.function} – Explorer", fragment(capture))


def document(title: str, body: str) -> str:
    """A page around an output."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        "<style>body{margin:12px;font-family:system-ui,sans-serif}img{max-width:100%}"
        ".explorer .panes{height:calc(100vh - 130px)!important}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _static(capture: Capture) -> str:
    """An image with its description, and a table: what every sanitiser leaves standing."""
    image = base64.b64encode(picture(capture, invites=True).encode()).decode()
    shown = f'<img alt="{html.escape(_description(capture))}" src="data:image/svg+xml;base64,{image}">' + (
        _table(capture) if capture.stages else ""
    )
    return f'<div class="explorer-static">{shown}</div>'


def _table(capture: Capture) -> str:
    head, *rows = summary(capture)
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<details><summary>{html.escape(capture.function)}: stages and kernels as a table</summary>"
        f"<table><thead><tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr></thead>"
        f"<tbody>{cells}</tbody></table></details>"
    )


def _description(capture: Capture) -> str:
    stages = ", ".join(f"{stage.name} of {len(stage.graph):,} nodes" for stage in capture.stages)
    failure = f". {capture.failure}" if capture.failure else ""
    return f"{capture.function}{capture.signature}: {stages or 'no stage'}{failure}"
