"""Classes that programs import by name and that do nothing here: to use one is an error that says so."""

from __future__ import annotations

from typing import Any, NoReturn


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(f"{what}: kiln's package onnxruntime has the name alone")


class SparseTensor:
    """A tensor in a sparse format, which this package cannot make."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("sparse tensors")

    @staticmethod
    def sparse_coo_from_numpy(*_: Any, **__: Any) -> NoReturn:
        """Always an error."""
        _refuse("sparse tensors by coordinates")

    @staticmethod
    def sparse_csr_from_numpy(*_: Any, **__: Any) -> NoReturn:
        """Always an error."""
        _refuse("sparse tensors by rows")


class AdapterFormat:
    """A writer and reader of adapters' files, which this package lacks: `LoraAdapter.Load` takes such a file."""

    def __init__(self, adapter: Any = None) -> None:
        _refuse("writing adapters")

    @staticmethod
    def read_adapter(file_path: Any) -> NoReturn:
        """Always an error."""
        _refuse("reading adapters but by LoraAdapter.Load")


class OrtSyncStream:
    """A stream of a device's work: tensors are the CPU's here, which has none."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("streams of devices")
