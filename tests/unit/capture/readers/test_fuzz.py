"""Damaged and hostile input never hangs and never crashes: it gives a capture, or an ExplorerError."""

import gzip
import json
import random
import signal
import struct
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from html.parser import HTMLParser
from pathlib import Path
from time import process_time

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from explorer.files.capture import decode
from explorer.files.container import VERSION
from tests.examples.hostile import MARKUP, MODULE_OF_MARKUP
from tests.support.functions import FUNCTIONS, compiled_text, loss
from tests.support.xla_oracle import _hlo

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parents[3] / "support" / "hlo_samples"


@contextmanager
def deadline(seconds):
    """TimeoutError if what is inside takes longer; Python's regular expressions notice it too."""

    def late(*_):
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def look(source):
    """Open it, and make everything of it that a view needs."""
    try:
        capture = ex.open_hlo(source)
    except ex.ExplorerError as error:
        return str(error)
    assert decode(capture.wire).id == capture.id
    for stage in capture.stages:
        assert len(stage.graph.operand) == stage.graph.operand_start[-1]
        assert all(0 <= line < stage.text.count("\n") + 1 for line in stage.graph.unread)
    return capture.to_html


# Damaged -------------------------------------------------------------------------------------------------------------


@cache
def texts():
    lowered = jax.jit(loss).lower(jnp.ones((3, 16, 16)), jnp.ones((4, 16)))
    operation = lowered.compiler_ir().operation
    return [
        compiled_text(*FUNCTIONS["gradient"]),
        compiled_text(*FUNCTIONS["sort"]),
        lowered.as_text(debug_info=True),
        operation.get_asm(print_generic_op_form=True, enable_debug_info=True),
        *(path.read_text() for path in sorted(SAMPLES.glob("*.hlo"))),
    ]


PIECES = (
    *'(){}"%,\n\0\\<',
    *(
        " = ",
        "ROOT ",
        "ENTRY ",
        "HloModule ",
        "metadata={",
        "})",
        "({",
        "loc(#loc",
        "source_line=",
        "/*",
        "*/",
        "calls=%",
    ),
    *("stack_frame_id=99999999999", "999999999999", "é\u2028", "\x0b", "f32[9999999999999999999999]", "dimensions={"),
    *("parameter(99)", "while(", "tensor<", "^bb0("),
)


def damaged(text, seed):
    """A text with a few accidents: bytes changed, cut out, doubled, lines moved."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 2, 4, 12))):
        at, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + chance.choice((1, 3, 40, 4000)))
        match chance.randrange(7):
            case 0:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[end:]
            case 2:
                text = text[:at] + chance.choice(PIECES) + text[end:]
            case 3:
                text = text[:end] + text[at:]
            case 4:
                lines = text.split("\n")
                chance.shuffle(lines)
                text = "\n".join(lines)
            case 5:
                lines = text.split("\n")
                i, k = chance.randrange(len(lines)), chance.randrange(len(lines))
                lines[i], lines[k] = lines[k], lines[i]
                text = "\n".join(lines)
            case _:
                text = text[: at if chance.random() < 0.2 else len(text)]
    return text


@pytest.mark.slow
@settings(max_examples=1000)
@given(which=st.integers(0, 8), seed=st.integers(0, 2**32))
def test_thousands_of_damaged_texts_are_opened_or_refused(which, seed):
    text = damaged(texts()[which], seed)
    with deadline(30):
        look(text)


@given(st.binary(max_size=300))
def test_any_bytes_are_opened_or_refused(data):
    with deadline(30):
        look(data)


@given(st.text(max_size=300))
def test_any_text_of_several_lines_is_opened_or_refused(text):
    with deadline(30):
        look(text + "\n" + text)


@cache
def proto():
    return _hlo.hlo_module_from_text(texts()[1]).as_serialized_hlo_module_proto()


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_a_damaged_proto_is_opened_or_refused(seed):
    chance = random.Random(seed)
    data = bytearray(proto())
    for _ in range(chance.randrange(1, 8)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    with deadline(30):
        look(bytes(data[: chance.choice((len(data), chance.randrange(1, len(data))))]))


# A capture file whose checksum fits, made by another hand ------------------------------------------------------------


@cache
def unpacked():
    wire = ex.open_hlo(compiled_text(*FUNCTIONS["chain"])).wire
    return gzip.decompress(wire[44:])


def packed(raw):
    payload = gzip.compress(raw, 1)
    digest = blake2b(payload, digest_size=16).digest()
    return struct.pack("<8sIQQ16s", b"EXPLORER", VERSION, len(raw), len(payload), digest) + payload


def read_all(wire):
    try:
        capture = decode(wire)
        for stage in capture.stages:
            list(map(repr, stage.graph.nodes))
        assert isinstance(capture.wire, bytes)
    except ex.ExplorerError:
        pass


@settings(max_examples=150)
@given(data=st.data())
def test_a_capture_file_with_altered_content_is_read_or_refused(data):
    raw = bytearray(unpacked())
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with deadline(30):
        read_all(packed(bytes(raw[: data.draw(st.sampled_from((len(raw), len(raw) // 2)))])))


OTHER = (None, True, -2, 0, 7, 2**40, 0.5, "", "text", [], [1], [0, 2**31], {}, {"strings": ["a"], "codes": [0, 4]})


@pytest.mark.slow
@settings(max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_a_capture_file_with_another_header_is_read_or_refused(seed):
    chance = random.Random(seed)
    (size,) = struct.unpack_from("<I", unpacked())
    header = json.loads(unpacked()[4 : 4 + size])
    place = header
    while True:
        key = chance.choice(sorted(place) if isinstance(place, dict) else range(len(place)))
        if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.2:
            break
        place = place[key]
    if chance.random() < 0.8:
        place[key] = chance.choice(OTHER)
    else:
        del place[key]
    head = json.dumps(header).encode()
    head += b" " * (-(4 + len(head)) % 4)
    with deadline(30):
        read_all(packed(struct.pack("<I", len(head)) + head + unpacked()[4 + size :]))


# Hostile: what would take time that grows with the square of its size, or worse --------------------------------------


def hlo(line):
    return (
        f"HloModule m\n\n%c (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n{line}\n  ROOT %r = f32[] tanh(%p)\n}}\n"
    )


def mlir(line):
    return (
        "module @m {\n  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
        f"{line}\n    return %arg0 : tensor<4xf32>\n  }}\n}}\n"
    )


def module_of_calls(last, *, cyclic=False):
    calls = "".join(
        f"%c{i} (p: f32[]) -> f32[] {{\n  %p{i} = f32[] parameter(0)\n"
        f"  ROOT %r{i} = f32[] call(%p{i}), to_apply=%c{(i + 1) % last if cyclic else i + 1}\n}}\n"
        for i in range(last)
    )
    return f"HloModule m\n{calls}ENTRY %e {{\n  %p = f32[] parameter(0)\n  ROOT %z = f32[] call(%p), to_apply=%c0\n}}\n"


def module_of_frames(count, parent):
    rows = "".join(f"{i} {{file_location_id=1 parent_frame_id={parent(i)}}}\n" for i in range(1, count))
    lines = "".join(
        f'  %p{i} = f32[] parameter({i}), metadata={{op_name="x" stack_frame_id={i}}}\n' for i in range(1, count)
    )
    return (
        'HloModule m\n\nFileNames\n1 "a.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
        f"1 {{file_name_id=1 function_name_id=1 line=3}}\n\nStackFrames\n{rows}\n\nENTRY %e {{\n{lines}}}\n"
    )


def module_of_locations(count, inside):
    rows = "".join(f"#loc{i} = loc({inside(i + 1)})\n" for i in range(1, count))
    return mlir("  %0 = stablehlo.tanh %arg0 : tensor<f32> loc(#loc1)") + rows + f'#loc{count} = loc("f.py":1:2)\n'


# By name: a text that grows with n. `c` is a letter that means something to a reader.
REPEATED = {
    "a line of an HLO computation": lambda c, n: hlo("  " + c * n),
    "the operands of an instruction": lambda c, n: hlo("  %x = f32[] add(" + c * n),
    "its type": lambda c, n: hlo("  %x = " + c * n),
    "its tuple type": lambda c, n: hlo("  %x = (" + c * n + " add(%p)"),
    "its attributes": lambda c, n: hlo("  %x = f32[] add(%p), " + c * n),
    "its op_name": lambda c, n: hlo('  %x = f32[] add(%p), metadata={op_name="' + c * n),
    "attributes over many lines": lambda c, n: hlo("  %x = f32[] add(%p), a={\n" + ("   " + c + "\n") * n),
    "a header": lambda c, n: "HloModule " + c * n + "\n%c " + c * n + "{\n  %p = f32[] parameter(0)\n}\n",
    "a header over many lines": lambda c, n: f"ENTRY x(\n{(c + chr(10)) * n}{{\n  %p = f32[] parameter(0)\n}}\n",
    "many short lines": lambda c, n: hlo(("  " + c + "\n") * n),
    "a line of an MLIR function": lambda c, n: mlir("  " + c * n),
    "an operation in the short form": lambda c, n: mlir("  %0 = stablehlo.tanh " + c * n),
    "an operation in the generic form": lambda c, n: mlir('  %0 = "stablehlo.tanh"(' + c * n),
    "an operation's type": lambda c, n: mlir("  %0 = stablehlo.tanh %arg0 : " + c * n),
    "a block's arguments": lambda c, n: mlir("  ^bb0(%x: " + c * n),
    "a location": lambda c, n: mlir("  %0 = stablehlo.tanh %arg0 : tensor<f32> loc(" + c * n + ")"),
    "a location's name": lambda c, n: mlir('  %0 = stablehlo.tanh %arg0 : tensor<f32> loc("' + c * n + '"(#loc1)'),
    "a location by name": lambda c, n: mlir("  %0 = a.b %arg0 : f32 loc(#loc1)") + "#loc1 = loc(" + c * n + ")\n",
    "many short lines of MLIR": lambda c, n: mlir(("  " + c + "\n") * n),
}
GROWING = {
    "blank lines": lambda n: "\n" * n + "HloModule m",
    "locations inside each other": lambda n: mlir(f"  %0 = a.b %arg0 : f32 loc({'callsite(' * n}"),
    "locations that double": lambda n: module_of_locations(n // 8, lambda i: f"callsite(#loc{i} at #loc{i})"),
    "locations in a chain": lambda n: module_of_locations(n // 8, lambda i: f'"a"(#loc{i})'),
    "frames in a chain": lambda n: module_of_frames(n // 16, lambda i: i),
    "frames in a circle": lambda n: module_of_frames(n // 16, lambda i: i + 2),
    "an id far out": lambda n: module_of_frames(20, lambda i: i).replace("\n9 {", "\n999999999 {"),
    "regions inside each other": lambda n: mlir('  %0 = "stablehlo.while"(%arg0) ({\n' * (n // 16)),
    "computations inside each other": lambda n: module_of_calls(n // 64),
    "computations in a circle": lambda n: module_of_calls(n // 64, cyclic=True),
    "a chain of instructions": lambda n: hlo("".join(f"  %x{i} = f32[] tanh(%x{i - 1})\n" for i in range(n // 16))),
    "operands to come": lambda n: hlo("".join(f"  %x{i} = f32[] add(%x{i}, %x{i + 1})\n" for i in range(n // 16))),
    "one name for all": lambda n: hlo("  %x = f32[] tanh(%x)\n" * (n // 16)),
    "a hundred thousand operands": lambda n: hlo("  %x = () tuple(" + ", ".join(["%p"] * n) + ")"),
}  # fmt: skip
LETTERS = "([{<\"'%,= \ta0\\/*.#:@-)}]>;"


def seconds_to_open(text):
    start = process_time()
    with suppress(ex.ExplorerError):
        ex.open_hlo(text)
    return process_time() - start


def assert_time_in_proportion(make, size):
    """Four times the size takes about four times as long; sixteen times would be the square."""
    texts = make(size), make(4 * size)
    best = [float("inf")] * 2
    with deadline(180):
        for _ in range(3):  # once is enough unless something else slowed it down
            best = [min(seconds, seconds_to_open(text)) for seconds, text in zip(best, texts, strict=True)]
            if best[1] < 9 * best[0] + 0.1:
                return
    raise AssertionError(f"{best[0]:.3f} s, then {best[1]:.3f} s for four times the size")


@pytest.mark.slow
@pytest.mark.parametrize("name", REPEATED)
def test_no_letter_repeated_makes_a_reader_hang(name):
    for letter in LETTERS:
        with deadline(30):
            seconds_to_open(REPEATED[name](letter, 20_000))


@pytest.mark.slow
@pytest.mark.parametrize("name", REPEATED)
def test_the_time_grows_in_proportion_whatever_is_repeated(name):
    for letter in LETTERS:
        assert_time_in_proportion(lambda n, letter=letter: REPEATED[name](letter, n), 12_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", GROWING)
def test_the_time_grows_in_proportion_however_things_are_nested(name):
    assert_time_in_proportion(GROWING[name], 12_000)


@pytest.mark.parametrize("name", GROWING)
def test_everything_of_a_deeply_nested_module_can_be_shown(name, tmp_path):
    with deadline(60):
        show = look(GROWING[name](6_000))
        if callable(show):
            assert show(tmp_path / "page.html").stat().st_size


# Names that would be markup ------------------------------------------------------------------------------------------


def test_markup_in_names_is_inert_in_everything_that_is_shown(tmp_path):
    capture = ex.open_hlo(MODULE_OF_MARKUP)
    # The name of the module is one that XLA refuses.
    assert capture.failure.startswith("2 lines unread; XLA's parser says of line 1: ")
    assert "</script>" in capture.function
    assert any(MARKUP in node.scope for node in capture.hlo.graph.nodes)
    page = capture.to_html(tmp_path / "page.html").read_text()
    bundle = capture._repr_mimebundle_()
    for shown in (page, bundle["text/html"]):
        elements = _Elements(shown)
        assert elements.names <= OURS
        assert elements.scripts == 4  # the viewer, what is opened later, the capture, and what starts it
        assert not [name for name in elements.attributes if name.startswith("on")]
        assert all(source.startswith("data:image/svg+xml;base64,") for source in elements.sources)


OURS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "p", "div", "img", "script"),
    *("details", "summary", "table", "thead", "tbody", "tr", "th", "td"),
}


class _Elements(HTMLParser):
    """What a browser would make of a page: its elements and their attributes."""

    def __init__(self, page):
        super().__init__()
        self.names, self.attributes, self.sources, self.scripts = set(), set(), [], 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.scripts += tag == "script"
        self.attributes |= {name for name, _ in attrs}
        self.sources += [value for name, value in attrs if name == "src"]
