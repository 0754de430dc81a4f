"""Copies oneDNN's library so that its loops run on Graft's threads.

Usage: onednn_threads.py FROM TO

Of an OpenMP build by GCC (ELF, 64 bits, little-endian), the calls of libgomp get the names that
core/ops/kernels/openmp_calls.cpp defines, of the same length and without a version, and libgomp
is no longer needed. Nothing else changes. Exits with 1 and says why where a library calls something
else of OpenMP.
"""

import os
import struct
import sys

NAMES = {
    b"GOMP_barrier", b"GOMP_loop_end_nowait", b"GOMP_loop_static_next",
    b"GOMP_loop_static_start", b"GOMP_parallel", b"GOMP_parallel_end", b"GOMP_parallel_start",
    b"omp_get_max_threads", b"omp_get_num_threads", b"omp_get_thread_num", b"omp_in_parallel",
    b"omp_set_num_threads",
}  # fmt: skip
OPENMP = (b"GOMP_", b"omp_", b"__kmpc_", b"kmp_")
DT_NULL, DT_NEEDED, DT_STRTAB, DT_SYMTAB = 0, 1, 5, 6
DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM, DT_GNU_HASH = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF, 0x6FFFFEF5
PT_LOAD, PT_DYNAMIC, SHT_VERNEED = 1, 2, 0x6FFFFFFE
VER_GLOBAL = 1


class Library:
    def __init__(self, data):
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        at, size, count = self.get("Q", 32), self.get("H", 54), self.get("H", 56)
        heads = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
        # (address, offset, bytes) of what is loaded
        self.loads = [(h[3], h[2], h[5]) for h in heads if h[0] == PT_LOAD]
        self.dynamic_at = next(h[2] for h in heads if h[0] == PT_DYNAMIC)
        self.tags = dict(reversed(self.dynamic()))

    def get(self, form, at):
        return struct.unpack_from("<" + form, self.data, at)[0]

    def put(self, form, at, *values):
        struct.pack_into("<" + form, self.data, at, *values)

    def offset(self, tag):
        address = self.tags[tag]
        return next(o + address - a for a, o, size in self.loads if a <= address < a + size)

    def string(self, at):
        start = self.offset(DT_STRTAB) + at
        return bytes(self.data[start : self.data.index(b"\0", start)])

    def dynamic(self):
        """The (tag, value) pairs before the end."""
        pairs = []
        while not pairs or pairs[-1][0] != DT_NULL:
            pairs.append(struct.unpack_from("<QQ", self.data, self.dynamic_at + 16 * len(pairs)))
        return pairs[:-1]

    def rename_calls(self):
        """Undefined symbols stand before those of the hash table. Returns how many it renamed."""
        symbols, versions = self.offset(DT_SYMTAB), self.offset(DT_VERSYM)
        renamed = 0
        for i in range(1, self.get("I", self.offset(DT_GNU_HASH) + 4)):
            name_at = self.get("I", symbols + 24 * i)
            name = self.string(name_at)
            if not name.startswith(OPENMP):
                continue
            if name not in NAMES:
                raise ValueError(f"it calls {name.decode()}, which Graft has not")
            own = name.replace(b"GOMP_", b"GRFT_").replace(b"omp_", b"gft_", 1)
            start = self.offset(DT_STRTAB) + name_at
            self.data[start : start + len(name)] = own
            self.put("H", versions + 2 * i, VER_GLOBAL)
            renamed += 1
        return renamed

    def drop_versions(self, library):
        """Takes the library out of the chain of needed versions."""
        at, before, count = self.offset(DT_VERNEED), None, self.tags[DT_VERNEEDNUM]
        for _ in range(count):
            step = self.get("I", at + 12)
            if self.string(self.get("I", at + 4)) == library:
                break
            at, before = at + step, at
        else:
            return
        if count == 1:
            raise ValueError("it needs versions of libgomp alone")
        skipped = 0
        if before is None:  # the chain begins with the next one
            skipped = step
        else:
            self.put("I", before + 12, at + step - before if step else 0)
        changes = {DT_VERNEED: skipped, DT_VERNEEDNUM: -1}
        self.set_dynamic([(t, v + changes.get(t, 0)) for t, v in self.dynamic()])
        at, size, sections = self.get("Q", 40), self.get("H", 58), self.get("H", 60)
        for head in range(at, at + sections * size, size):  # where the linker reads it
            if self.get("I", head + 4) == SHT_VERNEED:
                address, offset, length = (self.get("Q", head + field) for field in (16, 24, 32))
                self.put("QQQ", head + 16, address + skipped, offset + skipped, length - skipped)
                self.put("I", head + 44, count - 1)

    def drop_needed(self, library):
        self.set_dynamic(
            [(t, v) for t, v in self.dynamic() if t != DT_NEEDED or self.string(v) != library]
        )

    def set_dynamic(self, pairs):
        there = len(self.dynamic())
        for i, pair in enumerate(pairs + [(DT_NULL, 0)] * (there - len(pairs))):
            self.put("QQ", self.dynamic_at + 16 * i, *pair)


def main():
    source, target = sys.argv[1:]
    with open(source, "rb") as file:
        data = bytearray(file.read())
    try:
        library = Library(data)
        if library.rename_calls() == 0:
            raise ValueError("it does not call libgomp; wanted is an OpenMP build by GCC")
        library.drop_versions(b"libgomp.so.1")
        library.drop_needed(b"libgomp.so.1")
    except ValueError as error:
        sys.exit(f"{source}: {error}")
    # Linux keeps what one call writes in blocks as large as that, and maps a block as a whole.
    step = 1 << 16
    with open(target + ".new", "wb", buffering=step) as file:
        for start in range(0, len(data), step):
            file.write(data[start : start + step])
    os.replace(target + ".new", target)  # programs may run with the one that was there


if __name__ == "__main__":
    main()
