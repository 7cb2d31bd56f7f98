"""PyTorch's operators of sequences and of quantized numbers, in kiln beside eager ones."""

import torch
from aten_cases import CaseTest, numbers, overload
from aten_later import later


class AttentionTest(CaseTest):
    def test_attention(self):
        q, k, v = numbers(2, 4, 5, 8), numbers(2, 4, 7, 8, seed=1), numbers(2, 4, 7, 6, seed=2)
        seen = numbers(5, 7, dtype=torch.bool) | torch.eye(5, 7, dtype=torch.bool)
        for mask in (None, numbers(2, 1, 5, 7), seen):
            self.agrees("scaled_dot_product_attention", q, k, v, mask)
            for weights in (False, True):
                self.agrees("_scaled_dot_product_attention", q, k, v, mask, 0.0, weights, read=[0, 1] if weights else [0])
            self.agrees("_scaled_dot_product_attention_math", q, k, v, mask, read=[0])
        for x, y, z in ((q, k, v), (q, k[..., :5, :], v[..., :5, :]), (q[0], k[0], v[0]), (q[0, 0], k[0, 0], v[0, 0])):
            self.agrees("scaled_dot_product_attention", x, y, z, None, 0.0, True)
            self.agrees("_scaled_dot_product_attention", x, y, z, None, 0.0, False, True, read=[0])
        for dtype in (torch.float64, torch.float16, torch.bfloat16):
            self.agrees("_scaled_dot_product_attention", *(x.to(dtype) for x in (q, k, v)), read=[0], precise=True)
        for name, more in (("flash_attention", ()), ("flash_attention_for_cpu", ()), ("efficient_attention", (None, False)),
                           ("cudnn_attention", (None, False))):
            name = f"_scaled_dot_product_{name}"
            self.agrees(name, q, k, v, *more, read=[0], scale=0.3, like=later(name))
            self.agrees(name, q, k, v, *more, 0.0, True, read=[0], like=later(name))
        self.agrees("scaled_dot_product_attention", q, k[:, :2], v[:, :2], enable_gqa=True)
        self.agrees("scaled_dot_product_attention", q, k, v, torch.zeros(5, 7, dtype=torch.bool))
        self.refused("_scaled_dot_product_attention", q, k, v, None, 0.5, read=[0], reason="drops weights")

    def test_transformers(self):
        x = numbers(2, 5, 8, low=-1, high=1)
        packed = (numbers(24, 8, low=-0.4, high=0.4), numbers(24), numbers(8, 8, low=-0.4, high=0.4), numbers(8))
        padded = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        for mask, kind in ((None, None), (padded, 1)):
            self.agrees("_native_multi_head_attention", x, x, x, 8, 2, *packed, mask, True, True, kind)
            self.agrees("_native_multi_head_attention", x, x, x, 8, 2, *packed, mask, False, True, kind, read=[0])
        norms = (numbers(8), numbers(8, seed=1), numbers(8, seed=2), numbers(8, seed=3))
        forward = (numbers(16, 8), numbers(16), numbers(8, 16), numbers(8))
        for gelu in (False, True):
            for first in (False, True):
                self.agrees("_transformer_encoder_layer_fwd", x, 8, 2, *packed, gelu, first, 1e-5, *norms, *forward)
        self.agrees("_transform_bias_rescale_qkv", numbers(2, 5, 24), numbers(24), 2)
        for kind in (1, 2):
            self.agrees("_masked_softmax", numbers(2, 2, 5, 5), padded[:, None, None].expand(2, 2, 5, 5), 3, kind)


class RecurrentTest(CaseTest):
    def test_layers(self):
        for name, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
            for bidirectional in (False, True):
                for biases in (False, True):
                    self.layer(name, gates, bidirectional, biases, torch.float32)
            self.layer(name, gates, True, True, torch.float64)
            self.layer(name, gates, False, True, torch.bfloat16)

    def layer(self, name, gates, bidirectional, biases, dtype):
        features, hidden, count, directions = 5, 6, 2, 2 if bidirectional else 1
        params = []
        for layer in range(count):
            for direction in range(directions):
                seed = layer * 2 + direction
                width = features if layer == 0 else hidden * directions
                params += [numbers(gates * hidden, n, low=-0.5, high=0.5, seed=seed, dtype=dtype) for n in (width, hidden)]
                params += [numbers(gates * hidden, seed=seed + s, dtype=dtype) for s in (5, 6)] if biases else []
        for batch_first in (False, True):
            x = numbers(*((3, 4) if batch_first else (4, 3)), features, dtype=dtype)
            states = [numbers(count * directions, 3, hidden, seed=s, low=-1, high=1, dtype=dtype) for s in (1, 2)]
            hx = states if name == "lstm" else states[0]
            self.agrees(f"{name}.input", x, hx, params, biases, count, 0.0, False, bidirectional, batch_first)

    def test_what_is_refused(self):
        w = [numbers(24, 5), numbers(24, 6)]
        x, h = numbers(4, 3, 5), numbers(1, 3, 6)
        self.refused("lstm.input", x, [h, h], w, False, 1, 0.5, True, False, False, reason="in training")
        w = [numbers(24, 5), numbers(24, 3), numbers(3, 6)]
        self.refused("lstm.input", x, [numbers(1, 3, 3), h], w, False, 1, 0.0, False, False, False, reason="projected")

    def test_cells(self):
        for name, gates in (("lstm_cell", 4), ("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)):
            weights = numbers(gates * 6, 5, low=-1, high=1), numbers(gates * 6, 6, low=-1, high=1)
            biases = numbers(gates * 6), numbers(gates * 6, seed=1)
            hx = numbers(3, 6, low=-1, high=1)
            hx = [hx, numbers(3, 6, seed=4)] if name == "lstm_cell" else hx
            self.agrees(name, numbers(3, 5), hx, *weights, *biases)
            self.agrees(name, numbers(3, 5), hx, *weights)


class QuantizeTest(CaseTest):
    def test_fakes(self):
        x = numbers(4, 5, low=-20, high=20)
        for low, high in ((-128, 127), (0, 255), (-127, 127), (0, 15), (-32768, 32767)):
            self.agrees("fake_quantize_per_tensor_affine", x, 0.1, 3, low, high)
            self.agrees("fake_quantize_per_tensor_affine_cachemask", x, 0.1, 3, low, high, read=[0])
            scales, zeros = torch.tensor([0.1, 0.2, 0.05, 1.0]), torch.tensor([3, 0, 1, 2], dtype=torch.int32)
            self.agrees("fake_quantize_per_channel_affine", x, scales, zeros, 0, low, high)
            self.agrees("fake_quantize_per_channel_affine_cachemask", x, scales, zeros, 0, low, high, read=[0])
        self.agrees("fake_quantize_per_tensor_affine.tensor_qparams", x, torch.tensor(0.1), torch.tensor(3, dtype=torch.int32), 0, 255)

    def test_decomposed(self):
        q8, u8 = (-128, 127, torch.int8), (0, 255, torch.uint8)
        x = numbers(4, 5, low=-20, high=20)
        for how in (q8, u8, (-127, 127, torch.int8)):
            self.agrees("quantized_decomposed::quantize_per_tensor", x, 0.1, 3, *how)
            q = overload("quantized_decomposed::quantize_per_tensor")(x, 0.1, 3, *how)
            self.agrees("quantized_decomposed::dequantize_per_tensor", q, 0.1, 3, *how)
            scale, zero = torch.tensor(0.1), torch.tensor(3)
            self.agrees("quantized_decomposed::quantize_per_tensor.tensor", x, scale, zero, *how)
            self.agrees("quantized_decomposed::dequantize_per_tensor.tensor", q, scale, zero, *how)
            scales, zeros = torch.tensor([0.1, 0.2, 0.05, 1.0]), torch.tensor([3, 0, 1, 2])
            self.agrees("quantized_decomposed::quantize_per_channel", x, scales, zeros, 0, *how)
            self.agrees("quantized_decomposed::dequantize_per_channel", q, scales, zeros, 0, *how)
