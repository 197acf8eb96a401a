"""What each text below HLO says of its functions."""

from explorer.capture import kernel_code

MODULE = """//
.version 9.0
.target sm_90a

.extern .shared .align 16 .b8 global_smem[];

.visible .entry first_1(
	.param .u64 first_1_param_0
)
.reqntid 64, 1, 1
{
	.reg .b32 	%r<80>;
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %r1 }, { %r2 }, { %r3 }, { %r1 };
	wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 { %r1 }, %rd1, %rd2, 1, 1, 1, 0, 1;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4}, [%rd37];
	ret;
}
	// .globl	second
.visible .entry second(
	.param .u64 second_param_0
)
{
	call.uni (retval0), __assertfail, (param0);
	ret;
}
"""


def test_ptx_has_a_text_for_each_kernel():
    functions = dict(kernel_code.ptx_functions(MODULE))
    assert list(functions) == ["first_1", "second"]
    assert functions["first_1"].startswith(".visible .entry first_1(")
    assert functions["first_1"].endswith("ret;\n}")
    assert "mma" not in functions["second"]


def test_ptx_says_how_many_threads_a_block_has_and_which_tensor_instructions_run():
    first, second = (text for _, text in kernel_code.ptx_functions(MODULE))
    assert kernel_code.block_of(first) == (64, 1, 1)
    assert kernel_code.block_of(second) == ()
    # ldmatrix loads: it is no product.
    assert [name.partition(".")[0] for name in kernel_code.ptx_matrix_instructions(first)] == ["mma", "wgmma"]
    assert kernel_code.ptx_matrix_instructions(second) == ()
    assert (kernel_code.ptx_calls(first), kernel_code.ptx_calls(second)) == ((), ("__assertfail",))


LLVM = """; ModuleID = 'm'
declare float @powf(float, float)

define ptr @add_fusion.1(ptr %0) #0 {
  %wide = load <16 x float>, ptr %0, align 4
  %a = fadd <8 x float> %2, splat (float 1.0)
  %b = call <8 x float> @llvm.fma.v8f32(<8 x float> %a, <8 x float> %a, <8 x float> %a)
  ret ptr null
}

define internal void @"wrapped reduce"(ptr %0) {
  %1 = call float @powf(float %0, float 2.0)
  ret void
}

define ptr @wrapped_reduce-window(ptr %0) {
  ret ptr null
}
"""


def test_llvm_has_a_text_for_each_function_whatever_its_name():
    assert [name for name, _ in kernel_code.llvm_functions(LLVM)] == [
        "add_fusion.1",
        "wrapped reduce",
        "wrapped_reduce-window",
    ]


def test_llvm_computes_as_wide_as_its_arithmetic_not_as_its_loads():
    texts = dict(kernel_code.llvm_functions(LLVM))
    assert kernel_code.vector_bits(texts["add_fusion.1"]) == 256
    assert kernel_code.vector_bits(texts["wrapped reduce"]) == 0
    assert kernel_code.llvm_calls(texts["add_fusion.1"]) == ()
    assert kernel_code.llvm_calls(texts["wrapped reduce"]) == ("powf",)


def test_launches_know_their_instruction_by_the_number_of_their_thunk():
    sequence = (
        "001: kCustomKernel [source | next=002 (1)] dot_2 grid: [16, 2, 1] threads: [64, 1, 1]  shared_memory: 768\n"
        "002: kWhile [prev=001 (1)]\n"
        "  003: kKernel [prev=001 (1) | sink ] dot_2 grid: [16, 2, 1] threads: [64, 1, 1]  shared_memory: 768\n"
    )
    metadata = "\n".join(
        f'thunk_metadata {{\n  thunk_info {{\n    profile_annotation: "{name}"\n    thunk_id: {number}\n  }}\n}}'
        for number, name in ((3, "dot.7"), (1, "dot.2"))
    )
    first, second = kernel_code.launches(sequence, metadata)
    assert (first.function, first.kernel, first.grid, first.block, first.shared) == (
        "dot_2",
        "dot.2",
        (16, 2, 1),
        (64, 1, 1),
        768,
    )
    assert second.kernel == "dot.7"


def test_bundles_are_counted_as_the_compiler_counts_them_and_spills_as_it_names_them():
    schedule = "Schedule analysis:\n\ttotal scheduled bundles:    1761\n\tempty scheduled bundles:    9\n"
    text = (
        "   0x1   :  { %v2 = vld [vmem:[%s0] sm:$0xff]  ;;  %3 = vst [vmem:[#allocation4_spill] sm:$0xff] %v2 }\n"
        "   0x2   :  { %v5 = vmatmul.lmr.bf16.gmra.16.mxu3 %v4  ;;  %v6 = vmatmul.f32.gmra.mxu0 %v4 }\n"
        "   0x3   :  { %v7 = vld [vmem:[#allocation4_spill] sm:$0xff]  ;;  %8 = vst [vmem:[%s1] sm:$0xff] %v7 }\n"
        "   0x4   :  { %9 = sst [smem:[#allocation5_spill]] %s3 }\n"
    )
    assert kernel_code.bundle_count(schedule) == 1761
    assert kernel_code.bundle_count("") is None
    assert kernel_code.tpu_spills(text) == 2
    assert kernel_code.tpu_matrix_instructions(text) == ("vmatmul.bf16", "vmatmul.f32")
