"""ONNX's backend interface, with and without the package onnx."""

import pathlib
import sys
import types
import unittest
import unittest.mock

import migraphx
import migraphx.backend as backend
import numpy as np

MODEL = "examples/models/digits/model.onnx"


class BackendTest(unittest.TestCase):
    def test_devices(self):
        self.assertTrue(backend.supports_device("CPU") and backend.supports_device("CPU:0"))
        self.assertFalse(backend.supports_device("TPU"))
        with self.assertRaisesRegex(ValueError, "CPU, GPU, REF"):
            backend.prepare(MODEL, "TPU")

    def test_models(self):
        p = migraphx.parse_onnx(MODEL)
        (name, s), = p.get_parameter_shapes().items()
        x = np.asarray(migraphx.generate_argument(s))
        p.compile(migraphx.get_target("ref"))
        expected = np.array(p.run({name: x})[0])
        rep = backend.prepare(MODEL, "CPU")
        self.assertIs(backend.prepare(rep), rep)
        for out in (rep.run(x), rep.run([x]), rep.run({name: x}), backend.run_model(pathlib.Path(MODEL).read_bytes(), [x]), backend.run(p, x)):
            np.testing.assert_allclose(out[0], expected, rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(ValueError, "expected 1"):
            rep.run([x, x])
        self.assertTrue(backend.is_compatible(MODEL))
        self.assertFalse(backend.is_compatible(b"\xff"))

    def test_device_of_calls(self):
        backend.set_device("REF")
        self.assertIn("'ref'", repr(backend.prepare(MODEL).program))
        backend.set_device("CPU")
        self.assertIn("'cpu'", repr(backend.prepare(MODEL).program))

    def test_programs_of_the_caller_stay_as_they_are(self):
        p = migraphx.parse_onnx(MODEL)
        (name, s), = p.get_parameter_shapes().items()
        x = np.asarray(migraphx.generate_argument(s))
        np.testing.assert_allclose(backend.prepare(p).run(x)[0], p.run({name: x})[0], rtol=1e-4, atol=1e-4)
        self.assertFalse(p.is_compiled())

    def test_element_types_with_any_onnx(self):
        newer = types.ModuleType("onnx.helper")
        newer.np_dtype_to_tensor_dtype = {np.dtype(np.float32): 1}.__getitem__
        older = types.ModuleType("onnx.mapping")
        older.NP_TYPE_TO_TENSOR_TYPE = {np.dtype(np.float32): 1}
        package = types.ModuleType("onnx")
        for modules in (
            {"onnx": package, "onnx.helper": newer, "onnx.mapping": None},
            {"onnx": package, "onnx.helper": types.ModuleType("onnx.helper"), "onnx.mapping": older},
        ):
            with unittest.mock.patch.dict(sys.modules, modules):
                self.assertEqual(backend._element_type(np.dtype(np.float32)), 1)

    def test_nodes(self):
        try:
            from onnx import helper
        except ImportError:
            self.skipTest("the package onnx is missing: single nodes are not run")
        x, y = np.array([[1, 2]], np.float32), np.array([[3], [4]], np.float32)
        node = helper.make_node("MatMul", ["x", "y"], ["z"])
        np.testing.assert_array_equal(backend.run_node(node, [x, y], opset_version=13)[0], [[11]])
        node = helper.make_node("Split", ["x"], ["a", "b"], axis=1)
        self.assertEqual([o.tolist() for o in backend.run_node(node, [x])], [[[1]], [[2]]])
        z = helper.make_tensor_value_info("z", 1, None)
        given = [helper.make_tensor_value_info(n, 1, a.shape) for n, a in (("x", x), ("y", y))]
        model = helper.make_model(helper.make_graph([helper.make_node("MatMul", ["x", "y"], ["z"])], "g", given, [z]))
        np.testing.assert_array_equal(backend.run_model(model, [x, y])[0], [[11]])


if __name__ == "__main__":
    unittest.main()
