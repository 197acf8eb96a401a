"""MLIR's locations, by their grammar (mlir.llvm.org/docs/Dialects/Builtin/#location-attributes), as scope and stack."""

from time import process_time

import pytest

from explorer.capture.readers.mlir_text import Locations
from explorer.model.graph import Frame

F = Frame("f.py", "f", 3, 8, 3, 20)
G = Frame("g.py", "g", 7, 1, 7, 5)
IN_F, IN_G = '"f"("f.py":3:8 to :20)', '"g"("g.py":7:1 to :5)'


@pytest.mark.parametrize(
    ("text", "scope", "stack"),
    [
        ("unknown", "", ()),
        ('"f.py":3:8', "", (Frame("f.py", "", 3, 8, 3, 0),)),
        ('"f.py":3:8 to :20', "", (Frame("f.py", "", 3, 8, 3, 20),)),
        ('"f.py":3:8 to 4:2', "", (Frame("f.py", "", 3, 8, 4, 2),)),
        (r'"a \"b\".py":3:8', "", (Frame('a "b".py', "", 3, 8, 3, 0),)),
        ('"jit(f)/add"', "jit(f)/add", ()),
        # A function's name is one without a slash and parentheses, around a file that has none yet.
        (IN_F, "", (F,)),
        ('"jit(f)"("f.py":3:8)', "jit(f)", (Frame("f.py", "", 3, 8, 3, 0),)),
        ('"f/add"("f.py":3:8)', "f/add", (Frame("f.py", "", 3, 8, 3, 0),)),
        (f'"add"({IN_F})', "add", (F,)),
        (f'"jit(f)/add"({IN_F})', "jit(f)/add", (F,)),
        (f'"add"(callsite("f.py":3:8 at {IN_G}))', "add", (Frame("f.py", "", 3, 8, 3, 0), G)),
        (f"callsite({IN_F} at {IN_G})", "", (F, G)),
        (f'"jit(f)/mul"(callsite({IN_F} at callsite({IN_G} at {IN_F})))', "jit(f)/mul", (F, G, F)),
        # Of several operations in one: the first that leads to a line.
        (f'fused["x", {IN_F}, {IN_G}]', "", (F,)),
        (f'fused<"loop">["a/b"({IN_G}), {IN_F}]', "a/b", (G,)),
        ('fused["x/y", "z"]', "x/y", ()),
        ("fused[]", "", ()),
        # What is cut off gives what stands before it.
        (f"callsite({IN_F}", "", (F,)),
        (f"callsite({IN_F} {IN_G})", "", (F,)),
        (f"fused[{IN_F}; {IN_G}]", "", (F,)),
        ("callsite", "", ()),
    ],
)
def test_a_location_is_a_scope_and_a_stack(text, scope, stack):
    assert Locations(()).read(text) == (scope, stack)


def test_locations_are_defined_by_name_before_or_after_their_use():
    lines = [
        "#loc = loc(unknown)",
        "module @m {",
        "#loc1 = loc(callsite(#loc3 at #loc2)) ",
        f"#loc2 = loc({IN_G})",
        f"#loc3 = loc({IN_F})",
        "#location = loc(#loc3)",
    ]
    locations = Locations(lines)
    assert locations.named("loc1") == ("", (F, G))
    assert locations.read("#loc2") == ("", (G,))
    assert locations.read('"jit(f)/add"(#loc3)') == ("jit(f)/add", (F,))
    assert locations.read("#loc") == locations.read("#loc9") == ("", ())


def test_a_location_that_refers_to_itself_is_nowhere():
    locations = Locations([f"#loc1 = loc(callsite({IN_F} at #loc2))", "#loc2 = loc(#loc1)"])
    assert locations.named("loc1") == ("", (F,))


def test_a_stack_is_as_deep_as_the_program_and_no_deeper_than_python_allows():
    chain = [f"#loc{i} = loc(callsite({IN_F} at #loc{i + 1}))" for i in range(1, 900)]
    assert len(Locations([*chain, f"#loc900 = loc({IN_G})"]).named("loc1")[1]) == 900
    # Each names the one before it twice: 2^12 frames, of which a thousand are kept.
    doubled = [f"#loc{i} = loc(callsite(#loc{i - 1} at #loc{i - 1}))" for i in range(1, 13)]
    assert len(Locations([f"#loc0 = loc({IN_F})", *doubled]).named("loc12")[1]) == 1000


@pytest.mark.parametrize(("depth", "frames"), [(100, 1), (101, 0)])
def test_locations_inside_each_other_are_read_a_hundred_deep(depth, frames):
    text = '"a/b"(' * depth + '"f.py":1:2' + ")" * depth
    assert len(Locations(()).read(text)[1]) == frames


def seconds_to_read(count):
    """Processor seconds for a module with so many locations, each of which names the first."""
    locations = Locations(
        [f"#loc0 = loc({IN_F})", *(f"#loc{i} = loc(callsite(#loc0 at #loc0))" for i in range(1, count))]
    )
    start = process_time()
    for i in range(count):
        locations.read(f"#loc{i}")
    return process_time() - start


def test_reading_a_module_takes_time_in_proportion_to_its_locations():
    few, many = (min(seconds_to_read(count) for _ in range(3)) for count in (1000, 16_000))
    assert many < 64 * few  # in proportion 16, by comparing with all earlier ones 256
