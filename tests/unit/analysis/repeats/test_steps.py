"""Sequences in a stream of operations: what GT's keys took for the same, and isn't."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.repeated_sequences import repeated_sequences
from explorer.model.results.hot_paths import Operation, Step


class Program:
    """Writes the steps of a program, as a recorder would."""

    def __init__(self):
        self.steps = []
        self._values, self._keys = count(1), {}

    def value(self):
        return next(self._values)

    def run(self, name, *inputs, parameters="", kind="f32[4]"):
        operation = (name, parameters, (kind,) * len(inputs))
        key = self._keys.setdefault(operation, len(self._keys) + 1)
        result = self.value()
        self._add(Operation(key, name, parameters, operation[2], (kind,)), "", inputs, (result,))
        return result

    def look(self, value):
        self._add(None, "value", (), (value,))

    def _add(self, operation, observed, inputs, outputs):
        number = len(self.steps) + 1
        self.steps.append(Step(number / 1e3, number, "MainThread", operation, observed, inputs, outputs, "a.py", 3))


def names(sequence):
    return [operation.name for operation in sequence.operations]


def test_turns_of_a_loop_are_one_sequence_on_other_values():
    program = Program()
    w, x = program.value(), program.value()
    for _ in range(10):
        h = program.run("tanh", program.run("matmul", x, w))
        w = program.run("sub", w, h)
        program.look(h)
    (sequence,) = repeated_sequences(program.steps)
    assert names(sequence) == ["matmul", "tanh", "sub"]
    assert sequence.starts == tuple(range(1, 41, 4))
    assert sequence.wiring == (((-1, 0), (-1, 1)), ((0, 0),), ((-1, 1), (1, 0)))
    assert sequence.name == "matmul → tanh → sub"


def test_turns_are_found_where_nothing_is_looked_at():
    program = Program()
    w, x = program.value(), program.value()
    for _ in range(10):
        w = program.run("sub", w, program.run("tanh", program.run("matmul", x, w)))
    (sequence,) = repeated_sequences(program.steps)
    assert len(sequence.operations) == 3
    assert sequence.count >= 9


# GT's defects -----------------------------------------------------------------------------------------------------


def test_a_sum_by_rows_is_not_one_by_columns():
    program = Program()
    for axis in (0, 1, 0, 1):
        x = program.value()
        program.look(program.run("sum", program.run("exp", x), parameters=f"axis={axis}"))
    sequences = repeated_sequences(program.steps)
    assert [sequence.operations[1].parameters for sequence in sequences] == ["axis=0", "axis=1"]
    assert [sequence.starts for sequence in sequences] == [(1, 7), (4, 10)]
    assert sequences[0].digest != sequences[1].digest


def test_other_wiring_is_another_sequence():
    program = Program()
    for is_crossed in (False, True, False, True):
        a, b = program.run("exp", x := program.value()), program.run("log", x)
        program.look(program.run("sub", *((b, a) if is_crossed else (a, b))))
    assert [sequence.starts for sequence in repeated_sequences(program.steps)] == [(1, 9), (5, 13)]


def test_the_same_value_twice_is_not_two_values():
    program = Program()
    for is_same in (False, True, False, True):
        x = program.value()
        program.look(program.run("exp", program.run("add", x, x if is_same else program.value())))
    assert [sequence.starts for sequence in repeated_sequences(program.steps)] == [(1, 7), (4, 10)]


def test_other_types_are_another_sequence():
    program = Program()
    for kind in ("f32[4]", "bf16[4]", "f32[8]", "f32[4]"):
        program.look(program.run("log", program.run("exp", program.value(), kind=kind), kind=kind))
    (sequence,) = repeated_sequences(program.steps)
    assert sequence.starts == (1, 10)


def test_different_operations_are_found_not_only_runs_of_one():
    program = Program()
    for _ in range(5):
        value = program.value()
        for name in ("exp", "exp", "sin", "exp"):
            value = program.run(name, value)
        program.look(value)
    (sequence,) = repeated_sequences(program.steps)
    assert names(sequence) == ["exp", "exp", "sin", "exp"]


def test_what_overlaps_is_counted_once():
    program = Program()
    value = program.value()
    for _ in range(7):
        value = program.run("exp", value)
    sequences = repeated_sequences(program.steps)
    assert sum(sequence.count * len(sequence.operations) for sequence in sequences) <= 7


@pytest.mark.parametrize("length", [1, 2, 3])
def test_nothing_goes_across_a_look_at_a_value(length):
    program = Program()
    for _ in range(6):
        program.look(program.run("exp", program.run("sin", program.value())))
    for sequence in repeated_sequences(program.steps, length=length):
        assert names(sequence) == ["sin", "exp"]
        assert length <= 2


programs = st.lists(
    st.tuples(st.sampled_from(["exp", "sin", "add"]), st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=40
)


@given(programs)
def test_each_time_computes_the_same(actions):
    """Judged by running the sequences on texts."""
    program = Program()
    values = [program.value() for _ in range(3)]
    for name, one, other, is_looked_at in actions:
        inputs = (values[one % len(values)], values[other % len(values)])
        values.append(program.run(name, *(inputs if name == "add" else inputs[:1])))
        if is_looked_at:
            program.look(values[-1])

    def ran(start, length):
        texts, results = {}, []
        for step in program.steps[start : start + length]:
            assert step.operation is not None
            inputs = [texts.setdefault(value, f"in{len(texts)}") for value in step.inputs]
            results.append(f"{step.operation.name}({', '.join(inputs)})")
            texts[step.outputs[0]] = f"r{len(results)}"
        return results

    covered = set()
    for sequence in repeated_sequences(program.steps):
        length = len(sequence.operations)
        runs = [ran(number - 1, length) for number in sequence.starts]
        assert len(runs) >= 2
        assert all(run == runs[0] for run in runs)
        for number in sequence.starts:
            places = set(range(number, number + length))
            assert not places & covered
            covered |= places
