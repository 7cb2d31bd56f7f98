"""Ops of one's own: a Python function, which joins a program of the builder's and imports from ONNX, and C++ text."""

from typing import Any

import kiln
import numpy as np


# [op]
@kiln.custom_op("my.domain::Swish")
def swish(x: Any, *, beta: float = 1.0) -> Any:
    """x * sigmoid(beta * x): Ramachandran, Zoph and Le's swish (2017)."""
    return x / (1 + np.exp(-np.float32(beta) * x))


b = kiln.Builder()
x = b.input("x", "f32", ["rows", 64])
b.output(swish(x + 1, beta=2) * b.input("scale", "f32", [64]), "y")
built = kiln.compile(b)
# [/op]
imported = kiln.compile("examples/models/swish.onnx")
print(built.report)

rows = (np.arange(256, dtype=np.float32) / 32 - 4).reshape(4, 64)
scale = (np.arange(64) % 7).astype(np.float32)
expected = (rows + 1) / (1 + np.exp(-2 * (rows + 1))) * scale
for exe in (built, imported):
    assert np.abs(exe(x=rows, scale=scale) - expected).max() < 1e-4

# [source]
leaky = kiln.custom_op(
    "my.domain::Leaky",
    source="return x > 0 ? x : slope * x;",
    attributes={"slope": 0.01},
)
b = kiln.Builder()
b.output(leaky(b.input("x", "f32", ["n"]), slope=0.25), "y")
exe = kiln.compile(b)
# [/source]
assert exe([-4, 4]).tolist() == [-1, 4]
