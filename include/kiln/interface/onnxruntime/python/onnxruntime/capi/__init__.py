"""The parts of the package; programs reach `onnxruntime_pybind11_state` for its exceptions."""
