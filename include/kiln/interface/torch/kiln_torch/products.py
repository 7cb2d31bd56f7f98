"""Large products of a traced run, by oneDNN: PyTorch's own go through the system's BLAS, which may be the slow reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

_LARGE = 1 << 22  # multiplications


def run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What an operator gives."""
    if func is torch.ops.aten.mm.default and _is_large(args[0], args[1]):
        return _product(args[0], args[1])
    if func is torch.ops.aten.addmm.default and not kwargs and len(args) == 3 and _is_large(args[1], args[2]):
        return _product(args[1], args[2]) + args[0]
    return func(*args, **kwargs)


def _is_large(a: torch.Tensor, b: torch.Tensor) -> bool:
    return (
        a.dtype == b.dtype == torch.float32
        and a.device.type == b.device.type == "cpu"
        and a.shape[0] * a.shape[1] * b.shape[1] >= _LARGE
        and torch.backends.mkldnn.is_available()
    )


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    linear = getattr(torch._C._nn, "mkldnn_linear", None)
    if linear is None:
        return torch.ops.aten.mm.default(a, b)  # type: ignore[no-any-return]
    return linear(a.contiguous().to_mkldnn(), b.t().contiguous()).to_dense()  # type: ignore[no-any-return]
