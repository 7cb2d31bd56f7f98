"""Finds and loads ONNX Runtime's own library; this package is a layer over its C interface."""

from __future__ import annotations

import ctypes
import glob
import os
import pathlib

VARIABLE = "KILN_ONNXRUNTIME_LIBRARY"
_FILE = "libonnxruntime.so.1"
_LEAST_VERSION = 24  # of the C interface; 1.24 and later have it


def _places() -> list[str]:
    """Where the library may be, in the order of preference: beside the package, in the peer of a build tree, where the
    dynamic loader finds it."""
    package = pathlib.Path(__file__).resolve().parents[1]
    places = [str(package / _FILE), str(package / "capi" / _FILE)]
    for folder in package.parents[:4]:
        machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
        places += sorted(glob.glob(f"{folder}/peer/node_modules/onnxruntime-node/bin/*/linux/{machine}/{_FILE}"))
    return [p for p in places if os.path.exists(p)] + [_FILE]


def load() -> tuple[ctypes.CDLL, str]:
    """The library and what it was found as. An ImportError says what was tried and where the library comes from."""
    named = os.environ.get(VARIABLE)
    tried = []
    for place in [named] if named else _places():
        try:
            return ctypes.CDLL(place), place
        except OSError as error:
            tried.append(str(error))
    where = f"{VARIABLE} names it" if named else "looked beside the package, in the build tree and where the dynamic loader does"
    raise ImportError(
        f"ONNX Runtime's library {_FILE} cannot be loaded ({where}): {'; '.join(tried)}. Get it with `npm install --ignore-scripts "
        f"onnxruntime-node` (bin/napi-v*/linux/*/{_FILE}) or from an archive of ONNX Runtime, 1.24 or later, and set {VARIABLE} to its path."
    )


class _ApiBase(ctypes.Structure):
    _fields_ = [("api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)), ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]


def table(library: ctypes.CDLL, place: str) -> tuple[int, str]:
    """The address of the table of functions and the library's version; an ImportError where it is older than 1.24."""
    base = library.OrtGetApiBase
    base.restype = ctypes.POINTER(_ApiBase)
    found = base().contents
    version = found.version().decode()
    address = found.api(_LEAST_VERSION)
    if not address:
        raise ImportError(f"{place} is ONNX Runtime {version}: this package needs 1.{_LEAST_VERSION} or later")
    return int(address), version
