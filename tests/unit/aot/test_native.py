"""Native code as the runtime writes it: what is loaded gives the same results bit by bit, in another process too."""

import subprocess
import sys
from dataclasses import replace
from textwrap import dedent

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer._jax.dispatch import with_fast_path
from explorer._jax.native import Native, load_native, native_code

X = jnp.linspace(-2, 2, 12).reshape(3, 4)


def compiled(function, *args, **options):
    return jax.jit(function, **options).lower(*args).compile()


def through_bytes(program, *args):
    native = native_code(program)
    assert isinstance(native, Native), native
    structs = jax.tree.map(jax.typeof, args)
    return load_native(native, structs, program.out_tree, jax.devices()[0])


def bits(tree):
    leaves = (jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in tree)
    return [(leaf.dtype, leaf.shape, np.asarray(leaf).tobytes()) for leaf in leaves]


def nested(x):
    return {"a": jnp.tanh(x) @ x.T, "b": (x.sum(), None, [jnp.cumsum(x)])}


PROGRAMS = {
    "nested": (nested, X),
    "weak types": (lambda x: (x * 2, 2.0), 1.5),
    "no use for an argument": (lambda x, y, z: (x * z[0], z[1]), X, X, [X[0], X[1]]),
    "no arguments": (lambda: (jnp.arange(3), jnp.ones(2)),),
    "no results": (lambda x: (), X),
    "nothing in it": (lambda x: (x + 1,), jnp.zeros((0, 3))),
    "a scalar": (lambda x: (x * 2,), jnp.float32(1.5)),
    "small ints": (lambda x: (x + 1,), jnp.arange(4, dtype="int4")),
    "small floats": (lambda x: (x * 2,), jnp.arange(4, dtype="bfloat16")),
    "complex": (lambda x: (jnp.fft.fft(x),), X),
    "keys": (lambda key, x: (jax.random.split(key), jax.random.normal(key, x.shape) + x), jax.random.key(0), X),
    "sorting": (lambda x: (jnp.sort(x), jnp.argsort(x)), X),
    "linear algebra": (lambda x: tuple(jnp.linalg.eigh(x @ x.T)), X),
    "a loop": (lambda x: (jax.lax.fori_loop(0, 5, lambda i, y: jnp.sin(y) + i, x),), X),
    "a convolution": (lambda x: (jax.lax.conv(x[None, None], x[None, None, :2, :2], (1, 1), "SAME"),), X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loaded_program_gives_the_same_bits(name):
    function, *args = PROGRAMS[name]
    program = compiled(function, *args)
    loaded = through_bytes(program, *args)
    expected = program(*args)
    result, fast_path = with_fast_path(loaded)(*args)
    assert bits(jax.tree.leaves(result)) == bits(jax.tree.leaves(expected))
    assert jax.tree.structure(result) == jax.tree.structure(expected)
    assert [jax.typeof(x) for x in jax.tree.leaves(result)] == [jax.typeof(x) for x in jax.tree.leaves(expected)]
    assert [x.sharding for x in jax.tree.leaves(result)] == [x.sharding for x in jax.tree.leaves(expected)]
    assert fast_path is not None  # calls stay in C++
    assert bits(jax.tree.leaves(loaded(*args))) == bits(jax.tree.leaves(expected))


def test_donation_is_kept():
    program = compiled(lambda state, x: ({"w": state["w"] + x}, x.sum()), {"w": X}, X, donate_argnums=0)
    loaded = through_bytes(program, {"w": X}, X)
    state = {"w": X + 0}
    (result, _) = loaded(state, X)
    assert state["w"].is_deleted()
    np.testing.assert_array_equal(result["w"], X + X)
    assert loaded.donate_argnums == program.donate_argnums == (0,)


def test_whether_results_are_bound_to_a_device_is_kept():
    bound = jax.device_put(X, jax.devices()[0])
    for array in (X, bound):
        program = compiled(lambda x: x * 2, array)
        assert through_bytes(program, array)(array).committed == program(array).committed == array.committed


def test_a_loaded_program_can_be_looked_at():
    loaded = through_bytes(compiled(nested, X), X)
    assert loaded.as_text().startswith("HloModule jit_nested")
    assert loaded.cost_analysis()["flops"] > 0


def test_what_is_placed_elsewhere_than_by_default_has_none_and_says_why():
    mesh = jax.make_mesh((1,), ("i",))
    program = compiled(lambda x: x * 2, jax.device_put(X, jax.NamedSharding(mesh, jax.P("i"))))
    assert native_code(program) == ("its arrays are on another device than the first, in another memory, or in a mesh")


def printed(x):
    jax.debug.print("{}", x)
    return x


def called_back(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@pytest.mark.parametrize("function", [printed, called_back], ids=lambda f: f.__name__)
def test_what_calls_back_to_the_host_has_no_native_code_and_says_why(function):
    assert native_code(compiled(function, X)) == "it calls back to the host"


def test_what_is_no_compiled_program_has_none_and_says_why():
    assert native_code(jax.jit(nested).lower(X)).startswith("AttributeError")


def test_what_is_no_code_is_an_error_of_the_runtime():
    program = compiled(nested, X)
    native = native_code(program)
    assert isinstance(native, Native)
    for wrong in (b"", bytes(100), b"hello", native.code[: len(native.code) // 2]):
        with pytest.raises(jax.errors.JaxRuntimeError):
            load_native(replace(native, code=wrong), (X,), program.out_tree, jax.devices()[0])


def run(code, *args):
    done = subprocess.run([sys.executable, "-c", dedent(code), *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


SAVED = """
    import sys
    import jax, jax.numpy as jnp, numpy as np
    import explorer as ex

    def program(x, key):
        noise = jax.random.normal(key, x.shape)
        x = x @ jnp.linalg.qr(x.T @ x)[0]  # LAPACK, which is made ready when a program is lowered: here it isn't
        return {"a": jnp.tanh(x) @ x.T, "b": (jnp.sort(x + noise), jnp.exp(x).sum())}

    x, key = jnp.linspace(-2, 2, 12).reshape(3, 4), jax.random.key(7)
    if sys.argv[2] == "save":
        exe = ex.compile(program, args=[ex.InputInfo.like(x), ex.InputInfo.like(key)])
        exe.save(sys.argv[1], native=True)
    else:
        exe = ex.Executable.load(sys.argv[1], trust_native_code=True)
    print(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(exe(x, key))).hex())
    print("; ".join(one.reason for one in exe.specializations))
"""


@pytest.mark.slow
def test_another_process_gets_the_same_bits_from_native_code(tmp_path):
    file = tmp_path / "f.explorer"
    result, reason = run(SAVED, file, "save")
    assert reason == "compiled"
    assert run(SAVED, file, "load") == [result, "native code from a file"]
