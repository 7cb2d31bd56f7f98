"""Values that go in and out: element types, strings, sequences, maps, optionals, OrtValue, IOBinding, DLPack."""

import gc
import threading
import unittest
import weakref

from help import CPU, MIGRAPHX
import numpy as np
import onnx_bytes as ox
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

FLOATS = ox.tensor_type(ox.FLOAT, ["n"])


def both(model):
    """Sessions of kiln's provider and of the CPU's."""
    return ort.InferenceSession(model), ort.InferenceSession(model, providers=[CPU])


class TypesTest(unittest.TestCase):
    NUMBERS = {
        1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
        10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
    }  # fmt: skip

    def test_every_number_passes_both_ways(self):
        for element, dtype in self.NUMBERS.items():
            x = (np.arange(5) % 2).astype(dtype) if dtype is np.bool_ else np.arange(5).astype(dtype)
            for session in both(ox.one_op("Identity", ox.tensor_type(element, ["n"]))):
                (got,) = session.run(None, {"x": x})
                self.assertEqual(got.dtype, x.dtype)
                np.testing.assert_array_equal(got, x)
            value = ort.OrtValue.ortvalue_from_numpy(x)
            self.assertEqual(value.element_type(), element)
            self.assertEqual(value.data_type(), session.get_inputs()[0].type)
            np.testing.assert_array_equal(value.numpy(), x)
            made = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], element)
            self.assertEqual((made.element_type(), made.shape()), (element, [2, 3]))
            self.assertEqual(ort.OrtValue.ortvalue_from_shape_and_type([1], dtype).element_type(), element)

    def test_bfloat16_goes_by_its_bits(self):
        x = np.float32([1, -2, 0.5])
        bits = (x.view(np.uint32) >> 16).astype(np.uint16)
        cast = ox.one_op("Cast", FLOATS, ox.tensor_type(ox.BFLOAT16, ["n"]), to=ox.BFLOAT16)
        for session in both(cast):
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], bits)
        value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, ox.BFLOAT16)
        self.assertEqual(value.data_type(), "tensor(bfloat16)")
        back = ox.one_op("Cast", ox.tensor_type(ox.BFLOAT16, ["n"]), FLOATS, to=ox.FLOAT)
        for session in both(back):
            np.testing.assert_array_equal(session.run(None, {"x": value})[0], x)
        for number in (17, 18, 19, 20):
            made = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.uint8([1, 2]), number)
            self.assertEqual(made.element_type(), number)
            np.testing.assert_array_equal(made.numpy(), [1, 2])
        with self.assertRaises(ValueError):
            ort.OrtValue.ortvalue_from_numpy_with_onnx_type(x, ox.BFLOAT16)
        with self.assertRaises(ValueError):
            ort.OrtValue.ortvalue_from_shape_and_type([1], 99)

    def test_types_of_less_than_a_byte_are_values_and_no_arrays(self):
        scale = ox.tensor("scale", ox.FLOAT, np.float32(0.5).reshape(()))
        quantize = ox.node("QuantizeLinear", ["x", "scale"], ["y"], output_dtype=22)
        outputs = [ox.value("y", ox.tensor_type(22, ["n"]))]
        model = ox.model([quantize], [ox.value("x", FLOATS)], outputs, [scale], opset=21)
        x = {"x": np.float32([1, -2, 3])}
        for session in both(model):
            (got,) = session.run_with_ort_values(None, x)
            self.assertEqual((got.data_type(), got.shape()), ("tensor(int4)", [3]))
            with self.assertRaisesRegex(NotImplementedError, "output 'y' has elements of type int4"):
                session.run(None, x)
        self.assertEqual(ort.OrtValue.ortvalue_from_shape_and_type([3], 22).data_type(), "tensor(int4)")

    def test_strings(self):
        (session, _) = both(ox.one_op("Identity", ox.tensor_type(ox.STRING, ["n", 2])))
        words = [["a", ""], ["Größe", "x\0y"]]
        for given in (np.array(words, object), np.array(words)):
            got = session.run(None, {"x": given})[0]
            self.assertEqual(got.dtype, object)
            self.assertEqual(got.tolist(), given.tolist())
        self.assertEqual(session.run(None, {"x": np.empty((0, 2), object)})[0].shape, (0, 2))
        value = ort.OrtValue.ortvalue_from_numpy(np.array(words, object))
        self.assertEqual(value.data_type(), "tensor(string)")
        value.update_inplace(np.array([["1", "2"], ["3", "4"]], object))
        self.assertEqual(value.numpy().tolist(), [["1", "2"], ["3", "4"]])


class CompositesTest(unittest.TestCase):
    def test_sequences(self):
        model = ox.model(
            [ox.node("SequenceInsert", ["s", "x"], ["y"])],
            [ox.value("s", ox.sequence_type(FLOATS)), ox.value("x", FLOATS)],
            [ox.value("y", ox.sequence_type(FLOATS))],
        )
        parts, x = [np.float32([1, 2]), np.float32([3])], np.float32([4, 5, 6])
        for session in both(model):
            self.assertEqual(session.get_inputs()[0].type, "seq(tensor(float))")
            (got,) = session.run(None, {"s": parts, "x": x})
            self.assertIsInstance(got, list)
            for item, expected in zip(got, [*parts, x]):
                np.testing.assert_array_equal(item, expected)
            (value,) = session.run_with_ort_values(None, {"s": parts, "x": x})
            self.assertTrue(value.is_tensor_sequence())
            self.assertFalse(value.is_tensor() or value.is_sparse_tensor())
            with self.assertRaises(RuntimeError):
                value.numpy()
            del got
            gc.collect()

    def test_maps(self):
        labels = ox.tensor_type(ox.INT64, ["n"])
        attributes = b"".join(
            ox.field(5, ox.field(1, name) + b"".join(ox.field(9, c) for c in ("cat", "dog")) + ox.field(20, 8))
            for name in ("classlabels_strings",)
        )
        zip_map = ox.node("ZipMap", ["x"], ["y"], "ai.onnx.ml") + attributes
        of_map = ox.map_type(ox.STRING, ox.tensor_type(ox.FLOAT))
        scores = ox.tensor_type(ox.FLOAT, ["n", 2])
        model = ox.model([zip_map], [ox.value("x", scores)], [ox.value("y", ox.sequence_type(of_map))])
        for session in both(model):
            self.assertEqual(session.get_outputs()[0].type, "seq(map(string,tensor(float)))")
            (got,) = session.run(None, {"x": np.float32([[0.25, 0.75], [1, 0]])})
            self.assertEqual(got, [{"cat": 0.25, "dog": 0.75}, {"cat": 1, "dog": 0}])
        self.assertTrue(labels)

    def test_optionals(self):
        inner = ox.tensor_type(ox.FLOAT, [2])
        model = ox.model(
            [ox.node("OptionalGetElement", ["o"], ["y"]), ox.node("OptionalHasElement", ["o"], ["has"])],
            [ox.value("o", ox.optional_type(inner))],
            [ox.value("y", inner), ox.value("has", ox.tensor_type(ox.BOOL, []))],
            opset=18,
        )
        for session in both(model):
            self.assertEqual(session.get_inputs()[0].type, "optional(tensor(float))")
            y, has = session.run(None, {"o": np.float32([1, 2])})
            np.testing.assert_array_equal(y, [1, 2])
            self.assertTrue(has)
        has = ox.tensor_type(ox.BOOL, [])
        asking = [ox.node("OptionalHasElement", ["o"], ["has"])]
        model = ox.model(asking, [ox.value("o", ox.optional_type(inner))], [ox.value("has", has)], opset=18)
        for session in both(model):
            for feed, expected in (({"o": None}, False), ({}, False), ({"o": np.float32([1, 2])}, True)):
                self.assertEqual(session.run(None, feed), [expected])
                self.assertEqual(session.run_with_ort_values(None, feed)[0].numpy(), expected)
        empty = ox.model([optional_node(inner)], [], [ox.value("y", ox.optional_type(inner))], opset=18)
        for session in both(empty):
            self.assertEqual(session.run(None, {}), [None])
            self.assertFalse(session.run_with_ort_values(None, {})[0].has_value())


def optional_node(type_):
    attribute = ox.field(1, "type") + ox.field(14, type_) + ox.field(20, 13)
    return ox.node("Optional", [], ["y"]) + ox.field(5, attribute)


class OrtValueTest(unittest.TestCase):
    def test_it_shares_the_arrays_memory(self):
        x = np.float32([[1, 2], [3, 4]])
        value = ort.OrtValue.ortvalue_from_numpy(x)
        self.assertEqual(value.data_ptr(), x.ctypes.data)
        x[0, 0] = 9
        self.assertEqual(value.numpy()[0, 0], 9)
        value.update_inplace(np.float32([[5, 6], [7, 8]]))
        np.testing.assert_array_equal(x, [[5, 6], [7, 8]])
        value.update_inplace(np.float32([[5, 7], [6, 8]]).T)
        np.testing.assert_array_equal(x, [[5, 6], [7, 8]])
        self.assertEqual((value.device_name(), value.shape(), value.data_type()), ("cpu", [2, 2], "tensor(float)"))
        self.assertEqual(value.tensor_size_in_bytes(), 16)
        self.assertTrue(value.is_tensor() and value.has_value())
        for wrong in (np.float32([1]), np.float64([[1, 2], [3, 4]])):
            with self.assertRaises(ValueError):
                value.update_inplace(wrong)
        with self.assertRaisesRegex(ValueError, "cuda"):
            ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)

    def test_copies_into_other_values(self):
        x, words = np.float32([[1, 2, 3]]), np.array(["a", "bc"], object)
        sources = [ort.OrtValue.ortvalue_from_numpy(v) for v in (x, words, x[:0])]
        made = [np.zeros_like(x), np.array(["", ""], object), x[:0].copy()]
        into = [ort.OrtValue.ortvalue_from_numpy(v) for v in made]
        ort.copy_tensors(sources, into)
        np.testing.assert_array_equal(made[0], x)
        self.assertEqual(into[1].numpy().tolist(), ["a", "bc"])
        with self.assertRaisesRegex(ValueError, r"tensor 1: expected memory of tensor\(string\)\[2\].*float.*\[1, 3\]"):
            ort.copy_tensors(sources[:2], [into[0], into[0]])
        with self.assertRaisesRegex(ValueError, "3 and 1"):
            ort.copy_tensors(sources, into[:1])
        with self.assertRaisesRegex(ValueError, "stream"):
            ort.copy_tensors(sources, into, stream=1)

    def test_it_keeps_the_array(self):
        value = ort.OrtValue.ortvalue_from_numpy(np.arange(1000, dtype=np.float32))
        gc.collect()
        np.testing.assert_array_equal(value.numpy(), np.arange(1000))

    def test_dlpack(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        value = ort.OrtValue.ortvalue_from_numpy(x)
        self.assertEqual(value.__dlpack_device__(), (1, 0))
        shown = np.from_dlpack(value)
        self.assertEqual(shown.ctypes.data, x.ctypes.data)
        back = ort.OrtValue.from_dlpack(x)
        self.assertEqual((back.data_ptr(), back.shape(), back.element_type()), (x.ctypes.data, [2, 3], 1))
        del value, back
        gc.collect()
        np.testing.assert_array_equal(shown, x)
        held = ort.OrtValue.from_dlpack(np.arange(100, dtype=np.int64))  # its consumer alone keeps it
        gc.collect()
        np.testing.assert_array_equal(held.numpy(), np.arange(100))
        flags = ort.OrtValue.ortvalue_from_numpy(np.array([True, False]))
        self.assertEqual(ort.OrtValue.from_dlpack(flags).data_type(), "tensor(bool)")
        self.assertEqual(ort.OrtValue.from_dlpack(np.uint8([1, 0]), True).data_type(), "tensor(bool)")
        with self.assertRaises(BufferError):
            ort.OrtValue.from_dlpack(x.T)
        with self.assertRaises(BufferError):
            ort.OrtValue.ortvalue_from_numpy(np.array(["a"], object)).to_dlpack()
        from onnxruntime.capi import _dlpack

        before = len(_dlpack._given)
        ort.OrtValue.ortvalue_from_numpy(x).to_dlpack()  # nobody takes it
        gc.collect()
        self.assertEqual(len(_dlpack._given), before)


class IOBindingTest(unittest.TestCase):
    def setUp(self):
        self.session = ort.InferenceSession(ox.one_op("Add", FLOATS, inputs=("a", "b")))
        self.a, self.b = np.float32([1, 2, 3]), np.float32([10, 20, 30])

    def run_with(self, binding):
        binding.synchronize_inputs()
        self.session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    def test_outputs_that_each_run_makes(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("a", self.a)
        binding.bind_ortvalue_input("b", ort.OrtValue.ortvalue_from_numpy(self.b))
        binding.bind_output("y")
        self.run_with(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], self.a + self.b)
        (value,) = binding.get_outputs()
        self.assertEqual((value.shape(), value.device_name()), ([3], "cpu"))
        first = binding.copy_outputs_to_cpu()[0]
        self.a[:] = 0
        self.run_with(binding)
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), self.b)
        np.testing.assert_array_equal(first, [11, 22, 33])  # a copy

    def test_memory_of_the_caller(self):
        out = np.zeros(3, np.float32)
        binding = self.session.io_binding()
        binding.bind_input("a", "cpu", 0, np.float32, self.a.shape, self.a.ctypes.data)
        binding.bind_input("b", "cpu", 0, 1, [3], self.b.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, [3], out.ctypes.data)
        self.run_with(binding)
        np.testing.assert_array_equal(out, self.a + self.b)
        value = ort.OrtValue.ortvalue_from_shape_and_type([3], np.float32)
        binding.clear_binding_outputs()
        binding.bind_ortvalue_output("y", value)
        self.run_with(binding)
        np.testing.assert_array_equal(value.numpy(), self.a + self.b)
        binding.clear_binding_outputs()
        binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(self.a))  # into an input's memory
        expected = self.a + self.b
        self.run_with(binding)
        np.testing.assert_array_equal(self.a, expected)

    def test_errors(self):
        binding = self.session.io_binding()
        with self.assertRaisesRegex(ValueError, "element_type"):
            binding.bind_output("y", "cpu", 0, buffer_ptr=self.a.ctypes.data)
        with self.assertRaisesRegex(ValueError, "cuda"):
            binding.bind_output("y", "cuda")
        with self.assertRaises(ValueError):
            binding.bind_output("y", "toaster")
        binding.bind_cpu_input("a", self.a)
        binding.clear_binding_inputs()
        binding.bind_output("y")
        with self.assertRaisesRegex(InvalidArgument, "must contain a constructed tensor"):
            self.run_with(binding)
        self.assertEqual(ort.InferenceSession(ox.one_op("Neg", FLOATS)).get_providers()[0], MIGRAPHX)


SIZE = 100_000  # elements that numpy gives back to the system when nobody holds them


def passing(type_=FLOATS, op="Neg", out=None):
    """A model that has its input among its outputs."""
    outputs = [ox.value("y", out or type_), ox.value("x", type_)]
    return ox.model([ox.node(op, ["x"], ["y"])], [ox.value("x", type_)], outputs)


class KeepingTest(unittest.TestCase):
    """Results that are in the program's memory live as long as it does, and no longer."""

    def array(self):
        made = np.arange(SIZE, dtype=np.float32)
        self.alive = weakref.ref(made)
        return made

    def check(self, result):
        gc.collect()
        again = [np.full(SIZE, -1, np.float32) for _ in range(4)]  # where freed memory was
        np.testing.assert_array_equal(result.numpy(), np.arange(SIZE))
        self.assertEqual(len(again), 4)

    def test_a_bound_output_keeps_its_array(self):
        session = ort.InferenceSession(ox.one_op("Neg", FLOATS))

        def run():
            binding = session.io_binding()
            binding.bind_cpu_input("x", -np.arange(SIZE, dtype=np.float32))
            binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(self.array()))
            session.run_with_iobinding(binding)
            return binding.get_outputs()[0]

        result = run()
        gc.collect()
        self.assertIsNotNone(self.alive())
        self.check(result)
        del result
        gc.collect()
        self.assertIsNone(self.alive())

    def test_a_bound_input_that_is_an_output(self):
        for session in both(passing()):
            for clear in (False, True):
                binding = session.io_binding()
                binding.bind_cpu_input("x", self.array())
                binding.bind_output("y")
                binding.bind_output("x")
                session.run_with_iobinding(binding)
                if clear:
                    binding.clear_binding_inputs()
                y, x = binding.get_outputs()
                self.assertFalse(y._kept)  # only what it needs
                del binding, y
                self.assertIsNotNone(self.alive())
                self.check(x)
                del x
                gc.collect()
                self.assertIsNone(self.alive())

    def test_a_cleared_binding_keeps_nothing(self):
        session = ort.InferenceSession(passing())
        binding = session.io_binding()
        binding.bind_cpu_input("x", self.array())
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        gc.collect()
        self.assertIsNone(self.alive())

    def test_runs_do_not_keep_the_inputs_of_those_before(self):
        session = ort.InferenceSession(ox.one_op("Neg", FLOATS))
        binding = session.io_binding()
        value = ort.OrtValue.ortvalue_from_numpy(self.array())
        for _ in range(2):
            binding.bind_ortvalue_input("x", value)
            binding.bind_output("y")
            session.run_with_iobinding(binding)
            (value,) = binding.get_outputs()
        gc.collect()
        self.assertIsNone(self.alive())
        self.check(value)

    def test_a_fed_input_that_is_an_output(self):
        for session in both(passing()):
            y, x = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(self.array())})
            self.assertFalse(y._kept)
            self.assertIsNotNone(self.alive())
            self.check(x)
            del x
            gc.collect()
            self.assertIsNone(self.alive())
            given = self.array()
            for feed in (given, ort.OrtValue.ortvalue_from_numpy(given), ort.OrtValue.from_dlpack(given)):
                got = session.run(None, {"x": feed})[1]
                self.assertFalse(np.shares_memory(got, given))
                np.testing.assert_array_equal(got, given)
            results, done = [], threading.Event()
            session.run_async(None, {"x": given}, lambda outputs, *_: (results.append(outputs), done.set()))
            self.assertTrue(done.wait(60))
            self.assertFalse(np.shares_memory(results[0][1], given))
            np.testing.assert_array_equal(results[0][1], given)

    def test_an_initializer_that_is_an_output_and_fed(self):
        w = ox.tensor("w", ox.FLOAT, np.float32([1, 2, 3]))
        of = ox.tensor_type(ox.FLOAT, [3])
        inputs, outputs = [ox.value(n, of) for n in "xw"], [ox.value(n, of) for n in "yw"]
        for session in both(ox.model([ox.node("Add", ["x", "w"], ["y"])], inputs, outputs, [w])):
            self.assertEqual([i.name for i in session.get_overridable_initializers()], ["w"])
            given = np.float32([4, 5, 6])
            got = session.run(None, {"x": given, "w": given})[1]
            np.testing.assert_array_equal(got, given)
            self.assertFalse(np.shares_memory(got, given))
            own = session.run(None, {"x": given})[1]
            del session
            gc.collect()
            np.testing.assert_array_equal(own, [1, 2, 3])

    def test_a_sequence_that_is_an_output(self):
        sequence = ox.sequence_type(FLOATS)
        for session in both(passing(sequence, "SequenceLength", ox.tensor_type(ox.INT64, []))):
            value = session.run_with_ort_values(None, {"x": [self.array()]})[1]
            gc.collect()
            self.assertIsNotNone(self.alive())
            del value
            gc.collect()
            self.assertIsNone(self.alive())
            given = self.array()
            got = session.run(None, {"x": [given]})[1]
            np.testing.assert_array_equal(got[0], given)
            self.assertFalse(np.shares_memory(got[0], given))

    def test_a_binding_keeps_what_replaces_initializers(self):
        options = ort.SessionOptions()
        w = ox.tensor("w", ox.FLOAT, np.zeros(SIZE, np.float32))
        model = ox.model([ox.node("Add", ["x", "w"], ["y"])], [ox.value("x", FLOATS)], [ox.value("y", FLOATS)], [w])
        options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(self.array()))
        session = ort.InferenceSession(model, options, providers=[CPU])
        binding = session.io_binding()
        del session, options
        gc.collect()
        self.assertIsNotNone(self.alive())
        binding.bind_cpu_input("x", np.zeros(SIZE, np.float32))
        binding.bind_output("y")
        binding._run(None)
        self.check(binding.get_outputs()[0])


if __name__ == "__main__":
    unittest.main()
