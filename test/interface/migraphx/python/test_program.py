"""Programs from models: parsed, compiled, run, saved."""

import concurrent.futures
import os
import pathlib
import tempfile
import threading
import unittest

import migraphx
import numpy as np

MODEL = "examples/models/digits/model.onnx"
range_of = migraphx.shape.dynamic_dimension


def scans(count, seed=0):
    p = migraphx.parse_onnx(MODEL, default_dim_value=count)
    (name, s), = p.get_parameter_shapes().items()
    return name, np.asarray(migraphx.generate_argument(s, seed))


def compiled(target="cpu", **options):
    p = migraphx.parse_onnx(MODEL, **options)
    p.compile(migraphx.get_target(target))
    return p


class ProgramTest(unittest.TestCase):
    def test_parse_compile_run(self):
        name, x = scans(3)
        results = []
        for target in ("ref", "cpu"):
            p = migraphx.parse_onnx(MODEL, default_dim_value=3)
            self.assertFalse(p.is_compiled())
            before = p.get_output_shapes()[-1]
            p.compile(migraphx.get_target(target), offload_copy=False, fast_math=False, exhaustive_tune=False)
            self.assertTrue(p.is_compiled())
            self.assertEqual(p.get_output_shapes()[-1], before)
            self.assertEqual(p.get_parameter_names(), [name])
            params = {key: migraphx.generate_argument(value) for key, value in p.get_parameter_shapes().items()}
            results.append(p.run(params)[-1])
            np.testing.assert_array_equal(p.run({name: x})[0], results[-1])
        np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-4)
        self.assertEqual(results[0].get_shape().lens(), [3, 10])

    def test_buffers_and_paths(self):
        bytes_of = pathlib.Path(MODEL).read_bytes()
        a = migraphx.parse_onnx(pathlib.Path(MODEL))
        for b in (bytes_of, bytearray(bytes_of), memoryview(bytes_of)):
            self.assertEqual(migraphx.parse_onnx_buffer(b), a)
        with self.assertRaises(RuntimeError):
            migraphx.parse_onnx_buffer(b"\xff\xff\xff")
        with self.assertRaisesRegex(RuntimeError, "nowhere.onnx"):
            migraphx.parse_onnx("nowhere.onnx")
        with self.assertRaises(RuntimeError):
            migraphx.parse_tf("nowhere.pb")
        self.assertIn("Conv", migraphx.get_onnx_operators())
        with self.assertRaisesRegex(ValueError, "a target is ref, cpu or gpu: found 'tpu'"):
            migraphx.get_target("tpu")

    def test_dynamic_shapes(self):
        name, _ = scans(1)
        for options in ({"default_dyn_dim_value": range_of(1, 8, {2, 8})}, {"map_dyn_input_dims": {name: [range_of(1, 8, {2, 8})] + [range_of(n, n) for n in scans(1)[1].shape[1:]]}}):
            p = migraphx.parse_onnx(MODEL, **options)
            self.assertTrue(p.get_parameter_shapes()[name].dynamic())
            self.assertEqual(p.get_parameter_shapes()[name].dyn_dims()[0], range_of(1, 8, {2, 8}))
            p.compile(migraphx.get_target("cpu"))
            for count in (1, 5):
                self.assertEqual(p.run({name: scans(count)[1]})[0].get_shape().lens(), [count, 10])
            with self.assertRaisesRegex(ValueError, f"'{name}'"):
                p.run({name: scans(9)[1]})
        for keyword in ("map_input_dims", "map_dyn_input_dims"):
            with self.assertRaisesRegex(ValueError, f"no input 'no such': its inputs are '{name}'"):
                migraphx.parse_onnx(MODEL, **{keyword: {"no such": [range_of(1, 8)] if "dyn" in keyword else [1]}})
        with self.assertRaisesRegex(ValueError, "found both"):
            migraphx.parse_onnx(MODEL, default_dim_value=2, default_dyn_dim_value=range_of(1, 8))
        fixed = migraphx.parse_onnx(MODEL, map_input_dims={name: list(scans(2)[1].shape)})
        self.assertEqual(fixed.get_parameter_shapes()[name].lens()[0], 2)

    def test_wrong_parameters_are_value_errors(self):
        name, x = scans(1)
        p = compiled()
        for params, text in (
            ({}, f"'{name}'"),
            ({name: x.astype(np.float64)}, f"'{name}'.*float_type.*double_type"),
            ({name: x[0]}, f"'{name}'.*{x.shape[-1]}"),
            ({name: object()}, f"'{name}'"),
            ({name: [1j]}, f"'{name}': .*found"),
        ):
            with self.assertRaisesRegex(ValueError, text) as caught:
                p.run(params)
            self.assertIsInstance(caught.exception, RuntimeError)
        with self.assertRaises(TypeError):
            p.run([x])
        with self.assertRaisesRegex(RuntimeError, "compiled"):
            p.compile(migraphx.get_target("cpu"))

    def test_save_and_load(self):
        name, x = scans(2)
        p = compiled(default_dim_value=2)
        expected = p.run({name: x})[0]
        fresh = migraphx.parse_onnx(MODEL)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "p.mxr")
            for one in (p, fresh):
                migraphx.save(one, file, format="msgpack")
                again = migraphx.load(file)
                self.assertEqual(again.is_compiled(), one.is_compiled())
                self.assertEqual(again.get_output_shapes(), one.get_output_shapes())
                self.assertEqual(again.sort(), one.sort())
                buffered = migraphx.load_buffer(migraphx.save_buffer(one))
                self.assertEqual(buffered, again)
            migraphx.save(p, pathlib.Path(file))
            np.testing.assert_array_equal(migraphx.load(filename=file).run({name: x})[0], expected)
        with self.assertRaises(RuntimeError):
            migraphx.save_buffer(p, "json")
        with self.assertRaisesRegex(RuntimeError, "the buffer"):
            migraphx.load_buffer(b"nothing")
        ranges = migraphx.parse_onnx(MODEL, map_dyn_input_dims={name: [range_of(1, 8, {2, 4})] + [range_of(n, n) for n in x.shape[1:]]})
        shapes = migraphx.load_buffer(migraphx.save_buffer(ranges)).get_parameter_shapes()
        self.assertEqual(shapes, ranges.get_parameter_shapes())

    def test_a_compiled_program_is_not_changed(self):
        name, x = scans(1)
        p = compiled("ref")
        m = p.get_main_module()
        m.replace_return([next(iter(m))])
        for call in (lambda: p.run({name: x}), lambda: migraphx.save_buffer(p)):
            with self.assertRaisesRegex(ValueError, "changed after it was compiled"):
                call()

    def test_clone(self):
        p = migraphx.parse_onnx(MODEL)
        q = p.clone()
        self.assertEqual(p, q)
        q.compile(migraphx.get_target("ref"))
        self.assertFalse(p.is_compiled())
        self.assertNotEqual(p, q)
        self.assertIn("module", repr(q))

    def test_quantize(self):
        name, x = scans(4)
        expected = np.asarray(compiled(default_dim_value=4).run({name: x})[0])
        close = 0.05 * abs(expected).max()
        for quantize in (migraphx.quantize_fp16, migraphx.quantize_bf16):
            p = migraphx.parse_onnx(MODEL, default_dim_value=4)
            quantize(p, ins_names=["all"])
            self.assertNotEqual(p, migraphx.parse_onnx(MODEL, default_dim_value=4))
            p.compile(migraphx.get_target("cpu"))
            np.testing.assert_allclose(np.asarray(p.run({name: x})[0]), expected, atol=close)
        cpu = migraphx.get_target("cpu")
        p = migraphx.parse_onnx(MODEL, default_dim_value=4)
        for quantize in (migraphx.quantize_fp16, migraphx.quantize_bf16):
            with self.assertRaisesRegex(ValueError, "found the word 'dot' alone"):
                quantize(p, "dot")
        with self.assertRaisesRegex(ValueError, "found the word 'dot' alone"):
            migraphx.quantize_int8(p, cpu, [{name: x}], "dot")
        with self.assertRaises(RuntimeError):
            migraphx.quantize_int8(p, cpu)
        migraphx.quantize_int8(p, cpu, calibration=[{name: x}], ins_names={"dot", "convolution"})
        p.compile(cpu)
        np.testing.assert_allclose(np.asarray(p.run({name: x})[0]), expected, atol=4 * close)
        p = migraphx.parse_onnx(MODEL, default_dim_value=4)
        with self.assertRaises(RuntimeError):
            migraphx.quantize_fp8(p, cpu, [])
        migraphx.quantize_fp8(p, cpu, calibration=[{name: x}])
        p.compile(cpu)
        np.testing.assert_allclose(np.asarray(p.run({name: x})[0]), expected, atol=4 * close)

    def test_quantize_by_table(self):
        name, x = scans(4)
        cpu = migraphx.get_target("cpu")
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "calibration.cache"
            table.write_text(f"{name} {abs(x).max()}\n")
            for quantize in (migraphx.quantize_int8, migraphx.quantize_fp8):
                p = migraphx.parse_onnx(MODEL, default_dim_value=4)
                quantize(p, cpu, table=table)
                self.assertNotEqual(p, migraphx.parse_onnx(MODEL, default_dim_value=4))
                with self.assertRaisesRegex(ValueError, "samples have no use"):
                    quantize(migraphx.parse_onnx(MODEL, default_dim_value=4), cpu, [{name: x}], table=str(table))
        small = migraphx.parse_onnx(MODEL, default_dim_value=4)
        migraphx.quantize_int4_weights(small)
        self.assertNotEqual(small, migraphx.parse_onnx(MODEL, default_dim_value=4))

    def test_autocast_fp8(self):
        p = migraphx.program()
        m = p.get_main_module()
        narrow = m.add_parameter("x", migraphx.shape(type="fp8e4m3fn_type", lens=[2]))
        wide = m.add_instruction(migraphx.op("relu"), [m.add_instruction(migraphx.op("convert", target_type="float_type"), [narrow])])
        m.add_return([m.add_instruction(migraphx.op("convert", target_type="fp8e4m3fn_type"), [wide])])
        migraphx.autocast_fp8(p)
        self.assertEqual(p.get_parameter_shapes()["x"].type_string(), "float_type")
        self.assertEqual(p.get_output_shapes()[0].type_string(), "float_type")
        p.compile(migraphx.get_target("ref"))
        self.assertEqual(p.run({"x": np.array([1.03, -2], np.float32)})[0].tolist(), [1.0, 0.0])

    def test_bf16_parameters_are_uint16_to_numpy(self):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(type="bf16_type", lens=[2]))
        m.add_return([m.add_instruction(migraphx.op("relu"), [x])])
        p.compile(migraphx.get_target("ref"))
        y = p.run({"x": np.array([0x3F80, 0xC000], np.uint16)})[0]
        self.assertEqual((y.get_shape().type_string(), y.tolist()), ("bf16_type", [1.0, 0.0]))

    def test_results_outlive_everything(self):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(lens=[1000]))
        m.add_return([m.add_instruction(migraphx.op("slice", axes=[0], starts=[1], ends=[3]), [x]), x])
        p.compile(migraphx.get_target("cpu"))
        part, whole = p.run({"x": np.full(1000, 7, np.float32)})
        kept = [p.run({"x": np.full(1000, k, np.float32)}) for k in range(20)]
        del p, m, x
        self.assertEqual((part.tolist(), set(whole.tolist())), ([7, 7], {7}))
        self.assertEqual(kept[3][0].tolist(), [3, 3])

    def test_threads(self):
        p = compiled(default_dim_value=8)
        inputs = [dict([scans(8, seed)]) for seed in range(4)]
        expected = [np.asarray(p.run(i)[0]) for i in inputs]

        def work(k):
            return all(np.array_equal(p.run(inputs[k])[0], expected[k]) for _ in range(20))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertEqual(list(pool.map(work, range(4))), [True] * 4)
            programs = list(pool.map(lambda _: compiled(default_dim_value=8), range(4)))
        for p in programs:
            np.testing.assert_array_equal(p.run(inputs[0])[0], expected[0])

    def test_the_interpreter_runs_on(self):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(lens=[1024, 1024]))
        m.add_return([m.add_instruction(migraphx.op("dot"), [m.add_instruction(migraphx.op("dot"), [x, x]), x])])
        p.compile(migraphx.get_target("cpu"))
        a = np.ones((1024, 1024), np.float32)
        p.run({"x": a})
        done = threading.Event()
        ticks = 0

        def work():
            for _ in range(5):
                p.run({"x": a})
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        while not done.wait(0.0005):
            ticks += 1
        thread.join()
        self.assertGreater(ticks, 10)


if __name__ == "__main__":
    unittest.main()
