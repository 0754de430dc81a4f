"""Takes out of oneDNN's library what Graft never calls.

Usage: trim_onednn.py FROM TO

What ONEDNN_ENABLE_PRIMITIVE leaves out where oneDNN is built is left out here of a library that was
built with all (adr/0054). From the functions that Graft calls, all that can be reached is followed:
through calls and addresses in code, as objdump reads them, and through relocations in data. Code that
is not reached becomes traps, and its names are undefined, so that no program is linked with them; symbols
for debuggers are stripped. Wants what the library's .symtab says: exits with 1 where it has none.
"""

import bisect
import collections
import os
import re
import struct
import subprocess
import sys

# What Graft calls (dnnl.h). A program that calls another one is not linked: then it is added here.
CALLED = """
convolution_backward_data_primitive_desc_create convolution_backward_weights_primitive_desc_create
convolution_forward_primitive_desc_create deconvolution_forward_primitive_desc_create engine_create
engine_destroy get_effective_cpu_isa matmul_primitive_desc_create memory_create_v2 memory_desc_clone
memory_desc_create_with_strides memory_desc_create_with_tag memory_desc_destroy memory_desc_equal
memory_desc_get_size_v2 memory_desc_query memory_destroy memory_get_engine memory_get_memory_desc
memory_set_data_handle post_ops_append_eltwise post_ops_append_sum post_ops_create post_ops_destroy
primitive_attr_create primitive_attr_destroy primitive_attr_set_post_ops
primitive_attr_set_scratchpad_mode primitive_create primitive_desc_destroy primitive_desc_next_impl
primitive_desc_query primitive_desc_query_md primitive_destroy primitive_execute
reorder_primitive_desc_create set_max_cpu_isa sgemm stream_create stream_destroy stream_wait version
""".split()

# The lists of implementations that become empty, as for a primitive that was not built. Convolutions
# are made of matrix and inner products and of reorders, which stay.
LISTS = re.compile(
    "get_(lrn|rnn|prelu|binary|eltwise|pooling|shuffle|softmax|reduction|resampling"
    "|batch_normalization|layer_normalization)_impl_list|get_(concat|sum)_implementation_list"
)
# What makes implementations for other numbers than f32 and bf16 answers that there are none. Types are
# numbers in the names of templates: 1 f16, 4 s32, 5 s8, 6 u8.
MAKERS = re.compile("(primitive_desc_t6createI|pd_t6createE).*")
OTHER_NUMBERS = re.compile("16dnnl_data_type_t[1456]E|x8s8|int8|_s8_|rnn_")
# So do matrix products of integers.
INTEGER_PRODUCTS = re.compile("gemm_[sx]8[xsu]8|gemm_driverI[ah]")
# Graphs of oneDNN's own: Graft makes none.
NEVER = re.compile("4impl5graph|^dnnl_graph")

EMPTY_LIST = b"\x48\x8d\x05\x01\0\0\0\xc3" + bytes(32)  # lea 1(%rip), %rax; ret; one item of zeros
UNIMPLEMENTED = b"\xb8\x03\0\0\0\xc3"  # mov $dnnl_unimplemented, %eax; ret
RETURN, TRAP = b"\xc3", b"\xcc"
MAKER, HALF_OF_MAKER = "_GLOBAL__sub_I_", "__static_initialization_and_destruction_0"

SHF_ALLOC, STT_OBJECT, STT_FUNC, WEAK_FUNCTION = 2, 1, 2, 0x22
R_64, R_RELATIVE, DT_RELACOUNT = 1, 8, 0x6FFFFFF9
REFERENCE = re.compile(
    rb"^ +([0-9a-f]+):\t(?:(?:bnd )?(?:call|j)\w*\s+([0-9a-f]+) <|.*# ([0-9a-f]+) <)", re.M
)

Section = collections.namedtuple("Section", "name type flags address offset size")
Symbol = collections.namedtuple("Symbol", "name type section address size at")


class Library:
    """A shared library (ELF, 64 bits, little-endian) and the pieces that its symbols divide it into."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = bytearray(file.read())
        self.path = path
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self.sections = {section.name: section for section in self.read_sections()}
        if ".symtab" not in self.sections:
            raise ValueError("it is stripped, and without .symtab its functions are not known")
        self.symbols = self.read_symbols(".symtab", ".strtab")
        self.exports = self.read_symbols(".dynsym", ".dynstr")
        self.text, self.plt = self.sections[".text"], self.sections[".plt"]
        self.names = {symbol.address: symbol.name for symbol in self.symbols if symbol.section}
        self.pieces = self.divide()

    def get(self, form, at):
        return struct.unpack_from("<" + form, self.data, at)

    def string(self, at):
        return self.data[at : self.data.index(b"\0", at)].decode()

    def read_sections(self):
        (at,), (size, count, names) = self.get("Q", 40), self.get("3H", 58)
        heads = [self.get("IIQQQQ", at + i * size) for i in range(count)]
        return [Section(self.string(heads[names][4] + head[0]), *head[1:]) for head in heads]

    def read_symbols(self, table, strings):
        table, strings, symbols = self.sections[table], self.sections[strings], []
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, section, address, size = self.get("IBBHQQ", at)
            symbols.append(Symbol(self.string(strings.offset + name), info & 15,
                                  section if section < 0xFF00 else 0, address, size, at))  # fmt: skip
        return symbols

    def divide(self):
        """The addresses at which pieces start: functions, objects, slots of tables, and what is between."""
        starts = set()
        for symbol in self.symbols:
            if symbol.section and symbol.type in (STT_OBJECT, STT_FUNC):
                starts.update((symbol.address, symbol.address + symbol.size))
        for section in self.sections.values():
            if section.flags & SHF_ALLOC:
                starts.update((section.address, section.address + section.size))
        for name, step in ((".got", 8), (".init_array", 8), (".plt", 16)):
            section = self.sections[name]
            starts.update(range(section.address, section.address + section.size, step))
        return sorted(starts)

    def piece(self, address):
        return self.pieces[bisect.bisect_right(self.pieces, address) - 1]

    def size(self, piece):
        return self.pieces[bisect.bisect_right(self.pieces, piece)] - piece

    def is_in(self, name, address):
        section = self.sections[name]
        return section.address <= address < section.address + section.size

    def write(self, piece, content):
        """At the start of a piece of code; the rest of it becomes traps."""
        if len(content) > self.size(piece):
            raise ValueError(f"{self.names.get(piece, hex(piece))} is shorter than what replaces it")
        at = piece - self.text.address + self.text.offset
        self.data[at : at + self.size(piece)] = content.ljust(self.size(piece), TRAP)

    def relocations(self):
        """(place in the file, address, type, number of the symbol, addend) of each."""
        for name in (".rela.dyn", ".rela.plt"):
            section = self.sections[name]
            for at in range(section.offset, section.offset + section.size, 24):
                address, kind, symbol, addend = self.get("QIIq", at)
                yield at, address, kind, symbol, addend


def references(library):
    """For each piece the pieces that it refers to."""
    edges = collections.defaultdict(set)
    for _, address, kind, symbol, addend in library.relocations():
        if kind == R_RELATIVE:
            edges[library.piece(address)].add(library.piece(addend))
        elif library.exports[symbol].section:
            target = library.exports[symbol].address + (addend if kind == R_64 else 0)
            edges[library.piece(address)].add(library.piece(target))
    objdump = subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", library.path],
                               stdout=subprocess.PIPE)  # fmt: skip
    rest = b""
    while block := objdump.stdout.read(1 << 24):
        lines, end, rest = (rest + block).rpartition(b"\n")
        for found in REFERENCE.finditer(lines + end):
            source, target = library.piece(int(found[1], 16)), int(found[2] or found[3], 16)
            edges[source].add(library.piece(target))
    if objdump.wait() != 0:
        raise ValueError("objdump failed")
    return edges


def replacement(name):
    """What a function becomes that is not followed; None for one that stays."""
    if NEVER.search(name):
        return TRAP
    if LISTS.search(name):
        return EMPTY_LIST
    is_maker = MAKERS.search(name)
    if (is_maker and OTHER_NUMBERS.search(is_maker[0])) or INTEGER_PRODUCTS.search(name):
        return UNIMPLEMENTED
    return None


class Reach:
    """What can be reached, through functions that are not replaced."""

    def __init__(self, library):
        self.library, self.edges = library, references(library)
        self.replaced = {}
        for symbol in library.symbols:
            if symbol.type == STT_FUNC and library.is_in(".text", symbol.address):
                if (code := replacement(symbol.name)) is not None:
                    self.replaced[symbol.address] = code
        self.reached = set()
        self.makers = collections.defaultdict(set)  # of static objects, by object

    def follow(self, roots):
        todo = list(roots)
        while todo:
            piece = todo.pop()
            if piece in self.reached or piece in self.replaced:
                continue
            self.reached.add(piece)
            todo.extend(self.edges[piece])
            todo.extend(self.makers[piece])

    def start(self):
        library = self.library
        exported = {s.name: library.piece(s.address) for s in library.exports if s.section}
        roots = [exported["dnnl_" + name] for name in CALLED]
        roots += [library.sections[name].address for name in (".init", ".fini", ".plt")]
        roots += [p for p in library.pieces if library.is_in(".fini_array", p)]
        for slot in (p for p in library.pieces if library.is_in(".init_array", p)):
            (maker,) = self.edges[slot] or (slot,)
            made = self.only_makes(maker)
            for piece in made:
                self.makers[piece].add(maker)
            if not made:
                roots.append(maker)
        self.follow(roots)

    def only_makes(self, maker):
        """The static objects of a source file that one function makes when the library is loaded: it is
        wanted when one of them is. None where it does something else for others than graphs."""
        library, names = self.library, self.library.names
        if not names.get(maker, "").startswith(MAKER):
            return []
        targets = set(self.edges[maker])
        for part in [t for t in targets if HALF_OF_MAKER in names.get(t, "")]:
            targets = targets - {part} | self.edges[part]
        called = [names.get(t, "") for t in targets - {maker} if library.is_in(".text", t)]
        if called and not any(NEVER.search(name) for name in called):
            return []
        return [target for target in targets if library.is_in(".bss", target)]

    def trim(self):
        library, code = self.library, 0
        for piece in (p for p in library.pieces if library.is_in(".text", p)):
            if piece in self.replaced:
                library.write(piece, self.replaced[piece])
            elif piece not in self.reached:
                is_maker = library.names.get(piece, "").startswith(MAKER)
                library.write(piece, RETURN if is_maker else TRAP)
            else:
                code += library.size(piece)
        self.drop_relocations()
        for symbol in library.exports:
            if symbol.section and library.piece(symbol.address) not in self.reached:
                struct.pack_into("<BBHQQ", library.data, symbol.at + 4, WEAK_FUNCTION, 0, 0, 0, 0)
        return code

    def drop_relocations(self):
        """Of data that is not reached. Relative ones stay at the front, where the loader wants them."""
        library, section = self.library, self.library.sections[".rela.dyn"]
        kept, relative = [], 0
        for at, address, kind, _, _ in library.relocations():
            if not section.offset <= at < section.offset + section.size:
                continue
            is_wanted = library.piece(address) in self.reached or library.is_in(".init_array", address)
            if is_wanted or kind not in (R_64, R_RELATIVE):
                kept.append((kind != R_RELATIVE, bytes(library.data[at : at + 24])))
                relative += kind == R_RELATIVE
        kept.sort(key=lambda pair: pair[0])
        table = b"".join(entry for _, entry in kept).ljust(section.size, b"\0")
        library.data[section.offset : section.offset + section.size] = table
        dynamic = library.sections[".dynamic"]
        for at in range(dynamic.offset, dynamic.offset + dynamic.size, 16):
            if library.get("Q", at)[0] == DT_RELACOUNT:
                struct.pack_into("<Q", library.data, at + 8, relative)


def main():
    source, target = sys.argv[1:]
    try:
        library = Library(source)
        reach = Reach(library)
        reach.start()
        code = reach.trim()
    except (ValueError, KeyError) as error:
        sys.exit(f"{source}: {error}")
    with open(target + ".new", "wb") as file:
        file.write(library.data)
    subprocess.run(["strip", "--strip-unneeded", target + ".new"], check=True)
    os.replace(target + ".new", target)
    print(f"{code / 1e6:.1f} of {library.text.size / 1e6:.1f} MB of code stay", file=sys.stderr)


if __name__ == "__main__":
    main()
