"""Small ONNX models as bytes, written here field by field: tests need no package for that."""

import struct

FLOAT, UINT8, INT64, STRING, BOOL, FLOAT16, DOUBLE, BFLOAT16 = 1, 2, 7, 8, 9, 10, 11, 16


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    out = field(1, name)
    if isinstance(value, bool) or isinstance(value, int):
        return out + field(3, int(value)) + field(20, 2)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, str):
        return out + field(4, value) + field(20, 3)
    if isinstance(value, list):
        return out + b"".join(field(8, v) for v in value) + field(20, 7)
    return out + field(6, value) + field(20, 5)  # a graph


def node(op, inputs, outputs, domain="", **attributes):
    out = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    out += field(3, f"{op}_{outputs[0]}") + field(4, op)
    return out + b"".join(field(5, attribute(n, v)) for n, v in attributes.items()) + (field(7, domain) if domain else b"")


def tensor_type(element, shape=None):
    dims = b""
    for d in shape or []:
        dims += field(1, b"" if d is None else field(1, d) if isinstance(d, int) else field(2, d))
    return field(1, field(1, element) + (field(2, dims) if shape is not None else b""))


def sequence_type(inner):
    return field(4, field(1, inner))


def map_type(key, value):
    return field(5, field(1, key) + field(2, value))


def optional_type(inner):
    return field(9, field(1, inner))


def value(name, type_):
    return field(1, name) + field(2, type_)


def tensor(name, element, array):
    dims = b"".join(field(1, d) for d in array.shape)
    return dims + field(2, element) + field(8, name) + field(9, array.tobytes())


def graph(nodes, inputs, outputs, initializers=(), name="net"):
    out = b"".join(field(1, n) for n in nodes) + field(2, name)
    out += b"".join(field(5, i) for i in initializers)
    out += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    return out + field(10, "about the graph")


def model(*graph_parts, opset=17, metadata=None, **graph_settings):
    out = field(1, 8) + field(2, "the producer") + field(4, "a.domain") + field(5, 7) + field(6, "about the model")
    out += field(7, graph(*graph_parts, **graph_settings))
    for domain in ("", "com.microsoft", "ai.onnx.ml"):
        out += field(8, field(1, domain) + field(2, {"": opset, "com.microsoft": 1, "ai.onnx.ml": 2}[domain]))
    return out + b"".join(field(14, field(1, k) + field(2, v)) for k, v in (metadata or {}).items())


def one_op(op, type_, out_type=None, inputs=("x",), **attributes):
    """A model of one node from inputs of one type to `y`."""
    domain = attributes.pop("domain", "")
    given = [value(i, type_) for i in inputs]
    return model([node(op, list(inputs), ["y"], domain, **attributes)], given, [value("y", out_type or type_)])
