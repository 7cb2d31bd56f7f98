"""Pooling, resizing, sampling and boxes."""
from case import case, contrib, cycle, given, graph_case, index, x

IMAGE = [(1, 24, 65, 63), (2, 64, 177, 179)]
for kind in ("MaxPool", "AveragePool", "LpPool"):
    few = "f32 f16 f64 u8 i8" if kind == "MaxPool" else "f32 f16" if kind == "AveragePool" else "f32"
    case(kind, lambda *d: [x(*d)], few, IMAGE, variant="2x2", kernel_shape=[2, 2], strides=[2, 2])
    case(kind, lambda *d: [x(*d)], "f32", IMAGE, variant="3x3 stride 2", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    case(kind, lambda *d: [x(*d)], "f32", IMAGE, variant="3x3", kernel_shape=[3, 3], pads=[1] * 4)
    case(kind, lambda *d: [x(*d)], "f32", IMAGE, variant="5x5", kernel_shape=[5, 5], pads=[2] * 4)
    case(kind, lambda *d: [x(*d)], "f32", [(1, 64, 1501), (4, 256, 4001)], variant="1d", kernel_shape=[3], strides=[2])
    case(kind, lambda *d: [x(*d)], "f32", [(1, 8, 16, 29, 27), (1, 32, 33, 63, 61)], variant="3d", kernel_shape=[2, 2, 2], strides=[2, 2, 2])
case("MaxPool", lambda *d: [x(*d)], "f32", IMAGE, variant="indices", outs=2, kernel_shape=[2, 2], strides=[2, 2])
case("MaxPool", lambda *d: [x(*d)], "f32", [(1, 64, 20, 20), (8, 256, 40, 40)], variant="13x13", kernel_shape=[13, 13], pads=[6] * 4)
case("MaxPool", lambda *d: [x(*d)], "f32", IMAGE, variant="dilated", kernel_shape=[3, 3], dilations=[2, 2])
case("AveragePool", lambda *d: [x(*d)], "f32", IMAGE, variant="pads counted", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1, ceil_mode=1, strides=[2, 2])
for kind in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
    case(kind, lambda *d: [x(*d)], "f32 f16" if kind == "GlobalAveragePool" else "f32", IMAGE)
case("MaxUnpool", lambda n, c, h, w: [x(n, c, h, w), index(n, c, h, w, below=4 * h * w)], "f32", [(1, 24, 32, 32), (2, 64, 90, 90)],
     kernel_shape=[2, 2], strides=[2, 2], tolerance=-1)  # which of several values a place keeps is open

SMALL = [(1, 24, 33, 31), (2, 32, 127, 129)]
WAYS = {"half_pixel": "half", "align_corners": "corners", "asymmetric": "asymmetric", "pytorch_half_pixel": "pytorch"}
for mode in ("nearest", "linear", "cubic"):
    for way, name in WAYS.items():
        case("Resize", lambda *d: [x(*d), None, given([1, 1, 2, 2], "f32")], "f32", SMALL, variant=f"{mode} 2, {name}", mode=mode,
             coordinate_transformation_mode=way)
    case("Resize", lambda n, c, h, w: [x(n, c, h, w), None, None, given([n, c, h * 3 // 2 + 1, w * 5 // 4])], "f32 u8" if mode != "cubic" else "f32", SMALL,
         variant=f"{mode} 1.5", mode=mode, coordinate_transformation_mode="half_pixel")
    case("Resize", lambda n, c, h, w: [x(n, c, h, w), None, None, given([n, c, h * 2 // 5, w // 3])], "f32", IMAGE, variant=f"{mode} down",
         mode=mode, coordinate_transformation_mode="half_pixel")
    case("Resize", lambda n, h, w, c: [x(n, h, w, c), None, given([1, 2, 2, 1], "f32")], "f32", [(1, 33, 31, 24), (2, 127, 129, 32)],
         variant=f"{mode} NHWC", mode=mode)
case("Resize", lambda *d: [x(*d), None, given([1, 1, 2, 2], "f32")], "f16 u8 i8", SMALL, variant="nearest floor", mode="nearest",
     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
case("Resize", lambda n, c, h, w: [x(n, c, h, w), None, None, given([n, c, h * 2 // 5, w // 3])], "f32", IMAGE, variant="linear down, antialias",
     mode="linear", antialias=1)
case("Resize", lambda *d: [x(*d), None, given([1, 1, 2, 2, 2], "f32")], "f32", [(1, 8, 15, 16, 17), (1, 16, 31, 32, 33)], variant="linear 3d", mode="linear")
case("Resize", lambda *d: [x(*d), None, given([1, 1, 2], "f32")], "f32", [(1, 64, 701), (4, 128, 4001)], variant="linear 1d", mode="linear")
case("Upsample", lambda *d: [x(*d), given([1, 1, 2, 2], "f32")], "f32", SMALL, variant="nearest", opset=9, mode="nearest")
case("Upsample", lambda *d: [x(*d), given([1, 1, 2, 2], "f32")], "f32", SMALL, variant="linear", opset=9, mode="linear")
for mode in ("linear", "nearest", "cubic"):
    case("GridSample", lambda n, c, h, w: [x(n, c, h, w), x(n, h, w, 2, low=-1.1, high=1.1)], "f32 f64" if mode == "linear" else "f32", SMALL,
         variant=mode, mode=mode)
for pad in ("border", "reflection"):
    case("GridSample", lambda n, c, h, w: [x(n, c, h, w), x(n, h, w, 2, low=-1.3, high=1.3)], "f32", SMALL, variant="linear " + pad, padding_mode=pad,
         align_corners=1)
case("GridSample", lambda n, c, d, h, w: [x(n, c, d, h, w), x(n, d, h, w, 3, low=-1.1, high=1.1)], "f32", [(1, 8, 15, 16, 17), (1, 32, 31, 32, 33)],
     variant="linear 3d")
case("GridSample", lambda n, c, q, h, w: [x(n, c, h, w), x(n, q, 4, 2, low=-1, high=1)], "f32", [(8, 32, 100, 25, 25), (8, 32, 900, 100, 100)],
     variant="deformable attention", opset=16, mode="bilinear")
case("AffineGrid", lambda n, c, h, w: [x(n, 2, 3), given([n, c, h, w])], "f32", [(1, 3, 224, 224), (8, 3, 512, 512)])
for mode in ("avg", "max"):
    case("RoiAlign", lambda n, c, s, r: [x(n, c, s, s), cycle((r, 4), [v for i in range(13) for v in (i, 2 * i, 3 * s // 5 + i, s // 2 + 2 * i)], "f32"),
                                         index(r, below=n)], "f32", [(1, 32, 50, 20), (1, 256, 50, 1000)], variant=mode, mode=mode, output_height=7,
         output_width=7, sampling_ratio=2, spatial_scale=1.0)
case("MaxRoiPool", lambda n, c, s, r: [x(n, c, s, s), cycle((r, 5), [v for i in range(13) for v in (0, i, 2 * i, s // 2 + i, s // 2 + 2 * i)], "f32")],
     "f32", [(1, 32, 50, 20), (1, 256, 50, 300)], pooled_shape=[7, 7])


def boxes(m, batch, classes, n):
    """Corners of boxes of some size anywhere in an image of 640 pixels."""
    low = m.op("Mul", x(batch, n, 2, low=0, high=600), given(1, "f32"))
    both = m.op("Concat", low, m.op("Add", low, x(batch, n, 2, low=5, high=40)), axis=2)
    return m.op("NonMaxSuppression", both, x(batch, classes, n, low=0, high=1), given([100]), given([0.45], "f32"), given([0.25], "f32"))


graph_case("NonMaxSuppression", boxes, sizes=[(1, 1, 1000), (1, 80, 8400)])
case("Col2Im", lambda n, c, s: [x(n, c * 9, s * s), given([s + 2, s + 2]), given([3, 3])], "f32", [(1, 8, 36), (2, 32, 80)])
contrib("GridSample", lambda n, c, h, w: [x(n, c, h, w), x(n, h, w, 2)], sizes=SMALL)
case("CenterCropPad", lambda a, b, c: [x(a, b, c), given([b - 5, c - 9])], "f32", axes=[1, 2])
