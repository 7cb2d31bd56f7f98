"""kiln.torch.compile beside the modules that it compiles: structures, mutation, batches, leftovers."""

import collections
import unittest

import kiln
import torch
from torch import nn

import kiln.torch


def perceptron():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softplus()).eval()


Pair = collections.namedtuple("Pair", "sum difference")


class Structured(nn.Module):
    """Outputs of every structure, of inputs in lists and dicts and by keyword."""

    def forward(self, x, others, *, scale=None, names=None):
        y = x + others[0] * others[1]
        if scale is not None:
            y = y * scale
        more = names["a"] - y if names else None
        return {"pair": Pair(y, x - others[0]), "list": [y.sum(-1), (y > 0,)], "none": None, "number": 3, "more": more}


class Counting(nn.Module):
    """Mutates its input and a buffer."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.inner.register_buffer("calls", torch.zeros(3))

    def forward(self, x):
        before = x.clone()
        self.inner.calls += 1
        x.mul_(2)
        x[:, 0] = 7
        return self.inner(x) + self.inner.calls, before, x


class Case(unittest.TestCase):
    def assert_equal(self, found, wanted, tolerance=1e-6):
        a, spec = torch.utils._pytree.tree_flatten(found)
        b, wanted_spec = torch.utils._pytree.tree_flatten(wanted)
        self.assertEqual(spec, wanted_spec)
        for x, y in zip(a, b):
            if not isinstance(y, torch.Tensor):
                self.assertEqual(x, y)
                continue
            self.assertEqual((x.dtype, x.shape, x.device), (y.dtype, y.shape, y.device))
            self.assertLessEqual(kiln.torch.report.error_of([x], [y]), tolerance)


class CompileTest(Case):
    def test_a_perceptron_is_one_program(self):
        m, x = perceptron(), torch.randn(5, 8)
        c = kiln.torch.compile(m, x)
        self.assert_equal(c(x), m(x).detach())
        report = c.report
        self.assertEqual((report.programs, len(report.parts), report.reasons), (1, 1, {}))
        self.assertLess(report.error, 1e-6)
        self.assertIn("relu", str(report))

    def test_structures(self):
        m = Structured()
        a, b, s = torch.randn(2, 3), torch.randn(3), torch.tensor(2.0)
        c = kiln.torch.compile(m, (a, [b, s]), {"scale": s, "names": {"a": b}})
        for scale in (s, None):
            for names in ({"a": b}, None):
                self.assert_equal(c(a, [b, s], scale=scale, names=names), m(a, [b, s], scale=scale, names=names))
        self.assertEqual(len(c.reports), 4)

    def test_numbers_among_the_inputs_decide_what_is_compiled(self):
        f = lambda x, k, how="a": x * k if how == "a" else x.sum(k)  # noqa: E731
        x = torch.randn(2, 3)
        c = kiln.torch.compile(f, (x, 2))
        for k, how in ((2, "a"), (3, "a"), (3.5, "a"), (True, "a"), (1, "b"), (0, "b")):
            self.assert_equal(c(x, k, how=how), f(x, k, how))
        with self.assertRaisesRegex(kiln.ArgumentError, "found object"):
            c(x, type("object", (), {"__hash__": None})())

    def test_dtypes_of_outputs_are_kept(self):
        def f(x):
            return x.to(torch.float64), x.to(torch.int32), x > 0, x.to(torch.float16), x.argmax(-1), x.to(torch.bfloat16), x.to(torch.uint8)

        x = torch.rand(4, 5) * 100
        self.assert_equal(kiln.torch.compile(f, x)(x), f(x))
        for dtype in (torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8, torch.int16):
            x = (torch.rand(3, 4) * 5 - 1).to(dtype)
            g = lambda x: (x + x, torch.cat([x, x], 1))  # noqa: E731
            self.assert_equal(kiln.torch.compile(g, x)(x), g(x))

    def test_mutation_is_written_back(self):
        m, c = Counting(), None
        x = torch.randn(2, 3)
        given = x.clone()
        c = kiln.torch.compile(m, given)
        self.assertTrue(torch.equal(given, x))  # the example is read only
        self.assertEqual(m.inner.calls.tolist(), [0, 0, 0])
        for calls in (1, 2):
            a, b = x.clone(), x.clone()
            with torch.no_grad():
                wanted, before, same = m(a)
            found, found_before, found_same = c(b)
            self.assert_equal((found, found_before, found_same, b), (wanted, before, same, a))
            self.assertEqual(c.state_dict()["inner_calls"].tolist(), [calls] * 3)

    def test_a_copy_stays_when_the_input_changes(self):
        c = kiln.torch.compile(lambda x: (x.clone(), x.view(-1), x), torch.ones(2, 3))
        x = torch.ones(2, 3)
        copied, _, same = c(x)
        x.zero_()
        self.assertEqual(copied.sum(), 6)
        self.assertIs(same, x)

    def test_memory_is_shared(self):
        seen = []
        c = kiln.torch.compile(lambda x: x + 1, torch.ones(1000))
        step = c._variants[next(iter(c._variants))].steps.steps[0]
        real = step.exe

        class Watching:
            def __call__(self, *arrays):
                seen.extend(kiln.from_dlpack(a).data_ptr for a in arrays)
                return real(*[kiln.from_dlpack(x) for x in (watched,)])

        watched = torch.ones(1000)
        step.exe = Watching()
        y = c(watched)
        self.assertEqual(seen, [watched.data_ptr()])
        self.assertEqual(y.sum(), 2000)

    def test_strided_inputs_and_gradients(self):
        c = kiln.torch.compile(lambda x: x.exp(), torch.ones(3, 4))
        x = torch.randn(4, 3).t()
        self.assert_equal(c(x), x.exp())
        self.assert_equal(c(x.contiguous().requires_grad_()), x.exp())
        self.assert_equal(c(torch.randn(1, 4).expand(3, 4)).shape, torch.Size([3, 4]))

    def test_leftovers_run_in_pytorch(self):
        f = lambda x: torch.linalg.qr((x * 2 + 1).relu())[1].abs() * 3 + x.sum() - 1  # noqa: E731
        x = torch.rand(4, 4)
        c = kiln.torch.compile(f, x, min_size=1)
        self.assert_equal(c(x), f(x), 1e-5)
        report = c.report
        self.assertEqual([p.by for p in report.parts], ["kiln", "torch", "kiln"])
        self.assertIn("no lowering", report.reasons["linalg_qr"])
        whole = kiln.torch.compile(f, x, min_size=100)
        self.assert_equal(whole(x), f(x), 1e-5)
        self.assertEqual((whole.report.programs, [p.by for p in whole.report.parts]), (0, ["torch"]))
        self.assertIn("min_size = 100", whole.report.reasons["relu"])

    def test_operators_are_left_to_pytorch_by_name(self):
        x = torch.rand(4, 8)
        c = kiln.torch.compile(perceptron(), x, eager=["relu"], min_size=1)
        self.assertEqual([p.by for p in c.report.parts], ["kiln", "torch", "kiln"])
        self.assertEqual(c.report.reasons, {"relu": "as was asked for"})

    def test_shapes_that_numbers_decide(self):
        x = torch.tensor([1.0, -1.0, 2.0])
        for f in (
            lambda x: (x > 0).nonzero() + 1,
            lambda x: x[x > 0] * 2,
            lambda x: torch.masked_select(x, x > 0).exp(),
            lambda x: x.unique()[0],
            lambda x: torch.repeat_interleave(x, (x > 0).long()).sum(),
        ):
            with self.assertRaisesRegex(kiln.torch.TraceError, "as large as the numbers say"):
                kiln.torch.compile(f, x)
        last = kiln.torch.compile(lambda x: (x > 0).nonzero(), x)
        self.assertEqual(last(torch.ones(3)).shape, (3, 1))

    def test_numbers_of_constants_may_be_read(self):
        steps = torch.tensor([3, 1, 2])
        f = lambda x: x * int(steps.max()) + steps[steps > 1].sum().item() + float(torch.arange(4).sum())  # noqa: E731
        x = torch.rand(2)
        self.assert_equal(kiln.torch.compile(f, x)(x), f(x))

    def test_random_numbers_are_drawn_by_each_run(self):
        c = kiln.torch.compile(lambda x: x + torch.rand(4), torch.zeros(4), check=False)
        x = torch.zeros(4)
        self.assertFalse(torch.equal(c(x), c(x)))

    def test_the_module_stays_as_it_is(self):
        m = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        calls = []
        m[0].register_forward_hook(lambda *a: calls.append(1))
        nn.utils.weight_norm(m[0])
        m[2].eval()
        before = {k: v.clone() for k, v in m.state_dict().items()}
        kept = {id(p) for p in m.parameters()}
        weight = m[0].weight
        x = torch.rand(3, 4)
        c = kiln.torch.compile(m, x)
        self.assertEqual([k.training for k in m.modules()], [True, True, True, False])
        self.assertEqual({id(p) for p in m.parameters()}, kept)
        self.assertIs(m[0].weight, weight)
        self.assertTrue(all(torch.equal(v, before[k]) for k, v in m.state_dict().items()))
        self.assertTrue(all(p.requires_grad for p in m.parameters()))
        m.eval()
        self.assert_equal(c(x), m(x).detach())
        self.assertTrue(calls)  # the hook is the module's still

    def test_errors_name_what_is_wrong(self):
        x = torch.rand(2, 3)
        with self.assertRaisesRegex(kiln.torch.TraceError, "_local_scalar_dense"):
            kiln.torch.compile(lambda x: x * x.sum().item(), x)
        with self.assertRaisesRegex(kiln.ArgumentError, "fp32, fp16, bf16 or int8: found 'fp12'"):
            kiln.torch.compile(lambda x: x, x, precision="fp12")
        with self.assertRaisesRegex(kiln.torch.AccuracyError, "tolerance"):
            kiln.torch.compile(perceptron(), torch.rand(2, 8), tolerance=0.0, precision="bf16")
        with self.assertRaisesRegex(kiln.ArgumentError, "input 0.*found device meta"):
            kiln.torch.compile(perceptron(), torch.empty(2, 8, device="meta"))
        with self.assertRaises(RuntimeError):  # PyTorch's own
            kiln.torch.compile(perceptron(), torch.rand(2, 9))

    def test_errors_are_measured(self):
        error = kiln.torch.report.error_of
        a = torch.tensor([1.0, -4.0])
        self.assertEqual(error([a + 1], [a]), 0.25)
        self.assertEqual(error([a, a], [a, a]), 0)
        inf, nan = torch.tensor([1.0, float("inf")]), torch.tensor([1.0, float("nan")])
        self.assertEqual((error([inf], [inf]), error([nan], [nan])), (0, 0))
        for x, y in ((inf, -inf), (inf, nan), (nan, a), (a, a.double()), (a, a[:1])):
            self.assertEqual(error([x], [y]), float("inf"))


class BatchTest(Case):
    def test_a_program_for_each_shape(self):
        m = perceptron()
        c = kiln.torch.compile(m, torch.rand(1, 8))
        for n in (1, 3, 8, 3, 1, 8):
            x = torch.rand(n, 8)
            self.assert_equal(c(x), m(x).detach())
        self.assertEqual(len(c.reports), 3)

    def test_one_program_for_any_batch(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.norm, self.out = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4 * 36, 5)

            def forward(self, x, w):
                y = self.norm(self.conv(x)).relu()
                y = self.out(y.flatten(1)) + torch.ones(x.shape[0], 1)
                return torch.cat([y, y * w], 0), y.reshape(-1, 5).softmax(-1), x.shape[0]

        m = Net().eval()
        for own in (1, 2, 3, 4):
            c = kiln.torch.compile(lambda x, w: m(x, w)[:2], (torch.rand(own, 3, 8, 8), torch.rand(5)), dynamic_batch=True)
            for n in (1, 3, 8, 2):
                x, w = torch.rand(n, 3, 8, 8), torch.rand(5)
                self.assert_equal(c(x, w), m(x, w)[:2])
            self.assertEqual((len(c.reports), c.report.dynamic_batch, c.report.programs), (1, True, 1))
        fixed = kiln.torch.compile(m, (torch.rand(1, 3, 8, 8), torch.rand(5)), dynamic_batch=True)
        self.assertIn("different inputs and outputs", str(fixed.report))
        self.assertFalse(fixed.report.dynamic_batch)
        self.assertEqual(fixed(torch.rand(3, 3, 8, 8), torch.rand(5))[2], 3)

    def test_leftovers_know_the_batch(self):
        def f(x):
            y = torch.linalg.qr(x)[1].reshape(x.shape[0] * 3, 3) + 1
            return y.exp() + torch.zeros(x.shape[0] * 3, 1)

        c = kiln.torch.compile(f, torch.rand(2, 3, 3), dynamic_batch=True, min_size=1, eager=["zeros", "reshape", "view"])
        for n in (1, 3, 8):
            x = torch.rand(n, 3, 3)
            self.assert_equal(c(x), f(x), 1e-5)
        self.assertEqual(len(c.reports), 1)

    def test_a_batch_of_one_has_shortcuts_in_pytorch(self):
        token = torch.randn(1, 1, 4)
        f = lambda x: torch.cat([token.expand(x.shape[0], -1, -1), x.reshape(-1, 2, 4)], 1).transpose(0, 1).reshape(3, -1)  # noqa: E731
        c = kiln.torch.compile(f, torch.rand(1, 8), dynamic_batch=True)
        self.assertTrue(c.report.dynamic_batch, str(c.report))
        for n in (1, 3, 8):
            x = torch.rand(n, 8)
            self.assert_equal(c(x), f(x))
        for other in (lambda x: x.squeeze() + 1, lambda x: x * 2 if x.shape[0] == 1 else x * 3):
            c = kiln.torch.compile(other, torch.rand(1, 8), dynamic_batch=True)
            for n in (1, 3):
                x = torch.rand(n, 8)
                self.assert_equal(c(x), other(x))
            self.assertIn("for each shape", str(c.report))

    def test_the_batch_is_another_dim(self):
        f = lambda x, y: (x * 2).transpose(0, 1) @ y  # noqa: E731
        c = kiln.torch.compile(f, (torch.rand(3, 1, 5), torch.rand(1, 5, 2)), dynamic_batch={0: 1, 1: 0})
        for n in (1, 3, 8):
            x, y = torch.rand(3, n, 5), torch.rand(n, 5, 2)
            self.assert_equal(c(x, y), f(x, y))
        self.assertEqual(len(c.reports), 1)
        with self.assertRaisesRegex(kiln.ArgumentError, "one batch: found 2 in input 1, and 3"):
            c(torch.rand(3, 3, 5), torch.rand(2, 5, 2))

    def test_what_is_not_one_graph_is_compiled_for_each_shape(self):
        def f(x):
            return x * 2 if x.shape[0] == 3 else x + torch.arange(x.shape[0]).view(-1, 1)

        for own in (1, 2, 4, 7):
            c = kiln.torch.compile(f, torch.rand(own, 4), dynamic_batch=True)
            for n in (1, 3, 8):
                x = torch.rand(n, 4)
                self.assert_equal(c(x), f(x))
            self.assertIn("for each shape", str(c.report))


if __name__ == "__main__":
    unittest.main()
