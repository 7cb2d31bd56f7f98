"""PyTorch's tensors and kiln's arrays, without a copy."""

from __future__ import annotations

from typing import Any

import torch

from .. import _kiln

_to_dlpack = torch._C._to_dlpack
_from_dlpack = torch._C._from_dlpack


def to_kiln(x: torch.Tensor) -> Any:
    """What a kiln executable reads where the tensor's elements are."""
    if x.requires_grad:
        x = x.detach()
    if x.dtype is torch.bool:  # DLPack has no word for it before version 1
        return x.numpy()
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    return _to_dlpack(x)


def from_kiln(x: _kiln.Tensor) -> torch.Tensor:
    """A tensor over the elements of a run's result."""
    if x.dtype == "bool":
        return torch.from_numpy(x.numpy())
    return _from_dlpack(x.__dlpack__())  # type: ignore[no-any-return]
