"""Shapes and arguments, as scripts for MIGraphX use them."""

import array
import ctypes
import gc
import os
import tempfile
import unittest
import weakref

import migraphx
import numpy as np

shape = migraphx.shape


class ShapeTest(unittest.TestCase):
    def test_by_name_and_member(self):
        for name in ("float", "float_type", "half", "int64", "int64_type", "bool_type", "bf16_type", "fp8e4m3fn_type"):
            s = shape(type=name, lens=[2, 3])
            full = name if name.endswith("_type") else name + "_type"
            self.assertEqual(s.type_string(), full)
            self.assertEqual(s.type(), getattr(shape.type_t, full))
            self.assertEqual(shape(type=s.type(), lens=(2, 3)), s)
        with self.assertRaisesRegex(ValueError, "wide"):
            shape(type="wide")

    def test_extents_and_strides(self):
        s = shape(lens=[2, np.int64(3), 4])
        self.assertEqual((s.lens(), s.strides(), s.ndim(), s.elements(), s.bytes(), s.type_size()), ([2, 3, 4], [12, 4, 1], 3, 24, 96, 4))
        self.assertTrue(s.standard() and s.packed() and not s.transposed() and not s.broadcasted() and not s.dynamic())
        t = shape(type="float", lens=[4, 2], strides=[1, 4])
        self.assertTrue(t.transposed() and t.packed() and not t.standard())
        self.assertEqual(shape(lens=[4, 2], permutation=[1, 0]), t)
        self.assertTrue(shape(lens=[2, 3], strides=[0, 1]).broadcasted())
        self.assertTrue(shape(type="float", lens=[1], strides=[0]).scalar())
        self.assertEqual(shape().lens(), [1])
        self.assertNotEqual(s, t)
        self.assertIn("float_type", repr(s))
        with self.assertRaises(ValueError):
            shape(lens=[2, 3], strides=[1])
        with self.assertRaises(ValueError):
            shape(lens=[-1])
        with self.assertRaises(TypeError):
            shape(length=[1])

    def test_dynamic(self):
        d = shape.dynamic_dimension(1, 4, {2, 4})
        self.assertEqual((d.min, d.max, d.optimals, d.is_fixed()), (1, 4, {2, 4}, False))
        self.assertTrue(shape.dynamic_dimension().is_fixed())
        self.assertEqual(shape.dynamic_dimension(4, 4), shape.dynamic_dimension(min=4, max=4))
        s = shape(type="float", dyn_dims=[d, shape.dynamic_dimension(3, 3)])
        self.assertTrue(s.dynamic())
        self.assertEqual(s.dyn_dims()[0].optimals, {2, 4})
        with self.assertRaises(ValueError):
            s.lens()
        a = migraphx.argument(s)
        self.assertEqual(repr(a), f"migraphx.argument({s!r})")
        with self.assertRaisesRegex(ValueError, "constant extents"):
            a.tolist()

    def test_sizes_beyond_64_bits(self):
        for lens, strides in (([2**40] * 2, [1, 1]), ([2], [2**63 - 1]), ([2**40] * 2, [0, 0])):
            with self.assertRaisesRegex(ValueError, "64 bits"):
                shape(type="float", lens=lens, strides=strides)


class ArgumentTest(unittest.TestCase):
    def test_memory_views(self):
        data = memoryview(array.array("f", range(6)).tobytes()).cast("f", [2, 3])
        a = migraphx.argument(data)
        self.assertEqual((a.get_shape().lens(), a.get_shape().strides(), a.tolist()), ([2, 3], [3, 1], list(range(6))))
        self.assertEqual(memoryview(a).tolist(), data.tolist())
        scalar = migraphx.argument(memoryview(b"\x07"[:1]).cast("B", ()))
        self.assertEqual((scalar.get_shape().lens(), scalar.tolist()), ([1], [7]))

    def test_numpy_reads_and_writes_the_same_memory(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        a = migraphx.argument(x)
        self.assertEqual(a.data_ptr(), x.ctypes.data)
        for seen in (np.asarray(a), np.from_dlpack(a), np.asarray(memoryview(a)), a.__array__()):
            self.assertEqual(seen.ctypes.data, x.ctypes.data)
        self.assertEqual(a.__array_interface__["data"][0], x.ctypes.data)
        self.assertEqual(a.__array__(np.float64).dtype, np.float64)
        self.assertNotEqual(a.__array__(copy=True).ctypes.data, x.ctypes.data)
        self.assertEqual(migraphx.from_dlpack(x).data_ptr(), x.ctypes.data)

    def test_the_buffer_is_kept(self):
        x = np.full(1000, 7.0, np.float32)
        gone = weakref.ref(x)
        a = migraphx.argument(x)
        del x
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertEqual(set(a.tolist()), {7.0})
        del a
        gc.collect()
        self.assertIsNone(gone())

    def test_strided_arrays(self):
        x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
        for view in (x.T, x[:, ::2, 1:], np.broadcast_to(x[:1], (5, 3, 4)), x[::-1]):
            a = migraphx.argument(view)
            self.assertEqual(a.get_shape().lens(), list(view.shape))
            np.testing.assert_array_equal(np.asarray(a), view)
            self.assertEqual(a.tolist(), view.flatten().tolist())
        self.assertEqual(migraphx.argument(x.T).get_shape().strides(), [1, 4, 12])

    def test_dtypes_that_python_has_no_word_for(self):
        for name, seen, code in (("bf16_type", np.uint16, 4), ("fp8e4m3fn_type", np.uint8, 10)):
            a = migraphx.create_argument(shape(type=name, lens=[2]), [1.0, -2.0])
            self.assertEqual((a.get_shape().type_string(), a.tolist()), (name, [1.0, -2.0]))
            self.assertEqual(np.asarray(a).dtype, seen)
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            capsule = a.__dlpack__()
            self.assertEqual(ctypes.c_uint8.from_address(get(capsule, b"dltensor") + 20).value, code)
            self.assertEqual(migraphx.from_dlpack(capsule).get_shape(), a.get_shape())

    def test_makers(self):
        s = shape(type="float", lens=[2, 2])
        self.assertEqual(migraphx.create_argument(s, [1, 2, 3, 4]).tolist(), [1, 2, 3, 4])
        self.assertEqual(migraphx.create_argument(shape(type="int64", lens=[1]), [2**62 + 1]).tolist(), [2**62 + 1])
        with self.assertRaisesRegex(ValueError, "expected 4, found 3"):
            migraphx.create_argument(s, [1, 2, 3])
        self.assertEqual(migraphx.fill_argument(s, 3).tolist(), [3.0] * 4)
        self.assertEqual(migraphx.generate_argument(s), migraphx.generate_argument(s, seed=0))
        self.assertNotEqual(migraphx.generate_argument(s, 1), migraphx.generate_argument(s, 2))
        self.assertEqual(migraphx.argument(s).tolist(), [0.0] * 4)
        x = np.ones((2, 2), np.float32)
        b = migraphx.argument_from_pointer(shape=s, address=x.ctypes.data)
        x[0, 0] = 5
        self.assertEqual((b.tolist(), b.data_ptr()), ([5, 1, 1, 1], x.ctypes.data))
        self.assertIn("5", repr(b))

    def test_values_fit_the_type(self):
        def make(name, *values):
            return migraphx.create_argument(shape(type=name, lens=[len(values)]), values).tolist()

        self.assertEqual(make("int8", -128, 127.9, -1.5, True, np.int64(3), np.float32(2)), [-128, 127, -1, 1, 3, 2])
        self.assertEqual(make("uint64", 2**64 - 1, 2.0**63), [2**64 - 1, 2**63])
        self.assertEqual(make("bool", 2, 0.0, True, False), [True, False, True, False])
        self.assertEqual(make("float", 1, 2.5, np.float64(3)), [1, 2.5, 3])
        for name, values, text in (
            ("int8", [1, 300], "value 1 of int8_type: expected a number from -128 to 127, found 300"),
            ("int8", [300.0], "value 0 of int8_type: expected a number from -128 to 127, found 300.0"),
            ("uint8", [1.0, -1], "value 1 of uint8_type: expected a number from 0 to 255, found -1"),
            ("int64", [2**63], f"to {2**63 - 1}, found {2**63}"),
            ("int64", [float("nan")], "expected a whole number, found nan"),
            ("int32", [1j], "expected a whole number, found 1j"),
            ("float", [1j], "expected a real number, found 1j"),
            ("float", ["1"], "expected a real number, found '1'"),
            ("float", [10**400], "expected a real number, found 1000"),
            ("bool", ["no"], "expected a bool or number, found 'no'"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                make(name, *values)

    def test_complex_arrays(self):
        for made in (np.array([1j]), np.array([1j], np.complex64), [1j]):
            with self.assertRaisesRegex(ValueError, "real number.*(complex|c128)"):
                migraphx.argument(made)
        with self.assertRaisesRegex(ValueError, "complex"):
            migraphx.program().get_main_module().add_literal(np.array([1j]))

    def test_address_0(self):
        with self.assertRaisesRegex(ValueError, "the address 0"):
            migraphx.argument_from_pointer(shape(lens=[2]), 0)
        self.assertEqual(migraphx.argument_from_pointer(shape(lens=[0]), 0).tolist(), [])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            a = migraphx.generate_argument(shape(type="half", lens=[3]))
            migraphx.argument.save(a, os.path.join(folder, "a"))
            self.assertEqual(migraphx.argument.load(os.path.join(folder, "a")), a)

    def test_no_gpu_is_an_error(self):
        try:
            migraphx.gpu_sync()
        except RuntimeError:
            for call in (migraphx.allocate_gpu, lambda s: migraphx.to_gpu(migraphx.argument(s))):
                with self.assertRaises(RuntimeError):
                    call(shape(lens=[2]))
            return
        a = migraphx.generate_argument(shape(lens=[100]))
        self.assertEqual(migraphx.from_gpu(migraphx.to_gpu(a)), a)


if __name__ == "__main__":
    unittest.main()
