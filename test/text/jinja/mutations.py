"""mutations.py RENDER_CASES FOLDER [COUNT]: damaged templates and values of the wrong type end in a text or an error."""

import random
import sys

import chats
import snippets
from peer import by_kiln

PIECES = ["{{", "}}", "{%", "%}", "{#", "#}", "-", "'", '"', "(", ")", "[", "]", "|", ".", "\\", "\u00e9", "\U0001f642", "if", "for", "in", "endif",
          "endfor", "loop", "not", "is", "range(9)", "9" * 25, "**", "//", "%", "*", "~", "::-1", "messages", "none", "macro m()", "m()", "\0", "\r"]  # fmt: skip


def mutated(rng, text):
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randint(1, 12) :]
        elif kind == 2:
            end = min(len(text), at + rng.randint(1, 60))
            text = text[:end] + text[at:end] + text[end:]
        else:
            text = text[:at]
    return text


HOSTILE = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "{% set x = 'a' * 1000000000000 %}", "{% set x = [0] * 100000000000 %}",
    "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
    "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x == [ns.x] }}", "{% set l = [] %}{{ l.append(l) }}{{ l }}", "{% set d = {} %}{{ d.update(d=d) }}{{ d }}{{ d == d }}",
    "{% set ns = namespace(x=[], y=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}", "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}", "{{ ('a' * 100000).join('b' * 1000000) | length }}", "{{ ('\\n' * 1000000) | indent(10000) }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "{{ " + "[" * 5000 + "]" * 5000 + " }}", "{{ " + "-" * 5000 + "1 }}", "{{ " + "not " * 5000 + "1 }}", "{{ 1" + " + 1" * 50000 + " }}", "{{ a" + ".a" * 5000 + " }}", "{{ a" + "|upper" * 50000 + " }}",
    "{% if 1 %}" * 5000, "{{ 10 ** 1000 }}", "{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}", "{{ (-9223372036854775807 - 1) // -1 }}", "{{ (-9223372036854775807 - 1) % -1 }}", "{{ [1, 2, 3][::-9223372036854775807 - 1] }}", "{{ 'abc'[9223372036854775807:-9223372036854775807] }}",
    "{{ 'x'.center(1000000000000) }}", "{{ '%1000000000d' % 1 }}", "{{ '{:1000000000}'.format(1) }}", "{{ '%*d' % (10000000000, 1) }}", "{{ '1' | int(base=99) }}", "{{ 1.5 | round(1000000) }}", "{{ 1.5 | round(-1000000) }}", "{{ 'abc' | indent(1000000000000) }}", "{{ [1] | batch(100000000000, 0) | list }}", "{{ [1] | slice(1000000000000) | list }}", "{{ 'a' | center(100000000000) }}", "{{ 1e999 | int }}", "{{ ('a' * 100000).replace('', 'b' * 100000) }}", "{{ strftime_now('%Y' * 100000) }}", "{{ 'a'.join('b' * 1000000) | length }}",
]  # fmt: skip


def main(program, folder, count="500"):
    rng = random.Random(28)
    whole = chats.cases()
    parts = snippets.cases()
    cases = [{"template": t, "variables": snippets.VARIABLES} for t in HOSTILE]
    for _ in range(int(count)):
        case = dict(rng.choice(whole if rng.random() < 0.3 else parts))
        case["template"] = mutated(rng, case["template"])
        cases.append(case)
    results = by_kiln(program, cases, folder)
    errors = [r["error"] for r in results if "error" in r]
    # a NUL in a message ends what() early
    spoken = [r["error"] for c, r in zip(cases, results, strict=True) if "error" in r and "\0" not in c["template"]]
    bare = [e for e in spoken if "column" not in e and "limit" not in e]
    unbounded = [t for t, r in zip(HOSTILE[:8], results[:8], strict=True) if "limit exceeded" not in r.get("error", "")]
    print(f"{len(cases)} templates, {len(errors)} errors, {len(bare)} without a place {bare[:3]}, {len(unbounded)} without a limit {unbounded}")
    return len(bare) > 0 or len(unbounded) > 0 or not 0.1 < len(errors) / len(cases) < 0.95


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
