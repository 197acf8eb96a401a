"""Check the rules of plain English in docs, docstrings, comments and messages.

    python -m tests.english                      figures of each kind of text, and whether they hold
    python -m tests.english --list [PATH …]      every flagged sentence as path:line: text, worst first

Equinox, httpx, treescope and JAX have 0 % of docstrings that open with a relative clause and 0.4 to 0.8 flagged
phrases per 1,000 words. The limits here are twice that. A line that is right as it is ends with `# english: ok`, in
Markdown with `<!-- english: ok -->`.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("explorer", "pytest_explorer", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md")
GENERATED = ("explorer/view/static", "explorer/view/labextension")
MAX_PHRASES = 1.5  # per 1,000 words
MAX_OPENERS = 0.005  # of docstrings
MAX_SENTENCE = 32  # words of a sentence in a user interface; nine of ten are shorter
OPENER = re.compile(
    r"(What|Who|Whom|Whose|Which|How|Where|Why|Whether|Of|That|From what|By what|In what|All that|So that|As a)\b"
)
PHRASES = re.compile(
    r"\b(nobody|somebody|whoever|everybody|no one|anew|(?:is|are|has|have) none|of (?:which|whom|what|those|these)"
    r"|told|tells?|said|says|asked|asks|speaks?|spoken|besides?|(?:the|those|these) ones?|lets? go|goes? on|gives? back"
    r"|begun|all the same|at the least|in turns|by itself|as a rule|cures?|anyhow|thereof|whereof|hence|wherever"
    r"|whichever)\b|\b(?:stands?|lies?)\b(?! (?:for|still))",
    re.IGNORECASE,
)
CLAUSE = re.compile(r"(?:^|[.;:] )(?:What|Who|Where|Whose|Which)\b(?![^.?!]*\?)")
BRITISH = re.compile(r"\b(colour|behaviour|optimis|specialis|normalis|serialis|initialis|recognis|neighbour)\w*")
EXEMPT = "english: ok"


@dataclass(frozen=True)
class Text:
    """A docstring, comment, message or line of Markdown."""

    kind: str
    path: str
    line: int
    words: str

    @property
    def opens_with_clause(self) -> bool:
        return self.kind == "docstrings" and OPENER.match(self.words.strip()) is not None

    @property
    def flags(self) -> int:
        """Return the number of flagged phrases."""
        return len(PHRASES.findall(self.words)) + len(CLAUSE.findall(self.words))


@dataclass
class Figures:
    """Counts of one kind of text."""

    words: int = 0
    flags: int = 0
    texts: int = 0
    openers: int = 0
    flagged: list[Text] = field(default_factory=list)

    def add(self, text: Text) -> None:
        self.words += len(text.words.split())
        self.flags += text.flags
        self.texts += 1
        self.openers += text.opens_with_clause
        if text.flags or text.opens_with_clause:
            self.flagged.append(text)

    @property
    def rate(self) -> float:
        """Return flagged phrases per 1,000 words."""
        return 1000 * self.flags / max(self.words, 1)

    @property
    def holds(self) -> bool:
        return self.rate <= MAX_PHRASES and self.openers <= MAX_OPENERS * self.texts


def python_texts(path: str, source: str) -> Iterator[Text]:
    """Yield docstrings, comments and readable strings of a Python file."""
    lines, tree = source.splitlines(), ast.parse(source)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text, first = ast.get_docstring(node), node.body[0]
            if text and isinstance(first, ast.Expr):
                docstrings.add(id(first.value))
                prose = "\n".join(line for line in text.splitlines() if not line.strip().startswith((">>>", "...")))
                yield Text("docstrings", path, first.lineno, prose)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if _is_readable(node.value) and EXEMPT not in lines[(node.end_lineno or node.lineno) - 1]:
            yield Text("strings", path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_prose = not token.string.startswith(("#!", "# type:", "# noqa", "# pyright"))
        if token.type == tokenize.COMMENT and is_prose and EXEMPT not in token.string:
            yield Text("comments", path, token.start[0], token.string.lstrip("# "))


def _is_readable(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= 4 and " " in text and "\\b" not in text


def typescript_texts(path: str, source: str) -> Iterator[Text]:
    """Yield readable strings of a TypeScript file."""
    for match in re.finditer(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', source):
        text = match[1] or match[2] or ""
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and " " in text and "{" not in text.split("${")[0]:
            yield Text("interface", path, source.count("\n", 0, match.start()) + 1, text)


def markdown_texts(path: str, source: str) -> Iterator[Text]:
    """Yield the lines of a Markdown file that are prose."""
    is_code = False
    for number, line in enumerate(source.splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        if not is_code and line.strip() and not line.lstrip().startswith("```") and EXEMPT not in line:
            yield Text("Markdown", path, number, re.sub(r"`[^`]*`|\]\([^)]*\)", " ", line))


READERS = {".py": python_texts, ".ts": typescript_texts, ".md": markdown_texts}


def texts(paths: Iterable[str] = FOLDERS) -> Iterator[Text]:
    """Yield every text of the files that git lists under `paths`."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in listed:
        path = ROOT / name
        if path.suffix in READERS and path.exists() and not name.startswith(GENERATED) and ".test." not in name:
            yield from READERS[path.suffix](name, path.read_text(encoding="utf-8"))


def measure(paths: Iterable[str] = FOLDERS) -> dict[str, Figures]:
    """Return the figures by kind of text."""
    figures: dict[str, Figures] = {}
    for text in texts(paths):
        figures.setdefault(text.kind, Figures()).add(text)
    return figures


def long_sentences(paths: Iterable[str] = ("explorer/view/js",)) -> list[Text]:
    """Return the strings of the user interface with a sentence of more than `MAX_SENTENCE` words."""
    interface = (text for text in texts(paths) if text.kind == "interface")
    return [text for text in interface if any(len(s.split()) > MAX_SENTENCE for s in re.split(r"[.;:?!] ", text.words))]


def british(paths: Iterable[str] = FOLDERS) -> list[Text]:
    """Return the docstrings and Markdown lines with British spelling; identifiers in backticks don't count."""
    prose = (text for text in texts(paths) if text.kind in ("docstrings", "Markdown"))
    return [text for text in prose if BRITISH.search(re.sub(r"`[^`]*`", "", text.words))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=FOLDERS)
    parser.add_argument("--list", action="store_true", help="print every flagged sentence")
    arguments = parser.parse_args()
    figures = measure(arguments.paths)
    for kind, figure in sorted(figures.items()):
        opened = f", {figure.openers} of {figure.texts} open with a relative clause" if kind == "docstrings" else ""
        print(f"{kind:<12}{figure.rate:5.1f} flagged phrases per 1,000 words, {figure.words} words{opened}")
    if arguments.list:
        flagged = [text for figure in figures.values() for text in figure.flagged]
        for text in sorted(flagged, key=lambda text: -(text.flags + 2 * text.opens_with_clause)):
            print(f"{text.path}:{text.line}: {' '.join(text.words.split())[:160]}")
    sys.exit(not all(figure.holds for figure in figures.values()))


if __name__ == "__main__":
    main()
