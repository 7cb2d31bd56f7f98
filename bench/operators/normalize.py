"""Normalizations."""
from case import IMAGE, ROWS, case, contrib, weight, x

WIDE = [(128, 768), (4096, 1024)]
BLOCKS = [(1, 32, 57, 55), (2, 64, 177, 179)]
case("BatchNormalization", lambda n, c, h, w: [x(n, c, h, w), weight(c), weight(c), weight(c), weight(c, low=1, high=3)], "f32 f64", BLOCKS)
case("BatchNormalization", lambda n, c: [x(n, c), weight(c), weight(c), weight(c), weight(c, low=1, high=3)], "f32", WIDE, variant="rows")
case("InstanceNormalization", lambda n, c, h, w: [x(n, c, h, w), weight(c), weight(c)], "f32 f16", BLOCKS)
case("InstanceNormalization", lambda n, c, w: [x(n, c, w), weight(c), weight(c)], "f32", [(1, 64, 1501), (4, 256, 4001)], variant="1d")
case("GroupNormalization", lambda n, c, h, w: [x(n, c, h, w), weight(c), weight(c)], "f32 f16", BLOCKS, opset=21, num_groups=16)
case("LayerNormalization", lambda a, b: [x(a, b), weight(b), weight(b)], "f32 f16 f64", WIDE)
case("LayerNormalization", lambda a, b: [x(a, b), weight(b), weight(b)], "f32", ROWS, variant="odd")
case("LayerNormalization", lambda n, c, h, w: [x(n, c, h, w), weight(c, h, w), weight(c, h, w)], "f32", BLOCKS, variant="three axes", axis=1)
case("LayerNormalization", lambda a, b: [x(a, b), weight(b)], "f32", [(2000, 48), (50000, 96)], variant="short")
case("RMSNormalization", lambda a, b: [x(a, b), weight(b)], "f32 f16", WIDE, opset=23)
case("LpNormalization", lambda a, b: [x(a, b)], "f32", ROWS, variant="2 last")
case("LpNormalization", lambda *d: [x(*d)], "f32", variant="1 middle", p=1, axis=1)
case("MeanVarianceNormalization", lambda *d: [x(*d)], "f32", BLOCKS)
case("LRN", lambda *d: [x(*d)], "f32", BLOCKS, size=5)
case("Dropout", lambda *d: [x(*d)], "f32")
contrib("SkipLayerNormalization", lambda a, b: [x(1, a, b), x(1, a, b), weight(b), weight(b), weight(b)], types="f32 f16", sizes=WIDE)
contrib("SkipSimplifiedLayerNormalization", lambda a, b: [x(1, a, b), x(1, a, b), weight(b)], types="f32 f16", sizes=WIDE)
contrib("GroupNorm", lambda n, h, w, c: [x(n, h, w, c), weight(c, type="f32"), weight(c, type="f32")], sizes=[(1, 32, 32, 128), (2, 64, 64, 320)],
        groups=32, activation=1)
case("SimplifiedLayerNormalization", lambda a, b: [x(a, b), weight(b)], "f32", WIDE)
