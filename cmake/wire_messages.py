"""Writes the classes of ONNX's messages: python3 wire_messages.py LIST HEADER SOURCE

LIST is io/wire/onnx.messages, which says what it may hold. Each class has the functions that protoc
would give it, as far as io/proto calls them (adr/0076).
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

NUMBERS = {"int64": ("std::int64_t", "int64"), "int32": ("std::int32_t", "int32"),
           "uint64": ("std::uint64_t", "uint64"), "float": ("float", "float32"),
           "double": ("double", "float64")}


@dataclass
class Field:
    name: str
    number: int
    kind: str  # "string", one of NUMBERS, or a class
    many: bool
    packed: bool
    one_of: bool
    enum: "Enum | None" = None
    enum_type: str = ""


@dataclass
class Enum:
    name: str
    values: list


@dataclass
class Message:
    name: str  # TypeProto.Tensor is the class TypeProto_Tensor
    enums: list = field(default_factory=list)
    fields: list = field(default_factory=list)

    @property
    def cls(self):
        return self.name.replace(".", "_")


def read(path):
    constants, messages = [], []
    for line in Path(path).read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "constant":
            constants.append((words[1], words[2]))
        elif words[0] == "message":
            messages.append(Message(words[1]))
        elif words[0] == "enum":
            messages[-1].enums.append(Enum(words[1], [v.split("=") for v in words[2:]]))
        else:
            name, number, *marks, kind = words
            enum = next((e for e in messages[-1].enums if e.name == kind), None)
            many = "many" in marks or "packed" in marks
            messages[-1].fields.append(Field(name, int(number), "int32" if enum else kind.replace(".", "_"), many,
                                             "packed" in marks, "one_of" in marks, enum,
                                             f"{messages[-1].cls}::{enum.name}" if enum else ""))
    for message in messages:
        message.fields.sort(key=lambda f: f.number)
    return constants, messages


def member_type(f):
    if f.kind == "string":
        return "Strings" if f.many else "std::string"
    if f.kind in NUMBERS:
        cpp = NUMBERS[f.kind][0]
        return f"Numbers<{cpp}>" if f.many else cpp
    return f"List<{f.kind}>" if f.many else f"Slot<{f.kind}>"


def many_accessors(f, declare):
    n, kind = f.name, member_type(f)
    declare(f"const {kind}& {n}() const", f"return {n}_;")
    declare(f"{kind}* mutable_{n}()", f"return &{n}_;")
    declare(f"int {n}_size() const", f"return {n}_.size();")
    declare(f"void clear_{n}()", f"{n}_.Clear();")
    if f.kind in NUMBERS:
        cpp = NUMBERS[f.kind][0]
        declare(f"{cpp} {n}(int i) const", f"return {n}_[i];")
        declare(f"void add_{n}({cpp} value)", f"{n}_.Add(value);")
        return
    item = "std::string" if f.kind == "string" else f.kind
    declare(f"const {item}& {n}(int i) const", f"return {n}_[i];")
    declare(f"{item}* mutable_{n}(int i)", f"return &{n}_[i];")
    declare(f"{item}* add_{n}()", f"return {n}_.Add();")
    if f.kind == "string":
        declare(f"void add_{n}(std::string value)", f"*{n}_.Add() = std::move(value);")


def accessors(f, index, declare):
    n = f.name
    declare(f"bool has_{n}() const", f"return has({index});")
    declare(f"void clear_{n}()", f"clear({index});")
    if f.kind == "string":
        declare(f"const std::string& {n}() const", f"return {n}_;")
        declare(f"std::string* mutable_{n}()", f"set({index}); return &{n}_;")
        declare(f"void set_{n}(std::string value)", f"set({index}); {n}_ = std::move(value);")
        declare(f"void set_{n}(const void* bytes, std::size_t count)",
                f"set({index}); {n}_.assign(static_cast<const char*>(bytes), count);")
    elif f.kind in NUMBERS:
        cpp = f.enum_type or NUMBERS[f.kind][0]
        declare(f"{cpp} {n}() const", f"return static_cast<{cpp}>({n}_);")
        declare(f"void set_{n}({cpp} value)", f"set({index}); {n}_ = value;")
    else:
        declare(f"const {f.kind}& {n}() const",
                f"return {n}_.find() != nullptr ? static_cast<const {f.kind}&>(*{n}_.find()) : {f.kind}::none();")
        declare(f"{f.kind}* mutable_{n}()", f"set({index}); return static_cast<{f.kind}*>(&{n}_.get());")


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


def declare_class(message, inner, out, inline):
    cls = message.cls
    out.append(f"class {cls} final : public Message {{\n public:")
    out += [f"  using {m.name.split('.')[1]} = {m.cls};" for m in inner]
    for enum in message.enums:
        out.append(f"  enum {enum.name} : std::int32_t {{ {', '.join(f'{k} = {v}' for k, v in enum.values)} }};")
        out.append(f"  static std::string {enum.name}_Name(std::int32_t value);")
    choices = [f for f in message.fields if f.one_of]
    if choices:
        names = ", ".join(f"k{camel(f.name)} = {f.number}" for f in choices)
        out.append(f"  enum ValueCase {{ VALUE_NOT_SET = 0, {names} }};")
        out.append("  ValueCase value_case() const { return static_cast<ValueCase>(which()); }")
        out.append("  void clear_value() { clear_one_of(); }")
    out.append(f"""  {cls}();
  {cls}(const {cls}& other);
  {cls}({cls}&& other) noexcept;
  {cls}& operator=(const {cls}& other);
  {cls}& operator=({cls}&& other) noexcept;
  ~{cls}() override;
  std::unique_ptr<Message> clone() const override;
  /// What a field that is left out reads as.
  static const {cls}& none();
""")

    def declare(head, body):
        out.append(f"  {head};")
        result, _, rest = head.partition(f"{cls_marker(head)}(")
        inline.append(f"inline {result}{cls}::{cls_marker(head)}({rest} {{ {body} }}")

    for index, f in enumerate(message.fields):
        if f.many:
            many_accessors(f, declare)
        else:
            accessors(f, index, declare)
    out.append("""
 protected:
  std::span<const Field> fields() const override;
  void* content(std::size_t index) override;

 private:""")
    for f in message.fields:
        start = "{}" if f.kind in NUMBERS and not f.many else ""
        out.append(f"  {member_type(f)} {f.name}_{start};")
    out.append("};\n")


def cls_marker(head):
    """The name of the function that the head declares."""
    return head.split("(")[0].split()[-1].lstrip("*&")


def field_row(f):
    kind = NUMBERS[f.kind][1] if f.kind in NUMBERS else "string" if f.kind == "string" else "message"
    flags = ", ".join(str(flag).lower() for flag in (f.many, f.packed, f.one_of))
    largest = max(int(v) for _, v in f.enum.values) if f.enum else 0
    return f"{{{f.number}, Kind::{kind}, {flags}, {largest}}}"


def define_class(message, out):
    cls = message.cls
    out.append(f"""{cls}::{cls}() = default;
{cls}::{cls}(const {cls}& other) = default;
{cls}::{cls}({cls}&& other) noexcept = default;
{cls}& {cls}::operator=(const {cls}& other) = default;
{cls}& {cls}::operator=({cls}&& other) noexcept = default;
{cls}::~{cls}() = default;
std::unique_ptr<Message> {cls}::clone() const {{ return std::make_unique<{cls}>(*this); }}
const {cls}& {cls}::none() {{
  static const {cls} empty;
  return empty;
}}""")
    if message.fields:
        rows = ", ".join(field_row(f) for f in message.fields)
        places = ", ".join(f"&{f.name}_" for f in message.fields)
        out.append(f"""std::span<const Field> {cls}::fields() const {{
  static constexpr Field all[] = {{{rows}}};
  return all;
}}
void* {cls}::content(std::size_t index) {{
  void* const all[] = {{{places}}};
  return all[index];
}}""")
    else:
        out.append(f"""std::span<const Field> {cls}::fields() const {{ return {{}}; }}
void* {cls}::content(std::size_t) {{ return nullptr; }}""")
    for enum in message.enums:
        cases = "\n".join(f'    case {v}: return "{k}";' for k, v in enum.values)
        out.append(f"""std::string {cls}::{enum.name}_Name(std::int32_t value) {{
  switch (value) {{
{cases}
    default: return "";
  }}
}}""")
    out.append("")


def main(path, header, source):
    constants, messages = read(path)
    head, inline, body = [], [], []
    for name, value in constants:
        head.append(f"inline constexpr int {name} = {value};")
    head += [f"class {m.cls};" for m in messages] + [""]
    for message in messages:
        inner = [m for m in messages if m.name.startswith(message.name + ".")]
        declare_class(message, inner, head, inline)
        define_class(message, body)
    note = "// Made of io/wire/onnx.messages by cmake/wire_messages.py.\n"
    Path(header).write_text(note + '#pragma once\n\n#include "io/wire/message.h"\n\nnamespace graft::onnx::wire {\n\n'
                            + "\n".join(head + inline) + "\n\n}  // namespace graft::onnx::wire\n")
    Path(source).write_text(note + f'#include "{Path(header).name}"\n\nnamespace graft::onnx::wire {{\n\n'
                            + "\n".join(body) + "\n}  // namespace graft::onnx::wire\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
