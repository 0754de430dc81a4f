"""Convolutions, pools, regions, and ops that move elements."""
import numpy as np
import torch
import torch.nn.functional as F

from norms import gradients, leaf
from vectors import ChannelsLast, Constant, case, distinct, f32, ints, uniform


def convolution(name, x_shape, w_shape, stride=1, padding=0, dilation=1, groups=1):
    rank = len(x_shape) - 2
    x, w = uniform(name + "x", x_shape), uniform(name + "w", w_shape)
    leaves = [leaf(x), leaf(w), leaf(np.zeros(w_shape[0]))]
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]
    y = function(*leaves, stride, padding, dilation, groups)
    dy, addend = uniform(name + "dy", tuple(y.shape)), uniform(name + "addend", x_shape)
    dx, dw, db = gradients(y, leaves, dy)
    attributes = {"strides": [stride] * rank, "pads": [padding] * 2 * rank,
                  "dilations": [dilation] * rank, "group": groups}
    case("ConvInputGrad", name, [dy, w], [dx], {**attributes, "shape": list(x_shape)})
    if rank == 2 and groups == 1:
        case("ConvInputGrad", name + "_addend", [dy, w, addend], [dx + addend],
             {**attributes, "shape": list(x_shape)})
    case("ConvWeightGrad", name, [x, dy], [dw, db], {**attributes, "shape": list(w_shape)})


def clamped_convolution(name, x_shape, w_shape, lower=None, upper=None, padding=0, groups=1):
    x, w, b = (uniform(name + key, shape)
               for key, shape in (("x", x_shape), ("w", w_shape), ("b", w_shape[:1])))
    x.flat[1] = np.nan  # stays
    y = F.conv2d(*(torch.tensor(array) for array in (x, w, b)), 1, padding, 1, groups)
    bounds = {key: bound for key, bound in (("lower", lower), ("upper", upper)) if bound is not None}
    case("ConvClamp", name, [x, w, b], [y.clamp(lower, upper).numpy()],
         {"pads": [padding] * 4, "group": groups, **bounds})
    case("ConvClamp", name + "_known", [x, Constant(w), b], [y.clamp(lower, upper).numpy()],
         {"pads": [padding] * 4, "group": groups, **bounds})


def convolutions():
    clamped_convolution("relu", (2, 3, 5, 4), (4, 3, 3, 3), 0.0, padding=1)
    clamped_convolution("relu6", (1, 16, 4, 4), (16, 1, 3, 3), 0.0, 0.5, padding=1, groups=16)
    clamped_convolution("least", (1, 5, 3, 4), (7, 5, 1, 1), upper=0.25)
    convolution("square", (1, 3, 5, 4), (4, 3, 3, 3), padding=1)
    convolution("strided", (1, 4, 7, 6), (4, 2, 3, 2), stride=2, padding=1, groups=2)
    convolution("depthwise", (1, 3, 6, 6), (3, 1, 3, 3), padding=1, groups=3)
    convolution("line", (2, 2, 9), (3, 2, 3), dilation=2)
    convolution("volume", (1, 2, 3, 4, 3), (2, 2, 2, 2, 2))
    x = uniform("im2col", (2, 3, 4, 5))
    columns = F.unfold(torch.tensor(x), (2, 3), padding=1, stride=(2, 1)).numpy()
    case("Im2Col", "padded", [x], [columns],
         {"block_shape": [2, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]})


def place_in_window(indices, x_shape, kernel, stride, padding):
    """torch's places in the image, as ranks among the elements of the window within the image."""
    height, width = x_shape[2:]
    places = np.zeros(indices.shape, np.uint8)
    for n, c, i, j in np.ndindex(*indices.shape):
        top, left = i * stride - padding, j * stride - padding
        rows = [r for r in range(top, top + kernel) if 0 <= r < height]
        columns = [s for s in range(left, left + kernel) if 0 <= s < width]
        row, column = divmod(int(indices[n, c, i, j]), width)
        places[n, c, i, j] = rows.index(row) * len(columns) + columns.index(column)
    return places


def pools():
    for name, shape, kernel, stride, padding in (("apart", (1, 3, 4, 6), 2, 2, 0),
                                                 ("overlapping", (2, 2, 5, 4), 3, 2, 1)):
        x = distinct(name + "pool", shape)
        at = leaf(x)
        y, indices = F.max_pool2d(at, kernel, stride, padding, return_indices=True)
        dy = uniform(name + "pooldy", tuple(y.shape))
        (dx,) = gradients(y, [at], dy)
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2,
                      "pads": [padding] * 4}
        places = place_in_window(indices.numpy(), shape, kernel, stride, padding)
        with_shape = {**attributes, "shape": list(shape)}
        case("MaxPoolGrad", name, [x, dy], [dx], attributes)
        case("MaxPoolWithArgmax", name, [x], [y.detach().numpy(), places], attributes)
        case("MaxPoolGradWithArgmax", name, [dy, places], [dx], with_shape)
        for includes in (0, 1):
            y = F.avg_pool2d(at, kernel, stride, padding, count_include_pad=bool(includes))
            case("AveragePoolGrad", f"{name}_include_{includes}", [dy], gradients(y, [at], dy),
                 {**with_shape, "count_include_pad": includes})
    ties = f32([[[[1, 1, 0, 2], [1, 0, 2, 2]]]])
    case("MaxPoolGrad", "ties", [ties, f32([[[[3, 5]]]])],
         [f32([[[[3, 0, 0, 5], [0, 0, 0, 0]]]])],  # to the first
         {"kernel_shape": [2, 2], "strides": [2, 2]})


def bilinear(image, y, x):
    """image [C,H,W] at a point, as RoiAlign reads it."""
    height, width = image.shape[1:]
    if y < -1 or y > height or x < -1 or x > width:
        return image.sum((1, 2)) * 0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    v, u = y - top, x - left
    return ((1 - v) * ((1 - u) * image[:, top, left] + u * image[:, top, right])
            + v * ((1 - u) * image[:, bottom, left] + u * image[:, bottom, right]))


def regions():
    x = leaf(uniform("regions", (2, 2, 6, 7)))
    rois = f32([[0.3, 1.1, 5.2, 4.4], [-1, -0.5, 3.3, 4.9]])
    images, size, samples = ints(1, 0), (2, 3), 2
    results = []
    for roi, image in zip(rois, images):
        left, top, right, bottom = roi - 0.5
        bin_height, bin_width = (bottom - top) / size[0], (right - left) / size[1]
        for i in range(size[0]):
            for j in range(size[1]):
                points = [bilinear(x[int(image)], top + (i + (a + 0.5) / samples) * bin_height,
                                   left + (j + (b + 0.5) / samples) * bin_width)
                          for a in range(samples) for b in range(samples)]
                results.append(sum(points) / len(points))
    y = torch.stack(results).reshape(2, *size, 2).permute(0, 3, 1, 2)
    dy = uniform("regionsdy", tuple(y.shape))
    case("RoiAlignGrad", "half_pixel", [x.detach().numpy(), Constant(rois), images, dy],
         gradients(y, [x], dy),
         {"output_height": 2, "output_width": 3, "sampling_ratio": 2,
          "coordinate_transformation_mode": "half_pixel"})
    # MaxRoiPool: corners that are whole numbers; bins of 2 rows and 2 columns.
    x = leaf(distinct("maxroi", (2, 2, 6, 7)))
    rois = f32([[1, 1, 0, 4, 3], [0, 2, 2, 5, 5]])
    y = torch.stack([F.adaptive_max_pool2d(x[int(b), :, int(t):int(d) + 1, int(l):int(r) + 1], 2)
                     for b, l, t, r, d in rois])
    dy = uniform("maxroidy", tuple(y.shape))
    case("MaxRoiPoolGrad", "whole_corners", [x.detach().numpy(), Constant(rois), dy],
         gradients(y, [x], dy), {"pooled_shape": [2, 2]})


def samplers():
    x, grid = leaf(uniform("grid_x", (2, 2, 5, 4))), leaf(uniform("grid", (2, 3, 2, 2), -1.2, 1.2))
    for mode in ("bilinear", "bicubic"):
        for padding in ("zeros", "border"):
            for align in (0, 1):
                y = F.grid_sample(x, grid, mode, padding, bool(align))
                dy = uniform("griddy", tuple(y.shape))
                case("GridSampleGrad", f"{mode}_{padding}_{align}",
                     [x.detach().numpy(), grid.detach().numpy(), dy], gradients(y, [x, grid], dy),
                     {"mode": {"bilinear": "linear", "bicubic": "cubic"}[mode],
                      "padding_mode": padding, "align_corners": align})
    # Positions in pixels: as numbers of a grid they are exact enough in f64.
    places = leaf(uniform("places", (2, 3, 2, 2), -1.5, 5.5))
    numbers = (2 * places + 1) / torch.tensor([4.0, 5.0], dtype=places.dtype) - 1
    y = F.grid_sample(x, numbers, "bilinear", "zeros", False)
    dy = uniform("placesdy", tuple(y.shape))
    inputs = [x.detach().numpy(), places.detach().numpy()]
    case("PixelSample", "inside_and_outside", inputs, [y.detach().numpy()])
    case("GridSampleGrad", "in_pixels", [*inputs, dy], gradients(y, [x, places], dy), {"in_pixels": 1})
    image = leaf(uniform("resize", (1, 2, 4, 5)))
    sizes = Constant(ints(1, 2, 7, 3))
    for name, settings, attributes in (
            ("linear", {"mode": "bilinear", "align_corners": False}, {"mode": "linear"}),
            ("align_corners", {"mode": "bilinear", "align_corners": True},
             {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
            ("cubic", {"mode": "bicubic", "align_corners": False}, {"mode": "cubic"}),
            ("nearest", {"mode": "nearest"},
             {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
              "nearest_mode": "floor"})):
        y = F.interpolate(image, (7, 3), **settings)
        dy = uniform("resizedy", tuple(y.shape))
        case("ResizeGrad", name, [dy, None, None, sizes], gradients(y, [image], dy),
             {**attributes, "shape": [1, 2, 4, 5]})


def moves():
    x = uniform("relayout", (2, 3, 2, 4))
    case("Relayout", "to_channels_last", [x], [ChannelsLast(x)])
    case("Relayout", "from_channels_last", [ChannelsLast(x)], [x])
    table, rows = leaf(uniform("gather", (2, 5, 3))), np.array([[3, 0], [3, 3]], np.int64)
    y = table[:, torch.tensor(rows)]
    dy = uniform("gatherdy", tuple(y.shape))
    case("GatherGrad", "repeated", [dy, rows], gradients(y, [table], dy), {"axis": 1, "size": 5})
    tuples = np.array([[0, 4], [1, 2], [0, 4]], np.int64)
    y = table[torch.tensor(tuples[:, 0]), torch.tensor(tuples[:, 1])]
    dy = uniform("gathernddy", tuple(y.shape))
    case("GatherNDGrad", "repeated", [dy, tuples], gradients(y, [table], dy),
         {"shape": [2, 5, 3]})
    x = leaf(uniform("slice", (4, 7)))
    y = x[1:4:2, 1:6]
    dy = uniform("slicedy", tuple(y.shape))
    case("SliceGrad", "steps", [dy], gradients(y, [x], dy),
         {"shape": [4, 7], "starts": [1, 1], "steps": [2, 1]})
    backwards = np.zeros((4, 7))
    backwards[3:0:-2, 6::-3] = dy[:, :3]
    case("SliceGrad", "backwards", [dy[:, :3]], [backwards],
         {"shape": [4, 7], "starts": [3, 6], "steps": [-2, -3]})
    image = leaf(uniform("pad", (1, 2, 4, 5)))
    for mode, torch_mode in (("reflect", "reflect"), ("edge", "replicate"), ("wrap", "circular")):
        y = F.pad(image, (2, 1, 1, 3), torch_mode)
        dy = uniform("paddy" + mode, tuple(y.shape))
        case("PadGrad", mode, [dy], gradients(y, [image], dy),
             {"mode": mode, "shape": [1, 2, 4, 5], "before": [0, 0, 1, 2], "after": [0, 0, 3, 1]})


def add():
    convolutions()
    pools()
    regions()
    samplers()
    moves()
