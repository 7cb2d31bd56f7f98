"""Operators that move, choose and order elements."""
import numpy as np

from case import CUBE, IMAGE, ROWS, case, cycle, given, graph_case, index, weight, x
from onnx import TensorProto

MOVED = "f32 f16 i64 u8"
MORE = "f32 f16 f64 i64 i32 u8 bool"

# -- layouts
for perm in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1), (1, 2, 0)):
    case("Transpose", lambda *d: [x(*d)], MOVED if perm == (0, 2, 1) else "f32 i64", variant="".join(map(str, perm)), perm=perm)
case("Transpose", lambda *d: [x(*d)], "f32 u8", IMAGE, variant="to NHWC", perm=(0, 2, 3, 1))
case("Transpose", lambda *d: [x(*d)], "f32 u8", IMAGE, variant="to NCHW", perm=(0, 3, 1, 2))
case("Transpose", lambda *d: [x(*d)], "f32 f16", [(2, 64, 12, 64), (8, 512, 12, 64)], variant="heads", perm=(0, 2, 1, 3))
case("Transpose", lambda *d: [x(*d)], "f32", [(1, 7, 8, 7, 8, 32), (2, 7, 16, 7, 16, 96)], variant="windows", perm=(0, 1, 3, 2, 4, 5))
for kind in ("DepthToSpace", "SpaceToDepth"):
    sizes = [(1, 36, 52, 54), (2, 64, 176, 180)]
    case(kind, lambda *d: [x(*d)], "f32 u8", sizes, blocksize=2)
case("DepthToSpace", lambda *d: [x(*d)], "f32", [(1, 36, 52, 54), (2, 64, 176, 180)], variant="CRD", blocksize=2, mode="CRD")
for axis in (0, 1, 2):
    case("Concat", lambda a, b, c: [x(a, b, c), x(a, b, c)], MOVED if axis == 2 else "f32 i64", variant=f"axis {axis}", axis=axis)
case("Concat", lambda a, b: [x(a, 3), x(a, b), x(a, 1), x(a, 2)], "f32", ROWS, variant="slim", axis=1)
case("Concat", lambda n, c, h, w: [x(n, c, h, w), x(n, 2 * c, h, w), x(n, 1, h, w)], "f32", IMAGE, variant="channels", axis=1)
for axis in (0, 1, 2):
    parts = lambda *d, axis=axis: [x(*[3 * n if i == axis else n for i, n in enumerate(d)]), given([d[axis]] * 3)]
    case("Split", parts, MOVED if axis == 2 else "f32 i64", [(3, 67, 165), (5, 201, 1283)], variant=f"axis {axis}", outs=3, axis=axis)
case("Slice", lambda a, b, c: [x(a, b, c), given([1]), given([c - 2]), given([2])], MOVED, variant="last")
case("Slice", lambda a, b, c: [x(a, b, c), given([3]), given([b - 3]), given([1])], "f32 i64", variant="middle")
case("Slice", lambda a, b, c: [x(a, b, c), given([0, 1]), given([b, c]), given([1, 2]), given([2, 3])], "f32 i64", variant="steps")
case("Slice", lambda a, b, c: [x(a, b, c), given([-1]), given([-(2 ** 62)]), given([2]), given([-1])], "f32 u8", variant="reversed")
case("Slice", lambda a, b, c: [x(a, b, c), cycle((1,), [3]), cycle((1,), [b - 3]), cycle((1,), [1])], "f32", variant="at run time")
for mode in ("constant", "reflect", "edge", "wrap"):
    pads = lambda n, c, h, w: [x(n, c, h, w), given([0, 0, 1, 2, 0, 0, 3, 1])]
    case("Pad", pads, "f32 f16 u8 i64" if mode == "constant" else "f32", IMAGE, variant=mode, mode=mode)
case("Pad", lambda a, b, c: [x(a, b, c), given([0, 0, 3, 0, 0, 5])], "f32", variant="last")
case("Pad", lambda a, b, c: [x(a, b, c), given([0, 2, 0, 0, 1, 0])], "f32", variant="middle")
case("Pad", lambda a, b, c: [x(a, b, c), given([0, -2, 0, 0, -1, 0])], "f32", variant="cropped")
case("Tile", lambda a, b, c: [x(a, b, c), given([1, 3, 1])], "f32 i64 u8", [(3, 67, 165), (5, 201, 1283)], variant="middle")
case("Tile", lambda a, b, c: [x(a, b, c), given([1, 1, 3])], "f32", [(3, 167, 67), (5, 641, 429)], variant="last")
case("Tile", lambda a, b, c: [x(a, b, c), given([4, 1, 1])], "f32", [(1, 167, 149), (1, 641, 1603)], variant="first")
case("Expand", lambda a, b, c: [x(a, 1, c), given([a, b, c])], MORE, variant="middle")
case("Expand", lambda a, b, c: [x(a, b, 1), given([a, b, c])], "f32 i64", variant="last")
case("Expand", lambda a, b, c: [x(c), given([a, b, c])], "f32", variant="row")
case("Reshape", lambda a, b, c: [x(a, b, c), given([a * b, c])], "f32 i64")
case("Reshape", lambda a, b, c: [x(a, b, c), cycle((2,), [-1, c])], "f32", variant="at run time")
case("Flatten", lambda *d: [x(*d)], "f32", axis=1)
case("Squeeze", lambda a, b, c: [x(a, 1, b, c), given([1])], "f32")
case("Unsqueeze", lambda *d: [x(*d), given([1])], "f32")
case("Trilu", lambda *d: [x(*d)], "f32 f64 i64 bool", upper=0)
case("Trilu", lambda *d: [x(*d), given(1)], "f32", variant="upper", upper=1)
case("ReverseSequence", lambda a, b, c: [x(b, a, c), cycle((a,), [b, b // 2, 3])], "f32", variant="time first")
case("ReverseSequence", lambda a, b, c: [x(a, b, c), cycle((a,), [b, b // 2, 3])], "f32 i64", variant="batch first", batch_axis=0, time_axis=1)

# -- by indices
TABLE = [(1000, 64), (30522, 768)]
case("Gather", lambda n, d: [x(n, d), index(2, 37, below=n)], "f32 f16 i64", TABLE, variant="table")
case("Gather", lambda n, d: [x(n, d), index(8, 509, below=n)], "f32 u8", TABLE, variant="long table")
case("Gather", lambda n, d: [x(n, d), index(8, 509, below=n, type="i32")], "f32", TABLE, variant="table by i32")
case("Gather", lambda a, b, c: [x(a, b, c), index(97, below=c)], "f32 i64 u8", variant="last", axis=2)
case("Gather", lambda a, b, c: [x(a, b, c), index(97, below=b)], "f32 i64", variant="middle", axis=1)
case("Gather", lambda a, b, c: [x(a, b, c), given(3)], "f32 i64", variant="one of last", axis=2)
case("Gather", lambda n: [x(n), index(n, below=n)], "f32 i64 i32 f64 bool", [(99991,), (3999971,)], variant="scalars")
for axis, name in ((2, "last"), (1, "middle"), (0, "first")):
    take = lambda *d, axis=axis: [x(*d), index(*d, below=d[axis], low=-d[axis])]
    case("GatherElements", take, "f32 f16 i64 u8" if axis == 2 else "f32 i64", variant=name, axis=axis)
    case("ScatterElements", lambda *d, axis=axis: [x(*d), index(*d, below=d[axis]), x(*d)], "f32 i64" if axis == 2 else "f32", variant=name + " add", axis=axis,
         reduction="add", tolerance=1e-3, opset=18)
# without a reduction each place is written once
    case("ScatterElements", lambda *d, axis=axis: [x(*d), given(np.broadcast_to(np.random.default_rng(1).permutation(d[axis]).reshape(
        [-1 if i == axis else 1 for i in range(3)]), d)), x(*d)], "f32 f16 i64 u8" if axis == 2 else "f32", variant=name, axis=axis)
for reduction in ("max", "min", "mul"):
    case("ScatterElements", lambda *d: [x(*d), index(*d, below=d[2]), x(*d)], "f32", variant="last " + reduction, axis=2, reduction=reduction, opset=18)
case("GatherND", lambda a, b, c: [x(a, b, c), cycle((b, 2), [v for i in range(97) for v in (i * 7 % a, i * 31 % b)])], "f32 i64", variant="rows")
case("GatherND", lambda a, b, c: [x(a, b, c), cycle((b * c, 3), [v for i in range(997) for v in (i * 7 % a, i * 31 % b, i * 57 % c)])],
     "f32 i64 u8", variant="scalars")
case("GatherND", lambda a, b, c: [x(a, b, c), index(a, 97, 1, below=b)], "f32", variant="batched", batch_dims=1)
case("ScatterND", lambda a, b, c: [x(a, b, c), given([[i % a, i // a] for i in np.random.default_rng(1).permutation(a * b)[:b]]), x(b, c)],
     "f32 f16 i64 u8", variant="rows")
case("ScatterND", lambda a, b: [x(a, b), given([[i // b, i % b] for i in np.random.default_rng(1).permutation(a * b)[:a * b // 4]]), x(a * b // 4)],
     "f32 i64", ROWS, variant="scalars")
case("ScatterND", lambda a, b: [x(a, b), cycle((a * b // 4, 2), [v for i in range(997) for v in (i * 7 % a, i * 31 % b)]), x(a * b // 4)],
     "f32 i64", ROWS, variant="add", reduction="add", tolerance=-1)  # ONNX Runtime's threads lose updates of a place
case("ScatterND", lambda a, b, c: [x(a, 8, b, 64), given([[i, j, k] for i in range(a) for j in range(8) for k in range(b // 2)]), x(a * 8 * (b // 2), 64)],
     "f32", [(1, 200, 0), (4, 2000, 0)], variant="cache")
case("OneHot", lambda n, d: [index(n, below=d), given(d), given([0, 1], "f32")], "f32", ROWS, variant="last")
case("OneHot", lambda n, d: [index(n, below=d), given(d), given([0, 1], "i64")], "i64", ROWS, variant="first", axis=0)
case("EyeLike", lambda *d: [x(*d)], "f32 i64", ROWS)
case("ConstantOfShape", lambda a, b, c: [cycle((3,), [a, b, c])], "f32")
case("Range", lambda n: [cycle((), [0]), cycle((), [n]), cycle((), [1])], "i64", [(99991,), (3999971,)])
case("Range", lambda n: [cycle((), [0], "f32"), cycle((), [n], "f32"), cycle((), [0.5], "f32")], "f32", [(49999,), (1999985,)])
case("Shape", lambda *d: [x(*d)], "f32")
case("Size", lambda *d: [x(*d)], "f32")

# -- orders and choices
for k, name in ((5, "5"), (50, "50")):
    case("TopK", lambda a, b, k=k: [x(a, b), given([k])], "f32 f64 i64 i32" if k == 5 else "f32", ROWS, variant="last " + name, outs=2)
    case("TopK", lambda a, b, k=k: [x(a, b), given([k])], "f32", ROWS, variant="first " + name, outs=2, axis=0)
case("TopK", lambda a, b: [x(a, b), given([50])], "f32", [(1, 99991), (80, 50257)], variant="vocabulary", outs=2)
case("TopK", lambda a, b: [x(a, b), given([b])], "f32 i64", ROWS, variant="sorted", outs=2)
case("TopK", lambda a, b: [x(a, b), given([900])], "f32", [(1, 99991), (1, 3999971)], variant="boxes", outs=2)
case("TopK", lambda a, b: [x(a, b), given([5])], "f32", ROWS, variant="smallest, any order", outs=2, largest=0, sorted=1)
case("NonZero", lambda *d: [x(*d, type="bool")], "bool", variant="half")
case("NonZero", lambda *d: [x(*d, low=-0.02, high=2)], "f32 i64 i32 u8", variant="most")
case("NonZero", lambda *d: [cycle(d, [1] + [0] * 96, "i64")], "i64", variant="few")
case("NonZero", lambda n: [cycle((n,), [1] + [0] * 3, "bool")], "bool", [(99991,), (3999971,)], variant="vector")
case("Compress", lambda a, b, c: [x(a, b, c), x(b, type="bool")], "f32 i64", variant="middle", axis=1)
case("Compress", lambda a, b, c: [x(a, b, c), x(c, type="bool")], "f32", variant="last", axis=2)
case("Compress", lambda n: [x(n), x(n, type="bool")], "f32 i64", [(99991,), (3999971,)], variant="flat")
case("Unique", lambda n: [x(n, low=0, high=1000)], "i64", [(99991,), (999983,)], variant="sorted", outs=4)
case("Unique", lambda n: [x(n)], "f32", [(99991,), (999983,)], variant="all but same", outs=1)
case("Unique", lambda n: [x(n, low=0, high=1000)], "i64", [(99991,), (999983,)], variant="first met", sorted=0)

# -- control and sequences
graph_case("SplitToSequence, ConcatFromSequence",
           lambda m, a, b, c: m.op("ConcatFromSequence", m.op("SplitToSequence", x(a, b, c), axis=0, keepdims=1), axis=1), "f32")
