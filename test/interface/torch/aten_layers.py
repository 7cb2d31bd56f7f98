"""PyTorch's operators of networks' layers, in kiln beside eager ones."""

import math

import torch
from aten_cases import CaseTest, numbers

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


class LinearTest(CaseTest):
    def test_products(self):
        for dtype in FLOATS + (torch.int64,):
            x, y = numbers(3, 4, dtype=dtype), numbers(4, 5, dtype=dtype)
            self.agrees("mm", x, y)
            self.agrees("addmm", numbers(5, dtype=dtype), x, y)
            self.agrees("bmm", numbers(2, 3, 4, dtype=dtype), numbers(2, 4, 5, dtype=dtype))
            self.agrees("mv", x, numbers(4, dtype=dtype))
            self.agrees("dot", numbers(4, dtype=dtype), numbers(4, dtype=dtype, seed=1))
        x, y, b = numbers(3, 4), numbers(4, 5), numbers(3, 5)
        self.agrees("mm", x, numbers(5, 4).t())
        self.agrees("mm", torch.zeros(0, 4), y)
        self.agrees("mm", torch.zeros(3, 0), torch.zeros(0, 5))
        self.agrees("addmm", b, x, y, beta=0.5, alpha=2)
        self.agrees("addmm", torch.full((3, 5), math.nan), x, y, beta=0)
        self.agrees("baddbmm", numbers(2, 3, 5), numbers(2, 3, 4), numbers(2, 4, 5), beta=2, alpha=0.5)
        self.agrees("addbmm", b, numbers(2, 3, 4), numbers(2, 4, 5), alpha=2)
        self.agrees("addmv", numbers(3), x, numbers(4), beta=2)
        self.agrees("vdot", numbers(4), numbers(4, seed=2))
        self.agrees("outer", numbers(4), numbers(3))
        self.agrees("ger", numbers(4), numbers(3))
        self.agrees("addr", numbers(4, 3), numbers(4), numbers(3), alpha=2)
        self.agrees("inner", numbers(2, 4), numbers(3, 4))
        self.agrees("inner", numbers(4), numbers(4))
        self.agrees("inner", torch.tensor(2.0), numbers(4))

    def test_matmul(self):
        for a, b in (((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)),
                     ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((3, 4), (2, 4, 5))):
            self.agrees("matmul", numbers(*a), numbers(*b))
        for bias in (None, numbers(5)):
            self.agrees("linear", numbers(2, 3, 4), numbers(5, 4), bias)
        self.agrees("linear", numbers(4), numbers(5, 4))
        self.agrees("linear", numbers(3, 4), numbers(4))
        self.agrees("linear", numbers(3, 4, dtype=torch.bfloat16), numbers(5, 4, dtype=torch.bfloat16))

    def test_sums_of_products(self):
        extents = {"b": 2, "h": 3, "g": 4, "i": 5, "j": 2, "k": 6}
        for equation in ("ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "bghid,bghjd->bghij", "bghij,bghjd->bghid",
                         "i,j->ij", "i,i->", "ij,ij->ij", "bij,bij->b", "ijk,jg->ikg", "bi,bj->bji", "ij,jk", "ij->ji",
                         "bij->j", "bij,k->bk", "bhgi,jh->bjgi", "bij,kj->kib"):
            terms = equation.split("->")[0].split(",")
            x = [numbers(*(extents.get(ch, 7) for ch in t), seed=i) for i, t in enumerate(terms)]
            self.agrees("einsum", equation, x)
        for equation in ("...ij,...jk->...ik", "...ij,jk->i...k", "i...->...", "b...,b...->..."):
            terms = equation.split("->")[0].split(",")
            x = [numbers(2, 3, 4, 4, seed=i) if "..." in t else numbers(4, 4) for i, t in enumerate(terms)]
            self.agrees("einsum", equation, x)
        self.agrees("einsum", "ij,jk->ik", [numbers(3, 4, dtype=torch.int64), numbers(4, 2, dtype=torch.int64)])
        self.refused("einsum", "ii->i", [numbers(3, 3)], reason="diagonal")
        self.refused("einsum", "ij,jk,kl->il", [numbers(3, 3)] * 3, reason="more than two")
        self.refused("einsum", "ij,ij->ij", [numbers(3, 3), numbers(1, 3)], reason="extents of 1")

    def test_matrices(self):
        m = numbers(2, 3, 3) + 4 * torch.eye(3)
        for name in ("linalg_inv", "inverse", "linalg_det", "det"):
            self.agrees(name, m, tolerance=3e-5)
        self.agrees("linalg_inv_ex", m, read=[0], tolerance=3e-5)
        for name in ("_linalg_det",):
            self.agrees(name, m, read=[0], tolerance=3e-5)
        for p in (1.0, 2.0):
            self.agrees("cdist", numbers(2, 3, 4), numbers(2, 5, 4, seed=1), p)
            self.agrees("_cdist_forward", numbers(2, 3, 4), numbers(2, 5, 4, seed=1), p, None)
        self.refused("_cdist_forward", numbers(3, 4), numbers(5, 4), 3.0, None, reason="order")


class ConvolutionTest(CaseTest):
    def test_convolutions(self):
        none = ([0, 0], 1)
        for dtype in FLOATS:
            self.agrees("convolution", numbers(2, 4, 7, 8, dtype=dtype), numbers(6, 4, 3, 2, dtype=dtype),
                        numbers(6, dtype=dtype), [2, 1], [1, 0], [1, 2], False, *none)
        x = numbers(2, 4, 9)
        self.agrees("convolution", x, numbers(6, 2, 3), None, [2], [1], [2], False, [0], 2)
        self.agrees("convolution", numbers(1, 2, 5, 6, 4), numbers(3, 2, 2, 3, 1), numbers(3), [1], [1], [1], False, [0], 1)
        self.agrees("convolution", numbers(2, 4, 5, 5), numbers(4, 1, 3, 3), numbers(4), [1, 1], [1, 1], [1, 1], False, [0, 0], 4)
        self.agrees("convolution", numbers(0, 4, 5, 5), numbers(4, 4, 3, 3), None, [1, 1], [1, 1], [1, 1], False, *none)
        flags = (False, False, True)
        self.agrees("_convolution.deprecated", x, numbers(6, 4, 3), None, [1], [1], [1], False, [0], 1, *flags)
        self.agrees("_convolution", x, numbers(6, 4, 3), numbers(6), [1], [1], [1], False, [0], 1, *flags, True)
        for axes in (1, 2, 3):
            x, w, b = numbers(2, 4, *range(5, 5 + axes)), numbers(6, 2, *[3] * axes), numbers(6)
            self.agrees(f"conv{axes}d", x, w, b, [2], [1], [1], 2)
            self.agrees(f"conv{axes}d", x[0], w, None, groups=2)
            self.agrees(f"conv{axes}d.padding", x, numbers(6, 2, *[4] * axes), b, [1], "same", [1], 2)
            self.agrees(f"conv{axes}d.padding", x, w, None, [1], "valid", [2] if axes == 1 else [1], 2)
        self.agrees("convolution_overrideable", x, w, b, *[[1] * 3] * 3, False, [0] * 3, 2, like=torch.ops.aten.convolution.default)
        self.agrees("_convolution_mode", numbers(2, 4, 5), numbers(6, 2, 3), None, [1], "same", [2], 2)

    def test_transposed(self):
        for dtype in FLOATS:
            self.agrees("convolution", numbers(2, 4, 5, 4, dtype=dtype), numbers(4, 3, 3, 2, dtype=dtype),
                        numbers(3, dtype=dtype), [2, 3], [1, 0], [1, 2], True, [1, 2], 1, precise=True)
        self.agrees("convolution", numbers(2, 4, 5), numbers(4, 3, 3), numbers(6), [2], [1], [1], True, [0], 2)
        for name, axes in (("conv_transpose1d", 1), ("conv_transpose2d.input", 2), ("conv_transpose3d.input", 3)):
            x, w = numbers(2, 4, *[4] * axes), numbers(4, 3, *[3] * axes)
            self.agrees(name, x, w, numbers(3), [2], [1], [1], 1, [1])
            self.agrees(name, x[0], w)

    def test_columns(self):
        x = numbers(2, 3, 7, 6)
        self.agrees("im2col", x, [3, 2], [1, 2], [1, 0], [2, 1])
        self.agrees("im2col", x[0], [2, 2], [1, 1], [0, 0], [1, 1])
        columns = torch.ops.aten.im2col(x, [3, 2], [1, 2], [1, 0], [2, 1])
        self.agrees("col2im", columns, [7, 6], [3, 2], [1, 2], [1, 0], [2, 1])


class PoolTest(CaseTest):
    def test_greatest(self):
        for dtype in FLOATS:
            x = numbers(2, 3, 7, 8, dtype=dtype)
            self.agrees("max_pool2d_with_indices", x, [3, 2], [2, 2], [1, 0], read=[0])
        x = numbers(2, 3, 7, 8)
        for how in (([3, 2], [2, 2], [1, 1], [1, 2], True), ([2],), ([3, 3], [1, 1], [1, 1])):
            self.agrees("max_pool2d_with_indices", x, *how)
            self.agrees("max_pool2d", x, *how)
        self.agrees("max_pool2d_with_indices", -x.abs(), [3, 3], [2, 2], [1, 1])
        self.agrees("max_pool2d_with_indices", x[0], [2, 2])
        self.agrees("max_pool3d_with_indices", numbers(1, 2, 5, 6, 4), [2, 3, 2], [2, 1, 2], [1, 1, 0])
        self.agrees("max_pool3d", numbers(2, 5, 6, 4), [2])
        self.agrees("max_pool1d", numbers(2, 3, 9), [3], [2], [1])
        self.agrees("max_pool1d_with_indices", numbers(2, 3, 9), [3], [2], [1])

    def test_means(self):
        for dtype in FLOATS:
            self.agrees("avg_pool2d", numbers(2, 3, 7, 8, dtype=dtype), [3, 2], [2, 2], [1, 1])
        x = numbers(2, 3, 7, 8)
        for ceil_mode in (False, True):
            for counted in (False, True):
                for divisor in (None, 5):
                    self.agrees("avg_pool2d", x, [3, 3], [2, 3], [1, 1], ceil_mode, counted, divisor)
        self.agrees("avg_pool2d", x[0], [2])
        self.agrees("avg_pool1d", numbers(2, 3, 9), [3], [2], [1], True, False)
        self.agrees("avg_pool3d", numbers(2, 3, 5, 6, 7), [2, 3, 2], [2], [1], True)
        self.agrees("avg_pool3d", numbers(2, 3, 5, 6, 7), [2], divisor_override=3)

    def test_to_a_size(self):
        for dtype in FLOATS:
            x = numbers(2, 3, 6, 8, dtype=dtype)
            for size in ([1, 1], [3, 4], [4, 5], [7, 9]):
                self.agrees("_adaptive_avg_pool2d", x, size)
        x = numbers(2, 3, 6, 8)
        for size in ([1, 1], [3, 4], [4, 5]):
            self.agrees("adaptive_avg_pool2d", x, size)
            self.agrees("adaptive_max_pool2d", x, size, read=[0])
            self.agrees("adaptive_avg_pool2d", x[0], size)
        self.agrees("adaptive_avg_pool1d", numbers(2, 3, 7), [3])
        self.agrees("adaptive_max_pool1d", numbers(2, 3, 7), [3], read=[0])
        for name in ("_adaptive_avg_pool3d", "adaptive_avg_pool3d"):
            self.agrees(name, numbers(2, 3, 5, 6, 7), [2, 3, 1])
        self.agrees("adaptive_max_pool3d", numbers(2, 3, 5, 6, 7), [2, 3, 1], read=[0])
        self.refused("adaptive_max_pool2d", x, [2, 2], reason="beyond the first 1")

    def test_pads(self):
        for dtype in FLOATS + (torch.int64, torch.bool):
            self.agrees("constant_pad_nd", numbers(2, 3, 4, dtype=dtype), [1, 2, 0, 3], 1)
        x = numbers(2, 3, 4, 5)
        self.agrees("constant_pad_nd", x, [-1, 2, 1, -2], 0.5)
        self.agrees("constant_pad_nd", x, [0, 0])
        for mode in ("reflection", "replication"):
            self.agrees(f"{mode}_pad1d", numbers(2, 3, 4), [2, 1])
            self.agrees(f"{mode}_pad2d", x, [2, 1, 3, 0])
            self.agrees(f"{mode}_pad2d", x[0], [1, 1, 1, 1])
            self.agrees(f"{mode}_pad3d", numbers(1, 2, 3, 4, 5), [2, 1, 3, 0, 1, 1])
        for mode in ("constant", "reflect", "replicate", "circular"):
            self.agrees("pad", x, [2, 1, 1, 2], mode)
        self.agrees("pad", x, [1, 1], "constant", 2.5)
        self.agrees("_pad_circular", x, [2, 1, 1, 2])

    def test_shuffles(self):
        self.agrees("pixel_shuffle", numbers(2, 8, 3, 4), 2)
        self.agrees("pixel_unshuffle", numbers(2, 2, 6, 9), 3)
        self.agrees("channel_shuffle", numbers(2, 6, 3, 4), 3)
        self.agrees("native_channel_shuffle", numbers(2, 6, 3, 4), 2)


class NormalizeTest(CaseTest):
    def test_batches(self):
        for dtype in FLOATS:
            x = numbers(2, 3, 4, 5, dtype=dtype)
            w, b, m = (numbers(3, dtype=dtype, seed=s) for s in (1, 2, 3))
            v = numbers(3, dtype=dtype, low=0.5)
            self.agrees("native_batch_norm", x, w, b, m, v, False, 0.1, 1e-5)
            self.agrees("native_batch_norm", x, None, None, m, v, False, 0.1, 1e-3, read=[0])
            self.agrees("batch_norm", x, w, b, m, v, False, 0.1, 1e-5, False)
            self.agrees("native_batch_norm", x, w, b, None, None, True, 0.1, 1e-5)
            self.agrees("batch_norm", x, None, None, None, None, True, 0.1, 1e-5, False)
            self.agrees("_native_batch_norm_legit", x, w, b, m, v, False, 0.1, 1e-5)
            like = torch.ops.aten.native_batch_norm.default
            self.agrees("miopen_batch_norm", x, w, b, m, v, False, 0.1, 1e-5, read=[0], like=like)
            self.agrees("cudnn_batch_norm", x, w, b, m, v, False, 0.1, 1e-5, read=[0], like=like)
            self.agrees("_native_batch_norm_legit_no_training", x, w, b, m, v, 0.1, 1e-5, read=[0])
            self.agrees("_native_batch_norm_legit.no_stats", x, w, b, True, 0.1, 1e-5)
        self.agrees("native_batch_norm", numbers(4, 3), w.float(), b.float(), m.float(), v.float(), False, 0.1, 1e-5)
        self.refused("native_batch_norm", numbers(4, 3), None, None, m.float(), v.float(), True, 0.1, 1e-5, reason="in training")

    def test_layers_and_groups(self):
        for dtype in FLOATS:
            x, w, b = numbers(2, 6, 5, dtype=dtype), numbers(5, dtype=dtype), numbers(5, dtype=dtype, seed=3)
            self.agrees("native_layer_norm", x, [5], w, b, 1e-5)
            self.agrees("native_layer_norm", x, [6, 5], None, None, 1e-3)
            self.agrees("layer_norm", x, [5], w, b)
            self.agrees("rms_norm", x, [5], w, 1e-5)
            c, d = numbers(6, dtype=dtype), numbers(6, dtype=dtype, seed=3)
            self.agrees("native_group_norm", x, c, d, 2, 6, 5, 3, 1e-5)
            self.agrees("group_norm", x, 2, c, d)
            self.agrees("instance_norm", x, c, d, None, None, True, 0.1, 1e-5, False)
        self.agrees("group_norm", numbers(2, 6, 3, 4), 3)
        self.agrees("native_layer_norm", numbers(2, 3), [3], None, None, 1e-5, read=[0])
        self.agrees("native_group_norm", numbers(2, 6, 5), None, None, 2, 6, 5, 3, 1e-5, read=[0])
        self.agrees("instance_norm", numbers(2, 3, 4), None, None, numbers(3), numbers(3, low=1), False, 0.1, 1e-5, False)

    def test_softmax(self):
        for dtype in FLOATS:
            x = numbers(2, 3, 5, dtype=dtype)
            for dim in (0, -1):
                self.agrees("_softmax", x, dim, False)
                self.agrees("_log_softmax", x, dim, False)
                self.agrees("softmax.int", x, dim)
                self.agrees("log_softmax.int", x, dim)
        self.agrees("softmax.int", numbers(2, 3, dtype=torch.float16), 1, torch.float32)
        self.agrees("softmax.int", numbers(2, 3, dtype=torch.int64), 1, torch.float64)
        self.agrees("_safe_softmax", torch.tensor([[1.0, -math.inf], [-math.inf, -math.inf]]), 1)
        self.agrees("softmax.int", torch.tensor(2.0), 0)
        self.agrees("log_softmax.int", torch.tensor(2.0), 0)

    def test_losses(self):
        x, t = numbers(6, 4), torch.tensor([0, 3, 1, -100, 2, 2])
        for weight in (None, numbers(4, low=0.1)):
            for reduction in (0, 1, 2):
                self.agrees("nll_loss_forward", x, t, weight, reduction, -100)
                self.agrees("nll_loss_forward", x, t.clamp(min=0), weight, reduction, 2)
                self.agrees("nll_loss", x, t, weight, reduction)
                plane = numbers(2, 4, 3, 3), torch.arange(18).reshape(2, 3, 3) % 4
                for name in ("nll_loss2d_forward", "nll_loss2d", "nll_loss_nd"):
                    args = (*plane, weight, reduction, 1)
                    self.agrees(name, *args)
        self.agrees("nll_loss_forward", numbers(4), torch.tensor(2), None, 1, -100)
        for name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"):
            for reduction in (0, 1, 2):
                self.agrees(name, x, numbers(6, 4, seed=2), reduction)
        self.agrees("huber_loss", x, numbers(6, 4, seed=2), 1, 0.7)
        self.agrees("smooth_l1_loss", x, numbers(6, 4, seed=2), 1, 0.7)
        self.agrees("smooth_l1_loss", x, numbers(6, 4, seed=2), 1, 0.0)


class ResizeTest(CaseTest):
    def test_nearest(self):
        for axes in (1, 2, 3):
            for name in (f"upsample_nearest{axes}d", f"_upsample_nearest_exact{axes}d"):
                for dtype in (torch.float32, torch.float16, torch.uint8):
                    x = numbers(2, 3, *range(4, 4 + axes), dtype=dtype)
                    self.agrees(name, x, [7] * axes)
                    self.agrees(f"{name}.vec", x, None, [2.0] * axes)
                x = numbers(2, 3, *range(4, 4 + axes))
                self.agrees(name, x, [3] * axes)
                self.agrees(f"{name}.vec", x, None, [1.7] * axes)
                self.agrees(f"{name}.vec", x, [9] * axes, None)

    def test_averages(self):
        for name, axes in (("upsample_linear1d", 1), ("upsample_bilinear2d", 2), ("upsample_trilinear3d", 3),
                           ("upsample_bicubic2d", 2)):
            for corners in (False, True):
                for dtype in FLOATS:
                    self.agrees(name, numbers(2, 3, *range(4, 4 + axes), dtype=dtype), [7] * axes, corners, precise=True)
                x = numbers(2, 3, *range(4, 4 + axes))
                self.agrees(name, x, [3] * axes, corners)
                self.agrees(name, x, [1] * axes, corners)
                self.agrees(f"{name}.vec", x, None, corners, [1.7] * axes)
                self.agrees(f"{name}.vec", x, [9] * axes, corners, None)
        for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
            for size in ([9, 11], [3, 2]):
                self.agrees(name, numbers(1, 3, 7, 8), size, False)
                self.agrees(f"{name}.vec", numbers(1, 3, 7, 8), size, False, None)

    def test_samples(self):
        for mode in (0, 1, 2):
            for padding in (0, 1, 2):
                for corners in (False, True):
                    self.agrees("grid_sampler_2d", numbers(2, 3, 5, 6), numbers(2, 4, 3, 2, low=-1.3, high=1.3), mode, padding, corners)
        self.agrees("grid_sampler_3d", numbers(2, 3, 4, 5, 6), numbers(2, 2, 4, 3, 3, low=-1.3, high=1.3), 0, 0, False)
        self.agrees("grid_sampler", numbers(2, 3, 5, 6), numbers(2, 4, 3, 2, low=-1, high=1), 0, 0, False)
        for corners in (False, True):
            self.agrees("affine_grid_generator", numbers(2, 2, 3), [2, 3, 4, 5], corners)
            self.agrees("affine_grid_generator", numbers(2, 3, 4), [2, 3, 4, 5, 2], corners)

    def test_regions(self):
        try:
            import torchvision  # noqa: F401
        except ImportError:
            self.skipTest("no torchvision")
        rois = torch.tensor([[0.0, 1, 2, 9, 8], [1, 0, 0, 5, 5], [0, 3, 3, 3.5, 3.5]])
        for aligned in (False, True):
            for samples in (-1, 2):
                self.agrees("torchvision::roi_align", numbers(2, 3, 10, 12), rois, 0.5, 3, 2, samples, aligned)
