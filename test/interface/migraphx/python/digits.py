"""A script as users of MIGraphX write it: a model from ONNX, saved and loaded, run on numpy's arrays."""

import os
import tempfile

# [use]
import migraphx
import numpy as np

model = migraphx.parse_onnx("examples/models/digits/model.onnx", default_dim_value=4)
model.compile(migraphx.get_target("cpu"))
params = {}
for name, shape in model.get_parameter_shapes().items():
    params[name] = migraphx.argument(np.zeros(shape.lens(), dtype=np.float32))
result = np.array(model.run(params)[-1])
# [/use]

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "digits.mxr")
    migraphx.save(model, file)
    again = migraphx.load(file)
assert result.shape == (4, 10)
assert (np.array(again.run(params)[-1]) == result).all()
