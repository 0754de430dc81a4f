"""Writes layers.json: what PyTorch's modules make of an input, for the layers that a model is
extended with (core/layers/layer.h), in f32. Weights stand in the form and order of ONNX.

Usage: make_layers.py [FILE]. Needs torch and numpy; the same script gives the same file.
"""
import json
import pathlib
import sys

import torch

CASES = []


def tensor(t):
    return {"shape": list(t.shape), "values": [float(f"{x:.9g}") for x in t.detach().flatten().tolist()]}


def case(layer, x, y, weights, dtype="f32"):
    CASES.append({"layer": layer, "input": {"dtype": dtype, **tensor(x)}, "output": tensor(y),
                  "weights": {name: tensor(w) for name, w in weights.items()}})


def conv_transposes():
    for text, dims, args in (
            ("conv_transpose:4x2x2:stride=2", 2, dict(kernel_size=2, stride=2)),
            ("conv_transpose:4x3x3:stride=2:padding=1:output_padding=1:groups=2", 2,
             dict(kernel_size=3, stride=2, padding=1, output_padding=1, groups=2)),
            ("conv_transpose:4x3:dilation=2:bias=0", 1, dict(kernel_size=3, dilation=2, bias=False))):
        kind = torch.nn.ConvTranspose1d if dims == 1 else torch.nn.ConvTranspose2d
        module = kind(2, 4, **args)
        x = torch.randn(2, 2, *([5] * dims))
        weights = {"y.weight": module.weight}
        if module.bias is not None:
            weights["y.bias"] = module.bias
        case(text, x, module(x), weights)


def norms():
    for text, dims, bias in (("layer_norm", [5], True), ("layer_norm:2:epsilon=0.001", [4, 5], True),
                             ("layer_norm:bias=0", [5], False)):
        module = torch.nn.LayerNorm(dims, eps=1e-3 if "epsilon" in text else 1e-5, bias=bias)
        torch.nn.init.normal_(module.weight)
        weights = {"y.weight": module.weight}
        if bias:
            torch.nn.init.normal_(module.bias)
            weights["y.bias"] = module.bias
        x = torch.randn(3, 4, 5) * 2 + 1
        case(text, x, module(x), weights)
    for text, groups, shape in (("group_norm:3", 3, (2, 6, 3, 4)), ("group_norm:2", 2, (2, 4, 5))):
        module = torch.nn.GroupNorm(groups, shape[1])
        torch.nn.init.normal_(module.weight)
        torch.nn.init.normal_(module.bias)
        x = torch.randn(*shape) * 2 + 1
        case(text, x, module(x), {"y.weight": module.weight, "y.bias": module.bias})


def moves():
    x = torch.randn(2, 12)
    case("reshape:3x-1", x, x.reshape(2, 3, 4), {})
    module = torch.nn.Embedding(7, 3)
    rows = torch.tensor([[0, 6, 2], [5, 5, 1]])
    case("embedding:7x3", rows, module(rows), {"y.weight": module.weight}, "i64")


def in_order(t, order):
    """The gates of PyTorch, one of `order` each, as ONNX has them."""
    parts = t.chunk(len(order))
    return torch.cat([parts[i] for i in order])


def recurrent():
    for text, kind, order, args in (
            ("lstm:4", torch.nn.LSTM, (0, 3, 1, 2), dict(hidden_size=4)),
            ("lstm:3:depth=2:bidirectional=1", torch.nn.LSTM, (0, 3, 1, 2),
             dict(hidden_size=3, num_layers=2, bidirectional=True)),
            ("lstm:3:bidirectional=1:steps=last", torch.nn.LSTM, (0, 3, 1, 2),
             dict(hidden_size=3, bidirectional=True)),
            ("gru:4:depth=2", torch.nn.GRU, (1, 0, 2), dict(hidden_size=4, num_layers=2)),
            ("gru:3:bidirectional=1:steps=last", torch.nn.GRU, (1, 0, 2),
             dict(hidden_size=3, bidirectional=True))):
        module = kind(5, batch_first=True, **args)
        x = torch.randn(2, 6, 5)
        y, state = module(x)
        if "last" in text:
            last = state[0] if isinstance(state, tuple) else state
            y = torch.cat(list(last[-2:] if module.bidirectional else last[-1:]), 1)
        weights = {}
        for i in range(module.num_layers):
            ends = (f"l{i}", f"l{i}_reverse") if module.bidirectional else (f"l{i}",)
            for which in ("weight_ih", "weight_hh"):
                parts = [in_order(getattr(module, f"{which}_{end}"), order) for end in ends]
                weights[f"y.{which}_l{i}"] = torch.stack(parts)
            weights[f"y.bias_l{i}"] = torch.stack(
                [torch.cat([in_order(getattr(module, f"bias_{which}_{end}"), order)
                            for which in ("ih", "hh")]) for end in ends])
        case(text, x, y, weights)


def attention():
    for text, heads, bias in (("multi_head_attention:2", 2, True), ("multi_head_attention:3:bias=0", 3, False)):
        module = torch.nn.MultiheadAttention(6, heads, bias=bias, batch_first=True)
        weights = {"y.in_proj.weight": module.in_proj_weight.T, "y.out_proj.weight": module.out_proj.weight.T}
        if bias:
            torch.nn.init.normal_(module.in_proj_bias)
            torch.nn.init.normal_(module.out_proj.bias)
            weights |= {"y.in_proj.bias": module.in_proj_bias, "y.out_proj.bias": module.out_proj.bias}
        x = torch.randn(2, 5, 6)
        case(text, x, module(x, x, x, need_weights=False)[0], weights)


def cosines():
    x, weight = torch.randn(3, 5), torch.randn(4, 5)
    normalize = torch.nn.functional.normalize
    case("cosine:4", x, torch.nn.functional.linear(normalize(x), normalize(weight)), {"y.weight": weight})


def main():
    torch.manual_seed(1)
    for part in (conv_transposes, norms, moves, recurrent, attention, cosines):
        part()
    here = pathlib.Path(__file__).parent
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "layers.json"
    path.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES) + "\n]\n")
    print(f"{path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
