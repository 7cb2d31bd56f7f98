"""Compiled modules saved, loaded, copied, and called by several threads."""

import copy
import io
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile
from unittest import mock

import kiln
import kiln.torch
import torch
from torch import nn

from test_compile import Case, Counting, perceptron


def run_python(text, *args):
    done = subprocess.run([sys.executable, "-c", text, *args], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


# A process that may compile nothing.
LOADED = """
import pickle, sys, torch, kiln, kiln.torch
def refuse(*a, **k): raise AssertionError("compiled")
kiln._kiln._compile = kiln.compile = refuse
path, how = sys.argv[1:]
x, wanted, held = torch.load(path + "/data", weights_only=False)
if how == "state_dict":
    c = kiln.torch.CompiledModule()
    c.load_state_dict(torch.load(path + "/" + how, weights_only=False))
elif how == "pickle":
    c = pickle.load(open(path + "/pickle", "rb"))
else:
    c = torch.load(path + "/" + how, weights_only=False)
found = c(x)
assert all(torch.equal(a, b) for a, b in zip(found, wanted)), (found, wanted)
try:
    c(x[:1])
except kiln.ArgumentError as e:
    print(e)
"""


class SaveTest(Case):
    def test_a_new_process_compiles_nothing(self):
        m = Counting()
        f = nn.Sequential(m)
        x = torch.randn(2, 3)
        c = kiln.torch.compile(f, x, eager=["clone"], min_size=1)
        with tempfile.TemporaryDirectory() as folder:
            torch.save(c, folder + "/save")
            torch.save(c.state_dict(), folder + "/state_dict")
            with open(folder + "/pickle", "wb") as file:
                pickle.dump(c, file)
            wanted = c(x.clone())
            torch.save((x, wanted, None), folder + "/data")
            for how in ("save", "state_dict", "pickle"):
                self.assertIn("runs what it was compiled for", run_python(LOADED, folder, how))

    def test_copies(self):
        x = torch.randn(2, 3)
        c = kiln.torch.compile(Counting(), x)
        c(x.clone())
        for other in (copy.deepcopy(c), copy.copy(c)):
            self.assert_equal(other.state_dict()["inner_calls"], c.state_dict()["inner_calls"])
        other = copy.deepcopy(c)
        other(x.clone())
        self.assertEqual((c.inner_calls[0], other.inner_calls[0]), (1, 2))
        self.assertEqual(other(torch.randn(4, 3))[0].shape, (4, 3))  # it has the module

    def test_within_another_module(self):
        outer = nn.Sequential(kiln.torch.compile(perceptron(), torch.rand(2, 8)), nn.Linear(4, 1))
        held = io.BytesIO()
        torch.save(outer.state_dict(), held)
        held.seek(0)
        other = nn.Sequential(kiln.torch.CompiledModule(), nn.Linear(4, 1))
        other.load_state_dict(torch.load(held, weights_only=False))
        x = torch.rand(2, 8)
        self.assert_equal(other(x), outer(x))

    def test_damaged_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/net"
            with open(path, "wb") as file:
                file.write(b"no archive")
            with self.assertRaisesRegex(kiln.ArgumentError, r"net: an archive of torch.jit.save\(\) or torch.export.save\(\)"):
                kiln.torch.compile(path, torch.rand(2))
            for name, wanted in (("net/constants.pkl", "TorchScript that PyTorch"), ("net/archive_format", "PyTorch .*")):
                with zipfile.ZipFile(path, "w") as archive:
                    archive.writestr(name, b"\x80\x02damaged")
                with self.assertRaisesRegex(kiln.ArgumentError, "net: .*" + wanted):
                    kiln.torch.compile(path, torch.rand(2))
            torch.save({"weight": torch.rand(2)}, path)
            with self.assertRaisesRegex(kiln.ArgumentError, "found one without code"):
                kiln.torch.compile(path, torch.rand(2))
            # readers raise what they like
            loader = mock.Mock(load=mock.Mock(side_effect=AssertionError("bytes")))
            for entry, patched in (("net/constants.pkl", "jit"), ("net/archive_format", "export")):
                with zipfile.ZipFile(path, "w") as archive:
                    archive.writestr(entry, b"")
                with mock.patch.object(torch, patched, loader, create=True):
                    with self.assertRaisesRegex(kiln.ArgumentError, "that PyTorch .* loads: bytes"):
                        kiln.torch.script.load_script(path)

    @unittest.skipUnless(hasattr(torch, "export"), "PyTorch 1 has no torch.export")
    def test_exported_programs(self):
        net, x = perceptron(), torch.rand(3, 8)
        batch = torch.export.Dim("batch", min=2, max=64)
        exported = torch.export.export(net, (torch.rand(2, 8),), dynamic_shapes=({0: batch},))
        with tempfile.TemporaryDirectory() as folder:
            torch.export.save(exported, folder + "/net.pt2")
            for given in (exported, folder + "/net.pt2"):
                c = kiln.torch.compile(given, torch.rand(2, 8), dynamic_batch=True)
                self.assertEqual([p.by for p in c.report.parts], ["kiln"])
                self.assert_equal(c(x), net(x).detach(), 1e-6)

    def test_threads(self):
        m = perceptron()
        c = kiln.torch.compile(m, torch.rand(2, 8), dynamic_batch=True)
        wrong = []

        def work(seed):
            for n in range(1, 30):
                x = torch.rand(n, 8, generator=torch.Generator().manual_seed(seed * 100 + n))
                if kiln.torch.report.error_of([c(x)], [m(x).detach()]) > 1e-6:
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
