"""Overloads of later PyTorchs, with what they compute: they are tested where this one lacks them."""

import math

import torch


class Overload:
    """What a graph calls: an overload's name and schema, and a function."""

    def __init__(self, schema, function):
        self._schema = torch._C.parse_schema(schema if "::" in schema else "aten::" + schema)
        self._function = function
        self.__name__ = self.name().replace("::", "_").replace(".", "_")
        self.__module__ = __name__

    def name(self):
        return self._schema.name + ("." + self._schema.overload_name if self._schema.overload_name else "")

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __repr__(self):
        return self.name()


def batch_norm(x, weight, bias, mean, variance, training, momentum, eps):
    return torch.ops.aten.native_batch_norm(x, weight, bias, mean, variance, training, momentum, eps)


def attention(q, k, v, mask=None, dropout=0.0, causal=False, *, scale=None, enable_gqa=False):
    k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) if enable_gqa else x for x in (k, v))
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).nan_to_num(0.0) @ v


def rms_norm(x, lens, weight=None, eps=None):
    dims = tuple(range(-len(lens), 0))
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    y = (wide * (wide * wide).mean(dims, keepdim=True).add(eps).rsqrt()).to(x.dtype)
    return y if weight is None else y * weight


def flags(op):
    def over(x, dim=None, keepdim=False):
        for d in sorted(dim if dim is not None else range(x.dim()), reverse=True):
            x = op(x, d, keepdim)
        return x

    return over


def squeeze(x, dims):
    for d in sorted((d % x.dim() for d in dims), reverse=True):
        x = x.squeeze(d)
    return x


def along(x, v, axis):
    return v if axis is None else v.reshape([-1 if d == axis else 1 for d in range(x.dim())])


def quantize(x, scale, zero, low, high, dtype, axis=None):
    return (torch.round(x / along(x, scale, axis)) + along(x, zero, axis)).clamp(low, high).to(dtype)


def dequantize(x, scale, zero, low, high, dtype, axis=None, *, out_dtype=None):
    y = (x.float() - (0 if zero is None else along(x, zero, axis))) * along(x, scale, axis)
    return y.to(out_dtype or torch.float32)


QKV, CAUSAL = "Tensor query, Tensor key, Tensor value", "float dropout_p=0.0, bool is_causal=False"
NORM = "Tensor input, Tensor? weight, Tensor? bias"
SPACE, INTEGERS = "quantized_decomposed::", "int quant_min, int quant_max, ScalarType dtype"
OUT = "*, ScalarType? out_dtype=None) -> Tensor"
LATER = [
    ("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", rms_norm),
    (f"_native_batch_norm_legit({NORM}, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum,"
     " float eps) -> (Tensor, Tensor, Tensor)", batch_norm),
    (f"_native_batch_norm_legit.no_stats({NORM}, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     lambda x, w, b, *how: batch_norm(x, w, b, None, None, *how)),
    (f"_native_batch_norm_legit_no_training({NORM}, Tensor running_mean, Tensor running_var, float momentum, float eps)"
     " -> (Tensor, Tensor, Tensor)", lambda x, w, b, m, v, *how: batch_norm(x, w, b, m, v, False, *how)),
    ("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", lambda x, w: torch.where(x > 0, x, x * w)),
    ("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     lambda x, dim, dtype=None: x.softmax(dim, dtype).nan_to_num(0.0)),
    (f"scaled_dot_product_attention({QKV}, Tensor? attn_mask=None, {CAUSAL}, *, float? scale=None, bool"
     " enable_gqa=False) -> Tensor", attention),
    (f"_scaled_dot_product_flash_attention({QKV}, {CAUSAL}, bool return_debug_mask=False, *, float? scale=None) ->"
     " (Tensor, Tensor)", lambda q, k, v, p=0.0, causal=False, **how: (attention(q, k, v, None, p, causal, **how), None)),
    (f"_scaled_dot_product_flash_attention_for_cpu({QKV}, {CAUSAL}, *, Tensor? attn_mask=None, float? scale=None) ->"
     " (Tensor, Tensor)",
     lambda q, k, v, p=0.0, causal=False, *, attn_mask=None, **how: (attention(q, k, v, attn_mask, p, causal, **how), None)),
    (f"_scaled_dot_product_efficient_attention({QKV}, Tensor? attn_bias, bool compute_log_sumexp, {CAUSAL}, *, float?"
     " scale=None) -> (Tensor, Tensor)",
     lambda q, k, v, bias, lse, p=0.0, causal=False, **how: (attention(q, k, v, bias, p, causal, **how), None)),
    (f"_scaled_dot_product_cudnn_attention({QKV}, Tensor? attn_bias, bool compute_log_sumexp, {CAUSAL}, bool"
     " return_debug_mask=False, *, float? scale=None) -> (Tensor, Tensor)",
     lambda q, k, v, bias, lse, p=0.0, causal=False, **how: (attention(q, k, v, bias, p, causal, **how), None)),
    ("_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", torch.ops.aten.index.Tensor),
    ("_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     torch.ops.aten.index_put.default),
    ("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", flags(torch.any)),
    ("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", flags(torch.all)),
    ("squeeze.dims(Tensor self, int[] dim) -> Tensor", squeeze),
    ("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", squeeze),
    ("_reshape_copy(Tensor self, SymInt[] size) -> Tensor", lambda x, size: x.reshape(size).clone()),
    (f"{SPACE}quantize_per_tensor(Tensor input, float scale, int zero_point, {INTEGERS}) -> Tensor", quantize),
    (f"{SPACE}quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, {INTEGERS}) -> Tensor", quantize),
    (f"{SPACE}dequantize_per_tensor(Tensor input, float scale, int zero_point, {INTEGERS}, {OUT}", dequantize),
    (f"{SPACE}dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, {INTEGERS}, {OUT}", dequantize),
    (f"{SPACE}quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, {INTEGERS}) -> Tensor",
     lambda x, s, z, axis, low, high, dtype: quantize(x, s, z, low, high, dtype, axis)),
    (f"{SPACE}dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, {INTEGERS}, {OUT}",
     lambda x, s, z, axis, low, high, dtype, **how: dequantize(x, s, z, low, high, dtype, axis, **how)),
]  # fmt: skip
_overloads = {o.name(): o for o in (Overload(*row) for row in LATER)}


def later(name):
    """The overload of a later PyTorch by its name, such as "any.dims"."""
    return _overloads[name if "::" in name else "aten::" + name]
