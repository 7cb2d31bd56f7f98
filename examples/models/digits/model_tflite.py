"""Writes model.tflite: the network of model.onnx in int8, as a converter for phones would write it.

    python3 model_tflite.py

Normalizations are part of the convolutions, weights have a scale for each channel, activations one that the images of
calibration.pb say. flatc makes the file (Debian: flatbuffers-compiler).
"""

import json
import pathlib
import subprocess
import tempfile

import numpy
import onnx
import onnx.numpy_helper

HERE = pathlib.Path(__file__).parent
SCHEMA = HERE.parents[2] / "include/kiln/tensorflow/impl/tflite/tflite_file.fbs"


def images():
    tensor = onnx.TensorProto()
    tensor.ParseFromString((HERE / "calibration.pb").read_bytes())
    return onnx.numpy_helper.to_array(tensor).transpose(0, 2, 3, 1)


def number(operator):
    """An operator's number, which older readers take in place of its name."""
    listed = SCHEMA.read_text().split("enum BuiltinOperator : int {")[1].split("}")[0]
    return [name.strip() for name in listed.split(",")].index(operator)


class Model:
    def __init__(self):
        self.buffers, self.tensors, self.codes, self.operators = [{}], [], [], []

    def tensor(self, name, shape, kind, scale, zero, axis=0, data=None, open_batch=False):
        made = {"name": name, "shape": [int(n) for n in shape], "type": kind, "buffer": 0}
        made["quantization"] = {
            "scale": [float(s) for s in numpy.atleast_1d(scale)],
            "zero_point": [int(z) for z in numpy.atleast_1d(zero)],
            "quantized_dimension": axis,
        }
        if open_batch:
            made["shape_signature"] = [-1, *made["shape"][1:]]
        if data is not None:
            made["buffer"] = len(self.buffers)
            self.buffers.append({"data": list(data.tobytes())})
        self.tensors.append(made)
        return len(self.tensors) - 1

    def operator(self, name, inputs, output, kind, **options):
        if name not in self.codes:
            self.codes.append(name)
        self.operators.append(
            {
                "opcode_index": self.codes.index(name),
                "inputs": inputs,
                "outputs": [output],
                "builtin_options_type": kind + "Options",
                "builtin_options": options,
            }
        )

    def write(self, path, first, last):
        model = {
            "version": 3,
            "operator_codes": [{"deprecated_builtin_code": number(c), "builtin_code": c} for c in self.codes],
            "subgraphs": [{"name": "digits", "tensors": self.tensors, "operators": self.operators,
                           "inputs": [first], "outputs": [last]}],
            "buffers": self.buffers,
            "signature_defs": [{"signature_key": "serving_default",
                                "inputs": [{"name": "image", "tensor_index": first}],
                                "outputs": [{"name": "probabilities", "tensor_index": last}]}],
        }
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / (path.stem + ".json")
            text.write_text(json.dumps(model))
            subprocess.run(["flatc", "-b", "-o", str(path.parent), str(SCHEMA), str(text)], check=True)


def range_of(x):
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    scale = (high - low) / 255
    return scale, round(-128 - low / scale)


def convolved(x, w):
    padded = numpy.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    n, height, width, _ = x.shape
    out = 0
    for i in range(3):
        for j in range(3):
            out = out + padded[:, i : i + height, j : j + width] @ w[:, i, j].T
    return out


def pooled(x):
    n, height, width, channels = x.shape
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).max((2, 4))


def main():
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in onnx.load(HERE / "model.onnx").graph.initializer}
    model, x = Model(), images()
    scale, zero = range_of(x)
    first = last = model.tensor("image", (1, *x.shape[1:]), "INT8", scale, zero, open_batch=True)

    def given(name, w, b):
        """Weights [units, ...] and their bias, as int8 and int32."""
        steps = numpy.abs(w).reshape(len(w), -1).max(1) / 127
        numbers = numpy.round(w / steps.reshape(-1, *[1] * (w.ndim - 1))).astype(numpy.int8)
        zeros = numpy.zeros(len(w), int)
        biases = numpy.round(b / (steps * scale)).astype(numpy.int32)
        return [
            model.tensor(name + "/weights", w.shape, "INT8", steps, zeros, 0, numbers),
            model.tensor(name + "/bias", b.shape, "INT32", steps * scale, zeros, 0, biases),
        ]

    def result(name, values, own=None):
        nonlocal scale, zero, last
        scale, zero = own or range_of(values)
        last = model.tensor(name, (1, *values.shape[1:]), "INT8", scale, zero)
        return last

    for layer, (conv, norm, pools) in enumerate([(0, 1, False), (3, 4, True), (7, 8, True)]):
        part = {p: weights[f"net.{norm}.{p}"] for p in ("weight", "bias", "running_mean", "running_var")}
        factor = part["weight"] / numpy.sqrt(part["running_var"] + 1e-5)
        w = (weights[f"net.{conv}.weight"] * factor.reshape(-1, 1, 1, 1)).transpose(0, 2, 3, 1)
        b = part["bias"] - part["running_mean"] * factor
        inputs = [last, *given(f"conv{layer}", w, b)]
        x = numpy.maximum(convolved(x, w) + b, 0)
        model.operator("CONV_2D", inputs, result(f"conv{layer}", x), "Conv2D", padding="SAME", stride_w=1, stride_h=1,
                       fused_activation_function="RELU")
        if pools:
            x, before = pooled(x), last
            model.operator("MAX_POOL_2D", [before], result(f"pool{layer}", x, (scale, zero)), "Pool2D", padding="VALID",
                           stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    # rows in the order of [height, width, channels]
    hidden = weights["net.12.weight"].reshape(64, 64, 2, 2).transpose(0, 2, 3, 1).reshape(64, 256)
    x = x.reshape(len(x), -1)
    for name, w, b, act in [("hidden", hidden, "net.12.bias", "RELU"), ("scores", weights["net.14.weight"], "net.14.bias", "NONE")]:
        inputs = [last, *given(name, w, weights[b])]
        x = x @ w.T + weights[b]
        x = numpy.maximum(x, 0) if act == "RELU" else x
        model.operator("FULLY_CONNECTED", inputs, result(name, x), "FullyConnected", fused_activation_function=act)
    before = last
    model.operator("SOFTMAX", [before], result("probabilities", x, (1 / 256, -128)), "Softmax", beta=1.0)
    model.write(HERE / "model.tflite", first, last)


if __name__ == "__main__":
    main()
