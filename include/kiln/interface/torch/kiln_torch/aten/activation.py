"""Activations."""

from __future__ import annotations

from typing import Any

from ... import ops
from ..types import exact_in
from .table import lowers


def _fits(x: Any, *numbers: float) -> bool:
    """Whether attributes, which have single precision, are as good as constants of x's dtype."""
    return x.dtype != "f64" or all(exact_in(float(n), "f32") for n in numbers)


@lowers("relu")
def relu(c: Any, x: Any) -> Any:
    return ops.relu(x)


@lowers("relu6")
def relu6(c: Any, x: Any) -> Any:
    return hardtanh(c, x, 0, 6)


@lowers("hardtanh")
def hardtanh(c: Any, x: Any, low: Any = -1, high: Any = 1) -> Any:
    return ops.clip(x, c.constant(low, x.dtype), c.constant(high, x.dtype))


@lowers("hardsigmoid")
def hardsigmoid(c: Any, x: Any) -> Any:
    if x.dtype != "f64":
        return ops.hard_sigmoid(x, alpha=1 / 6, beta=0.5)
    return c.scaled(ops.clip(ops.add(x, 3), c.constant(0, x.dtype), c.constant(6, x.dtype)), 1 / 6)


@lowers("hardswish")
def hardswish(c: Any, x: Any) -> Any:
    return ops.hard_swish(x)


@lowers("elu", "celu", "selu")
def elu(c: Any, x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    name = c.name.split("::")[1]
    if name == "celu":
        input_scale = 1 / alpha
    elif name == "selu":
        alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    if scale == 1 and input_scale == 1 and _fits(x, alpha):
        return ops.elu(x, alpha=float(alpha))
    zero = c.constant(0, x.dtype)
    if x.dtype in ("f16", "bf16"):  # one rounding
        return c.convert(_elu(c, c.convert(x, "f32"), c.constant(0, "f32"), alpha, scale, input_scale), x.dtype)
    return _elu(c, x, zero, alpha, scale, input_scale)


def _elu(c: Any, x: Any, zero: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    below = c.scaled(ops.expm1(x if input_scale == 1 else c.scaled(x, input_scale)), alpha * scale)
    return ops.where(ops.greater(x, zero), x if scale == 1 else c.scaled(x, scale), below)


@lowers("leaky_relu")
def leaky_relu(c: Any, x: Any, slope: Any = 0.01) -> Any:
    if _fits(x, slope):
        return ops.leaky_relu(x, alpha=float(slope))
    return ops.where(ops.greater(x, 0), x, c.scaled(x, slope))


def _is_training(x: Any, *how: Any, **named: Any) -> str | None:
    return "it is in training" if any(v is True for v in (*how, *named.values())) else None


@lowers("rrelu", check=_is_training)
def rrelu(c: Any, x: Any, lower: Any, upper: Any, training: bool = False, generator: Any = None) -> Any:
    return leaky_relu(c, x, (lower + upper) / 2)


@lowers("rrelu_with_noise", check=lambda x, noise, *how: _is_training(x, *how))
def rrelu_with_noise(c: Any, x: Any, noise: Any, lower: Any, upper: Any, *how: Any) -> Any:
    return leaky_relu(c, x, (lower + upper) / 2)


@lowers("prelu", "_prelu_kernel")
def prelu(c: Any, x: Any, slope: Any) -> Any:
    if len(slope.shape) == 1 and c.name == "aten::prelu":
        if slope.shape[0] == 1 or len(x.shape) < 2:
            slope = slope.reshape([])  # one for all
        else:
            slope = ops.broadcast(slope, axis=1, to=x.shape)
    return ops.prelu(x, slope)


@lowers("silu")
def silu(c: Any, x: Any) -> Any:
    return x.silu()


@lowers("mish")
def mish(c: Any, x: Any) -> Any:
    return ops.mish(x)


@lowers("gelu")
def gelu(c: Any, x: Any, *, approximate: str = "none") -> Any:
    return ops.gelu(x, tanh_approximation=approximate == "tanh")


@lowers("softplus")
def softplus(c: Any, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = x if beta == 1 else c.scaled(x, beta)
    made = ops.softplus(scaled)
    if beta != 1:
        made = ops.div(made, c.constant(beta, x.dtype))
    if threshold >= 20 and x.dtype != "f64":  # beyond it the difference is less than a rounding
        return made
    return ops.where(ops.greater(scaled, c.constant(threshold, x.dtype)), x, made)


@lowers("log_sigmoid")
def log_sigmoid(c: Any, x: Any) -> Any:
    return ops.neg(ops.softplus(ops.neg(x)))


@lowers("log_sigmoid_forward", makes=1)
def log_sigmoid_forward(c: Any, x: Any) -> Any:
    return log_sigmoid(c, x), None


@lowers("glu")
def glu(c: Any, x: Any, dim: int = -1) -> Any:
    axis = dim % len(x.shape)
    half = x.shape[axis] // 2
    first = ops.slice(x, axes=[axis], starts=[0], ends=[half])
    second = ops.slice(x, axes=[axis], starts=[half], ends=[x.shape[axis]])
    return ops.mul(first, ops.sigmoid(second))


@lowers("threshold")
def threshold(c: Any, x: Any, limit: Any, value: Any) -> Any:
    return ops.where(ops.less_or_equal(x, c.constant(limit, x.dtype)), c.constant(value, x.dtype), x)


@lowers("hardshrink")
def hardshrink(c: Any, x: Any, limit: Any = 0.5) -> Any:
    inside = ops.less_or_equal(ops.abs(x), c.constant(abs(limit), x.dtype))
    return ops.where(inside, c.constant(0, x.dtype), x) if limit >= 0 else x


@lowers("softshrink")
def softshrink(c: Any, x: Any, limit: Any = 0.5) -> Any:
    if _fits(x, limit):
        return ops.shrink(x, lambd=float(limit), bias=float(limit))
    bound, zero = c.constant(limit, x.dtype), c.constant(0, x.dtype)
    low = ops.where(ops.less(x, ops.neg(bound)), ops.add(x, bound), zero)
    return ops.where(ops.greater(x, bound), ops.sub(x, bound), low)


def _no_dropout(x: Any, p: float, train: Any) -> str | None:
    return "it is in training" if train and p > 0 else None


@lowers("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", check=_no_dropout)
def dropout(c: Any, x: Any, p: float, train: bool) -> Any:
    return x


@lowers("native_dropout", check=_no_dropout)
def native_dropout(c: Any, x: Any, p: float, train: Any) -> Any:
    return x, c.full(x.shape, True, "bool")
