"""The pages of the ONNX Runtime provider in English and Chinese: the same headings, the same code, tables that are the
plugin's own, and code that runs. With --fix the tables and Chinese code are rewritten."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/interface/onnxruntime/python"))
import help  # noqa: E402  skips where there is no ONNX Runtime

import onnxruntime_ep_kiln  # noqa: E402
import two_pages  # noqa: E402

FIX = "--fix" in sys.argv
PAGES = {"en": ROOT / "docs/onnxruntime.md", "zh": ROOT / "docs/onnxruntime.zh.md"}
# Of the documentation that users of ONNX Runtime's MIGraphX provider know.
HEADINGS = [
    "## Install", "## Build from source", "## Requirements", "## Docker Support", "## Usage", "### C/C++", "### Python",
    "## Session Variables", "## Environment Variables", "## Samples", "### Python",
]  # fmt: skip
TABLE_HEADS = {
    "en": ["variable", "option", "values"],
    "zh": ["环境变量 (variable)", "选项 (option)", "取值 (values)"],
}
OPTION_HEADS = {
    "en": ["option", "also", "environment", "default", "meaning"],
    "zh": ["选项 (option)", "别名 (also)", "环境变量 (environment)", "默认值 (default)", "含义 (meaning)"],
}
# What an option takes, by its kind.
CHINESE_KINDS = {"flag": "1 或 0", "count": "非负整数", "path": "路径", "text": "文本", "address": "地址"}
faults = []


def check(condition, text):
    if not condition:
        faults.append(text)


def plugin_table():
    plugin = ctypes.CDLL(onnxruntime_ep_kiln.get_library_path())
    plugin.kiln_onnxruntime_option_table.restype = ctypes.c_char_p
    return json.loads(plugin.kiln_onnxruntime_option_table())


def between(text, mark):
    begin = text.index(f"<!-- {mark} -->\n") + len(f"<!-- {mark} -->\n")
    return begin, text.index(f"<!-- end of {mark} -->", begin)


def row(cells):
    return "|" + "".join(f" {c} |" if c else " |" for c in cells) + "\n"


def ticks(names):
    return ", ".join(f"`{n}`" for n in names)


def values_of(option, language):
    if language == "en":
        return "1 or 0" if option["kind"] == "flag" else option["expected"]
    if option["kind"] == "choice":
        return option["expected"].removeprefix("one of ").replace(", ", "、") + " 之一"
    return CHINESE_KINDS[option["kind"]]


def environment_table(language):
    head = TABLE_HEADS[language]
    out = row(head) + "|" + "---|" * len(head) + "\n"
    for option in TABLE:
        for variable in option["environment"]:
            out += row([f"`{variable}`", f"`{option['name']}`", values_of(option, language)])
    return out


def chinese_options(text):
    """The options' table with the meanings that the page has."""
    meanings = dict(re.findall(r"(?m)^\| `(\w+)` (?:\|.*)?\| ([^|\n]+) \|$", text))
    out = row(OPTION_HEADS["zh"]) + "|---|---|---|---|---|\n"
    for option in TABLE:
        default = {"1": "true", "0": "false"}[option["default"]] if option["kind"] == "flag" else option["default"]
        meaning = meanings.get(option["name"], "")
        check(re.search("[\u4e00-\u9fff]", meaning), f"{PAGES['zh'].name}: no meaning of {option['name']}: {option['help']}")
        out += row([f"`{option['name']}`", ticks(option["also"]), ticks(option["environment"]), default, meaning])
    return out


def replace(language, mark, wanted):
    text = PAGES[language].read_text()
    begin, end = between(text, mark)
    if text[begin:end] != wanted:
        if FIX:
            PAGES[language].write_text(text[:begin] + wanted + text[end:])
        else:
            check(False, f"{PAGES[language].name}: the table of {mark} is not the plugin's (--fix)")


def command_of(language, code):
    """What runs a block in this build tree; None where that is not here."""
    build = os.environ.get("KILN_BUILD", str(ROOT / "build/release"))
    code = code.replace("<path to model>", help.DIGITS)
    if language == "python":
        providers = "('MIGraphXExecutionProvider', 'KilnExecutionProvider')"
        return [sys.executable, "-c", f"{code}\nassert session.get_providers()[0] in {providers}\n"]
    if language == "sh":
        code = code.replace("$PWD/build/release", build).replace("python3 ", f"{sys.executable} ")
        return ["bash", "-euc", code]
    if language == "js":
        package = f"{build}/lib/onnxruntime/node"
        if not shutil.which("node") or not os.path.exists(f"{package}/kiln_onnxruntime.node"):
            print("SKIPPED: there is no node, or kiln's package for it is not built")
            return None
        return ["node", "-e", code.replace("./build/release/lib/onnxruntime/node", package)]
    check(False, f"nobody runs {language}")
    return None


def run(language, code, number):
    command = command_of(language, code)
    if not command:
        return
    environment = dict(os.environ, KILN_ONNXRUNTIME_LIBRARY=help.found[0], NODE_PATH=help.found[0].split("/onnxruntime-node/")[0])
    with tempfile.TemporaryDirectory() as folder:
        where = ROOT if language == "sh" else folder
        done = subprocess.run(command, env=environment, cwd=where, capture_output=True, text=True)
        check(done.returncode == 0, f"block {number} ({language}): {done.stdout}{done.stderr}")


def run_blocks():
    ran = 0
    for number, (marks, language, code) in enumerate(two_pages.BLOCK.findall(PAGES["en"].read_text()), 1):
        if "<!-- run -->" in marks:
            run(language, code, number)
            ran += 1
    check(ran >= 4, f"{ran} blocks are marked to be run")


TABLE = plugin_table()
for page in PAGES:
    replace(page, "environment", environment_table(page))
replace("zh", "options", chinese_options(PAGES["zh"].read_text()))
faults += two_pages.faults_of(PAGES["en"], PAGES["zh"], HEADINGS, FIX)
if not FIX:
    run_blocks()
for fault in faults:
    print(fault, file=sys.stderr)
sys.exit(bool(faults))
