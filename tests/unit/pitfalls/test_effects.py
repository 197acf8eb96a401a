"""What runs while a function is traced and not when it is called: prints, clocks, random numbers, files."""

import datetime
import io
import logging
import os
import pathlib
import pprint
import random
import secrets
import sys
import time
import uuid
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

from explorer.pitfalls.lint import lint
from tests.examples.linted import found, hits, piece

X = jnp.ones(3)
LOG = logging.getLogger("tests.pitfalls")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False
GENERATOR = np.random.default_rng(0)


class Drawing:
    def __init__(self):
        self.generator = np.random.default_rng(1)


DRAWING = Drawing()


@pytest.fixture
def talking():
    LOG.setLevel(logging.INFO)
    yield LOG
    LOG.setLevel(logging.NOTSET)


def prints(x, y):
    print(x)  # HIT
    total = x + y["a"]
    print("total", total * 2, f"of {x.shape} {y['a']}")  # HIT
    pprint.pprint(y)  # HIT
    print(x.shape, len(x), x.dtype)  # HIT
    if y is None:
        print("never")
    return total


def test_prints_are_found_where_they_ran(capsys):
    first, total, tree, shape = hits("impure-print", prints, X, {"a": X})
    assert [one.severity for one in (first, total, tree)] == ["warning"] * 3
    assert "x, a traced float32[3]" in first.evidence
    assert "total, a traced float32[3]" in total.evidence
    assert "y, a traced dict with float32[3]" in tree.evidence
    assert "prints:" not in first.message
    assert "calls 2, 3, … print nothing" in first.message
    assert piece(total) == """print("total", total * 2, f"of {x.shape} {y['a']}")"""
    # A print of what is known while tracing is mostly meant so.
    assert shape.severity == "note"
    assert "traced value" not in shape.evidence


def test_the_cure_of_a_print_is_the_same_text_with_jax_debug_print(capsys):
    first, total, *_ = hits("impure-print", prints, X, {"a": X})
    assert first.fix.text.startswith('jax.debug.print("{}", x) ')
    assert total.fix.text.startswith("""jax.debug.print("total {} of {} {}", total * 2, x.shape, y['a']) """)


def test_a_print_with_a_separator_is_called_back_as_it_is(capsys):
    def function(x, y):
        print(x, y, sep="; ")  # HIT
        return x

    [one] = hits("impure-print", function, X, X)
    assert one.fix.text.startswith('jax.debug.callback(lambda x, y: print(x, y, sep="; "), x, y) ')


def logs(x):
    LOG.debug("below its level: %s", x)  # HIT
    LOG.info("loss %s", x)  # HIT
    LOG.warning("x")  # HIT
    LOG.isEnabledFor(10)
    return x * 2


@pytest.mark.parametrize("level", [logging.INFO, logging.CRITICAL])
def test_a_log_is_found_at_whatever_level_its_logger_is(talking, level):
    talking.setLevel(level)
    _, info, _ = hits("impure-print", logs, X)
    assert info.fix.text.startswith("jax.debug.callback(lambda x: LOG.info('loss %s', x), x)".replace("'", '"'))


def writes_out(x):
    sys.stdout.write("x\n")  # HIT
    sys.stderr.write(str(x.shape))  # HIT
    warnings.warn("slow", stacklevel=1)  # HIT
    return x


def test_standard_streams_and_warnings_are_prints(capsys):
    with pytest.warns(UserWarning, match="slow"):
        assert {one.severity for one in hits("impure-print", writes_out, X)} == {"note"}


def asks(x):
    input("how many? ")  # HIT
    return x


def test_input_is_found(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("3\n"))
    [one] = hits("impure-print", asks, X)
    assert "input()" in one.message


def breaks(x):
    breakpoint()  # HIT
    return x


def test_a_breakpoint_is_found(monkeypatch):
    monkeypatch.setattr(sys, "breakpointhook", lambda *_: None)
    [one] = hits("impure-print", breaks, X)
    assert "jax.debug.breakpoint()" in one.fix.text


def test_a_print_in_a_loop_counts(capsys):
    def function(x):
        for _ in range(3):
            print(x)  # HIT
        return x

    [one] = hits("impure-print", function, X)
    assert "it ran 3 times" in one.evidence


def quiet(x):
    jax.debug.print("{}", x)
    record = []
    record.append(x)
    "".join(["a"])
    return x.sum()


def test_what_prints_while_the_program_runs_is_no_pitfall():
    assert not found("impure-print", quiet, X)


def clocks(x):
    start = time.perf_counter()  # HIT
    stamp = time.time()  # HIT
    day = datetime.datetime.now().hour  # HIT
    today = datetime.date.today().day  # HIT
    zone = datetime.timedelta(seconds=1).total_seconds()
    return x + start + stamp + day + today + zone + len(time.tzname)


def test_clocks_are_found_and_the_moment_told():
    findings = hits("impure-time", clocks, X)
    assert "time.perf_counter()" in findings[0].message
    assert f"{datetime.date.today():%Y}" in findings[1].evidence
    assert piece(findings[2]) == "datetime.datetime.now()"


def draws(x):
    a = random.random()  # HIT
    b = np.random.normal(size=x.shape)  # HIT
    c = [np.random.rand() for _ in range(2)]  # HIT
    d = GENERATOR.integers(3)  # HIT
    e = DRAWING.generator.normal()  # HIT
    f = random.Random().gauss(0, 1)  # HIT
    g = uuid.uuid4().int % 7  # HIT
    h = secrets.randbelow(7)  # HIT
    i = os.urandom(1)[0]  # HIT
    return x + a + b + c[0] + d + e + f + g + h + i


def test_random_numbers_are_found():
    findings = {one.line: one for one in hits("impure-random", draws, X)}
    first = min(findings)
    assert "random.random()" in findings[first].message
    assert "jax.random.uniform(key, …)" in findings[first].fix.text
    assert "jax.random.normal(key, …)" in findings[first + 1].fix.text
    assert "it drew 2 times" in findings[first + 2].evidence


def draws_the_same(x, key):
    generator = np.random.default_rng(0)
    table = generator.normal(size=3)
    np.random.RandomState(7)
    UUID = uuid.uuid5(uuid.NAMESPACE_DNS, "explorer")
    return x + table + jax.random.normal(key, (3,)) + UUID.int % 7


def test_what_a_seed_makes_anew_each_time_is_as_good_as_a_constant():
    assert not found("impure-random", draws_the_same, X, jax.random.key(0))


def test_linting_does_not_draw():
    state = GENERATOR.bit_generator.state
    found("impure-random", draws_the_same, X, jax.random.key(0))
    assert GENERATOR.bit_generator.state == state


def asks_outside(x, path):
    with open(path) as file:  # HIT
        file.read()
    a = len(os.environ["HOME"])  # HIT
    b = os.environ.get("EXPLORER_NONE", "1")  # HIT
    c = os.getenv("EXPLORER_NONE", "1")  # HIT
    d = pathlib.Path(path).read_text()  # HIT
    e = os.path.exists(path)  # HIT
    f = np.loadtxt(path)  # HIT
    g = {"a": 1}.get("a")
    h = os.path.join("a", "b")
    return x + a + int(b) + int(c) + len(d) + e + f + g + len(h)


def test_files_and_the_environment_are_found(tmp_path):
    path = tmp_path / "numbers"
    path.write_text("1")
    findings = found("impure-io", lambda x: asks_outside(x, str(path)), X)
    first = asks_outside.__code__.co_firstlineno
    assert sorted(one.line - first for one in findings) == [1, 3, 4, 5, 6, 7, 8]
    assert "$" not in "".join(one.evidence for one in findings)


def test_the_environments_values_are_not_shown(monkeypatch):
    monkeypatch.setenv("TOKEN", "sesame")

    def function(x):
        return x * len(os.environ["TOKEN"])  # HIT

    [one] = hits("impure-io", function, X)
    assert "sesame" not in repr(one) + one.evidence + one.fix.text


def test_a_question_is_quoted_where_it_is_short():
    def brief(x):
        return x * len(os.getenv("EXPLORER_NONE", "1"))  # HIT

    def lengthy(x):
        return x * len(os.getenv("EXPLORER_NONE_THAT_HAS_A_LONG_NAME_INDEED", default="1"))  # HIT

    assert hits("impure-io", brief, X)[0].message.startswith('`os.getenv("EXPLORER_NONE", "1")` accesses')
    assert hits("impure-io", lengthy, X)[0].message.startswith("this accesses")


def formats(x):
    y = x * 2
    jax.debug.print(f"loss {y} of {x.shape}")  # HIT
    a = f"value {y:}"  # HIT
    b = str(x)  # HIT
    c = "%s" % y  # HIT  # noqa: UP031
    c = "%s and %s" % (y, 1)  # noqa: UP031
    return y * len(a + b + c)


def test_texts_made_of_traced_values_are_found():
    findings = {one.text: one for one in found("formatted-tracer", formats, X)}
    assert len(findings) == 5
    printed = next(one for text, one in findings.items() if "debug" in text)
    assert printed.fix.text == 'jax.debug.print("loss {} of {}", y, x.shape)'
    assert piece(printed) == 'jax.debug.print(f"loss {y} of {x.shape}")'


def formats_numbers(x):
    y = x.sum()
    print(f"loss {y:.2f} of {len(x)}")  # HIT
    return y


def test_a_format_for_numbers_ends_the_trace():
    [one] = hits("formatted-tracer", formats_numbers, X)
    assert one.severity == "error"
    assert one.fix.text.startswith('jax.debug.print("loss {:.2f} of {}", y, len(x)) ')


def formats_well(x, scale=2):
    name = f"{x.shape} {x.dtype} {x.ndim} {len(x)} {scale} {type(x)}"
    with jax.named_scope(f"layer_{scale}"):
        y = x * scale
    size = x.shape[0]
    if size == 7:
        raise ValueError(f"not {x}")
    assert size == 3, f"bad {x}"
    jax.debug.print("{}", f"{size}")
    return y * len(name)


def test_texts_of_what_is_known_while_tracing_are_fine():
    assert not found("formatted-tracer", formats_well, X)


def test_of_a_printed_text_one_finding_is_a_warning(capsys):
    def function(x):
        print(f"x = {x}")  # HIT
        return x

    assert [one.severity for one in hits("impure-print", function, X)] == ["warning"]
    assert [one.severity for one in hits("formatted-tracer", function, X)] == ["note"]


def test_a_text_for_a_silent_log_is_that_of_any_log(talking):
    def function(x):
        LOG.debug(f"x = {x}")  # HIT
        return x

    assert [one.severity for one in hits("formatted-tracer", function, X)] == ["note"]
    hits("impure-print", function, X)


def calls_back(x):
    jax.debug.print("{}", x)  # HIT
    io_callback(lambda v: None, None, x, ordered=True)  # HIT

    def body(carry, _):
        return jax.pure_callback(np.sin, carry, carry), None  # LOOP

    return jax.lax.scan(body, x, None, length=3)[0]


def test_effects_that_leave_the_fast_path_are_notes():
    findings = hits("slow-path-effect", calls_back, X)
    assert {one.severity for one in findings} == {"note"}
    assert "wait for each other" in findings[1].message
    assert "wait for each other" not in findings[0].message


def test_a_callback_in_a_compiled_loop_is_a_transfer():
    [one] = hits("host-transfer", calls_back, X, mark="LOOP")
    assert one.severity == "warning"


STEP = jax.jit(lambda x: x * 2)


def drives(x):
    for i in range(4):
        x = STEP(x)
        jax.block_until_ready(x)  # HIT
        if i % 2 == 0:
            jax.block_until_ready(x)
    jax.block_until_ready(x)
    return x


def test_waiting_in_each_turn_of_a_loop_is_found():
    [one] = hits("host-transfer", drives, X)
    assert piece(one) == "jax.block_until_ready(x)"


def test_items_of_results_in_a_loop_wait_too():
    def train(x):
        losses = []
        for _ in range(3):
            x = STEP(x)
            losses.append(x.sum().item())  # HIT
        return losses

    [one] = hits("host-transfer", train, X)
    assert piece(one) == "x.sum().item()"


def copies_out(x):
    a = np.asarray(X)  # HIT
    b = float(X[0])
    c = X.sum()
    return x + a + b + c + np.asarray([1.0, 2.0, 3.0]) + float(2)


def test_an_array_brought_to_the_host_in_a_trace_is_a_note():
    [one] = hits("host-transfer", copies_out, X)
    assert one.severity == "note"


@pytest.mark.slow
def test_the_plain_training_step_has_no_effects():
    from tests.examples.training import training_step

    step, arguments = training_step(1)
    assert not [one for one in lint(step, *arguments) if one.code < "EX009" or one.code in ("EX025", "EX027", "EX029")]


reference = jax.new_ref(jnp.zeros(3))


def counts_in_a_reference(x):
    reference[...] = reference[...] + x  # HIT
    own = jax.new_ref(x)
    own[0] = 1.0
    return own[...]


def test_a_reference_from_outside_leaves_the_fast_path():
    [one] = hits("slow-path-effect", counts_in_a_reference, X)
    assert "a mutable reference" in one.message
