"""The list of questions, the search for the question that a text means, and the parts of a reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import NamedTuple

from explorer.model.answers import Answer, Question
from explorer.model.capture import Capture

# Names of `explorer.targets()` that a question may have, and words for kinds of hardware.
# By name of a kind, the device that stands for it.
KINDS_OF_HARDWARE = {"gpu": "h100", "gpus": "h100", "nvidia": "h100", "tpu": "v5e", "tpus": "v5e"}
_DEVICES = "h100 h200 gh200 b200 a100 l4 rtx4090 mi250x mi300x v4 v5e v5p v6e v7x avx2 avx512 amx"
HARDWARE = frozenset(_DEVICES.split())
QUESTIONS = tuple(
    Question(key, title, tuple(words.split()), tuple(hints.split()), tuple(slots.split()))
    for key, title, words, hints, slots in (
        (
            "made",
            "which line made this kernel?",
            "made makes make came come comes belongs belong origin generated produced created corresponds source "
            "originate originates turned",
            "line lines fusion kernel fusions kernels this code python called part",
            "name",
        ),
        (
            "copies",
            "why are there transposes and copies?",
            "transpose transposes transposed transposing copy copies copied copying layout layouts duplicating "
            "duplicated duplicate shuffle shuffles",
            "why added inserted inserting inserts adds many changes extra avoid added x before cache dot",
            "",
        ),
        (
            "largest",
            "what is the biggest buffer, and who makes it?",
            "buffer buffers biggest largest memory peak peaks oom hbm ram vram footprint allocation allocations "
            "resource_exhausted blame temporary temporaries high-water",
            "array arrays tensor tensors maker makes made big large needs take takes taking space bytes gb much "
            "reduce lower intermediate intermediates run usage holds high fit uses needs need biggest tensor "
            "gigabytes makes up mark",
            "",
        ),
        (
            "removed",
            "what happened to it? (say which: line 5, multiplication)",
            "removed removes remove eliminated eliminates gone vanished deleted killed disappeared disappear dropped "
            "folded merged simplified became become becomes happened happens optimised optimized optimize dead missing "
            "compiled turned turns throw thrown throws",
            "pass passes line lines who away equations equation op operation operations dce into unused softmax "
            "computed unused gradient multiply",
            "line name",
        ),
        (
            "printed",
            "did my print run?",
            "print prints printed printing log logging debug.print",
            "run runs ran debug why once only every call each nothing shows twice time statement statements show "
            "output executes execute something only every",
            "",
        ),
        (
            "recompiled",
            "why did it recompile?",
            "recompile recompiles recompiled recompiling recompilation recompilations retrace retraced retraces "
            "retracing again anew cache",
            "why compile compiled compiles compiling trace traced every call each keep keeps time times many often "
            "causes caused cause new miss second argument arguments retracing batch size changed calls between "
            "smaller larger shape",
            "",
        ),
        (
            "precision",
            "in which precision do my products run?",
            "bf16 bfloat16 f16 float16 f32 float32 f64 float64 fp16 fp32 precision half dtype dtypes tf32 f8 fp8 "
            "int8 multiplications",
            "product products matmul matmuls multiplication multiplications dot dots run runs running computed compute "
            "accumulate accumulated accumulates einsum einsums convolution convolutions done still really full "
            "weights params happen 16-bit 32-bit accumulates",
            "",
        ),
        (
            "donated",
            "was donation used?",
            "donate donated donation donates donating donations alias aliased aliases aliasing inplace in-place "
            "place reused donate_argnums overwritten overwrite",
            "used argument arguments buffer buffers memory reused reuse input inputs work worked params state updated "
            "update output outputs usable warning warns old optimizer do did anything",
            "",
        ),
        (
            "slow",
            "which line or kernel is slow?",
            "slow slowest slower expensive costly costs cost bottleneck bottlenecks hottest hot hotspot heavy heaviest "
            "dominates dominate dominant spend spends spent spending time longest",
            "fusion fusions kernel kernels runtime takes take taking line lines part parts long op ops operation "
            "operations  "
            "compute go goes going why step block layer layers worst",
            "line",
        ),
        (
            "remat",
            "what would remat bring?",
            "remat rematerialise rematerialize rematerialisation rematerialization checkpoint checkpointing recompute "
            "recomputing jax.checkpoint rematerialisation",
            "bring save saves memory much gradient help worth backward gain extra compute wrap layer block help "
            "cost would",
            "",
        ),
        (
            "unfused",
            "what is not fused, and why?",
            "unfused fused fuse fuses fusing separate separately fusion fusions fusd standalone",
            "why kernel kernels together did everything whole one single stops add op ops matmul matmuls softmax "
            "reduce elementwise left alone neighbouring",
            "",
        ),
        (
            "materialised",
            "is the mask, or any N×N array, materialised?",
            "materialised materialized materialise materialize materialises materializes mask nxn n×n n*n masks "
            "n-by-n realised realized",
            "intermediate intermediates square scores score attention memory written array matrix full causal stored "
            "big large scores pairwise distances one-hot exist exists real actual attention computed stored",
            "",
        ),
        (
            "gathered",
            "what is gathered?",
            "gathered gather gathers gathering replicated replication all-gather allgather all-gathers",
            "devices device whole mistake weights params parameters why array arrays every expect collecting "
            "collected anything params full",
            "",
        ),
        (
            "sharded",
            "how is it sharded? (say what: an argument, a kernel)",
            "sharded sharding shardings shard split partitioned partition distributed laid",
            "devices device mesh axis axes array argument arguments model data layer weight weights params "
            "parameters output across over spec along activations piece pieces layout batch",
            "name",
        ),
        (
            "collectives",
            "which collectives cost most?",
            "collective collectives communication communicate communicates sends send sent network all-reduce "
            "allreduce all-reduces reduce-scatter psum communicated cross-device",
            "cost costs expensive devices device bytes slow slowest many time much many between each line lines "
            "which overlap  "
            "overlaps overlapped data move moves moved traffic step needs",
            "",
        ),
        (
            "machine",
            "what runs on the hardware for this line?",
            "gpu tpu cpu hardware ptx sass assembly registers register machine llvm spills spill bundles simd "
            "vectorized avx vectorised",
            "runs run line code kernel kernels instructions generated execute executes loop body belongs sum",
            "line",
        ),
        (
            "hardware",
            "what would it cost on other hardware? (say which: H100, v5e)",
            f"gpu gpus tpu tpus nvidia accelerator hardware {_DEVICES}",
            "cost costs time run runs take takes fast faster slow slower long estimate estimated step call seconds "
            "different another other performance hardware would how ran same instead thing quicker laptop cpu mine",
            "",
        ),
        (
            "duration",
            "how long does a call take?",
            "long latency runtime milliseconds ms microseconds throughput duration wall microseconds seconds",
            "call calls take takes run runs one per step many execution execute time seconds second each clock "
            "once warmed warm many steady",
            "",
        ),
        (
            "compiling",
            "how long did it take to compile?",
            "compile compiling compilation compiles lowering tracing build hangs compiler",
            "long slow time times take took takes why seconds trace cost costs spent spend first call forever "
            "many went minute busy split between backend tracing",
            "",
        ),
        (
            "totals",
            "how many FLOPs and bytes does it take?",
            "flops flop bytes gflops arithmetic traffic gflop floating-point",
            "many much total does do move moves moved read reads written writes write line take intensity cost count "
            "kernel kernels floating point overall forward number amount",
            "line",
        ),
        (
            "counts",
            "how many kernels run?",
            "count counts number many",
            "kernels kernel fusions fusion equations instructions operations ops nodes launches launched launch run "
            "runs total became remain hlo jaxpr dots final left compared how copies loops",
            "",
        ),
        (
            "constants",
            "are arrays baked in as constants?",
            "constant constants baked captured closure closed literal literals embedded consts",
            "big large array arrays weights data over program any why params parameters numpy became became "
            "embedding table executable graph inside",
            "",
        ),
        (
            "passes",
            "what did the passes change?",
            "pass passes pipeline optimizations optimisations optimization algebraic simplification stage stages",
            "changed changes change did made ran run added list biggest xla's order what effect rewrote biggest "
            "optimiser optimizer before after differ hlo step",
            "name",
        ),
        (
            "loops",
            "which loops remain, and how often do they run?",
            "loop loops scan scans while unrolled unroll unrolling unrolls iterations iteration fori_loop "
            "while_loop flattened survive",
            "many times python run runs remain remains long length body inside often still did became layers "
            "straight-line python compiled program unrolled",
            "",
        ),
        (
            "outside",
            "which libraries or Python functions does it call?",
            "callback callbacks python host custom-call custom-calls custom library libraries cublas cudnn lapack "
            "pallas triton pure_callback io_callback onednn external",
            "call calls called back kernel kernels into function functions run runs every transfer anywhere goes "
            "cholesky solver qr svd fft ffi",
            "",
        ),
        (
            "bound",
            "is it limited by arithmetic or by memory?",
            "bound limited limits limit roofline memory-bound compute-bound",
            "compute memory bandwidth arithmetic intensity kernel kernels flops performance speed am sit matmul where",
            "",
        ),
        (
            "shapes",
            "what are the shapes of its inputs and outputs?",
            "shape shapes input inputs output outputs signature returns return returned dimensions sizes",
            "dtype dtypes types type arguments argument results result take takes give gives size sizes x args",
            "",
        ),
        (
            "casts",
            "where are dtypes converted?",
            "cast casts casting casted convert converts converted conversion conversions upcast upcasts upcasted "
            "promoted promotion promotions promote promotes astype",
            "dtype dtypes type types f32 float32 bf16 bfloat16 f64 float64 line lines why back left silently "
            "something list convert astype",
            "",
        ),
        (
            "pitfalls",
            "is anything wrong with it?",
            "pitfall pitfalls lint wrong mistake mistakes problem problems warnings warning suspicious bug bugs "
            "antipattern gotchas smells flags",
            "anything common line lines red classic jax in one hurts",
            "",
        ),
        (
            "faster",
            "how do I make it faster?",
            "faster speed speedup optimize optimise improve quicker performance tips optimize",
            "make run runs up try first should change kernel line could some",
            "",
        ),
    )
)
_ARTICLES = "a an the it its this that these those my your our i me you we there here any some one they them he mine"
_VERBS = (
    "is are was were be been being do does did has have had can could would will should might not no please tell show "
    "give list find explain see know get got gets getting want need look mean means using use happening seem really"
)
_PARTICLES = (
    "of in on at to for from by with and or what which who where when how why if so as all out up than then but"
)
_SUBJECTS = (
    "program function model code jax xla compiler module computation stuff thing things just actually exactly now most "
    "more jit jitted hlo currently inside during else used into other others go goes everything array arrays value "
    "values  "
    "per each every still always lot very much way whole own work works working sure exactly able never wrote "
    "doing done  "
    "didnt dont doesnt wasnt isnt ask asked around something anywhere ones because am pls whats left final real "
    "end ends  "
    "ever whether also already just first once thats theres im give given"
)
SILENT = frozenset(f"{_ARTICLES} {_VERBS} {_PARTICLES} {_SUBJECTS}".split())
LINE = re.compile(r"\blines?\s*(\d+)")
# Beginnings of words that users type for an operation, and its name in the jaxpr.
_OPERATIONS = {
    **{"multipl": "mul", "times": "mul", "addition": "add", "plus": "add", "subtract": "sub", "minus": "sub"},
    **{"divi": "div", "matmul": "dot_general", "product": "dot_general", "dot": "dot_general", "einsum": "dot_general"},
    **{"cast": "convert_element_type", "convert": "convert_element_type", "broadcast": "broadcast_in_dim"},
    **{"where": "select_n", "select": "select_n", "negat": "neg", "exponential": "exp", "power": "pow"},
    **{"sum": "reduce_sum", "max": "reduce_max", "min": "reduce_min", "logarithm": "log", "sine": "sin"},
}


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case and in order, without punctuation; `n't` becomes the word `not`."""
    plain = text.lower().replace("’", "'").replace("n't", " not").replace("'s ", " ")
    letters = [letter if letter.isalnum() or letter in "_×*.-" else " " for letter in plain]
    return [word for raw in "".join(letters).split() if (word := raw.strip("._*-"))]


class Match(NamedTuple):
    """A question that a text may mean.

    Args:
        score: Sum over the words that it uses.
        question: The question.
        unused: Words that it can't use; with any, another question is meant.
    """

    score: float
    question: Question
    unused: tuple[str, ...]


def rank(text: str, names: Callable[[str], bool] = lambda word: False) -> list[Match]:
    """Return the questions that share a keyword with a text: those that use all of its words first, then by score.

    A keyword scores 2 and a hint 1, half a point less with a typing error. A line, `line 5`, and a word for which
    `names` is true are used by questions with that slot.
    """
    lowered = text.lower()
    words = [*dict.fromkeys(words_of(LINE.sub(" ", lowered)))]
    line = LINE.search(lowered)
    matches = [_match(question, words, line[0] if line else "", names) for question in QUESTIONS]
    return sorted(filter(None, matches), key=lambda match: (len(match.unused), -match.score))


def _match(question: Question, words: Sequence[str], line: str, names: Callable[[str], bool]) -> Match | None:
    """Return how a question uses words; None if none is a keyword of it."""
    score = strong = 0.0
    unused = [line] if line and "line" not in question.slots else []
    for word in words:
        own, hint = _likeness(word, question.words), _likeness(word, question.hints)
        strong = max(strong, own)
        if own or hint:
            score += max(own * 2, hint) - (max(own, hint) < 1) * 0.5 * (own > 0)
        elif word not in SILENT and not ("name" in question.slots and names(word)):
            unused.append(word)
    return Match(score, question, tuple(unused)) if strong else None


def meant(matches: Sequence[Match]) -> Question | None:
    """Return the one question that uses all words and scores best; None if there is none, or two are equal."""
    fitting = [match for match in matches if not match.unused]
    if not fitting or (len(fitting) > 1 and fitting[0].score == fitting[1].score):
        return None
    return fitting[0].question


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
