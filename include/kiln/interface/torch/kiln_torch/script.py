"""Modules that torch.jit.save() or torch.export wrote."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import torch

from .. import _kiln


def module_of(module: Any) -> Any:
    """What is called: of a file's path the module in it, of an exported program its module."""
    if isinstance(module, (str, os.PathLike)):
        return load_script(module)
    exported = getattr(getattr(torch, "export", None), "ExportedProgram", None)
    return module.module() if exported is not None and isinstance(module, exported) else module


def _is_exported(names: list[str]) -> bool:
    """Whether an archive is torch.export.save()'s, of before or since PyTorch 2.8."""
    return any(name.endswith(("serialized_exported_program.json", "archive_format")) for name in names)


def load_script(path: Any) -> Any:
    """The module of a TorchScript file (.pt), on the CPU and in the mode of evaluation, or of an exported program (.pt2)."""
    file = os.fspath(path)
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except OSError as why:
        raise _kiln.ArgumentError(f"{file}: a file that can be read: {why}") from why
    except zipfile.BadZipFile as why:
        raise _kiln.ArgumentError(f"{file}: an archive of torch.jit.save() or torch.export.save(), which is a zip file: {why}") from why
    if _is_exported(names):
        if not hasattr(torch, "export"):
            raise _kiln.ArgumentError(f"{file}: a file that PyTorch {torch.__version__} reads: found an exported program of PyTorch 2")
        try:
            return torch.export.load(file).module()
        except Exception as why:  # whatever its readers of JSON, pickles and archives raise
            raise _kiln.ArgumentError(f"{file}: an exported program that PyTorch {torch.__version__} loads: {why}") from why
    if not any(name.endswith("constants.pkl") for name in names):
        raise _kiln.ArgumentError(
            f"{file}: an archive of torch.jit.save() or torch.export.save(): found one without code, as torch.save() writes; load it with torch.load() "
            "and compile the module"
        )
    try:
        module = torch.jit.load(file, map_location="cpu")
    except Exception as why:
        raise _kiln.ArgumentError(f"{file}: TorchScript that PyTorch {torch.__version__} loads: {why}") from why
    return module.eval() if hasattr(module, "training") else module
