"""Networks of torchvision's and PyTorch's own layers, with random weights: one program each, near eager PyTorch."""

import time
import unittest

import kiln
import kiln.torch
import torch
from torch import nn
from torchvision import models

BOUND = 1e-4  # of the greatest element of each output


def image(size=64, batch=1):
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(3))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def check(self, m, *inputs, **named):
        m = m.eval()
        begin = time.perf_counter()
        c = kiln.torch.compile(m, inputs, named)
        self.assertLess(time.perf_counter() - begin, 30)  # other tests run at the same time
        self.assertEqual((c.report.programs, len(c.report.parts)), (1, 1), str(c.report))
        self.assertLessEqual(c.report.error, BOUND)
        # other numbers than the example's
        inputs = [x + 0.25 * torch.randn(x.shape) if x.is_floating_point() else x for x in inputs]
        with torch.no_grad():
            wanted, spec = torch.utils._pytree.tree_flatten(m(*inputs, **named))
        found, found_spec = torch.utils._pytree.tree_flatten(c(*inputs, **named))
        self.assertEqual(found_spec, spec)
        wanted, found = ([x for x in y if isinstance(x, torch.Tensor)] for y in (wanted, found))
        self.assertLessEqual(kiln.torch.report.error_of(found, wanted), BOUND)
        # The bound says something: the outputs are no constants.
        self.assertTrue(any(float(x.double().std()) > 0 for x in wanted))
        return c


class NetworkTest(Case):
    def test_resnet18(self):
        c = self.check(models.resnet18(weights=None), image())
        for batch in (3, 8):
            self.assertEqual(c(image(batch=batch)).shape, (batch, 1000))

    def test_mobilenet_v2(self):
        self.check(models.mobilenet_v2(weights=None), image())

    def test_mobilenet_v3(self):
        self.check(models.mobilenet_v3_small(weights=None), image())
        self.check(models.mobilenet_v3_large(weights=None), image())

    def test_densenet121(self):
        self.check(models.densenet121(weights=None), image())

    def test_squeezenet(self):
        self.check(models.squeezenet1_1(weights=None), image())

    def test_shufflenet(self):
        self.check(models.shufflenet_v2_x1_0(weights=None), image())

    def test_efficientnet(self):
        self.check(models.efficientnet_b0(weights=None), image())

    def test_convnext(self):
        self.check(models.convnext_tiny(weights=None), image())

    def test_vit_b_16(self):
        m = models.VisionTransformer(image_size=64, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072)
        nn.init.normal_(m.heads.head.weight)  # zeros otherwise
        self.check(m, image())

    def test_swin_t(self):
        self.check(models.swin_t(weights=None), image())

    def test_fcn(self):
        self.check(models.segmentation.fcn_resnet50(weights=None, weights_backbone=None), image())

    def test_deeplab(self):
        self.check(models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None), image())

    def test_backbone_of_mask_rcnn(self):
        m = models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None).backbone
        self.check(m, image())


class TransformerTest(Case):
    def test_transformer(self):
        m = nn.Transformer(32, 4, 2, 2, 64)
        source, target = torch.randn(5, 2, 32), torch.randn(6, 2, 32)
        self.check(m, source, target)
        self.check(m, source, target, tgt_mask=nn.Transformer.generate_square_subsequent_mask(6))

    def test_encoder(self):
        for first in (False, True):
            layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True, norm_first=first)
            m, x = nn.TransformerEncoder(layer, 2, nn.LayerNorm(32)), torch.randn(2, 5, 32)
            self.check(m, x)
            self.check(m, x, mask=torch.triu(torch.full((5, 5), float("-inf")), 1))

    def test_padding(self):
        m = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        x = torch.randn(2, 5, 32)
        m.eval()
        c = kiln.torch.compile(m, x, {"src_key_padding_mask": padding})
        with torch.enable_grad():  # the layer as it is written, not its fused form, which zeroes what is padded
            wanted = m(x, src_key_padding_mask=padding).detach()
        found = c(x, src_key_padding_mask=padding)
        self.assertLessEqual(kiln.torch.report.error_of([found[0], found[1, :3]], [wanted[0], wanted[1, :3]]), BOUND)

    def test_multihead_attention(self):
        m = nn.MultiheadAttention(32, 4, batch_first=True)
        x, y = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
        self.check(m, x, x, x)
        self.check(m, x, y, y)
        self.check(m, x, y, y, average_attn_weights=False)
        self.check(m, x, x, x, need_weights=False)

    def test_any_batch(self):
        m = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
        c = kiln.torch.compile(m, torch.randn(2, 5, 32), dynamic_batch=True)
        self.assertTrue(c.report.dynamic_batch, str(c.report))
        for n in (1, 3, 8):
            x = torch.randn(n, 5, 32)
            with torch.no_grad():
                self.assertLessEqual(kiln.torch.report.error_of([c(x)], [m(x)]), BOUND)


class RecurrentTest(Case):
    def test_layers(self):
        x = torch.randn(5, 2, 8)
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            for how in ({}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True}, {"bias": False}):
                c = self.check(kind(8, 16, **how), x)
                self.assertEqual(sum("input" in name for name in c.report.parts[0].operators), 1)

    def test_states(self):
        h, k = torch.randn(1, 2, 16), torch.randn(1, 2, 16)
        self.check(nn.GRU(8, 16), torch.randn(5, 2, 8), h)
        m = nn.LSTM(8, 16)
        c = kiln.torch.compile(m, (torch.randn(5, 2, 8), (h, k)))
        x = torch.randn(5, 2, 8)
        with torch.no_grad():
            y, (a, b) = m(x, (h, k))
        z, (d, e) = c(x, (h, k))
        self.assertLessEqual(kiln.torch.report.error_of([z, d, e], [y, a, b]), BOUND)

    def test_any_batch(self):
        m = nn.LSTM(8, 16, batch_first=True).eval()
        c = kiln.torch.compile(m, torch.randn(2, 5, 8), dynamic_batch=True)
        for n in (1, 3, 8):
            x = torch.randn(n, 5, 8)
            with torch.no_grad():
                self.assertLessEqual(kiln.torch.report.error_of([c(x)[0]], [m(x)[0]]), BOUND)


if __name__ == "__main__":
    unittest.main()
