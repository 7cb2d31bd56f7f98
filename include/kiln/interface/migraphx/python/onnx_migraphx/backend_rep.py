"""A model that a backend has prepared."""

from migraphx.backend import BackendRep as MIGraphXBackendRep

__all__ = ["MIGraphXBackendRep"]
