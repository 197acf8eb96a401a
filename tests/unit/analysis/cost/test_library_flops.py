"""What library calls and operations with a formula of their own do, against the formulas that are published.

LAPACK Working Note 41, appendix C, for an m×n matrix, lower orders left out; of an FFT 8 operations for each
element and each halving.
"""

import math

import pytest

import explorer as ex


def lapack(target, result, *operands, more=""):
    parameters = "\n".join(f"  p{i} = {type_} parameter({i})" for i, type_ in enumerate(operands))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return f"HloModule m\nENTRY e {{\n{parameters}\n  ROOT call = {result} {target}({names}){more}\n}}"


def flops(text):
    graph = ex.open_hlo(text).hlo.graph
    return float(graph.measures["flops"][graph["call"].index])


def custom(name):
    return f', custom_call_target="{name}"'


def lu(m, n):
    return m * n**2 - n**3 / 3 if m >= n else n * m**2 - m**3 / 3


def qr(m, n):
    return 2 * m * n**2 - 2 * n**3 / 3 if m >= n else 2 * n * m**2 - 2 * m**3 / 3


def q(m, n, k):
    return 4 * m * n * k - 2 * (m + n) * k**2 + 4 * k**3 / 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lapack("custom-call", "f32[7,7]", "f32[7,7]", more=custom("lapack_spotrf_ffi")), 7**3 / 3),
        (lapack("custom-call", "f32[3,7,7]", "f32[3,7,7]", more=custom("lapack_spotrf_ffi")), 7**3),
        (lapack("custom-call", "c64[7,7]", "c64[7,7]", more=custom("lapack_cpotrf_ffi")), 4 * 7**3 / 3),
        (lapack("custom-call", "(f64[9,4], s32[4])", "f64[9,4]", more=custom("lapack_dgetrf_ffi")), lu(9, 4)),
        (lapack("custom-call", "(f64[4,9], s32[4])", "f64[4,9]", more=custom("lapack_dgetrf_ffi")), lu(4, 9)),
        (lapack("custom-call", "(f32[9,4], f32[4])", "f32[9,4]", more=custom("lapack_sgeqrf_ffi")), qr(9, 4)),
        (lapack("custom-call", "(f32[4,9], f32[4])", "f32[4,9]", more=custom("cusolver_geqrf_ffi")), qr(4, 9)),
        (lapack("custom-call", "f32[9,4]", "f32[9,4]", "f32[3]", more=custom("lapack_sorgqr_ffi")), q(9, 4, 3)),
        (lapack("custom-call", "c64[9,4]", "c64[9,4]", "c64[3]", more=custom("lapack_cungqr_ffi")), 4 * q(9, 4, 3)),
        (lapack("custom-call", "f32[9,4]", "f32[9,4]", more=custom("lapack_sorgqr_ffi")), q(9, 4, 4)),
        (lapack("custom-call", "f32[6,5]", "f32[6,6]", "f32[6,5]", more=custom("lapack_strsm_ffi")), 6 * 5 * 6),
        (lapack("triangular-solve", "f32[6,5]", "f32[6,6]", "f32[6,5]", more=", left_side=true"), 6 * 5 * 6),
        (lapack("cholesky", "f32[7,7]", "f32[7,7]", more=", lower=true"), 7**3 / 3),
        (lapack("fft", "c64[2,16]", "c64[2,16]", more=", fft_type=FFT, fft_length={16}"), 8 * 2 * 16 * 4),
        (lapack("fft", "c64[2,9]", "f32[2,16]", more=", fft_type=RFFT, fft_length={16}"), 8 * 2 * 16 * 4),
        (lapack("fft", "c64[8,4]", "c64[8,4]", more=", fft_type=FFT, fft_length={8,4}"), 8 * 32 * 3 * 2),
        (
            lapack("rng-bit-generator", "(u64[2], u32[10])", "u64[2]", more=", algorithm=rng_three_fry"),
            2 + 10,
        ),
    ],
)
def test_what_a_factorisation_does_is_the_published_count(text, expected):
    assert flops(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        lapack("custom-call", "f32[7]", "f32[7]", more=custom("lapack_spotrf_ffi")),
        lapack("custom-call", "f32[7,7]", more=custom("lapack_spotrf_ffi")),
        lapack("custom-call", "f32[7,7]", "f32[7,7]", more=custom("lapack_strsm_ffi")),
        lapack("custom-call", "f32[7,7]", "f32[7,7]", more=custom("lapack_ssyevd_ffi")),
        lapack("custom-call", "f32[7,7]", "f32[7,7]", more=custom("mine_spotrf")),
        lapack("triangular-solve", "f32[6,5]", "f32[6,6]", more=", left_side=true"),
    ],
)
def test_of_what_is_no_factorisation_or_lacks_its_matrix_nothing_is_known(text):
    assert math.isnan(flops(text))
