"""What lint says of the snippets, to the letter: message, evidence, cure and rewrite. The marks judge what is right.

    python -m tests.corpus_pitfalls.kept

writes them down anew and prints what is another. The modules whose snippets take long to lint are left out: these
texts are compared each time that the fast tests run.
"""

import difflib
import gzip
import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

from explorer.pitfalls.lint import lint
from tests.corpus_pitfalls import (
    documented_pages,
    documented_sharp_bits,
    effects,
    held_out,
    state,
    threads_effects,
    threads_state,
    threads_tracing,
    use,
    wanted,
)
from tests.corpus_pitfalls.score import snippets

MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        effects, state, use, documented_sharp_bits, documented_pages, threads_tracing, threads_state, threads_effects,
        wanted, held_out,
    )
}  # fmt: skip
_FOLDER = Path(__file__).parent / "kept"
_MOMENT = re.compile(r"\d\d:\d\d:\d\d on \d{4}-\d\d-\d\d")


def findings_of(name: str) -> list[str]:
    """The lines of all findings in one module's snippets."""
    return [f"{snippet}: {line}" for snippet, text in _texts(MODULES[name]) for line in text.splitlines()]


def kept(name: str) -> list[str]:
    """The lines that were written down."""
    return gzip.decompress((_FOLDER / f"{name}.txt.gz").read_bytes()).decode().splitlines()


def _texts(module: ModuleType) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    for name, snippet in snippets(module):
        function, args = snippet()
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            findings = lint(function, *args)
        rewrites = "".join(f"\nrewritten:\n{finding.fix.code}" for finding in findings if finding.fix.code)
        texts.append((name, _MOMENT.sub("TIME", findings.to_text() + rewrites)))
    return texts


if __name__ == "__main__":
    _FOLDER.mkdir(exist_ok=True)
    for name in MODULES:
        file, now = _FOLDER / f"{name}.txt.gz", findings_of(name)
        before = kept(name) if file.exists() else []
        print("\n".join(difflib.unified_diff(before, now, name, "now", lineterm="", n=0)) if before else f"new: {name}")
        file.write_bytes(gzip.compress("\n".join(now).encode(), mtime=0))
