"""Convolutions."""

from __future__ import annotations

from typing import Any

import torch

from ... import ops
from .table import lowers


def per_axis(values: Any, count: int) -> list[int]:
    """A number for each spatial axis: a list of one stands for all."""
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    return [int(v) for v in (values * count if len(values) == 1 else values)]


def batched(x: Any, axes: int) -> tuple[Any, bool]:
    """x with a batch, which it may lack."""
    alone = len(x.shape) == axes + 1
    return (x.unsqueeze([0]) if alone else x), alone


def along_channels(c: Any, x: Any, vector: Any) -> Any:
    """A vector with an element for each channel of x[batch, channels, ...], broadcast to x."""
    return ops.broadcast(vector, axis=1, to=x.shape)


def convolved(
    c: Any, x: Any, weight: Any, bias: Any, stride: Any, pads: list[int], dilation: Any, groups: int, extra: Any = None
) -> Any:
    """A convolution or, with its output padding `extra`, a transposed one; `pads` are all begins, then all ends."""
    axes = len(weight.shape) - 2
    x, alone = batched(x, axes)
    how: dict[str, Any] = {"stride": per_axis(stride, axes), "dilation": per_axis(dilation, axes), "pads": pads, "group": groups}
    if extra is None:
        y = ops.convolution(x, weight, **how)
    else:
        y = ops.deconvolution(x, weight, output_padding=per_axis(extra, axes), **how)
    y = y if bias is None else y.add_along(1, bias)
    return y.squeeze([0]) if alone else y


@lowers("convolution", "_convolution", "_convolution.deprecated", "convolution_overrideable")
def convolution(
    c: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *backend: Any,
) -> Any:  # fmt: skip
    pads = per_axis(padding, len(weight.shape) - 2) * 2
    return convolved(c, x, weight, bias, stride, pads, dilation, groups, output_padding if transposed else None)


@lowers("conv1d", "conv2d", "conv3d")
def conv(
    c: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:  # fmt: skip
    return convolved(c, x, weight, bias, stride, per_axis(padding, len(weight.shape) - 2) * 2, dilation, groups)


@lowers("conv1d.padding", "conv2d.padding", "conv3d.padding", "_convolution_mode")
def conv_padded(
    c: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: str = "valid", dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    axes = len(weight.shape) - 2
    pads = [0] * (2 * axes)
    if padding == "same":
        totals = [(n - 1) * d for n, d in zip(weight.shape[2:], per_axis(dilation, axes))]
        pads = [t // 2 for t in totals] + [t - t // 2 for t in totals]
    return convolved(c, x, weight, bias, stride, pads, dilation, groups)


@lowers("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(
    c: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    pads = per_axis(padding, len(weight.shape) - 2) * 2
    return convolved(c, x, weight, bias, stride, pads, dilation, groups, output_padding)


@lowers("im2col")
def im2col(c: Any, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    x, alone = batched(x, 2)
    kernel, dilation, stride = per_axis(kernel, 2), per_axis(dilation, 2), per_axis(stride, 2)
    padding = per_axis(padding, 2)
    x = ops.pad(x, c.constant(0, x.dtype), pads=[0, 0, *padding, 0, 0, *padding]) if any(padding) else x
    for a in (0, 1):  # [n, c, k0, o0, k1, o1]
        axis = 2 + 2 * a
        count = (x.shape[axis] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1
        at = torch.arange(kernel[a])[:, None] * dilation[a] + torch.arange(count) * stride[a]
        x = x.gather(c.constant(at), axis)
    n, channels, k0, o0, k1, o1 = x.shape
    y = x.transpose([0, 1, 2, 4, 3, 5]).reshape([n, channels * k0 * k1, o0 * o1])
    return y.squeeze([0]) if alone else y


@lowers("col2im")
def col2im(c: Any, x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    alone = len(x.shape) == 2
    x = x.unsqueeze([0]) if alone else x
    kernel, dilation, stride = per_axis(kernel, 2), per_axis(dilation, 2), per_axis(stride, 2)
    padding, size = per_axis(padding, 2), per_axis(size, 2)
    whole = [s + 2 * p for s, p in zip(size, padding)]
    at = []
    for a in (0, 1):
        count = (whole[a] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1
        at.append(torch.arange(kernel[a])[:, None] * dilation[a] + torch.arange(count) * stride[a])
    places = at[0][:, None, :, None] * whole[1] + at[1][None, :, None, :]
    n, channels, count = x.shape[0], x.shape[1] // (kernel[0] * kernel[1]), places.numel()
    index = c.constant(places.reshape(1, 1, count)).broadcast_to([n, channels, count])
    zeros = c.full([n, channels, whole[0] * whole[1]], 0, x.dtype)
    y = ops.scatter_elements(zeros, index, x.reshape([n, channels, count]), axis=2, reduction="add")
    y = y.reshape([n, channels, *whole])
    ends = [p + s for p, s in zip(padding, size)]
    y = ops.slice(y, axes=[2, 3], starts=padding, ends=ends) if any(padding) else y
    return y.squeeze([0]) if alone else y
