"""How two files of ONNX differ, field by field."""


def differences(a, b, path=""):
    """Where two messages of one kind differ, as paths: 'graph.node[3].name'."""
    paths = []
    for field in a.DESCRIPTOR.fields:
        name = f"{path}.{field.name}" if path else field.name
        x, y = getattr(a, field.name), getattr(b, field.name)
        is_message = field.message_type is not None
        if field.is_repeated:
            if len(x) != len(y):
                paths.append(f"{name}: {len(x)} and {len(y)}")
            elif is_message:
                for i, (one, other) in enumerate(zip(x, y)):
                    if one != other:
                        paths += differences(one, other, f"{name}[{i}]")
            elif list(x) != list(y):
                paths.append(name)
        elif is_message or field.has_presence:
            if a.HasField(field.name) != b.HasField(field.name):
                paths.append(f"{name}: in one of them only")
            elif is_message and x != y:
                paths += differences(x, y, name)
            elif not is_message and x != y and not (x != x and y != y):
                paths.append(name)
        elif x != y:
            paths.append(name)
    return paths


def constants_of(graph):
    """Initializers, and what Constant nodes hold: Paddle's exporter writes weights so."""
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant":
            yield from (attribute.t for attribute in node.attribute if attribute.name == "value")


def without_weights(model, prefix="graft."):
    """The model without the elements of its constants, and without what Graft notes in it."""
    bare = type(model)()
    bare.CopyFrom(model)
    for tensor in constants_of(bare.graph):
        for field, _ in tensor.ListFields():
            if field.name.endswith("_data"):
                tensor.ClearField(field.name)
    kept = [entry for entry in bare.metadata_props if not entry.key.startswith(prefix)]
    del bare.metadata_props[:]
    bare.metadata_props.extend(kept)
    return bare
