"""Optimizer updates, by torch.optim itself."""
import numpy as np
import torch

from vectors import case, f32, uniform

SHAPE = (3, 7)
LR = 0.1


def setting(value):
    return float(np.float32(value)) if isinstance(value, float) else value


def torch_step(kind, parameter, gradient, state, step, settings):
    """What torch.optim makes of a parameter and its state, with `step` counted from 1."""
    p = torch.nn.Parameter(torch.tensor(parameter))
    p.grad = torch.tensor(gradient)
    optimizer = kind([p], lr=setting(LR), **{name: setting(v) for name, v in settings.items()})
    held = optimizer.state[p]
    held["step"] = torch.tensor(float(step - 1), dtype=torch.float64)
    for name, value in state.items():
        held[name] = torch.tensor(value)
    if step == 1:
        held.pop("momentum_buffer", None)
    optimizer.step()
    return [p.detach().numpy(), *[optimizer.state[p][name].numpy() for name in state]]


def product(key, transposes_a, transposes_b, scale, inner=5):
    """Two matrices and their product, scaled."""
    a = uniform(key + "a", (inner, SHAPE[0]) if transposes_a else (SHAPE[0], inner))
    b = uniform(key + "b", (SHAPE[1], inner) if transposes_b else (inner, SHAPE[1]))
    return a, b, setting(scale) * (a.T if transposes_a else a) @ (b.T if transposes_b else b)


def add_update(op, name, kind, states, step, settings, attributes, input_count):
    """Both forms of an update: with the gradient, and with the product that makes it. `states`:
    {torch's name: (place among the inputs, low, high)}."""
    key = op + name
    parameter = uniform(key + "p", SHAPE)
    state = {s: uniform(key + s, SHAPE, low, high) for s, (_, low, high) in states.items()}
    inputs = [parameter, uniform(key + "g", SHAPE), f32(LR), np.array(step, np.int64)]
    inputs += [None] * (max([4, *[place + 1 for place, _, _ in states.values()]]) - 4)
    for s, (place, _, _) in states.items():
        inputs[place] = state[s]

    def wanted(gradient):
        results = torch_step(kind, parameter, gradient, state, step, settings)
        outputs = [results[0]] + [None] * (len(inputs) - 4)
        for result, (place, _, _) in zip(results[1:], states.values()):
            outputs[place - 3] = result
        return outputs

    case(f"{op}Update", name, inputs, wanted(inputs[1]), attributes)
    transposes = {"transA": 1} if len(name) % 2 else {"transB": 1}
    scale = 0.5 if settings else 1.0
    a, b, gradient = product(key, "transA" in transposes, "transB" in transposes, scale)
    operands = [parameter, a, *inputs[2:]] + [None] * (input_count - len(inputs)) + [b]
    case(f"{op}ProductUpdate", name, operands, wanted(gradient),
         {**attributes, **transposes, "scale": scale})


def sgd(name, step, settings, has_momentum=False):
    states = {"momentum_buffer": (4, -1, 1)} if has_momentum else {}
    attributes = {k: int(v) if isinstance(v, bool) else v for k, v in settings.items()}
    add_update("Sgd", name, torch.optim.SGD, states, step, settings, attributes, 5)


def adam(name, kind, step, settings, attributes):
    states = {"exp_avg": (4, -0.1, 0.1), "exp_avg_sq": (5, 0.01, 0.1)}
    add_update("Adam", name, kind, states, step, settings, attributes, 6)


def rmsprop(name, settings, more=()):
    states = {"square_avg": (4, 0.5, 1.0)}
    if "momentum" in more:
        states["momentum_buffer"] = (5, -1, 1)
    if "mean" in more:
        states["momentum_buffer"] = (5, -1, 1)
        states["grad_avg"] = (6, -0.1, 0.1)
    attributes = {k: v for k, v in settings.items() if k != "centered"}
    add_update("Rmsprop", name, torch.optim.RMSprop, states, 2, settings, attributes, 7)


def add():
    sgd("plain", 1, {})
    sgd("weight_decay", 1, {"weight_decay": 0.1})
    sgd("first_momentum", 1, {"momentum": 0.9, "dampening": 0.5}, True)
    sgd("momentum", 2, {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.01}, True)
    sgd("nesterov", 3, {"momentum": 0.9, "nesterov": True}, True)
    adam("plain", torch.optim.Adam, 3, {}, {})
    adam("coupled", torch.optim.Adam, 1, {"weight_decay": 0.1}, {"weight_decay": 0.1})
    adam("decoupled", torch.optim.AdamW, 7, {"weight_decay": 0.1},
         {"weight_decay": 0.1, "decoupled": 1})
    betas = {"beta1": 0.5, "beta2": 0.9, "epsilon": 0.1}
    adam("betas", torch.optim.Adam, 2,
         {"betas": (setting(0.5), setting(0.9)), "eps": setting(0.1)}, betas)
    rmsprop("plain", {})
    rmsprop("momentum", {"momentum": 0.9, "alpha": 0.9, "weight_decay": 0.1}, ("momentum",))
    rmsprop("centered", {"momentum": 0.5, "centered": True}, ("mean",))
    states = {"sum": (4, 0.5, 1.0)}
    add_update("Adagrad", "plain", torch.optim.Adagrad, states, 1, {}, {}, 5)
    decays = {"lr_decay": 0.1, "weight_decay": 0.1}
    add_update("Adagrad", "decay", torch.optim.Adagrad, states, 5, {**decays, "eps": 1e-3},
               {**decays, "epsilon": 1e-3}, 5)
    buffer, gradient = uniform("buffer", SHAPE), uniform("gradient", SHAPE)
    case("Accumulate", "plain", [buffer, gradient], [buffer + gradient])
    case("Accumulate", "scaled", [buffer, gradient], [buffer + 0.25 * gradient], {"scale": 0.25})
    case("Assign", "plain", [buffer, gradient], [gradient])
    # The mean over one rank; several are tested in tests/train and tests/mpi.
    case("AllReduce", "alone", [f32(LR), buffer, gradient], [buffer, gradient])
