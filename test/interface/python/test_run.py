"""Building, compiling, running, saving, profiling."""

import gc
import concurrent.futures
import hashlib
import json
import os
import pathlib
import tempfile
import threading
import time
import unittest
import xml.dom.minidom

import kiln
import numpy as np

DIGITS = "examples/models/digits/"


def mlp(**options):
    b = kiln.Builder()
    x = b.input("x", "f32", [kiln.symbol("batch", 1), 2])
    hidden = (x.dot(b.weight("w1", "f32", [2, 2])) + b.weight("b1", "f32", [2])).relu()
    b.output(hidden @ b.weight("w2", "f32", [2, 1]) + b.weight("b2", "f32", [1]), "y")
    weights = {"w1": np.ones((2, 2), np.float32), "b1": [0, -1], "w2": [[1], [-2]], "b2": [0]}
    return kiln.compile(b, weights=weights, **options)


class RunTest(unittest.TestCase):
    def refuses(self, code, text, call, *args, **named):
        with self.assertRaisesRegex(kiln.Error, text) as caught:
            call(*args, **named)
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_mlp(self):
        exe = mlp()
        rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
        for y in (exe(x=rows), exe(rows), exe(rows.tolist()), exe.run({"x": rows})["y"]):
            np.testing.assert_array_equal(y, [[0], [1], [1], [0]])
        self.assertEqual(exe.inputs[0].name, "x")
        self.assertEqual(str(exe.inputs[0].shape), "(batch, 2)")
        self.assertEqual(exe.outputs[0].dtype, "f32")
        self.assertEqual(exe.output_shapes([7, 2]), [(7, 1)])

    def test_targets_by_any_name(self):
        for name in ("cpu", "eigen", "ref", "reference"):
            np.testing.assert_array_equal(mlp(target=name)(x=[[1, 0]]), [[1]])
        self.refuses("not_found", "expected one of .*found 'tpu'", mlp, target="tpu")

    def test_outputs_of_the_caller(self):
        y = np.zeros((3, 1), np.float32)
        out = mlp().run({"x": np.eye(3, 2, dtype=np.float32)}, {"y": y})
        self.assertIs(out["y"], y)
        np.testing.assert_array_equal(y, [[1], [1], [0]])
        y.flags.writeable = False
        self.refuses("invalid_argument", "read-only", mlp().run, {"x": [[1, 0]] * 3}, {"y": y})

    def test_wrong_inputs(self):
        exe = mlp()
        one = np.zeros((1, 2), np.float32)
        self.refuses("invalid_argument", "none for 'x' f32", exe)
        self.refuses("not_found", "expected one of 'x', found 'z'", exe, z=one)
        self.refuses("invalid_argument", "number of inputs", exe, one, one)
        self.refuses("invalid_argument", "'x' by position and by name", exe, one, x=one)
        self.refuses("shape_mismatch", r"input 'x'.*found f32\[2, 3\]", exe, x=np.zeros((2, 3), np.float32))
        e = self.refuses("invalid_argument", "dtype of an input", exe, x=np.zeros((1, 2)))
        self.assertEqual((e.expected, e.found, e.instruction), ("f32", "f64", "x"))
        self.assertIsInstance(e, ValueError)
        self.refuses("invalid_argument", "element of f32", exe, x=object())

    def test_several_outputs_by_name(self):
        b = kiln.Builder()
        x = b.input("x", "f32", [2])
        b.output(x + 1, "more")
        b.output(2 - x, "less")
        b.output(kiln.ops.max(x, 0.5), "most")
        out = kiln.compile(b)(x=[0, 1])
        self.assertEqual([t.tolist() for t in out], [[1, 2], [2, 1], [0.5, 1]])
        self.assertEqual(out["less"].tolist(), [2, 1])
        self.assertEqual(list(out.asdict()), ["more", "less", "most"])
        with self.assertRaisesRegex(KeyError, "more, less, most"):
            out["none"]

    def test_outputs_outlive_what_made_them(self):
        y = np.asarray(mlp()(x=[[1, 0]]))
        kept = [np.asarray(mlp()(x=[[0, 1]])) for _ in range(20)]
        self.assertEqual(y.tolist(), [[1]])
        self.assertTrue(all(k.tolist() == [[1]] for k in kept))

    def test_values_of_other_programs(self):
        a, b = kiln.Builder(), kiln.Builder()
        x = a.input("x", "f32", [1])
        self.refuses("invalid_argument", "one builder", lambda: x + b.input("y", "f32", [1]))
        a.output(x)
        a.finish()
        self.refuses("invalid_argument", "finished", lambda: x + 1)
        self.refuses("invalid_argument", "finished", repr, x)

    def test_ops_by_name(self):
        b = kiln.Builder()
        x = b.input("x", "f32", [1, 1, 4, 4])
        pooled = x.pool(mode="average", lengths=[2, 2], stride=[2, 2])
        b.output(kiln.ops.convert(pooled, to=np.float64), "y")
        out = kiln.compile(b)(x=np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
        np.testing.assert_array_equal(out, [[[[2.5, 4.5], [10.5, 12.5]]]])
        self.refuses("invalid_argument", r"max\|average\|lp", lambda: kiln.Builder().input("x", "f32", [1, 1, 4]).pool(mode="mean"))
        self.refuses("not_found", "expected one of mode", lambda: kiln.Builder().input("x", "f32", [1, 1, 4]).pool(size=2))
        self.assertIn("mode: max|average|lp", kiln.ops.pooling.__doc__)
        self.refuses("invalid_argument", "Value among its operands", kiln.ops.max, 1, 2)

    def test_a_constant_is_a_copy_unless_told(self):
        held = np.ones((2, 3), np.float32)
        programs = []
        for copy in (True, False):
            b = kiln.Builder()
            b.output(b.input("x", "f32", [2, 3]) + b.constant(held, copy=copy), "y")
            programs.append(b.finish())
        held[:] = 5  # before compilation has read it
        x = np.zeros((2, 3), np.float32)
        self.assertEqual([kiln.compile(p)(x).numpy().max() for p in programs], [1, 5])
        b = kiln.Builder()
        b.output(b.input("x", "f32", [3, 2]) + b.constant(held.T, copy=False), "y")
        program = b.finish()
        del held
        gc.collect()
        self.assertEqual(kiln.compile(program)(x.T).numpy().tolist(), [[5, 5]] * 3)

    def test_where_takes_numbers(self):
        b = kiln.Builder()
        x = b.input("x", "f32", [3])
        b.output((x > 0).where(x, -1), "y")
        b.output((x > 0).where(0.5, x), "z")
        out = kiln.compile(b)(x=[-2, 0, 2])
        self.assertEqual([t.tolist() for t in out], [[-1, -1, 2], [-2, 0, 0.5]])

    def test_options(self):
        names = [o.name for o in kiln.options()]
        self.assertIn("threads", names)
        self.assertEqual(mlp(threads=2).threads, 2)
        self.refuses("not_found", "threads", mlp, thread=2)
        self.refuses("invalid_argument", "threads", mlp, threads="many")

    def test_tuning_reports_progress(self):
        seen = []
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "tuning"
            b = kiln.Builder()
            x = b.input("x", "f32", [64, 64])
            b.output(x.dot(b.constant(np.eye(64, dtype=np.float32))).relu(), "y")
            kiln.compile(b, tune=True, tuning_file=file, progress=lambda *now: seen.append(now))
        self.assertTrue(seen)
        done, total, what = seen[-1]
        self.assertLess(done, total)
        self.assertTrue(what)

    def test_digits_from_file_and_bytes(self):
        scans = kiln.read_tensor(DIGITS + "test_data_set_0/input_0.pb")
        labels = kiln.read_tensor(DIGITS + "labels.pb").numpy()
        path = pathlib.Path(DIGITS + "model.onnx")
        for model in (str(path), path, path.read_bytes(), kiln.read(path)):
            exe = kiln.compile(model)
            self.assertTrue((np.asarray(exe(scans)).argmax(1) == labels).all())
        self.refuses("malformed", "", kiln.compile, b"\xff\xff\xff")
        self.refuses("not_found", "nowhere.onnx", kiln.compile, "nowhere.onnx")

    def test_options_of_graphs(self):
        graph = DIGITS + "frozen_graph.pb"
        program = kiln.read(graph, layout="NHWC", outputs=["relu0", "conv1:0"], batch=3)
        self.assertEqual(program.inputs[0].shape[0], 3)
        self.assertEqual([o.name for o in program.outputs], ["relu0", "conv1"])
        with open(graph, "rb") as file:
            self.assertEqual([o.name for o in kiln.read(file.read(), outputs=["relu0"]).outputs], ["relu0"])
        self.refuses("invalid_argument", "CHWN", kiln.read, graph, layout="CHWN")
        own = kiln.compile(graph, outputs=["relu0", "conv1:0"], batch=3)
        self.assertEqual(([p.name for p in own.outputs], own.inputs[0].shape[0]), (["relu0", "conv1"], 3))
        self.refuses("invalid_argument", "CHWN", kiln.compile, graph, layout="CHWN")
        self.assertRaisesRegex(kiln.ArgumentError, "of a Program are decided", kiln.compile, program, batch=3)
        self.refuses("invalid_argument", "batch", kiln.read, graph, batch=-1)
        self.refuses("invalid_argument", "SavedModel", kiln.read, graph, signature="serving_default")
        self.refuses("invalid_argument", "TensorFlow", kiln.read, DIGITS + "model.onnx", tag="serve")

    def test_save_and_load(self):
        exe = mlp()
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "mlp.mxr")
            exe.save(file)
            about = kiln.inspect(file)
            self.assertEqual((about.target, about.has_source, about.inputs[0].name), ("eigen", False, "x"))
            for again in (kiln.load(file), kiln.compile(file, threads=1), kiln.load(pathlib.Path(file), check_constants=True)):
                self.assertEqual(again(x=[[1, 0]]).tolist(), [[1]])
            self.refuses("unsupported", "source", kiln.load, file, "ref")
            program = kiln.read(DIGITS + "model.onnx")
            both = os.path.join(folder, "digits.mxr")
            kiln.compile(program).save(both, program)
            self.assertTrue(kiln.inspect(both).has_source)
            kiln.load(both, "ref")
            program.save(file)
            self.assertEqual(kiln.read(file).inputs, program.inputs)

    def test_pictures_and_reports(self):
        program = kiln.read(DIGITS + "model.onnx")
        exe = kiln.compile(program)
        for picture in (program.svg(), exe.svg(), exe._repr_svg_(), program._repr_svg_()):
            self.assertEqual(xml.dom.minidom.parseString(picture).documentElement.tagName, "svg")
        self.assertIn("<svg", exe._repr_html_())
        self.assertEqual(exe.report["target"], "eigen")
        self.assertIn("kernels", str(exe.report))
        self.assertIn("return", str(exe.optimized))

    def test_profile(self):
        exe = kiln.compile(DIGITS + "model.onnx")
        profile = exe.profile({exe.inputs[0].name: kiln.read_tensor(DIGITS + "test_data_set_0/input_0.pb")}, runs=3)
        self.assertEqual(len(profile.steps), len(exe.report["steps"]))
        self.assertEqual(len(profile.events), 3 * len(profile.steps))
        self.assertAlmostEqual(sum(s.share for s in profile.steps), 1)
        self.assertIn(profile.steps[0].kernel, str(profile))
        self.assertIn("<table>", profile._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            profile.save(os.path.join(folder, "t.json"))
            with open(os.path.join(folder, "t.json")) as f:
                events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(events), len(profile.events))
        self.assertTrue(all(e["dur"] >= 0 and e["ts"] >= 0 and e["name"] for e in events))

    def test_dims(self):
        n = kiln.symbol("n", 1, 100)
        self.assertEqual(n + 2 * n, 3 * n)
        self.assertEqual((n.min, n.max, n - n, (n * 4) // 2 == 2 * n), (1, 100, 0, True))
        self.assertEqual(hash(n), hash(kiln.symbol("n", 1, 100)))
        self.refuses("invalid_argument", "bounds", kiln.symbol, "n", 5, 2)

    def test_threads_run_one_program(self):
        exe = kiln.compile(DIGITS + "model.onnx", threads=1)
        scans = kiln.read_tensor(DIGITS + "test_data_set_0/input_0.pb").numpy()
        parts = [scans[i::4] for i in range(4)]  # strided, of several sizes
        expected = [np.asarray(exe(p)) for p in parts]
        wrong = []

        def work(i):
            for _ in range(30):
                if not np.array_equal(exe(parts[i]), expected[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_threads_run_at_once(self):
        all_here = threading.Barrier(4)

        @kiln.custom_op("test.domain::meet")
        def meet(x):
            all_here.wait(timeout=30)  # raises where one run waits for another to end
            return x

        b = kiln.Builder()
        b.output(meet(b.input("x", "f32", [1])), "y")
        exe = kiln.compile(b, threads=1)
        out = []
        threads = [threading.Thread(target=lambda i=i: out.append(exe(x=[i]).item())) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(out), [0, 1, 2, 3])

    def test_threads_share_the_cores(self):
        b = kiln.Builder()
        b.output(b.input("x", "f32", [256, 1024]) @ np.ones((1024, 1024), np.float32), "y")
        exe = kiln.compile(b, threads=1)
        inputs = [np.full((256, 1024), i, np.float32) for i in range(4)]
        text = bytes(1 << 23)

        def product(i):
            for _ in range(5):
                self.assertEqual(exe(x=inputs[i]).numpy()[255, 1023], 1024 * i)

        def gain(work):  # of four threads over one
            times = [time.perf_counter()]
            for i in range(4):
                work(i)
            times.append(time.perf_counter())
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(work, range(4)))
            times.append(time.perf_counter())
            return (times[1] - times[0]) / (times[2] - times[1])

        # Against what the machine has to give just then, by a library that also runs without the lock.
        gains = []
        for _ in range(10):
            possible = min(gain(lambda _: hashlib.sha256(text).digest()), 4, len(os.sched_getaffinity(0)))
            if possible >= 1.5:
                gains.append((gain(product) - 1) / (possible - 1))
                if gains[-1] > 0.5:
                    return
        if len(gains) < 5:
            self.skipTest("four threads do hardly more work than one on this machine now")
        self.fail(f"shares of what the machine has to give: {gains}")

    def test_the_interpreter_runs_on(self):
        b = kiln.Builder()
        x = b.input("x", "f32", [1024, 1024])
        b.output(x @ x @ x, "y")
        exe = kiln.compile(b, threads=1)
        a = np.ones((1024, 1024), np.float32)
        exe(x=a)
        done = threading.Event()

        def work():
            for _ in range(5):
                exe(x=a)
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        ticks = 0
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)
        thread.join()
        self.assertGreater(ticks, 10)


class CustomOpTest(unittest.TestCase):
    def test_a_python_function_is_an_op(self):
        @kiln.custom_op("test.domain::scaled")
        def scaled(x, *, by=1.0):
            return x * np.float32(by)

        @kiln.custom_op("test.domain::pair", shape=lambda x, y: [x, kiln.TensorType("i64", (2,))])
        def pair(x, y):
            return x + y, np.array(x.shape)

        b = kiln.Builder()
        x = b.input("x", "f32", ["rows", 2])
        first = pair(scaled(x + 1, by=3), x)
        b.output(first, "sum")
        b.output(first.result(1), "shape")
        exe = kiln.compile(b)
        out = exe(x=[[1, 2], [3, 4], [5, 6]])
        self.assertEqual(out["sum"].tolist(), [[7, 11], [15, 19], [23, 27]])
        self.assertEqual(out["shape"].tolist(), [3, 2])
        self.assertEqual(scaled(np.ones(1), by=2).tolist(), [2])

    def test_the_cache_keeps_programs_of_ops_with_a_version(self):
        ops = {
            "none": kiln.custom_op("test.domain::unversioned")(lambda x: x + 1),
            "own": kiln.custom_op("test.domain::versioned", version="1")(lambda x: x + 1),
            "text": kiln.custom_op("test.domain::from_text", source="return x + 1;"),
            "text of a version": kiln.custom_op("test.domain::from_text_2", source="return x + 1;", version="2"),
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, op in ops.items():
                for again in (False, True):
                    b = kiln.Builder()
                    b.output(op(b.input("x", "f32", [3])), "y")
                    exe = kiln.compile(b, cache=folder)
                    self.assertEqual("neither a version" in str(exe.report), name == "none")
                    self.assertEqual(exe.report["passes"] == [], again and name != "none", name)
                    self.assertEqual(exe(x=[1, 2, 3]).tolist(), [2, 3, 4])

    def test_faults_of_python_code(self):
        @kiln.custom_op("test.domain::broken")
        def broken(x):
            return 1 / 0

        @kiln.custom_op("test.domain::other_shape")
        def other_shape(x):
            return x[:1]

        for op, text in ((broken, "ZeroDivisionError"), (other_shape, "shape rule")):
            b = kiln.Builder()
            b.output(op(b.input("x", "f32", [3])), "y")
            exe = kiln.compile(b)
            with self.assertRaisesRegex(kiln.Error, text) as caught:
                exe(x=[1, 2, 3])
            self.assertEqual(caught.exception.op, op.name)
        with self.assertRaisesRegex(kiln.Error, "test.domain::broken"):
            kiln.custom_op("test.domain::broken")(lambda x: x)

    def test_onnx_models_hold_it(self):
        @kiln.custom_op("my.domain::Swish")
        def swish(x, *, beta=1.0):
            return x / (1 + np.exp(-np.float32(beta) * x))

        exe = kiln.compile("examples/models/swish.onnx")
        shapes = {p.name: np.ones(p.shape, np.float32) for p in exe.inputs}
        y = np.asarray(exe.run(shapes)["y"])
        self.assertTrue(np.isfinite(y).all())
        self.assertIn("my.domain::Swish (custom)", str(exe.report))


if __name__ == "__main__":
    unittest.main()
