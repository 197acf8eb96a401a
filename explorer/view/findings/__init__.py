"""Findings as text, page and notebook output; knows the model alone, no JAX."""

from __future__ import annotations

from typing import Any

from explorer.model.findings.finding import Fix
from explorer.model.findings.findings import Findings

__all__ = ["HtmlFindingsViewer"]


class HtmlFindingsViewer:
    """Shows findings in notebooks, pages and terminals. The parts load when something is shown first."""

    def mimebundle(self, findings: Findings) -> dict[str, str]:
        """What a notebook shows: the findings with their cures, or text with the reason if the view fails."""
        from explorer.view import live

        try:
            from explorer.view.findings.terminal import ansi, plain

            if live.in_terminal():
                return {"text/plain": ansi(findings)}
            from explorer.view.findings.html import fragment
            from explorer.view.findings.link import connect

            return {"text/html": fragment(findings, connect(findings)), "text/plain": plain(findings)}
        except Exception as error:  # a fault in the view must not cost the user their result
            return {"text/plain": f"{findings!r}\n(the view failed: {type(error).__name__}: {error})"}

    def html(self, findings: Findings) -> str:
        from explorer.view.findings.html import page

        return page(findings)

    def rich(self, findings: Findings) -> Any:
        from explorer.view.findings.terminal import tree

        return tree(findings)

    def apply(self, fix: Fix) -> None:
        from explorer.view.findings.link import write_next

        write_next(fix.code)
