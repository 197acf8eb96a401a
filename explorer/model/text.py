"""Long texts and lists of names, cut so that what matters of them is seen."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Container, Iterable, Sequence
from difflib import get_close_matches
from itertools import zip_longest

_WIDTH = 60
_VOWEL = re.compile(
    r"(?!uint|uni[^mn]|us|uti|eu|one)[aeiou]"
)  # `user`, `one` and `uint8` begin with a consonant's sound
_CODE = re.compile(r"`([^`]*)`")
_BAR = 12  # characters
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BEFORE = 24  # characters that are left before the first one that differs


def cut_end(text: str, width: int) -> str:
    """Return the text, or its beginning with an ellipsis if it is longer than `width` characters.

    Example:
        >>> cut_end("optimization", 6), cut_end("fits", 6)
        ('optim…', 'fits')
    """
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxstring = self.maxother = self.maxlong = _WIDTH

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to print an integer of more than 4,300 digits.
        return super().repr_int(x, level) if x.bit_length() < 1_000 else f"an integer of {x.bit_length():,} bits"


_brief = _Brief()


def brief(value: object) -> str:
    """Return the `repr` of a value from elsewhere, cut to a few hundred characters whatever the value is.

    Example:
        >>> brief("x" * 100), brief(10**5000)
        ("'xxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxx'", 'an integer of 16,610 bits')
    """
    return _brief.repr(value)


def root_of(path: str) -> str:
    """Return the part of a path before its first `[` or `.`: `state` for `state['step']`, `self` for `self.weights`."""
    return path.partition("[")[0].partition(".")[0]


def signature_text(names: Sequence[str], types: Sequence[str]) -> str:
    """Return `(params: 18 arrays, x: f32[8,128])`: the arguments by name, a tree by its number of arrays.

    Args:
        names: Path of each array, as far as known.
        types: Type of each array.
    """
    arrays: dict[str, list[str]] = {}
    for i, type_ in enumerate(types):
        path = names[i] if i < len(names) and names[i] else f"arg{i}"
        arrays.setdefault(root_of(path), []).append(type_)
    parts = (f"{name}: {own[0] if len(own) == 1 else f'{len(own)} arrays'}" for name, own in arrays.items())
    return f"({', '.join(parts)})"


def with_article(noun: str) -> str:
    """Return the noun with `a` or `an` before it, chosen by its sound.

    Example:
        >>> with_article("Array"), with_article("uint8"), with_article("unhashable object")
        ('an Array', 'a uint8', 'an unhashable object')
    """
    return f"{'an' if _VOWEL.match(noun.lower()) else 'a'} {noun}"


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return ` Did you mean …?` with the most similar allowed names; empty if no name is similar.

    Example:
        >>> did_you_mean("treshold", ["seconds", "threshold"])
        ' Did you mean `threshold`?'
    """
    near = get_close_matches(name, list(allowed), 3, 0.6)
    return f" Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else ""


def cut_middle(text: str, width: int = _WIDTH) -> str:
    """Return the text in one line of at most `width` characters, with `…` for the middle of a longer text.

    Example:
        >>> cut_middle("a_function_of_a_long_name", 11)
        'a_fun…_name'
    """
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    behind = max((width - 1) // 2, 0)
    return f"{text[: width // 2]}…{text[len(text) - behind :]}"


def cut_middles(before: str, after: str, width: int = _WIDTH) -> tuple[str, str]:
    """Return `before` and `after` in one line each, cut to `width` characters so that their first difference is seen.

    Long texts start shortly before that difference.
    """
    before, after = " ".join(before.split()), " ".join(after.split())
    shorter = min(len(before), len(after))
    same = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    if max(len(before), len(after)) <= width or same <= _BEFORE:
        return cut_middle(before, width), cut_middle(after, width)
    start = same - _BEFORE
    return f"…{cut_end(before[start:], width - 1)}", f"…{cut_end(after[start:], width - 1)}"


def code_parts(text: str) -> list[tuple[str, bool]]:
    """Return the nonempty parts of a sentence, each with True if it is code between backticks.

    An unpaired backtick is a normal character.

    Example:
        >>> code_parts("line 3, `y = x @ w`: 2 ms")
        [('line 3, ', False), ('y = x @ w', True), (': 2 ms', False)]
    """
    return [(part, number % 2 == 1) for number, part in enumerate(_CODE.split(text)) if part]


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = (), indent: str = "") -> list[str]:
    """Return rows of cells as aligned lines; columns are as wide as their longest cell, two spaces apart.

    Args:
        rows: Head and rows; a row may be shorter than others.
        right: Right-aligned columns, from 0.
        indent: Prefix of each line.

    Example:
        >>> aligned([("line", "time"), ("3", "41 ms"), ("120", "2 ms")], right=(1,))
        ['line   time', '3     41 ms', '120    2 ms']
    """
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]

    def line(row: Sequence[str]) -> str:
        cells = zip(row, widths, strict=False)
        return "  ".join(cell.rjust(w) if at in right else cell.ljust(w) for at, (cell, w) in enumerate(cells))

    return [(indent + line(row)).rstrip() for row in rows]


def bar(share: float) -> str:
    """Return a bar of up to 12 characters for a share of the whole, 0 to 1, in eighths of a character, at least one.

    Any number is allowed, because a share may come from a file.

    Example:
        >>> bar(1.0), bar(0.5), bar(0.0)
        ('████████████', '██████', '▏')
    """
    eighths = max(round(min(share, 1.0) * _BAR * 8), 1) if share > 0 else 1  # NaN too
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def list_names(names: Sequence[str]) -> str:
    """Return the names as text for a sentence: up to four in full, else the first three and a count.

    Example:
        >>> list_names("ab"), list_names("abcd"), list_names("abcde")
        ('a and b', 'a, b, c and d', 'a, b, c and 2 more')
    """
    parts = list(names) if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


NAME = "jax-compilation-explorer"


def install_hint(package: str, extra: str) -> str:
    """Return the command that installs a needed package, alone or with its extra.

    Example:
        >>> install_hint("pandas", "lab")
        "pip install pandas, or 'jax-compilation-explorer[lab]'"
    """
    return f"pip install {package}, or '{NAME}[{extra}]'"
