"""Texts that kiln's guides allow."""

import json
import subprocess
import sys
from pathlib import Path


def draw(program, tokenizer, cases, folder):
    file = Path(folder) / "cases.json"
    file.write_text(json.dumps(cases))
    done = subprocess.run([program, str(file), tokenizer], capture_output=True, text=True, timeout=250)
    if done.returncode != 0:
        sys.exit(f"sample_guides ended with {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def draw_finished(program, tokenizer, cases, folder):
    """For each case its finished texts, how many had no end, and the error that it gave, or None."""
    for texts in draw(program, tokenizer, cases, folder):
        if "error" in texts:
            yield [], 0, texts["error"]
        else:
            yield [t for t in texts if t is not None], texts.count(None), None
