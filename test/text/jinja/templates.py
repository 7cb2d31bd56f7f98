"""templates.py RENDER_CASES FOLDER: the templates of the model families render byte for byte as in python3-jinja2."""

import collections
import sys

from chats import cases
from peer import by_jinja, by_kiln, compare, environment


def main(program, folder):
    env = environment()
    all_cases = cases()
    kiln = by_kiln(program, all_cases, folder)
    peer = [by_jinja(c, env) for c in all_cases]
    bad = compare(all_cases, kiln, peer)
    rendered = collections.Counter(c["name"] for c, p in zip(all_cases, peer, strict=True) if "text" in p)
    print(f"{len(all_cases)} renders of {len(rendered)} templates, {sum(rendered.values())} of them without error: {bad} differ")
    # a template whose renders are all errors would test nothing
    return bad > 0 or min(rendered.values()) < 20 or len(rendered) != len({c["name"] for c in all_cases})


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
