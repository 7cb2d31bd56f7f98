"""Vision Transformers and networks over whole images: ViT-B/16, Swin-T, DETR, a YOLO with its NMS, U-Net, a Stable Diffusion block, PoolFormer-S12."""
import numpy as np

from convolutional import conv_bn, resnet50_features
from network import network

END = 2 ** 62


@network((1, 8))
def vit_b16(g, small):
    dim, layers = (192, 2) if small else (768, 12)
    x = g.conv(g.input("data", [g.batch, 3, 224, 224]), "patch", 3, dim, 16, 16, pad=0)
    x = g.transpose(g.rows(x, dim, 196), 0, 2, 1)
    x = g.op("Concat", g.op("Expand", g.weight("cls", (1, 1, dim), 1), g.shape(g.batch, 1, 1)), x, axis=1)
    x = g.op("Add", x, g.weight("pos", (1, 197, dim), 0.2))
    for i in range(layers):
        x = g.encoder_layer(x, f"l{i}", dim, dim // 64, 197)
    g.classifier(g.op("Gather", g.norm(x, "n", dim), g.const(0, np.int64), axis=1), dim, 1000)


def windows(g, x, side, c, w=7):
    """Windows of w x w pixels of [batch, side, side, c]."""
    n = side // w
    x = g.transpose(g.reshape(x, -1, n, w, n, w, c), 0, 1, 3, 2, 4, 5)
    return g.reshape(x, -1, w * w, c)


def unwindowed(g, x, side, c, w=7):
    n = side // w
    return g.reshape(g.transpose(g.reshape(x, -1, n, n, w, w, c), 0, 1, 3, 2, 4, 5), -1, side, side, c)


def rolled(g, x, by):
    for axis in (1, 2):
        a = g.op("Slice", x, g.shape(-by), g.shape(END), g.shape(axis))
        x = g.op("Concat", a, g.op("Slice", x, g.shape(0), g.shape(-by), g.shape(axis)), axis=axis)
    return x


def shifted_mask(side, w=7):
    """Which pixels of a rolled window come from elsewhere: -100."""
    at = np.zeros((side, side))
    cuts = (slice(0, -w), slice(-w, -(w // 2)), slice(-(w // 2), None))
    for i, a in enumerate(cuts):
        for j, b in enumerate(cuts):
            at[a, b] = 3 * i + j
    n = side // w
    of = at.reshape(n, w, n, w).transpose(0, 2, 1, 3).reshape(n * n, w * w)
    return np.where(of[:, :, None] == of[:, None, :], 0, -100).astype(np.float32)


@network((1, 8))
def swin_t(g, small):
    x = g.conv(g.input("data", [g.batch, 3, 224, 224]), "patch", 3, 96, 4, 4, pad=0)
    side, c = 56, 96
    x = g.transpose(x, 0, 2, 3, 1)
    x = g.norm(x, "patch.n", c)
    place = np.arange(49).reshape(7, 7)
    row, col = place // 7, place % 7
    relative = (row.reshape(-1, 1) - row.reshape(1, -1) + 6) * 13 + col.reshape(-1, 1) - col.reshape(1, -1) + 6
    for stage, depth in enumerate((1, 2, 1, 1) if small else (2, 2, 6, 2)):
        heads = 3 << stage
        for i in range(depth):
            name, shift, n = f"s{stage}.{i}", i % 2 == 1 and side > 7, (side // 7) ** 2
            h = g.norm(x, name + ".n1", c)
            h = windows(g, rolled(g, h, -3) if shift else h, side, c)
            bias = np.transpose(g.random(name + ".bias", (169, heads), 0.3)[relative], (2, 0, 1))[None]
            q, k, v = (g.linear(h, f"{name}.{t}", c, c) for t in "qkv")
            split = lambda t, *perm: g.transpose(g.reshape(t, -1, 49, heads, c // heads), *perm)
            s = g.op("MatMul", g.op("Mul", split(q, 0, 2, 1, 3), g.const((c // heads) ** -0.5)), split(k, 0, 2, 3, 1))
            s = g.op("Add", s, g.init(name + ".relative", np.ascontiguousarray(bias)))
            if shift:
                s = g.op("Add", g.reshape(s, -1, n, heads, 49, 49), g.init(name + ".mask", shifted_mask(side)[:, None]))
                s = g.reshape(s, -1, heads, 49, 49)
            h = g.reshape(g.transpose(g.op("MatMul", g.op("Softmax", s, axis=-1), split(v, 0, 2, 1, 3)), 0, 2, 1, 3), -1, 49, c)
            h = unwindowed(g, g.linear(h, name + ".o", c, c), side, c)
            x = g.op("Add", x, rolled(g, h, 3) if shift else h)
            x = g.op("Add", x, g.feed_forward(g.norm(x, name + ".n2", c), name, c, 4 * c))
        if stage < 3:
            quarter = lambda a, b: g.op("Slice", x, g.shape(a, b), g.shape(END, END), g.shape(1, 2), g.shape(2, 2))
            x = g.op("Concat", quarter(0, 0), quarter(1, 0), quarter(0, 1), quarter(1, 1), axis=3)
            x = g.linear(g.norm(x, f"m{stage}.n", 4 * c), f"m{stage}", 4 * c, 2 * c, bias=False)
            side, c = side // 2, 2 * c
    g.classifier(g.op("ReduceMean", g.norm(x, "n", c), axes=[1, 2], keepdims=0), c, 1000)


@network((1,))
def detr(g, small):
    high, wide = (64, 96) if small else (480, 640)
    x, c = resnet50_features(g, g.input("data", [g.batch, 3, high, wide]), small)
    n, dim, queries = high // 32 * (wide // 32), 256, 100
    x = g.transpose(g.rows(g.conv(x, "in", c, dim, 1), dim, n), 0, 2, 1)
    pos, ask = g.weight("pos", (1, n, dim), 0.5), g.weight("ask", (1, queries, dim), 0.5)

    def attend(q, k, v, name, nq, nk):
        q, k, v = (g.linear(t, f"{name}.{p}", dim, dim) for t, p in ((q, "q"), (k, "k"), (v, "v")))
        return g.linear(g.attention(q, k, v, 8, dim // 8, nq, nk), name + ".o", dim, dim)
    relu = lambda v: g.op("Relu", v)
    added = lambda a, b, name: g.norm(g.op("Add", a, b), name, dim)
    for i in range(1 if small else 6):
        p = g.op("Add", x, pos)
        x = added(x, attend(p, p, x, f"e{i}", n, n), f"e{i}.n1")
        x = added(x, g.feed_forward(x, f"e{i}", dim, 2048, relu), f"e{i}.n2")
    memory, keys = x, g.op("Add", x, pos)
    x = g.op("Mul", ask, g.const(0))
    for i in range(1 if small else 6):
        p = g.op("Add", x, ask)
        x = added(x, attend(p, p, x, f"d{i}.self", queries, queries), f"d{i}.n1")
        x = added(x, attend(g.op("Add", x, ask), keys, memory, f"d{i}.across", queries, n), f"d{i}.n2")
        x = added(x, g.feed_forward(x, f"d{i}", dim, 2048, relu), f"d{i}.n3")
    g.output(g.linear(x, "class", dim, 92), "logits")
    g.output(g.op("Sigmoid", g.linear(relu(g.linear(relu(g.linear(x, "box1", dim, dim)), "box2", dim, dim)), "box3", dim, 4)), "boxes")


@network((1,))
def yolo_s(g, small):
    """The shape of YOLOv5s at 640 x 640, with its boxes and their suppression."""
    size = 128 if small else 640

    def cbs(x, name, cin, cout, k=1, s=1):
        return g.silu(conv_bn(g, x, name, cin, cout, k, s, m2=0.4))

    def c3(x, name, cin, cout, n, add=True):
        a, b, mid = cbs(x, name + ".1", cin, cout // 2), cbs(x, name + ".2", cin, cout // 2), cout // 2
        for i in range(n):
            y = cbs(cbs(a, f"{name}.m{i}.1", mid, mid), f"{name}.m{i}.2", mid, mid, 3)
            a = g.op("Add", a, y) if add else y
        return cbs(g.op("Concat", a, b, axis=1), name + ".3", cout, cout)
    up = lambda v: g.op("Resize", v, "", g.const([1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = g.silu(g.conv(g.input("data", [g.batch, 3, size, size]), "stem", 3, 32, 6, 2, pad=2))
    x = c3(cbs(x, "1", 32, 64, 3, 2), "2", 64, 64, 1)
    p3 = c3(cbs(x, "3", 64, 128, 3, 2), "4", 128, 128, 2)
    p4 = c3(cbs(p3, "5", 128, 256, 3, 2), "6", 256, 256, 3)
    x = cbs(c3(cbs(p4, "7", 256, 512, 3, 2), "8", 512, 512, 1), "9.1", 512, 256)
    pools = [x]
    for _ in range(3):
        pools.append(g.op("MaxPool", pools[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    p5 = cbs(cbs(g.op("Concat", *pools, axis=1), "9.2", 1024, 512), "10", 512, 256)
    m4 = cbs(c3(g.op("Concat", up(p5), p4, axis=1), "13", 512, 256, 1, False), "14", 256, 128)
    o3 = c3(g.op("Concat", up(m4), p3, axis=1), "17", 256, 128, 1, False)
    o4 = c3(g.op("Concat", cbs(o3, "18", 128, 128, 3, 2), m4, axis=1), "20", 256, 256, 1, False)
    o5 = c3(g.op("Concat", cbs(o4, "21", 256, 256, 3, 2), p5, axis=1), "23", 512, 512, 1, False)
    found = []
    for i, (f, c, stride) in enumerate(((o3, 128, 8), (o4, 256, 16), (o5, 512, 32))):
        n = size // stride
        y = g.transpose(g.rows(g.conv(f, f"detect{i}", c, 255, 1), 3, 85, n, n), 0, 1, 3, 4, 2)
        y = g.op("Sigmoid", y)
        xy, wh, rest = g.op("Split", y, g.shape(2, 2, 81), n=3, axis=4)
        grid = np.stack(np.meshgrid(np.arange(n), np.arange(n)), -1).reshape(1, 1, n, n, 2) - 0.5
        anchors = (np.array([10, 13, 16, 30, 33, 23]) * (stride / 8)).reshape(1, 3, 1, 1, 2)
        xy = g.op("Mul", g.op("Add", g.op("Mul", xy, g.const(2)), g.init(f"grid{i}", grid.astype(np.float32))), g.const(stride))
        wh = g.op("Mul", g.op("Pow", g.op("Mul", wh, g.const(2)), g.const(2)), g.init(f"anchors{i}", anchors.astype(np.float32)))
        found.append(g.rows(g.op("Concat", xy, wh, rest, axis=4), 3 * n * n, 85))
    y = g.op("Concat", *found, axis=1)
    boxes, sure, classes = g.op("Split", y, g.shape(4, 1, 80), n=3, axis=2)
    scores = g.transpose(g.op("Mul", sure, classes), 0, 2, 1)
    chosen = g.op("NonMaxSuppression", boxes, scores, g.const([100], np.int64), g.const([0.45]), g.const([0.62]), center_point_box=1)
    g.output(y, "raw")
    g.output(chosen, "chosen")


@network((1, 2))
def unet(g, small):
    """Ronneberger et al. 2015, padded; extents that are no powers of two."""
    width, high, wide = (8, 32, 48) if small else (64, 160, 208)
    relu = lambda v: g.op("Relu", v)
    twice = lambda v, name, a, b: relu(conv_bn(g, relu(conv_bn(g, v, name + ".1", a, b, 3, m2=0.5)), name + ".2", b, b, 3, m2=0.5))
    x, c, kept = twice(g.input("data", [g.batch, 1, high, wide]), "in", 1, width), width, []
    for i in range(4):
        kept.append((x, c))
        x = twice(g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), f"down{i}", c, 2 * c)
        c *= 2
    for i, (skip, of) in enumerate(reversed(kept)):
        w = g.weight(f"up{i}.w", (c, of, 2, 2), c ** -0.5)
        x = g.op("ConvTranspose", x, w, g.weight(f"up{i}.b", (of,), 0.02), kernel_shape=[2, 2], strides=[2, 2])
        x, c = twice(g.op("Concat", skip, x, axis=1), f"u{i}", 2 * of, of), of
    g.output(g.op("Softmax", g.conv(x, "out", c, 3, 1), axis=1), "classes")


def group_norm(g, x, name, c, groups=32):
    """As exporters write it: an InstanceNormalization of the groups, scale and bias after it."""
    y = g.op("InstanceNormalization", g.reshape(x, 0, groups, -1), g.init(name + ".one", np.ones(groups, np.float32)),
             g.init(name + ".zero", np.zeros(groups, np.float32)), epsilon=1e-5)
    y = g.op("Reshape", y, g.op("Shape", x))
    return g.op("Add", g.op("Mul", y, g.weight(name + ".g", (c, 1, 1), 0.1, 1.0)), g.weight(name + ".b", (c, 1, 1), 0.02))


@network((2,))
def diffusion_block(g, small):
    """The first down block of Stable Diffusion's UNet: a residual block and a Transformer with cross-attention, for both halves of guidance."""
    c, side = (64, 8) if small else (320, 64)
    x, time = g.input("sample", [g.batch, c, side, side]), g.input("time", [g.batch, 4 * c])
    text = g.input("text", [g.batch, 77, 768])
    h = g.conv(g.silu(group_norm(g, x, "r.n1", c)), "r.c1", c, c, 3)
    t = g.op("Unsqueeze", g.linear(g.silu(time), "r.time", 4 * c, c), g.shape(2, 3))
    h = g.conv(g.silu(group_norm(g, g.op("Add", h, t), "r.n2", c)), "r.c2", c, c, 3)
    x = g.op("Add", x, h)
    n = side * side
    h = g.transpose(g.rows(g.conv(group_norm(g, x, "t.n", c), "t.in", c, c, 1), c, n), 0, 2, 1)
    h = g.op("Add", h, g.attended(g.norm(h, "t.n1", c), "t.self", c, 8, n, bias=False))
    h = g.op("Add", h, g.attended(g.norm(h, "t.n2", c), "t.across", c, 8, n, 77, text, other_dim=768, bias=False))
    a, b = g.op("Split", g.linear(g.norm(h, "t.n3", c), "t.up", c, 8 * c), g.shape(4 * c, 4 * c), n=2, axis=2)
    h = g.op("Add", h, g.linear(g.op("Mul", a, g.gelu_erf(b)), "t.down", 4 * c, c))
    h = g.rows(g.transpose(h, 0, 2, 1), c, side, side)
    g.output(g.op("Add", x, g.conv(h, "t.out", c, c, 1)), "out")


@network((1,))
def poolformer_s12(g, small):
    """Yu et al. 2022 at 224 x 224: 3x3 means in the place of attention, norms over whole images (one group)."""
    def group_norm(x, name, c, side):
        y = g.op("InstanceNormalization", g.rows(x, 1, c * side * side), g.const([1.0]), g.const([0.0]), epsilon=1e-5)
        y = g.op("Mul", g.rows(y, c, side, side), g.weight(name + ".g", (c, 1, 1), 0.1, 1.0))
        return g.op("Add", y, g.weight(name + ".b", (c, 1, 1), 0.02))
    x, cin, side = g.input("data", [g.batch, 3, 224, 224]), 3, 224
    for i, (n, c) in enumerate([(2, 64), (2, 128), (6, 320), (2, 512)]):
        x = g.conv(x, f"d{i}", cin, c, 7 if i == 0 else 3, 4 if i == 0 else 2, pad=2 if i == 0 else 1)
        side, cin = side // (4 if i == 0 else 2), c
        for j in range(1 if small else n):
            name = f"s{i}.{j}"
            y = group_norm(x, name + ".n1", c, side)
            mean = g.op("AveragePool", y, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4, count_include_pad=0)
            y = g.op("Mul", g.op("Sub", mean, y), g.weight(name + ".s1", (c, 1, 1), 0.1, 0.3))
            x = g.op("Add", x, y)
            y = g.gelu_erf(g.conv(group_norm(x, name + ".n2", c, side), name + ".up", c, 4 * c, 1))
            y = g.op("Mul", g.conv(y, name + ".down", 4 * c, c, 1), g.weight(name + ".s2", (c, 1, 1), 0.1, 0.3))
            x = g.op("Add", x, y)
    x = g.op("ReduceMean", group_norm(x, "n", cin, side), axes=[2, 3], keepdims=0)
    g.classifier(x, cin, 1000)
