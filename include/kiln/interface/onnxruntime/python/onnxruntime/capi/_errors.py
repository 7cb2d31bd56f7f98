"""The exceptions of ONNX Runtime's Python package, one for each code of a status."""

from __future__ import annotations


class Fail(Exception):
    """Code 1: a failure that no other code names."""


class InvalidArgument(Exception):
    """Code 2."""


class NoSuchFile(Exception):
    """Code 3."""


class NoModel(Exception):
    """Code 4."""


class EngineError(Exception):
    """Code 5."""


class RuntimeException(Exception):
    """Code 6."""


class InvalidProtobuf(Exception):
    """Code 7."""


class ModelLoaded(Exception):
    """Code 8."""


class NotImplemented(Exception):  # noqa: A001, the name that programs know
    """Code 9."""


class InvalidGraph(Exception):
    """Code 10."""


class EPFail(Exception):
    """Code 11: an execution provider failed."""


class ModelLoadCanceled(Exception):
    """Code 12."""


class ModelRequiresCompilation(Exception):
    """Code 13."""


class NotFound(Exception):
    """Code 14."""


_BY_CODE: dict[int, tuple[str, type[Exception]]] = {
    1: ("FAIL", Fail),
    2: ("INVALID_ARGUMENT", InvalidArgument),
    3: ("NO_SUCHFILE", NoSuchFile),
    4: ("NO_MODEL", NoModel),
    5: ("ENGINE_ERROR", EngineError),
    6: ("RUNTIME_EXCEPTION", RuntimeException),
    7: ("INVALID_PROTOBUF", InvalidProtobuf),
    8: ("MODEL_LOADED", ModelLoaded),
    9: ("NOT_IMPLEMENTED", NotImplemented),
    10: ("INVALID_GRAPH", InvalidGraph),
    11: ("EP_FAIL", EPFail),
    12: ("MODEL_LOAD_CANCELED", ModelLoadCanceled),
    13: ("MODEL_REQUIRES_COMPILATION", ModelRequiresCompilation),
    14: ("NOT_FOUND", NotFound),
}


for _, _kind in _BY_CODE.values():
    _kind.__module__ = "onnxruntime.capi.onnxruntime_pybind11_state"  # where programs find it


def error_of(code: int, message: str) -> Exception:
    """The exception of a status, with the text that ONNX Runtime's package gives it."""
    name, kind = _BY_CODE.get(code, ("UNKNOWN", RuntimeError))
    return kind(f"[ONNXRuntimeError] : {code} : {name} : {message}")
