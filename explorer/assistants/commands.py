"""`python -m explorer mcp train.py:step other.py`: verbs as tools for coding assistants, over standard input."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import explorer as ex
from explorer.assistants.named import Named
from explorer.assistants.tools import Tools
from explorer.assistants.verbs import Limits, end_at_once
from explorer.errors import ExplorerError, MissingPackageError
from explorer.files.reports import positive
from explorer.model.text import install_hint

_SECONDS, _MEMORY = 180.0, 8.0


def add_mcp(verbs: Any) -> None:
    about = (
        "Serve coding assistants over the Model Context Protocol, on standard input and output: explore, lint, "
        "recompiles, profile, diff, targets, check. Only code named here may run; each answer runs in a process of its "
        "own, with limits on time and memory, and on Linux without a network."
    )
    verb = verbs.add_parser("mcp", help="serve coding assistants", description=about)
    verb.add_argument(
        "names", metavar="NAME", nargs="+",
        help="what may run: MODULE:FUNCTION; a file, with what it defines and as a script; a script with its "
        "arguments, quoted; a golden file",
    )  # fmt: skip
    verb.add_argument("--seconds", metavar="S", type=positive, default=_SECONDS, help=f"for an answer; {_SECONDS:g}")
    verb.add_argument("--memory", metavar="GB", type=positive, default=_MEMORY, help=f"for an answer; {_MEMORY:g}")
    verb.add_argument("-o", "--output", metavar="FOLDER", type=Path, help="for pages and reports; else a new one")
    verb.set_defaults(run=_mcp)


def _mcp(given: argparse.Namespace) -> int:
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise MissingPackageError(
            f"mcp, the SDK of the Model Context Protocol, is not installed.\n  Hint: {install_hint('mcp', 'mcp')}."
        ) from None
    named = Named.of(given.names)
    folder = Path(given.output or mkdtemp(prefix="explorer-mcp-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tools = Tools(named, folder, Limits(given.seconds, int(given.memory * 1e9)))
    instructions = (
        f"Explains how XLA compiles JAX functions. Code that may run: {named.text}. Answers are sentences, and "
        "the paths of a page for the user's browser and of the whole report as JSON."
    )
    server = MCPServer("explorer", version=ex.__version__, instructions=instructions, log_level="ERROR")
    for tool in tools.all:
        server.add_tool(_raising(tool, ToolError), structured_output=False)
    print(f"explorer: pages and reports go to {folder}", file=sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_at_once)
    server.run("stdio")
    return 0


def _raising(tool: Callable[..., Awaitable[str]], kind: type[Exception]) -> Callable[..., Awaitable[str]]:
    """Wrap a tool so that Explorer's errors become the SDK's; the SDK logs others as faults."""

    @wraps(tool)
    async def answer(*args: Any, **kwargs: Any) -> str:
        try:
            return await tool(*args, **kwargs)
        except (ExplorerError, OSError) as error:
            raise kind(str(error)) from error

    return answer
