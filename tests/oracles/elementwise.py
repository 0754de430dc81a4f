"""Gradients of activations, a chain, dropout: element by element."""
import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, f32, uniform

SHAPE = (3, 11)  # more than one vector, and a rest


def gradient(function, x, dy):
    at = torch.tensor(x, requires_grad=True)
    (result,) = torch.autograd.grad(function(at), at, torch.tensor(dy))
    return result.numpy()


def from_input(op, name, function, attributes=None, extra=(), low=-4.0, high=4.0):
    """A gradient that reads the activation's input."""
    x = uniform(op + name, SHAPE, low, high)
    dy = uniform(op + name + "dy", x.shape)
    case(op, name, [x, dy, *extra], [gradient(function, x, dy)], attributes)


def from_output(op, function, inverse, low, high):
    """A gradient that reads the activation's output."""
    y = uniform(op, SHAPE, low, high)
    dy = uniform(op + "dy", SHAPE)
    case(op, "plain", [y, dy], [gradient(function, inverse(y), dy)])


def activations():
    from_output("TanhGrad", torch.tanh, np.arctanh, -0.99, 0.99)
    from_output("SigmoidGrad", torch.sigmoid, lambda y: np.log(y / (1 - y)), 0.01, 0.99)
    from_output("ReluGrad", torch.relu, lambda y: y, 0.0, 2.0)
    zeros = f32([[0.0, 0.5, 0.0]])
    case("ReluGrad", "at_zero", [zeros, f32([[1, 2, 3]])], [f32([[0, 2, 0]])])
    for alpha in (0.01, 0.3):
        slope = float(np.float32(alpha))
        from_input("LeakyReluGrad", f"alpha_{alpha}".replace(".", "_"),
                   lambda x, slope=slope: F.leaky_relu(x, slope), {"alpha": alpha})
    from_input("HardSwishGrad", "plain", F.hardswish)
    from_input("GeluGrad", "exact", F.gelu)
    from_input("GeluGrad", "tanh", lambda x: F.gelu(x, approximate="tanh"), {"approximate": "tanh"})
    from_input("SwishGrad", "plain", F.silu)
    alpha = float(np.float32(1.7))
    from_input("SwishGrad", "alpha", lambda x: x * torch.sigmoid(alpha * x), {"alpha": 1.7})
    from_input("MishGrad", "plain", F.mish, low=-8.0, high=8.0)
    bounds = (f32(-1.25), f32(1.5))
    from_input("ClipGrad", "inside_and_outside", lambda x: x.clamp(-1.25, 1.5), extra=bounds)
    # At the bounds Graft chose 1 (docs/numerics.md); torch 2.15 has 0 there.
    case("ClipGrad", "at_bounds", [f32([-2, -1, 0, 1, 2]), f32([1, 2, 3, 4, 5]), f32(-1), f32(1)],
         [f32([0, 2, 3, 4, 0])])
    from_input("ClipGrad", "max_only", lambda x: x.clamp(max=0.5), extra=(None, f32(0.5)))


def chain():
    body = {"inputs": ["x0", "x1", "x2"], "outputs": ["y", "product"],
            "nodes": [["Mul", ["x0", "x1"], "product"], ["Add", ["product", "x2"], "sum"],
                      ["Sigmoid", ["sum"], "gate"], ["Mul", ["gate", "x0"], "y"]]}
    a = uniform("chain0", SHAPE)
    b = uniform("chain1", (11,))
    c = uniform("chain2", ())
    product = a * b
    case("ElementwiseChain", "broadcast", [a, b, c], [a / (1 + np.exp(-(product + c))), product],
         {"body": body})


def update_chain():
    # Gradient descent with momentum; the variables come first, and results stand where they do.
    body = {"inputs": ["p", "v", "g", "rate", "share"], "outputs": ["new_p", "new_v"],
            "nodes": [["Mul", ["v", "share"], "kept"], ["Add", ["kept", "g"], "new_v"],
                      ["Mul", ["rate", "new_v"], "step"], ["Sub", ["p", "step"], "new_p"]]}
    p, v, g = (uniform(f"update_chain{i}", SHAPE) for i in range(3))
    rate, share = f32(0.1), f32(0.9)
    new_v = v * np.float64(share) + g
    case("UpdateChain", "momentum", [p, v, g, rate, share],
         [p - np.float64(rate) * new_v, new_v], {"body": body})


def philox(seed, stream, counter):
    """Philox 4x32-10 of Salmon et al. (2011), four words."""
    mask = 0xFFFFFFFF
    x = [counter & mask, counter >> 32, stream & mask, stream >> 32]
    key = [seed & mask, seed >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(p1 >> 32) ^ x[1] ^ key[0], p1 & mask, (p0 >> 32) ^ x[3] ^ key[1], p0 & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return x


def splitmix(value):
    mask = (1 << 64) - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def dropout():
    # Known answer of the reference implementation (Random123, kat_vectors).
    assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    x = uniform("dropout", (7, 9), 0.1, 1.0)
    for ratio, seed, op_id in ((0.5, 1, 0), (0.25, 12345678901, 3)):
        words = [word for i in range(16) for word in philox(seed, splitmix(op_id), i)][:x.size]
        survives = np.array([(word >> 8) / 2.0**24 >= ratio for word in words]).reshape(x.shape)
        case("DropoutTraining", f"op_{op_id}", [x], [np.where(survives, x / (1 - ratio), 0)],
             {"ratio": ratio, "seed": seed, "op_id": op_id})
    survives = np.random.RandomState(4).random_sample(x.shape) >= 0.5
    case("DropoutTraining", "twister", [x], [np.where(survives, x * 2, 0)],
         {"ratio": 0.5, "seed": 4, "twister": 1})


def add():
    activations()
    chain()
    update_chain()
    dropout()
