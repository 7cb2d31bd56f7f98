"""A multilayer perceptron from the fluent builder: weights are bound by name, the batch is symbolic, and one executable
serves any batch. The network computes exclusive or."""

import kiln
import numpy as np


# [build]
def make_network() -> kiln.Program:
    b = kiln.Builder()
    batch = kiln.symbol("batch", 1)
    x = b.input("x", "f32", [batch, 2])
    hidden = (x.dot(b.weight("w1", "f32", [2, 2])) + b.weight("b1", "f32", [2])).relu()
    y = hidden.dot(b.weight("w2", "f32", [2, 1])) + b.weight("b2", "f32", [1])
    b.output(y, "y")
    return b.finish()


# [/build]

# [run]
weights = {"w1": [[1, 1], [1, 1]], "b1": [0, -1], "w2": [[1], [-2]], "b2": [0]}
mlp = kiln.compile(make_network(), target="cpu", weights=weights)

one = mlp(x=np.array([[1, 0]], dtype=np.float32))
# [/run]
assert one.item() == 1
rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32)
y = mlp(x=rows).numpy()
for (left, right), found in zip(rows, y[:, 0]):
    print(f"{left:g} xor {right:g} = {found:g}")
assert (y[:, 0] == (rows[:, 0] != rows[:, 1])).all()
print(len(mlp.report["steps"]), "kernels")
