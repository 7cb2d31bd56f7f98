"""A program of ONNX Runtime classifies scans of handwritten digits through kiln: PYTHONPATH names kiln's package onnxruntime."""

import pathlib

import numpy as np
import onnxruntime as ort

FOLDER = pathlib.Path("examples/models/digits")


# A TensorProto ends with its data.
scans = np.frombuffer((FOLDER / "test_data_set_0/input_0.pb").read_bytes()[-360 * 64 * 4 :], np.float32).reshape(360, 1, 8, 8)
labels = np.frombuffer((FOLDER / "labels.pb").read_bytes()[-360 * 8 :], np.int64)

# [options]
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")  # kiln runs all of it, or there is no session
session = ort.InferenceSession(
    "examples/models/digits/model.onnx",
    options,
    providers=[("MIGraphXExecutionProvider", {"migraphx_fp16_enable": "1"}), "CPUExecutionProvider"],
)
print(session.get_provider_options()["MIGraphXExecutionProvider"]["migraphx_fp16_enable"])  # 1, unless the environment says 0
# [/options]

guesses = session.run(None, {"image": scans})[0].argmax(axis=1)
print(f"accuracy {(guesses == labels).mean()} on {len(labels)} scans by {session.get_providers()[0]}")
assert (guesses == labels).all()

# [binding]
binding = session.io_binding()
probabilities = ort.OrtValue.ortvalue_from_shape_and_type([len(scans), 10], np.float32)
binding.bind_cpu_input("image", scans)
binding.bind_ortvalue_output("probabilities", probabilities)
session.run_with_iobinding(binding)  # reads and writes where the program has the arrays
# [/binding]
assert (probabilities.numpy().argmax(axis=1) == labels).all()
