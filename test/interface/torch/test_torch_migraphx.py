"""The package torch_migraphx, kiln in role of Torch-MIGraphX."""

import contextlib
import copy
import io
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import types
import unittest

import kiln
import kiln.torch
import torch
from torch import nn

import torch_migraphx
from torch_migraphx.fx import LowerPrecision, MGXModule, SplitModule, lower_to_mgx
from torch_migraphx.fx.tools import mgx_benchmark, mgx_onnx


def network():
    torch.manual_seed(2)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))


def error_of(found, wanted):
    return kiln.torch.report.error_of([found], [wanted.detach()])


def fake_dynamo(test):
    """A torch._dynamo that keeps what is registered with it."""
    made = types.ModuleType("torch._dynamo")
    made.__spec__ = importlib_spec = types.SimpleNamespace(name="torch._dynamo")
    assert importlib_spec
    made.backends = {}
    made.register_backend = lambda f, name: made.backends.__setitem__(name, f)
    sys.modules["torch._dynamo"] = made
    test.addCleanup(sys.modules.pop, "torch._dynamo")
    return made


class LowerTest(unittest.TestCase):
    def test_lowering_leaves_the_module_as_it_is(self):
        m, x = network(), torch.rand(2, 3, 8, 8)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            lowered = lower_to_mgx(m, [x], verbose_log=True)
        self.assertTrue(m.training)
        self.assertLess(error_of(lowered(x), m.eval()(x)), 1e-5)
        self.assertIn("part 0 by kiln", printed.getvalue())
        self.assertIsInstance(lowered, SplitModule)
        for n in (1, 3, 8):
            y = torch.rand(n, 3, 8, 8)
            self.assertLess(error_of(lowered(y), m(y)), 1e-5)
        self.assertEqual(len(lowered.reports), 4)

    def test_precisions(self):
        m, x = network().eval(), torch.rand(2, 3, 8, 8)
        for precision, bound in ((LowerPrecision.FP16, 2e-3), ("bf16", 2e-2), ("int8", 5e-2)):
            lowered = lower_to_mgx(m, x, lower_precision=precision)
            self.assertEqual(lowered(x).dtype, torch.float32)
            error = error_of(lowered(x), m(x))
            self.assertAlmostEqual(error, lowered.report.error, 6)
            self.assertTrue(1e-6 < error < bound, (precision, error))
        with self.assertRaisesRegex(ValueError, "fp32, fp16, bf16 or int8: found 'fp4'"):
            lower_to_mgx(m, x, lower_precision="fp4")

    def test_parts(self):
        f = nn.Sequential(network(), nn.Unflatten(1, (2, 5)))
        class Mixed(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = f

            def forward(self, x):
                y = self.net(x)
                return torch.linalg.qr(y)[1].abs().relu() + 1

        m, x = Mixed().eval(), torch.rand(2, 3, 8, 8)
        lowered = lower_to_mgx(m, [x], min_acc_module_size=2)
        names = [name for name, _ in lowered.named_children()]
        self.assertEqual(names, ["_run_on_acc_0", "_run_on_cpu_1", "_run_on_acc_2"])
        for k, part in enumerate(lowered.children()):
            self.assertEqual(isinstance(part, MGXModule), k != 1)
        first = getattr(lowered, names[0])
        self.assertLess(error_of(first(x), m.net(x)), 1e-5)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            lowered.print_all_subgraphs()
            lowered.print_subgraph("_run_on_cpu_1")
        self.assertIn("Submodule: _run_on_cpu_1\naten.linalg_qr", printed.getvalue())
        with self.assertRaisesRegex(AttributeError, "no part 'a'; there are _run_on_acc_0"):
            lowered.print_subgraph("a")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            results = mgx_benchmark.benchmark(lowered, [x], n=5)
        self.assertEqual((list(results.submods), results.batch_size), (names, 2))
        self.assertTrue(all(t > 0 for t in (results.full_mod, *results.submods.values())))
        self.assertIn("_run_on_cpu_1", printed.getvalue())
        whole = lower_to_mgx(m, [x], min_acc_module_size=50)
        self.assertEqual([name for name, _ in whole.named_children()], ["_run_on_cpu_0"])

    def test_saving(self):
        m, x = network().eval(), torch.rand(2, 3, 8, 8)
        lowered = lower_to_mgx(m, [x])
        for other in (pickle.loads(pickle.dumps(lowered)), copy.deepcopy(lowered)):
            self.assertIsInstance(other, SplitModule)
            self.assertTrue(torch.equal(other(x), lowered(x)))
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            try:
                lower_to_mgx(m, [x], save_subgraph_programs=True)
            finally:
                os.chdir(before)
            exe = kiln.load(folder + "/part_0.kiln")
            self.assertTrue(torch.equal(torch.from_dlpack(exe(x)), lowered(x)))


class ModuleTest(unittest.TestCase):
    def test_a_program(self):
        b = kiln.Builder()
        x, y = b.input("x", "f32", [2, 3]), b.input("y", "f32", [2, 3])
        b.output(x - y, "d")
        b.output(x > y, "g")
        m = MGXModule(b.finish(), ["y", "x"])
        y, x = torch.rand(2, 3), torch.rand(2, 3)
        self.assertTrue(all(map(torch.equal, m(y, x), (x - y, x > y))))
        state = m.state_dict()
        self.assertEqual(list(state), ["program", "input_names", "output_names", "quantize_fp16"])
        held = io.BytesIO()
        torch.save(state, held)
        held.seek(0)
        other = MGXModule()
        other.load_state_dict(torch.load(held, weights_only=False))
        for same in (other, pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
            self.assertTrue(all(map(torch.equal, same(y, x), (x - y, x > y))))
        with self.assertRaisesRegex(RuntimeError, "found an empty one"):
            MGXModule()(x)
        with self.assertRaisesRegex(kiln.ArgumentError, "2 inputs: found 1"):
            m(x)
        with self.assertRaisesRegex(kiln.ArgumentError, "input_names"):
            MGXModule(m.program, ["a", "b"])

    def test_onnx(self):
        m = mgx_onnx.from_onnx("examples/models/digits/model.onnx")
        self.assertIsInstance(m, MGXModule)
        image = torch.rand(1, *[e for e in m.program.inputs[0].shape[1:]])
        self.assertEqual(m(image).shape, (1, 10))


class DynamoTest(unittest.TestCase):
    def test_without_dynamo_it_says_what_is_missing(self):
        self.assertFalse(torch_migraphx.dynamo.available)
        for call in (torch_migraphx.dynamo.require, lambda: torch_migraphx.dynamo.lower_dynamo,
                     lambda: torch_migraphx.dynamo.quantization.MGXQuantizer):
            with self.assertRaisesRegex(ImportError, "needs PyTorch 2.*found PyTorch 1.13"):
                call()

    def test_backends(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = network().eval()

            def forward(self, x, k):
                return (self.inner(x) * k, x + k)

        graph = torch.fx.symbolic_trace(Two())
        x = torch.rand(1, 3, 8, 8)
        with self.assertRaisesRegex(kiln.ArgumentError, "no gradients"):
            kiln.torch.backend(graph, [x, 2])(x, 2)
        graph.eval()
        for backend in (kiln.torch.backend, torch_migraphx.dynamo.migraphx_backend):
            f = backend(graph, [x.to("meta"), 2])
            for n, k in ((1, 2), (3, 2), (3, 5)):
                x = torch.rand(n, 3, 8, 8)
                for found, wanted in zip(f(x, k), graph(x, k)):
                    self.assertLess(error_of(found, wanted), 1e-5)
        half = torch_migraphx.dynamo.migraphx_backend(graph, [x, 2], options={"fp16": True, "deallocate": True})
        self.assertTrue(1e-6 < error_of(half(x, 2)[0], graph(x, 2)[0]) < 2e-3)
        with self.assertRaisesRegex(kiln.ArgumentError, "found fp17"):
            torch_migraphx.dynamo.migraphx_backend(graph, [x, 2], options={"fp17": True})

    def test_parameters_among_the_inputs_are_bound(self):
        linear = nn.Linear(3, 4)
        graph = torch.fx.symbolic_trace(lambda x, w, b: (nn.functional.linear(x, w, b),))
        f = kiln.torch.backend(graph, [])
        x = torch.rand(2, 3)
        with self.assertRaisesRegex(kiln.ArgumentError, "no gradients"):
            f(x, linear.weight, linear.bias)
        graph.eval()
        for _ in range(2):
            self.assertLess(error_of(f(x, linear.weight, linear.bias)[0], linear(x)), 1e-6)
        other = nn.Linear(3, 4)
        self.assertLess(error_of(f(x, other.weight, other.bias)[0], other(x)), 1e-6)

    def test_options_are_those_of_compile(self):
        graph = torch.fx.symbolic_trace(network().eval())
        f = kiln.torch.backend(graph, [], options={"precision": "bfloat16", "dynamic_batch": True})
        with torch.no_grad():
            for n in (2, 3, 4):
                x = torch.rand(n, 3, 8, 8)
                self.assertTrue(1e-5 < error_of(f(x), graph(x)) < 5e-2)
        (made,) = f.__closure__[[i for i, n in enumerate(f.__code__.co_freevars) if n == "compiled"][0]].cell_contents.values()
        self.assertEqual(len(made.reports), 1)
        with self.assertRaisesRegex(kiln.ArgumentError, "found 'fp12'"):
            kiln.torch.backend(graph, [], precision="fp12")

    def test_registration(self):
        dynamo = fake_dynamo(self)
        self.assertTrue(kiln.torch.dynamo.register("kiln", kiln.torch.backend))
        self.assertEqual(dynamo.backends, {"kiln": kiln.torch.backend})


class LogTest(unittest.TestCase):
    def test_levels(self):
        text = "import torch_migraphx, logging; print([logging.getLogger('torch_migraphx' + n).level for n in ('', '.fx_lower')])"
        environment = {**os.environ, "TORCH_MIGRAPHX_LOGLEVEL": "warning", "TORCH_MIGRAPHX_LOG_FX_LOWER": "DEBUG"}
        done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), f"[{logging.WARNING}, {logging.DEBUG}]", done.stderr)
        environment["TORCH_MIGRAPHX_LOGLEVEL"] = "loud"
        done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
        self.assertIn("found 'LOUD'", done.stderr)


if __name__ == "__main__":
    unittest.main()
