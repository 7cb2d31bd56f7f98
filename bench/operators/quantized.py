"""Operators over bytes, and those that make and read them."""
from case import IMAGE, ROWS, case, contrib, given, weight, x

SCALE, ZERO = lambda v=0.04: given(v, "f32"), lambda t="u8": given(3 if t == "i8" else 128, t)
BYTES = "u8 i8"


def by_type(kind, inputs, sizes, make=case, **rest):
    """`inputs(type)` gives the function of extents, for zero points have the type of the data."""
    for t in BYTES.split():
        make(kind, inputs(t), types=t, sizes=sizes, **rest)


by_type("QuantizeLinear", lambda t: lambda *d: [x(*d, type="f32"), SCALE(0.01), ZERO(t)], IMAGE)
by_type("QuantizeLinear", lambda t: lambda n, c, h, w: [x(n, c, h, w, type="f32"), weight(c, type="f32", low=1, high=3), weight(c, type=t, low=0, high=9)],
        IMAGE, variant="channels")
by_type("DequantizeLinear", lambda t: lambda *d: [x(*d), SCALE(), ZERO(t)], IMAGE)
by_type("DequantizeLinear", lambda t: lambda n, c, h, w: [x(n, c, h, w), weight(c, type="f32", low=1, high=3), weight(c, low=0, high=9)], IMAGE, variant="channels")
case("DequantizeLinear", lambda *d: [x(*d), SCALE(0.01)], "i32", ROWS)
case("DynamicQuantizeLinear", lambda *d: [x(*d)], "f32", ROWS, outs=3, tolerance="=1")
MATRIX = [(33, 129, 65), (256, 1024, 1024)]
for t in BYTES.split():
    case("MatMulInteger", lambda m, k, n, t=t: [x(m, k), weight(k, n, type="i8", low=-127, high=128), ZERO(t)], t, MATRIX)
    case("MatMulInteger", lambda m, k, n, t=t: [x(m, k), x(k, n), ZERO(t)], t, MATRIX, variant="both at run time")
    case("QLinearMatMul", lambda m, k, n, t=t: [x(m, k), SCALE(0.02), ZERO(t), weight(k, n, type="i8", low=-127, high=128), SCALE(0.01), given(0, "i8"),
                                           SCALE(0.5), ZERO(t)], t, MATRIX)
    for variant, sizes in {"3x3": [(1, 32, 32, 28, 3, 1, 1), (1, 64, 64, 112, 3, 1, 1)], "1x1": [(1, 64, 64, 28, 1, 1, 1), (1, 64, 256, 112, 1, 1, 1)],
                           "depthwise 3x3": [(1, 96, 96, 28, 3, 1, 96), (2, 144, 144, 112, 3, 1, 144)], "3x3 stride 2": [(1, 32, 64, 28, 3, 2, 1), (2, 64, 128, 112, 3, 2, 1)],
                           "7x7 of image": [(1, 3, 32, 56, 7, 2, 1), (4, 3, 64, 224, 7, 2, 1)]}.items():
        case("QLinearConv", lambda n, c, f, s, k, st, g, t=t: [x(n, c, s, s), SCALE(0.02), ZERO(t), weight(f, c // g, k, k, type="i8", low=-127, high=128), SCALE(0.01),
                                                          given(0, "i8"), SCALE(0.5), ZERO(t), weight(f, type="i32", low=-900, high=900)],
             t, sizes, variant=variant, pads=lambda *p: [p[4] // 2] * 4, strides=lambda *p: [p[5]] * 2, group=lambda *p: p[6])
case("ConvInteger", lambda n, c, f, s: [x(n, c, s, s), weight(f, c, 3, 3, type="u8", low=0, high=255), ZERO()], "u8", [(1, 32, 32, 28), (1, 64, 64, 56)], pads=[1] * 4)

OUT = lambda t: [SCALE(0.05), ZERO(t)]
real = lambda t, *d: [x(*d), SCALE(), ZERO(t)]
for kind in ("QLinearAdd", "QLinearMul"):
    by_type(kind, lambda t: lambda *d: real(t, *d) + real(t, *d) + OUT(t), IMAGE, contrib)
    by_type(kind, lambda t: lambda n, c, h, w: real(t, n, c, h, w) + real(t, c, 1, 1) + OUT(t), IMAGE, contrib, variant="channels")
by_type("QLinearSigmoid", lambda t: lambda *d: real(t, *d) + [SCALE(1 / 256), ZERO(t)], IMAGE, contrib)
by_type("QLinearLeakyRelu", lambda t: lambda *d: real(t, *d) + OUT(t), IMAGE, contrib, alpha=0.1)
by_type("QLinearGlobalAveragePool", lambda t: lambda *d: real(t, *d) + OUT(t), IMAGE, contrib)
by_type("QLinearAveragePool", lambda t: lambda *d: real(t, *d) + OUT(t), IMAGE, contrib, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
by_type("QLinearSoftmax", lambda t: lambda *d: real(t, *d) + [SCALE(1 / 256), given(0 if t == "u8" else -128, t)], ROWS, contrib, axis=-1, more={"opset": 13})
by_type("QLinearConcat", lambda t: lambda *d: OUT(t) + real(t, *d) + real(t, *d), IMAGE, contrib, axis=1)
by_type("QLinearWhere", lambda t: lambda *d: [x(*d, type="bool")] + real(t, *d) + real(t, *d) + OUT(t), IMAGE, contrib)
by_type("QLinearReduceMean", lambda t: lambda *d: real(t, *d) + OUT(t), IMAGE, contrib, axes=[2, 3])
contrib("QGemm", lambda m, k, n: [x(m, k), SCALE(), ZERO(), weight(k, n, type="i8", low=-127, high=128), SCALE(0.01), given(0, "i8"), weight(n, type="i32", low=-900, high=900),
                                  SCALE(0.5), ZERO()], types="u8", sizes=MATRIX)
contrib("DynamicQuantizeMatMul", lambda m, k, n: [x(m, k), weight(k, n, type="i8", low=-127, high=128), weight(n, low=1, high=2), weight(n, type="i8", low=0, high=1)], sizes=MATRIX)
contrib("MatMulIntegerToFloat", lambda m, k, n: [x(m, k, type="u8"), weight(k, n, type="i8", low=-127, high=128), SCALE(), SCALE(0.01), ZERO(), given(0, "i8")], sizes=MATRIX)
for bits, block in ((4, 32), (4, 128), (8, 32)):
    for m in (1, 16, 128):
        def inputs(k, n, bits=bits, block=block, m=m):
            return [x(m, k), weight(n, k // block, block * bits // 8, type="u8", low=0, high=256), weight(n * k // block, std=0.01)]
        contrib("MatMulNBits", inputs, sizes=[(256, 512), (4096, 4096)], variant=f"{bits} bits, blocks of {block}, {m} rows", K=lambda k, n: k,
                N=lambda k, n: n, bits=bits, block_size=block, tolerance=2e-2)
contrib("MatMulNBits", lambda k, n: [x(1, k), weight(n, k // 32, 16, type="u8", low=0, high=256), weight(n * k // 32, std=0.01),
                                     weight(n * k // 64, type="u8", low=0, high=256)], sizes=[(256, 512), (4096, 4096)], variant="zero points", K=lambda k, n: k,
        N=lambda k, n: n, bits=4, block_size=32, tolerance=2e-2)
contrib("GatherBlockQuantized", lambda n, d: [weight(n, d // 2, type="u8", low=0, high=256), x(2, 37, type="i64", low=0, high=n), weight(n, d // 32, type="f32")],
        sizes=[(1000, 64), (32000, 1024)], bits=4, block_size=32, quantize_axis=1, gather_axis=0)
