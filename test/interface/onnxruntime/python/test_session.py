"""Sessions: providers in every form, runs of every kind, what a session says of itself, failures."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import threading
import unittest
import warnings

from help import CPU, DIGITS, KILN, MIGRAPHX
import numpy as np
import onnx_bytes as ox
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state


def scans(batch=3, seed=0):
    return np.random.default_rng(seed).random((batch, 1, 8, 8), dtype=np.float32)


def affine(metadata=None):
    """y = x * 2 + 1, over a named and an unnamed dimension."""
    of = ox.tensor_type(ox.FLOAT, ["rows", None])
    constants = [ox.tensor("two", ox.FLOAT, np.float32([2])), ox.tensor("one", ox.FLOAT, np.float32([1]))]
    nodes = [ox.node("Mul", ["x", "two"], ["t"]), ox.node("Add", ["t", "one"], ["y"])]
    return ox.model(nodes, [ox.value("x", of)], [ox.value("y", of)], constants, metadata=metadata)


def all_nodes_go_to(session, provider):
    return {part.ep_name for part in session.get_provider_graph_assignment_info()} == {provider}


class ProvidersTest(unittest.TestCase):
    def options(self):
        options = ort.SessionOptions()
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        return options

    def test_every_form_reaches_the_plugin_and_agrees_with_the_cpu_provider(self):
        x = {"image": scans()}
        expected = ort.InferenceSession(DIGITS, providers=[CPU]).run(None, x)[0]
        forms = [
            {"providers": [MIGRAPHX]},
            {"providers": [MIGRAPHX, CPU], "provider_options": [{"migraphx_exhaustive_tune": "0"}, {}]},
            {"providers": [(MIGRAPHX, {"migraphx_exhaustive_tune": 0})]},
            {"providers": ((MIGRAPHX, {}), CPU), "provider_options": None},
            {},  # kiln's comes first by itself
        ]
        for form in forms:
            options = ort.SessionOptions()
            options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
            session = ort.InferenceSession(DIGITS, options, **form)
            self.assertEqual(session.get_providers(), [MIGRAPHX, CPU])
            self.assertTrue(all_nodes_go_to(session, MIGRAPHX))
            np.testing.assert_allclose(session.run(None, x)[0], expected, rtol=1e-5, atol=1e-6)
        session = ort.InferenceSession(DIGITS, self.options(), providers=[KILN])
        self.assertEqual(session.get_providers()[0], KILN)
        self.assertTrue(all_nodes_go_to(session, KILN))

    def test_the_cpu_provider_alone_leaves_nothing_to_kiln(self):
        options = ort.SessionOptions()
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        session = ort.InferenceSession(DIGITS, options, providers=[CPU])
        self.assertEqual(session.get_providers(), [CPU])
        self.assertTrue(all_nodes_go_to(session, CPU))
        session.set_providers([MIGRAPHX], [{"migraphx_bf16_enable": True}])
        self.assertTrue(all_nodes_go_to(session, MIGRAPHX))
        self.assertEqual(session.get_provider_options()[MIGRAPHX]["migraphx_bf16_enable"], "1")
        self.assertEqual(session.get_provider_options()[CPU], {})

    def test_names(self):
        self.assertEqual(ort.get_available_providers()[:2], [MIGRAPHX, KILN])
        self.assertEqual(ort.get_available_providers()[-1], CPU)
        self.assertLess(set(ort.get_available_providers()), set(ort.get_all_providers()))
        self.assertEqual(ort.get_device(), "CPU")
        devices = [d for d in ort.get_ep_devices() if d.ep_name == KILN]
        self.assertEqual(devices[0].device.type, ort.OrtHardwareDeviceType.CPU)
        self.assertEqual(devices[0].ep_vendor, "kiln")
        self.assertIn("version", devices[0].ep_metadata)

    def test_devices_and_providers_in_session_options(self):
        for add in (
            lambda o: o.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == KILN], {"threads": "2"}),
            lambda o: o.add_provider(KILN, {"threads": "2"}),
        ):
            options = self.options()
            self.assertFalse(options.has_providers())
            add(options)
            self.assertTrue(options.has_providers())
            session = ort.InferenceSession(DIGITS, sess_options=options)
            self.assertEqual(session.get_providers(), [KILN, CPU])
            self.assertEqual(session.get_provider_options()[KILN]["threads"], "2")
            self.assertTrue(all_nodes_go_to(session, KILN))
        chosen = []

        def choose(devices, model, run, most):
            chosen.extend(d.ep_name for d in devices)
            return [d for d in devices if d.ep_name == KILN]

        options = self.options()
        options.set_provider_selection_policy_delegate(choose)
        session = ort.InferenceSession(DIGITS, options)
        self.assertIn(MIGRAPHX, chosen)
        self.assertTrue(all_nodes_go_to(session, KILN))
        self.assertIn(KILN, session.get_providers())
        options = ort.SessionOptions()
        options.set_provider_selection_policy(ort.OrtExecutionProviderDevicePolicy.PREFER_CPU)
        self.assertIn(CPU, ort.InferenceSession(DIGITS, options).get_providers())
        with self.assertRaises(ValueError):
            options.add_provider_for_devices([], {})

    def test_the_library_may_be_registered_under_a_name_of_its_own(self):
        import onnxruntime_ep_kiln

        ort.register_execution_provider_library("mine", onnxruntime_ep_kiln.get_library_path())
        with self.assertRaisesRegex(Exception, "mine"):
            ort.register_execution_provider_library("mine", onnxruntime_ep_kiln.get_library_path())
        ort.unregister_execution_provider_library("mine")
        with self.assertRaises(state.Fail):
            ort.register_execution_provider_library("none", "/no/such/library.so")

    def test_wrong_providers(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = ort.InferenceSession(DIGITS, providers=["CUDAExecutionProvider", CPU, CPU])
        self.assertEqual(session.get_providers(), [CPU])
        texts = [str(w.message) for w in caught]
        self.assertTrue(any("'CUDAExecutionProvider' is not in available" in t and MIGRAPHX in t for t in texts))
        self.assertTrue(any("Duplicate provider" in t for t in texts))
        for wrong in ({"providers": MIGRAPHX.encode()}, {"providers": [1]}, {"providers": [CPU], "provider_options": []}):
            with self.assertRaises((ValueError, RuntimeError)):
                ort.InferenceSession(DIGITS, enable_fallback=0, **wrong)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = ort.InferenceSession(DIGITS, providers=["NoSuchProvider"])
        self.assertEqual(session.get_providers(), [CPU])
        self.assertIn("Unknown Provider Type: NoSuchProvider", out.getvalue())
        with self.assertRaisesRegex(RuntimeError, "NoSuchProvider"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ort.InferenceSession(DIGITS, providers=["NoSuchProvider"], enable_fallback=0)

    def test_a_failing_provider_is_replaced_once(self):
        session = ort.InferenceSession(affine(), providers=[MIGRAPHX])
        x = np.ones((2, 2), np.float32)

        class Failing:
            def __init__(self, raw):
                self.raw = raw

            def __getattr__(self, name):
                return getattr(self.raw, name)

            def run(self, *_):
                raise state.EPFail("it failed")

        session._raw = Failing(session._raw)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], 3 * x)
        self.assertIn("it failed", out.getvalue())
        self.assertEqual(session.get_providers(), [CPU])
        session._raw = Failing(session._raw)
        with self.assertRaises(state.EPFail):
            session.run(None, {"x": x})


class ModelTest(unittest.TestCase):
    def test_sources(self):
        data = pathlib.Path(DIGITS).read_bytes()
        x = {"image": scans()}
        results = [ort.InferenceSession(m).run(None, x)[0] for m in (DIGITS, pathlib.Path(DIGITS), data)]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])
        with self.assertRaises(TypeError):
            ort.InferenceSession(3)

    def test_arguments_and_metadata(self):
        session = ort.InferenceSession(affine({"author": "somebody", "license": "none"}))
        (x,), (y,) = session.get_inputs(), session.get_outputs()
        self.assertEqual((x.name, x.type, x.shape), ("x", "tensor(float)", ["rows", None]))
        self.assertEqual((y.name, y.type, y.shape), ("y", "tensor(float)", ["rows", None]))
        self.assertEqual(repr(x), "NodeArg(name='x', type='tensor(float)', shape=['rows', None])")
        about = session.get_modelmeta()
        self.assertEqual((about.producer_name, about.graph_name, about.domain), ("the producer", "net", "a.domain"))
        self.assertEqual((about.description, about.graph_description), ("about the model", "about the graph"))
        self.assertEqual((about.version, about.custom_metadata_map), (7, {"author": "somebody", "license": "none"}))

    def test_initializers_that_a_feed_may_replace(self):
        of = ox.tensor_type(ox.FLOAT, [2])
        model = ox.model(
            [ox.node("Add", ["x", "w"], ["y"])],
            [ox.value("x", of), ox.value("w", of)],
            [ox.value("y", of)],
            [ox.tensor("w", ox.FLOAT, np.float32([1, 2]))],
        )
        session = ort.InferenceSession(model)
        self.assertEqual([a.name for a in session.get_inputs()], ["x"])
        self.assertEqual([a.name for a in session.get_overridable_initializers()], ["w"])
        x = np.float32([10, 20])
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], [11, 22])
        np.testing.assert_array_equal(session.run(None, {"x": x, "w": x})[0], [20, 40])

    def test_errors_are_those_that_programs_catch(self):
        with self.assertRaisesRegex(state.NoSuchFile, r"\[ONNXRuntimeError\] : 3 : NO_SUCHFILE : "):
            ort.InferenceSession("/no/such/model.onnx")
        with self.assertRaises(state.InvalidProtobuf):
            ort.InferenceSession(b"no model at all")
        session = ort.InferenceSession(affine())
        x = np.ones((2, 2), np.float32)
        with self.assertRaisesRegex(ValueError, r"Required inputs \(\['x'\]\) are missing"):
            session.run(None, {"z": x})
        with self.assertRaisesRegex(state.InvalidArgument, "(?i)data type.*double"):
            session.run(None, {"x": x.astype(np.float64)})
        with self.assertRaisesRegex(state.InvalidArgument, "(?i)rank"):
            session.run(None, {"x": x[0]})
        with self.assertRaisesRegex(state.InvalidArgument, "z"):
            session.run(["z"], {"x": x})
        with self.assertRaisesRegex(state.InvalidArgument, "z"):
            session.run(None, {"x": x, "z": x})
        with self.assertRaisesRegex(RuntimeError, "'x'.*None"):
            session.run(None, {"x": None})
        with self.assertRaises(ValueError):
            session.run(None, {"x": np.zeros(2, dtype="M8[s]")})
        self.assertTrue(issubclass(state.EPFail, Exception))
        self.assertEqual(state.Fail.__module__, "onnxruntime.capi.onnxruntime_pybind11_state")


class CompilerTest(unittest.TestCase):
    def options(self):
        options = ort.SessionOptions()
        options.add_provider(KILN, {})
        return options

    def test_models_with_compiled_partitions(self):
        x = {"image": scans()}
        expected = ort.InferenceSession(DIGITS, providers=[KILN]).run(None, x)[0]
        with tempfile.TemporaryDirectory() as folder:
            for embedded in (True, False):
                path = f"{folder}/compiled_{embedded}.onnx"
                ort.ModelCompiler(self.options(), DIGITS, embedded).compile_to_file(path)
                self.assertIn(b"EPContext", pathlib.Path(path).read_bytes())
                got = ort.InferenceSession(path, providers=[KILN]).run(None, x)[0]
                np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)
            self.assertEqual(len(list(pathlib.Path(folder).iterdir())), 3)  # one has its program beside it
            flags = ort.OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS
            with self.assertRaises(state.Fail):
                ort.ModelCompiler(self.options(), DIGITS, True, flags=flags).compile_to_file(path)
        data = ort.ModelCompiler(self.options(), pathlib.Path(DIGITS).read_bytes(), True).compile_to_bytes()
        got = ort.InferenceSession(data, providers=[KILN]).run(None, x)[0]
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


class RunTest(unittest.TestCase):
    def setUp(self):
        self.session = ort.InferenceSession(affine())
        self.x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def test_arrays_in_any_layout(self):
        big_endian = self.x.astype(">f4")
        for given in (self.x, self.x.T, self.x[:, ::2], big_endian, self.x[:0], self.x.tolist()):
            got = self.session.run(["y"], {"x": given})[0]
            np.testing.assert_array_equal(got, np.asarray(given, np.float32) * 2 + 1)
        readonly = self.x.copy()
        readonly.flags.writeable = False
        np.testing.assert_array_equal(self.session.run(None, {"x": readonly})[0], self.x * 2 + 1)
        scalar = ort.InferenceSession(ox.one_op("Neg", ox.tensor_type(ox.FLOAT, [])))
        self.assertEqual(scalar.run(None, {"x": np.float32(3).reshape(())})[0].shape, ())

    def test_outputs_outlive_the_session(self):
        session = ort.InferenceSession(affine())
        results = [session.run(None, {"x": self.x + i})[0] for i in range(20)]
        del session
        for i, got in enumerate(results):
            np.testing.assert_array_equal(got, (self.x + i) * 2 + 1)
        results[0] += 1  # it may be written

    def test_run_with_ort_values(self):
        (got,) = self.session.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(self.x)})
        self.assertIsInstance(got, ort.OrtValue)
        np.testing.assert_array_equal(got.numpy(), self.x * 2 + 1)
        again = self.session.run(None, {"x": got})[0]  # an OrtValue in an ordinary feed
        np.testing.assert_array_equal(again, (self.x * 2 + 1) * 2 + 1)

    def test_run_async(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 2
        session = ort.InferenceSession(affine(), options)
        done, got = threading.Event(), []

        def callback(outputs, user_data, error):
            got.append((outputs, user_data, error))
            done.set()

        session.run_async(["y"], {"x": self.x}, callback, "mine")
        self.assertTrue(done.wait(60))
        np.testing.assert_array_equal(got[0][0][0], self.x * 2 + 1)
        self.assertEqual(got[0][1:], ("mine", ""))
        done.clear()
        try:
            session.run_async(["y"], {"x": self.x[0]}, callback, None)
        except state.InvalidArgument:
            return
        self.assertTrue(done.wait(60))
        self.assertIn("ank", got[1][2])

    def test_a_session_may_be_given_up_while_it_runs(self):
        for _ in range(20):
            options = ort.SessionOptions()
            options.intra_op_num_threads = 2
            session, done = ort.InferenceSession(affine(), options), threading.Event()
            session.run_async(["y"], {"x": self.x}, lambda outputs, flag, error: flag.set(), done)
            del session
            self.assertTrue(done.wait(60))

    def test_runs_leave_nothing_behind(self):
        x = np.ones((256, 256), np.float32)  # 256 KiB in and out

        def memory():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        sessions = [self.session, ort.InferenceSession(affine(), providers=[CPU])]
        for session in sessions:
            for before in (None, memory()):
                for _ in range(200):
                    session.run(None, {"x": x})
                    session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(x)})
                if before:
                    self.assertLess(memory() - before, 16 << 20)  # 400 outputs are 100 MiB

    def test_run_options(self):
        options = ort.RunOptions()
        options.logid = "mine"
        options.log_severity_level = 3
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self.assertEqual(options.get_run_config_entry("memory.enable_memory_arena_shrinkage"), "cpu:0")
        np.testing.assert_array_equal(self.session.run(None, {"x": self.x}, options)[0], self.x * 2 + 1)
        options = ort.RunOptions()
        options.terminate = True
        cpu = ort.InferenceSession(affine(), providers=[CPU])
        with self.assertRaisesRegex(Exception, "(?i)terminat"):
            cpu.run(None, {"x": self.x}, options)
        options.terminate = False
        cpu.run(None, {"x": self.x}, options)


class SessionOptionsTest(unittest.TestCase):
    def test_properties_keep_their_values_and_reach_the_session(self):
        options = ort.SessionOptions()
        for name, value in {
            "enable_cpu_mem_arena": False,
            "enable_mem_pattern": False,
            "log_severity_level": 3,
            "log_verbosity_level": 1,
            "intra_op_num_threads": 2,
            "inter_op_num_threads": 1,
            "execution_mode": ort.ExecutionMode.ORT_PARALLEL,
            "graph_optimization_level": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
            "logid": "mine",
            "use_deterministic_compute": True,
        }.items():
            setattr(options, name, value)
            self.assertEqual(getattr(options, name), value)
        session = ort.InferenceSession(affine(), options)
        self.assertIs(session.get_session_options(), options)
        with self.assertRaises(ValueError):
            options.graph_optimization_level = 55
        with self.assertWarns(UserWarning):
            options.enable_mem_reuse = False

    def test_optimized_model_and_profile_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.optimized_model_filepath = f"{folder}/optimized.onnx"
            options.enable_profiling = True
            options.profile_file_prefix = f"{folder}/profile"
            session = ort.InferenceSession(affine(), options, providers=[CPU])
            session.run(None, {"x": np.ones((1, 1), np.float32)})
            self.assertTrue(pathlib.Path(f"{folder}/optimized.onnx").exists())
            self.assertGreater(session.get_profiling_start_time_ns(), 0)
            profile = session.end_profiling()
            self.assertTrue(profile.startswith(f"{folder}/profile"))
            self.assertTrue(any(e.get("cat") == "Node" for e in json.loads(pathlib.Path(profile).read_text())))

    def test_entries_dimensions_and_initializers(self):
        options = ort.SessionOptions()
        with self.assertRaises(RuntimeError):
            options.get_session_config_entry("a.key")
        options.add_session_config_entry("a.key", "a value")
        self.assertEqual(options.get_session_config_entry("a.key"), "a value")
        options.add_free_dimension_override_by_name("rows", 2)
        session = ort.InferenceSession(affine(), options)
        self.assertEqual(session.get_inputs()[0].shape, [2, None])
        options = ort.SessionOptions()
        options.add_initializer("two", ort.OrtValue.ortvalue_from_numpy(np.float32([10])))
        x = np.ones((1, 1), np.float32)
        self.assertEqual(ort.InferenceSession(affine(), options, providers=[CPU]).run(None, {"x": x})[0], 11)
        with self.assertWarnsRegex(UserWarning, "own values of two"):
            self.assertEqual(ort.InferenceSession(affine(), options).run(None, {"x": x})[0], 3)
        with self.assertRaisesRegex(state.Fail, "/no/such/library.so"):
            options.register_custom_ops_library("/no/such/library.so")


if __name__ == "__main__":
    unittest.main()
