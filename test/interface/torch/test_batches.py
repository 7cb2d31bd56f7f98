"""One program for any batch, and the modules that it is not for."""

import unittest

import kiln
import kiln.torch
import torch
from torch import nn

from test_compile import Case, perceptron

F = nn.functional


def compiled(f, *inputs, **options):
    return kiln.torch.compile(f, inputs, dynamic_batch=True, min_size=1, **options)


class BatchesTest(Case):
    def agree(self, f, own=4, batches=(1, 2, 4, 9, 20), **options):
        c = compiled(f, torch.rand(own, 3), **options)
        for n in batches:
            x = torch.rand(n, 3)
            self.assert_equal(c(x), f(x))
        return c

    def test_one_row_takes_another_way(self):
        for f in (lambda x: (x * 2 + 1).squeeze().relu(), lambda x: x * 2 if x.shape[0] == 1 else x * 3):
            c = self.agree(f)
            self.assertTrue(c.report.dynamic_batch, str(c.report))
            self.assertEqual(len(c.reports), 2)  # any but one, and one

    def test_no_row(self):
        c = self.agree(lambda x: x * 2 + 1, batches=(4, 0, 1, 7))
        self.assertEqual([r.dynamic_batch for r in c.reports], [True, False])

    def test_more_results_or_other_branches_for_larger_batches(self):
        for f in (
            lambda x: x.split(6)[0] * 2,
            lambda x: x[: min(x.shape[0], 6)] * 2,
            lambda x: x * 2 + 1 if x.shape[0] < 8 else x * 3,
            lambda x: sum(p.sum() for p in x.unbind(0)) + x,
        ):
            c = self.agree(f)
            self.assertFalse(c.report.dynamic_batch)
            self.assertIn("for each shape", str(c.report))
        # as many parts for any batch
        c = self.agree(lambda x: torch.cat(torch.cat([x, x + 1]).chunk(2)[::-1]))
        self.assertTrue(c.report.dynamic_batch, str(c.report))

    def test_large_modules_run_with_no_large_batch(self):
        seen = []

        def f(x):
            seen.append(x.shape[0])
            return x @ torch.ones(3, 3) * 2

        compiled(f, torch.rand(4, 3))
        self.assertEqual(max(seen), 67)
        weight = torch.eye(1024)

        def large(x):
            seen.append(x.shape[0])
            for _ in range(80):
                x = x @ weight
            return x

        seen.clear()
        compiled(large, torch.rand(2, 1024))
        self.assertEqual(max(seen), (1 << 31) // (80 << 20))

    def test_numbers_that_depend_on_the_batch(self):
        for f, symbol in (
            (lambda x: x.sum(0) / x.shape[0], True),
            (lambda x: x + x.size(0), True),
            (lambda x: x / x.numel(), True),
            (lambda x: torch.full((x.shape[0], 2), x.shape[0]) * 2, True),
            (lambda x: torch.eye(x.shape[0]) * 2, True),
            (lambda x: x.t().contiguous().var(1) * 2 if x.shape[0] > 1 else x.sum(0), None),
            (lambda x: x.diagonal() * 2, False),
            (lambda x: x.split(2)[0] * 2, False),
            (lambda x: F.adaptive_avg_pool1d(x.t()[None], 2), None),
        ):
            c = self.agree(f, batches=(2, 4, 6, 10))
            if symbol is not None:
                self.assertEqual(c.report.dynamic_batch, symbol, str(c.report))
        self.agree(lambda x: x * torch.ones(4, 3), batches=(4,))
        c = self.agree(lambda x: x.view(x.shape[0] // 2, 2, 3) * 2, batches=(2, 4, 6))
        self.assertIn("for each shape", str(c.report))
        refused = compiled(lambda x: x + x.size(0), torch.rand(4, 3))
        self.assertIn("depends on the batch", refused.report.reasons["add.Tensor"])

    def test_a_lowering_that_fails_leaves_its_operator(self):
        f = lambda x: F.max_pool2d(x * 2, (3, 2), (4, 2), (0, 1), 1, True) + 1  # noqa: E731
        x = torch.rand(2, 3, 2, 4)
        c = kiln.torch.compile(f, x, min_size=1)
        self.assert_equal(c(x), f(x))
        self.assertIn("fits into the padded input", c.report.reasons["max_pool2d_with_indices"])
        self.assertEqual([p.by for p in c.report.parts], ["kiln", "torch", "kiln"])

    def test_calls_with_fewer_tensors(self):
        def f(x, y=None):
            return x * 2 if y is None else x + y

        c = kiln.torch.compile(f, (torch.rand(2, 3), torch.rand(2, 3)), dynamic_batch=True)
        for n in (2, 5):
            x = torch.rand(n, 3)
            self.assert_equal((c(x), c(x, x)), (x * 2, x * 2))
        self.assertEqual([r.dynamic_batch for r in c.reports], [True, True])

    def test_other_structures_keep_their_programs(self):
        def f(x, how):
            return x * 2 if how else x + torch.arange(x.shape[0] ** 2)[: x.shape[0], None]

        c = kiln.torch.compile(f, (torch.rand(3, 3), True), dynamic_batch=True)
        for n in (3, 2, 7):
            x = torch.rand(n, 3)
            self.assert_equal((c(x, True), c(x, False), c(x, True)), (x * 2, f(x, False), x * 2))
        self.assertEqual([r.dynamic_batch for r in c.reports], [True, False, False, False])

    def test_dims_from_the_end(self):
        for how in (-1, {0: -1}):
            c = kiln.torch.compile(lambda x: x * 2, torch.rand(3, 2), dynamic_batch=how)
            self.assert_equal(c(torch.ones(3, 5)), torch.full((3, 5), 2.0))
            self.assertEqual(len(c.reports), 1)
        for how in (2, -3, {0: 2}, {1: 0}, {}):
            with self.assertRaisesRegex(kiln.ArgumentError, "dynamic_batch"):
                kiln.torch.compile(lambda x: x * 2, torch.rand(3, 2), dynamic_batch=how)

    def test_int8_of_any_batch(self):
        m = perceptron()
        samples = [torch.rand(n, 8) for n in (2, 7)]
        c = kiln.torch.compile(m, torch.rand(4, 8), precision="int8", samples=samples, dynamic_batch=True)
        self.assertTrue(c.report.dynamic_batch, str(c.report))
        for n in (1, 4, 9):
            x = torch.rand(n, 8)
            self.assert_equal(c(x), m(x).detach(), 0.05)

        def f(x, y):
            rows = torch.linalg.qr(torch.eye(3))[1][:, :1].sum() + torch.zeros(x.shape[0], 1)
            return m(x) + rows, (y * 2 + 1).relu() @ torch.ones(8, 2)

        c = kiln.torch.compile(f, samples[:1] * 2, precision="int8", samples=[(x, x) for x in samples], dynamic_batch=True,
                               min_size=1, eager=["zeros", "full"])
        self.assertTrue(c.report.dynamic_batch, str(c.report))
        for n in (2, 5):
            x = torch.rand(n, 8)
            self.assert_equal(c(x, x), f(x, x), 0.05)


if __name__ == "__main__":
    unittest.main()
