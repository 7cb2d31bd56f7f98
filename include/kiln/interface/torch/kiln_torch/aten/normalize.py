"""Normalizations, softmax and losses."""

from __future__ import annotations

import math
from typing import Any

import torch

from ... import ops
from ..types import HALVES, torch_dtype
from .convolution import along_channels
from .create import dtype_or
from .reduce import reduced
from .shape import axis_of
from .table import lowers


def widened(c: Any, x: Any) -> Any:
    """Halves as f32, other values as they are."""
    return c.convert(x, "f32") if x.dtype in HALVES else x


def statistics(x: Any, axes: list[int], epsilon: float) -> tuple[Any, Any]:
    """The mean and the inverse standard deviation along axes, which keep extent 1."""
    mean = ops.reduce_mean(x, axes=axes)
    apart = ops.sub(x, mean)
    return mean, ops.rsqrt(ops.add(ops.reduce_mean(ops.mul(apart, apart), axes=axes), epsilon))


def _scaled_and_shifted(c: Any, x: Any, scale: Any, shift: Any, mean: Any, inverse: Any) -> Any:
    """(x - mean) * inverse * scale + shift by channel, in f32 for halves."""
    wide = widened(c, x)
    factor = inverse if scale is None else ops.mul(c.convert(scale, wide.dtype), inverse)
    offset = ops.neg(ops.mul(mean, factor))
    if shift is not None:
        offset = ops.add(c.convert(shift, wide.dtype), offset)
    y = ops.add(ops.mul(wide, along_channels(c, wide, factor)), along_channels(c, wide, offset))
    return c.convert(y, x.dtype)


def batch_normalized(
    c: Any, x: Any, scale: Any, shift: Any, mean: Any, variance: Any, by_batch: bool, epsilon: float
) -> tuple[Any, Any, Any]:
    """The result, and the mean and the inverse deviation of the batch, which are empty where it did not decide."""
    wide = widened(c, x)
    if by_batch:
        axes = [0, *range(2, len(x.shape))]
        own, inverse = (v.reshape(x.shape[1:2]) for v in statistics(wide, axes, epsilon))
        return _scaled_and_shifted(c, x, scale, shift, own, inverse), own, inverse
    mean, variance = c.convert(mean, wide.dtype), c.convert(variance, wide.dtype)
    inverse = ops.rsqrt(ops.add(variance, epsilon))
    none = c.full([0], 0, wide.dtype)
    return _scaled_and_shifted(c, x, scale, shift, mean, inverse), none, none


def _keeps_statistics(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, *how: Any) -> str | None:
    return "it is in training and changes its running statistics" if training and mean is not None else None


@lowers("native_batch_norm", "_native_batch_norm_legit", "miopen_batch_norm", check=_keeps_statistics)
def native_batch_norm(
    c: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, epsilon: float
) -> Any:
    return _all_results(c, batch_normalized(c, x, weight, bias, mean, variance, training, epsilon))


def _all_results(c: Any, made: tuple[Any, ...]) -> tuple[Any, ...]:
    """Results in the dtypes that PyTorch gives them."""
    return tuple(v if dtype is None else c.convert(v, dtype) for v, dtype in zip(made, c.dtypes))


@lowers("cudnn_batch_norm", check=_keeps_statistics, makes=3)
def cudnn_batch_norm(c: Any, *args: Any) -> Any:
    return (*native_batch_norm(c, *args), None)


@lowers("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(c: Any, x: Any, weight: Any, bias: Any, training: bool, momentum: float, epsilon: float) -> Any:
    return _all_results(c, batch_normalized(c, x, weight, bias, None, None, True, epsilon))


@lowers("_native_batch_norm_legit_no_training")
def batch_norm_of_inference(
    c: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, epsilon: float
) -> Any:
    return _all_results(c, batch_normalized(c, x, weight, bias, mean, variance, False, epsilon))


@lowers("batch_norm", check=_keeps_statistics)
def batch_norm(
    c: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, epsilon: float,
    cudnn: bool = False,
) -> Any:  # fmt: skip
    return batch_normalized(c, x, weight, bias, mean, variance, training, epsilon)[0]


@lowers("instance_norm", check=_keeps_statistics)
def instance_norm(
    c: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, by_input: bool, momentum: float, epsilon: float,
    cudnn: bool = False,
) -> Any:  # fmt: skip
    if not by_input:
        return batch_normalized(c, x, weight, bias, mean, variance, False, epsilon)[0]
    y = widened(c, x).normalize(list(range(2, len(x.shape))), epsilon)
    return c.convert(_affine_by_channel(c, y, weight, bias), x.dtype)


def _affine_by_channel(c: Any, y: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        y = ops.mul(y, along_channels(c, y, c.convert(weight, y.dtype)))
    return y if bias is None else ops.add(y, along_channels(c, y, c.convert(bias, y.dtype)))


def layer_normalized(c: Any, x: Any, lens: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    axes = list(range(len(x.shape) - len(lens), len(x.shape)))
    y = c.convert(widened(c, x).normalize(axes, epsilon), x.dtype)
    if weight is not None:
        y = ops.mul(y, c.convert(weight, x.dtype))
    return y if bias is None else ops.add(y, c.convert(bias, x.dtype))


@lowers("layer_norm")
def layer_norm(c: Any, x: Any, lens: Any, weight: Any = None, bias: Any = None, epsilon: float = 1e-5, *how: Any) -> Any:
    return layer_normalized(c, x, lens, weight, bias, epsilon)


@lowers("native_layer_norm")
def native_layer_norm(c: Any, x: Any, lens: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    y = layer_normalized(c, x, lens, weight, bias, epsilon)
    if not c.reads(1) and not c.reads(2):
        return y, None, None
    axes = list(range(len(x.shape) - len(lens), len(x.shape)))
    mean, inverse = statistics(widened(c, x), axes, epsilon)
    return y, c.convert(mean, c.dtypes[1]), c.convert(inverse, c.dtypes[2])


@lowers("rms_norm")
def rms_norm(c: Any, x: Any, lens: Any, weight: Any = None, epsilon: float | None = None) -> Any:
    axes = list(range(len(x.shape) - len(lens), len(x.shape)))
    wide = widened(c, x)
    least = torch.finfo(torch_dtype(wide.dtype)).eps if epsilon is None else epsilon
    inverse = ops.rsqrt(ops.add(ops.reduce_mean(ops.mul(wide, wide), axes=axes), least))
    y = c.convert(ops.mul(wide, inverse), x.dtype)
    return y if weight is None else ops.mul(y, c.convert(weight, x.dtype))


def group_normalized(c: Any, x: Any, groups: int, weight: Any, bias: Any, epsilon: float) -> Any:
    y = _in_groups(widened(c, x), groups).normalize([2], epsilon).reshape(x.shape)
    return c.convert(_affine_by_channel(c, y, weight, bias), x.dtype)


def _in_groups(x: Any, groups: int) -> Any:
    return x.reshape([x.shape[0], groups, math.prod(x.shape[1:]) // groups])


@lowers("group_norm")
def group_norm(
    c: Any, x: Any, groups: int, weight: Any = None, bias: Any = None, epsilon: float = 1e-5, cudnn: bool = True
) -> Any:
    return group_normalized(c, x, groups, weight, bias, epsilon)


@lowers("native_group_norm")
def native_group_norm(
    c: Any, x: Any, weight: Any, bias: Any, n: Any, channels: Any, rest: Any, groups: int, epsilon: float
) -> Any:
    y = group_normalized(c, x, groups, weight, bias, epsilon)
    if not c.reads(1) and not c.reads(2):
        return y, None, None
    mean, inverse = statistics(_in_groups(widened(c, x), groups), [2], epsilon)
    return y, c.convert(mean.squeeze([2]), c.dtypes[1]), c.convert(inverse.squeeze([2]), c.dtypes[2])


def _softmax(c: Any, x: Any, dim: int, dtype: str, logarithm: bool) -> Any:
    x = c.convert(x, dtype)
    if not x.shape:
        return c.constant(0 if logarithm else 1, dtype)
    axis, before = axis_of(x, dim), c.before_reshape(x)
    if axis == len(x.shape) - 1 and before.shape[-1:] == x.shape[-1:]:  # the rows are those before
        y = before.log_softmax(len(before.shape) - 1) if logarithm else before.softmax(len(before.shape) - 1)
        return y if before is x else c.reshaped(y, x.shape)
    return x.log_softmax(axis) if logarithm else x.softmax(axis)


@lowers("softmax.int", "_safe_softmax")
def softmax(c: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    y = _softmax(c, x, dim, dtype_or(dtype, x.dtype), False)
    if c.name != "aten::_safe_softmax":
        return y
    # a row of -infinity is 0
    hidden = ops.reduce_max(x, axes=[axis_of(x, dim)]) if x.shape else x
    none = ops.is_inf(hidden, detect_positive=False)
    return ops.where(none, c.constant(0, y.dtype), y)


@lowers("_softmax")
def softmax_of_half(c: Any, x: Any, dim: int, half_to_float: bool) -> Any:
    return _softmax(c, x, dim, c.dtype, False)


@lowers("log_softmax.int")
def log_softmax(c: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    return _softmax(c, x, dim, dtype_or(dtype, x.dtype), True)


@lowers("_log_softmax")
def log_softmax_of_half(c: Any, x: Any, dim: int, half_to_float: bool) -> Any:
    return _softmax(c, x, dim, c.dtype, True)


def _mean_or_sum(c: Any, losses: Any, reduction: int) -> Any:
    if reduction == 0:
        return losses
    return reduced(ops.reduce_mean if reduction == 1 else ops.reduce_sum, losses, None, False)


@lowers("nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d", "nll_loss_nd")
def nll_loss(c: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1, ignored: int = -100) -> Any:
    alone = len(x.shape) == 1
    if alone:
        x, target = x.unsqueeze([0]), target.reshape([1])
    counted = ops.logical_not(target.equal(c.constant(ignored, target.dtype)))
    known = ops.where(counted, target, c.constant(0, target.dtype))
    picked = ops.gather_elements(x, c.convert(known, "i64").unsqueeze([1]), axis=1).squeeze([1])
    weights = c.full([x.shape[1]], 1, x.dtype) if weight is None else weight
    share = ops.where(counted, weights.gather(known, 0), c.constant(0, x.dtype))
    losses = ops.neg(ops.mul(picked, share))
    total = reduced(ops.reduce_sum, share, None, False)
    if reduction == 0:
        made = losses.reshape([]) if alone else losses
        total = c.constant(0, x.dtype)
    else:
        made = reduced(ops.reduce_sum, losses, None, False)
        made = ops.div(made, total) if reduction == 1 else made
    return (made, total) if c.name.endswith("_forward") else made


@lowers("mse_loss")
def mse_loss(c: Any, x: Any, target: Any, reduction: int = 1) -> Any:
    return _mean_or_sum(c, ops.square_difference(*c.promote(x, target)), reduction)


@lowers("l1_loss")
def l1_loss(c: Any, x: Any, target: Any, reduction: int = 1) -> Any:
    return _mean_or_sum(c, ops.abs(ops.sub(*c.promote(x, target))), reduction)


@lowers("huber_loss", "smooth_l1_loss")
def huber_loss(c: Any, x: Any, target: Any, reduction: int = 1, delta: float = 1) -> Any:
    apart = ops.abs(ops.sub(*c.promote(x, target)))
    if delta == 0:
        return _mean_or_sum(c, apart, reduction)
    near = c.scaled(ops.mul(apart, apart), 0.5)
    far = c.scaled(ops.sub(apart, 0.5 * delta), delta)
    losses = ops.where(ops.less(apart, c.constant(delta, apart.dtype)), near, far)
    return _mean_or_sum(c, losses if c.name.endswith("huber_loss") else c.scaled(losses, 1 / delta), reduction)
