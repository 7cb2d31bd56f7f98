"""Modules that torch.ao.quantization converted, as floats that are rounded: kiln's passes make integers of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter
from torch.nn import functional

RANGES = {torch.qint8: (-128, 127), torch.quint8: (0, 255)}


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, torch.Tensor) else x


def rounding(name: str, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
    """The operator that rounds in the place of one that makes a quantized tensor, and its arguments."""
    args = (*args, *kwargs.values()) if kwargs and "dtype" in kwargs and len(kwargs) == 1 else args
    if kwargs and "dtype" not in kwargs or len(args) < 4 or not isinstance(args[-1], torch.dtype) or args[-1] not in RANGES:
        return None
    x, scale, zero = args[:3]
    ends = RANGES[args[-1]]
    if name == "quantize_per_tensor":
        return torch.ops.aten.fake_quantize_per_tensor_affine.default, (x, _number(scale), int(_number(zero)), *ends)
    axis = args[3]
    return torch.ops.aten.fake_quantize_per_channel_affine.default, (x, scale.float(), zero.to(torch.int32), axis, *ends)


def _round(x: torch.Tensor, scale: Any, zero: Any) -> torch.Tensor:
    return torch.quantize_per_tensor(x, float(_number(scale)), int(_number(zero)), torch.quint8)


class _Form(torch.nn.Module):
    """A quantized convolution or linear layer, as the rounded float layer that it stands for."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        weight = layer.weight()
        self.per_channel = weight.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric)
        if self.per_channel:
            self.scale, self.zero = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
            self.axis = weight.q_per_channel_axis()
        else:
            self.scale, self.zero = weight.q_scale(), weight.q_zero_point()
        self.weight, self.bias = weight.dequantize(), layer.bias()
        self.layer = [layer]  # not a part of this one
        self.relu = "ReLU" in type(layer).__name__

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        layer = self.layer[0]
        if self.per_channel:
            weight: Any = torch.quantize_per_channel(self.weight, self.scale, self.zero, self.axis, torch.qint8)
        else:
            weight = torch.quantize_per_tensor(self.weight, self.scale, self.zero, torch.qint8)
        if hasattr(layer, "stride"):
            convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[self.weight.dim() - 3]
            y = convolve(x, weight, self.bias, layer.stride, layer.padding, layer.dilation, layer.groups)
        else:
            y = functional.linear(x, weight, self.bias)
        return _round(y.relu() if self.relu else y, layer.scale, layer.zero_point)


def _is_layer(m: Any) -> bool:
    return ".quantized" in type(m).__module__ and callable(getattr(m, "weight", None)) and hasattr(m, "zero_point")


def put_forms(module: Any) -> None:
    """Puts rounded float layers in the place of quantized ones, until the module is as it was again."""
    for m in list(module.modules()) if isinstance(module, torch.nn.Module) else []:
        for name, child in m._modules.items():
            if _is_layer(child):
                m._modules[name] = _Form(child)


# Functions of quantized tensors, in floats.
_FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "add": lambda x, y, scale, zero: _round(x + y, scale, zero),
    "add_relu": lambda x, y, scale, zero: _round((x + y).relu(), scale, zero),
    "mul": lambda x, y, scale, zero: _round(x * y, scale, zero),
    "mul_relu": lambda x, y, scale, zero: _round((x * y).relu(), scale, zero),
    "cat": lambda xs, dim, scale, zero: _round(torch.cat(xs, dim), scale, zero),
}


class _Plain(Interpreter):
    """Runs a graph with functions of floats in the place of those of quantized tensors."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        name = str(target)
        if name.startswith("quantized.") and name.split(".")[1] in _FUNCTIONS:
            values = (*args, *(v for k, v in kwargs.items()))
            return _FUNCTIONS[name.split(".")[1]](*values)
        return super().call_function(target, args, kwargs)


def callable_of(module: Any) -> Callable[..., Any]:
    """What runs a module: it, or its graph in floats where that has functions of quantized tensors."""
    if isinstance(module, GraphModule) and any(str(n.target).startswith("quantized.") for n in module.graph.nodes):
        return lambda *args: _Plain(module, garbage_collect_values=False).run(*args)
    return module
