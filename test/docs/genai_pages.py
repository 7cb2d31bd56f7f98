"""The guide of language models in English and Chinese: the same headings and code, tables that are those of the code, and
code that runs. With --fix the Chinese code is rewritten."""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import onnxruntime_genai as og
import two_pages

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIX = "--fix" in sys.argv
PAGES = [ROOT / "docs/genai.md", ROOT / "docs/genai.zh.md"]
# Of the documentation that users of GenAI's MIGraphX provider know.
HEADINGS = [
    "## Overview", "## Prerequisites", "## Building", "## Build Options", "## Using CMake Directly", "## Configuration",
    "## Common Provider Options", "## Python Example", "## C and C++ Example",
    "## Troubleshooting", "## Performance Tuning", "## Supported Models", "## Known Limitations", "## Resources",
]  # fmt: skip
MODEL = str(ROOT / "examples/models/scripture")
BEFORE = f"import onnxruntime_genai as og\npath, prompt = {MODEL!r}, 'In the beginning'\n"
faults = two_pages.faults_of(*PAGES, HEADINGS, FIX)


def run(*command):
    build = os.environ.get("KILN_BUILD", str(ROOT / "build/release"))
    environment = dict(os.environ, PYTHON=sys.executable)
    words = [w.replace("$PWD/build/release", build).replace("python3 ", f"{sys.executable} ") for w in command]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        faults.append(f"{words[-1]}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_blocks(text):
    """Blocks that are marked, and the documented flow as it stands; each must make the known text."""
    known = json.loads((ROOT / "examples/models/scripture/golden.json").read_text())[0]["text"]
    ran = 0
    for marks, language, code in two_pages.BLOCK.findall(text):
        if language == "json":
            json.loads(code)
        elif "migraphx_example.py [flow]" in marks:
            out = run(sys.executable, "-c", BEFORE + code)
            if known[len("In the beginning") :][:60] not in out:
                faults.append(f"the documented flow printed {out!r}")
            ran += 1
        elif "<!-- run -->" in marks:
            run("bash", "-euc", code)
            ran += 1
    if ran < 4:
        faults.append(f"{ran} blocks are marked to be run")


def check_tables(text):
    """Search options and their defaults are those of the code; provider options are known to it."""
    config = og.Config(MODEL)
    config.overlay('{"search": {"top_p": 0.0, "max_length": 0}}')
    params = og.GeneratorParams(og.Model(config))
    found = {**params.get_search_options(), **params.get_speculative_options()}
    part = text[text.index("| search option |") : text.index("## C and C++ Example")]
    for names, defaults in re.findall(r"(?m)^\| (`[^|]*`) \| (`[^|]*`) \|", part):
        for name, default in zip(re.findall(r"`([^`]*)`", names), re.findall(r"`([^`]*)`", defaults), strict=True):
            if found.get(name) != ast.literal_eval(default):
                faults.append(f"{PAGES[0].name}: {name} is {found.get(name)}, not {default}")
    part = text[text.index("## Common Provider Options") : text.index("## Python Example")]
    for name, default in re.findall(r"(?m)^\| `(\w+)` \| (?:`(\w*)` )?\|", part):
        config = og.Config(MODEL)
        config.set_provider_option("MIGraphX", name, default)
        og.Model(config)


english = PAGES[0].read_text()
check_tables(english)
if not FIX:
    run_blocks(english)
for fault in faults:
    print(fault, file=sys.stderr)
sys.exit(bool(faults))
