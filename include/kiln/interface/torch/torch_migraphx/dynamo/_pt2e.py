"""A quantizer of exported programs; read with PyTorch 2 alone."""

from __future__ import annotations

from typing import Any

import torch
from torch.ao.quantization.observer import HistogramObserver, MinMaxObserver, PerChannelMinMaxObserver
from torch.ao.quantization.quantize_pt2e import convert_pt2e as _convert
from torch.ao.quantization.quantize_pt2e import prepare_pt2e
from torch.ao.quantization.quantizer import QuantizationAnnotation, QuantizationSpec, Quantizer

__all__ = ["MGXQuantizer", "convert_pt2e", "export_for_quantization", "prepare_pt2e"]

_aten = torch.ops.aten
# Which operand is the weight, where there is one.
_WEIGHTED = {_aten.linear.default: 1, _aten.addmm.default: 2, _aten.conv1d.default: 1, _aten.conv2d.default: 1, _aten.conv3d.default: 1}
_PAIRS = {_aten.bmm.default, _aten.matmul.default}


class MGXQuantizer(Quantizer):
    """Asks for int8 in -128..127 around products and convolutions: symmetric, weights by channel."""

    def __init__(self, per_ch_weights: bool = True, asymmetric_activations: bool = False, is_qat: bool = False) -> None:
        super().__init__()
        self.per_ch_weights, self.asymmetric_activations, self.is_qat = per_ch_weights, asymmetric_activations, is_qat

    def _activation(self) -> Any:
        scheme = torch.per_tensor_affine if self.asymmetric_activations else torch.per_tensor_symmetric
        return QuantizationSpec(
            dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=scheme,
            observer_or_fake_quant_ctr=HistogramObserver.with_args(eps=2**-12),
        )

    def _weight(self, axis: int) -> Any:
        if self.per_ch_weights:
            return QuantizationSpec(
                dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=torch.per_channel_symmetric, ch_axis=axis,
                observer_or_fake_quant_ctr=PerChannelMinMaxObserver.with_args(eps=2**-12),
            )
        return QuantizationSpec(
            dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=torch.per_tensor_symmetric,
            observer_or_fake_quant_ctr=MinMaxObserver.with_args(eps=2**-12),
        )

    def annotate(self, model: Any) -> Any:
        for node in model.graph.nodes:
            if node.target in _WEIGHTED:
                weight = node.args[_WEIGHTED[node.target]]
                data = node.args[1 if node.target is _aten.addmm.default else 0]
                wanted = {data: self._activation(), weight: self._weight(1 if node.target is _aten.addmm.default else 0)}
            elif node.target in _PAIRS:
                wanted = {x: self._activation() for x in node.args[:2]}
            else:
                continue
            node.meta["quantization_annotation"] = QuantizationAnnotation(input_qspec_map=wanted, _annotated=True)
        return model

    def validate(self, model: Any) -> None:
        """Every annotation is valid."""


def convert_pt2e(model: Any, *args: Any, **kwargs: Any) -> Any:
    """PyTorch's, without folding of weights, which kiln keeps as integers."""
    return _convert(model, *args, **{"fold_quantize": False, **kwargs})


def export_for_quantization(model: Any, inputs: Any) -> Any:
    """The graph of a module for prepare_pt2e."""
    if hasattr(torch.export, "export_for_training"):
        return torch.export.export_for_training(model, tuple(inputs)).module()
    return torch.export.export(model, tuple(inputs)).module()
