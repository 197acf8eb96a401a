"""What is answered of arrays, kernels and copies, from programs as text: each sentence to the letter."""

import pytest

import explorer as ex
from explorer.analysis.array_questions import donated, largest, materialised
from explorer.analysis.kernel_questions import copies
from explorer.analysis.program_questions import precision, recompiled, remat, slow


def program(body, scheduled=True, head=""):
    lines = "\n".join(f"  {line}" for line in body)
    schedule = ", is_scheduled=true" if scheduled else ""
    return ex.open_hlo(f"HloModule m{schedule}{head}\n\nENTRY %e {{\n{lines}\n}}\n")


def parameter(type_, number=0):
    return f'%x{number} = {type_} parameter({number}), metadata={{op_name="x{number}"}}'


WIDE, NARROW = parameter("f32[64,64]{1,0}"), parameter("f32[8]{0}")
SUM = 'ROOT %out = f32[8]{0} custom-call(%x0), custom_call_target="mine"'
GIVEN = ", input_output_alias={ {}: (0, {}, may-alias) }"


@pytest.mark.parametrize(
    ("capture", "text", "nodes"),
    [
        # 64 × 64 × 4 bytes, and 32 more at the peak
        (
            program([WIDE, SUM]),
            "f32[64,64] of 16.4 kB is an argument, x0. Largest computed buffer: f32[8] of 32 B is made by out, without "
            "a known line. Memory peaks at 16.4 kB.",
            ["x0", "out"],
        ),
        # of a text without a schedule nobody knows the peak
        (
            program([WIDE, SUM], scheduled=False),
            "f32[64,64] of 16.4 kB is an argument, x0. Largest computed buffer: f32[8] of 32 B is made by out, without "
            "a known line.",
            ["x0", "out"],
        ),
        (
            program([NARROW, 'ROOT %out = f32[64,64]{1,0} custom-call(%x0), custom_call_target="mine"']),
            "f32[64,64] of 16.4 kB is made by out, without a known line. Memory peaks at 16.4 kB.",
            ["out"],
        ),
        (
            program([WIDE, "ROOT %out = f32[64,64]{1,0} sine(%x0)"], head=GIVEN),
            "f32[64,64] of 16.4 kB is a donated argument, x0. Largest computed buffer: f32[64,64] of 16.4 kB is "
            "made by out, without a known line. Memory peaks at 16.4 kB.",
            ["x0", "out"],
        ),
        (
            program([NARROW, "%c = f32[64,64]{1,0} constant({...})",
                     'ROOT %out = f32[8]{0} custom-call(%x0, %c), custom_call_target="mine"']),
            "f32[64,64] of 16.4 kB is a constant. Largest computed buffer: f32[8] of 32 B is made by out, without "
            "a known line. Memory peaks at 16.4 kB.",
            ["c", "out"],
        ),
    ],
)  # fmt: skip
def test_the_largest_buffer_and_the_largest_that_is_computed(capture, text, nodes):
    answer = largest(capture)
    assert (answer.text, answer.certainty) == (text, "exact")
    assert {capture.hlo.graph.names[at] for at in answer.nodes} == set(nodes)


MINE = 'custom-call(%x0), custom_call_target="mine"'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ([NARROW, "ROOT %out = f32[8]{0} sine(%x0)"], "The program makes no N×N array in memory."),
        (
            [NARROW, f"ROOT %out = f32[4,64,64]{{2,1,0}} {MINE}"],
            "1 N×N array is in memory: f32[4,64,64] of 65.5 kB is made by out, without a known line.",
        ),
        (
            [NARROW, f"%one = f32[64,64]{{1,0}} {MINE}",
             'ROOT %out = f32[32,32]{1,0} custom-call(%one), custom_call_target="mine"'],
            "2 N×N arrays are in memory: f32[64,64] of 16.4 kB is made by one, without a known line.",
        ),
        # from 8 on a square counts; what is given isn't made
        ([NARROW, f"ROOT %out = f32[7,7]{{1,0}} {MINE}"], "The program makes no N×N array in memory."),
        (
            [NARROW, f"ROOT %out = f32[8,8]{{1,0}} {MINE}"],
            "1 N×N array is in memory: f32[8,8] of 256 B is made by out, without a known line.",
        ),
        ([WIDE, f"ROOT %out = f32[8]{{0}} {MINE}"], "The program makes no N×N array in memory."),
        # neighbours
        ([NARROW, f"ROOT %out = f32[64,32,64]{{2,1,0}} {MINE}"], "The program makes no N×N array in memory."),
        ([NARROW, f"ROOT %out = f32[64,2,64]{{2,1,0}} {MINE}"],
         "1 N×N array is in memory: f32[64,2,64] of 32.8 kB is made by out, without a known line."),
        (
            [NARROW, f"ROOT %out = pred[64,32]{{1,0}} {MINE}"],
            "Yes: the mask pred[64,32] of 2.0 kB is made by out, without a known line.",
        ),
        (
            [NARROW, f"%one = pred[64,64]{{1,0}} {MINE}",
             'ROOT %out = pred[16,32]{1,0} custom-call(%one), custom_call_target="mine"'],
            "Yes: the mask pred[64,64] of 4.1 kB is made by one, without a known line, and 1 more.",
        ),
        ([NARROW, f"ROOT %out = pred[64,4]{{1,0}} {MINE}"], "The program makes no N×N array in memory."),
        (
            [parameter("pred[64,32]{1,0}"), f"ROOT %out = f32[8]{{0}} {MINE}"],
            "The mask is an argument: pred[64,32]; the program makes no other mask in memory. "
            "The program makes no N×N array in memory.",
        ),
    ],
)  # fmt: skip
def test_which_masks_and_squares_are_in_memory(body, text):
    answer = materialised(program(body))
    assert (answer.text, answer.certainty) == (text, "exact")


TWO = (
    *(WIDE, parameter("f32[64,64]{1,0}", 1), "%one = f32[64,64]{1,0} sine(%x0)"),
    *("%two = f32[64,64]{1,0} cosine(%x1)", "ROOT %r = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(%one, %two)"),
)


@pytest.mark.parametrize(
    ("body", "head", "text", "hint"),
    [
        (
            [WIDE, "ROOT %out = f32[64,64]{1,0} sine(%x0)"], GIVEN,
            "Yes: x0 is donated, and results are written over 16.4 kB of it.", "",
        ),
        (
            [WIDE, SUM], ", buffer_donor={ (0, {}) }",
            "Yes: x0 of 16.4 kB is donated, but no result is written over it.", "",
        ),
        (
            [WIDE, "ROOT %out = f32[64,64]{1,0} sine(%x0)"], "",
            "No result is written over an argument. x0 of 16.4 kB could be: a result has its shape and dtype.",
            "jax.jit(f, donate_argnames='x0')",
        ),
        (
            [WIDE, SUM], "",
            "No result is written over an argument. None could be: no result is a new value of one.", "",
        ),
        (
            TWO, "",
            "No result is written over an argument. x0 and x1 of 32.8 kB could be: "
            "results have the same shapes and dtypes.",
            "jax.jit(f, donate_argnames='x0')",
        ),
        (
            TWO,
            ", input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }",
            "Yes: x0 and x1 are donated, and results are written over 32.8 kB of it.", "",
        ),
    ],
)  # fmt: skip
def test_what_is_given_away_and_what_could_be(body, head, text, hint):
    answer = donated(program(body, head=head))
    assert (answer.text, answer.hint, answer.certainty) == (text, hint, "exact")


DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
PROFILE = "ex.profile(f, x) measures each kernel and line."


@pytest.mark.parametrize(
    ("body", "text"),
    [
        # 2 × 64³ of 528,384 FLOPs, with 11 FLOPs for each byte; and 32,768 of 81,920 bytes where nothing is multiplied
        (
            [
                parameter("f32[512,512]{1,0}"),
                f"%dot = f32[512,512]{{1,0}} dot(%x0, %x0), {DOT}",
                "ROOT %sine = f32[512,512]{1,0} sine(%dot)",
            ],
            "The largest kernel, dot, does 100% of the FLOPs (268.4 M). No time was measured.",
        ),
        (
            [WIDE, "%sine = f32[64,64]{1,0} sine(%x0)", "ROOT %sum = f32[64,64]{1,0} add(%sine, %x0)"],
            "The largest kernel, sum, moves 60% of the bytes (49.2 kB). No time was measured.",
        ),
    ],
)
def test_what_costs_most_where_nobody_measured(body, text):
    answer = slow(program(body))
    assert (answer.text, answer.certainty, answer.hint) == (text, "inferred", PROFILE)


def test_where_no_kernel_runs_or_nothing_is_known_of_its_costs():
    assert slow(program(["ROOT " + WIDE])).text == "No kernel runs."
    nothing = program([parameter("f32[0]{0}"), "ROOT %sine = f32[0]{0} sine(%x0)"])
    assert (slow(nothing).text, slow(nothing).certainty) == ("The cost of its kernels is unknown.", "unknown")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            [WIDE, "ROOT %sine = f32[64,64]{1,0} sine(%x0)"],
            "No instruction of the optimized program transposes or copies.",
        ),
        # 32,768 of 65,536 bytes
        (
            [WIDE, "%copy = f32[64,64]{1,0} copy(%x0)", "ROOT %sine = f32[64,64]{1,0} sine(%copy)"],
            "There is 1 copy; 1 of 2 kernels does nothing else (50% of the bytes). "
            "It is there for code without a known line.",
        ),
        (
            [WIDE, "%copy = f32[64,64]{1,0} copy(%x0)", "%turned = f32[64,64]{1,0} transpose(%copy), dimensions={1,0}",
             "%copy2 = f32[64,64]{1,0} copy(%turned)", "ROOT %sine = f32[64,64]{1,0} sine(%copy2)"],
            "There are 2 copies and 1 transpose; 3 of 4 kernels do nothing else (75% of the bytes). "
            "They are there for code without a known line.",
        ),
    ],
)  # fmt: skip
def test_how_many_copies_there_are_and_how_many_kernels_do_nothing_else(body, text):
    assert copies(program(body)).text == text


def test_what_a_program_alone_doesn_t_know_it_says():
    plain = program([WIDE, "ROOT %sine = f32[64,64]{1,0} sine(%x0)"])
    for answer in (precision(plain), recompiled(plain), remat(plain)):
        assert answer.certainty in ("unknown", "exact")
    assert precision(plain).text == "There is no jaxpr in this capture."
    assert recompiled(plain).text == "A capture holds one compilation, so it can't show recompiles or their reasons."
    assert remat(plain).text == "This needs one more compilation, which a page can't run."
    assert remat(plain).hint == (
        "ex.what_if(f, x, remat=True, grad=True) compiles and measures both, for the function that is differentiated."
    )
