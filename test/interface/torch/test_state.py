"""What a compiled module has of its own, and what is the user's: state, constants, modes, keys."""

import gc
import math
import threading
import unittest
import warnings
from unittest import mock

import kiln
import kiln.torch
import torch
from torch import nn

from test_compile import Case, Counting, perceptron

compile = kiln.torch.compile


class Logging(nn.Module):
    """Keeps what it computed in a list, a dict and an attribute; its hook is a method of its own."""

    def __init__(self):
        super().__init__()
        self.log, self.by_name, self.last = [], {}, None
        self.inner = nn.Linear(3, 3)
        self.inner.register_forward_hook(self.hook)

    def hook(self, module, args, out):
        self.by_name["hooked"] = out

    def forward(self, x):
        self.last = x + 1
        self.log.append(self.last)
        self.by_name["last"] = self.last
        return self.inner(x) * self.last


class Rebinding(nn.Module):
    def __init__(self, inner=False):
        super().__init__()
        self.register_buffer("h", torch.zeros(3))
        self.inner = Rebinding() if inner else None

    def forward(self, x):
        self.h = self.h + x.sum(0)
        return (x if self.inner is None else self.inner(x)) + self.h


class StateTest(Case):
    def test_other_threads_may_run_and_compile(self):
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
        c = compile(net, torch.rand(1, 4))
        wrong, done = [], threading.Event()

        def shapes(first):
            try:
                for n in range(first, first + 6):
                    x = torch.rand(n, 4)
                    if kiln.torch.report.error_of([c(x)], [net(x).detach()]) > 1e-6:
                        wrong.append(n)
            except Exception as why:
                wrong.append(why)

        def eagerly():
            z = torch.rand(3, 4)
            wanted = net(z).detach()
            while not done.is_set():
                found = net(z)
                if torch._is_functional_tensor(found) or not torch.equal(found.detach(), wanted):
                    wrong.append("eager")

        runner = threading.Thread(target=eagerly)
        runner.start()
        threads = [threading.Thread(target=shapes, args=(2 + 3 * i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        done.set()
        runner.join()
        self.assertEqual(wrong, [])
        self.assertEqual(len(c.reports), 1 + 15)  # each shape once

    def test_constant_results_belong_to_the_caller(self):
        weight = torch.ones(3)
        f = lambda x: (x * 2 + 1, torch.zeros(3) + 1, torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])[1:], weight)  # noqa: E731
        c = compile(f, torch.rand(4, 3))
        for out in c(torch.rand(4, 3))[1:4]:
            out.add_(5)
        self.assert_equal(c(torch.rand(4, 3))[1:], f(torch.rand(4, 3))[1:])
        self.assertEqual(c(torch.rand(4, 3))[4].data_ptr(), weight.data_ptr())  # as the module's own is

    def test_buffers_that_are_bound_anew(self):
        for script in (False, True):
            m, x = Rebinding(inner=not script), torch.rand(4, 3)
            net = torch.jit.script(m) if script else m
            c = compile(net, x)
            self.assertEqual(float(net.h.abs().sum()), 0)
            for _ in range(3):
                self.assert_equal(c(x), m(x))
            self.assert_equal(c.h, m.h)

        class Growing(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("h", torch.zeros(1))
                self.plain = torch.zeros(3)

            def forward(self, x, grows):
                if grows:
                    self.h = torch.cat([self.h, x.sum().view(1)])
                else:
                    self.plain = self.plain + x.sum(0)
                return x + self.plain

        with self.assertRaisesRegex(kiln.torch.TraceError, r"found h of \[1\] torch.float32 replaced by \[2\]"):
            compile(Growing(), (torch.rand(4, 3), True))
        with self.assertRaisesRegex(kiln.torch.TraceError, "the attribute Growing.plain"):
            compile(Growing(), (torch.rand(4, 3), False))

    def test_objects_of_the_module_stay(self):
        m, x = Logging(), torch.rand(4, 3)
        m.log.append("before")
        log, names = m.log, m.by_name
        c = compile(m, x)
        self.assertEqual((m.log, m.by_name, m.last), (["before"], {}, None))
        self.assertIs(m.log, log)
        self.assertIs(m.by_name, names)
        self.assert_equal(c(x), m(x).detach())

    def test_tensors_of_nobody_are_not_mutated(self):
        buffer, x = torch.zeros(3), torch.rand(4, 3)
        for f in (
            lambda x: (buffer.add_(1), x + buffer)[1],
            lambda x: (buffer.add_(x[0]), x + buffer)[1],
            lambda x: (buffer[:2].mul_(2).add_(1), x * 2)[1],
        ):
            with self.assertRaisesRegex(kiln.torch.TraceError, "make that a buffer of the module"):
                compile(f, x)
            self.assertEqual(buffer.tolist(), [0, 0, 0])
        own = lambda x: x + torch.zeros(3).add_(2) + torch.tensor([1.0, 2.0, 3.0]).mul_(2)  # noqa: E731
        self.assert_equal(compile(own, x)(x), own(x))

    def test_one_tensor_given_twice(self):
        f = lambda a, b: (a.add_(1), b * 2)[1]  # noqa: E731
        c = compile(f, (torch.zeros(4), torch.zeros(4)))
        x = torch.zeros(4)
        for a, b in ((x, x), (x[:4], x[2:].repeat(2).view(4)[:0].new_zeros(4)), ):
            if a.data_ptr() == b.data_ptr():
                with self.assertRaisesRegex(kiln.ArgumentError, "found inputs 0 and 1"):
                    c(a, b)
            else:
                self.assert_equal(c(a, b), b * 2)
        both = torch.zeros(8)
        self.assert_equal(c(both[:4], both[4:]), torch.zeros(4))
        self.assertEqual(both.tolist(), [1] * 4 + [0] * 4)
        reads = compile(lambda a, b: a + b * 2, (torch.zeros(4), torch.zeros(4)))
        self.assert_equal(reads(x, x), x * 3)

    def test_a_bound_method(self):
        net, x = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.9), nn.BatchNorm1d(3)), torch.rand(4, 3)
        c = compile(net.forward, x)
        self.assertTrue(net.training and net[1].training)
        self.assertEqual(int(net[2].num_batches_tracked), 0)
        self.assert_equal(c(x), net.eval()(x).detach())

    def test_modes_within_another_module(self):
        outer = nn.Sequential(compile(perceptron(), torch.rand(2, 8)), nn.Dropout())
        with self.assertWarnsRegex(UserWarning, "inference"):
            outer.train()
        self.assertEqual((outer[0].training, outer[1].training), (False, True))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outer.eval()
        found = outer.load_state_dict({}, strict=False)
        self.assertIn("0._extra_state", found.missing_keys)
        self.assert_equal(outer[0](torch.zeros(2, 8)).shape, torch.Size([2, 4]))

    def test_random_numbers(self):
        x = torch.zeros(4)
        torch.manual_seed(3)
        wanted = torch.rand(2)
        torch.manual_seed(3)
        c = compile(lambda x: x * 2 + torch.rand(4), x)
        self.assertTrue(torch.equal(torch.rand(2), wanted))  # compilation draws none of the caller's
        self.assertIsNone(c.report.error)
        self.assertIn("random", str(c.report))
        self.assertFalse(torch.equal(c(x), c(x)))
        filled = compile(lambda x: x * torch.empty(4).fill_(3) + 1, x)
        self.assertEqual(filled.report.error, 0)

    def test_keys(self):
        f = lambda x, k=0.0, a=None, b=None: x * k if a is None else (a - b) * k  # noqa: E731
        x, y = torch.rand(3), torch.rand(3)
        c = compile(f, (x, math.nan))
        for _ in range(3):
            c(x, float("nan"))
        self.assertEqual(len(c.reports), 1)
        self.assertTrue(torch.signbit(c(x, -0.0)).all())
        self.assertFalse(torch.signbit(c(x, 0.0)).any())
        count = len(c.reports)
        for given in ({"a": x, "b": y}, {"b": y, "a": x}):
            self.assert_equal(c(x, 1.0, **given), x - y)
        self.assertEqual(len(c.reports), count + 1)
        named = compile(f, (x, 1.0), {"b": y, "a": x})
        self.assert_equal(named(x, 1.0, a=x, b=y), x - y)
        self.assertEqual(len(named.reports), 1)

    def test_few_variants_are_kept(self):
        with mock.patch.object(kiln.torch.module, "MOST", 3):
            c = compile(lambda x: x * 2 + 1, torch.rand(1))
            first = c.report
            for n in (2, 3, 2, 4):
                self.assert_equal(c(torch.ones(n)), torch.full((n,), 3.0))
            self.assertEqual([k[1][0] for k in c._variants], [(1,), (2,), (4,)])  # 3 was called longest ago
            self.assertIs(c.report, first)
        gc.collect()


if __name__ == "__main__":
    unittest.main()
