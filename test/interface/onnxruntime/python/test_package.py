"""The package is what it says: its table of functions is that of abi.hpp, it finds its libraries or says how to get them."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from help import ROOT, found
import onnxruntime as ort
from onnxruntime.capi import _pybind_state, _slots, onnxruntime_pybind11_state
import onnxruntime_ep_kiln

FOLDER = pathlib.Path(ort.__file__).parent
# What programs of ONNX Runtime's package use.
SURFACE = """InferenceSession IOBinding OrtValue OrtDevice OrtMemoryInfo OrtAllocatorType OrtArenaCfg SessionOptions RunOptions
    NodeArg ModelMetadata GraphOptimizationLevel ExecutionMode ExecutionOrder LoraAdapter OrtEpDevice OrtHardwareDevice
    OrtHardwareDeviceType OrtExecutionProviderDevicePolicy get_available_providers get_all_providers get_device
    get_version_string get_build_info set_default_logger_severity set_default_logger_verbosity set_seed
    enable_telemetry_events disable_telemetry_events register_execution_provider_library
    unregister_execution_provider_library get_ep_devices create_and_register_allocator
    ModelCompiler OrtCompileApiFlags preload_dlls"""


def python(code, **variables):
    """A new process of Python with other variables; one that is None is not set."""
    given = {**os.environ, **variables}
    own = {k: v for k, v in given.items() if v is not None}
    return subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, text=True, cwd="/")


class PackageTest(unittest.TestCase):
    def test_surface(self):
        for name in SURFACE.split():
            self.assertTrue(hasattr(ort, name), name)
        self.assertEqual(set(ort.__all__), {n for n in ort.__all__ if hasattr(ort, n)})
        for name in ("Fail", "InvalidArgument", "NoSuchFile", "InvalidProtobuf", "InvalidGraph", "EPFail", "OrtValue"):
            self.assertTrue(hasattr(onnxruntime_pybind11_state, name))
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
