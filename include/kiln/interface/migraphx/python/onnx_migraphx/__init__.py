"""kiln in role of onnx_migraphx: ONNX's backend interface as a class, over migraphx.backend."""
