"""The provider's options as the page lists them: every spelling in both forms, the environment, contradictions, effects."""

import contextlib
import ctypes
import gc
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from help import CPU, DIGITS, KILN, MIGRAPHX, ROOT
import numpy as np
import onnx_bytes as ox
import onnxruntime as ort

PAGES = [ROOT / "docs/onnxruntime.md", ROOT / "docs/onnxruntime.zh.md"]
# What an option needs beside it.
COMPANIONS = {
    "migraphx_int8_enable": {"migraphx_int8_calibration_table_name": "TABLE"},
    "migraphx_fp8_enable": {"migraphx_int8_calibration_table_name": "TABLE"},
    "migraphx_load_compiled_model": {"migraphx_load_compiled_path": "/none.mxr"},
    "migraphx_save_compiled_model": {"migraphx_save_compiled_path": "FOLDER/saved.mxr"},
}
NEEDS_A_GPU = {"has_user_compute_stream", "user_compute_stream"}
# The environment's names in the documentation of ONNX Runtime's MIGraphX provider, and its session's options.
KNOWN_ENVIRONMENT = """DUMP_MODEL_OPS FP16_ENABLE INT8_ENABLE INT8_CALIBRATION_TABLE_NAME INT8_USE_NATIVE_CALIBRATION_TABLE
    SAVE_COMPILED_MODEL SAVE_COMPILED_PATH LOAD_COMPILED_MODEL LOAD_COMPILED_PATH EXHAUSTIVE_TUNE"""
KNOWN_OPTIONS = """device_id migraphx_fp16_enable migraphx_int8_enable migraphx_int8_calibration_table_name
    migraphx_int8_use_native_calibration_table migraphx_save_compiled_model migraphx_save_compiled_path
    migraphx_load_compiled_model migraphx_load_compiled_path migraphx_exhaustive_tune migraphx_mem_limit
    migraphx_external_alloc migraphx_external_free migraphx_external_empty_cache"""


def rows(page=PAGES[0]):
    """The page's table: name, other names, variables, default, meaning."""
    text = page.read_text()
    table = text[text.index("<!-- options -->") : text.index("<!-- end of options -->")]
    for line in table.splitlines()[3:]:
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        name, also, variables = (re.findall(r"`([^`]+)`", c) for c in cells[:3])
        yield name[0], also, variables, cells[3], cells[4]


@contextlib.contextmanager
def environment(**variables):
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def product():
    """y = x times a matrix: small, and what precision and quantization change."""
    of = ox.tensor_type(ox.FLOAT, ["rows", 16])
    w = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float32)
    return ox.model([ox.node("MatMul", ["x", "w"], ["y"])], [ox.value("x", of)], [ox.value("y", of)], [ox.tensor("w", 1, w)])


MODEL = product()
X = np.random.default_rng(2).standard_normal((4, 16)).astype(np.float32)


def resolved(options, provider=MIGRAPHX):
    return ort.InferenceSession(MODEL, providers=[(provider, options)]).get_provider_options()[provider]


class OptionsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)  # dumps are written there
        self.table = f"{self.folder}/table.json"
        pathlib.Path(self.table).write_text(json.dumps({"x": [-3, 3], "y": [-20, 20], "w": [-3, 3]}))

    def companions(self, option):
        given = COMPANIONS.get(option, {})
        return {k: v.replace("TABLE", self.table).replace("FOLDER", self.folder) for k, v in given.items()}

    def test_the_page_has_the_options_that_users_know(self):
        names = {name for name, *_ in rows()}
        self.assertLessEqual(set(KNOWN_OPTIONS.split()), names)
        variables = {v for _, _, listed, _, _ in rows() for v in listed}
        self.assertLessEqual({f"ORT_MIGRAPHX_{n}" for n in KNOWN_ENVIRONMENT.split()}, variables)

    def test_every_flag_takes_every_spelling_in_both_forms(self):
        for option, also, _, default, meaning in rows():
            if default not in ("true", "false") or option in NEEDS_A_GPU:
                continue
            for name in [option, *also]:
                for text, value in (("1", "1"), ("0", "0"), ("true", "1"), ("False", "0"), (True, "1"), (0, "0")):
                    given = {name: text, **self.companions(option)}
                    if value == "1" and "refused" in meaning:
                        with self.assertRaisesRegex(Exception, option):
                            resolved(given)
                        continue
                    self.assertEqual(resolved(given)[option], value, (name, text))
            lists = {"providers": [MIGRAPHX, CPU], "provider_options": [{option: 0}, {}]}
            self.assertEqual(ort.InferenceSession(MODEL, **lists).get_provider_options()[MIGRAPHX][option], "0")

    def test_every_other_option_takes_its_default_by_every_name(self):
        for option, also, _, default, _ in rows():
            if default in ("true", "false"):
                continue
            for name in [option, *also]:
                self.assertEqual(resolved({name: default}, KILN)[option], default, name)

    def test_defaults_are_the_pages(self):
        values = resolved({})
        self.assertEqual(list(values), [name for name, *_ in rows()])
        for option, _, _, default, _ in rows():
            self.assertEqual(values[option], {"true": "1", "false": "0"}.get(default, default), option)

    def test_the_environment_comes_before_the_option(self):
        for option, _, variables, default, meaning in rows():
            for variable in variables:
                if default in ("true", "false") and "refused" not in meaning:
                    for set_, given in (("1", "0"), ("0", "1"), ("True", "0")):
                        with environment(**{variable: set_}):
                            got = resolved({option: given, **self.companions(option)})
                        self.assertEqual(got[option], set_.replace("True", "1"), variable)
                    with environment(**{variable: "maybe"}), self.assertRaisesRegex(Exception, variable):
                        resolved({})

    def test_the_environment_alone_quantizes(self):
        plain = ort.InferenceSession(MODEL).run(None, {"x": X})[0]
        variables = {"ORT_MIGRAPHX_INT8_ENABLE": "1", "ORT_MIGRAPHX_INT8_CALIBRATION_TABLE_NAME": self.table}
        with environment(**variables):
            session = ort.InferenceSession(MODEL)
        self.assertEqual(session.get_provider_options()[MIGRAPHX]["migraphx_int8_enable"], "1")
        error = np.abs(session.run(None, {"x": X})[0] - plain).max()
        self.assertGreater(error, 1e-3)
        self.assertLess(error, 0.5)

    def test_precisions_change_results_as_they_should(self):
        plain = ort.InferenceSession(MODEL, providers=[CPU]).run(None, {"x": X})[0]
        for option, low, high in (("fp16", 1e-6, 2e-2), ("bf16", 1e-4, 2e-1)):
            session = ort.InferenceSession(MODEL, providers=[(MIGRAPHX, {f"migraphx_{option}_enable": True})])
            error = np.abs(session.run(None, {"x": X})[0] - plain).max()
            self.assertTrue(low < error < high, (option, error))

    def test_tables_of_every_form_give_the_same_bits(self):
        sys.path.append(os.environ["KILN_PYTHON"])
        try:
            import kiln
        except ImportError as error:
            self.skipTest(f"the package kiln is not built: {error}")
        model = f"{self.folder}/model.onnx"
        pathlib.Path(model).write_bytes(MODEL)
        ranges = kiln.calibrate(model, [{"x": X}, {"x": 2 * X}], precision="int8")
        results = set()
        for form in ("native", "json", "plain_json", "flatbuffers", "cache"):
            table = f"{self.folder}/table.{form}"
            ranges.save(table, form)
            for native in ("0", "1"):
                given = {"migraphx_int8_enable": 1, "migraphx_int8_calibration_table_name": table}
                given["migraphx_int8_use_native_calibration_table"] = native
                session = ort.InferenceSession(MODEL, providers=[(MIGRAPHX, given)])
                results.add(session.run(None, {"x": X})[0].tobytes())
        self.assertEqual(len(results), 1)
        plain = ort.InferenceSession(MODEL).run(None, {"x": X})[0]
        self.assertNotIn(plain.tobytes(), results)

    def test_a_range_counts_by_its_greatest_magnitude(self):
        results = []
        for low, high in ((-10, 1), (-10, 10), (-1, 1)):
            pathlib.Path(self.table).write_text(json.dumps({"x": [low, high], "y": [-20, 20]}))
            given = {"migraphx_int8_enable": 1, "migraphx_int8_calibration_table_name": self.table}
            results.append(ort.InferenceSession(MODEL, providers=[(MIGRAPHX, given)]).run(None, {"x": X})[0])
        np.testing.assert_array_equal(results[0], results[1])
        self.assertTrue((results[0] != results[2]).any())

    def test_a_table_that_fits_nothing_is_an_error(self):
        for content, text in (
            ("", f"expected a calibration table, found an empty file .from {self.table}"),
            ("{}", f"expected one tensor or more, found none .from {self.table}"),
            (json.dumps({"nothing": [-1, 1]}), "ranges fit 0 of 1 values.*'x'.*such as 'nothing'"),
        ):
            pathlib.Path(self.table).write_text(content)
            given = {"migraphx_int8_enable": 1, "migraphx_int8_calibration_table_name": self.table}
            with self.assertRaisesRegex(Exception, text):
                resolved(given)

    def test_compiled_partitions_are_saved_and_read(self):
        file = f"{self.folder}/compiled.mxr"
        session = ort.InferenceSession(
            MODEL, providers=[(MIGRAPHX, {"migraphx_save_compiled_model": 1, "migraphx_save_compiled_path": file})]
        )
        expected = session.run(None, {"x": X})[0]
        self.assertGreater(pathlib.Path(file).stat().st_size, 1000)
        given = {"migraphx_load_compiled_model": 1, "migraphx_load_model_path": file}
        again = ort.InferenceSession(MODEL, providers=[(MIGRAPHX, given)])
        np.testing.assert_array_equal(again.run(None, {"x": X})[0], expected)

    def test_a_limit_that_is_too_small_is_an_error(self):
        with self.assertRaisesRegex(Exception, "at most 100 bytes: [0-9]+ more are asked for"):
            session = ort.InferenceSession(MODEL, providers=[(MIGRAPHX, {"migraphx_mem_limit": 100})])
            session.disable_fallback()
            session.run(None, {"x": X})
        resolved({"migraphx_mem_limit": 1 << 30})

    def test_the_programs_allocator_is_called(self):
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
        sizes, freed = [], []

        @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
        def allocate(size):
            sizes.append(size)
            return libc.malloc(size)

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def free(address):
            freed.append(address)
            libc.free(address)

        address = lambda f: str(ctypes.cast(f, ctypes.c_void_p).value)  # noqa: E731
        given = {"migraphx_external_alloc": address(allocate), "migraphx_external_free": address(free)}
        session = ort.InferenceSession(MODEL, providers=[(MIGRAPHX, given)])
        plain = ort.InferenceSession(MODEL).run(None, {"x": X})[0]
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], plain)
        self.assertGreater(sum(sizes), 16 * 16 * 4)
        del session
        gc.collect()
        self.assertEqual(len(freed), len(sizes))

    def test_the_dump_is_written(self):
        session = ort.InferenceSession(MODEL, providers=[(MIGRAPHX, {"dump_subgraphs": 1})])
        files = sorted(pathlib.Path(self.folder).glob("*.onnx"))
        self.assertEqual(len(files), 2)  # the graph and its one partition
        names = []
        for file in files:
            dumped = ort.InferenceSession(file, providers=[CPU])
            names.append(dumped.get_modelmeta().graph_name)
            self.assertIn(names[-1], file.name)
            self.assertEqual([i.name for i in dumped.get_inputs()], ["x"])
            got, expected = dumped.run(["y"], {"x": X})[0], session.run(None, {"x": X})[0]
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        self.assertRegex(" ".join(names), rf"\b{MIGRAPHX}_[0-9]+_0\b")  # the partition's name, and whose node it is

    def test_errors_name_the_option_and_the_nearest(self):
        for given, text in (
            ({"migraphx_fp61_enable": 1}, "migraphx_fp16_enable"),
            ({"migraphx_fp16_enable": "maybe"}, "migraphx_fp16_enable"),
            ({"migraphx_fp16_enable": 1, "migraphx_bf16_enable": 1}, "exclude"),
            ({"migraphx_int8_enable": 1}, "calibration table"),
            ({"fp16_enable": 1, "migraphx_fp16_enable": 0}, "one value"),
        ):
            with self.assertRaisesRegex(Exception, text):
                resolved(given)  # and no session of the CPU's provider in its place
        self.assertEqual(resolved({"fp16_enable": 1, "migraphx_fp16_enable": "True"})["migraphx_fp16_enable"], "1")

    def test_entries_of_the_session_are_options_too(self):
        options = ort.SessionOptions()
        options.add_session_config_entry("ep.migraphxexecutionprovider.migraphx_bf16_enable", "1")
        session = ort.InferenceSession(DIGITS, options)
        self.assertEqual(session.get_provider_options()[MIGRAPHX]["migraphx_bf16_enable"], "1")

    def test_both_pages_have_every_row(self):
        english, chinese = (list(rows(page)) for page in PAGES)
        for en, zh in zip(english, chinese):
            self.assertEqual(en[:4], zh[:4])
            self.assertRegex(zh[4], "[\u4e00-\u9fff]", zh[0])
        self.assertEqual(len(english), len(chinese))


if __name__ == "__main__":
    unittest.main()
