"""The backend cases of the installed onnx package, as folders of files."""
import os
import shutil

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
OLD_CASES = "/usr/share/libonnx-testdata/data"


def serialized(value, info):
    """`value` as the protobuf message that a .pb file of the type in `info` holds."""
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name)
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), info.name)


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def write_case(case, folder):
    """Lays a case out as the files that `graft test` reads."""
    if case.model is None:
        shutil.copytree(case.model_dir, folder)
        return
    os.makedirs(folder)
    write(os.path.join(folder, "model.onnx"), case.model)
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data)
        graph = case.model.graph
        for stem, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for index, value in enumerate(values):
                write(os.path.join(data, f"{stem}_{index}.pb"), serialized(value, infos[index]))


def collect(root):
    """Lays all cases out as folders beneath `root`."""
    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            write_case(case, os.path.join(root, kind, case.name))
        old = os.path.join(OLD_CASES, kind)
        if os.path.isdir(old):
            shutil.copytree(old, os.path.join(root, "old", kind))
