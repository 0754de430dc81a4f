"""The nets that are compared, in PyTorch: random weights of one seed, no Dropout, so that all sides do equal work."""
from collections import namedtuple

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

Net = namedtuple("Net", "make shape batch loss optimizer rate")


class LeNet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))


def encoder(width, heads, hidden, layers, activation):
    layer = nn.TransformerEncoderLayer(width, heads, hidden, dropout=0.0, activation=activation, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


class Vit(nn.Module):
    """Each of 1024 pixels is a token of 64 numbers."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Conv2d(3, 64, 1), nn.Linear(64, 10)
        self.encoder = encoder(64, 4, 2048, 2, "relu")

    def forward(self, x):
        return self.head(self.encoder(self.embed(x).flatten(2).transpose(1, 2)).mean(1))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.head = nn.Embedding(1000, 128), nn.Linear(128, 10)
        self.position = nn.Parameter(0.02 * torch.randn(1, 128, 128))
        self.encoder = encoder(128, 2, 512, 2, "gelu")

    def forward(self, ids):
        return self.head(self.encoder(self.token(ids) + self.position).mean(1))


class Crnn(nn.Module):
    """Text in images of 32 rows: convolutions, two LSTM layers both ways, CTC."""

    def __init__(self):
        super().__init__()
        layers, channels = [], 1
        for width, norm, pool in ((64, False, 2), (128, False, 2), (256, True, None), (256, False, (2, 1)),
                                  (256, True, (2, 1))):
            layers += [nn.Conv2d(channels, width, 3, padding=1)] + [nn.BatchNorm2d(width)] * norm + [nn.ReLU()]
            if pool == 2:
                layers.append(nn.MaxPool2d(2))
            elif pool:
                layers.append(nn.MaxPool2d(2, pool, (0, 1)))
            channels = width
        self.image = nn.Sequential(*layers, nn.Conv2d(256, 256, 2), nn.ReLU())
        self.lines, self.head = nn.LSTM(256, 128, 2, bidirectional=True), nn.Linear(256, 37)

    def forward(self, x):
        return F.log_softmax(self.head(self.lines(self.image(x).squeeze(2).permute(2, 0, 1))[0]), -1)


def small_resnet():
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
    return net


def mobilenet():
    return torchvision.models.mobilenet_v2(num_classes=10, dropout=0.0)


NETS = {
    "lenet_b64": Net(LeNet, (1, 28, 28), 64, "cross_entropy", "sgd", 0.01),
    "lenet_b1": Net(LeNet, (1, 28, 28), 1, "cross_entropy", "sgd", 0.01),
    "mlp_b128": Net(Mlp, (784,), 128, "cross_entropy", "adam", 1e-3),
    "resnet18_b32": Net(small_resnet, (3, 32, 32), 32, "cross_entropy", "momentum", 0.01),
    "mobilenet_v2_b16": Net(mobilenet, (3, 96, 96), 16, "cross_entropy", "momentum", 0.01),
    "vit_b8": Net(Vit, (3, 32, 32), 8, "cross_entropy", "adam", 1e-3),
    "bert_b16": Net(Bert, (128,), 16, "cross_entropy", "adamw", 1e-3),
    "crnn_b16": Net(Crnn, (1, 32, 100), 16, "ctc", "adam", 1e-3),
}


def make(name):
    """The net, one batch and its targets: the same on each call."""
    net = NETS[name]
    torch.manual_seed(0)
    module = net.make()
    random = torch.Generator().manual_seed(1)
    shape = (net.batch, *net.shape)
    if name.startswith("bert"):
        x = torch.randint(0, 1000, shape, generator=random)
    else:
        x = torch.randn(shape, generator=random)
    if net.loss == "ctc":
        return module, x, torch.randint(1, 37, (net.batch, 8), generator=random)
    return module, x, torch.randint(0, 10, (net.batch,), generator=random)


def loss_of(net, output, y):
    if net.loss == "cross_entropy":
        return F.cross_entropy(output, y)
    steps, batch, _ = output.shape
    return F.ctc_loss(output, y, torch.full((batch,), steps), torch.full((batch,), y.shape[1]))
