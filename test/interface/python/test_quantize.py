"""Programs in other precisions."""

import json
import os
import tempfile
import unittest

import kiln
import numpy as np

DIGITS = "examples/models/digits/"


class QuantizeTest(unittest.TestCase):
    def setUp(self):
        scans = np.asarray(kiln.read_tensor(DIGITS + "calibration.pb"))
        self.samples = [{"image": scans[k : k + 16]} for k in range(0, len(scans), 16)]
        self.exact = np.asarray(kiln.compile(DIGITS + "model.onnx")(scans))
        self.scans = scans

    def refuses(self, text, call, *args, **named):
        with self.assertRaisesRegex(kiln.Error, text):
            call(*args, **named)

    def near(self, program, atol):
        found = np.asarray(kiln.compile(program)(self.scans))
        np.testing.assert_allclose(found, self.exact, atol=atol)
        self.assertTrue((found.argmax(1) == self.exact.argmax(1)).all())
        return found

    def test_int8(self):
        counted = []
        ranges = kiln.calibrate(DIGITS + "model.onnx", iter(self.samples), progress=counted.append)
        self.assertEqual(counted, list(range(1, len(self.samples) + 1)))
        self.assertEqual(ranges["image"], (0.0, float(self.scans.max())))
        self.assertEqual(len(ranges), len(list(ranges)))
        self.assertIn("image", ranges)
        self.assertRaises(KeyError, lambda: ranges["imago"])
        q = kiln.quantize(DIGITS + "model.onnx", "int8", ranges=ranges)
        found = self.near(q, 0.05)
        with tempfile.TemporaryDirectory() as folder:
            table, model = os.path.join(folder, "t.json"), os.path.join(folder, "q.onnx")
            ranges.save(table)
            by_table = kiln.compile(DIGITS + "model.onnx", precision="int8", ranges=table)
            np.testing.assert_array_equal(by_table(self.scans), found)
            for form in ("native", "plain_json", "flatbuffers", "cache"):
                ranges.save(table, form)
                self.assertEqual(kiln.Ranges.read(table).keys(), ranges.keys())
            self.refuses("calibration table", ranges.save, table, "yaml")
            q.write_onnx(model)
            np.testing.assert_array_equal(kiln.compile(model)(self.scans), found)
        by_samples = kiln.quantize(DIGITS + "model.onnx", "int8", samples=self.samples)
        np.testing.assert_array_equal(kiln.compile(by_samples)(self.scans), found)

    def test_floats_of_few_bits(self):
        model = DIGITS + "model.onnx"
        ranges = kiln.calibrate(model, self.samples, precision="fp8")
        for kind, atol in (("f8e4m3fn", 0.3), ("f8e5m2", 0.6)):
            q = kiln.quantize(model, "fp8", ranges=ranges, type=kind)
            found = self.near(q, atol)
            with tempfile.TemporaryDirectory() as folder:
                file = os.path.join(folder, "q.onnx")
                q.write_onnx(file)
                np.testing.assert_allclose(kiln.compile(file)(self.scans), found, atol=1e-4)
        np.testing.assert_array_equal(kiln.compile(model, precision="fp8", ranges=ranges)(self.scans),
                                      kiln.compile(kiln.quantize(model, "fp8", samples=self.samples))(self.scans))
        for precision, atol in (("mxfp4", 1.0), ("nvfp4", 1.0), ("mxfp8", 0.3)):
            self.near(kiln.quantize(model, precision), atol)
        self.refuses("fp8 needs the ranges", kiln.quantize, model, "fp8")
        self.refuses("option 'type'", kiln.quantize, model, "fp8", ranges=ranges, type="f8")
        self.refuses("ranges have no use: mxfp4 needs none", kiln.calibrate, model, self.samples, precision="mxfp4")

    def test_methods(self):
        least = kiln.calibrate(DIGITS + "model.onnx", self.samples)
        for method in ("entropy", "percentile"):
            found = kiln.calibrate(DIGITS + "model.onnx", self.samples, method=method)
            self.assertEqual(found.keys(), least.keys())
            self.assertTrue(any(found[name] != least[name] for name in found))
        self.refuses("expected one of min_max", kiln.calibrate, DIGITS + "model.onnx", self.samples, method="Guess")
        self.refuses("no option 'bin'", kiln.calibrate, DIGITS + "model.onnx", self.samples, bin=3)
        self.refuses("bins", kiln.calibrate, DIGITS + "model.onnx", self.samples, bins="many")

    def test_other_precisions(self):
        for precision, atol in (("fp16", 5e-3), ("bf16", 0.05), ("dynamic-int8", 0.05)):
            self.near(kiln.quantize(DIGITS + "model.onnx", precision), atol)
        for method in ("rtn", "k_quant", "hqq"):
            self.near(kiln.quantize(DIGITS + "model.onnx", "int4", weight_method=method, symmetric=False), 0.3)
        q = kiln.quantize(DIGITS + "model.onnx", "int4", weight_method="gptq", bits=8, samples=self.samples)
        self.near(q, 0.02)
        found = np.asarray(kiln.compile(DIGITS + "model.onnx", precision="fp16")(self.scans))
        np.testing.assert_allclose(found, self.exact, atol=5e-3)

    def test_accuracy(self):
        model = kiln.read(DIGITS + "model.onnx")
        q = kiln.quantize(model, "int8", samples=self.samples)
        counted = []
        report = kiln.compare_accuracy(model, q, self.samples, progress=counted.append)
        self.assertEqual(report.samples, len(self.samples))
        self.assertEqual(counted, list(range(1, len(self.samples) + 1)))
        (out,) = report.outputs
        self.assertEqual(out.top1, 1)
        self.assertGreater(out.sqnr, 20)
        self.assertIsNone(out.scale)
        noise = [t.added_noise for t in report.tensors]
        self.assertEqual(noise, sorted(noise, reverse=True))
        image = next(t for t in report.tensors if t.name == "image")
        self.assertEqual((image.dtype, image.zero_point, image.saturation), ("u8", 0, 0))
        self.assertAlmostEqual(image.scale, image.range[1] / 255, places=6)
        self.assertEqual(json.loads(report.json())["outputs"][0]["sqnr"], out.sqnr)
        self.assertIn("image", str(report))
        self.assertIn("image: ", repr(image))
        self.assertIn("<title>image: ", report.svg())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "q.onnx")
            q.write_onnx(path)
            again = kiln.compare_accuracy(DIGITS + "model.onnx", path, self.samples)
        self.assertEqual(again.outputs[0].sqnr, out.sqnr)
        near = kiln.quantize(model, "int8", samples=self.samples, min_sqnr=out.sqnr + 3)
        self.assertGreaterEqual(kiln.compare_accuracy(model, near, self.samples).outputs[0].sqnr, out.sqnr + 3)
        self.assertTrue(any("stays in floats" in r for r in near.remarks))
        self.assertTrue(any(r.startswith("in int8: ") for r in q.remarks))

    def test_options(self):
        rows = {o.name: o for o in kiln.quantize_options()}
        self.assertEqual((rows["block_size"].kind, rows["block_size"].default), ("count", "32"))
        both = ["/net/net.0/Conv", "/net/net.3/Conv"]
        q = kiln.quantize(DIGITS + "model.onnx", "int8", samples=self.samples, exclude=both)
        self.assertTrue(any(r.startswith("in int8: ") and "1 convolution" in r for r in q.remarks), q.remarks)

    def test_smoothing_and_overrides(self):
        model = kiln.read(DIGITS + "model.onnx")
        smooth = kiln.quantize(model, "int8", samples=self.samples, smooth_quant=0.5)
        self.assertTrue(any("values are smoothed" in r for r in smooth.remarks), smooth.remarks)
        self.near(smooth, 0.05)
        q = kiln.quantize(model, "int8", samples=self.samples, overrides={"image": {"type": "i8", "high": 17.0}})
        (image,) = (t for t in kiln.compare_accuracy(model, q, self.samples).tensors if t.name == "image")
        self.assertEqual((image.dtype, image.zero_point), ("i8", 0))
        self.assertAlmostEqual(image.scale, 17 / 127, places=6)
        self.refuses("'image', kind", kiln.quantize, model, "int8", overrides={"image": {"kind": 1}})
        self.refuses("'nobody'", kiln.quantize, model, "int8", samples=self.samples, overrides={"nobody": {}})
        self.refuses("smooth_quant reads samples several times", kiln.quantize, model, "int8", smooth_quant=0.5,
                     samples=iter(self.samples))

    def test_mistakes(self):
        model = DIGITS + "model.onnx"
        self.refuses("int8 needs the ranges", kiln.quantize, model, "int8")
        self.refuses("precision: expected one of", kiln.quantize, model, "int7")
        self.refuses("no option 'blocksize'; nearest 'block_size'", kiln.quantize, model, "int4", blocksize=32)
        self.refuses("power of two", kiln.quantize, model, "int4", block_size=20)
        self.refuses("gptq needs samples", kiln.quantize, model, "int4", weight_method="gptq")
        self.refuses("needs none", kiln.calibrate, model, self.samples, precision="bf16")
        self.refuses("a sample is a dict", kiln.calibrate, model, [[1, 2]])
        self.refuses("image", kiln.calibrate, model, [{}])
        self.refuses("samples have no use", kiln.quantize, model, "bf16", samples=self.samples)
        self.refuses("'bits' means nothing to int8", kiln.quantize, model, "int8", bits=8, samples=self.samples)
        self.refuses("min_sqnr reads samples several times", kiln.quantize, model, "int8", min_sqnr=30,
                     samples=iter(self.samples))
        self.refuses("no dot or convolution 'a,b'", kiln.quantize, model, "int8", exclude=["a,b"],
                     samples=self.samples)
        self.refuses("found none", kiln.compare_accuracy, model, model, [])
        self.refuses("inputs of a sample have names", kiln.calibrate, model, [{1: self.scans}])
        self.refuses("of a precision", kiln.compile, model, ranges="t.json")

        def broken():
            yield self.samples[0]
            raise RuntimeError("no more scans")

        with self.assertRaisesRegex(RuntimeError, "no more scans"):
            kiln.calibrate(model, broken())


if __name__ == "__main__":
    unittest.main()
