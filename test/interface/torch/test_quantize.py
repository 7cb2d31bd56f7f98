"""Lower precisions, and modules that torch.ao.quantization converted."""

import unittest

import kiln
import kiln.torch
import torch
from torch import nn
from torch.ao.quantization import quantize_fx

from torch_migraphx.fx import lower_to_mgx
from torch_migraphx.fx.quantization import get_migraphx_backend_config, get_migraphx_qconfig_mapping


class Net(nn.Module):
    """What is quantized: convolutions with and without relu, a sum, a product by numbers, linear layers."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Conv2d(16, 16, 3, padding=1)
        self.relu, self.pool = nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        self.hidden, self.out = nn.Linear(16, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = self.relu(self.norm(self.first(x)))
        x = self.relu(self.second(x) + x)
        return self.out(self.relu(self.hidden(self.pool(x).flatten(1))))


def network():
    torch.manual_seed(7)
    return Net().eval()


def error_of(found, wanted):
    return kiln.torch.report.error_of([found], [wanted.detach()])


def images(count=1):
    return torch.randn(count, 3, 16, 16, generator=torch.Generator().manual_seed(count))


class PrecisionTest(unittest.TestCase):
    def test_errors_are_reported_and_bounded(self):
        m, x = network(), images(2)
        for precision, least, most in (("fp32", 0, 1e-6), ("fp16", 1e-6, 2e-3), ("bf16", 1e-4, 2e-2), ("int8", 1e-4, 5e-2)):
            c = kiln.torch.compile(m, x, precision=precision, samples=[images(2), (images(2) * 1.5,)])
            error = error_of(c(x), m(x))
            self.assertTrue(least <= error <= most, (precision, error))
            self.assertAlmostEqual(error, c.report.error, 7)
            self.assertEqual(c(x).dtype, torch.float32)

    def test_int8_computes_in_integers(self):
        c = kiln.torch.compile(network(), images(), precision="int8")
        (step,) = next(iter(c._variants.values())).steps.steps
        types = {i["type"] for s in step.exe.report["steps"] for i in s["inputs"]}
        self.assertTrue(types & {"i8", "u8"}, types)


class ConvertedTest(unittest.TestCase):
    def prepared(self):
        m = quantize_fx.prepare_fx(
            network(), get_migraphx_qconfig_mapping(), (images(),), backend_config=get_migraphx_backend_config()
        )
        for k in range(1, 5):
            m(images(k))
        return m

    def check(self, converted):
        m, x = network(), images(3)
        before = [type(k) for k in converted.modules()]
        lowered = lower_to_mgx(converted, [x])
        self.assertEqual([type(k) for k in converted.modules()], before)
        self.assertEqual(lowered.report.programs, 1, str(lowered.report))
        wanted = converted(x)
        self.assertLessEqual(error_of(lowered(x), wanted), 0.03)  # a rounding to the other neighbor in some layer
        self.assertTrue(1e-4 < error_of(lowered(x), m(x)) < 0.05)
        (program,) = lowered.programs()
        types = {i["type"] for s in program.report["steps"] for i in s["inputs"]}
        self.assertTrue(types & {"i8", "u8"}, types)

    def test_reference_form(self):
        self.check(quantize_fx.convert_to_reference_fx(self.prepared(), backend_config=get_migraphx_backend_config()))

    def test_form_of_kernels(self):
        self.check(quantize_fx.convert_fx(self.prepared(), backend_config=get_migraphx_backend_config()))

    def test_quantized_tensors_are_refused(self):
        with self.assertRaisesRegex(kiln.torch.TraceError, "convert_to_reference_fx"):
            kiln.torch.compile(lambda x: torch.quantize_per_tensor_dynamic(x, torch.qint8, False).dequantize(), torch.rand(3))


if __name__ == "__main__":
    unittest.main()
