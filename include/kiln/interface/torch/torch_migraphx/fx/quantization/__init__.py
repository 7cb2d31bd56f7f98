"""What prepare_fx() of torch.ao.quantization is given for kiln: int8, weights by channel."""

from __future__ import annotations

from typing import Any

from torch.ao.quantization import QConfig, QConfigMapping, default_per_channel_weight_observer
from torch.ao.quantization.backend_config import get_native_backend_config
from torch.ao.quantization.observer import HistogramObserver
import torch

__all__ = ["get_migraphx_backend_config", "get_migraphx_qconfig", "get_migraphx_qconfig_mapping"]


def get_migraphx_qconfig() -> QConfig:
    """Activations are symmetric around 128 in eight bits without a sign, which PyTorch's own kernels run, too; weights
    have a scale for each channel."""
    return QConfig(
        activation=HistogramObserver.with_args(qscheme=torch.per_tensor_symmetric, dtype=torch.quint8),
        weight=default_per_channel_weight_observer,
    )


def get_migraphx_qconfig_mapping() -> QConfigMapping:
    """That configuration for all operators that the backend quantizes."""
    return QConfigMapping().set_global(get_migraphx_qconfig())


def get_migraphx_backend_config() -> Any:
    """The operators that are quantized: those of PyTorch's own kernels."""
    return get_native_backend_config()
