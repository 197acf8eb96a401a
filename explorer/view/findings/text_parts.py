"""Text parts of findings for all views: signs, counts, marked source lines, and plain text."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from html import escape

from explorer.model.declared import cached_property
from explorer.model.findings import READ, SEVERITIES, Finding, Findings, Fix

# Severity is never shown by color alone.
SIGNS = {"error": "✖", "warning": "▲", "note": "●"}
_MAX_LINES = 6  # of a finding that goes over several
_MAX_NAMED = 2  # of many, in a line
_MAX_CHARACTERS = 200  # characters of a line around the piece
_MAX_BYTES = 2_000_000  # bytes of a file that is read for its lines
# Control characters, which a terminal obeys, but not tabs and newlines; and surrogates, which UTF-8 can't encode.
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CALLED = re.compile(r"`([^`]+)`|(?<![\w.])([A-Za-z_][\w.]*\()")


@dataclass(frozen=True)
class Group:
    """Findings of one file or cell, with their index among all findings."""

    file: str
    label: str
    numbered: tuple[tuple[int, Finding], ...]


@dataclass(frozen=True)
class Line:
    """Line of the user's text: before the marked piece, the piece, and after it."""

    number: int
    before: str
    piece: str
    after: str

    @property
    def text(self) -> str:
        return self.before + self.piece + self.after

    @cached_property
    def carets(self) -> str:
        """Return carets for the row below the line, under the piece; empty if all of the line or nothing is marked."""
        blank = "".join("\t" if letter == "\t" else " " for letter in self.before)
        return f"{blank}{'^' * len(self.piece)}" if self.piece and self.piece != self.text.strip() else ""


def printable(findings: Findings) -> Findings:
    """Return the findings with control characters and lone surrogates in their texts replaced by `�`."""
    clean = findings.changed(replace(one, **_clean(one), fix=replace(one.fix, **_clean(one.fix))) for one in findings)
    clean.function, clean.failure = _visible(findings.function), _visible(findings.failure)
    clean.faults, clean.target = tuple(map(_visible, findings.faults)), _visible(findings.target)
    return findings if clean == findings else clean


def _clean(value: Finding | Fix) -> dict[str, str]:
    texts = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: _visible(text) for name, text in texts.items() if isinstance(text, str)}


def _visible(text: str) -> str:
    return _ODD.sub("\ufffd", text)


def group_by_file(findings: Findings) -> list[Group]:
    files: dict[str, list[tuple[int, Finding]]] = {}
    for number, finding in enumerate(findings):
        files.setdefault(finding.file, []).append((number, finding))
    labels = {file: own[0][1].label or os.path.basename(file) for file, own in files.items()}
    return [Group(file, labels[file], tuple(own)) for file, own in files.items()]


def format_counts(findings: Findings) -> str:
    """Return the number of findings by severity as text, `1 error, 2 warnings`; empty for no findings."""
    counts: Mapping[str, int] = {name: sum(one.severity == name for one in findings) for name in SEVERITIES}
    return ", ".join(f"{count:,} {name}{'s' if count > 1 else ''}" for name, count in counts.items() if count)


def summarize_rules(findings: Findings) -> str:
    """Return `▲ 2 warnings: large-constant in line 3, weak-type in line 5`; "" for no findings."""
    if not findings:
        return ""
    first = list(dict.fromkeys(f"{one.rule} in line {one.line}" if one.line else one.rule for one in findings))
    more = ", …" if len(first) > _MAX_NAMED else ""
    return f"{SIGNS[findings[0].severity]} {format_counts(findings)}: {', '.join(first[:_MAX_NAMED])}{more}"


def describe_no_findings(findings: Findings) -> str:
    """Return a sentence on what was checked when nothing was found."""
    of = findings.function or "it"
    if findings.failure:
        return f"The trace of {of} failed, and the code after the failure was not checked."
    if findings.rules:
        rules = "1 rule" if len(findings.rules) == 1 else f"{len(findings.rules)} rules"
        if of.endswith(READ):
            return f"{rules} checked the source of {of}."
        looked_at = "the calls that its Python makes, its jaxpr, and the state that it reaches"
        compiled = f", compiled for {findings.target}" if findings.target else ""
        return f"{rules} checked one trace of {of}{compiled}: {looked_at}."
    return f"No rule found anything in {findings.subject or of}."


def silencing(finding: Finding) -> str:
    return f"# explorer: ignore[{finding.code or finding.rule}]"


def lines_of(finding: Finding) -> list[Line]:
    """Return the lines of a finding as in its file, or its recorded text if the file changed; empty without text."""
    texts = [text_at(finding.file, number) for number in range(finding.line, _end(finding) + 1)]
    # The file has changed since, so the line that was recorded counts.
    if not texts or texts[0].strip() != finding.text.strip() or not finding.text.strip():
        text = finding.text.strip()
        return [Line(finding.line, "", text, "")] if text else []
    lines = [_line(finding, finding.line + i, text) for i, text in enumerate(texts)]
    indent = min(len(text) - len(text.lstrip()) for text in texts if text.strip())
    return [Line(one.number, one.before[indent:], one.piece, one.after) for one in lines]


def _end(finding: Finding) -> int:
    return min(max(finding.end_line, finding.line), finding.line + _MAX_LINES - 1) if finding.line else -1


def text_at(file: str, line: int) -> str:
    # Loaded findings may name any file: read only files that this process has read, or below the working directory.
    try:
        if file not in linecache.cache and not _is_ours(file):
            return ""
        return linecache.getline(file, line).rstrip("\r\n")
    except (OSError, ValueError):
        return ""


def _is_ours(file: str) -> bool:
    below = os.path.realpath(os.curdir).rstrip(os.sep) + os.sep
    is_plain = os.path.isfile(file) and os.path.getsize(file) <= _MAX_BYTES
    return is_plain and file.endswith(".py") and os.path.realpath(file).startswith(below)


def _line(finding: Finding, number: int, text: str) -> Line:
    indent = len(text) - len(text.lstrip())
    is_all = (finding.end_line, finding.end_column) <= (finding.line, finding.column)
    start = _letters(text, finding.column) if number == finding.line and not is_all else indent
    end = _letters(text, finding.end_column) if number == finding.end_line and not is_all else len(text.rstrip())
    start, end = max(start, min(indent, end)), min(end, start + _MAX_CHARACTERS)
    after = text[end : end + _MAX_CHARACTERS] + ("…" if len(text) > end + _MAX_CHARACTERS else "")
    return Line(number, text[:start][:_MAX_CHARACTERS], text[start:end], after)


def _letters(text: str, column: int) -> int:
    """Return the column in characters of a `column` in UTF-8 bytes, as Python's syntax trees count them."""
    return len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))


def split_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a sentence, each with True if it is code: in backticks, or a call."""
    at = 0
    for match in _CALLED.finditer(text):
        if match.start() < at:
            continue
        end = match.end() if match[1] else _closing(text, match.end() - 1)
        if not end:
            continue
        if match.start() > at:
            yield text[at : match.start()], False
        yield match[1] or text[match.start() : end], True
        at = end
    if at < len(text):
        yield text[at:], False


def code_html(text: str) -> str:
    """Return a sentence as HTML, with code marked up."""
    return "".join(f"<code>{escape(part)}</code>" if is_code else escape(part) for part, is_code in split_code(text))


def _closing(text: str, opening: int) -> int:
    """Return the index after the matching closing bracket; 0 if it is missing."""
    depth, quote = 0, ""
    # Bounded, because a text from a file may have any length.
    for i in range(opening, min(len(text), opening + 1000)):
        letter = text[i]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if not depth:
                return i + 1
    return 0


def changed_lines(diff: str) -> list[tuple[str, str]]:
    """Return (sign, text) for each line of a unified diff: `+`, `-`, ` `, or `@` for a gap between parts."""
    rows = [row for row in diff.splitlines() if not row.startswith(("---", "+++"))]
    lines = [("@", "⋯") if row.startswith("@@") else (row[:1] or " ", row[1:]) for row in rows]
    return lines[1:] if lines[:1] == [("@", "⋯")] else lines


def to_text(findings: Findings, width: int = 100) -> str:
    """Return a line of counts, a paragraph for each finding, and the rules that raised.

    `width` wraps nothing: editors read `file:line:column` from these lines.
    """
    parts = [repr(findings)[len("Findings(") : -1], *map(_paragraph, findings)]
    parts += [f"a rule failed, its findings are missing: {fault}" for fault in findings.faults]
    return "\n\n".join(parts)


def finding_text(finding: Finding, width: int = 100) -> str:
    return _paragraph(finding)


def _paragraph(finding: Finding) -> str:
    place = f"{finding.label or finding.file}:{finding.line}:{finding.column + 1}: " if finding.line else ""
    rows = [f"{place}{finding.severity} {finding.code} {finding.rule}", f"    {finding.message}"]
    if finding.text:
        rows += [f"    > {finding.text}"]
    fix = "\n".join(filter(None, [finding.fix.text, finding.fix.diff])).rstrip("\n").replace("\n", "\n" + " " * 10)
    details = (("seen:", finding.evidence), ("fix:", fix), ("read:", finding.documentation))
    rows += [f"    {name:<5} {text}" for name, text in details if text]
    return "\n".join(rows)
