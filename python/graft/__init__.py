"""Trains ONNX models: load a file, train it in place, edit it, write it back.

    import graft

    model = graft.load("resnet.onnx")
    model.truncate("pool").append(graft.Linear("head", 10, seed=1))
    trainer = graft.Trainer(model, optimizer=graft.AdamW(lr=1e-3), trainable="head.*")
    trainer.fit("fashion-mnist", epochs=5)
    model.save("out.onnx")
"""

from . import federated, ops
from ._core import (
    Adagrad,
    Adam,
    AdamW,
    AveragePool,
    BatchNorm,
    Conv,
    ConvTranspose,
    Cosine,
    CustomOptimizer,
    Dropout,
    Embedding,
    Evaluation,
    Flatten,
    Gelu,
    GlobalAveragePool,
    GraphValue,
    GroupNorm,
    GRU,
    LayerNorm,
    LeakyRelu,
    Linear,
    LogSoftmax,
    Loss,
    LSTM,
    MaxPool,
    MultiHeadAttention,
    Normalize,
    ParameterGroup,
    RandomCrop,
    RandomHorizontalFlip,
    Relu,
    Relu6,
    Reshape,
    Residual,
    RMSprop,
    Schedule,
    SGD,
    Sigmoid,
    Silu,
    Softmax,
    Tanh,
    ValueInfo,
    arcface,
    bce_with_logits,
    constant_lr,
    cosine_lr,
    cross_entropy,
    ctc,
    custom_loss,
    dice,
    exponential_lr,
    focal,
    graph_loss,
    huber,
    joint_loss,
    kl,
    known_normalization,
    l1,
    loss_names,
    mse,
    nets,
    nll,
    one_cycle_lr,
    optimizer_names,
    step_lr,
    token_cross_entropy,
    triplet,
    version,
    with_warmup,
)
from .callbacks import Callback, Checkpoint, EarlyStopping
from .data import Loader
from .error import Error
from .history import History
from .model import Model, load, new, parse
from .session import Session
from .trainer import Trainer

__version__ = version()

__all__ = [
    "Adagrad", "Adam", "AdamW", "AveragePool", "BatchNorm", "Callback", "Checkpoint", "Conv",
    "ConvTranspose", "Cosine", "CustomOptimizer", "Dropout", "EarlyStopping", "Embedding", "Error",
    "Evaluation", "Flatten", "GRU", "Gelu", "GlobalAveragePool", "GraphValue", "GroupNorm",
    "History", "LSTM", "LayerNorm", "LeakyRelu", "Linear", "Loader", "LogSoftmax", "Loss",
    "MaxPool", "Model", "MultiHeadAttention", "Normalize", "ParameterGroup", "RMSprop",
    "RandomCrop", "RandomHorizontalFlip", "Relu", "Relu6", "Reshape", "Residual", "SGD",
    "Schedule", "Session", "Sigmoid", "Silu", "Softmax", "Tanh", "Trainer", "ValueInfo", "arcface",
    "bce_with_logits", "constant_lr", "cosine_lr", "cross_entropy", "ctc", "custom_loss", "dice",
    "exponential_lr", "federated", "focal", "graph_loss", "huber", "joint_loss", "kl",
    "known_normalization", "l1", "load", "loss_names", "mse", "nets", "new", "nll", "one_cycle_lr",
    "ops", "optimizer_names", "parse", "step_lr", "token_cross_entropy", "triplet", "with_warmup",
]
