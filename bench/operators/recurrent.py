"""Recurrent layers and loops: (steps, batch, features, states)."""
from onnx import TensorProto, helper

from case import case, cycle, given, graph_case, weight, x

SIZES = [(50, 1, 64, 64), (100, 1, 256, 256)]
BATCHES = [(20, 8, 64, 128), (64, 16, 512, 512)]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layer(kind, variant, directions=1, sizes=SIZES, types="f32", lengths=False, **attrs):
    gates = GATES[kind]
    way = {"direction": "bidirectional"} if directions == 2 else {}
    case(kind, lambda t, b, i, h: [x(t, b, i), weight(directions, gates * h, i, std=i ** -0.5), weight(directions, gates * h, h, std=h ** -0.5),
                                   weight(directions, 2 * gates * h, std=0.1)] + ([cycle((b,), [t, t // 2, 3], "i32")] if lengths else []),
         types, sizes, variant=variant, hidden_size=lambda t, b, i, h: h, outs=3 if kind == "LSTM" else 2, **way, **attrs)


for kind in GATES:
    layer(kind, "batch 1")
    layer(kind, "batches", sizes=BATCHES)
    layer(kind, "two ways", 2)
    layer(kind, "two ways, batches", 2, BATCHES)
    layer(kind, "lengths", 1, BATCHES, lengths=True)
    layer(kind, "odd", sizes=[(33, 3, 37, 51), (47, 5, 333, 257)])
layer("GRU", "linear before reset", linear_before_reset=1)
layer("GRU", "linear before reset, batches", sizes=BATCHES, linear_before_reset=1)
layer("LSTM", "reverse", direction="reverse")
layer("RNN", "relu", activations=["Relu"])


def body(nodes, ins, outs):
    tensor = lambda n, shape=None, t=TensorProto.FLOAT: helper.make_tensor_value_info(n, t, shape)
    return helper.make_graph(nodes, "body", [tensor(*i) for i in ins], [tensor(*o) for o in outs])


def scan(m, steps, width):
    """A decaying sum along rows."""
    m.inits.append(helper.make_tensor("decay", TensorProto.FLOAT, [], [0.9]))
    nodes = [helper.make_node("Mul", ["s", "decay"], ["d"]), helper.make_node("Add", ["d", "r"], ["n"]), helper.make_node("Identity", ["n"], ["y"])]
    return m.op("Scan", x(width), x(steps, width), outs=2, num_scan_inputs=1, body=body(nodes, [("s", [width]), ("r", [width])], [("n", [width]), ("y", [width])]))


def scan_cell(m, steps, width):
    """A plain recurrent cell, spelled out."""
    w = m.put(weight(width, width, std=width ** -0.5))
    nodes = [helper.make_node("MatMul", ["s", w], ["p"]), helper.make_node("Add", ["p", "r"], ["q"]), helper.make_node("Tanh", ["q"], ["n"]),
             helper.make_node("Identity", ["n"], ["y"])]
    of = [1, width]
    return m.op("Scan", x(1, width), x(steps, 1, width), outs=2, num_scan_inputs=1, body=body(nodes, [("s", of), ("r", of)], [("n", of), ("y", of)]))


def loop(m, steps, width):
    """A loop that carries a row and keeps what it was."""
    nodes = [helper.make_node("Mul", ["s", "k"], ["n"]), helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["n"], ["y"])]
    m.inits.append(helper.make_tensor("k", TensorProto.FLOAT, [], [0.99]))
    of = [width]
    inner = body(nodes, [("i", [], TensorProto.INT64), ("go", [], TensorProto.BOOL), ("s", of)], [("on", [], TensorProto.BOOL), ("n", of), ("y", of)])
    return m.op("Loop", given(steps), given(True, "bool"), x(width), outs=2, body=inner)


def branch(m, a, b, c):
    v = m.put(x(a, b, c))
    side = lambda kind: helper.make_graph([helper.make_node(kind, [v], [kind])], kind, [], [helper.make_tensor_value_info(kind, TensorProto.FLOAT, [a, b, c])])
    return m.op("If", cycle((), [1], "bool"), then_branch=side("Neg"), else_branch=side("Abs"))


graph_case("Scan sum", scan, sizes=[(64, 1500), (1000, 4001)])
graph_case("Scan cell", scan_cell, sizes=[(50, 64), (100, 512)])
graph_case("Loop", loop, sizes=[(64, 1500), (1000, 4001)])
graph_case("If", branch)
