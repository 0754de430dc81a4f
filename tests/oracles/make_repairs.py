"""Writes repairs.json: small nets as an exporter leaves them, and what PyTorch makes of the nets
that Graft's repairs turn them into: low-rank adapters, BatchNormalizations that were folded, and
those that train in another way than by default."""

import json
import pathlib

import torch

STEPS = 8


def numbers(tensor):
    return [float(f"{x:.9g}") for x in tensor.detach().flatten().tolist()]


def tensors(state):
    return {name: {"shape": list(t.shape), "values": numbers(t)} for name, t in state.items()
            if t.is_floating_point()}


def train(net, x, y, make, mode=lambda net: net.train()):
    optimizer = make([p for p in net.parameters() if p.requires_grad])
    losses = []
    mode(net)
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(net(x[step]), y[step])
        loss.backward()
        optimizer.step()
        losses.append(float(f"{loss.item():.9g}"))
    net.eval()
    with torch.no_grad():
        return {"losses": losses, "last": tensors(net.state_dict()), "answer": numbers(net(x[0]))}


class Adapted(torch.nn.Module):
    """The layer and an adapter, as the paper has it."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_A = torch.nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = torch.nn.Linear(rank, base.out_features, bias=False)
        torch.nn.init.zeros_(self.lora_B.weight)
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(x)) * self.scale


def rows():
    x = torch.randn(STEPS, 5, 6, generator=torch.Generator().manual_seed(2))
    return x, torch.arange(STEPS * 5).reshape(STEPS, 5) % 3


def images():
    x = torch.randn(STEPS, 6, 2, 5, 5, generator=torch.Generator().manual_seed(3))
    return x, torch.arange(STEPS * 6).reshape(STEPS, 6) % 3


def lora():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    first = tensors(net.state_dict())
    net[0] = Adapted(net[0], 2, 4.0)
    net[2] = Adapted(net[2], 2, 4.0)
    first |= {f"{i}.lora_A.weight": tensors(net[i].state_dict())["lora_A.weight"] for i in (0, 2)}
    x, y = rows()
    return {"first": first, **train(net, x, y, lambda p: torch.optim.AdamW(p, lr=3e-2))}


def conv_net(bias):
    layers = [torch.nn.Conv2d(2, 4, 3, bias=bias), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
              torch.nn.Conv2d(4, 4, 2, bias=bias), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
              torch.nn.Flatten(), torch.nn.Linear(16, 3)]
    return torch.nn.Sequential(*layers)


def worn(net):
    """BatchNormalizations as some training leaves them."""
    for norm in net:
        if isinstance(norm, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(norm.running_mean, 0.2, 0.3)
            torch.nn.init.uniform_(norm.running_var, 0.5, 2.0)
            torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
            torch.nn.init.normal_(norm.bias, 0.0, 0.3)
    return net


def unfuse():
    torch.manual_seed(4)
    source = worn(conv_net(False)).eval()
    fold = torch.nn.utils.fusion.fuse_conv_bn_eval
    folded = {0: fold(source[0], source[1]), 3: fold(source[3], source[4])}
    first = {f"{i}.{n}": t for i, conv in folded.items() for n, t in tensors(conv.state_dict()).items()}
    first |= {f"7.{n}": t for n, t in tensors(source[7].state_dict()).items()}
    x, y = images()
    net = conv_net(False)
    net[7].load_state_dict(source[7].state_dict())
    data = x.flatten(0, 1)  # what calibrates: all images
    seen = data
    with torch.no_grad():
        for i in (0, 3):
            result = folded[i](seen)
            mean = result.mean((0, 2, 3))
            variance = result.var((0, 2, 3), unbiased=False)
            net[i].weight.copy_(folded[i].weight)
            norm = net[i + 1]
            norm.weight.copy_((variance + norm.eps).sqrt())
            norm.bias.copy_(mean)
            norm.running_mean.copy_(mean - folded[i].bias)
            norm.running_var.copy_(variance)
            seen = torch.relu(result)
        before = source(x[0])
    return {"first": first, "before": numbers(before),
            **train(net, x, y, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9))}


def policy(name):
    torch.manual_seed(5)
    net = worn(conv_net(True))
    first = tensors(net.state_dict())
    x, y = images()

    def mode(net):
        net.train()
        if name == "train":
            return
        for norm in (net[1], net[4]):
            norm.eval()
            norm.requires_grad_(name == "fixed")

    mode(net)
    return {"first": first,
            **train(net, x, y, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), mode)}


def main():
    batches = {name: {"x": numbers(x), "y": y.flatten().tolist()}
               for name, (x, y) in {"rows": rows(), "images": images()}.items()}
    cases = {"batches": batches, "lora": lora(), "unfuse": unfuse()}
    cases |= {f"norms_{name}": policy(name) for name in ("train", "fixed", "frozen")}
    file = pathlib.Path(__file__).with_name("repairs.json")
    text = ",\n".join(f'"{name}": {json.dumps(case)}' for name, case in cases.items())
    file.write_text("{" + text + "}\n")


if __name__ == "__main__":
    main()
