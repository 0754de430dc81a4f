"""LSTM, GRU and RNN, by torch's layers; ONNX orders the gates in its own way."""
import numpy as np
import torch

from norms import gradients, leaf
from vectors import case, f32, uniform

STEPS, BATCH, INPUT, HIDDEN = 3, 2, 4, 3
LAYERS = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}
# Rows of torch's gates in the order of ONNX: LSTM i f g o -> i o f g, GRU r z n -> z r n.
ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def torch_rows(kind, rows):
    """ONNX's blocks of rows in torch's order."""
    blocks = np.split(rows, len(ORDER[kind]))
    result = [None] * len(blocks)
    for block, place in zip(blocks, ORDER[kind]):
        result[place] = block
    return np.concatenate(result)


def onnx_rows(kind, rows):
    blocks = np.split(rows, len(ORDER[kind]))
    return np.concatenate([blocks[place] for place in ORDER[kind]])


def kept_gates(kind, x, states, w, r, b):
    """The activated gates by time, in ONNX's order, from the states between the steps."""
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    half = len(b) // 2
    rows = []
    for t in range(STEPS):
        h = states[0][t]
        a, c = x[t] @ w.T + b[:half], h @ r.T + b[half:]
        if kind == "LSTM":
            i, o, f, g = np.split(a + c, 4, 1)
            rows.append(np.concatenate([sigmoid(i), sigmoid(o), sigmoid(f), np.tanh(g)], 1))
        elif kind == "GRU":
            n = HIDDEN
            z, reset = sigmoid(a[:, :n] + c[:, :n]), sigmoid(a[:, n:2 * n] + c[:, n:2 * n])
            rows.append(np.concatenate(
                [z, reset, np.tanh(a[:, 2 * n:] + reset * c[:, 2 * n:]), c[:, 2 * n:]], 1))
        else:
            rows.append(np.tanh(a + c))
    return np.concatenate(rows)[None]


def one_kind(kind):
    gates = len(ORDER[kind])
    x = uniform(kind + "x", (STEPS, BATCH, INPUT))
    w, r = uniform(kind + "w", (gates * HIDDEN, INPUT)), uniform(kind + "r", (gates * HIDDEN, HIDDEN))
    b = uniform(kind + "b", (2 * gates * HIDDEN,))
    initial = [uniform(kind + s, (1, BATCH, HIDDEN)) for s in ("h", "c")]
    layer = LAYERS[kind](INPUT, HIDDEN).double()
    half = gates * HIDDEN
    for name, rows in (("weight_ih_l0", w), ("weight_hh_l0", r), ("bias_ih_l0", b[:half]),
                       ("bias_hh_l0", b[half:])):
        getattr(layer, name).data = torch.tensor(torch_rows(kind, rows))
    at, starts = leaf(x), [leaf(s) for s in initial]
    is_lstm = kind == "LSTM"
    y, last = layer(at, tuple(starts) if is_lstm else starts[0])
    # The states between the steps: one step after the other.
    states, state = [[s[0]] for s in initial], (tuple(starts) if is_lstm else starts[0])
    for t in range(STEPS):
        _, state = layer(at[t:t + 1], state)
        for kept, one in zip(states, state if is_lstm else (state,)):
            kept.append(one.detach().numpy()[0])
    states = np.stack([np.stack(kept) for kept in (states if is_lstm else states[:1])])[None]
    kept = kept_gates(kind, x, states[0], w, r, b)
    attributes = {"hidden_size": HIDDEN, **({"linear_before_reset": 1} if kind == "GRU" else {})}
    y_onnx = y.detach().numpy()[:, None]
    lasts = [s.detach().numpy() for s in (last if is_lstm else (last,))]
    case(kind + "Training", "forward",
         [x, w[None], r[None], b[None], None, *initial[:len(lasts)]],
         [y_onnx, *lasts, kept, states], attributes)
    dy = uniform(kind + "dy", y_onnx.shape)
    dlast = [uniform(kind + f"dlast{i}", initial[0].shape) for i in range(len(lasts))]
    total = (y * torch.tensor(dy[:, 0])).sum() + sum(
        (s * torch.tensor(d)).sum() for s, d in zip(last if is_lstm else (last,), dlast))
    leaves = [at, layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0,
              *starts[:len(lasts)]]
    dx, dw, dr, db_w, db_r, *dstarts = gradients(total, leaves, np.array(1.0))
    db = np.concatenate([onnx_rows(kind, db_w), onnx_rows(kind, db_r)])
    case(kind + "Grad", "forward",
         [x, w[None], r[None], None, None, f32(kept), f32(states), dy, *dlast],
         [dx, onnx_rows(kind, dw)[None], onnx_rows(kind, dr)[None], db[None], *dstarts], attributes)


def add():
    for kind in LAYERS:
        one_kind(kind)
