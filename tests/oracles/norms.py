"""Normalizations, softmax, losses, products and attention."""
import itertools

import numpy as np
import torch
import torch.nn.functional as F

from vectors import Constant, case, distinct, f32, uniform

EPSILON = 1e-3
EPSILON_F32 = float(np.float32(EPSILON))


def leaf(array):
    return torch.tensor(np.asarray(array, np.float64), requires_grad=True)


def gradients(y, leaves, dy):
    return [g.numpy() for g in torch.autograd.grad(y, leaves, torch.tensor(np.asarray(dy)))]


def softmax():
    for axis in (-1, 1):
        key = f"softmax{axis}"
        x = uniform(key, (2, 5, 9), -3, 3)
        dy = torch.tensor(uniform(key + "dy", x.shape))
        for op, function, backward in (
                ("SoftmaxGrad", torch.softmax, torch._softmax_backward_data),
                ("LogSoftmaxGrad", torch.log_softmax, torch._log_softmax_backward_data)):
            y = torch.tensor(f32(function(torch.tensor(x), axis).numpy()))
            case(op, f"axis_{axis % 3}", [y.numpy(), dy.numpy()],
                 [backward(dy, y, axis, torch.float64).numpy()], {"axis": axis})


def layer_norm():
    for axis in (-1, 2):
        x = uniform(f"layer{axis}", (2, 2, 3, 9), -2, 2)
        row = x.shape[axis:]
        scale, dy = uniform(f"scale{axis}", row, 0.5, 1.5), uniform(f"dy{axis}", x.shape)
        attributes = {"axis": axis, "epsilon": EPSILON}
        leaves = [leaf(x), leaf(scale), leaf(np.zeros(row))]
        y = F.layer_norm(leaves[0], row, leaves[1], leaves[2], EPSILON_F32)
        case("LayerNormGrad", f"axis_{axis % 4}", [dy, x, scale], gradients(y, leaves, dy),
             attributes)
        y = F.rms_norm(leaves[0], row, leaves[1], EPSILON_F32)
        case("RmsNormGrad", f"axis_{axis % 4}", [dy, x, scale], gradients(y, leaves[:2], dy),
             attributes)


def group_norm():
    x, dy = uniform("group", (2, 6, 3, 5), -2, 2), uniform("groupdy", (2, 6, 3, 5))
    scale = uniform("groupscale", (6,), 0.5, 1.5)
    for groups in (2, 6):
        leaves = [leaf(x), leaf(scale), leaf(np.zeros(6))]
        y = F.group_norm(leaves[0], groups, leaves[1], leaves[2], EPSILON_F32)
        case("GroupNormGrad", f"groups_{groups}", [dy, x, scale], gradients(y, leaves, dy),
             {"num_groups": groups, "epsilon": EPSILON})


def clamped(y, attributes):
    """The activation that a node may hold."""
    if attributes.get("strict"):
        return torch.relu(y)
    return y.clamp(attributes["lower"], attributes["upper"]) if "lower" in attributes else y


def batch_norm():
    x, dy = uniform("batch", (4, 5, 3, 2), -2, 2), uniform("batchdy", (4, 5, 3, 2))
    scale, bias = uniform("batchscale", (5,), 0.5, 1.5), uniform("batchbias", (5,))
    mean, variance = uniform("batchmean", (5,)), uniform("batchvar", (5,), 0.5, 1.5)
    momentum = float(np.float32(0.8))
    for name, activation in (("plain", {}), ("relu", {"lower": 0.0, "strict": 1}),
                             ("clip", {"lower": -0.5, "upper": 0.75})):
        leaves = [leaf(x), leaf(scale), leaf(bias)]
        running = [torch.tensor(mean), torch.tensor(variance)]
        y = clamped(F.batch_norm(leaves[0], *running, leaves[1], leaves[2], True, 1 - momentum,
                                 EPSILON_F32), activation)
        inverse = 1 / np.sqrt(x.var((0, 2, 3)) + EPSILON_F32)
        saved = [x.mean((0, 2, 3)), inverse]
        case("BatchNormTraining", name, [x, scale, bias, mean, variance],
             [y.detach().numpy(), *saved, running[0].numpy(), running[1].numpy()],
             {"momentum": 0.8, "epsilon": EPSILON, **activation})
        case("BatchNormGrad", name, [x, dy, scale, *map(f32, saved), bias],
             gradients(y, leaves, dy), activation)


def class_losses():
    scores = uniform("scores", (4, 5, 3), -3, 3)
    labels = np.array([[0, 4, 2], [1, 1, 3], [2, 0, 4], [3, 2, 2]], np.int64)
    weights = uniform("weights", (5,), 0.5, 1.5)
    for name, attributes, has_weights in (
            ("mean", {}, False), ("sum_weights", {"reduction": "sum"}, True),
            ("mean_weights_ignore", {"ignore_index": 2}, True),
            ("none_ignore", {"reduction": "none", "ignore_index": 1}, False),
            ("smoothed", {"label_smoothing": 0.1}, False),
            ("smoothed_weights_ignore", {"label_smoothing": 0.2, "ignore_index": 4}, True)):
        x = leaf(scores)
        settings = {"reduction": attributes.get("reduction", "mean"),
                    "ignore_index": attributes.get("ignore_index", -100),
                    "weight": torch.tensor(weights) if has_weights else None}
        smoothing = float(np.float32(attributes.get("label_smoothing", 0)))
        loss = F.cross_entropy(x, torch.tensor(labels), label_smoothing=smoothing, **settings)
        more = [Constant(weights)] if has_weights else []
        dloss = uniform("dloss" + name, tuple(loss.shape), 0.5, 1.5)
        case("CrossEntropy", name, [scores, labels, *more],
             [loss.detach().numpy(), torch.log_softmax(x, 1).detach().numpy()], attributes)
        case("CrossEntropyGrad", name, [dloss, scores, labels, *more],
             gradients(loss, [x], dloss), attributes)
        if "label_smoothing" not in attributes:
            loss = F.nll_loss(x, torch.tensor(labels), **settings)
            case("NegativeLogLikelihoodLossGrad", name, [dloss, scores, labels, *more],
                 gradients(loss, [x], dloss), attributes)


def ctc_of_one(log_probabilities, target, blank):
    """By its definition: the sum over all paths that spell the target."""
    steps, classes = log_probabilities.shape
    logs = []
    for path in itertools.product(range(classes), repeat=steps):
        spelt = [label for label, _ in itertools.groupby(path) if label != blank]
        if spelt == target:
            logs.append(sum(log_probabilities[t, label] for t, label in enumerate(path)))
    return -torch.logsumexp(torch.stack(logs), 0)


def ctc():
    raw = torch.tensor(uniform("ctc", (5, 3, 4), -2, 2))
    scores = f32(torch.log_softmax(raw, -1).numpy())
    targets = np.array([[1, 2, -1], [3, 3, -1], [1, 2, 1]], np.int64)
    for reduction in ("mean", "sum", "none"):
        x = leaf(scores)
        lists = [[int(label) for label in row if label >= 0] for row in targets]
        losses = torch.stack([ctc_of_one(x[:, b], lists[b], 0) for b in range(3)])
        lengths = torch.tensor([float(len(row)) for row in lists], dtype=torch.float64)
        loss = {"mean": (losses / lengths).mean(), "sum": losses.sum(), "none": losses}[reduction]
        torch_loss = F.ctc_loss(torch.tensor(scores), torch.tensor(targets).clamp(min=0),
                                torch.full((3,), 5), lengths.long(), reduction=reduction)
        assert torch.allclose(loss, torch_loss)
        dloss = uniform("dctc" + reduction, tuple(loss.shape), 0.5, 1.5)
        case("CtcLoss", reduction, [scores, targets], [loss.detach().numpy()],
             {"reduction": reduction})
        case("CtcLossGrad", reduction, [dloss, scores, targets], gradients(loss, [x], dloss),
             {"reduction": reduction})


def products():
    a, b = uniform("dota", (3, 2, 17)), uniform("dotb", (3, 2, 17))
    case("RowDot", "rows", [a, b], [(a * b).sum(-1)])
    scores = distinct("counted", (4, 5, 6))
    for axis in (1, 2):
        best = torch.tensor(scores).argmax(axis)
        target = np.where(np.arange(best.numel()).reshape(best.shape) % 3 == 0, 1, best.numpy())
        case("CountCorrect", f"axis{axis}", [scores, target],
             [(best == torch.tensor(target)).sum().numpy()], {"axis": axis})
    for name, a_shape, b_shape, attributes in (
            ("plain", (2, 3, 5), (2, 5, 4), {}), ("trans_a", (2, 5, 3), (2, 5, 4), {"transA": 1}),
            ("trans_b", (2, 3, 5), (2, 4, 5), {"transB": 1}),
            ("trans_both_broadcast", (2, 5, 3), (1, 4, 5), {"transA": 1, "transB": 1})):
        a, b = uniform(name + "a", a_shape), uniform(name + "b", b_shape)
        left = a.swapaxes(1, 2) if "transA" in attributes else a
        right = b.swapaxes(1, 2) if "transB" in attributes else b
        case("BatchedMatMul", name, [a, b], [left @ right], attributes)
    x = uniform("cofactors", (2, 4, 4), -2, 2)
    wanted = np.linalg.det(x)[:, None, None] * np.linalg.inv(x).swapaxes(1, 2)
    case("Cofactors", "regular", [x], [wanted])
    case("Cofactors", "singular", [f32([[1, 2, 0], [2, 4, 0], [0, 0, 3]])],
         [f32([[12, -6, 0], [-6, 3, 0], [0, 0, 0]])])


def feed_forward():
    shapes = {"x": (2, 3, 5), "w1": (5, 7), "w2": (7, 4), "b1": (7,), "b2": (4,)}
    arrays = {name: uniform("ff" + name, shape) for name, shape in shapes.items()}
    dy = uniform("ffdy", (2, 3, 4))
    functions = {"Relu": torch.relu, "Gelu": F.gelu, "Swish": F.silu}
    for name, function in functions.items():
        x, w1, w2, b1, b2 = map(leaf, arrays.values())
        y = function(x @ w1 + b1) @ w2 + b2
        case("FeedForward", name.lower(), list(arrays.values()), [y.detach().numpy()],
             {"activation": name})
        inputs = [arrays["x"], arrays["w1"], arrays["w2"], dy, arrays["b1"]]
        case("FeedForwardGrad", name.lower(), inputs, gradients(y, [x, w1, w2, b1], dy),
             {"activation": name})


def attention():
    q, k = uniform("q", (1, 2, 5, 4)), uniform("k", (1, 2, 6, 4))
    v, dy = uniform("v", (1, 2, 6, 3)), uniform("attentiondy", (1, 2, 5, 3))
    hidden = uniform("bias", (5, 6))
    hidden[1, 2:] = hidden[4, 0] = -np.inf
    for name, bias in (("plain", None), ("bias", hidden)):
        leaves = [leaf(q), leaf(k), leaf(v)]
        mask = None if bias is None else torch.tensor(bias)
        scale = float(np.float32(0.35))
        y = F.scaled_dot_product_attention(*leaves, attn_mask=mask, scale=scale)
        scores = leaves[0] @ leaves[1].transpose(-1, -2) * scale + (0 if bias is None else mask)
        log_sum_exp = torch.logsumexp(scores, -1).detach().numpy()
        more = [] if bias is None else [bias]
        y_array = y.detach().numpy()
        case("TiledAttention", name, [q, k, v, *more], [y_array, log_sum_exp], {"scale": 0.35})
        share = (dy * y_array).sum(-1)
        case("TiledAttentionGrad", name, [q, k, v, f32(share), f32(log_sum_exp), dy, *more],
             gradients(y, leaves, dy), {"scale": 0.35})


def straight_through():
    value, path = uniform("value", (3, 4)), uniform("path", (3, 4))
    case("StraightThrough", "value", [value, path], [value])


def cumulative_product():
    for name, attributes in (("plain", {}), ("exclusive", {"exclusive": 1}),
                             ("reverse", {"reverse": 1})):
        x = uniform("cum" + name, (3, 4), -2, 2)
        x[1, 2] = 0
        dy, at = uniform("cumdy" + name, x.shape), leaf(x)
        along = at.flip(1) if "reverse" in attributes else at
        if "exclusive" in attributes:
            along = torch.cat([torch.ones(3, 1, dtype=torch.float64), along[:, :-1]], 1)
        y = torch.cumprod(along, 1)
        y = y.flip(1) if "reverse" in attributes else y
        case("CumProdGrad", name, [dy, x, Constant(np.array(1, np.int64))], gradients(y, [at], dy),
             attributes)


def add():
    softmax()
    layer_norm()
    group_norm()
    batch_norm()
    class_losses()
    ctc()
    products()
    feed_forward()
    attention()
    straight_through()
    cumulative_product()
