"""Convolutional networks of other shapes: channels split, shuffled, and joined, long kernels, groups, dilation."""
from convolutional import batchnorm_values, conv_bn
from mobile import inverted, relu6, squeeze_excite
from network import network


def unit(g, x, name, cin, cout, k, stride=1, **more):
    """Convolution, norm, ReLU."""
    return g.op("Relu", conv_bn(g, x, name, cin, cout, k, stride, m2=0.5, **more))


def pool(g, x, kind, k, stride, pad):
    more = {"count_include_pad": 1} if kind == "AveragePool" and pad else {}
    return g.op(kind, x, kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, **more)


@network((1, 8))
def shufflenet_v2(g, small):
    """Ma et al. 2018, width 1."""
    def shuffled(a, b, c, side):
        y = g.rows(g.op("Concat", a, b, axis=1), 2, c // 2, side, side)
        return g.rows(g.transpose(y, 0, 2, 1, 3, 4), c, side, side)

    def branch(x, name, cin, c, stride):
        y = unit(g, x, name + ".1", cin, c, 1)
        y = conv_bn(g, y, name + ".2", c, c, 3, stride, c, m2=0.5)
        return unit(g, y, name + ".3", c, c, 1)
    x = unit(g, g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 24, 3, 2)
    x, cin, side = pool(g, x, "MaxPool", 3, 2, 1), 24, 56
    for i, (n, c) in enumerate([(4, 116), (8, 232), (4, 464)]):
        side, half = side // 2, c // 2
        beside = conv_bn(g, x, f"s{i}.d1", cin, cin, 3, 2, cin, m2=0.5)
        x = shuffled(unit(g, beside, f"s{i}.d2", cin, half, 1), branch(x, f"s{i}.0", cin, half, 2), c, side)
        for j in range(1, 2 if small else n):
            a, b = g.op("Split", x, g.shape(half, half), n=2, axis=1)
            x = shuffled(a, branch(b, f"s{i}.{j}", half, half, 1), c, side)
        cin = c
    g.classifier(g.pooled(unit(g, x, "head", cin, 1024, 1)), 1024, 1000)


@network((1, 8))
def densenet121(g, small):
    """Huang et al. 2017: norm and ReLU come before each convolution."""
    def norm_relu(x, name, c):
        ins = [g.init(f"{name}.{n}", v) for n, v in zip(("gamma", "beta", "mean", "var"), batchnorm_values(g, name, c, 0.5))]
        return g.op("Relu", g.op("BatchNormalization", x, *ins, epsilon=1e-5))
    x, c = unit(g, g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 64, 7, 2), 64
    x = pool(g, x, "MaxPool", 3, 2, 1)
    for i, n in enumerate((2, 2, 2, 2) if small else (6, 12, 24, 16)):
        for j in range(n):
            name = f"b{i}.{j}"
            y = g.conv(norm_relu(x, name + ".n1", c), name + ".1", c, 128, 1, bias=False)
            y = g.conv(norm_relu(y, name + ".n2", 128), name + ".2", 128, 32, 3, bias=False)
            x, c = g.op("Concat", x, y, axis=1), c + 32
        if i < 3:
            x = g.conv(norm_relu(x, f"t{i}.n", c), f"t{i}", c, c // 2, 1, bias=False)
            x, c = pool(g, x, "AveragePool", 2, 2, 0), c // 2
    g.classifier(g.pooled(norm_relu(x, "n", c)), c, 1000)


@network((1, 8))
def inception_v3(g, small):
    """Szegedy et al. 2016 at 299 x 299."""
    joined = lambda *xs: g.op("Concat", *xs, axis=1)
    pooled = lambda v: pool(g, v, "AveragePool", 3, 1, 1)
    x = unit(g, g.input("data", [g.batch, 3, 299, 299]), "1", 3, 32, 3, 2, pad=0)
    x = unit(g, unit(g, x, "2", 32, 32, 3, pad=0), "3", 32, 64, 3)
    x = unit(g, pool(g, x, "MaxPool", 3, 2, 0), "4", 64, 80, 1)
    x, c = pool(g, unit(g, x, "5", 80, 192, 3, pad=0), "MaxPool", 3, 2, 0), 192
    for i, of_pool in enumerate((32,) if small else (32, 64, 64)):
        n = f"a{i}"
        b = unit(g, unit(g, x, n + ".5a", c, 48, 1), n + ".5b", 48, 64, 5)
        d = unit(g, unit(g, unit(g, x, n + ".3a", c, 64, 1), n + ".3b", 64, 96, 3), n + ".3c", 96, 96, 3)
        x, c = joined(unit(g, x, n + ".1", c, 64, 1), b, d, unit(g, pooled(x), n + ".p", c, of_pool, 1)), 224 + of_pool
    d = unit(g, unit(g, unit(g, x, "b.3a", c, 64, 1), "b.3b", 64, 96, 3), "b.3c", 96, 96, 3, 2, pad=0)
    x, c = joined(unit(g, x, "b.3", c, 384, 3, 2, pad=0), d, pool(g, x, "MaxPool", 3, 2, 0)), 480 + c
    for i, m in enumerate((128,) if small else (128, 160, 160, 192)):
        n = f"c{i}"
        b = unit(g, unit(g, unit(g, x, n + ".7a", c, m, 1), n + ".7b", m, m, (1, 7)), n + ".7c", m, 192, (7, 1))
        d, d_in = x, c
        for j, (k, to) in enumerate([(1, m), ((7, 1), m), ((1, 7), m), ((7, 1), m), ((1, 7), 192)]):
            d, d_in = unit(g, d, f"{n}.d{j}", d_in, to, k), to
        x, c = joined(unit(g, x, n + ".1", c, 192, 1), b, d, unit(g, pooled(x), n + ".p", c, 192, 1)), 768
    b = unit(g, unit(g, x, "d.3a", c, 192, 1), "d.3b", 192, 320, 3, 2, pad=0)
    d = unit(g, unit(g, unit(g, x, "d.7a", c, 192, 1), "d.7b", 192, 192, (1, 7)), "d.7c", 192, 192, (7, 1))
    x, c = joined(b, unit(g, d, "d.7d", 192, 192, 3, 2, pad=0), pool(g, x, "MaxPool", 3, 2, 0)), 1280
    for i in range(1 if small else 2):
        n = f"e{i}"
        both = lambda v, name: joined(unit(g, v, name + "h", 384, 384, (1, 3)), unit(g, v, name + "v", 384, 384, (3, 1)))
        b = both(unit(g, x, n + ".3a", c, 384, 1), n + ".3")
        d = both(unit(g, unit(g, x, n + ".da", c, 448, 1), n + ".db", 448, 384, 3), n + ".d")
        x, c = joined(unit(g, x, n + ".1", c, 320, 1), b, d, unit(g, pooled(x), n + ".p", c, 192, 1)), 2048
    g.classifier(g.pooled(x), c, 1000)


def residual_stages(g, x, small, depth, mid, group=1, dilated=()):
    """Bottlenecks of a ResNet whose last stages may be dilated instead of strided; features and their channels."""
    cin, rate = 64, 1
    for i, n in enumerate(depth):
        stride, c = 2 if i else 1, 256 << i
        if i in dilated:
            stride, rate = 1, 2 * rate
        for j in range(1 if small else n):
            s, name, width = stride if j == 0 else 1, f"s{i}.{j}", mid << i
            y = unit(g, x, name + ".1", cin, width, 1)
            y = unit(g, y, name + ".2", width, width, 3, s, group=group, dilation=rate)
            y = conv_bn(g, y, name + ".3", width, c, 1, m2=0.5, gamma=0.5)
            x = g.op("Relu", g.op("Add", y, conv_bn(g, x, name + ".d", cin, c, 1, s) if j == 0 else x))
            cin = c
    return x, cin


def image_stem(g, side):
    x = unit(g, g.input("data", [g.batch, 3, side, side]), "stem", 3, 64, 7, 2)
    return pool(g, x, "MaxPool", 3, 2, 1)


@network((1, 8))
def resnext50(g, small):
    """Xie et al. 2017: 32 groups, 4 channels each at first."""
    x, c = residual_stages(g, image_stem(g, 224), small, (3, 4, 6, 3), 128, 32)
    g.classifier(g.pooled(x), c, 1000)


@network((1,))
def deeplab_v3(g, small):
    """Chen et al. 2017 on ResNet-50: dilated stages, parallel dilated 3x3, 21 classes of each pixel."""
    side = 129 if small else 257
    x, c = residual_stages(g, image_stem(g, side), small, (3, 4, 6, 3), 64, 1, (2, 3))
    n = (side + 7) // 8
    found = [unit(g, x, "aspp0", c, 256, 1)] + [unit(g, x, f"aspp{r}", c, 256, 3, dilation=r) for r in (12, 24, 36)]
    whole = unit(g, g.op("GlobalAveragePool", x), "whole", c, 256, 1)
    found.append(g.op("Resize", whole, "", "", g.shape(g.batch, 256, n, n), mode="linear", coordinate_transformation_mode="half_pixel"))
    x = unit(g, unit(g, g.op("Concat", *found, axis=1), "joined", 1280, 256, 1), "out1", 256, 256, 3)
    x = g.conv(x, "out2", 256, 21, 1)
    g.output(g.op("Resize", x, "", "", g.shape(g.batch, 21, side, side), mode="linear", coordinate_transformation_mode="half_pixel"), "classes")


@network((1, 8))
def efficientnet_v2_s(g, small):
    """Tan and Le 2021 at 224 x 224: fused blocks (3x3 expansion) first."""
    act, gate = g.silu, lambda v: g.op("Sigmoid", v)
    x, cin = act(conv_bn(g, g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 24, 3, 2, m2=1 / 3)), 24
    for i, (fused, t, c, n, s) in enumerate([(1, 1, 24, 2, 1), (1, 4, 48, 4, 2), (1, 4, 64, 4, 2), (0, 4, 128, 6, 2), (0, 6, 160, 9, 1), (0, 6, 256, 15, 2)]):
        for j in range(1 if small else n):
            name, stride = f"b{i}.{j}", s if j == 0 else 1
            if not fused:
                x = inverted(g, x, name, cin, cin * t, c, 3, stride, act, lambda y, n, m, few=cin // 4: squeeze_excite(g, y, n, m, few, act, gate))
            else:
                y = act(conv_bn(g, x, name + ".1", cin, cin * t, 3, stride))
                y = conv_bn(g, y, name + ".2", cin * t, c, 1, m2=0.5, gamma=0.6) if t > 1 else y
                x = g.op("Add", x, y) if stride == 1 and cin == c else y
            cin = c
    g.classifier(g.pooled(act(conv_bn(g, x, "head", cin, 1280, 1))), 1280, 1000)


GHOST = [(3, 16, 16, 0, 1), (3, 48, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 20, 2), (5, 120, 40, 32, 1), (3, 240, 80, 0, 2), (3, 200, 80, 0, 1), (3, 184, 80, 0, 1),
         (3, 184, 80, 0, 1), (3, 480, 112, 120, 1), (3, 672, 112, 168, 1), (5, 672, 160, 168, 2), (5, 960, 160, 0, 1), (5, 960, 160, 240, 1), (5, 960, 160, 0, 1), (5, 960, 160, 240, 1)]


@network((1, 8))
def ghostnet(g, small):
    """Han et al. 2020: half of the channels are depthwise functions of the others."""
    relu, same = (lambda v: g.op("Relu", v)), lambda v: v
    gate = lambda v: g.op("Clip", g.op("Div", g.op("Add", v, g.const(3)), g.const(6)), g.const(0), g.const(1))

    def ghost(x, name, cin, cout, act):
        a = act(conv_bn(g, x, name + ".p", cin, cout // 2, 1, m2=0.5))
        return g.op("Concat", a, act(conv_bn(g, a, name + ".c", cout // 2, cout // 2, 3, 1, cout // 2, m2=0.5)), axis=1)
    x, cin = relu(conv_bn(g, g.input("data", [g.batch, 3, 224, 224]), "stem", 3, 16, 3, 2, m2=1 / 3)), 16
    for i, (k, mid, c, se, s) in enumerate(GHOST[:5] if small else GHOST):
        name = f"b{i}"
        y = ghost(x, name + ".1", cin, mid, relu)
        y = conv_bn(g, y, name + ".d", mid, mid, k, 2, mid, m2=0.5) if s == 2 else y
        y = squeeze_excite(g, y, name, mid, se, relu, gate) if se else y
        y = ghost(y, name + ".2", mid, c, same)
        if s == 2 or cin != c:
            x = conv_bn(g, conv_bn(g, x, name + ".s1", cin, cin, k, s, cin), name + ".s2", cin, c, 1)
        x, cin = g.op("Add", x, y), c
    y = g.op("GlobalAveragePool", relu(conv_bn(g, x, "head", cin, 960, 1)))
    y = relu(g.conv(y, "fc0", 960, 1280, 1))
    g.classifier(g.op("Flatten", y, axis=1), 1280, 1000)


@network((1,))
def style_transfer(g, small):
    """Johnson et al. 2016: instance norms, 9x9 kernels, nearest upsampling, reflected borders."""
    side = 64 if small else 224

    def layer(x, name, cin, cout, k, stride=1, up=False, last=False):
        x = g.op("Resize", x, "", g.const([1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor") if up else x
        p = k // 2
        y = g.conv(g.op("Pad", x, g.shape(0, 0, p, p, 0, 0, p, p), mode="reflect"), name, cin, cout, k, stride, pad=0)
        return y if last else g.op("InstanceNormalization", y, g.weight(name + ".g", (cout,), 0.1, 1.0), g.weight(name + ".n", (cout,), 0.02), epsilon=1e-5)
    relu = lambda v: g.op("Relu", v)
    x = relu(layer(g.input("data", [g.batch, 3, side, side]), "1", 3, 32, 9))
    x = relu(layer(relu(layer(x, "2", 32, 64, 3, 2)), "3", 64, 128, 3, 2))
    for i in range(1 if small else 5):
        x = g.op("Add", x, layer(relu(layer(x, f"r{i}.1", 128, 128, 3)), f"r{i}.2", 128, 128, 3))
    x = relu(layer(relu(layer(x, "4", 128, 64, 3, up=True)), "5", 64, 32, 3, up=True))
    g.output(layer(x, "6", 32, 3, 9, last=True), "image")


@network((1,))
def ssd_mobilenet_v2(g, small):
    """Detection heads of depthwise pairs at six scales over MobileNet v2 at 300 x 300; boxes and scores of 1917 anchors."""
    act = lambda v: relu6(g, v)
    x, cin = act(conv_bn(g, g.input("data", [g.batch, 3, 300, 300]), "stem", 3, 32, 3, 2, m2=1 / 3)), 32
    features = []
    for i, (t, c, n, s) in enumerate([(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]):
        for j in range(1 if small else n):
            x, cin = inverted(g, x, f"b{i}.{j}", cin, cin * t, c, 3, s if j == 0 else 1, act), c
        if i == 4:
            features.append((x, cin))
    x, cin = act(conv_bn(g, x, "head", cin, 1280, 1)), 1280
    features.append((x, cin))
    for i, (mid, c) in enumerate([(256, 512), (128, 256), (128, 256), (64, 128)]):
        y = act(conv_bn(g, x, f"e{i}.1", cin, mid, 1))
        y = act(conv_bn(g, y, f"e{i}.2", mid, mid, 3, 2, mid, m2=0.5))
        x, cin = act(conv_bn(g, y, f"e{i}.3", mid, c, 1, m2=0.5)), c
        features.append((x, cin))
    for kind, size in (("boxes", 4), ("scores", 91)):
        found = []
        for i, (f, c) in enumerate(features):
            anchors = 3 if i == 0 else 6
            y = act(conv_bn(g, f, f"{kind}{i}.1", c, c, 3, 1, c))
            y = g.conv(y, f"{kind}{i}.2", c, anchors * size, 1)
            found.append(g.rows(g.transpose(y, 0, 2, 3, 1), -1, size))
        y = g.op("Concat", *found, axis=1)
        g.output(y if kind == "boxes" else g.op("Sigmoid", y), kind)
