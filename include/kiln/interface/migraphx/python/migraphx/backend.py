"""ONNX's backend interface (onnx.backend.base) over this package. It needs the package onnx for models that are
ModelProtos and for single nodes; files and bytes are read without it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

from . import _migraphx

_TARGETS = {"CPU": "cpu", "GPU": "gpu", "REF": "ref"}
_device = "CPU"


def set_device(device: str) -> None:
    """The device of calls that name none: "CPU", "GPU" or "REF"; "GPU:0" is "GPU"."""
    global _device
    _device = _checked(device)


def supports_device(device: str) -> bool:
    """Whether programs can be compiled for a device here."""
    kind = device.split(":")[0].upper()
    if kind not in _TARGETS:
        return False
    if kind != "GPU":
        return True
    try:
        _migraphx.gpu_sync()
    except RuntimeError:
        return False
    return True


def is_compatible(model: Any, device: str | None = None, **kwargs: Any) -> bool:
    """Whether a model can be read and compiled for a device."""
    try:
        prepare(model, device, **kwargs)
    except RuntimeError:
        return False
    return True


def prepare(model: Any, device: str | None = None, **kwargs: Any) -> BackendRep:
    """A model that is ready to run. `model` is a ModelProto, a file's name, a model's bytes, a program or what prepare()
    gave. Keywords are those of parse_onnx()."""
    if isinstance(model, BackendRep):
        return model
    if not isinstance(model, _migraphx.program):
        if isinstance(model, (str, os.PathLike)):
            model = _migraphx.parse_onnx(model, **kwargs)
        elif isinstance(model, (bytes, bytearray, memoryview)):
            model = _migraphx.parse_onnx_buffer(model, **kwargs)
        else:
            model = _migraphx.parse_onnx_buffer(model.SerializeToString(), **kwargs)
    elif not model.is_compiled():
        model = model.clone()  # the caller's own stays as it is
    if not model.is_compiled():
        model.compile(_migraphx.get_target(_TARGETS[_checked(device or _device)]))
    return BackendRep(model)


def run_model(model: Any, inputs: Any, device: str | None = None, **kwargs: Any) -> list[Any]:
    """Prepares and runs a model once."""
    return prepare(model, device, **kwargs).run(inputs)


run = run_model


def run_node(
    node: Any, inputs: Sequence[Any], device: str | None = None, outputs_info: Any = None, **kwargs: Any
) -> list[Any]:
    """Runs one NodeProto on numpy arrays. The version of the operator set is the keyword `opset_version`, or the newest
    that the package onnx knows."""
    import numpy

    onnx: Any = importlib.import_module("onnx")
    helper: Any = importlib.import_module("onnx.helper")

    def typed(name: str, array: Any) -> Any:
        return helper.make_tensor_value_info(name, _element_type(array.dtype), array.shape)

    arrays = [numpy.asarray(x) for x in inputs]
    given = [name for name in node.input if name]
    results = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in node.output if name]
    graph = helper.make_graph([node], "node", [typed(n, a) for n, a in zip(given, arrays)], results)
    version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
    return run_model(model, arrays, device, **kwargs)


class BackendRep:
    """A compiled model."""

    def __init__(self, program: _migraphx.program) -> None:
        self.program = program

    def run(self, inputs: Any, **kwargs: Any) -> list[Any]:
        """Runs with arrays in the order of the model's inputs, in a dict by name, or with the only one. Gives numpy arrays."""
        import numpy

        names = self.program.get_parameter_names()
        if not isinstance(inputs, dict):
            listed = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(listed) != len(names):
                raise _migraphx.Error(f"inputs of the model: expected {len(names)} ({', '.join(names)}), found {len(listed)}")
            inputs = dict(zip(names, listed))
        return [numpy.array(out) for out in self.program.run(inputs)]


def _element_type(dtype: Any) -> int:
    helper: Any = importlib.import_module("onnx.helper")
    if hasattr(helper, "np_dtype_to_tensor_dtype"):
        return int(helper.np_dtype_to_tensor_dtype(dtype))
    mapping: Any = importlib.import_module("onnx.mapping")  # before onnx 1.13; newer ones have it no more
    return int(mapping.NP_TYPE_TO_TENSOR_TYPE[dtype])


def _checked(device: str) -> str:
    kind = device.split(":")[0].upper()
    if kind not in _TARGETS:
        raise _migraphx.Error(f"a device: expected one of {', '.join(_TARGETS)}, found {device!r}")
    return kind
