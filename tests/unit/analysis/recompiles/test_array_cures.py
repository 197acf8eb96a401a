"""What to write so that an array of another size doesn't compile again, to the letter: worked out by hand."""

import pytest

from tests.support.calls import cure, cure_of_sizes, leaf

LAST = "and mask what is added; or drop the last, smaller batch"


def padded(line, described, arguments=None):
    """The two lines of a cure by padding."""
    known = "# or a few programs for all sizes, where padding is proven exact (else one for each): "
    info = f"InputInfo({described})"
    whole = f'args=[{info}], dynamic="auto")' if arguments is None else f'args=[…], dynamic="auto") with {info}'
    return f"{line}; mask what is added\n{known}ex.compile(step, {whole}"


@pytest.mark.parametrize(
    ("sizes", "step", "count"),
    [
        (range(1, 34), 8, "5 sizes at most for 1 … 33"),  # a quarter of 32, the range
        (range(1, 35), 16, "3 sizes at most for 1 … 34"),  # a quarter of 33 is more than 8
        (range(9, 17), 8, "1 size for 9 … 16"),  # one multiple holds them all
        (range(8, 17), 8, "2 sizes at most for 8 … 16"),
        ((16, 32, 48), 32, "2 sizes at most for 16 … 48"),  # steps of 8 and of 16 merge none of the three
        ((8, 24, 16, 64, 40, 32), 16, "4 sizes at most for 8 … 64"),  # a third of six is merged
        ((100, 300, 500, 700), 512, "2 sizes at most for 100 … 700"),  # steps of 256: still three
        ((5, 9), 16, "1 size for 5 … 9"),
        ((32, 33), 64, "1 size for 32 … 33"),
    ],
)
def test_sizes_are_padded_to_a_step_that_merges_a_third_of_them(sizes, step, count):
    bounds = f"{min(sizes)}, {tuple(sizes)[-1]}, {max(sizes)}"
    described = f'(NamedDimension("batch", {bounds}), 4), jnp.float32'
    line = f"x = jnp.pad(x, [(0, -x.shape[0] % {step}), (0, 0)])  # {count}"
    assert cure_of_sizes(*((size, 4) for size in sizes)) == padded(line, described)


@pytest.mark.parametrize(
    ("shapes", "path", "dtype", "pads", "described"),
    [
        ([(32,), (33,)], "x", "int32", "(0, -x.shape[0] % 64)", '(NamedDimension("batch", 32, 33, 33),), jnp.int32'),
        (
            [(4, 32), (4, 33)], "x", "int8",
            "(0, 0), (0, -x.shape[1] % 64)", '(4, NamedDimension("length", 32, 33, 33)), jnp.int8',
        ),
        (
            [(4, 32), (4, 33)], "x", "bool",
            "(0, 0), (0, -x.shape[1] % 64)", '(4, NamedDimension("x_1", 32, 33, 33)), jnp.bool_',
        ),
        (
            [(4, 32, 2), (4, 33, 2)], "x", "float32",
            "(0, 0), (0, -x.shape[1] % 64), (0, 0)", '(4, NamedDimension("length", 32, 33, 33), 2), jnp.float32',
        ),
        (
            [(4, 2, 32), (4, 2, 33)], "x", "float32",
            "(0, 0), (0, 0), (0, -x.shape[2] % 64)", '(4, 2, NamedDimension("x_2", 32, 33, 33)), jnp.float32',
        ),
        (
            [(4, 32, 2, 2), (4, 33, 2, 2)], "x", "uint8",
            "(0, 0), (0, -x.shape[1] % 64), (0, 0), (0, 0)",
            '(4, NamedDimension("length", 32, 33, 33), 2, 2), jnp.uint8',
        ),
        (
            [(4, 32), (6, 32), (6, 33)], "x", "uint32",  # of all that it was so far
            "(0, -x.shape[0] % 8), (0, -x.shape[1] % 64)",
            '(NamedDimension("batch", 4, 6, 6), NamedDimension("length", 32, 33, 33)), jnp.uint32',
        ),
    ],
)  # fmt: skip
def test_each_dimension_that_varies_is_padded_and_named(shapes, path, dtype, pads, described):
    line = f"{path} = jnp.pad({path}, [{pads}])  # 1 size for 32 … 33"
    assert cure_of_sizes(*shapes, path=path, dtype=dtype) == padded(line, described)


def test_of_arguments_with_other_arrays_the_description_is_one_of_several():
    fix = cure([leaf("x", (32,)), leaf("y", (2,))], [leaf("x", (33,)), leaf("y", (2,))])
    line = "x = jnp.pad(x, [(0, -x.shape[0] % 64)])  # 1 size for 32 … 33"
    assert fix == padded(line, '(NamedDimension("batch", 32, 33, 33),), jnp.float32', "several")


@pytest.mark.parametrize("path", ["batch['x']", "batch.x"])
def test_a_place_in_an_argument_is_no_argument_to_describe(path):
    assert "args=[…]" in cure_of_sizes((32,), (33,), path=path)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("batch['x']", "batch['x'] = jnp.pad(batch['x'], [(0, -batch['x'].shape[0] % 64)])  # 1 size for 32 … 33"),
        ('batch["it\'s"]', None),
        ("pair[1]", "jnp.pad(pair[1], [(0, -pair[1].shape[0] % 64)])  # in place of pair[1], 1 size for 32 … 33"),
        ("own.x", "jnp.pad(own.x, [(0, -own.x.shape[0] % 64)])  # in place of own.x, 1 size for 32 … 33"),
    ],
)
def test_only_what_can_be_assigned_to_is(path, line):
    line = line or f"{path} = jnp.pad({path}, [(0, -{path}.shape[0] % 64)])  # 1 size for 32 … 33"
    other = [leaf("z", ())]
    fix = cure([leaf(path, (32,)), *other], [leaf(path, (33,)), *other])
    assert fix.partition("; mask")[0] == line


@pytest.mark.parametrize(
    "tree", ["params", "weights", "model", "variables", "opt_state", "state", "train_state", "grads"]
)
def test_the_sizes_of_a_model_are_not_padded(tree):
    text = f"each size of `{tree}` is a program of its own, which is compiled once: keep to one, or to few"
    assert cure_of_sizes((8, 4), (9, 4), path=f"{tree}['w']") == text


@pytest.mark.parametrize(
    ("shapes", "dtype", "at"),
    [
        ([(2,), (3,)], "key<fry>", "x.shape[0]"),  # keys aren't padded
        ([("b", 2), (3, 2)], "float32", "x.shape[0]"),  # one size is a number
        ([("b", 2), ("b", 3)], "float32", "x.shape[1]"),
    ],
)
def test_what_cant_be_padded_is_to_be_kept_the_same(shapes, dtype, at):
    assert cure_of_sizes(*shapes, dtype=dtype) == f"keep {at} the same from call to call"


@pytest.mark.parametrize(
    ("shapes", "fix"),
    [
        (
            [(1, 4), (17, 4)],
            "1 and 17 are too far apart to pad: each is a program of its own, compiled once; "
            "of more sizes keep to a few",
        ),
        (
            [(512, 4), (31, 4)],  # 512 is more than 16 times 31
            "512 and 31 are too far apart to pad: each is a program of its own, compiled once; "
            "of more sizes keep to a few",
        ),
        (
            [(512, 4), (32, 4)],
            f"x = jnp.pad(x, [(0, 512 - x.shape[0]), (0, 0)])  # {LAST}",
        ),
        (
            [(32,), (17,)],
            f"x = jnp.pad(x, [(0, 32 - x.shape[0])])  # {LAST}",
        ),
    ],
)
def test_of_two_sizes_the_smaller_one_is_padded_if_it_comes_last_and_isnt_tiny(shapes, fix):
    assert cure_of_sizes(*shapes) == fix


def test_another_dimension_than_the_first_has_no_last_batch():
    described = '(4, NamedDimension("x_1", 17, 17, 32)), jnp.float32'
    line = "x = jnp.pad(x, [(0, 0), (0, -x.shape[1] % 16)])  # 1 size for 17 … 32"
    assert cure_of_sizes((4, 32), (4, 17)) == padded(line, described)


@pytest.mark.parametrize(
    ("sizes", "size"),
    [((5, 6, 7), 16), ((14, 15, 16), 16), ((15, 16, 17), 32), ((31, 32), 32), ((63, 64, 65), 128), ((6, 99), 128)],
)
def test_what_grows_gets_the_next_power_of_two_at_once(sizes, size):
    shapes = [(1, length, 64) for length in sizes]
    update = "jax.lax.dynamic_update_slice(cache, new, (0, n, 0))"
    assert cure_of_sizes(*shapes, path="cache", dtype="bfloat16", grown=("cache",)) == (
        f"cache = jnp.zeros((1, {size}, 64), jnp.bfloat16)  # its last size at once; then {update}"
    )


def test_all_that_grows_is_named_and_a_vector_starts_at_one_index():
    paths = [f"cache[{index}]" for index in range(5)]
    fix = cure(*([leaf(path, (size,)) for path in paths] for size in (5, 6)), grown=tuple(paths))
    assert fix == (
        "jnp.zeros((16,), jnp.float32)  # in place of cache[0], its last size at once; "
        "then jax.lax.dynamic_update_slice(cache[0], new, (n,)); likewise `cache[1]`, `cache[2]`, `cache[3]`"
    )


@pytest.mark.parametrize("more", [{"grown": ("y",)}, {}])
def test_what_isnt_returned_longer_is_no_cache(more):
    assert cure_of_sizes((5, 4), (6, 4), **more).startswith("x = jnp.pad(")


def test_what_shrinks_in_between_is_no_cache():
    assert cure_of_sizes((5, 4), (7, 4), (6, 4), grown=("x",)).startswith("x = jnp.pad(")


def batches(count, *, given="jax", ranks=(1,), kept=()):
    return [
        [
            *(leaf(f"batch['{i}']", (rows, *(2,) * (ranks[i % len(ranks)] - 1)), given=given) for i in range(count)),
            *kept,
        ]
        for rows in (32, 17)
    ]


@pytest.mark.parametrize(
    ("calls", "fix"),
    [
        (batches(2), "batch = jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, 32 - leaf.shape[0])]), batch)"),
        (batches(2, kept=[leaf("rate", ())]),
         "batch = jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, 32 - leaf.shape[0])]), batch)"),
        (batches(2, given="numpy", ranks=(2,)),
         "batch = jax.tree.map(lambda leaf: np.pad(leaf, [(0, 32 - leaf.shape[0]), (0, 0)]), batch)"),
        (batches(2, ranks=(1, 3)),
         "batch = jax.tree.map(lambda leaf: "
         "jnp.pad(leaf, [(0, 32 - leaf.shape[0])] + [(0, 0)] * (leaf.ndim - 1)), batch)"),
    ],
)  # fmt: skip
def test_a_whole_argument_is_padded_in_one_line(calls, fix):
    assert cure(*calls) == f"{fix}  # {LAST}"


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, "; likewise 1 more"), (6, "; likewise 3 more")])
def test_arrays_of_an_argument_that_keeps_another_are_padded_one_by_one(count, more):
    lines = [
        f"batch['{i}'] = np.pad(batch['{i}'], [(0, 32 - batch['{i}'].shape[0])])" + f"  # {LAST}{more}" * (i == 0)
        for i in range(3)
    ]
    kept = [leaf("batch['n']", (), given="numpy")]
    assert cure(*batches(count, given="numpy", kept=kept)) == "\n".join(lines)
