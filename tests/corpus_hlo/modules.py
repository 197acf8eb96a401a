"""The HLO modules that files hold: `.hlo` files, and raw strings of C++ tests."""

import re

_RAW_STRING = re.compile(r'R"([^()\\\s]{0,16})\((.*?)\)\1"', re.S)
_IS_MODULE = re.compile(r"\bHloModule\b|\bENTRY\b")
_SPLIT = re.compile(r"^// -----.*$", re.M)  # what hlo-opt splits its input at
_SUFFIXES = (".hlo", ".hlotxt", ".cc", ".h")


def modules(paths):
    """Each distinct module under the paths as its place and its text."""
    seen = set()
    for path in paths:
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES)
        for file in files:
            for line, text in _texts(file):
                if text not in seen and _IS_MODULE.search(text):
                    seen.add(text)
                    yield f"{file}:{line}", text


def _texts(file):
    content = file.read_text(errors="replace")
    if file.suffix in (".cc", ".h"):
        for string in _RAW_STRING.finditer(content):
            yield content.count("\n", 0, string.start()) + 1, string[2]
        return
    start = 0
    for end in [*(split.start() for split in _SPLIT.finditer(content)), len(content)]:
        yield content.count("\n", 0, start) + 1, content[start:end]
        start = end
