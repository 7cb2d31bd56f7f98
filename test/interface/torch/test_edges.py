"""Operators at the edges of their rules: ranks that a reshape changes, factors near 1, signed zeros, strides of inputs."""

import itertools
import math
import unittest

import kiln.torch
import torch
from torch import nn

from test_compile import Case

F = nn.functional


class EdgesTest(Case):
    def check(self, f, *inputs, by="kiln", tolerance=1e-6):
        c = kiln.torch.compile(f, inputs, check=False, min_size=1)
        self.assert_equal(c(*inputs), f(*inputs), tolerance)
        self.assertIn(by, [p.by for p in c.report.parts])
        return c

    def test_promotion_is_that_of_the_reshaped(self):
        scalar, one, wide = torch.tensor(1.1), torch.tensor([1.1]), torch.tensor(2.2, dtype=torch.float64)
        for a, lens in itertools.product((scalar, one), ((1,), ())):
            for op in (torch.mul, torch.div):
                self.check(lambda a, b: op(a.reshape(lens), b) + 1, a, wide)

    def test_a_factor_that_keeps_an_extent(self):
        for mode, dims in (("nearest", 1), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)):
            for n, antialias in ((4, False), (9, False), (9, True)):
                if antialias and mode not in ("bilinear", "bicubic"):
                    continue
                x = torch.rand(1, 2, *(n,) * (dims - 1), 9)
                for factors in ((1.05,) * dims, (2.0,) * (dims - 1) + (1.05,)):
                    for corners in ((None,) if "nearest" in mode else (False, True)):
                        self.check(
                            lambda x: F.interpolate(x, scale_factor=factors, mode=mode, align_corners=corners, antialias=antialias), x,
                            tolerance=1e-5,
                        )

    def test_pads_below_zero(self):
        for mode in ("reflect", "replicate", "circular"):
            for pads in ((-1, 2), (-4, 2)) if mode != "circular" else ((-1, 2),):
                self.check(lambda x: F.pad(x, pads, mode=mode) * 2, torch.rand(2, 3, 6))

    def test_an_inputs_memory(self):
        for f in (
            lambda x: x.as_strided((4, 3), (3, 1)) * 2,
            lambda x: x.t().as_strided((2, 2), (3, 1)) * 2,
        ):
            c = self.check(f, torch.rand(4, 3))
            x = torch.rand(3, 4).t()
            self.assert_equal(c(x), f(x))
            self.assertIn("strides", c.report.reasons["as_strided"])
        own = self.check(lambda x: (x @ x.t()).as_strided((2, 3), (1, 2)) * 2, torch.rand(4, 3))
        self.assertEqual(own.report.reasons, {})

    def test_angles(self):
        v = torch.tensor([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 3.0, -2.5, math.nan])
        for dtype in (torch.float32, torch.float64):
            y, x = v[:, None].to(dtype), v[None].to(dtype)
            c = self.check(torch.atan2, y, x)
            known = ~torch.atan2(y, x).isnan()
            self.assertTrue(torch.equal(torch.signbit(c(y, x))[known], torch.signbit(torch.atan2(y, x))[known]))
        self.check(torch.atan2, torch.randn(50), torch.randn(50))

    def test_repeated_elements(self):
        for f in (
            lambda x: x.repeat_interleave(2) + 1,
            lambda x: torch.repeat_interleave(x, 3, 1) + 1,
            lambda x: torch.repeat_interleave(input=x, repeats=3, dim=0) + 1,
            lambda x: x.repeat_interleave(2, dim=0, output_size=8) + 1,
        ):
            self.assertEqual(self.check(f, torch.rand(4, 3)).report.reasons, {})


if __name__ == "__main__":
    unittest.main()
