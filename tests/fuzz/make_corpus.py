"""Writes the seeds of the fuzzers into corpus/: python3 tests/fuzz/make_corpus.py. Needs onnx and NumPy."""
import gzip
import io
import json
import pathlib
import struct

import numpy as np
import onnx
from google.protobuf import text_format
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "corpus"


def write(target, name, content):
    path = FOLDER / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def model(nodes, inputs, outputs, weights=(), opset=21, functions=(), domains=()):
    """inputs and outputs: (name, type, shape)."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info(*one) for one in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights])
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    made = helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10,
                             producer_name="")
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString(deterministic=True)


def f32(*shape, start=0):
    count = int(np.prod(shape))
    return (((np.arange(count) * 7 + start) % 11 - 5) / 5).astype(np.float32).reshape(shape)


def i64(*values):
    return np.array(values, np.int64)


F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def body(name, nodes, inputs, outputs):
    return helper.make_graph(nodes, name, [helper.make_tensor_value_info(*one) for one in inputs],
                             [helper.make_tensor_value_info(*one) for one in outputs])


def dense():
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
             helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("MatMul", ["r", "v"], ["y"])]
    return model(nodes, [("x", F, ["N", 3])], [("y", F, ["N", 2])],
                 [("w", f32(4, 3)), ("b", f32(4)), ("v", f32(4, 2, start=3))])


def convolution():
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1]),
             helper.make_node("BatchNormalization", ["c", "s", "o", "m", "v"], ["n"]),
             helper.make_node("MaxPool", ["n"], ["p"], kernel_shape=[2, 2]),
             helper.make_node("GlobalAveragePool", ["p"], ["a"]),
             helper.make_node("Flatten", ["a"], ["y"])]
    return model(nodes, [("x", F, [2, 2, 5, 6])], [("y", F, [2, 3])],
                 [("w", f32(3, 2, 3, 3)), ("s", f32(3)), ("o", f32(3)), ("m", f32(3)),
                  ("v", np.abs(f32(3)) + 1)])


def attention():
    nodes = [helper.make_node("MatMul", ["x", "q"], ["xq"]),
             helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
             helper.make_node("MatMul", ["xq", "t"], ["s"]),
             helper.make_node("Softmax", ["s"], ["p"], axis=-1),
             helper.make_node("MatMul", ["p", "x"], ["a"]),
             helper.make_node("LayerNormalization", ["a", "g"], ["y"])]
    return model(nodes, [("x", F, [2, 3, 4])], [("y", F, [2, 3, 4])],
                 [("q", f32(4, 4)), ("g", f32(4))])


def choice():
    then = body("t", [helper.make_node("Add", ["x", "x"], ["a"])], [], [("a", F, [2])])
    other = body("e", [helper.make_node("Mul", ["x", "w"], ["m"])], [], [("m", F, [2])])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    return model(nodes, [("x", F, [2]), ("c", B, [])], [("y", F, [2])], [("w", f32(2))])


def loop():
    turn = body("b", [helper.make_node("Identity", ["c"], ["c2"]),
                      helper.make_node("Mul", ["s", "w"], ["s2"]),
                      helper.make_node("Identity", ["s2"], ["o"])],
                [("i", I, []), ("c", B, []), ("s", F, [2])],
                [("c2", B, []), ("s2", F, [2]), ("o", F, [2])])
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y", "all"], body=turn)]
    return model(nodes, [("x", F, [2])], [("y", F, [2]), ("all", F, [3, 2])],
                 [("n", np.array(3, np.int64)), ("w", f32(2))])


def shapes():
    nodes = [helper.make_node("Shape", ["x"], ["s"]),
             helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
             helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
             helper.make_node("Reshape", ["x", "t"], ["r"]),
             helper.make_node("Slice", ["r", "from", "to"], ["y"]),
             helper.make_node("NonZero", ["y"], ["z"])]
    return model(nodes, [("x", F, ["N", 2, 3])], [("y", F, ["M", 6]), ("z", I, [2, "K"])],
                 [("zero", i64(0)), ("rest", i64(-1)), ("from", i64(0)), ("to", i64(2**63 - 1))])


def call():
    twice = helper.make_function("f", "Twice", ["a"], ["b"],
                                 [helper.make_node("Add", ["a", "a"], ["b"])],
                                 [helper.make_opsetid("", 21)])
    nodes = [helper.make_node("Twice", ["x"], ["h"], domain="f"),
             helper.make_node("Twice", ["h"], ["y"], domain="f")]
    return model(nodes, [("x", F, [2])], [("y", F, [2])], functions=[twice], domains=["f"])


def recurrent():
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y", "h", "c"], hidden_size=2)]
    return model(nodes, [("x", F, [3, 2, 2])], [("y", F, [3, 1, 2, 2])],
                 [("w", f32(1, 8, 2)), ("r", f32(1, 8, 2))])


def quantized():
    scale, zero = np.array(0.1, np.float32), np.array(3, np.uint8)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("ReduceSum", ["d", "axes"], ["y"], keepdims=0)]
    return model(nodes, [("x", F, [2, 3])], [("y", F, [2])],
                 [("s", scale), ("z", zero), ("axes", i64(1))])


def old():
    nodes = [helper.make_node("Unsqueeze", ["x"], ["u"], axes=[0]),
             helper.make_node("Clip", ["u"], ["c"], min=-0.5, max=0.5),
             helper.make_node("Upsample", ["c", "s"], ["y"], mode="nearest")]
    return model(nodes, [("x", F, [2, 2, 2])], [("y", F, [1, 2, 4, 4])],
                 [("s", np.array([1, 1, 2, 2], np.float32))], opset=9)


def texts():
    nodes = [helper.make_node("StringConcat", ["x", "x"], ["c"]),
             helper.make_node("Equal", ["c", "x"], ["y"])]
    return model(nodes, [("x", TensorProto.STRING, [2])], [("y", B, [2])])


def typed(text):
    """A model from ONNX's text form of a ModelProto."""
    made = onnx.ModelProto()
    text_format.Parse(text, made)
    return made.SerializeToString(deterministic=True)


def containers():
    """Inputs of each kind of data."""
    tensor = "tensor_type { elem_type: 1 shape { dim { dim_param: 'N' } } }"
    kinds = [f"sequence_type {{ elem_type {{ {tensor} }} }}", f"optional_type {{ elem_type {{ {tensor} }} }}",
             f"map_type {{ key_type: 7 value_type {{ {tensor} }} }}", tensor,
             f"optional_type {{ elem_type {{ sequence_type {{ elem_type {{ {tensor} }} }} }} }}"]
    inputs = "".join(f"input {{ name: 'x{i}' type {{ {kind} }} }}" for i, kind in enumerate(kinds))
    return typed(f"""ir_version: 10 opset_import {{ version: 21 }} graph {{ name: 'g' {inputs}
        node {{ op_type: 'SequenceAt' input: 'x0' input: 'i' output: 'y' }}
        initializer {{ name: 'i' data_type: 7 int64_data: 0 }}
        output {{ name: 'y' type {{ {tensor} }} }} }}""")


def everything():
    """Fields that few files have."""
    return typed("""
        ir_version: 10 producer_name: 'pytorch' producer_version: '2.9' domain: 'd' model_version: 3 doc_string: 'm'
        opset_import { version: 21 } opset_import { domain: 'f' version: 1 }
        opset_import { domain: 'g' version: 1 } opset_import { domain: 'ai.onnx.ml' version: 5 } metadata_props { key: 'k' value: 'v' }
        functions { name: 'F' domain: 'f' input: 'a' output: 'b' attribute: 'alpha' opset_import { version: 21 }
          attribute_proto { name: 'beta' type: FLOAT f: 0.5 }
          node { op_type: 'Elu' input: 'a' output: 'b' attribute { name: 'alpha' ref_attr_name: 'alpha' type: FLOAT } } }
        graph { name: 'g' doc_string: 'd' metadata_props { key: 'a' value: 'b' }
          input { name: 'x' doc_string: 'i' type { denotation: 'IMAGE' tensor_type { elem_type: 1
            shape { dim { dim_param: 'N' denotation: 'BATCH' } dim { dim_value: 2 } } } } }
          output { name: 'y' type { tensor_type { elem_type: 1 shape { dim { } dim { } } } } }
          output { name: 'l' type { tensor_type { elem_type: 7 shape { dim { } } } } }
          value_info { name: 'h' type { tensor_type { elem_type: 1 } } }
          initializer { name: 'w' data_type: 1 dims: 2 dims: 2 float_data: 1 float_data: 2 float_data: 3 float_data: 4 }
          initializer { name: 'd' data_type: 11 dims: 1 double_data: 1 }
          initializer { name: 'u' data_type: 13 dims: 1 uint64_data: 1 }
          initializer { name: 'h16' data_type: 10 dims: 3 int32_data: 1 int32_data: 2 int32_data: 3 }
          initializer { name: 'i4' data_type: 22 dims: 3 int32_data: 33 int32_data: 2 }
          initializer { name: 's' data_type: 8 dims: 2 string_data: 'a' string_data: '' }
          initializer { name: 'r' data_type: 7 dims: 1 raw_data: '\\001\\000\\000\\000\\000\\000\\000\\000' }
          initializer { name: 'e' data_type: 1 dims: 2 data_location: EXTERNAL
            external_data { key: 'location' value: 'data' } external_data { key: 'offset' value: '8' }
            external_data { key: 'length' value: '8' } }
          sparse_initializer { dims: 9 values { name: 'sp' data_type: 1 dims: 1 float_data: 5 }
            indices { data_type: 7 dims: 1 int64_data: 4 } }
          sparse_initializer { dims: 3 dims: 3 values { name: 'sq' data_type: 1 dims: 1 float_data: 5 }
            indices { data_type: 7 dims: 1 dims: 2 int64_data: 1 int64_data: 2 } }
          quantization_annotation { tensor_name: 'w' quant_parameter_tensor_names { key: 'SCALE_TENSOR' value: 'e' } }
          node { name: 'n' doc_string: 'd' op_type: 'MatMul' input: 'x' input: 'w' output: 'h'
            metadata_props { key: 'pkg.torch.onnx.name_scopes' value: "['', 'l1', 'm']" }
            metadata_props { key: 'pkg.torch.onnx.class_hierarchy' value: "['N', 'torch.nn.modules.linear.Linear', 'aten.mm.default']" }
            metadata_props { key: 'pkg.torch.onnx.fx_node' value: '%mm : [num_users=1] = call_function[target=torch.ops.aten.mm.default](args = (%x, %p_l1_weight), kwargs = {})' } }
          node { op_type: 'F' domain: 'f' input: 'h' output: 'y' attribute { name: 'alpha' type: FLOAT f: 2 } }
          node { op_type: 'LabelEncoder' domain: 'ai.onnx.ml' input: 's' output: 'l'
            attribute { name: 'keys_strings' type: STRINGS strings: 'a' strings: 'b' }
            attribute { name: 'values_int64s' type: INTS ints: 1 ints: 2 } }
          node { op_type: 'Constant' output: 'c1' attribute { name: 'value' type: TENSOR t { data_type: 1 dims: 1 float_data: 1 } } }
          node { op_type: 'Constant' output: 'c2' attribute { name: 'value_floats' type: FLOATS floats: 1 floats: 2 } }
          node { op_type: 'Constant' output: 'c3' attribute { name: 'sparse_value' type: SPARSE_TENSOR sparse_tensor { dims: 3
            values { data_type: 1 dims: 1 float_data: 5 } indices { data_type: 7 dims: 1 int64_data: 2 } } } }
          node { op_type: 'Thing' domain: 'g' input: 'h' output: 't'
            attribute { name: 'int' type: INT i: 1 } attribute { name: 'text' type: STRING s: 'a' doc_string: 'd' }
            attribute { name: 'tensors' type: TENSORS tensors { data_type: 1 dims: 1 float_data: 1 } }
            attribute { name: 'sparse' type: SPARSE_TENSORS sparse_tensors { dims: 3
              values { data_type: 1 dims: 1 float_data: 5 } indices { data_type: 7 dims: 1 int64_data: 2 } } }
            attribute { name: 'types' type: TYPE_PROTOS type_protos { tensor_type { elem_type: 1 } }
              type_protos { sequence_type { elem_type { tensor_type { elem_type: 7 } } } }
              type_protos { map_type { key_type: 7 value_type { tensor_type { elem_type: 7 } } } } }
            attribute { name: 'graphs' type: GRAPHS graphs { name: 'b' output { name: 'q' }
              node { op_type: 'Relu' input: 'h' output: 'q' } } } }
          node { op_type: 'Optional' output: 'o' attribute { name: 'type' type: TYPE_PROTO tp { tensor_type { elem_type: 1 } } } } }""")


def kinds_of_data():
    """The first byte says which input of `containers` the data are for."""
    tensor = numpy_helper.from_array(f32(2), "t")
    sequence = onnx.SequenceProto(name="s", elem_type=1, tensor_values=[tensor, tensor])
    optional = onnx.OptionalProto(name="o", elem_type=1, tensor_value=tensor)
    of_sequence = onnx.OptionalProto(name="o", elem_type=3, sequence_value=sequence)
    mapping = onnx.MapProto(name="m", key_type=7, keys=[1, 2], values=sequence)
    for i, made in enumerate([sequence, optional, mapping, tensor, of_sequence]):
        write("data", made.name + str(i), bytes([i]) + made.SerializeToString(deterministic=True))


def idx(kind, dims, data):
    return bytes([0, 0, kind, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims) + data


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(compress, **arrays):
    out = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(out, **arrays)
    return out.getvalue()


def safetensors(header, data):
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def write_data():
    write("csv", "numbers", b"1,2,0\n3,4.5,1\n")
    write("csv", "header", b'"a b",c,label\r\n1e3,-2,0.5\r\n\r\n.5,"4",-1\r\n')
    write("csv", "compressed", gzip.compress(b"1,2,3\n4,5,6\n", mtime=0))
    write("idx", "bytes", idx(8, [2, 2, 2], bytes(range(8))))
    write("idx", "floats", idx(13, [2], struct.pack(">2f", 1.5, -2)))
    write("idx", "compressed", gzip.compress(idx(12, [1, 2], bytes(8)), mtime=0))
    write("cifar", "record", bytes([3]) + bytes(3072))
    write("cifar", "compressed", gzip.compress((bytes([9]) + bytes(3072)) * 2, mtime=0))
    write("gzip", "text", gzip.compress(b"some text, some text", mtime=0))
    write("gzip", "two_members", gzip.compress(b"a", mtime=0) + gzip.compress(b"b", mtime=0))
    write("gzip", "plain", b"plain")
    write("npy", "floats", npy(f32(2, 3)))
    write("npy", "fortran", npy(np.asfortranarray(f32(2, 3))))
    write("npy", "integers", npy(i64(1, 2, 3)))
    write("npy", "scalar", npy(np.array(True)))
    write("npy", "complex", npy(np.array([1 + 2j])))
    write("npz", "stored", npz(False, x=f32(2, 2), y=i64(0, 1)))
    write("npz", "deflated", npz(True, x_train=f32(2, 2), y_test=i64(0, 1)))
    write("safetensors", "two", safetensors(
        {"__metadata__": {"k": "v"}, "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
         "b": {"dtype": "I64", "shape": [1, 1], "data_offsets": [8, 16]}}, bytes(16)))
    write("safetensors", "empty", safetensors({}, b""))
    for name, array in {"floats": f32(2, 2), "half": f32(3).astype(np.float16), "flags": np.array([True]),
                        "texts": np.array([b"a", b""], object)}.items():
        write("tensor", name, numpy_helper.from_array(array, name).SerializeToString())
    write("tensor", "packed", helper.make_tensor("p", TensorProto.INT4, [3], [1, -2, 3]).SerializeToString())


def write_lines():
    lines = {"inspect": "inspect\nmodel.onnx\n--batch\n2", "new": "new\nmlp\n--input\n1x2x2\n--out\nnew.onnx",
             "edit": "edit\nmodel.onnx\n--append\nlinear:3:name=head\n--out\nedited.onnx",
             "train": "train\nmodel.onnx\n--data\ncsv:data.csv\n--epochs\n2\n--lr\n0.1\n--optimizer\nadam",
             "eval": "eval\nmodel.onnx\n--data\ncsv:data.csv\n--limit\n2",
             "run": "run\nmodel.onnx\n--input\ninput=x.npy\n--out\nout", "help": "--help",
             "allow": "inspect\nmodel.onnx\n--allow\nrank=4\n--json", "man": "man",
             "completion": "completion\nbash"}
    for name, text in lines.items():
        write("command_line", name, text.encode())


def main():
    for make in (dense, convolution, attention, choice, loop, shapes, call, recurrent, quantized, old, texts):
        for target in ("model", "pipeline"):
            write(target, make.__name__, make())
    write("model", "containers", containers())
    write("model", "everything", everything())
    kinds_of_data()
    write_data()
    write_lines()


main()
