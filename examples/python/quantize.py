"""A network in integers of eight bits, by the ranges that samples show, and one with weights of four bits."""

import os
import tempfile

import kiln

FOLDER = "examples/models/digits/"
scans = kiln.read_tensor(FOLDER + "calibration.pb").numpy()

# [quantize]
samples = ({"image": scans[k : k + 16]} for k in range(0, len(scans), 16))
ranges = kiln.calibrate(FOLDER + "model.onnx", samples)
digits = kiln.compile(FOLDER + "model.onnx", precision="int8", ranges=ranges)
# [/quantize]

test = kiln.read_tensor(FOLDER + "test_data_set_0/input_0.pb")
labels = kiln.read_tensor(FOLDER + "labels.pb").numpy()
accuracy = (digits(test).numpy().argmax(axis=1) == labels).mean()
print(f"int8: accuracy {accuracy} on {len(labels)} scans, ranges of {len(ranges)} values")
assert accuracy == 1

light = kiln.quantize(FOLDER + "model.onnx", "int4", weight_method="hqq")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "digits_int4.onnx")
    light.write_onnx(path)  # MatMulNBits, which ONNX Runtime runs too
    accuracy = (kiln.compile(path)(test).numpy().argmax(axis=1) == labels).mean()
print(f"int4: accuracy {accuracy}")
assert accuracy > 0.99
