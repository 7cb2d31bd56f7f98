"""Products and convolutions."""
from case import case, contrib, given, weight, x

# -- products
for name, sizes in {"square": [(1, 64, 64, 64), (1, 512, 512, 512)], "odd": [(1, 37, 131, 67), (1, 501, 777, 333)],
                    "row": [(1, 1, 512, 512), (1, 1, 4096, 4096)], "column": [(1, 512, 512, 1), (1, 4096, 4096, 1)],
                    "few rows": [(1, 5, 384, 256), (1, 7, 2048, 2048)], "slim": [(1, 1500, 16, 64), (1, 100000, 16, 48)],
                    "batches": [(12, 64, 32, 64), (96, 197, 64, 197)], "many small": [(500, 5, 7, 6), (20000, 7, 9, 11)]}.items():
    case("MatMul", lambda b, m, k, n: [x(b, m, k), x(b, k, n)], "f32 f16 f64" if name in ("odd", "batches") else "f32", sizes, variant=name)
    if name in ("square", "odd", "row", "few rows"):
        case("MatMul", lambda b, m, k, n: [x(m, k), weight(k, n, std=k ** -0.5)], "f32 f16", sizes, variant=name + ", constant")
case("MatMul", lambda b, m, k, n: [x(b, m, k), weight(k, n, std=k ** -0.5)], "f32 f16", [(4, 33, 64, 96), (8, 197, 768, 768)], variant="batches, constant")
case("MatMul", lambda b, m, k, n: [x(1, b, m, k), weight(k, n, std=k ** -0.5)], "f32", [(14, 14, 64, 96), (56, 56, 96, 384)], variant="rows of images, constant")
case("MatMul", lambda m, k, n: [x(m, k), x(k, n)], "i32 i64", [(64, 64, 64), (301, 257, 333)], variant="integers")
case("MatMul", lambda b, m, k, n: [x(b, 1, m, k), x(1, 6, k, n)], "f32", [(2, 33, 64, 31), (8, 197, 64, 129)], variant="batches broadcast")
case("MatMul", lambda k, n: [x(k), x(k, n)], "f32", [(512, 256), (2048, 2048)], variant="vector")
for ta, tb in ((0, 0), (1, 0), (0, 1), (1, 1)):
    case("Gemm", lambda m, k, n, ta=ta, tb=tb: [x(*((k, m) if ta else (m, k))), x(*((n, k) if tb else (k, n))), x(n)],
         "f32 f64" if not ta and tb else "f32", [(33, 129, 65), (501, 777, 333)], variant="NT"[ta] + "NT"[tb], transA=ta, transB=tb, alpha=0.5, beta=2.0)
    case("Gemm", lambda m, k, n, tb=tb, ta=ta: [x(*((k, m) if ta else (m, k))), weight(*((n, k) if tb else (k, n)), std=k ** -0.5), weight(n)],
         "f32 f16", [(1, 512, 512), (16, 4096, 1000)], variant="NT"[ta] + "NT"[tb] + " constant", transA=ta, transB=tb)
for rule, sizes in {"bij,bjk->bik": [(4, 33, 65, 31), (12, 197, 201, 203)], "bhid,bhjd->bhij": [(2, 33, 4, 32), (8, 197, 12, 64)],
                    "ij->ji": [(317, 311, 0, 0), (1999, 2003, 0, 0)], "bij,j->bi": [(3, 167, 199, 0), (5, 641, 1283, 0)],
                    "bqhd,bkhd->bhqk": [(2, 33, 4, 32), (8, 197, 12, 64)], "i,j->ij": [(317, 311, 0, 0), (1999, 2003, 0, 0)]}.items():
    def inputs(a, b, c, d, rule=rule):
        n = {"bij,bjk->bik": [(a, b, c), (a, c, d)], "bhid,bhjd->bhij": [(a, c, b, d)] * 2, "ij->ji": [(a, b)], "bij,j->bi": [(a, b, c), (c,)],
             "bqhd,bkhd->bhqk": [(a, b, c, d)] * 2, "i,j->ij": [(a,), (b,)]}[rule]
        return [x(*s) for s in n]
    case("Einsum", inputs, "f32", sizes, variant=rule.replace(",", "."), equation=rule)
case("Det", lambda b, n: [x(b, n, n)], "f32", [(100, 16), (2000, 32)])
contrib("FusedMatMul", lambda b, m, k, n: [x(b, m, k), x(b, n, k)], sizes=[(12, 64, 32, 64), (96, 197, 64, 197)], alpha=0.125, transB=1)
contrib("FusedGemm", lambda m, k, n: [x(m, k), weight(k, n, std=0.05), weight(n)], sizes=[(33, 129, 65), (501, 777, 333)], activation="Relu")
contrib("GemmFastGelu", lambda m, k, n: [x(m, k), weight(k, n, std=0.05), weight(n)], sizes=[(33, 129, 65), (501, 777, 333)])
contrib("Inverse", lambda b, n: [x(b, n, n)], sizes=[(100, 16), (500, 32)], tolerance=2e-2)


# -- convolutions: (batch, channels, filters, extent, taps, stride, dilation, group)
def conv(variant, axes, *sizes, kind="Conv", types="f32", **more):
    def inputs(n, c, f, size, k, s, d, g):
        shape = (c, f // g) if kind == "ConvTranspose" else (f, c // g)
        return [x(n, c, *[size + (i == axes - 1) for i in range(axes)]), weight(*shape, *[k] * axes, std=(c // g * k ** axes) ** -0.5), weight(f)]
    of = lambda at: lambda *p: [p[at]] * axes
    pads = lambda n, c, f, size, k, s, d, g: [(k - 1) * d // 2] * (2 * axes)
    case(kind, inputs, types, list(sizes), variant=variant, kernel_shape=of(4), strides=of(5), dilations=of(6), group=lambda *p: p[7], pads=pads, **more)


conv("1d 3", 1, (1, 80, 128, 300, 3, 1, 1, 1), (1, 80, 512, 3000, 3, 1, 1, 1), types="f32 f16")
conv("1d 3 stride 2", 1, (1, 128, 128, 300, 3, 2, 1, 1), (1, 512, 512, 3000, 3, 2, 1, 1))
conv("1d 10 stride 5 of one channel", 1, (1, 1, 64, 4000, 10, 5, 1, 1), (1, 1, 512, 80000, 10, 5, 1, 1))
conv("1d dilated", 1, (1, 64, 64, 400, 3, 1, 4, 1), (4, 128, 128, 4000, 3, 1, 8, 1))
conv("1d depthwise", 1, (1, 128, 128, 400, 7, 1, 1, 128), (2, 512, 512, 3000, 31, 1, 1, 512))
conv("1d grouped", 1, (1, 64, 64, 200, 128, 1, 1, 16), (1, 768, 768, 249, 128, 1, 1, 16))
conv("1x1", 2, (1, 64, 64, 28, 1, 1, 1, 1), (1, 64, 256, 112, 1, 1, 1, 1), types="f32 f16")
conv("1x1 stride 2", 2, (1, 64, 128, 28, 1, 2, 1, 1), (2, 256, 512, 56, 1, 2, 1, 1))
conv("3x3", 2, (1, 32, 32, 28, 3, 1, 1, 1), (1, 64, 64, 112, 3, 1, 1, 1), types="f32 f16")
conv("3x3 batch 8", 2, (8, 16, 24, 15, 3, 1, 1, 1), (8, 48, 80, 57, 3, 1, 1, 1))
conv("3x3 stride 2", 2, (1, 32, 64, 28, 3, 2, 1, 1), (2, 64, 128, 112, 3, 2, 1, 1))
conv("3x3 dilated", 2, (1, 32, 32, 28, 3, 1, 2, 1), (1, 64, 64, 112, 3, 1, 4, 1))
conv("3x3 grouped", 2, (1, 64, 64, 28, 3, 1, 1, 4), (1, 256, 256, 56, 3, 1, 1, 32))
conv("5x5", 2, (1, 16, 32, 28, 5, 1, 1, 1), (1, 32, 64, 112, 5, 1, 1, 1))
conv("7x7 of image", 2, (1, 3, 32, 56, 7, 2, 1, 1), (4, 3, 64, 224, 7, 2, 1, 1))
conv("3x3 of image", 2, (1, 3, 16, 64, 3, 2, 1, 1), (4, 3, 32, 224, 3, 2, 1, 1))
conv("16x16 patches", 2, (1, 3, 96, 64, 16, 16, 1, 1), (1, 3, 768, 223, 16, 16, 1, 1))
conv("depthwise 3x3", 2, (1, 96, 96, 28, 3, 1, 1, 96), (2, 144, 144, 112, 3, 1, 1, 144), types="f32 f16")
conv("depthwise 3x3 stride 2", 2, (1, 96, 96, 28, 3, 2, 1, 96), (2, 144, 144, 112, 3, 2, 1, 144))
conv("depthwise 5x5", 2, (1, 96, 96, 28, 5, 1, 1, 96), (2, 144, 144, 112, 5, 1, 1, 144))
conv("depthwise 7x7", 2, (1, 96, 96, 28, 7, 1, 1, 96), (1, 192, 192, 56, 7, 1, 1, 192))
conv("depthwise twice 3x3", 2, (1, 48, 96, 28, 3, 1, 1, 48), (1, 96, 192, 112, 3, 1, 1, 96))
conv("3d 3", 3, (1, 8, 16, 14, 3, 1, 1, 1), (1, 32, 32, 32, 3, 1, 1, 1))
conv("3d 3 stride 2", 3, (1, 8, 16, 14, 3, 2, 1, 1), (1, 32, 64, 32, 3, 2, 1, 1))
conv("3d 1", 3, (1, 16, 32, 14, 1, 1, 1, 1), (1, 64, 64, 28, 1, 1, 1, 1))
conv("3d depthwise", 3, (1, 16, 16, 14, 3, 1, 1, 16), (1, 64, 64, 28, 3, 1, 1, 64))
conv("1d 4 stride 2", 1, (1, 64, 32, 300, 4, 2, 1, 1), (1, 256, 128, 3000, 4, 2, 1, 1), kind="ConvTranspose")
conv("2d 2 stride 2", 2, (1, 32, 16, 28, 2, 2, 1, 1), (1, 128, 64, 56, 2, 2, 1, 1), kind="ConvTranspose")
conv("2d 4 stride 2", 2, (1, 32, 16, 28, 4, 2, 1, 1), (1, 128, 64, 56, 4, 2, 1, 1), kind="ConvTranspose")
conv("2d 3", 2, (1, 32, 16, 28, 3, 1, 1, 1), (1, 64, 64, 56, 3, 1, 1, 1), kind="ConvTranspose")
conv("2d 3 stride 2, more out", 2, (2, 32, 16, 14, 3, 2, 1, 1), (2, 128, 64, 56, 3, 2, 1, 1), kind="ConvTranspose", output_padding=[1, 1])
conv("2d depthwise", 2, (1, 32, 32, 28, 4, 2, 1, 32), (1, 128, 128, 56, 4, 2, 1, 128), kind="ConvTranspose")
conv("3d 2 stride 2", 3, (1, 16, 8, 8, 2, 2, 1, 1), (1, 64, 32, 16, 2, 2, 1, 1), kind="ConvTranspose")
case("Conv", lambda n, c, s: [x(n, c, s, s), x(c, c, 3, 3)], "f32", [(1, 32, 28), (1, 64, 56)], variant="3x3, filters at run time", pads=[1] * 4)
contrib("FusedConv", lambda n, c, s: [x(n, c, s, s), weight(c, c, 3, 3, std=0.05), weight(c)], sizes=[(1, 32, 28), (1, 64, 56)], pads=[1] * 4,
        kernel_shape=[3, 3], activation="Relu")
