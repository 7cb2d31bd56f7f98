"""What the tests of the package onnxruntime share. They skip where cmake/peer.sh got no ONNX Runtime."""

import glob
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
DIGITS = str(ROOT / "examples/models/digits/model.onnx")
MIGRAPHX, KILN, CPU = "MIGraphXExecutionProvider", "KilnExecutionProvider", "CPUExecutionProvider"

_machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, "none")
found = glob.glob(f"{ROOT}/build/peer/node_modules/onnxruntime-node/bin/*/linux/{_machine}/libonnxruntime.so.1")
if not found:
    print("SKIPPED: no ONNX Runtime (cmake/peer.sh): the package onnxruntime is not tested")
    sys.exit(77)
os.environ.setdefault("KILN_ONNXRUNTIME_LIBRARY", found[0])
