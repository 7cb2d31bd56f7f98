"""Modules that torch.jit.save() wrote."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import torch

from .. import _kiln


def load_script(path: Any) -> torch.jit.ScriptModule:
    """The module of a TorchScript file (.pt), on the CPU and in the mode of evaluation."""
    file = os.fspath(path)
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except OSError as why:
        raise _kiln.ArgumentError(f"{file}: a file that can be read: {why}") from why
    except zipfile.BadZipFile as why:
        raise _kiln.ArgumentError(f"{file}: an archive of torch.jit.save(), which is a zip file: {why}") from why
    if not any(name.endswith("constants.pkl") for name in names):
        raise _kiln.ArgumentError(
            f"{file}: an archive of torch.jit.save(): found one without code, as torch.save() writes; load it with torch.load() "
            "and compile the module"
        )
    try:
        module = torch.jit.load(file, map_location="cpu")
    except (RuntimeError, ValueError, OSError) as why:
        raise _kiln.ArgumentError(f"{file}: TorchScript that PyTorch {torch.__version__} loads: {why}") from why
    return module.eval() if hasattr(module, "training") else module
