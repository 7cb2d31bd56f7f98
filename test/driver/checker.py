"""checker.py PROGRAM MODEL SAMPLES FOLDER: onnx.checker accepts the files that `kiln quantize` writes, as far as it knows
their operator set: files of a later one are checked as files of its own where their element types permit."""
import subprocess
import sys

import onnx
from onnx import checker, defs

TYPES = {onnx.TensorProto.DataType.Value(name) for name in onnx.TensorProto.DataType.keys()}


def check(path, operators):
    model = onnx.load(path)
    found = {node.op_type for node in model.graph.node}
    missing = set(operators) - found
    assert not missing, f"{path}: no {missing}, found {sorted(found)}"
    newest = defs.onnx_opset_version()
    for imported in model.opset_import:
        if imported.domain == "" and imported.version > newest:
            imported.version, model.ir_version = newest, onnx.IR_VERSION
    if any(t.data_type not in TYPES for t in model.graph.initializer):
        print(f"{path}: of types that onnx {onnx.__version__} does not know")
        return
    checker.check_model(model)


def main():
    program, network, samples, folder = sys.argv[1:]
    static = ["--to", "int8", "--data", samples]
    files = {
        "qdq": (static, ["QuantizeLinear", "DequantizeLinear"]),
        "tensor": (static + ["--no-per-channel"], ["QuantizeLinear"]),
        "qoperator": (static + ["--format", "qoperator"], ["QLinearConv", "QGemm"]),
        "symmetric": (static + ["--format", "qoperator", "--symmetric-activations"], ["QLinearConv", "QGemm"]),
        "dynamic": (["--to", "dynamic-int8"], ["DynamicQuantizeLinear", "MatMulInteger"]),
        "windows": (["--to", "dynamic-int8", "--convolutions"], ["ConvInteger", "MatMulInteger"]),
        "halves": (["--to", "fp16"], ["Conv"]),
        "blocks": (["--to", "int4"], ["MatMulNBits"]),
        "blocks_qdq": (["--to", "int4", "--format", "qdq"], ["DequantizeLinear"]),
        "bytes_qdq": (["--to", "int4", "--bits", "8", "--format", "qdq"], ["DequantizeLinear"]),
    }
    for name, (options, operators) in files.items():
        path = f"{folder}/{name}.onnx"
        subprocess.run([program, "quantize", network, "-o", path, *options], check=True, stdout=subprocess.DEVNULL)
        check(path, operators)


main()
