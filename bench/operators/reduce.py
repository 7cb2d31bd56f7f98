"""Reductions, arg-extremes, softmax and scans."""
from case import CUBE, IMAGE, ROWS, case, given, x

PLAIN = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp"
TYPES = {"ReduceSum": "f32 f16 f64 i64 i32", "ReduceMean": "f32 f16 f64 i32", "ReduceMax": "f32 f16 f64 i64 i32 u8 i8",
         "ReduceMin": "f32 f16 f64 i64 i32 u8 i8", "ReduceProd": "f32 i64 i32", "ReduceL1": "f32 i32", "ReduceL2": "f32 i32",
         "ReduceSumSquare": "f32 f64 i32"}


def span(kind, axes):
    low, high = {"ReduceProd": (0.95, 1.05), "ReduceLogSum": (0.1, 2)}.get(kind, (None, None))

    def inputs(*d):
        whole = kind == "ReduceProd"
        return [x(*d, low=low, high=high), given(axes) if axes else None]
    return inputs


for kind in PLAIN.split():
    types = TYPES.get(kind, "f32")
    # integers of a product: ones, whatever the range's ends
    case(kind, span(kind, [-1]), types, CUBE, variant="last")
    case(kind, span(kind, [1]), types, CUBE, variant="middle", keepdims=0)
    few = "f32 i64" if "i64" in types else "f32"
    case(kind, span(kind, [0]), few, ROWS, variant="first")
    case(kind, span(kind, [2, 3]), few, IMAGE, variant="image")
    case(kind, span(kind, [0, 2, 3]), "f32", IMAGE, variant="but channels")
    case(kind, span(kind, []), few, CUBE, variant="all", keepdims=0)

for kind in ("ArgMax", "ArgMin"):
    for axis, name in ((-1, "last"), (1, "middle"), (0, "first")):
        case(kind, lambda *d: [x(*d)], "f32 f64 i32 i64 u8 i8" if axis == -1 else "f32", variant=name, axis=axis, keepdims=0)
    case(kind, lambda *d: [x(*d)], variant="last index", axis=-1, select_last_index=1)

for kind in ("Softmax", "LogSoftmax"):
    case(kind, lambda *d: [x(*d, low=-4, high=4)], "f32 f16 f64", variant="last", axis=-1)
    case(kind, lambda *d: [x(*d, low=-4, high=4)], "f32", variant="middle", axis=1)
    case(kind, lambda *d: [x(*d, low=-4, high=4)], "f32", IMAGE, variant="channels", axis=1)
    case(kind, lambda a, b: [x(a, b, low=-4, high=4)], "f32", [(10, 10007), (64, 65003)], variant="long", axis=-1)
    case(kind, lambda a, b: [x(a, b, low=-4, high=4)], "f32", [(10007, 10), (400003, 10)], variant="short", axis=-1)
case("Softmax", lambda *d: [x(*d)], "f32", CUBE, variant="before 13", axis=1, opset=11)
case("Hardmax", lambda *d: [x(*d)], "f32", CUBE, variant="last", axis=-1)
case("Hardmax", lambda *d: [x(*d)], "f32", CUBE, variant="middle", axis=1)

for axis, name in ((0, "first"), (1, "middle"), (2, "last")):
    case("CumSum", lambda *d, axis=axis: [x(*d), given(axis)], "f32 f64 i64 i32" if axis == 2 else "f32 i64", CUBE, variant=name)
case("CumSum", lambda *d: [x(*d), given(2)], "f32", CUBE, variant="reverse, exclusive", reverse=1, exclusive=1)
case("CumSum", lambda a, b: [x(a, b), given(1)], "i64", [(8, 512), (64, 4096)], variant="mask")
