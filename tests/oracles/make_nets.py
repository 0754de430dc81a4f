"""Writes nets.json: what PyTorch's modules are and give, for the nets that `graft new` makes.

Usage: make_nets.py [FILE]. Needs torch, torchvision, onnx and numpy; the same script gives the same file.
Of each net: the parameters by Graft's names, in ONNX's form; the ops that compute, in the order in which
PyTorch's exporter writes them; and the first numbers of the output for weights and inputs that both sides
make by one formula (`pattern`).
"""
import io
import json
import logging
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

OPS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "LayerNormalization", "Relu",
       "LeakyRelu", "PRelu", "MaxPool", "LSTM", "Softmax", "LogSoftmax", "Erf", "Tanh"}
SHOWN = 64


class DoubleConv(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        layers = []
        for i in (channels, out):
            layers += [nn.Conv2d(i, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(channels, out))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.up = nn.ConvTranspose2d(channels, out, 2, 2)
        self.conv = DoubleConv(channels, out)

    def forward(self, x, skipped):
        return self.conv(torch.cat([skipped, self.up(x)], 1))


class UNet(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.inc = DoubleConv(channels, 64)
        for i in range(4):
            setattr(self, f"down{i + 1}", Down(64 << i, 128 << i))
            setattr(self, f"up{i + 1}", Up(1024 >> i, 512 >> i))
        self.outc = nn.ModuleDict({"conv": nn.Conv2d(64, classes, 1)})

    def forward(self, x):
        skipped = [self.inc(x)]
        for i in range(4):
            skipped.append(getattr(self, f"down{i + 1}")(skipped[-1]))
        x = skipped.pop()
        for i in range(4):
            x = getattr(self, f"up{i + 1}")(x, skipped.pop())
        return self.outc["conv"](x)


class TinyYOLOv2(nn.Module):
    def __init__(self, classes):
        super().__init__()
        channels = 3
        for i, out in enumerate((16, 32, 64, 128, 256, 512, 1024, 1024), 1):
            setattr(self, f"conv{i}", nn.Conv2d(channels, out, 3, padding=1, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(out))
            channels = out
        self.conv9 = nn.Conv2d(channels, 5 * (5 + classes), 1)

    def forward(self, x):
        for i in range(1, 9):
            x = F.leaky_relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)), 0.1)
            if i <= 5:
                x = F.max_pool2d(x, 2)
            elif i == 6:
                x = F.max_pool2d(F.pad(x, (0, 1, 0, 1)), 2, 1)
        return self.conv9(x)


class IBlock(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.prelu = nn.PReLU(out)
        self.conv2 = nn.Conv2d(out, out, 3, stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False),
                                            nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn3(self.conv2(self.prelu(self.bn2(self.conv1(self.bn1(x))))))
        return y + (x if self.downsample is None else self.downsample(x))


class IResNet18(nn.Module):
    def __init__(self, features, size):
        super().__init__()
        self.conv1, self.bn1, self.prelu = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)
        channels = 64
        for i, out in enumerate((64, 128, 256, 512), 1):
            setattr(self, f"layer{i}", nn.Sequential(IBlock(channels, out, 2), IBlock(out, out, 1)))
            channels = out
        self.bn2, self.dropout = nn.BatchNorm2d(512), nn.Dropout(0.4)
        self.fc = nn.Linear(512 * (size // 16) ** 2, features)
        self.features = nn.BatchNorm1d(features)

    def forward(self, x):
        x = self.prelu(self.bn1(self.conv1(x)))
        for i in range(1, 5):
            x = getattr(self, f"layer{i}")(x)
        return self.features(self.fc(self.dropout(self.bn2(x)).flatten(1)))


class Recurrent(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.rnn = nn.LSTM(features, 256, bidirectional=True)
        self.embedding = nn.Linear(512, out)

    def forward(self, x):
        return self.embedding(self.rnn(x)[0])


class CRNN(nn.Module):
    def __init__(self, classes):
        super().__init__()
        cnn, channels = nn.Sequential(), 1
        for i, out in enumerate((64, 128, 256, 256, 512, 512, 512)):
            last = i == 6
            cnn.add_module(f"conv{i}", nn.Conv2d(channels, out, 2 if last else 3, 1, 0 if last else 1))
            if i in (2, 4, 6):
                cnn.add_module(f"batchnorm{i}", nn.BatchNorm2d(out))
            cnn.add_module(f"relu{i}", nn.ReLU())
            if i < 2:
                cnn.add_module(f"pooling{i}", nn.MaxPool2d(2))
            elif i in (3, 5):
                cnn.add_module(f"pooling{(i + 1) // 2}", nn.MaxPool2d(2, (2, 1), (0, 1)))
            channels = out
        self.cnn = cnn
        self.rnn = nn.Sequential(Recurrent(512, 256), Recurrent(256, classes))

    def forward(self, x):
        return F.log_softmax(self.rnn(self.cnn(x).squeeze(2).permute(2, 0, 1)), -1)


class Bert(nn.Module):
    def __init__(self, length, classes):
        super().__init__()
        self.tok, self.pos = nn.Embedding(30522, 256), nn.Embedding(length, 256)
        self.ln = nn.LayerNorm(256, 1e-12)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, "gelu", 1e-12, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.pool, self.classifier = nn.Linear(256, 256), nn.Linear(256, classes)

    def forward(self, ids):
        x = self.encoder(self.ln(self.tok(ids) + self.pos.weight))
        return self.classifier(torch.tanh(self.pool(x[:, 0])))


class GPTBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"in_proj": nn.Linear(width, 3 * width), "out_proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})
        self.heads = heads

    def forward(self, x):
        N, T, W = x.shape
        q, k, v = (t.view(N, T, self.heads, W // self.heads).transpose(1, 2)
                   for t in self.attn["in_proj"](self.ln_1(x)).split(W, 2))
        scores = (q @ k.transpose(2, 3)) / (W // self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(T, T).tril() == 0, float("-inf"))
        x = x + self.attn["out_proj"]((scores.softmax(-1) @ v).transpose(1, 2).reshape(N, T, W))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, length, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, 192), nn.Embedding(length, 192)
        self.h = nn.Sequential(*(GPTBlock(192, 6) for _ in range(6)))
        self.ln_f = nn.LayerNorm(192)

    def forward(self, ids):
        return self.ln_f(self.h(self.wte(ids) + self.wpe.weight)) @ self.wte.weight.t()


def vgg(make, classes):
    net = make(num_classes=classes)
    net.avgpool = nn.Identity()
    net.classifier[0] = nn.Linear(512, 4096)  # images of 32 pixels
    return net


def vit(classes):
    return torchvision.models.VisionTransformer(32, 4, 12, 3, 192, 768, num_classes=classes)


# name: module, shape of a sample, classes, vocabulary
NETS = {
    "vgg11": (lambda: vgg(torchvision.models.vgg11, 10), (3, 32, 32), 10, None),
    "vgg16": (lambda: vgg(torchvision.models.vgg16, 10), (3, 32, 32), 10, None),
    "unet": (lambda: UNet(3, 4), (3, 32, 32), 4, None),
    "vit": (lambda: vit(10), (3, 32, 32), 10, None),
    "tinyyolov2": (lambda: TinyYOLOv2(20), (3, 64, 64), 20, None),
    "iresnet18": (lambda: IResNet18(64, 32), (3, 32, 32), 64, None),
    "crnn": (lambda: CRNN(37), (1, 32, 64), 37, None),
    "bert": (lambda: Bert(16, 5), (16,), 5, 30522),
    "gpt": (lambda: GPT(16, 100), (16,), 100, 100),
}


def bits(name, count):
    """Numbers of 32 bits without a pattern, by the name."""
    h = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    h += np.uint32(sum(name.encode()) * 40503 & 0xFFFFFFFF)
    h ^= h >> np.uint32(15)
    h *= np.uint32(2246822519)
    return h ^ (h >> np.uint32(13))


def pattern(name, shape):
    """Weights that let values keep their size from layer to layer."""
    count = int(np.prod(shape))
    u = 2.0 * (bits(name, count) / 4294967296.0) - 1.0
    if name.endswith("running_var"):
        u = 1 + 0.5 * u
    elif name.endswith(("running_mean", "bias")):
        u = 0.1 * u
    elif count == max(shape):
        u = 1 + 0.1 * u
    else:
        u = u * (3.0 * max(shape) / count) ** 0.5
    return u.astype(np.float32).reshape(shape)


def set_from_pattern(net, has_matmul):
    """Fills the parameters; returns the shapes that they have in ONNX, by Graft's names."""
    shapes = {}
    state = net.state_dict()

    def fill(name, onnx_shape, *places):
        """`places`: setters of what stands in the first axis, or of all."""
        shapes[name] = list(onnx_shape)
        values = torch.from_numpy(pattern(name, tuple(onnx_shape)))
        for place in places:
            place(values)

    for name, value in state.items():
        if name.endswith("num_batches_tracked"):
            continue
        module, _, last = name.rpartition(".")
        if "_l0" in last:
            if last == "weight_ih_l0":
                fill_lstm(fill, module, state)
            continue
        ours = name.replace("in_proj_", "in_proj.")
        if value.dim() == 2 and has_matmul(ours):
            fill(ours, value.t().shape, lambda v, at=value: at.copy_(v.t()))
        elif last == "weight" and module.endswith("prelu"):
            fill(ours, (*value.shape, 1, 1), lambda v, at=value: at.copy_(v.flatten()))
        else:
            fill(ours, value.shape, lambda v, at=value: at.copy_(v))
    net.load_state_dict(state)
    return shapes


def fill_lstm(fill, module, state):
    """ONNX has the gates as input, output, forget, cell, PyTorch as input, forget, cell, output."""
    for which in ("weight_ih", "weight_hh"):
        ends = [state[f"{module}.{which}_l0{end}"] for end in ("", "_reverse")]

        def put(values, ends=ends):
            for end, value in zip(ends, values):
                i, o, f, c = value.chunk(4)
                end.copy_(torch.cat([i, f, c, o]))

        fill(f"{module}.{which}_l0", (2, *ends[0].shape), put)
    biases = [[state[f"{module}.bias_{which}_l0{end}"] for which in ("ih", "hh")] for end in ("", "_reverse")]

    def put_biases(values):
        for pair, row in zip(biases, values):
            for bias, part in zip(pair, row.chunk(2)):
                i, o, f, c = part.chunk(4)
                bias.copy_(torch.cat([i, f, c, o]))

    fill(f"{module}.bias_l0", (2, 2 * biases[0][0].shape[0]), put_biases)


def has_matmul(net):
    """Whether a Linear reads more than two axes: then ONNX has its weight as [in,out]."""
    tables = {"tok.weight", "pos.weight", "wte.weight", "wpe.weight"}
    gemm = {"vgg11", "vgg16", "iresnet18"}
    heads = {"heads.head.weight", "pool.weight", "classifier.weight"}
    return lambda name: net not in gemm and name not in tables | heads


def ops_of(net, x):
    buffer = io.BytesIO()
    torch.onnx.export(net, (x,), buffer, dynamo=False, opset_version=17, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE)
    ops = [n.op_type for n in onnx.load_from_string(buffer.getvalue()).graph.node if n.op_type in OPS]
    return ["MatMul" if op == "Gemm" else op for op in ops]


def main():
    cases = []
    for name, (make, sample, classes, vocabulary) in NETS.items():
        net = make().eval()
        with torch.no_grad():
            shapes = set_from_pattern(net, has_matmul(name))
            count = 2 * int(np.prod(sample))
            drawn = bits("input", count)
            values = drawn % vocabulary if vocabulary else (2.0 * (drawn / 4294967296.0) - 1.0).astype(np.float32)
            x = torch.from_numpy(np.asarray(values, np.int64 if vocabulary else np.float32).reshape(2, *sample))
            y = net(x)
            wide = make().eval().double()
            wide.load_state_dict(net.state_dict())
            exact = wide(x if vocabulary else x.double())
        ops = ops_of(net, x)
        off = float((y - exact).abs().max() / exact.abs().max())
        cases.append({"net": name, "input": list(sample), "classes": classes, "vocabulary": vocabulary or 0,
                      "parameters": shapes, "ops": ops,
                      "output": {"shape": list(y.shape), "largest": float(exact.abs().max()),
                                 "values": [float(f"{v:.7g}") for v in exact.flatten()[:SHOWN].tolist()]}})
        print(f"{name}: {sum(np.prod(s) for s in shapes.values()):,} numbers, {len(ops)} ops, largest "
              f"{exact.abs().max():.3g}, f32 off by {off:.1e}")
    here = pathlib.Path(__file__).parent
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "nets.json"
    path.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
    print(f"{path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
