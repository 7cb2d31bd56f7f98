"""A convolutional network from an ONNX file classifies scans of handwritten digits."""

import kiln

FOLDER = "examples/models/digits/"

# [flow]
digits = kiln.compile(FOLDER + "model.onnx")
scans = kiln.read_tensor(FOLDER + "test_data_set_0/input_0.pb")
guesses = digits(scans).numpy().argmax(axis=1)
# [/flow]

labels = kiln.read_tensor(FOLDER + "labels.pb").numpy()
accuracy = (guesses == labels).mean()
print(f"accuracy {accuracy} on {len(labels)} scans, {len(digits.report['steps'])} kernels")
print(digits.profile({digits.inputs[0].name: scans}))
assert accuracy == 1
