"""Operators that go element by element."""
from case import CUBE, FLOATS, IMAGE, NUMBERS, ROWS, case, contrib, cycle, given, weight, x


def unary(kinds, types=FLOATS, low=None, high=None, **rest):
    for kind in kinds.split():
        case(kind, lambda *d: [x(*d, low=low, high=high)], types, **rest)


def binary(kinds, types=NUMBERS, low=None, high=None, low2=None, **rest):
    """Equal extents; a row; the middle of one broadcast and channels of another; both broadcast; a scalar."""
    for kind in kinds.split():
        b = low if low2 is None else low2
        of = lambda *d: x(*d, low=b, high=high)
        case(kind, lambda *d: [x(*d, low=low, high=high), of(*d)], types, **rest)
        some = " ".join(t for t in types.split() if t in ("f32", "i64", "bool", "u8"))
        case(kind, lambda a, b, c: [x(a, b, c, low=low, high=high), of(a, 1, c)], some, variant="middle", **rest)
        case(kind, lambda a, b, c: [x(a, b, c, low=low, high=high), of(c)], some, variant="row", **rest)
        case(kind, lambda n, c, h, w: [of(c, 1, 1), x(n, c, h, w, low=low, high=high)], some, IMAGE, variant="channels", **rest)
        case(kind, lambda a, b: [x(a, 1, low=low, high=high), of(b)], some, ROWS, variant="outer", **rest)
        case(kind, lambda *d: [x(*d, low=low, high=high), of()], some, variant="scalar", **rest)


unary("Abs Neg Sign", NUMBERS)
unary("Abs", "i8 u8 i16")
unary("Relu", "f32 f16 f64 i32 i8")
unary("Ceil Floor Round Sin Cos Tan Sinh Cosh Tanh Asinh Atan Exp Erf Sigmoid Softplus Softsign Elu Selu Celu LeakyRelu "
      "ThresholdedRelu HardSigmoid HardSwish Mish Shrink", low=-3, high=3)
unary("Asin Acos", low=-1, high=1)
unary("Atanh", low=-0.9, high=0.9)
unary("Acosh", low=1, high=4)
unary("Log", low=0.1, high=4)
unary("Sqrt Reciprocal", low=0.1, high=4)
unary("IsNaN", "f32 f16 f64")
unary("IsInf", "f32 f64")
unary("Not", "bool")
unary("BitwiseNot", "i32 u8 i64", opset=18)
unary("Identity", "f32 i64")
unary("Gelu", "f32 f16", low=-3, high=3)
case("Gelu", lambda *d: [x(*d)], "f32", variant="tanh", approximate="tanh")
case("PRelu", lambda n, c, h, w: [x(n, c, h, w), weight(c, 1, 1)], FLOATS, IMAGE)
case("Clip", lambda *d: [x(*d), given(-0.5, "f32"), given(0.5, "f32")], "f32")
for t in ("f16", "f64", "i64", "i32", "u8", "i8"):
    case("Clip", lambda *d, t=t: [x(*d), given(0, t), given(50 if t[0] != "f" else 0.5, t)], t)

binary("Add Sub Mul")
binary("Div", "f32 f16 f64 i64 i32", low=-50, high=50, low2=1)
case("Pow", lambda *d: [x(*d, low=0.1, high=3), x(*d)], "f32 f64 f16")
for power in (2, 3, 0.5, -1, 1.7):
    case("Pow", lambda *d, p=power: [x(*d, low=0.1, high=3), given(p, "f32")], "f32", variant=f"by {power}")
case("Pow", lambda *d: [x(*d, low=-9, high=9), given(2, "i64")], "i64", variant="by 2")
case("Pow", lambda *d: [x(*d, low=-9, high=9), given(2, "i32")], "i32", variant="by 2")
case("Pow", lambda *d: [x(*d, low=-3, high=3), given(3, "i64")], "f32", variant="by integer 3")
case("Mod", lambda *d: [x(*d), x(*d, low=1, high=50)], "i64 i32 u8 i8")
case("Mod", lambda *d: [x(*d), given(7, "i64")], "i64", variant="by 7")
case("Mod", lambda *d: [x(*d), x(*d, low=1, high=50)], FLOATS, variant="fmod", fmod=1)
for kind in ("Min", "Max"):
    case(kind, lambda *d: [x(*d), x(*d)], "f32 f16 f64 i64 i32 u8 i8")
    case(kind, lambda a, b, c: [x(a, b, c), x(a, 1, c), x(c)], "f32 i64", variant="three, broadcast")
for kind in ("Sum", "Mean"):
    case(kind, lambda *d: [x(*d), x(*d)], FLOATS)
    case(kind, lambda *d: [x(*d) for _ in range(6)], "f32", variant="six")
    case(kind, lambda a, b, c: [x(a, b, c), x(a, 1, c), x(c)], "f32", variant="three, broadcast")
binary("And Or Xor", "bool")
binary("Equal", "f32 f16 f64 i64 i32 bool u8", low=0, high=4)
binary("Greater Less GreaterOrEqual LessOrEqual", "f32 f16 f64 i64 i32")
binary("BitwiseAnd BitwiseOr BitwiseXor", "i32 i64 u8")
for way in ("LEFT", "RIGHT"):
    case("BitShift", lambda *d: [x(*d), x(*d, low=0, high=7)], "u8 u32 u64", variant=way.lower(), direction=way)
WHERE = "f32 f16 f64 i64 i32 u8 bool"
case("Where", lambda *d: [x(*d, type="bool"), x(*d), x(*d)], WHERE)
case("Where", lambda a, b, c: [x(a, 1, c, type="bool"), x(a, b, c), x()], "f32 i64", variant="middle, scalar")
case("Where", lambda n, c, h, w: [x(1, 1, h, w, type="bool"), x(n, c, h, w), x()], "f32", IMAGE, variant="mask")

for to in "f32 f16 bf16 f64 i64 i32 u8 i8 bool".split():
    some = [t for t in "f32 f16 f64 i64 i32 u8 i8 bool".split() if t != to]
    case("Cast", lambda *d: [x(*d, low=0, high=100)], " ".join(some), variant="to " + to, to=to, tolerance=8e-3 if to == "bf16" else None)
case("Cast", lambda *d: [x(*d)], "bf16", variant="to f32", to="f32")
case("CastLike", lambda *d: [x(*d), x(1, type="i64")], "f32")

contrib("QuickGelu", lambda *d: [x(*d)])
contrib("FastGelu", lambda *d: [x(*d)])
contrib("FastGelu", lambda a, b, c: [x(a, b, c), weight(c)], variant="bias")
contrib("Gelu", lambda *d: [x(*d)])
contrib("BiasGelu", lambda a, b, c: [x(a, b, c), weight(c)])
contrib("BiasSplitGelu", lambda a, b: [x(2, a, 2 * b), weight(2 * b)], sizes=[(40, 1280), (512, 2560)])
contrib("BiasAdd", lambda a, b, c: [x(a, b, c), weight(c), x(a, b, c)], sizes=[(1, 300, 320), (2, 4096, 640)])
