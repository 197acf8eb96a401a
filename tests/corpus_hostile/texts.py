"""Files that a person writes, and queries: pieces of theirs are missing, doubled, moved, or of another kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from tests.corpus_hostile.mutations import MARKUP, SECRET, SEEDS, Case

SIGNALS = """\
forward: &fast
  compile: true             # at the first call
  optimization_level: 3
  shard: {axis: 0, workers: 4}
backward: *fast
loss: {compile: false, shard: {axis: 1, workers: [0, 1, 2, 3]}}
"""
GOLDEN = """\
format = 1
function = "models.step:loss"
arguments = ["f32[8,16]", "key=jax.random.key(0)"]
jax = "0.10.2"

[tolerance]
kernels = 0.0
flops = 0.01

[compiles]
loss = 2

[[program]]
target = "cpu"
kernels = 3
flops = 1_234
bytes = 5_678
peak_memory = 91_011
collectives = { all-reduce = 2 }

[[program.line]]
file = "models/step.py"
line = 12
code = "return jnp.tanh(x @ x)"
equations = { "dot_general f32[64,64]" = 1 }
kernels = { "tanh → f32[64,64]" = 1 }
flops = 12
"""
SETTINGS = """\
[tool.explorer.lint]
EX012 = "note"
impure-print = "off"

[tool.explorer.check]
files = ["tests/golden/*.golden", "**/*.golden"]
"""
LOG = """\
  0.000s | #0001 | COMPILE    | MainThread | Starting | function=step id=[step/1] at="train.py, line 12"
  0.500s | #0002 | RUN        | MainThread | add | x="f32[8]" (COMPILED)
  0.750s | #0003 | RUN        | worker-1/T | mul | note without a name
  1.500s | #0004 | COMPILE    | MainThread | Complete | function=step
"""
QUERIES = """\
op:dot bytes > 1MB and (op == "copy" or not name:/^dot\\.\\d+$/)
dtype:f32 shape:8,*,64 rank >= 2 -scope:tanh line:10-20 through:train.py:12 attr:dimensions={1}
not (in:body or users == 3) and elements < 1e3 or 'two words' target:getrf flops >= 2G
"""
_PIECES = (
    *("(", ")", "[", "]", "{", "}", '"', "'", "'''", '"""', "<", ">", "|", "&a ", "*a", "&", "*", "? ", ": ", "- "),
    *("\n", "\t", "\0", "\\", "/", "#", "%", "@", "!", "=", "==", ",", ".", "..", "~", "<<: ", "--- "),
    *("!!python/object/apply:os.system ", "9" * 5_000, "9" * 18, "-1", "1e999", "nan", "inf", "1_0"),
    *("...\n", "!!int ", "!!set "),
    *("0x" + "f" * 2_000, "1:2:3:4:5", "2001-99-99", "true", "null", "é", "\u202e", "\x1b[2J", "\x85", "\u2028"),
    *("\ud800", MARKUP, SECRET, "not ", "and ", " or ", "op:", "bytes > ", "line:", "/a{4294967296}/", "/(a+)+$/"),
    *("/[/", "x" * 300, "a." * 50, "f32[", "f32[8,9999999999]", "f32[2]{0:T(8,128)}", "tensor<2x?xf32>"),
    *("window={size=100000}", "size=", "calls="),
)  # fmt: skip


def one_text(text: str, chance: Random) -> Case:
    """A text of which pieces are missing, doubled, moved, or of another kind."""
    done = list[str]()
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        at, size = chance.randrange(len(text) + 1), chance.choice((0, 1, 1, 3, 10, 60))
        piece = text[at : at + size]
        kind = chance.choice(("put", "put", "put", "cut", "double", "many", "move", "swap"))
        done.append(f"{kind} at {at}")
        match kind:
            case "put":
                piece = chance.choice(_PIECES) * (200 if chance.random() < 0.02 else 1)
            case "cut":
                piece = ""
            case "double":
                piece *= 2
            case "many":
                piece *= chance.choice((10, 10, 10, 10, 300, 3_000 if chance.random() < 0.1 else 10))
            case "move":
                start = chance.randrange(len(text) + 1)
                piece = text[start : start + chance.choice((5, 40, 200))]
            case _:
                piece = piece[::-1]
        text = (text[:at] + piece + text[at + size :])[:400_000]
    return "; ".join(done), text.encode("utf-8", "surrogatepass")


def one(good: str) -> Callable[[int], Case]:
    return lambda seed: one_text(good, Random(seed))


def _texts(good: str, *others: tuple[str, str]) -> Iterator[Case]:
    yield "as it was", good.encode()
    yield from ((done, text.encode()) for done, text in others)
    yield from map(one(good), range(SEEDS))


def _aliases(levels: int) -> str:
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines)


def signals() -> Iterator[Case]:
    return _texts(
        SIGNALS,
        *((f"aliases of {levels} levels", _aliases(levels)) for levels in (2, 5, 9, 50)),
        ("an alias of what it is in", "a: &a {b: *a}"),
        ("a billion workers", "a: {shard: {axis: 0, workers: 1000000000}}"),
        ("merged again and again", "a: &a {x: 1}\nb: {<<: [" + "*a, " * 30_000 + "]}"),
        *((f"{each!r} 40,000 times", each * 40_000) for each in ("[", "{", "- ", "? ", "&a ", "!", "a: ", '"', "\n")),
    )  # fmt: skip


def goldens() -> Iterator[Case]:
    return _texts(
        GOLDEN,
        ("dots", "a." * 200_000 + "a = 1"),
        ("dots in a header", "[a" + ".a" * 200_000 + "]"),
        ("dots on many lines", ("a." * 400 + "a = 1\n") * 300),
        ("deep lists", "a = " + "[" * 300_000),
        ("deep tables", "a = " + "{a = " * 100_000),
        ("a long number", "format = " + "9" * 5_000),
        ("a long number in hexadecimal", "format = 0x" + "f" * 5_000),
        ("a long string", 'format = 1\nfunction = "' + "x" * 3_000_000 + '"'),
        ("many tables", "[[program]]\n" * 100_000),
    )


def settings() -> Iterator[Case]:
    files = "[tool.explorer.check]\nfiles = ['/']\n"
    return _texts(SETTINGS, ("no tables", "[tool]\nexplorer = 1\n"), ("files everywhere", files))


def logs() -> Iterator[Case]:
    return _texts(
        LOG,
        ("a line of 20 MB", LOG + "x" * 20_000_000),
        ("many quotes", "  1.0s | #1 | " + '"' * 100_000 + LOG),
        ("many backslashes", '  1.0s | #1 | "' + "\\" * 100_000 + LOG),
        ("many blanks", "  1.0s | #1 |" + " " * 100_000 + "\n" + LOG),
        ("many equals", "  1.0s | #1 | RUN | a | b | " + "a=" * 50_000 + "\n"),
        ("many details", "  1.0s | #1 | RUN | a | b | " + "a=b " * 50_000 + "\n"),
        ("times past any float", LOG.replace("1.500s", "9" * 400 + "s")),
    )


def queries() -> Iterator[Case]:
    """A query is a line of the file."""
    hostile = ("(" * 5_000, "not " * 5_000 + "a", "-" * 5_000, "/a{4294967296}/", "line:" + "9" * 5_000)
    return _texts(QUERIES, *((f"{text[:20]!r}…", text) for text in (*hostile, "/" + "(" * 5_000 + "/")))
