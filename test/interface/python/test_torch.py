"""PyTorch's tensors, through DLPack. Where torch is missing the test says so and counts as skipped (status 77)."""

import gc
import sys
import unittest

import kiln
import numpy as np

try:
    import torch
except ImportError as why:
    print(f"SKIPPED: {why}: nothing of PyTorch's is tested", file=sys.stderr)
    sys.exit(77)


def doubling(dtype, shape):
    b = kiln.Builder()
    b.output(b.input("x", dtype, shape) * 2, "y")
    return kiln.compile(b)


class TorchTest(unittest.TestCase):
    def test_torch_reads_a_tensor_where_it_is(self):
        t = kiln.tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
        seen = torch.from_dlpack(t)
        self.assertEqual((seen.data_ptr(), tuple(seen.shape), seen.dtype), (t.data_ptr, (3, 4), torch.float32))
        seen[1, 1] = 100
        self.assertEqual(t.tolist()[1][1], 100)

    def test_kiln_reads_a_torch_tensor_where_it_is(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8):
            x = torch.arange(6).reshape(2, 3).to(dtype)
            for t in (kiln.from_dlpack(x), kiln.tensor(x)):
                self.assertEqual((t.data_ptr, t.tolist()), (x.data_ptr(), x.tolist()))
                self.assertEqual(torch.from_dlpack(t).dtype, dtype)

    def test_bf16(self):
        x = torch.tensor([1.0, -2.5, 3.0], dtype=torch.bfloat16)
        t = kiln.from_dlpack(x)
        self.assertEqual((t.dtype, t.data_ptr, t.tolist()), ("bf16", x.data_ptr(), [1.0, -2.5, 3.0]))
        y = torch.from_dlpack(doubling("bf16", [3])(x))
        self.assertEqual((y.dtype, y.tolist()), (torch.bfloat16, [2.0, -5.0, 6.0]))

    def test_strided(self):
        x = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
        for view in (x[:, ::2, 1:], x.transpose(0, 2), x[1:], x[:, 1].expand(5, 2, 4)):
            t = kiln.from_dlpack(view)
            self.assertEqual((t.data_ptr, t.tolist()), (view.data_ptr(), view.tolist()))
            self.assertEqual(torch.from_dlpack(t).tolist(), view.tolist())
            y = doubling("f32", list(view.shape))(view)
            self.assertEqual(y.tolist(), (view * 2).tolist())

    def test_deleted_sources(self):
        x = torch.full((1000,), 7.0)
        t = kiln.from_dlpack(x)
        del x
        gc.collect()
        torch.full((1000,), 8.0)
        self.assertEqual(set(t.tolist()), {7.0})
        seen = torch.from_dlpack(doubling("f32", [1000])(t))
        del t
        gc.collect()
        kept = [doubling("f32", [1000])(np.ones(1000, np.float32)) for _ in range(3)]
        self.assertEqual(set(seen.tolist()), {14.0})
        self.assertEqual(len(kept), 3)

    def test_outputs_into_torch_tensors(self):
        exe = doubling("f32", [2, 2])
        y = torch.zeros(2, 2)
        self.assertIs(exe.run({"x": torch.ones(2, 2)}, {"y": y})["y"], y)
        self.assertEqual(y.tolist(), [[2, 2], [2, 2]])

    def test_a_tensor_that_needs_gradients_says_so(self):
        x = torch.ones(2, requires_grad=True)
        with self.assertRaisesRegex((kiln.Error, RuntimeError, BufferError), "detach|grad"):
            doubling("f32", [2])(x)
        self.assertEqual(doubling("f32", [2])(x.detach()).tolist(), [2, 2])


if __name__ == "__main__":
    unittest.main()
