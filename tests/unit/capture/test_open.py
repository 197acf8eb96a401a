"""A module from anywhere is opened, or refused with the reason."""

import base64
import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.export import export

import explorer as ex
from explorer._jax.native import called_targets
from tests.support.functions import FUNCTIONS, compiled_text, loss
from tests.support.xla_oracle import SPELLINGS, _hlo, spelled

SAMPLES = Path(__file__).parents[2] / "support" / "hlo_samples"


@pytest.fixture(scope="module")
def text():
    return compiled_text(*FUNCTIONS["gradient"])


@pytest.fixture(scope="module")
def lowered():
    return jax.jit(loss).lower(jnp.ones((3, 16, 16)), jnp.ones((4, 16)))


def rows(graph):
    return [(node.name, node.op, node.type, tuple(o.name for o in node.operands)) for node in graph.nodes]


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """What XLA dumps of a function and of the eager operations around it."""
    folder = tmp_path_factory.mktemp("dump")
    options = {
        "xla_dump_to": str(folder),
        "xla_dump_hlo_pass_re": ".*",
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_as_proto": True,
    }
    jax.jit(loss).lower(jnp.ones((3, 16, 16)), jnp.ones((4, 16))).compile(compiler_options=options)
    return folder


# What it may be ------------------------------------------------------------------------------------------------------


def test_a_text_a_file_and_bytes_hold_the_same_module(text, tmp_path):
    path = tmp_path / "module.hlo"
    path.write_text(text)
    (tmp_path / "module.hlo.gz").write_bytes(gzip.compress(text.encode()))
    sources = (text, path, str(path), text.encode(), tmp_path / "module.hlo.gz", gzip.compress(text.encode()))
    opened = [ex.open_hlo(source) for source in sources]
    for capture in opened:
        assert rows(capture.hlo.graph) == rows(opened[0].hlo.graph)
        assert capture.function == "jit_loss"
        assert capture.failure == ""
    assert opened[1].environment["opened from"] == str(path)


def test_it_leads_to_the_source_where_that_is_there(text):
    capture = ex.open_hlo(text)
    assert capture.file == loss.__code__.co_filename
    assert capture.nodes_at(loss.__code__.co_firstlineno + 2)
    assert capture.sources[capture.file].label == "functions.py"


def test_a_strangers_module_takes_no_file_but_python_into_what_is_shown(tmp_path):
    (tmp_path / "secret.txt").write_text("the secret")
    (tmp_path / "model.py").write_text("the model")
    lines = "".join(
        f'  %p{i} = f32[] parameter({i}), metadata={{source_file="{tmp_path / name}" source_line=1}}\n'
        for i, name in enumerate(("secret.txt", "model.py", "x\0.py"))
    )
    text = f"ENTRY e {{\n{lines}}}\n"
    capture = ex.open_hlo(text, sources=tmp_path)
    assert [source.text for source in capture.sources.values()] == ["the model\n"]
    assert "the secret" not in str(capture.sources)
    assert "sources" not in capture.environment
    assert "the model" in ex.open_hlo(text, sources="/").sources[str(tmp_path / "model.py")].text


def test_files_outside_of_the_working_folder_are_left_out_unless_asked_for_and_that_is_said(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "model.py").write_text("the model")
    (tmp_path / "here" / "mine.py").write_text("mine")
    (tmp_path / "here" / "link.py").symlink_to(tmp_path / "model.py")
    monkeypatch.chdir(tmp_path / "here")
    names = (tmp_path / "model.py", "mine.py", "link.py", "../model.py", tmp_path / "here/../model.py", "/no/such.py")
    lines = "".join(
        f'  %p{i} = f32[] parameter({i}), metadata={{source_file="{name}" source_line=1}}\n'
        for i, name in enumerate(names)
    )
    capture = ex.open_hlo(f"ENTRY e {{\n{lines}}}\n")
    assert {source.text for source in capture.sources.values()} == {"mine\n"}
    assert "the model" not in capture.to_html(tmp_path / "page.html").read_text()
    assert b"the model" not in capture.wire
    said = f"left out, not below {tmp_path}/here: {tmp_path}/model.py, link.py, ../model.py and 1 more"
    assert capture.environment["sources"].startswith(said)
    assert "left out, not below" in str(capture.to_text()).replace("\n", " ")


def test_a_link_in_a_dump_shows_no_file_from_elsewhere(tmp_path, text):
    (tmp_path / "secret").write_text(text.replace("jit_loss", "jit_secret"))
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "module_0001.jit_f.after_optimizations.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(ex.errors.OpenError, match="holds no module"):
        ex.open_hlo(dump)
    (dump / "module_0002.jit_g.after_optimizations.txt").write_text(text)
    assert "secret" not in ex.open_hlo(dump).hlo.text


@pytest.mark.slow
def test_what_is_compressed_unpacks_within_bounds():
    bomb = gzip.compress(bytes(300_000_000))
    with pytest.raises(ex.errors.OpenError, match=r"unpack to [\d,]+ or more; at most .* are read"):
        ex.open_hlo(bomb)


def test_a_pipe_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "module.hlo")
    with pytest.raises(ex.errors.OpenError, match="no regular file"):
        ex.open_hlo(tmp_path / "module.hlo")
    with pytest.raises(ex.errors.CaptureFileError, match="no regular file"):
        ex.load(tmp_path / "module.hlo")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_module_has_the_same_nodes(text, spelling):
    capture = ex.open_hlo(spelled(_hlo.hlo_module_from_text(text), spelling))
    assert capture.failure == ""
    ours = sorted((name, op, operands) for name, op, _, operands in rows(capture.hlo.graph))
    assert ours == sorted((name, op, operands) for name, op, _, operands in rows(ex.open_hlo(text).hlo.graph))


def test_a_module_proto_alone_or_within_others_is_its_text(text):
    module = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    expected = sorted(rows(ex.open_hlo(text).hlo.graph))
    message = module
    for _ in range(3):  # HloModuleProto, HloProto, HloSnapshot
        capture = ex.open_hlo(message)
        assert sorted(rows(capture.hlo.graph)) == expected
        assert capture.function == "jit_loss"
        message = b"\x0a" + _varint(len(message)) + message


def _varint(value):
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def test_stablehlo_is_read_in_the_short_the_generic_and_the_binary_form(lowered):
    operation = lowered.compiler_ir().operation
    short = ex.open_hlo(lowered.as_text(debug_info=True))
    generic = ex.open_hlo(operation.get_asm(print_generic_op_form=True, enable_debug_info=True))
    written = io.BytesIO()
    operation.write_bytecode(written)
    binary = ex.open_hlo(written.getvalue())
    assert rows(binary.stablehlo.graph) == rows(short.stablehlo.graph)
    expected = [node.source for node in short.stablehlo.graph.nodes]
    assert any(expected)
    assert [node.source for node in binary.stablehlo.graph.nodes] == expected
    assert (short.function, short.file) == (generic.function, generic.file) == ("jit_loss", loss.__code__.co_filename)

    def places(capture):
        called = {"call": "func.call", "return": "func.return"}
        found = ((called.get(node.op, node.op), node.source[:1]) for node in capture.stablehlo.graph.nodes)
        return sorted((op, str(source)) for op, source in found if op != "parameter")

    folded = lowered.as_text().count(" applies ")  # the generic form writes these regions out: two operations each
    assert len(places(generic)) == len(places(short)) + 2 * folded
    assert set(places(short)) <= set(places(generic))


def test_an_exported_program_is_shown_in_the_dialect_that_people_read():
    exported = export(jax.jit(lambda x: jnp.tanh(x) * 2))(jax.ShapeDtypeStruct((4,), jnp.float32))
    graph = ex.open_hlo(exported.mlir_module_serialized).stablehlo.graph
    assert {"stablehlo.tanh", "stablehlo.multiply"} <= set(graph.ops)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_what_was_lowered_for_another_machine_is_read_here(platform):
    traced = jax.jit(lambda x: jax.nn.softmax(x @ x.T)).trace(jnp.ones((8, 8)))
    text = traced.lower(lowering_platforms=(platform,)).as_text(debug_info=True)
    assert "stablehlo.dot_general" in ex.open_hlo(text).stablehlo.graph.ops


def test_a_gpus_module_knows_its_place_from_the_metadata_of_old():
    capture = ex.open_hlo(SAMPLES / "gpu_gemm.hlo")
    (call,) = capture.hlo.graph.where("op:custom-call")
    assert str(call.source[0]) == "/home/user/model.py:12"
    assert (call.source[0].column, call.source[0].end_line) == (8, 13)
    assert call.scope.startswith("jit(layer)/jit(main)/dot_general[")
    assert capture.environment["backend"] == "gpu"
    assert capture.signature == "(Arg_0.1: bf16[512,1024], Arg_1.2: bf16[1024,4096], Arg_2.3: bf16[4096])"


@pytest.mark.slow
def test_nothing_of_it_needs_a_device(tmp_path, text):
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    (tmp_path / "module.pb").write_bytes(proto)
    code = "import sys, explorer as ex; print(*(len(ex.open_hlo(path).stages[0].graph) for path in sys.argv[1:]))"
    command = [sys.executable, "-c", code, SAMPLES / "gpu_gemm.hlo", tmp_path / "module.pb"]
    environment = os.environ | {"JAX_PLATFORMS": "a machine that is not here"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["22", str(len(ex.open_hlo(text).hlo.graph))]


def test_a_few_lines_out_of_a_module_are_enough():
    capture = ex.open_hlo("  %a = f32[8]{0} parameter(0)\n  %b = f32[8]{0} tanh(%a)\n")
    assert [o.name for o in capture.hlo.graph["b"].operands] == ["a"]
    assert capture.function == "module"


# A dump --------------------------------------------------------------------------------------------------------------


def test_a_dump_gives_the_module_before_and_after_and_its_passes(dump, text):
    capture = ex.open_hlo(dump)
    assert [stage.name for stage in capture.stages] == ["before", "hlo"]
    assert capture.function == "jit_loss"
    assert "fusion" in capture.hlo.graph.ops
    assert "fusion" not in capture.stage("before").graph.ops
    assert any(step.name == "fusion" for step in capture.passes)


def test_a_dump_of_protos_alone_is_read_too(dump, tmp_path):
    for path in dump.glob("*_optimizations*.pb"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    # Not the text's: some XLAs write it at another time.
    expected = ex.open_hlo(next(tmp_path.glob("*after_optimizations.hlo.pb")))
    assert rows(ex.open_hlo(tmp_path).hlo.graph) == rows(expected.hlo.graph)
    assert expected.function == "jit_loss"


def test_of_several_modules_one_must_be_chosen(tmp_path, text):
    for name in ("module_0001.jit_f", "module_0002.jit_g", "module_0012.jit_g"):
        (tmp_path / f"{name}.cpu_after_optimizations.txt").write_text(text)
        (tmp_path / f"{name}.cpu_after_optimizations-buffer-assignment.txt").write_text("BufferAssignment")
    with pytest.raises(
        ex.errors.OpenError, match=r"3 modules(.|\n)*jit_f  \(\d+ kB\)(.|\n)*Hint: open_hlo\(folder, module="
    ):
        ex.open_hlo(tmp_path)
    with pytest.raises(ex.errors.OpenError, match="2 modules called 'jit_g'"):
        ex.open_hlo(tmp_path, module="jit_g")
    with pytest.raises(ex.errors.OpenError, match="no module called 'jit_h'; there are"):
        ex.open_hlo(tmp_path, module="jit_h")
    for module in ("jit_f", "module_0012.jit_g", "0012"):
        assert len(ex.open_hlo(tmp_path, module=module).hlo.graph)


def test_a_folder_of_files_that_people_named_is_read(tmp_path, text):
    (tmp_path / "notes.md").write_text("none")
    (tmp_path / "mine.hlo").write_text(text)
    assert len(ex.open_hlo(tmp_path).hlo.graph)


# What it may not be --------------------------------------------------------------------------------------------------


# A program of one addition with a byte or three of its own changed: jaxlib 0.10.2 and 0.11 abort on it.
CRASHES = gzip.decompress(
    base64.b85decode(
        "ABzY8000000s~c$-)a*<6vpS|<aD|WVOW+BmStE%2z3cb4H~30rs$PoMXQ%0%Ou%0TlOEjv!&koUOtHU6yAC5Y(>P2VZPtTnRC7~"
        "Z!dp-7<@E(n<cL<-^F*!#d5WH%pf2j0VvRs-YCHMg@8GiQi_R?LOh&63d;dLwIDrfh|s=~$mNLleuOTP3b;}sS!*C&^pIQ^7<n|L"
        "k@A6j3P{Zz?$Bp7nNm1B;VPQZxU=3|A)XFk!Vy;ke0HWLYN}3D6q3W(*9&l<*NechLy(;QCxR;w!27Qe2;T$p{>tV+F=F(RYzaRa"
        "BN3p}w{T>Ofc?UmU101@Jw^UBI`f9occpN*ZJL?1V0VYCWO=!7vxHr@#m@c>+m%IQbYVKJ_xtXu6Vuj3r`C<B)8b~sZuR}5ZIUK#"
        "4!TO>s?5IRWnCT8CTF?rx+vN_u5@iuliG&=ygI3}bf+73o0>SzbiUndcHhyX^&i?qY~5x0o^1ZNPi-9bmmU&)OPV$_aavrLHe{z+"
        "uI*k`yR}2uvCnA+V!nKG{v0oU1N^@U-v<H!00"
    )
)


def test_bytes_that_crash_the_compilers_reader_are_an_error():
    with pytest.raises(
        ex.errors.OpenError, match=r"can't be read: (the compiler's own reader crashes on it|failed to)"
    ):
        ex.open_hlo(CRASHES)
    with pytest.raises(ValueError, match=r"crashes on it|failed to"):
        called_targets(CRASHES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "nothing is in there"),
        (b" \n \n", "nothing is in there"),
        (bytes(range(256)) * 8, "not a serialized HLO module(.|\n)*starts with b'.x00"),
        (b"\x0a\x05hello\x00", "not a serialized HLO module"),
        (b"ML\xefRgarbage\x00", "this MLIR bytecode can't be read: bytecode version"),
        (gzip.compress(b"HloModule f", mtime=0)[:-12] + b"\0" * 9, "compressed, and it is damaged"),
        (b"EXPLORER\x01\x00\x00\x00", r"saved capture. Hint: explorer.load"),
    ],
)
def test_a_file_that_holds_no_module_says_what_it_is(content, message, tmp_path):
    path = tmp_path / "file.hlo"
    path.write_bytes(content)
    with pytest.raises(ex.errors.OpenError, match=message) as caught:
        ex.open_hlo(path)
    assert str(path) in str(caught.value)
    with pytest.raises(ex.errors.OpenError, match=message):
        ex.open_hlo(content)


@pytest.mark.parametrize("name", ["missing.hlo", "a\0b", "HloModule f", "x" * 5000])
def test_a_path_without_a_file_says_so(name, tmp_path):
    with pytest.raises(ex.errors.OpenError, match="can't be opened"):
        ex.open_hlo(name)
    with pytest.raises(ex.errors.OpenError, match="can't be opened"):
        ex.open_hlo(tmp_path / name)


def test_an_empty_text_and_a_folder_without_modules_are_refused(tmp_path):
    for text in ("", " ", "\n\n"):
        with pytest.raises(ex.errors.OpenError, match="the text is empty"):
            ex.open_hlo(text)
    with pytest.raises(ex.errors.OpenError, match="holds no module"):
        ex.open_hlo(tmp_path)


# What can't be read is shown -----------------------------------------------------------------------------------------


def test_a_line_that_cannot_be_read_is_kept_and_named(text):
    lines = text.split("\n")
    broken = next(i for i, line in enumerate(lines) if " tanh(" in line)
    lines[broken] = "  %tanh.1 = ?? what is this"
    capture = ex.open_hlo("\n".join(lines))
    assert capture.hlo.graph.unread == (broken,)
    assert capture.failure.startswith(f"1 line unread; XLA's parser says of line {broken + 1}: ")
    assert len(capture.hlo.graph) == len(ex.open_hlo(text).hlo.graph) - 1
    assert "what is this" in capture.hlo.text


def test_the_unread_lines_travel_with_a_saved_capture(tmp_path):
    capture = ex.open_hlo("HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n  ?\n  b = f32[] tanh(a)\n}\n")
    capture.save(tmp_path / "m.capture")
    assert ex.load(tmp_path / "m.capture").hlo.graph.unread == capture.hlo.graph.unread == (3,)


@pytest.mark.parametrize("text", ["hello\nworld", "HloModule broken\n\nENTRY {\n???\n}", "module @m {\n}\n"])
def test_a_text_without_a_readable_line_is_still_shown(text, tmp_path):
    capture = ex.open_hlo(text)
    (stage,) = capture.stages
    assert stage.text == text
    assert len(stage.graph) == 0
    assert all(line in ("hello", "world", "???") for line in (text.split("\n")[i] for i in stage.graph.unread))
    assert capture.failure.startswith("this text holds no")
    # Every view of it works.
    page = capture.to_html(tmp_path / "page.html").read_text()
    assert "holds no" in page
    assert "<svg" not in repr(capture)
    capture.save(tmp_path / "empty.capture")
    loaded = ex.load(tmp_path / "empty.capture")
    assert loaded.stages[0].text == text
    assert capture.coverage(stage.name) == 0
    assert capture.nodes_at(1, stage.name) == ()
    assert stage.graph.where("op:dot") == ()


def test_the_cost_of_an_opened_module_is_what_its_kernels_cost():
    capture = ex.open_hlo(
        "HloModule m\nENTRY e {\n  a = f32[8,16]{1,0} parameter(0)\n  b = f32[16,4]{1,0} parameter(1)\n"
        "  ROOT d = f32[8,4]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    assert capture.cost == {"flops": 2 * 8 * 16 * 4, "bytes accessed": 4 * (8 * 16 + 16 * 4 + 8 * 4)}


def test_a_cost_of_which_a_part_is_not_known_is_left_out():
    capture = ex.open_hlo(
        "HloModule m\nENTRY e {\n  a = f32[8] parameter(0)\n  ROOT c = f32[8] custom-call(a)"
        ', custom_call_target="f"\n}\n'
    )
    assert "flops" not in capture.cost
    assert capture.cost["bytes accessed"] == 64
