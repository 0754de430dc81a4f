"""One export of each architecture by both exporters of PyTorch, for any_model_test.py.

python make_exports.py OUT [NAME ...]     needs torch, torchvision, onnxscript
Weights are random, sizes small; each is exported at a batch of 2 that nobody declared open, which is what
people do, so that the batch is baked in wherever the exporter puts it.
"""
import io
import logging
import os
import sys
import warnings

import torch
import torchvision
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training_cases"))
from image_nets import MobileNetTiny, ResNetTiny, SingaCNN, UNetTiny
from sequence_nets import CRNN, BertTiny, GPTTiny, GRUNet, SeedViT, ViTTiny

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


class TinyYOLOv2(nn.Module):
    """Redmon and Farhadi, arXiv 1612.08242, with an eighth of the channels."""

    def __init__(self, boxes=5, classes=20):
        super().__init__()
        layers, channels = [], 3
        for i, out in enumerate((2, 4, 8, 16, 32, 64, 128, 128)):
            layers += [nn.Conv2d(channels, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out),
                       nn.LeakyReLU(0.1)]
            if i < 5:
                layers.append(nn.MaxPool2d(2, 2))
            elif i == 5:
                layers += [nn.ZeroPad2d((0, 1, 0, 1)), nn.MaxPool2d(2, 1)]
            channels = out
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels, boxes * (5 + classes), 1))

    def forward(self, x):
        return self.layers(x)


class IBasicBlock(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels, eps=1e-5)
        self.conv1 = nn.Conv2d(channels, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out, eps=1e-5)
        self.prelu = nn.PReLU(out)
        self.conv2 = nn.Conv2d(out, out, 3, stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out, eps=1e-5)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False),
                                            nn.BatchNorm2d(out, eps=1e-5))

    def forward(self, x):
        y = self.bn3(self.conv2(self.prelu(self.bn2(self.conv1(self.bn1(x))))))
        return y + (x if self.downsample is None else self.downsample(x))


class IResNet(nn.Module):
    """The backbone of ArcFace: Deng et al., arXiv 1801.07698, with a quarter of the channels."""

    def __init__(self, blocks=(2, 2, 2, 2), features=64, size=32):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.prelu = nn.PReLU(16)
        stages, channels = [], 16
        for out, count in zip((16, 32, 64, 128), blocks):
            for i in range(count):
                stages.append(IBasicBlock(channels, out, 2 if i == 0 else 1))
                channels = out
        self.layers = nn.Sequential(*stages)
        self.bn2 = nn.BatchNorm2d(channels)
        self.dropout = nn.Dropout(0.0)
        self.fc = nn.Linear(channels * (size // 16) ** 2, features)
        self.features = nn.BatchNorm1d(features)

    def forward(self, x):
        x = self.layers(self.prelu(self.bn1(self.conv1(x))))
        return self.features(self.fc(self.dropout(self.bn2(x)).flatten(1)))


def vgg(make):
    """With one linear layer: torchvision's three hold 120 million numbers."""
    return nn.Sequential(make().features, nn.Flatten(), nn.Linear(512, 10))


def image(*shape):
    return torch.rand(2, *shape)


def tokens(top, length):
    return torch.randint(0, top, (2, length))


NETS = {
    "singa_cnn": (SingaCNN, image(1, 28, 28)),
    "resnet": (ResNetTiny, image(3, 16, 16)),
    "mobilenet": (MobileNetTiny, image(3, 32, 32)),
    "vgg11": (lambda: vgg(torchvision.models.vgg11), image(3, 32, 32)),
    "vgg16_bn": (lambda: vgg(torchvision.models.vgg16_bn), image(3, 32, 32)),
    "vit": (ViTTiny, image(3, 32, 32)),
    "seed_vit": (SeedViT, image(3, 12, 12)),
    "vit_torchvision": (
        lambda: torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10),
        image(3, 32, 32),
    ),
    "bert": (BertTiny, tokens(200, 16)),
    "gpt": (GPTTiny, tokens(100, 16)),
    "gru": (GRUNet, tokens(50, 12)),
    "crnn": (CRNN, image(1, 32, 64)),
    "unet": (UNetTiny, image(1, 16, 16)),
    "tinyyolov2": (TinyYOLOv2, image(3, 64, 64)),
    "iresnet": (IResNet, image(3, 32, 32)),
}


def export(net, x, exporter):
    """The file's bytes."""
    if exporter == "dynamo":
        program = torch.onnx.export(net, (x,), None, dynamo=True, verbose=False)
        return program.model_proto.SerializeToString()
    buffer = io.BytesIO()
    torch.onnx.export(net, (x,), buffer, dynamo=False, opset_version=17,
                      input_names=["input"], output_names=["output"])
    return buffer.getvalue()


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(NETS)
    os.makedirs(out, exist_ok=True)
    for name in names:
        make, x = NETS[name]
        for exporter in ("script", "dynamo"):
            torch.manual_seed(1)
            net = make().eval()
            try:
                content = export(net, x, exporter)
            except Exception as error:  # what an exporter refuses is its own to say
                print(f"{name} by {exporter}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            with open(os.path.join(out, f"{name}_{exporter}.onnx"), "wb") as file:
                file.write(content)


if __name__ == "__main__":
    main()
