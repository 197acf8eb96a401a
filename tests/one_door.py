"""A rule of `make lint`: `explorer/files/disk.py` opens files, and no other module does.

    python -m tests.one_door

What is read there has bounds, and what is written there is whole or not there: see SECURITY.md. An exception needs a
reason in `ALLOWED`, and one that is not needed any more is reported too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOOR = "explorer/files/disk.py"
# By module and call, why it isn't one of `disk`.
ALLOWED = {
    ("explorer/_jax/settings.py", ".open"): "jaxlib's own library, of half a gigabyte, which is mapped and searched",
    ("explorer/_jax/settings.py", "mmap.mmap"): "the same",
    ("explorer/_jax/profiling.py", ".read_bytes"): "what this process wrote to a temporary folder; _jax has no files/",
    ("explorer/_jax/target_compiler.py", ".read_text"): "what this process wrote to a temporary folder; as above",
    ("explorer/_jax/target_compiler.py", ".write_bytes"): "to a temporary folder that the parent reads; as above",
    ("explorer/assistants/child.py", "os.fdopen"): "a pipe to the parent",
    ("explorer/assistants/child.py", "os.open"): "a folder's handle, as Landlock takes it; nothing is read",
    ("explorer/assistants/tools.py", ".open"): "the output of a child process, as it comes",
    ("explorer/assistants/tools.py", ".read_text"): "the same, read back when the child has ended",
    ("explorer/capture/recording.py", "SpooledTemporaryFile"): "a dump that this process packed, without a name",
    ("explorer/capture/script.py", "open_code"): "a script runs as Python would run it, from a pipe too",
    ("explorer/files/executable_archive.py", "zipfile.ZipFile"): "in memory: the bytes are those of disk.read_bytes",
    ("explorer/files/ledger_lines.py", ".open"): "events are appended to it for as long as a ledger lives",
    ("explorer/files/instruction_log.py", "open"): "several processes append to it, line by line",
    ("explorer/hardware/child.py", "os.fdopen"): "a pipe to the parent",
    ("explorer/hardware/process.py", "TemporaryFile"): "what a child prints, without a name",
    ("explorer/measure/disturbance.py", "os.open"): "/proc/stat, which stays open: to open it takes longer",
    ("explorer/measure/own_process.py", ".write_text"): "/proc/self/clear_refs, which can't be replaced",
}  # fmt: skip
_FUNCTIONS = re.compile(
    r"(?:io\.|codecs\.|tokenize\.)?open(?:_code)?|os\.(?:open|fdopen|replace|rename|link|symlink)|(?:gzip|bz2|lzma|tarfile|shelve|dbm)\.\w+pen"
    r"|(?:np|numpy|jnp)\.(?:load|save|savez\w*|loadtxt|savetxt|genfromtxt|fromfile|memmap|tofile)"
    r"|(?:json|pickle|marshal|tomllib|plistlib)\.(?:load|dump)|yaml\.(?:\w*load\w*|compose\w*|parse|scan)|zipfile\.ZipFile|mmap\.mmap"
    r"|tempfile\.(?:\w*TemporaryFile|mkstemp)|(?:\w*TemporaryFile|mkstemp|ZipFile)"
    r"|shutil\.(?:copy\w*|move)|(?:pd|pandas)\.read_\w+|fileinput\.\w+"
)
_METHODS = ("read_text", "read_bytes", "write_text", "write_bytes", "hardlink_to", "symlink_to")
_MODE = re.compile(r"[rwxabt+]{1,4}")


def calls(text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each call in a module that opens, reads, writes or renames a file by its path."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if _FUNCTIONS.fullmatch(name):
            yield node.lineno, name
        elif isinstance(node.func, ast.Attribute) and (
            node.func.attr in _METHODS or (node.func.attr == "open" and _is_of_path(node))
        ):
            yield node.lineno, f".{node.func.attr}"


def _is_of_path(call: ast.Call) -> bool:
    """Whether `x.open(…)` may be of a path: `kind.open(value)` has another argument than a mode."""
    first = call.args[0] if call.args else None
    has_mode = isinstance(first, ast.Constant) and isinstance(first.value, str) and _MODE.fullmatch(first.value)
    return (
        not call.args or bool(has_mode) or any(each.arg in ("mode", "encoding", "buffering") for each in call.keywords)
    )


def problems() -> list[str]:
    """A line for each call that isn't allowed, and for each exception that isn't needed."""
    found: list[str] = []
    unused = {*ALLOWED}
    for path in sorted([*(ROOT / "explorer").rglob("*.py"), *(ROOT / "pytest_explorer").rglob("*.py")]):
        name = path.relative_to(ROOT).as_posix()
        if name == DOOR:
            continue
        for line, call in calls(path.read_text(encoding="utf-8")):
            unused.discard((name, call))
            if (name, call) not in ALLOWED:
                found.append(
                    f"{name}:{line}: {call}() opens a file. Hint: explorer.files.disk reads and writes all files."
                )
    return found + [
        f"{name}: {call}() is in tests.one_door.ALLOWED and not in the file" for name, call in sorted(unused)
    ]


if __name__ == "__main__":
    lines = problems()
    print("\n".join(lines) if lines else "files are opened by explorer.files.disk alone")
    sys.exit(bool(lines))
