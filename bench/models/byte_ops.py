"""One model for each operator between bytes: DequantizeLinear, the operator, QuantizeLinear, or its QLinear form."""
import numpy as np
from graph import Graph, model
from onnx import helper

IN, OUT = 0.04, 0.05  # scales


def between(f, shape, inputs, g):
    """`f` over dequantized inputs, quantized again."""
    made = []
    for i in range(inputs):
        x = g.input(f"x{i}", shape, np.uint8)
        made.append(g.op("DequantizeLinear", x, g.const(IN), g.const(128, np.uint8)))
    return g.op("QuantizeLinear", f(g, *made), g.const(OUT), g.const(121, np.uint8))


def linear_form(kind, shape, inputs, g, **attrs):
    """com.microsoft's operator over bytes, each operand with its scale and zero point."""
    ins = []
    for i in range(inputs):
        ins += [g.input(f"x{i}", shape, np.uint8), g.const(IN), g.const(128, np.uint8)]
    scales = [g.const(OUT), g.const(121, np.uint8)]
    if kind == "QLinearConcat":
        ins = scales + ins
    elif kind == "QLinearSoftmax":
        ins += [g.const(1 / 256), g.const(0, np.uint8)]
    else:
        ins += scales
    out = g.fresh("y")
    g.nodes.append(helper.make_node(kind, ins, [out], name=g.fresh("n"), domain="com.microsoft", **attrs))
    return out


IMAGE = {"": [1, 64, 28, 28], "_large": [8, 64, 112, 112]}  # cached, and not
ROWS = {"": [1, 128, 768], "_large": [16, 512, 768]}
WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}


def add(name, sizes, make):
    """Registers `name` for each size; `make(g, shape)` gives the output."""
    for suffix, shape in sizes.items():
        def build(small, seed, shape=shape, full=name + suffix):
            g = Graph(full, seed)
            some = shape if not small else [1] + [min(d, 8) for d in shape[1:-1]] + shape[-1:]
            g.output(make(g, some), "y")
            return g
        build.__name__ = name + suffix
        model(build)


def qdq(name, f, sizes, inputs=1):
    add("byte_" + name, sizes, lambda g, shape: between(f, shape, inputs, g))


def qlinear(name, kind, sizes, inputs=1, **attrs):
    add("qlinear_" + name, sizes, lambda g, shape: linear_form(kind, shape, inputs, g, **attrs))


qdq("add", lambda g, a, b: g.op("Add", a, b), IMAGE, 2)
qdq("mul", lambda g, a, b: g.op("Mul", a, b), IMAGE, 2)
qdq("leaky_relu", lambda g, x: g.op("LeakyRelu", x, alpha=0.1), IMAGE)
qdq("sigmoid", lambda g, x: g.op("Sigmoid", x), IMAGE)
qdq("hard_swish", lambda g, x: g.op("HardSwish", x), IMAGE)
qdq("transpose", lambda g, x: g.transpose(x, 0, 2, 3, 1), IMAGE)
qdq("max_pool", lambda g, x: g.op("MaxPool", x, **WINDOW), IMAGE)
qdq("average_pool", lambda g, x: g.op("AveragePool", x, **WINDOW), IMAGE)
qdq("global_average_pool", lambda g, x: g.op("GlobalAveragePool", x), IMAGE)
qdq("concat", lambda g, a, b: g.op("Concat", a, b, axis=1), IMAGE, 2)
qdq("pad", lambda g, x: g.op("Pad", x, g.shape(0, 0, 1, 1, 0, 0, 1, 1)), IMAGE)
qdq("resize", lambda g, x: g.op("Resize", x, "", g.const([1, 1, 2, 2]), mode="linear",
                                coordinate_transformation_mode="half_pixel"), IMAGE)
qdq("softmax", lambda g, x: g.op("Softmax", x, axis=-1), ROWS)
qdq("layer_norm", lambda g, x: g.norm(x, "norm", 768), ROWS)

qlinear("add", "QLinearAdd", IMAGE, 2)
qlinear("mul", "QLinearMul", IMAGE, 2)
qlinear("leaky_relu", "QLinearLeakyRelu", IMAGE, alpha=0.1)
qlinear("sigmoid", "QLinearSigmoid", IMAGE)
qlinear("average_pool", "QLinearAveragePool", IMAGE, **WINDOW)
qlinear("global_average_pool", "QLinearGlobalAveragePool", IMAGE)
qlinear("concat", "QLinearConcat", IMAGE, 2, axis=1)
qlinear("softmax", "QLinearSoftmax", ROWS, axis=-1, opset=13)
