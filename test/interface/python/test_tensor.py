"""Tensors: what goes in and out without a copy, and what is refused."""

import ctypes
import gc
import unittest
import weakref

import kiln
import numpy as np


class Interface:
    """An array that has __array_interface__ alone."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class TensorTest(unittest.TestCase):
    def test_shares_memory_with_numpy(self):
        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        t = kiln.tensor(a)
        self.assertEqual((t.shape, t.dtype, t.data_ptr, t.nbytes), ((3, 4), "f32", a.ctypes.data, 48))
        back = np.asarray(t)
        self.assertEqual(back.ctypes.data, a.ctypes.data)
        back[1, 1] = 100
        self.assertEqual(a[1, 1], 100)

    def test_every_dtype_of_numpy(self):
        names = "float64 float32 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
        short = "f64 f32 f16 i8 i16 i32 i64 u8 u16 u32 u64 bool"
        for name, own in zip(names.split(), short.split()):
            a = np.array([[0, 1], [1, 0]], dtype=name)
            for t in (kiln.tensor(a), kiln.tensor(Interface(a)), kiln.tensor(memoryview(a))):
                self.assertEqual(t.dtype, own)
                self.assertEqual(np.asarray(t).dtype, a.dtype)
                np.testing.assert_array_equal(t.numpy(), a)
            self.assertEqual(kiln.tensor([[0, 1], [1, 0]] if name != "bool" else [[False, True]], a.dtype).dtype, own)

    def test_strided_inputs(self):
        a = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
        for view in (a[:, ::2, 1:], a.T, a[::-1], a[:, :, ::-2], np.broadcast_to(a[:1], (5, 3, 4))):
            for t in (kiln.tensor(view), kiln.tensor(Interface(view))):
                self.assertEqual(t.data_ptr, view.__array_interface__["data"][0])
                np.testing.assert_array_equal(np.asarray(t), view)
                np.testing.assert_array_equal(np.from_dlpack(t.copy()), view)
                self.assertEqual(t.tolist(), view.tolist())

    def test_unaligned_elements_are_copied(self):
        records = np.zeros(5, dtype=[("flag", "u1"), ("x", "<f4")])
        records["x"] = range(5)
        t = kiln.tensor(records["x"])
        np.testing.assert_array_equal(t.numpy(), range(5))
        self.assertEqual(t.data_ptr % 4, 0)

    def test_foreign_byte_order(self):
        np.testing.assert_array_equal(kiln.tensor(np.array([1, 2], dtype=">i4")).numpy(), [1, 2])

    def test_deleted_source(self):
        a = np.full(1000, 7, dtype=np.float64)
        gone = weakref.ref(a)
        t = kiln.tensor(a)
        del a
        gc.collect()
        self.assertIsNotNone(gone())
        np.testing.assert_array_equal(np.asarray(t), np.full(1000, 7))
        del t
        gc.collect()
        self.assertIsNone(gone())

    def test_dlpack_both_ways(self):
        a = np.arange(6, dtype=np.float32).reshape(2, 3)
        t = kiln.from_dlpack(a)
        self.assertEqual(t.data_ptr, a.ctypes.data)
        back = np.from_dlpack(t)
        self.assertEqual(back.ctypes.data, a.ctypes.data)
        self.assertEqual(t.__dlpack_device__(), (1, 0))
        del a, t
        gc.collect()
        np.testing.assert_array_equal(back, [[0, 1, 2], [3, 4, 5]])

    def test_a_capsule_is_taken_once(self):
        capsule = kiln.tensor([1.0]).__dlpack__()
        kiln.from_dlpack(capsule)
        with self.assertRaisesRegex(kiln.Error, "nobody has taken"):
            kiln.from_dlpack(capsule)
        del capsule
        kiln.tensor([1.0]).__dlpack__(max_version=(1, 0))  # nobody takes it

    def test_bf16(self):
        bits = np.array([0x3F80, 0xC000], dtype=np.uint16)
        t = kiln.tensor(bits, "bf16")
        self.assertEqual((t.dtype, t.tolist(), t.data_ptr), ("bf16", [1.0, -2.0], bits.ctypes.data))
        self.assertEqual(np.asarray(t).dtype, np.uint16)
        self.assertEqual(t.__array_interface__["typestr"], "<u2")
        again = kiln.from_dlpack(t)
        self.assertEqual((again.dtype, again.data_ptr), ("bf16", t.data_ptr))
        # DLTensor: data, device (8 bytes), ndim, then code and bits
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        capsule = t.__dlpack__()
        at = get(capsule, b"dltensor")
        self.assertEqual(list((ctypes.c_uint8 * 2).from_address(at + 20)), [4, 16])
        eight = kiln.tensor(np.array([0x38], dtype=np.uint8), "f8e4m3fn")
        self.assertEqual((eight.tolist(), np.asarray(eight).dtype), ([1.0], np.uint8))

    def test_read_only(self):
        a = np.zeros(3, dtype=np.float32)
        a.flags.writeable = False
        t = kiln.tensor(a)
        self.assertTrue(t.read_only)
        self.assertFalse(np.asarray(t).flags.writeable)
        with self.assertRaises(BufferError):
            t.__dlpack__()
        self.assertTrue(kiln.from_dlpack(t.__dlpack__(max_version=(1, 0))).read_only)
        t.copy().numpy()[0] = 1

    def test_lists(self):
        self.assertEqual(kiln.tensor([[1, 2], [3, 4]]).dtype, "i64")
        self.assertEqual(kiln.tensor([[1, 2.5]]).tolist(), [[1.0, 2.5]])
        self.assertEqual(kiln.tensor(3).shape, ())
        self.assertEqual(kiln.tensor(3).item(), 3)
        self.assertEqual(kiln.tensor([[]]).shape, (1, 0))
        self.assertEqual(kiln.tensor([2**64 - 1], "u64").tolist(), [2**64 - 1])
        self.assertEqual(kiln.tensor(["a", "ß"]).tolist(), ["a", "ß"])
        self.assertEqual(kiln.tensor(np.array(["x", "yz"])).tolist(), ["x", "yz"])
        self.assertEqual(kiln.tensor([1 + 2j]).tolist(), [1 + 2j])
        for bad, dtype in (([[1], [2, 3]], None), ([300], "i8"), ([-1], "u64"), (["x"], "f32"), ([1.5], "i32"), ([1], "what")):
            with self.assertRaises(kiln.Error, msg=bad):
                kiln.tensor(bad, dtype)

    def test_empty_and_scalar_arrays(self):
        self.assertEqual(np.asarray(kiln.tensor(np.zeros((0, 3), np.float32))).shape, (0, 3))
        self.assertEqual(np.asarray(kiln.tensor(np.array(2.0))).item(), 2.0)
        self.assertEqual(np.asarray(kiln.tensor(np.float32(2.0))).item(), 2.0)

    def test_too_many_dims(self):
        with self.assertRaisesRegex(kiln.Error, "dims"):
            kiln.tensor(np.zeros((1,) * 9, np.float32))

    def test_buffers_of_strided_tensors(self):
        t = kiln.tensor(np.arange(6, dtype=np.uint8)[::2])
        self.assertEqual(bytes(memoryview(t)), bytes([0, 2, 4]))
        with self.assertRaisesRegex((BufferError, TypeError), "contiguous"):
            ctypes.c_char.from_buffer(t)

    def test_files(self):
        import os
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pb")
            kiln.write_tensor(path, np.arange(3, dtype=np.int64))
            self.assertEqual(kiln.read_tensor(path).tolist(), [0, 1, 2])

    def test_a_gibibyte_is_not_copied(self):
        a = np.empty(1 << 28, dtype=np.float32)
        t = kiln.tensor(a)
        self.assertEqual(t.data_ptr, a.ctypes.data)
        self.assertEqual(np.asarray(t).ctypes.data, a.ctypes.data)
        self.assertEqual(np.from_dlpack(t).ctypes.data, a.ctypes.data)
        # through a run: a row of it is read in place, and an output of that size is the array given for it
        b = kiln.Builder()
        x = b.input("x", "f32", [1 << 28])
        b.output(x.slice(axes=[0], starts=[5], ends=[6]), "y")
        exe = kiln.compile(b)
        a[5] = 3
        before = resident()
        self.assertEqual(exe(x=a).tolist(), [3.0])
        self.assertLess(resident() - before, 1 << 28)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


if __name__ == "__main__":
    unittest.main()
