"""What is recorded: which net, on which data, by which loss and optimizer."""

import torch, torch.nn.functional as F

from image_nets import (
    ConvNeXtTiny,
    EfficientTiny,
    MobileNetTiny,
    ResNetGN,
    ResNetTiny,
    SingaCNN,
    SqueezeTiny,
    TutorialNet,
    UNetTiny,
)
from sequence_nets import BertTiny, CRNN, GPTTiny, GRUNet, MLP, SeedViT, ViTTiny


def img(*s):
    return lambda g, b: torch.randn((b,) + s, generator=g)


def ids(v, *s):
    return lambda g, b: torch.randint(0, v, (b,) + s, generator=g)


def cls(n, *s):
    return lambda g, b: torch.randint(0, n, (b,) + s, generator=g)


def ctc_t(g, b):
    return torch.randint(1, 37, (b, 5), generator=g)


def real(*s):
    return lambda g, b: torch.randn((b,) + s, generator=g)


def bits(*s):
    return lambda g, b: (torch.rand((b,) + s, generator=g) > 0.5).float()


LOSS = {
    "cross_entropy": lambda o, t: F.cross_entropy(o, t),
    "nll": lambda o, t: F.nll_loss(o, t),
    "token_cross_entropy": lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()),
    "mse": lambda o, t: F.mse_loss(o, t),
    "l1": lambda o, t: F.l1_loss(o, t),
    "huber": lambda o, t: F.huber_loss(o, t),
    "bce_with_logits": lambda o, t: F.binary_cross_entropy_with_logits(o, t),
    "ctc": lambda o, t: F.ctc_loss(
        o,
        t,
        torch.full((o.shape[1],), o.shape[0], dtype=torch.long),
        torch.full((o.shape[1],), t.shape[1], dtype=torch.long),
        blank=0,
    ),
}
OPT = {
    "sgd": lambda p: (torch.optim.SGD(p, 0.05), dict(type="sgd", lr=0.05)),
    "momentum": lambda p: (
        torch.optim.SGD(p, 0.02, momentum=0.9, weight_decay=1e-3),
        dict(type="sgd", lr=0.02, momentum=0.9, weight_decay=1e-3),
    ),
    "nesterov": lambda p: (
        torch.optim.SGD(p, 0.02, momentum=0.9, nesterov=True),
        dict(type="sgd", lr=0.02, momentum=0.9, nesterov=True),
    ),
    "adam": lambda p: (
        torch.optim.Adam(p, 2e-3),
        dict(type="adam", lr=2e-3, betas=[0.9, 0.999], eps=1e-8),
    ),
    "adamw": lambda p: (
        torch.optim.AdamW(p, 2e-3, weight_decay=0.01),
        dict(type="adamw", lr=2e-3, betas=[0.9, 0.999], eps=1e-8, weight_decay=0.01),
    ),
    "adam_damped": lambda p: (
        torch.optim.Adam(p, 2e-3, eps=1e-4),
        dict(type="adam", lr=2e-3, betas=[0.9, 0.999], eps=1e-4),
    ),  # a bias before BatchNorm has gradient 0: Adam would train its rounding noise
    "rmsprop_damped": lambda p: (
        torch.optim.RMSprop(p, 1e-3, alpha=0.99, eps=1e-4),
        dict(type="rmsprop", lr=1e-3, alpha=0.99, eps=1e-4),
    ),
    "rmsprop": lambda p: (
        torch.optim.RMSprop(p, 1e-3, alpha=0.99),
        dict(type="rmsprop", lr=1e-3, alpha=0.99, eps=1e-8),
    ),
    "adagrad": lambda p: (torch.optim.Adagrad(p, 1e-2), dict(type="adagrad", lr=1e-2, eps=1e-10)),
}
# name: (net, inputs, target, loss, optimizer, batch, opset, exporter)
CASES = {
    "singa_cnn_sgd": (SingaCNN, img(1, 28, 28), cls(10), "cross_entropy", "sgd", 8, 11, "script"),
    "tutorial_net_momentum": (
        TutorialNet,
        img(1, 28, 28),
        cls(10),
        "nll",
        "momentum",
        8,
        13,
        "script",
    ),
    "resnet_momentum": (
        ResNetTiny,
        img(3, 16, 16),
        cls(10),
        "cross_entropy",
        "momentum",
        8,
        17,
        "script",
    ),
    "resnet_groupnorm_nesterov": (
        ResNetGN,
        img(3, 16, 16),
        cls(10),
        "cross_entropy",
        "nesterov",
        4,
        21,
        "dynamo",
    ),
    "mobilenet_momentum": (
        MobileNetTiny,
        img(3, 32, 32),
        cls(10),
        "cross_entropy",
        "momentum",
        6,
        12,
        "script",
    ),
    "vit_adam": (ViTTiny, img(3, 32, 32), cls(10), "cross_entropy", "adam", 4, 18, "dynamo"),
    "vit_script_adam": (ViTTiny, img(3, 32, 32), cls(10), "cross_entropy", "adam", 4, 14, "script"),
    "seed_vit_adam": (SeedViT, img(3, 12, 12), cls(10), "cross_entropy", "adam", 4, 14, "script"),
    "bert_adamw": (BertTiny, ids(200, 16), cls(2), "cross_entropy", "adamw", 4, 14, "script"),
    "gpt_tied_adamw": (
        GPTTiny,
        ids(100, 16),
        cls(100, 16),
        "token_cross_entropy",
        "adamw",
        4,
        20,
        "dynamo",
    ),
    "crnn_ctc_adam": (CRNN, img(1, 32, 64), ctc_t, "ctc", "adam_damped", 4, 14, "script"),
    "gru_rmsprop": (GRUNet, ids(50, 12), cls(4), "cross_entropy", "rmsprop", 4, 13, "script"),
    "unet_bce_adam": (
        UNetTiny,
        img(1, 16, 16),
        bits(1, 16, 16),
        "bce_with_logits",
        "adam_damped",
        4,
        16,
        "script",
    ),
    "mlp_mse_adagrad": (MLP, real(8), real(1), "mse", "adagrad", 16, 13, "script"),
    "mlp_huber_sgd": (MLP, real(8), real(1), "huber", "sgd", 16, 18, "dynamo"),
    "squeezenet_sgd": (
        SqueezeTiny,
        img(3, 24, 24),
        cls(10),
        "cross_entropy",
        "sgd",
        4,
        11,
        "script",
    ),
    "efficientnet_adam": (
        EfficientTiny,
        img(3, 24, 24),
        cls(10),
        "cross_entropy",
        "adam",
        4,
        17,
        "script",
    ),
    "convnext_adamw": (
        ConvNeXtTiny,
        img(3, 32, 32),
        cls(10),
        "cross_entropy",
        "adamw",
        4,
        20,
        "dynamo",
    ),
}
