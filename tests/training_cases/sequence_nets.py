"""Nets over tokens, steps and numbers: attention, recurrent layers, a plain perceptron."""

import torch, torch.nn as nn, torch.nn.functional as F


class ViTTiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(3, 32, 4, 4)
        self.cls = nn.Parameter(torch.zeros(1, 1, 32))
        self.pos = nn.Parameter(torch.zeros(1, 65, 32))
        self.enc = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                32, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            ),
            2,
            enable_nested_tensor=False,
        )
        self.ln = nn.LayerNorm(32)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.ln(self.enc(x))[:, 0])


class SeedViT(nn.Module):
    """The VisualTransformer of the seed blog: 1x1 conv, one encoder layer, mean over tokens."""

    def __init__(self):
        super().__init__()
        self.input_proj = nn.Conv2d(3, 32, 1)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0), 1, enable_nested_tensor=False
        )
        self.output_proj = nn.Linear(32, 10)

    def forward(self, x):
        x = self.input_proj(x)
        B, C, H, W = x.shape
        return self.output_proj(self.encoder(x.view(B, C, -1).transpose(1, 2)).mean(dim=1))


class BertTiny(nn.Module):
    def __init__(self, vocab=200, d=32, n=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(n, d)
        self.ln = nn.LayerNorm(d)
        self.enc = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                d, 2, 4 * d, dropout=0.0, activation="gelu", batch_first=True
            ),
            2,
            enable_nested_tensor=False,
        )
        self.pool = nn.Linear(d, d)
        self.out = nn.Linear(d, 2)

    def forward(self, ids):
        p = torch.arange(ids.shape[1])
        h = self.enc(self.ln(self.tok(ids) + self.pos(p)))
        return self.out(torch.tanh(self.pool(h[:, 0])))


class GPTTiny(nn.Module):
    def __init__(self, vocab=100, d=32, n=16, h=2):
        super().__init__()
        self.h, self.d = h, d
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.zeros(n, d))
        self.ln1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.ln2 = nn.LayerNorm(d)
        self.fc = nn.Linear(d, 4 * d)
        self.fc2 = nn.Linear(4 * d, d)
        self.lnf = nn.LayerNorm(d)
        self.register_buffer("mask", torch.tril(torch.ones(n, n)).bool())

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(C, 2)
        f = lambda t: t.view(B, T, self.h, C // self.h).transpose(1, 2)
        a = (f(q) @ f(k).transpose(-2, -1)) / (C // self.h) ** 0.5
        a = a.masked_fill(~self.mask, float("-inf")).softmax(-1)
        x = x + self.proj((a @ f(v)).transpose(1, 2).reshape(B, T, C))
        x = x + self.fc2(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))
        return self.lnf(x) @ self.tok.weight.t()  # tied weights


class CRNN(nn.Module):
    def __init__(self, nclass=37, nh=16):
        super().__init__()
        c = lambda i, o, k=3, p=1: nn.Conv2d(i, o, k, 1, p)
        self.cnn = nn.Sequential(
            c(1, 8),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            c(8, 16),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            c(16, 24),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
            c(24, 24),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
            c(24, 32, 2, 0),
            nn.ReLU(),
        )
        self.rnn = nn.LSTM(32, nh, 2, bidirectional=True)
        self.fc = nn.Linear(2 * nh, nclass)

    def forward(self, x):
        x = self.cnn(x).squeeze(2).permute(2, 0, 1)
        return F.log_softmax(self.fc(self.rnn(x)[0]), -1)


class GRUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16)
        self.rnn = nn.GRU(16, 24, batch_first=True)
        self.fc = nn.Linear(24, 4)

    def forward(self, x):
        return self.fc(self.rnn(self.emb(x))[0][:, -1])


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.Sequential(
            nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 16), nn.Softplus(), nn.Linear(16, 1)
        )

    def forward(self, x):
        return self.n(x)
