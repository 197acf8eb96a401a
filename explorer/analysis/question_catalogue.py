"""The list of questions, the search for the question that a text means, and the parts of a reply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized

from explorer.model.answers import Answer, Question
from explorer.model.capture import Capture

QUESTIONS = tuple(
    Question(key, title, tuple(words.split()), tuple(hints.split()))
    for key, title, words, hints in (
        (
            "made",
            "which line made this kernel?",
            "made makes make came comes belongs origin",
            "line lines fusion kernel this code",
        ),
        (
            "copies",
            "why are there transposes and copies?",
            "transpose transposes transposing copy copies copied layout layouts",
            "why",
        ),
        (
            "largest",
            "what is the biggest buffer, and who makes it?",
            "buffer buffers biggest largest memory peak peaks oom",
            "array maker makes made big large needs most",
        ),
        (
            "removed",
            "which pass removed it? (say which: line 5, multiplication)",
            "removed removes remove eliminated eliminates gone vanished deleted killed disappeared disappear "
            "folded merged simplified became happened optimised optimized",
            "pass passes line who away",
        ),
        (
            "printed",
            "did my print run?",
            "print prints printed printing log logging",
            "run runs ran debug",
        ),
        (
            "recompiled",
            "why did it recompile?",
            "recompile recompiles recompiled recompilation retrace retraced retracing again anew",
            "why compile compiled trace traced",
        ),
        (
            "precision",
            "in which precision do my products run?",
            "bf16 bfloat16 f16 float16 f32 float32 f64 float64 fp16 fp32 precision half dtype tf32 f8 fp8",
            "product products matmul matmuls dot run runs",
        ),
        (
            "donated",
            "was donation used?",
            "donate donated donation donates donations alias aliased aliasing inplace",
            "used argument buffer buffers memory",
        ),
        (
            "slow",
            "which kernel is slow?",
            "slow slowest slower expensive costly costs cost bottleneck hottest time",
            "fusion kernel kernels takes most line",
        ),
        (
            "remat",
            "what would remat bring?",
            "remat rematerialise rematerialize rematerialisation rematerialization checkpoint recompute",
            "bring save saves memory",
        ),
        (
            "unfused",
            "what is not fused, and why?",
            "unfused fused fuse fuses fusing separate",
            "why kernel kernels together",
        ),
        (
            "materialised",
            "is the mask, or any N×N array, materialised?",
            "materialised materialized materialise materialize materialises materializes mask nxn n×n n*n masks",
            "intermediate square scores attention memory written array any",
        ),
        (
            "gathered",
            "what is gathered?",
            "gathered gather gathers gathering replicated replication",
            "devices device whole mistake all",
        ),
        (
            "sharded",
            "how is it sharded? (say what: an argument, a kernel)",
            "sharded sharding shardings shard split partitioned distributed",
            "devices device mesh axis array argument weight",
        ),
        (
            "collectives",
            "which collectives cost most?",
            "collective collectives communication communicate sends send sent network",
            "cost costs most expensive devices bytes slow",
        ),
        (
            "machine",
            "what runs on the hardware for this line?",
            "gpu tpu cpu hardware ptx assembly registers machine llvm spills bundles",
            "runs run line code kernel instructions",
        ),
    )
)
_ARTICLES = "a an the it its this that these those my your our i me you we there here any some one"
_VERBS = "is are was were be been do does did has have had can could would will not no please"
_PARTICLES = "of in on at to for from by with and or what which who where when how why if so as all out up"
_SILENT = frozenset(f"{_ARTICLES} {_VERBS} {_PARTICLES}".split())
# Beginnings of words that users type for an operation, and its name in the jaxpr.
_OPERATIONS = {
    **{"multipl": "mul", "times": "mul", "addition": "add", "plus": "add", "subtract": "sub", "minus": "sub"},
    **{"divi": "div", "matmul": "dot_general", "product": "dot_general", "dot": "dot_general", "einsum": "dot_general"},
    **{"cast": "convert_element_type", "convert": "convert_element_type", "broadcast": "broadcast_in_dim"},
    **{"where": "select_n", "select": "select_n", "negat": "neg", "exponential": "exp", "power": "pow"},
    **{"sum": "reduce_sum", "max": "reduce_max", "min": "reduce_min", "logarithm": "log", "sine": "sin"},
}


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    plain = text.lower().replace("’", "'").replace("n't", " not").replace("'s ", " ")
    letters = [letter if letter.isalnum() or letter in "_×*." else " " for letter in plain]
    return [word for raw in "".join(letters).split() if (word := raw.strip("._*"))]


def rank(text: str, extra: Iterable[str] = ()) -> list[tuple[float, Question]]:
    """Return (score, question) for questions that share words with a text, the best first.

    A word of the question scores 2 and a hint 1, half a point less with a typing error. A question is left out if more
    words are foreign than match. Words of `extra`, names of operations and nodes, are never foreign.
    """
    words = words_of(text)
    allowed = set(extra)
    scored: list[tuple[float, Question]] = []
    for question in QUESTIONS:
        score = strong = 0.0
        foreign = own_words = 0
        for word in dict.fromkeys(words):
            own, hint = _likeness(word, question.words), _likeness(word, question.hints)
            strong = max(strong, own)
            if own or hint:
                score += max(own * 2, hint) - (max(own, hint) < 1) * 0.5 * (own > 0)
                own_words += 1
            elif word not in _SILENT and word not in allowed and not word.isdigit():
                foreign += 1
        if strong and foreign <= own_words:
            scored.append((score, question))
    return sorted(scored, key=lambda pair: -pair[0])


def _likeness(word: str, words: Sequence[str]) -> float:
    """Return 1 if `word` is in `words`, 0.75 if it is there with a typing error, else 0."""
    if word in words:
        return 1.0
    # Short words are similar to too many others.
    slack = 0 if len(word) < 5 else 1 if len(word) < 9 else 2
    return 0.75 if slack and any(distance(word, other, slack) <= slack for other in words) else 0.0


def distance(word: str, other: str, most: int) -> int:
    """Return the optimal string alignment distance of two words; any number above `most` if it is larger."""
    if abs(len(word) - len(other)) > most:
        return most + 1
    before, last = [0] * (len(other) + 1), list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted)))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]


def operation_names(ops: Iterable[str]) -> Mapping[str, str]:
    """Return the jaxpr operations in `ops`, by each name or beginning that a user may type."""
    present = dict.fromkeys(ops)  # in order, so that a page has the same bytes each time
    return {**{name: op for name, op in _OPERATIONS.items() if op in present}, **{op: op for op in present}}


def operation_in(words: Iterable[str], names: Mapping[str, str]) -> str:
    for word in words:
        exact = names.get(word) or names.get(word.replace("-", "_"))
        by_prefix = next((op for name, op in names.items() if len(name) > 3 and word.startswith(name)), "")
        if exact or by_prefix:
            return exact or by_prefix
    return ""


_TITLES = {question.key: question.title for question in QUESTIONS}


def reply(
    key: str, text: str, certainty: str = "exact", stage: str = "", nodes: Iterable[int] = (), hint: str = ""
) -> Answer:
    return Answer(_TITLES[key], text, certainty, stage, tuple(nodes), hint)


def no_program(key: str) -> Answer:
    return reply(key, "There is no optimized program in this capture.", "unknown")


def passes_hint(capture: Capture) -> str:
    """Return a hint that leads to the passes of a capture; empty if they are recorded, or can't be."""
    if capture.has_passes or (capture.read_passes or capture.record) is None:
        return ""
    cost = ", which compiles once more" if capture.record is not None else ""
    return f"look at capture.passes first (%explore --passes){cost}."


def agree(things: Sized | int, one: str, many: str) -> str:
    count = things if isinstance(things, int) else len(things)
    return one if count == 1 else many


def joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))
