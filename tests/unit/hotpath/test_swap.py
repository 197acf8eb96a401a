"""A function that is asked about at each call is the same to everybody who looks."""

import argparse
import dis
import inspect
import json
import pickle
import sys
import textwrap
import threading
import traceback
import types
import warnings

import pytest

from explorer.hotpath.swap import NotSwappable, code_of, restore, swap


def go_on(*values):
    return None, object()


def with_everything(a, b=2, *args, c=3, **kw):
    def inner():
        return a + b

    try:
        return inner() + sum(args) + c + len(kw)
    finally:
        if b == 100:
            raise ValueError("no")


def called_everyway(function):
    return [function(1), function(1, 5), function(1, 2, 3, 4, c=9, z=1), function(b=4, a=1)]


def test_a_function_that_goes_on_gives_what_it_gave_and_hands_on_its_parameters():
    seen = []
    expected = called_everyway(with_everything)
    swapped = swap(with_everything, lambda *values: (seen.append(values), object()))
    try:
        assert called_everyway(with_everything) == expected
    finally:
        restore(with_everything, swapped)
    assert seen == [(1, 2, 3, (), {}), (1, 5, 3, (), {}), (1, 2, 9, (3, 4), {"z": 1}), (1, 4, 3, (), {})]


def test_what_is_given_instead_is_the_result():
    def f(x, /, *, y):
        return lambda: (x, y)

    swapped = swap(f, lambda *values: (values, None))
    assert f(1, y=2) == (1, 2)
    restore(f, swapped)
    assert f(1, y=2)() == (1, 2)


def test_it_looks_the_same_from_outside_and_is_the_very_same_after():
    before = with_everything.__code__
    seen = inspect.signature(with_everything), inspect.getsource(with_everything), with_everything.__defaults__
    swapped = swap(with_everything, go_on)
    try:
        assert (
            inspect.signature(with_everything),
            inspect.getsource(with_everything),
            with_everything.__defaults__,
        ) == seen
        assert pickle.loads(pickle.dumps(with_everything)) is with_everything
        assert code_of(with_everything) is before
        assert with_everything.__code__.co_varnames == before.co_varnames
    finally:
        restore(with_everything, swapped)
    assert with_everything.__code__ is before


def test_a_function_that_got_other_code_meanwhile_keeps_it():
    def f():
        return 1

    def newer():
        return 2

    swapped = swap(f, go_on)
    f.__code__ = newer.__code__  # as a reloader does
    restore(f, swapped)
    assert f() == 2


def test_a_traceback_has_the_users_frames_alone():
    def trace():
        with pytest.raises(ValueError, match="no") as caught:
            with_everything(1, 100)
        return traceback.extract_tb(caught.value.__traceback__)[1:]

    expected = trace()
    swapped = swap(with_everything, go_on)
    try:
        assert trace() == expected
    finally:
        restore(with_everything, swapped)


def test_who_looks_up_the_stack_sees_what_is_there():
    def f():
        warnings.warn("careful", stacklevel=2)
        return sys._getframe(1).f_lineno, sorted(locals())

    def seen():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            return f(), [(warning.filename, warning.lineno) for warning in caught]

    expected = seen()
    swapped = swap(f, go_on)
    assert seen() == expected
    restore(f, swapped)


def test_recursion_goes_as_deep():
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    deep = sys.getrecursionlimit() - len(inspect.stack()) - 20
    swapped = swap(depth, go_on)
    assert depth(deep) == deep
    restore(depth, swapped)


def test_what_is_kept_ends_with_the_call():
    ended = []

    class Kept:
        def __del__(self):
            ended.append("end")

    def f(fails):
        ended.append("body")
        if fails:
            raise KeyError
        return "result"

    swapped = swap(f, lambda *values: (None, Kept()))
    assert f(False) == "result"
    with pytest.raises(KeyError):
        f(True)
    restore(f, swapped)
    assert ended == ["body", "end"] * 2


def functions_of_modules(*modules):
    for module in modules:
        for value in vars(module).values():
            for inner in vars(value).values() if isinstance(value, type) else (value,):
                if isinstance(inner, types.FunctionType):
                    yield inner


def test_the_instructions_of_the_standard_library_are_found_again_in_order():
    count = 0
    for function in functions_of_modules(argparse, inspect, textwrap, json.decoder, traceback, threading):
        if inspect.isgeneratorfunction(function):
            with pytest.raises(NotSwappable):
                swap(function, go_on)
            continue
        own = function.__code__
        swapped = swap(function, go_on)
        restore(function, swapped)
        assert function.__code__ is own
        names = [instruction.opname for instruction in dis.get_instructions(own)]
        tail = names[names.index("RESUME") + 1 :]
        assert [instruction.opname for instruction in dis.get_instructions(swapped)][-len(tail) :] == tail
        assert len(list(swapped.co_lines())) >= len(list(own.co_lines()))
        count += 1
    assert count > 300


def test_a_program_of_the_standard_library_runs_through_it():
    text = json.dumps({"a": [1, 2.5, None, {"b": "c" * 50}]}, indent=2)

    def worked():
        parser = argparse.ArgumentParser(prog="p")
        parser.add_argument("--n", type=int, default=3)
        wrapped = textwrap.fill(textwrap.dedent(text), 20)
        return parser.parse_args(["--n", "5"]), wrapped, parser.format_help()

    expected, calls, swapped = worked(), [], {}
    try:
        for function in functions_of_modules(argparse, textwrap):
            if not inspect.isgeneratorfunction(function):
                swapped[function] = swap(function, lambda *values: (calls.append(1), object()))
        assert worked() == expected
    finally:
        for function, code in swapped.items():
            restore(function, code)
    assert len(calls) > 50


def test_threads_swap_and_restore_while_others_call():
    def f(x):
        return x + 1

    own, wrong, over = f.__code__, [], threading.Event()

    def call():
        while not over.is_set():
            if f(1) != 2 or code_of(f) is not own:
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        restore(f, swap(f, go_on))
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert f.__code__ is own
