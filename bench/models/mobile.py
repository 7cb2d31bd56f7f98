"""Convolutional networks made for few operations: MobileNet v2 and v3, EfficientNet-B0, RegNetX-400MF, ConvNeXt-T."""
from convolutional import conv_bn
from network import network


def relu6(g, x):
    return g.op("Clip", x, g.const(0), g.const(6))


def squeeze_excite(g, x, name, c, mid, act, gate):
    s = g.conv(g.op("GlobalAveragePool", x), name + ".se1", c, mid, 1)
    return g.op("Mul", x, gate(g.conv(act(s), name + ".se2", mid, c, 1)))


def inverted(g, x, name, cin, mid, cout, k, stride, act, se=None):
    """Expand, depthwise, perhaps squeeze and excite, project."""
    y = act(conv_bn(g, x, name + ".1", cin, mid, 1)) if mid != cin else x
    y = act(conv_bn(g, y, name + ".2", mid, mid, k, stride, mid, m2=0.5))
    y = se(y, name, mid) if se else y
    y = conv_bn(g, y, name + ".3", mid, cout, 1, m2=0.5, gamma=0.6)
    return g.op("Add", x, y) if stride == 1 and cin == cout else y


@network((1, 8), dynamic=(1, 8))
def mobilenet_v2(g, small):
    act = lambda v: relu6(g, v)
    x = act(conv_bn(g, g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 32, 3, 2, m2=1 / 3))
    cin = 32
    for i, (t, c, n, s) in enumerate([(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]):
        for j in range(1 if small else n):
            x, cin = inverted(g, x, f"b{i}.{j}", cin, cin * t, c, 3, s if j == 0 else 1, act), c
    g.classifier(g.pooled(act(conv_bn(g, x, "head", cin, 1280, 1))), 1280, 1000)


V3 = [(3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2),
      (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2),
      (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)]


@network((1, 8))
def mobilenet_v3_large(g, small):
    relu, swish, gate = (lambda v: g.op("Relu", v)), (lambda v: g.op("HardSwish", v)), (lambda v: g.op("HardSigmoid", v, alpha=1 / 6, beta=0.5))
    x, cin = swish(conv_bn(g, g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 16, 3, 2, m2=1 / 3)), 16
    for i, (k, mid, c, se, h, s) in enumerate(V3[:4] if small else V3):
        excite = (lambda y, n, m: squeeze_excite(g, y, n, m, (m // 4 + 7) // 8 * 8, relu, gate)) if se else None
        x, cin = inverted(g, x, f"b{i}", cin, mid, c, k, s, swish if h else relu, excite), c
    x = g.pooled(swish(conv_bn(g, x, "head", cin, 960, 1)))
    x = swish(g.op("Gemm", x, g.weight("fc0.w", (1280, 960), 0.05), g.weight("fc0.b", (1280,), 0.02), transB=1))
    g.classifier(x, 1280, 1000)


@network((1, 8), dynamic=(8,))
def efficientnet_b0(g, small):
    act, gate = g.silu, lambda v: g.op("Sigmoid", v)
    x, cin = act(conv_bn(g, g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 32, 3, 2, m2=1 / 3)), 32
    for i, (t, k, c, n, s) in enumerate([(1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1)]):
        for j in range(1 if small else n):
            x, cin = inverted(g, x, f"b{i}.{j}", cin, cin * t, c, k, s if j == 0 else 1, act,
                              lambda y, name, m, few=max(1, cin // 4): squeeze_excite(g, y, name, m, few, act, gate)), c
    g.classifier(g.pooled(act(conv_bn(g, x, "head", cin, 1280, 1))), 1280, 1000)


@network((1, 8))
def regnet_x_400mf(g, small):
    relu = lambda v: g.op("Relu", v)
    x, cin = relu(conv_bn(g, g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 32, 3, 2, m2=1 / 3)), 32
    for i, (n, c) in enumerate([(1, 32), (2, 64), (7, 160), (12, 400)]):
        for j in range(1 if small else n):
            s, name = (1, 2)[j == 0], f"s{i}.{j}"
            y = relu(conv_bn(g, x, name + ".1", cin, c, 1))
            y = relu(conv_bn(g, y, name + ".2", c, c, 3, s, c // 16, m2=0.5))
            y = conv_bn(g, y, name + ".3", c, c, 1, m2=0.5, gamma=0.5)
            x = relu(g.op("Add", conv_bn(g, x, name + ".d", cin, c, 1, s) if j == 0 else x, y))
            cin = c
    g.classifier(g.pooled(x), cin, 1000)


@network((1, 8))
def convnext_t(g, small):
    def norm_channels(v, name, c):
        return g.transpose(g.norm(g.transpose(v, 0, 2, 3, 1), name, c), 0, 3, 1, 2)
    x, cin = norm_channels(g.conv(g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 96, 4, 4, pad=0), "stem.n", 96), 96
    for i, (n, c) in enumerate([(3, 96), (3, 192), (9, 384), (3, 768)]):
        if i:
            x = g.conv(norm_channels(x, f"d{i}.n", cin), f"d{i}", cin, c, 2, 2, pad=0)
        cin = c
        for j in range(1 if small else n):
            name = f"s{i}.{j}"
            y = g.norm(g.transpose(g.conv(x, name + ".dw", c, c, 7, group=c), 0, 2, 3, 1), name + ".n", c)
            y = g.op("Mul", g.feed_forward(y, name, c, 4 * c), g.weight(name + ".gamma", (c,), 0.1, 0.3))
            x = g.op("Add", x, g.transpose(y, 0, 3, 1, 2))
    x = g.norm(g.op("Flatten", g.op("GlobalAveragePool", x), axis=1), "head.n", cin)
    g.classifier(x, cin, 1000)
