"""What a notebook and `rich` show of findings; attached to `Finding` and `Findings`."""

from __future__ import annotations

from rich.console import RenderableType

from explorer.model.findings.finding import Finding
from explorer.model.findings.findings import Findings
from explorer.view import live
from explorer.view.findings.html import fragment
from explorer.view.findings.link import connect
from explorer.view.findings.terminal import ansi, plain, tree

__all__ = ["finding_mimebundle", "finding_tree", "mimebundle"]


def mimebundle(findings: Findings, include: object = None, exclude: object = None) -> dict[str, str]:
    """The findings with their cures as HTML and text; text with the reason if the view fails."""
    try:
        if live.in_terminal():
            return {"text/plain": ansi(findings)}
        return {"text/html": fragment(findings, connect(findings)), "text/plain": plain(findings)}
    except Exception as error:  # a fault in the view must not cost the user their result
        return {"text/plain": f"{findings!r}\n(the view failed: {type(error).__name__}: {error})"}


def finding_mimebundle(finding: Finding, include: object = None, exclude: object = None) -> dict[str, str]:
    return mimebundle(Findings((finding,)))


def finding_tree(finding: Finding) -> RenderableType:
    return tree(Findings((finding,)))
