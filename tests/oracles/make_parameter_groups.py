"""Writes parameter_groups.json: what torch.optim's param_groups make of a small net, one of them
frozen at first and one with a schedule of its own, and torch's averages of the weights."""

import json
import math
import pathlib

import torch

UPDATES = 12
START = 4  # of body.0
DECAY = 0.9  # of the averages


def net():
    torch.manual_seed(1)
    layers = [torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 5), torch.nn.ReLU()]
    return torch.nn.ModuleDict({"body": torch.nn.Sequential(*layers), "head": torch.nn.Linear(5, 3)})


def numbers(tensor):
    return [float(f"{x:.9g}") for x in tensor.detach().flatten().tolist()]


def weights(model):
    return {name: {"shape": list(p.shape), "values": numbers(p)} for name, p in model.items()}


def average(old, new, count):
    d = min(DECAY, (1 + int(count)) / (10 + int(count)))
    return old * d + new * (1 - d)


def train(make):
    model = net()
    named = dict(model.named_parameters())
    groups = [
        {"params": [named["body.0.weight"], named["body.0.bias"]], "lr": 3e-3},
        {"params": [named["body.2.weight"]]},
        {"params": [named["body.2.bias"]], "weight_decay": 0.0},
        {"params": [named["head.weight"]], "lr": 5e-2},
        {"params": [named["head.bias"]], "lr": 5e-2, "weight_decay": 0.0},
    ]
    optimizer = make(groups)
    constant = lambda step: 1.0
    cosine = lambda step: 0.5 * (1 + math.cos(math.pi * step / UPDATES))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, [constant, constant, constant, cosine, cosine])
    averages = torch.optim.swa_utils.AveragedModel(model, avg_fn=average)
    averages.update_parameters(model)  # a copy of the first weights
    first = weights(named)
    x = torch.randn(UPDATES, 5, 4, generator=torch.Generator().manual_seed(2))
    y = torch.arange(UPDATES * 5).reshape(UPDATES, 5) % 3
    losses = []
    for step in range(UPDATES):
        model["body"][0].requires_grad_(step >= START)
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model["head"](model["body"](x[step])), y[step])
        loss.backward()
        optimizer.step()
        schedule.step()
        averages.update_parameters(model)
        losses.append(float(f"{loss.item():.9g}"))
    last = {name.removeprefix("module."): p for name, p in averages.named_parameters()}
    return {"first": first, "x": numbers(x), "y": y.flatten().tolist(), "losses": losses,
            "last": weights(named), "average": weights(last)}


def main():
    cases = {
        "adamw": train(lambda groups: torch.optim.AdamW(groups, lr=1e-2, weight_decay=0.1)),
        "sgd": train(lambda groups: torch.optim.SGD(groups, lr=2e-2, momentum=0.9, nesterov=True,
                                                    weight_decay=0.05)),
    }
    file = pathlib.Path(__file__).with_name("parameter_groups.json")
    text = ",\n".join(f'"{name}": {json.dumps(case)}' for name, case in cases.items())
    file.write_text("{" + text + "}\n")


if __name__ == "__main__":
    main()
