"""The functions of migraphx.backend as MIGraphXBackend, the class that test suites of ONNX backends are given."""

from __future__ import annotations

from migraphx import backend as _backend

from .backend_rep import MIGraphXBackendRep as MIGraphXBackendRep

is_compatible = _backend.is_compatible
prepare = _backend.prepare
run = _backend.run_model
supports_device = _backend.supports_device


def get_device() -> tuple[str, str]:
    """The devices that programs are compiled for."""
    return ("CPU", "GPU")


class MIGraphXBackend:
    """ONNX's backend interface. One device holds for all calls that name none: set_device()."""

    set_device = staticmethod(_backend.set_device)
    supports_device = staticmethod(_backend.supports_device)
    is_compatible = staticmethod(_backend.is_compatible)
    prepare = staticmethod(_backend.prepare)
    run_model = staticmethod(_backend.run_model)
    run_node = staticmethod(_backend.run_node)
