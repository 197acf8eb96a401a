"""An instruction log over time: 240 equal parts of it, each thread's operations in them."""

import pytest

import explorer as ex
from explorer.files.instruction_log import LogLine, parse_line, read_timeline
from explorer.model.results.hot_paths import LoggedCompile

PARTS = 240


def line(seconds, kind, source, name, note="", **details):
    return LogLine(seconds, 1, kind, source, name, details, note)


def timeline(tmp_path, *lines):
    path = tmp_path / "a.log"
    path.write_text("\n".join([*map(str, lines), "a person's note"]), encoding="utf-8")
    return read_timeline(path)


def test_operations_are_counted_by_thread_and_part(tmp_path):
    read = timeline(
        tmp_path,
        line(2.0, "TRACE", "MAIN", "Starting"),
        line(2.0, "RUN", "MAIN", "add"),
        line(2.99, "RUN", "MAIN", "add"),
        line(3.01, "RUN", "MAIN", "step", "(COMPILED)"),
        line(3.25, "RUN", "WORKER", "mul"),
        line(3.5, "RUN", "MAIN", "Stopped"),
        line(4.0, "RUN", "MAIN", "add"),
    )
    assert (read.name, read.start, read.end) == ("a.log", 2.0, 4.0)
    main, worker = read.threads
    assert (main.thread, worker.thread) == ("MAIN", "WORKER")
    assert {at: count for at, count in enumerate(main.single) if count} == {0: 1, 118: 1, 239: 1}
    assert {at: count for at, count in enumerate(main.compiled) if count} == {121: 1}
    assert {at: count for at, count in enumerate(worker.single) if count} == {150: 1}
    assert {len(parts) for thread in read.threads for parts in (thread.single, thread.compiled)} == {PARTS}
    assert read.counts == {("add", False): 3, ("step", True): 1, ("mul", False): 1}
    assert next(iter(read.counts)) == ("add", False)


def test_a_log_of_one_moment_is_its_first_part(tmp_path):
    (thread,) = timeline(tmp_path, line(1.0, "RUN", "MAIN", "add")).threads
    assert thread.single == (1, *[0] * (PARTS - 1))


def test_a_compile_that_is_a_part_of_a_hot_functions_is_not_counted_again(tmp_path):
    read = timeline(
        tmp_path,
        line(1.0, "COMPILE", "MAIN", "Starting", function="step", hot="1"),
        line(1.25, "COMPILE", "MAIN", "Starting", function="step"),
        line(1.5, "COMPILE", "OTHER", "Starting", function="step"),
        line(1.75, "COMPILE", "MAIN", "Complete", function="step"),
        line(2.0, "COMPILE", "OTHER", "Complete", function="step"),
        line(2.25, "COMPILE", "MAIN", "Complete", function="step", hot="1"),
        line(2.5, "COMPILE", "MAIN", "Starting", sequence="ab12"),
        line(2.75, "COMPILE", "MAIN", "Failed", sequence="ab12"),
        line(3.0, "COMPILE", "MAIN", "Complete", sequence="ab12"),
        line(3.25, "COMPILE", "MAIN", "Complete", function="never begun"),
        line(3.5, "COMPILE", "MAIN", "Starting", function="never done"),
    )
    assert read.compiles == (
        LoggedCompile("step", 1.5, 2.0, False),
        LoggedCompile("step", 1.0, 2.25, True),
        LoggedCompile("ab12", 2.5, 3.0, False),
    )
    assert (read.threads, read.counts) == ((), {})


def test_a_file_without_a_line_of_a_log_is_refused_with_how_to_have_one(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing\n")
    with pytest.raises(ex.errors.UnreadableTextError) as refused:
        read_timeline(path)
    assert str(refused.value) == (
        f"{path} has no line of an instruction log.\n"
        "  Hint: python -m explorer trace, or EXPLORER_INSTRUCTION_LOG=path, writes one."
    )


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (line(1.5, "RUN", "MAIN", "add"), "  1.500s | #0001 | RUN        | MAIN   | add |"),
        (line(1.5, "RUN", "MAIN", "add", "(COMPILED)"), "  1.500s | #0001 | RUN        | MAIN   | add | (COMPILED)"),
        (line(1234.5, "COMPILE", "a b", "x", k="v w"), '1234.500s | #0001 | COMPILE    | "a b"  | x | k="v w"'),
        (line(0.0, "RUN", "", "=", "", a="|"), '  0.000s | #0001 | RUN        | ""     | "=" | a="|"'),
    ],
)
def test_a_line_is_written_in_columns_and_read_back(written, says):
    assert str(written) == says
    assert parse_line(says) == parse_line(says + "\r\n") == written


@pytest.mark.parametrize("text", ["", "a note", "1.5s | #1 | RUN", "x | #0001 | RUN | MAIN | add |"])
def test_what_is_no_line_of_a_log_is_none(text):
    assert parse_line(text) is None
