"""Nets over images: convolutions, with and without normalization, residuals, a decoder."""

import torch, torch.nn as nn, torch.nn.functional as F


class SingaCNN(nn.Module):
    def __init__(self, w=1):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20 * w, 5)
        self.conv2 = nn.Conv2d(20 * w, 50 * w, 5)
        self.fc1 = nn.Linear(800 * w, 64, bias=False)
        self.fc2 = nn.Linear(64, 10, bias=False)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class TutorialNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 5)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.reshape(-1, 320)))
        return F.log_softmax(self.fc2(x), dim=1)


class Block(nn.Module):
    def __init__(self, i, o, st):
        super().__init__()
        self.c1 = nn.Conv2d(i, o, 3, st, 1, bias=False)
        self.b1 = nn.BatchNorm2d(o)
        self.c2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(o)
        self.sc = (
            nn.Sequential(nn.Conv2d(i, o, 1, st, bias=False), nn.BatchNorm2d(o))
            if st != 1 or i != o
            else nn.Identity()
        )

    def forward(self, x):
        return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + self.sc(x))


class ResNetTiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.body = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.body(self.stem(x)), 1).flatten(1))


class ResNetGN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c0 = nn.Conv2d(3, 16, 3, 1, 1)
        self.g0 = nn.GroupNorm(4, 16)
        self.c1 = nn.Conv2d(16, 16, 3, 1, 1)
        self.g1 = nn.GroupNorm(4, 16)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.g0(self.c0(x)))
        x = x + F.relu(self.g1(self.c1(x)))
        return self.fc(x.mean((2, 3)))


class InvRes(nn.Module):
    def __init__(self, i, o, st, e=4):
        super().__init__()
        h = i * e
        self.use = st == 1 and i == o
        self.net = nn.Sequential(
            nn.Conv2d(i, h, 1, bias=False),
            nn.BatchNorm2d(h),
            nn.ReLU6(),
            nn.Conv2d(h, h, 3, st, 1, groups=h, bias=False),
            nn.BatchNorm2d(h),
            nn.ReLU6(),
            nn.Conv2d(h, o, 1, bias=False),
            nn.BatchNorm2d(o),
        )

    def forward(self, x):
        return x + self.net(x) if self.use else self.net(x)


class MobileNetTiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU6(),
            InvRes(16, 16, 1),
            InvRes(16, 24, 2),
            InvRes(24, 24, 1),
        )
        self.c = nn.Linear(24, 10)

    def forward(self, x):
        return self.c(self.f(x).mean([2, 3]))


class UNetTiny(nn.Module):
    def __init__(self):
        super().__init__()
        b = lambda i, o: nn.Sequential(
            nn.Conv2d(i, o, 3, 1, 1), nn.BatchNorm2d(o), nn.LeakyReLU(0.1)
        )
        self.d1, self.d2, self.m = b(1, 8), b(8, 16), b(16, 32)
        self.u2 = nn.ConvTranspose2d(32, 16, 2, 2)
        self.c2 = b(32, 16)
        self.c1 = b(24, 8)
        self.o = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.m(F.avg_pool2d(b, 2))
        y = self.c2(torch.cat([self.u2(m), b], 1))
        y = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return self.o(self.c1(torch.cat([y, a], 1)))


class SqueezeTiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 16, 3, 2)
        self.s = nn.Conv2d(16, 8, 1)
        self.e1 = nn.Conv2d(8, 16, 1)
        self.e3 = nn.Conv2d(8, 16, 3, padding=1)
        self.o = nn.Conv2d(32, 10, 1)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c(x)), 3, 2, ceil_mode=True)
        x = F.relu(self.s(x))
        x = torch.cat([F.relu(self.e1(x)), F.relu(self.e3(x))], 1)
        return F.adaptive_avg_pool2d(F.relu(self.o(x)), 1).flatten(1)


class EfficientTiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 16, 3, 2, 1, bias=False)
        self.b = nn.BatchNorm2d(16)
        self.dw = nn.Conv2d(16, 16, 5, 1, 2, groups=16, bias=False)
        self.b2 = nn.BatchNorm2d(16)
        self.r = nn.Conv2d(16, 4, 1)
        self.x = nn.Conv2d(4, 16, 1)
        self.p = nn.Conv2d(16, 16, 1, bias=False)
        self.b3 = nn.BatchNorm2d(16)
        self.h = nn.Linear(16, 10)

    def forward(self, x):
        x = F.silu(self.b(self.c(x)))
        y = F.silu(self.b2(self.dw(x)))
        g = torch.sigmoid(self.x(F.silu(self.r(F.adaptive_avg_pool2d(y, 1)))))
        return self.h(F.hardswish(self.b3(self.p(y * g)) + x).mean((2, 3)))


class ConvNeXtTiny(nn.Module):
    def __init__(self):
        super().__init__()
        d = 24
        self.stem = nn.Conv2d(3, d, 4, 4)
        self.dw = nn.Conv2d(d, d, 7, padding=3, groups=d)
        self.ln = nn.LayerNorm(d, eps=1e-6)
        self.f1 = nn.Linear(d, 4 * d)
        self.f2 = nn.Linear(4 * d, d)
        self.g = nn.Parameter(torch.ones(d) * 0.5)
        self.h = nn.Linear(d, 10)

    def forward(self, x):
        x = self.stem(x)
        y = self.f2(F.gelu(self.f1(self.ln(self.dw(x).permute(0, 2, 3, 1))))) * self.g
        return self.h((x + y.permute(0, 3, 1, 2)).mean((2, 3)))
