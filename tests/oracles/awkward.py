"""Ordinary ops where formulas leave the beaten path: ties, infinities, NaN, large means, limits of
integers, nothing at all. What docs/numerics.md says otherwise than PyTorch is written by hand."""
import numpy as np
import torch
import torch.nn.functional as F

from vectors import Constant, case, f32, ints

INF, NAN = np.inf, np.nan
LOWEST = np.array([-2**31], np.int32)
POINTS = f32([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-30, 30.0, -30.0, 1000.0, -1000.0, INF, -INF, NAN])


def t(array):
    return torch.tensor(np.asarray(array))


def one_input():
    functions = {
        "Abs": torch.abs, "Ceil": torch.ceil, "Elu": F.elu, "Erf": torch.erf, "Exp": torch.exp,
        "Floor": torch.floor, "HardSwish": F.hardswish, "Log": torch.log, "Mish": F.mish,
        "Neg": torch.neg, "Reciprocal": torch.reciprocal, "Relu": F.relu, "Selu": F.selu,
        "Sigmoid": torch.sigmoid, "Softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
        "Softsign": F.softsign, "Sqrt": torch.sqrt, "Tanh": torch.tanh,
    }
    for op, function in functions.items():
        x = POINTS if op not in ("Softsign", "Mish", "HardSwish") else POINTS[np.isfinite(POINTS)]
        case(op, "points", [x], [function(t(x)).numpy()])
    halves = f32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, INF, -INF, NAN, 8388609.0])
    case("Round", "halves", [halves], [torch.round(t(halves)).numpy()])
    for op, function in (("IsNaN", np.isnan), ("IsInf", np.isinf)):
        case(op, "points", [POINTS], [function(POINTS)])


def two_inputs():
    a, b = (grid.ravel() for grid in np.meshgrid(POINTS, POINTS))
    finite = np.abs(np.where(np.isfinite(a) & np.isfinite(b), np.maximum(np.abs(a), np.abs(b)), 0)) < 100
    with np.errstate(all="ignore"):
        for op, function in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)):
            case(op, "points", [a, b], [function(a, b)])
        for op, function in (("Equal", np.equal), ("Less", np.less), ("Greater", np.greater),
                             ("LessOrEqual", np.less_equal), ("GreaterOrEqual", np.greater_equal)):
            case(op, "points", [a, b], [function(a, b)])
        for op, function in (("Max", torch.maximum), ("Min", torch.minimum)):
            case(op, "points", [a, b], [function(t(a), t(b)).numpy()])
        tame = finite & (np.abs(b) != 1e-30) & (np.abs(a) != 1e-30)
        case("Div", "points", [a[tame], b[tame]], [a[tame] / b[tame]])
        base, exponent = f32([0, 0, 0, -2, -2, -8, INF, -INF, 1, NAN, 2, 2, 0.5]), \
            f32([0, 1, -1, 2, 3, 1 / 3, 0, 3, INF, 0, INF, -INF, INF])
        case("Pow", "corners", [base, exponent], [torch.pow(t(base), t(exponent)).numpy()])


def integers():
    most, lowest = np.array([2**31 - 1, 5], np.int32), np.array([-2**31, 7], np.int32)
    one = np.array([1, 1], np.int32)
    with np.errstate(all="ignore"):
        case("Add", "wraps", [most, one], [most + one])
        case("Sub", "wraps", [lowest, one], [lowest - one])
        case("Mul", "wraps", [most, most], [most * most])
    case("Neg", "of_the_lowest", [lowest], [-lowest])
    case("Abs", "of_the_lowest", [lowest], [np.abs(lowest)])
    a = np.array([7, -7, 7, -7, 0, 5, -2**31], np.int32)
    b = np.array([2, 2, -2, -2, 3, 0, -1], np.int32)
    by_zero = np.where(b == 0, 1, b)
    quotient = np.where(b == 0, 0, np.trunc(a.astype(np.float64) / by_zero))
    case("Div", "truncates", [a[:6], b[:6]], [quotient[:6].astype(np.int32)])
    case("Mod", "has_the_sign_of_the_divisor", [a[:6], b[:6]],
         [np.where(b == 0, 0, np.mod(a, by_zero))[:6].astype(np.int32)])
    case("ReduceSum", "wraps", [most, Constant(ints(0))], [np.array([-2**31 + 4], np.int32)])
    case("Cast", "saturates", [f32([1e20, -1e20, INF, -INF, NAN, 2.9, -2.9, -0.5])],
         [np.array([2**31 - 1, -2**31, 2**31 - 1, -2**31, 0, 2, -2, 0], np.int32)], {"to": 6})
    case("Cast", "to_bool", [f32([0, -0.0, 1e-30, NAN, -INF])],
         [np.array([False, False, True, True, True])], {"to": 9})


def rows():
    rows = {
        "far_from_zero": f32([[1e4, 1e4 + 1, 1e4 - 2], [-1e4, -1e4 + 3, -1e4]]),
        "masked": f32([[-INF, 1, 2], [0, -INF, -INF]]),
        "nothing_left": f32([[-INF, -INF, -INF]]),
        "infinite": f32([[INF, 1, 2]]),
        "nan": f32([[NAN, 1, 2], [1, 2, 3]]),
        "ties": f32([[3, 3, 3], [-1, 5, 5]]),
    }
    for name, x in rows.items():
        case("Softmax", name, [x], [torch.softmax(t(x), 1).numpy()], {"axis": 1})
        case("LogSoftmax", name, [x], [torch.log_softmax(t(x), 1).numpy()], {"axis": 1})
        axes = Constant(ints(1))
        functions = {"ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceMax": torch.amax,
                     "ReduceMin": torch.amin, "ReduceProd": torch.prod,
                     "ReduceLogSumExp": torch.logsumexp}
        for op, function in functions.items():
            case(op, name, [x, axes], [function(t(x), 1).numpy()], {"keepdims": 0})
        if name not in ("infinite", "nan"):
            case("ArgMax", name, [x], [np.argmax(x, 1)], {"axis": 1, "keepdims": 0})
            case("ArgMin", name, [x], [np.argmin(x, 1)], {"axis": 1, "keepdims": 0})
    case("Hardmax", "ties", [rows["ties"]], [f32([[1, 0, 0], [0, 1, 0]])], {"axis": 1})
    case("TopK", "ties", [rows["ties"], Constant(ints(2))],
         [f32([[3, 3], [5, 5]]), np.array([[0, 1], [1, 2]])], {"axis": 1})
    case("CumSum", "infinite", [f32([1, INF, 2, -INF, 3]), Constant(np.array(0, np.int64))],
         [f32([1, INF, INF, NAN, NAN])])


def nothing():
    empty, axes = np.zeros((2, 0, 3)), Constant(ints(1))
    filled = {"ReduceSum": 0.0, "ReduceMean": NAN, "ReduceMax": -INF, "ReduceMin": INF,
              "ReduceProd": 1.0, "ReduceL1": 0.0, "ReduceL2": 0.0, "ReduceSumSquare": 0.0,
              "ReduceLogSum": -INF, "ReduceLogSumExp": -INF}
    for op, value in filled.items():
        case(op, "of_nothing", [empty, axes], [np.full((2, 3), value)], {"keepdims": 0})
    case("MatMul", "of_nothing", [np.zeros((2, 0)), np.zeros((0, 3))], [np.zeros((2, 3))])
    case("Gemm", "of_nothing", [np.zeros((2, 0)), np.zeros((0, 3)), f32([1, 2, 3])],
         [np.tile(f32([1, 2, 3]), (2, 1))])
    case("Softmax", "of_nothing", [np.zeros((2, 0))], [np.zeros((2, 0))], {"axis": 1})
    case("Concat", "with_nothing", [np.zeros((0, 2)), f32([[1, 2]])], [f32([[1, 2]])], {"axis": 0})


def products():
    a, b = f32([[INF, 0, 1], [NAN, 1, 2], [1, 2, 3]]), f32([[1, 0], [2, 1], [-1, 0.5]])
    case("MatMul", "infinite", [a, b], [(t(a) @ t(b)).numpy()])
    case("Gemm", "infinite", [a, b], [(t(a) @ t(b)).numpy()])


def norms():
    wiggle = f32((np.arange(48) * 29 % 48 - 23.5) / 16).reshape(2, 24)
    for name, mean in (("mean_1e3", 1e3), ("mean_1e7", 1e7)):
        # Only what f32 holds: at 1e7 the numbers are whole.
        x = f32(wiggle * 16 + mean) if mean > 1e4 else f32(wiggle + mean)
        loose = {"relative": 1e-4, "absolute": 1e-4} if mean < 1e4 else {"relative": 1e-5, "absolute": 1e-5}
        scale, bias = np.ones(24), np.zeros(24)
        case("LayerNormalization", name, [x, scale, bias],
             [F.layer_norm(t(x), (24,), eps=f32(1e-5).item()).numpy()], {"axis": -1, "epsilon": 1e-5}, **loose)
        image = x.reshape(2, 4, 6)
        case("InstanceNormalization", name, [image, np.ones(4), np.zeros(4)],
             [F.instance_norm(t(image), eps=f32(1e-5).item()).numpy()], {"epsilon": 1e-5}, **loose)
        case("GroupNormalization", name, [image, np.ones(4), np.zeros(4)],
             [F.group_norm(t(image), 2, eps=f32(1e-5).item()).numpy()],
             {"num_groups": 2, "epsilon": 1e-5}, **loose)
    flat = np.full((2, 8), 3.0)
    case("LayerNormalization", "constant_rows", [flat, np.ones(8), f32(np.arange(8))],
         [np.tile(f32(np.arange(8)), (2, 1))])


def choices():
    x = f32([NAN, -INF, INF, -2, 0, 2])
    low, high = f32(-1), f32(1)
    case("Clip", "points", [x, low, high], [torch.clamp(t(x), -1, 1).numpy()])
    case("Clip", "crossed", [x, high, low], [torch.clamp(t(x), 1, -1).numpy()])
    condition = np.array([True, False, True, False, True, False])
    case("Where", "points", [condition, x, x[::-1].copy()], [np.where(condition, x, x[::-1])])
    image = f32([[[[1, 1, NAN, 0], [1, -INF, 0, 0], [-INF, -INF, 5, 5], [-INF, -INF, 5, INF]]]])
    case("MaxPool", "points", [image], [F.max_pool2d(t(image), 2).numpy()],
         {"kernel_shape": [2, 2], "strides": [2, 2]})


def add():
    for part in (one_input, two_inputs, integers, rows, nothing, products, norms, choices):
        part()
