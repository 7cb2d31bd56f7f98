"""Ops of C++ text."""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import kiln
import numpy as np

CACHE = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = CACHE.name
os.environ.pop("CXX", None)

leaky = kiln.custom_op("test.source::Leaky", source="return x > 0 ? x : slope * x;", attributes={"slope": 0.25})


def one_op(op, dtype="f32", shape=("n",), **attributes):
    b = kiln.Builder()
    b.output(op(b.input("x", dtype, list(shape)), **attributes), "y")
    return kiln.compile(b, threads=1)


class SourceOpTest(unittest.TestCase):
    def refuses(self, code, text, call, *args, **named):
        with self.assertRaisesRegex(kiln.Error, text) as caught:
            call(*args, **named)
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_values_and_attributes(self):
        x = np.array([-4, -1, 0, 8], np.float32)
        self.assertEqual(one_op(leaky)(x).tolist(), [-1, -0.25, 0, 8])
        self.assertEqual(one_op(leaky, slope=2)(x).tolist(), [-8, -2, 0, 8])
        self.assertEqual(one_op(leaky, slope=np.float64(0.5))(x).tolist(), [-2, -0.5, 0, 8])
        for dtype in ("f64", "f16"):
            self.assertEqual(one_op(leaky, dtype)(x.astype(kiln.tensor([0], dtype).numpy().dtype)).tolist(), [-1, -0.25, 0, 8])
        self.assertEqual(one_op(leaky, "bf16")([-4, 8]).tolist(), [-1, 8])
        self.assertEqual(leaky(x).tolist(), [-1, -0.25, 0, 8])  # with arrays it computes
        self.refuses("not_found", "one of the attributes slope, found 'slop'", one_op, leaky, slop=1)
        self.refuses("unsupported", "expected f64 or f32 or f16 or bf16, found i32", one_op, leaky, "i32")

    def test_several_operands(self):
        power = kiln.custom_op(
            "test.source::Mix",
            source="T out = a;\nfor (std::int64_t i = 1; i < times; ++i) out *= exp(b);\nreturn out;",
            operands=["a", "b"],
            attributes={"times": 2},
            dtypes=["f32", np.float64],
        )
        a, b = np.array([[1], [2]], np.float32), np.array([0, 1, 2], np.float32)
        np.testing.assert_allclose(power(a, b), a * np.exp(b), rtol=1e-6)
        np.testing.assert_allclose(power(a, 1, times=3), a * np.exp(np.float32(2)), rtol=1e-6)
        self.refuses("unsupported", "expected f64 or f32, found f16", power, a.astype(np.float16), b.astype(np.float16))

    def test_the_compilers_message(self):
        define = lambda source, **how: kiln.custom_op("test.source::Bad", source=source, **how)
        e = self.refuses("invalid_argument", r"Bad:1:\d+: error: .*slop", define, "return x * slop;")
        self.assertEqual(e.op, "test.source::Bad")
        self.refuses("not_found", "found no program 'no-such-compiler'", define, "return x;", compiler="no-such-compiler")
        with self.assertRaisesRegex(kiln.ArgumentError, "said of a function"):
            define("return x;", pure=False)
        self.refuses("invalid_argument", "'text'", define, "return x;", attributes={"text": "word"})

    def test_no_compiler(self):
        path = os.environ["PATH"]
        os.environ["PATH"] = CACHE.name
        try:
            self.refuses("not_found", "PATH has no g\\+\\+", kiln.custom_op, "test.source::None", source="return x;")
        finally:
            os.environ["PATH"] = path

    def test_the_second_process_compiles_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            compiler = pathlib.Path(folder) / "compiler"
            compiler.write_text(f'#!/bin/sh\necho called >> {folder}/calls\nexec c++ "$@"\n')
            compiler.chmod(0o755)
            script = "import kiln; print(kiln.custom_op('a::B', source='return x + 1;')([1.5]).tolist())"
            environment = dict(os.environ, CXX=str(compiler), XDG_CACHE_HOME=folder)
            run = [subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE) for _ in range(3)]
            self.assertEqual([p.communicate()[0] for p in run], [b"[2.5]\n"] * 3)  # at once: whoever is first
            calls = pathlib.Path(folder, "calls").read_text()
            subprocess.run([sys.executable, "-c", script], env=environment, check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(pathlib.Path(folder, "calls").read_text(), calls)
            self.assertEqual(len(list(pathlib.Path(folder, "kiln", "ops").iterdir())), 1)

    def test_threads(self):
        exe = one_op(leaky)
        x = np.linspace(-1, 1, 10007, dtype=np.float32)
        expected = np.where(x > 0, x, x * np.float32(0.25))
        wrong = []

        def work():
            for _ in range(50):
                if not np.array_equal(exe(x), expected):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_it_runs_without_the_interpreters_lock(self):
        slow = kiln.custom_op(
            "test.source::Slow", source="for (std::int64_t i = 0; i < n; ++i) x = sin(x);\nreturn x;", attributes={"n": 1}
        )
        exe = one_op(slow, n=2000)
        done = threading.Event()
        thread = threading.Thread(target=lambda: (exe(np.ones(20000, np.float32)), done.set()))
        thread.start()
        ticks = 0
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)
        thread.join()
        self.assertGreater(ticks, 10)

    def test_onnx_models_hold_it(self):
        kiln.custom_op("my.domain::Swish", source="return x / (1 + exp(-beta * x));", attributes={"beta": 1.0})
        exe = kiln.compile("examples/models/swish.onnx")
        x = np.ones([p if isinstance(p, int) else 4 for p in exe.inputs[0].shape], np.float32)
        scale = np.ones(exe.inputs[1].shape, np.float32)
        beta = 2.0
        y = np.asarray(exe(x, scale))
        np.testing.assert_allclose(y, 2 / (1 + np.exp(-beta * 2)) * scale * np.ones_like(y), rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
