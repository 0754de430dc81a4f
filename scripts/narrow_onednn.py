#!/usr/bin/env python3
"""Narrows oneDNN's source to what Graft calls, before it is built (adr/0079): narrow_onednn.py FOLDER.

Kernels for numbers other than f32 and bf16 leave the lists from which oneDNN chooses, and the files go that only they or
primitives which nobody asks for need: they would be compiled, then dropped by the linker. It fails where something is
missing, and so does this program where it finds nothing to change.
"""
import re
import sys
from pathlib import Path

OTHER_TYPES = r"(s8|u8|s32|f16|s4|u4|f8_\w+|f4_\w+|e8m0)"
# What is named by it computes with other types, on processors that have instructions for them.
OTHER_KERNELS = r"(x8s8s32x|int8|fp16|avx2_vnni>|core_vnni|sparse)"

PRIMITIVES = r"(rnn|lrn|prelu|shuffle|pool|normalization|resampling|softmax)"
# Names without their endings.
UNUSED_FILES = [
    rf"(?!cpu_\w+_list).*{PRIMITIVES}.*",
    r".*(x8s8s32x|_int8|eltwise_int|uni_reduction|ref_reduction|xf16_sum|simple_sum|simple_concat|sparse_matmul).*",
    r"jit_uni_(eltwise|binary|binary_kernel)",
    r"cpu_reorder_(comp|regular_(f32_)?(f16|fp4|fp8|s4|s8|s32|u4|u8)).*",
]


def cut_entries(text):
    """A table {{key...}, {kernels...}}, without the entries whose key names another type."""
    entry = re.compile(r"^ {8}\{\{([\w, ]+)\}, .*?^ {8}\}\)?\},\n", re.M | re.S)
    text = entry.sub(lambda m: "" if re.search(rf"\b{OTHER_TYPES}\b", m[1]) else m[0], text)
    return cut_lines(text, r"^ {8}BRGEMM_FP8_")


def cut_lines(text, pattern):
    return "".join(line for line in text.splitlines(keepends=True) if not re.search(pattern, line))


def edit(path, change):
    before = path.read_text(encoding="utf-8")
    after = change(before)
    if after == before:
        sys.exit(f"narrow_onednn: nothing to change in {path}: is it another version?")
    path.write_text(after, encoding="utf-8")


def narrow_lists(cpu):
    for name in ("convolution", "inner_product"):
        edit(cpu / f"cpu_{name}_list.cpp", cut_entries)
    for name in ("cpu_deconvolution_list.cpp", "matmul/cpu_matmul_list.cpp"):
        edit(cpu / name, lambda text: cut_lines(text, rf"^ +CPU_INSTANCE.*{OTHER_KERNELS}"))
    edit(cpu / "reorder/cpu_reorder.cpp",
         lambda text: cut_lines(text, rf"^ +\{{\{{.*\b{OTHER_TYPES}\b.*_impl_list_map"))
    for path in [*cpu.glob("x64/jit_brgemm_*conv*.cpp"), cpu / "x64/matmul/brgemm_matmul.cpp",
                 cpu / "x64/jit_brgemm_inner_product.cpp"]:
        unused = rf"^template struct brgemm_\w+<\w*{OTHER_KERNELS}"
        if re.search(unused, path.read_text(encoding="utf-8"), re.M):
            edit(path, lambda text: cut_lines(text, unused))


def delete_files(cpu):
    for path in cpu.rglob("*.cpp"):
        if any(re.fullmatch(pattern, path.stem) for pattern in UNUSED_FILES) or \
                re.search(PRIMITIVES, path.parent.name):
            path.unlink()


def drop_8_bit_products(gemm):
    """Such a product would run in plain code."""
    for path in gemm.glob("s8x8s32/*_autogen.cpp"):
        path.unlink()
    edit(gemm / "gemm_info.cpp", lambda text: re.sub(
        r"(case data_type::s8:[^\n]*\n[^\n]*)if \(false\)", r"\1if (true)", text))


def main(folder):
    cpu = Path(folder) / "src/cpu"
    narrow_lists(cpu)
    delete_files(cpu)
    drop_8_bit_products(cpu / "x64/gemm")


if __name__ == "__main__":
    main(*sys.argv[1:])
