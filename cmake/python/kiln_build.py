"""Builds the wheel of the package kiln with CMake (PEP 517): the module, its instruction-set levels and every library
that it needs beside libc and libstdc++. `-C build-dir=FOLDER` names the build tree, `-C define=NAME=VALUE` a variable."""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of every Linux, by PEP 600.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6", "libgcc_s.so.1"}


def version() -> str:
    text = (ROOT / "include/kiln/version.hpp").read_text()
    return ".".join(re.search(rf"KILN_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def tag() -> str:
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    libc, number = platform.libc_ver()
    machine = platform.machine()
    where = f"manylinux_{number.replace('.', '_')}_{machine}" if libc == "glibc" else f"linux_{machine}"
    return f"{python}-{python}-{where}"


def metadata() -> str:
    about = [
        "Metadata-Version: 2.1",
        "Name: kiln",
        f"Version: {version()}",
        "Summary: A deep-learning compiler that is a C++20 library",
        "License: Apache-2.0",
        "Requires-Python: >=3.9",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(about) + "\n\n" + (ROOT / "README.md").read_text()


def build_tree(settings: dict[str, object]) -> pathlib.Path:
    folder = ROOT / str(settings.get("build-dir", "build/wheel"))
    given = settings.get("define", [])
    defines = [given] if isinstance(given, str) else list(given)
    off = [f"-DKILN_{what}=OFF" for what in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH", "BUILD_DRIVER", "C")]
    if not (folder / "CMakeCache.txt").exists():
        release = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", *off]
    else:
        release = []
    python = f"-DPython3_EXECUTABLE={sys.executable}" if release else None
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), *release, *([python] if python else [])]
    subprocess.run(configure + [f"-D{d}" for d in defines] + ["-DKILN_PYTHON=ON"], check=True)
    subprocess.run(["cmake", "--build", str(folder), "--target", "kiln_python_package"], check=True)
    return folder


def needed(library: pathlib.Path) -> dict[str, str]:
    """Libraries that the loader finds for this one, by name, those of the system left out."""
    listed = subprocess.run(["ldd", str(library)], check=True, capture_output=True, text=True).stdout
    found = {}
    for name, where in re.findall(r"^\s*(\S+) => (\S+)", listed, re.MULTILINE):
        if name not in SYSTEM:
            if not where.startswith("/"):
                raise RuntimeError(f"{library.name} needs {name}, which is not found")
            found[name] = where
    return found


def stage(settings: dict[str, object], to: pathlib.Path) -> None:
    folder = build_tree(settings)
    subprocess.run(["cmake", "--install", str(folder), "--component", "python", "--prefix", str(to)], check=True)
    package = to / "kiln"
    for module in package.glob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
        for name, where in needed(module).items():
            if not (package / name).exists():
                shutil.copy(where, package / name)
    if not (package / "_kiln.pyi").exists():
        raise RuntimeError("the package lacks its stubs")


def record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"kiln-{version()}-{tag()}.whl"
    info = f"kiln-{version()}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: kiln_build\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    with tempfile.TemporaryDirectory() as temporary:
        staged = pathlib.Path(temporary)
        stage(dict(config_settings or {}), staged)
        files = {str(f.relative_to(staged)): f.read_bytes() for f in sorted(staged.rglob("*")) if f.is_file()}
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/RECORD"] = ("".join(record_line(*f) for f in files.items()) + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in path else 0o644) << 16
            out.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    base = f"kiln-{version()}"
    with tempfile.TemporaryDirectory() as temporary:
        about = pathlib.Path(temporary) / "PKG-INFO"
        about.write_text(metadata())
        with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as out:
            for part in ("CMakeLists.txt", "LICENSE", "README.md", "cmake", "include", "pyproject.toml"):
                out.add(ROOT / part, f"{base}/{part}", filter=lambda t: None if "__pycache__" in t.name else t)
            out.add(about, f"{base}/PKG-INFO")
    return base + ".tar.gz"


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []
