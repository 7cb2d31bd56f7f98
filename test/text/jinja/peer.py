"""Templates as transformers sets Jinja up for them: an immutable sandbox, blocks trimmed, its own tojson."""

import datetime
import functools
import json
import subprocess
import sys
from pathlib import Path

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment


class generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_whole"), [], [], body).set_lineno(line)

    def _whole(self, caller):
        return caller()


def raise_exception(message):
    raise TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment(may_change=False):
    kind = SandboxedEnvironment if may_change else ImmutableSandboxedEnvironment
    env = kind(trim_blocks=True, lstrip_blocks=True, extensions=[generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return env


@functools.cache
def compiled(env, text):
    return env.from_string(text)


def by_jinja(case, env):
    """{"text": ...} or {"error": ...}, as render_cases prints it."""
    try:
        return {"text": compiled(env, case["template"]).render(**case["variables"])}
    except Exception as e:  # whatever Python raises inside a template
        return {"error": f"{type(e).__name__}: {e}"}


def by_kiln(program, cases, folder):
    file = Path(folder) / "cases.json"
    file.write_text(json.dumps(cases))
    done = subprocess.run([program, str(file)], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"render_cases ended with {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def compare(cases, kiln, peer, may_differ=lambda case: False):
    """How many cases differ; prints the first ones."""
    bad = 0
    for case, ours, theirs in zip(cases, kiln, peer, strict=True):
        same = ours.get("text") == theirs.get("text") if "text" in theirs else "error" in ours
        if same or may_differ(case):
            continue
        bad += 1
        if bad <= 25:
            print(f"--- {case['template']!r}\n  kiln: {ours}\n  peer: {theirs}")
    return bad
