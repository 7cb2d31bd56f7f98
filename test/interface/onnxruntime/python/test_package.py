"""The package is what it says: its table of functions is that of abi.hpp, it finds its libraries or says how to get them."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from help import ROOT, found
import numpy as np
import onnxruntime as ort
from onnxruntime.capi import _pybind_state, _slots, onnxruntime_pybind11_state
import onnxruntime_ep_kiln

FOLDER = pathlib.Path(ort.__file__).parent
# The names that `onnxruntime` has in 1.24 and later, and those of its compiled module beside them.
SURFACE = """AdapterFormat ExecutionMode ExecutionOrder GraphOptimizationLevel IOBinding InferenceSession LoraAdapter ModelCompiler
    ModelMetadata NodeArg OrtAllocatorType OrtArenaCfg OrtCompileApiFlags OrtDevice OrtDeviceMemoryType OrtEpAssignedNode
    OrtEpAssignedSubgraph OrtEpDevice OrtExecutionProviderDevicePolicy OrtExternalInitializerInfo OrtHardwareDevice
    OrtHardwareDeviceType OrtMemType OrtMemoryInfo OrtMemoryInfoDeviceType OrtSparseFormat OrtSyncStream OrtValue RunOptions
    SessionIOBinding SessionOptions SparseTensor copy_tensors create_and_register_allocator create_and_register_allocator_v2
    cuda_version disable_telemetry_events enable_telemetry_events get_all_providers get_available_providers get_build_info
    get_device get_ep_devices get_version_string has_collective_ops package_name preload_dlls print_debug_info
    register_execution_provider_library set_default_logger_severity set_default_logger_verbosity set_global_thread_pool_sizes
    set_seed unregister_execution_provider_library version"""
ERRORS = """EPFail EngineError Fail InvalidArgument InvalidGraph InvalidProtobuf ModelLoadCanceled ModelLoaded
    ModelRequiresCompilation NoModel NoSuchFile NotFound NotImplemented RuntimeException"""


def python(code, **variables):
    """A new process of Python with other variables; one that is None is not set."""
    given = {**os.environ, **variables}
    own = {k: v for k, v in given.items() if v is not None}
    return subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, text=True, cwd="/")


class PackageTest(unittest.TestCase):
    def test_surface(self):
        for name in SURFACE.split():
            self.assertTrue(hasattr(ort, name), name)
        for name in [*ERRORS.split(), "OrtValue", "SessionIOBinding", "copy_tensors", "get_ep_devices"]:
            self.assertTrue(hasattr(onnxruntime_pybind11_state, name), name)
            self.assertIs(getattr(_pybind_state, name), getattr(onnxruntime_pybind11_state, name))
        self.assertIn("kiln in role of onnxruntime", ort.__doc__)
        self.assertRegex(ort.__version__, r"^1\.\d+\.\d+$")
        self.assertEqual(ort.__version__, ort.get_version_string())
        self.assertIn("ORT Build Info", ort.get_build_info())
        self.assertTrue((FOLDER / "py.typed").exists())
        ort.disable_telemetry_events()
        ort.enable_telemetry_events()
        ort.set_default_logger_verbosity(0)
        with self.assertWarns(UserWarning):
            ort.set_seed(1)
        with self.assertWarnsRegex(UserWarning, "intra_op_num_threads"):
            ort.set_global_thread_pool_sizes(1, 1)
        self.assertEqual((ort.version, ort.package_name, ort.cuda_version), (ort.__version__, "onnxruntime", ""))
        self.assertIs(ort.has_collective_ops(), False)
        everything = {}
        exec("from onnxruntime import *", everything)
        self.assertIs(everything["InferenceSession"], ort.InferenceSession)
        self.assertNotIn("NotImplemented", everything)  # Python's own stays

    def test_names_without_an_implementation_say_so(self):
        for use in (
            ort.SparseTensor,
            lambda: ort.SparseTensor.sparse_coo_from_numpy([2], [1], [0], None),
            lambda: ort.SparseTensor.sparse_csr_from_numpy([2, 2], [1], [0], [0, 1, 1], None),
            ort.AdapterFormat,
            lambda: ort.AdapterFormat.read_adapter("adapter.onnx_adapter"),
            ort.OrtSyncStream,
        ):
            with self.assertRaisesRegex(NotImplementedError, "kiln's package onnxruntime has the name alone"):
                use()

    def test_debug_information(self):
        text = python("import onnxruntime as o; o.print_debug_info()").stdout
        for part in (ort.__version__, "MIGraphXExecutionProvider", os.path.abspath(found[0]), "ORT Build Info"):
            self.assertIn(part, text)

    def test_allocators_of_the_environment(self):
        memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
        arena = ort.OrtArenaCfg({"max_mem": 1 << 30, "arena_extend_strategy": 0})
        ort.create_and_register_allocator_v2("CPUExecutionProvider", memory, {"unused": "1"}, arena)
        ort.create_and_register_allocator(memory, ort.OrtArenaCfg(0, -1, -1, -1))  # in place of the one before
        with self.assertRaisesRegex(Exception, "NoSuchProvider"):
            ort.create_and_register_allocator_v2("NoSuchProvider", memory, {}, None)
        with self.assertRaisesRegex(ValueError, "no setting most: expected one of max_mem"):
            ort.OrtArenaCfg({"most": 1})

    def test_the_backend(self):
        import help as helper
        import onnxruntime.backend as backend

        class Proto:
            def SerializeToString(self):  # noqa: N802, as in ModelProto
                return pathlib.Path(helper.DIGITS).read_bytes()

        x = np.random.default_rng(0).random((2, 1, 8, 8), dtype=np.float32)
        expected = ort.InferenceSession(helper.DIGITS).run(None, {"image": x})[0]
        session = ort.InferenceSession(helper.DIGITS)
        for model in (Proto(), Proto().SerializeToString(), helper.DIGITS, session, backend.prepare(helper.DIGITS, "CPU")):
            ready = backend.prepare(model, device="CPU", graph_optimization_level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
            for inputs in (x, [x], (x,), {"image": x}):
                np.testing.assert_allclose(ready.run(inputs, logid="mine")[0], expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(backend.run(model, [x])[0], expected, rtol=1e-5, atol=1e-6)
        kept = backend.prepare(Proto(), intra_op_num_threads=3)._session.get_session_options()
        self.assertEqual(kept.intra_op_num_threads, 3)
        self.assertEqual(ready._session.get_providers()[0], helper.MIGRAPHX)
        self.assertTrue(backend.supports_device("CPU") and backend.is_compatible(Proto()))
        self.assertFalse(backend.supports_device("TPU"))
        with self.assertRaisesRegex(RuntimeError, "'TPU', got"):
            backend.prepare(Proto(), "TPU")
        with self.assertRaisesRegex(TypeError, "found int"):
            backend.prepare(7)
        with self.assertRaisesRegex(ValueError, r"1 inputs \(image\): found 2"):
            ready.run([x, x])
        with self.assertRaisesRegex(NotImplementedError, "run_model"):
            backend.OnnxRuntimeBackend.run_node(None, [])

    def test_the_logger_is_set(self):
        import help as helper

        code = f"import onnxruntime as o\no.set_default_logger_severity(LEVEL)\no.InferenceSession({helper.DIGITS!r})"
        loud = python(code.replace("LEVEL", "0"))
        quiet = python(code.replace("LEVEL", "3"))
        self.assertIn("onnxruntime", loud.stderr)
        self.assertEqual(quiet.stderr, "")

    def test_a_folder_of_its_own(self):
        self.assertEqual({p.name for p in FOLDER.parent.iterdir()}, {"onnxruntime", "onnxruntime_ep_kiln"})

    def test_the_table_is_that_of_abi_hpp(self):
        text = (ROOT / "include/kiln/interface/onnxruntime/abi.hpp").read_text()
        main = text[text.index("namespace api {") : text.index("}  // namespace api")]
        declared = {}
        for index, signature, name in re.findall(r"slot<(\d+),(.*?)>\s*(\w+);", main, re.DOTALL):
            parameters = re.sub(r"^[^(]*\(|\)\s*$", "", signature.strip(), flags=re.DOTALL).strip()
            declared[int(index)] = (name, parameters.count(",") + 1 if parameters else 0)
        slots = {s.index: s for s in _slots.SLOTS}
        self.assertEqual(len(slots), len(_slots.SLOTS))
        self.assertEqual([s.index for s in _slots.SLOTS], sorted(slots))
        shared = set(slots) & set(declared)
        self.assertGreater(len(shared), 25)
        for index in shared:
            self.assertEqual(len(slots[index].parameters), declared[index][1], (declared[index][0], slots[index].name))
        by_name = {name: index for index, (name, _) in declared.items()}
        for slot in slots.values():
            self.assertEqual(by_name.get(slot.name, slot.index), slot.index, slot.name)

    def test_the_plugin_is_found_or_named(self):
        path = onnxruntime_ep_kiln.get_library_path()
        self.assertTrue(os.path.isabs(path) and os.path.exists(path))
        self.assertEqual(onnxruntime_ep_kiln.get_ep_name(), "KilnExecutionProvider")
        self.assertIn("MIGraphXExecutionProvider", onnxruntime_ep_kiln.get_ep_names())
        show = "import onnxruntime_ep_kiln as p; print(p.get_library_path())"
        self.assertEqual(python(show, KILN_ONNXRUNTIME_EP=path).stdout.strip(), path)
        wrong = python(show, KILN_ONNXRUNTIME_EP="/no/such.so")
        self.assertIn("KILN_ONNXRUNTIME_EP names /no/such.so", wrong.stderr)
        without = python("import onnxruntime as o; print(o.get_available_providers())", KILN_ONNXRUNTIME_EP="/no/such.so")
        self.assertEqual(without.stdout.strip(), "['CPUExecutionProvider']")
        self.assertIn("RuntimeWarning: KILN_ONNXRUNTIME_EP names /no/such.so", without.stderr)

    def test_the_library_is_found_or_named(self):
        version = "import onnxruntime; print(onnxruntime.__version__)"
        self.assertEqual(python(version, KILN_ONNXRUNTIME_LIBRARY=found[0]).stdout.strip(), ort.__version__)
        wrong = python(version, KILN_ONNXRUNTIME_LIBRARY="/no/such.so")
        self.assertRegex(wrong.stderr, "ImportError: .*KILN_ONNXRUNTIME_LIBRARY names it.*npm install")
        with tempfile.TemporaryDirectory() as folder:  # a copy beside which there is no library
            subprocess.run(["cp", "-r", str(FOLDER), str(FOLDER.parent / "onnxruntime_ep_kiln"), folder], check=True)
            setting = {"KILN_ONNXRUNTIME_LIBRARY": None, "PYTHONPATH": folder, "KILN_ONNXRUNTIME_EP": None}
            self.assertRegex(python(version, **setting).stderr, "ImportError: .*where the dynamic loader does.*npm install")
            os.symlink(found[0], f"{folder}/onnxruntime/libonnxruntime.so.1")
            beside = python(version, **setting)
            self.assertEqual(beside.stdout.strip(), ort.__version__)
            self.assertIn("kiln's plugin for ONNX Runtime is at none of", beside.stderr)

    def test_an_installation_finds_the_plugin(self):
        build = os.environ.get("KILN_BUILD")
        if not build:
            self.skipTest("KILN_BUILD names no build tree")
        with tempfile.TemporaryDirectory() as folder:
            command = ["cmake", "--install", build, "--component", "python_onnxruntime", "--prefix", folder]
            subprocess.run(command, check=True, capture_output=True)
            for file in pathlib.Path(onnxruntime_ep_kiln.get_library_path()).parent.iterdir():
                os.symlink(file, f"{folder}/lib/{file.name}")
            packages = {"PYTHONPATH": f"{folder}/lib/kiln/python_onnxruntime", "KILN_ONNXRUNTIME_LIBRARY": found[0]}
            done = python("import onnxruntime as o; print(o.__file__, o.get_available_providers()[0])", **packages)
            self.assertEqual(done.stdout.split()[1:], ["MIGraphXExecutionProvider"], done.stderr)
            self.assertTrue(done.stdout.startswith(folder))
            self.assertTrue((pathlib.Path(packages["PYTHONPATH"]) / "onnxruntime/py.typed").exists())

    def test_a_process_ends_well_with_sessions_alive(self):
        import help as helper

        code = f"import onnxruntime as o, numpy as n; s=o.InferenceSession({helper.DIGITS!r}); b=s.io_binding();"
        code += "r=s.run(None,{'image':n.ones((1,1,8,8),'float32')}); print(r[0].shape)"
        done = python(code)
        self.assertEqual((done.returncode, done.stdout.strip(), done.stderr), (0, "(1, 10)", ""))


if __name__ == "__main__":
    unittest.main()
