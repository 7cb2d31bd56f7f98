"""Layers of networks: convolutions, pools and normalizations."""

from __future__ import annotations

from typing import Any

from ... import ops
from .table import lowers


def per_axis(values: Any, count: int) -> list[int]:
    """A number for each spatial axis: a list of one stands for all."""
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    return [int(v) for v in (values * count if len(values) == 1 else values)]


def both_ends(pads: list[int]) -> list[int]:
    return pads + pads


@lowers("convolution", "_convolution", "convolution_overrideable")
def convolution(
    c: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *backend: Any,
) -> Any:  # fmt: skip
    axes = len(weight.shape) - 2
    how = {
        "stride": per_axis(stride, axes),
        "dilation": per_axis(dilation, axes),
        "pads": both_ends(per_axis(padding, axes)),
        "group": groups,
    }
    if transposed:
        y = ops.deconvolution(x, weight, output_padding=per_axis(output_padding, axes), **how)
    else:
        y = ops.convolution(x, weight, **how)
    return y if bias is None else y.add_along(1, bias)


@lowers("native_batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm", "miopen_batch_norm")
def batch_norm(c: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, *how: Any) -> Any:
    epsilon = how[-1]
    channels = x.shape[1:2]
    scale = weight if weight is not None else c.full(channels, 1, x.dtype)
    shift = bias if bias is not None else c.full(channels, 0, x.dtype)
    y = x.batch_norm(scale, shift, mean, variance, epsilon)
    empty = c.full([0], 0, x.dtype)
    return y, empty, empty, empty


@lowers("max_pool2d_with_indices", "max_pool2d")
def max_pool(
    c: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    kernel = per_axis(kernel, 2)
    y = x.pool(
        mode="max",
        lengths=kernel,
        stride=per_axis(stride, 2) if stride else kernel,
        dilation=per_axis(dilation, 2),
        pads=both_ends(per_axis(padding, 2)),
        ceil_mode=ceil_mode,
    )
    return (y, None) if c.name.endswith("_with_indices") else y
