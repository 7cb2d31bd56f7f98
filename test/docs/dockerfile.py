"""cmake/docker/Dockerfile without Docker: what it copies exists and is all that a build needs, its commands are shell that
parses, its packages are those of cmake/setup.sh and those that the built files need. Arguments: the build tree."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1])
FILE = ROOT / "cmake/docker/Dockerfile"
faults = []


def check(condition, text):
    if not condition:
        faults.append(text)


def instructions():
    """Words in capitals and what follows, with continued lines joined."""
    text = re.sub(r"(?m)^\s*#.*\n", "", FILE.read_text()).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


ALL = instructions()
stages = [argument.split() for word, argument in ALL if word == "FROM"]
check([s[0] for s in stages] == ["debian:12"] * len(stages) and len(stages) > 1, f"stages of debian:12: found {stages}")
check(ALL[-1] == ["ENTRYPOINT", '["kiln"]'], f"the last line is the entry point kiln: found {ALL[-1]}")
known = "FROM RUN COPY WORKDIR ENV ENTRYPOINT".split()
check(all(word in known for word, _ in ALL), f"instructions: expected {known}, found {sorted({w for w, _ in ALL})}")

# What it copies from here is here, and not ignored.
ignored = FILE.with_name(FILE.name + ".dockerignore").read_text().split()
copied = [argument.split() for word, argument in ALL if word == "COPY" and not argument.startswith("--from")]
for *sources, to in copied:
    for source in sources:
        check((ROOT / source).exists(), f"COPY {source}: there is no such file")
        check(source.split("/")[0] not in ignored, f"COPY {source}: it is ignored")

# Every command parses; what bash is given, too.
runs = [argument for word, argument in ALL if word == "RUN"]
for run in runs:
    scripts = [run]
    words = shlex.split(run)
    if words[:2] == ["bash", "-c"]:
        scripts.append(words[2])
    for script in scripts:
        done = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True)
        check(done.returncode == 0, f"RUN {script}: {done.stderr}")
check(not any(re.search(r"\b(curl|wget|pip|npm|git)\b", r) for r in runs), "a command reaches for more than Debian's packages")

# The build's packages are those of test/run.sh.
setup = "source cmake/setup.sh && install_missing $build_packages"
check(any(setup in r for r in runs), f"no RUN has `{setup}`")
check("install_missing $build_packages" in (ROOT / "test/run.sh").read_text(), "test/run.sh installs other packages")

# What is copied is enough: it configures, and every file that a target reads is there or made.
with tempfile.TemporaryDirectory() as folder:
    for *sources, to in copied:
        for source in sources:
            target = pathlib.Path(folder) / (source if to.endswith("/") else to)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, target, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / source, target)
    options = re.findall(r"-D\w+=\w+", " ".join(runs))
    done = subprocess.run(["cmake", "--preset", "release", *options], cwd=folder, capture_output=True, text=True)
    check(done.returncode == 0, f"cmake: {done.stderr}")
    if done.returncode == 0:
        ninja = subprocess.run(["ninja", "-n", "-C", f"{folder}/build/release"], capture_output=True, text=True)
        check(ninja.returncode == 0, f"ninja: {ninja.stdout[-500:]}")
        targets = output("ninja", "-C", f"{folder}/build/release", "-t", "targets", "all")
        for target in ("bin/kiln", "lib/libkiln_onnxruntime_ep.so", "kiln_python_package", "kiln_python_onnxruntime_package", "kiln_python_torch_migraphx"):
            check(re.search(rf"^{re.escape(target)}:", targets, re.MULTILINE), f"the build does not make {target}")

# The packages of the last stage are those that the built files' libraries come from, given what these depend on.
listed = set(re.search(r"apt-get install [^&]*", runs[-1])[0].split()[2:]) - {"-y", "-qq", "--no-install-recommends"}


def with_dependencies(packages):
    out, new = set(), set(packages)
    while new:
        out |= new
        text = output("dpkg-query", "-W", "-f=${Pre-Depends}, ${Depends}\n", *new)
        new = {d.split("|")[0].split("(")[0].split(":")[0].strip() for d in re.split(r"[,\n]", text)} - out - {""}
    return out


essential = {p for p, yes in (l.split() for l in output("dpkg-query", "-W", "-f=${Package} ${Essential}\n").splitlines()) if yes == "yes"}
there = with_dependencies(listed | essential | {"apt"})  # debian:12 has these
built = [p for pattern in ("bin/kiln", "lib/*.so*", "lib/migraphx/*.so*", "lib/onnxruntime/*.so*", "lib/onnxruntime/node/*.node", "python*/*/*.so") for p in BUILD.glob(pattern)]
check(built, f"nothing is built in {BUILD}")
needed = {}
for file in built:
    for library in re.findall(r"=> (/\S+)", output("ldd", str(file))):
        needed.setdefault(os.path.realpath(library), file.name)
for library, file in needed.items():
    if library.startswith(str(BUILD.resolve())):
        continue
    other = library.removeprefix("/usr") if library.startswith("/usr/") else f"/usr{library}"  # dpkg knows one of them
    package = (output("dpkg", "-S", library) or output("dpkg", "-S", other)).split(":")[0]
    check(package in there, f"{file} needs {library} of package {package or 'none'}, which the last stage lacks")

for fault in sorted(set(faults)):
    print(f"cmake/docker/Dockerfile: {fault}", file=sys.stderr)
sys.exit(bool(faults))
