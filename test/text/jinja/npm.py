"""npm.py RENDER_CASES FOLDER: the same templates as in npm's @huggingface/jinja, where both render."""

import collections
import json
import subprocess
import sys
from pathlib import Path

from chats import cases
from peer import by_kiln, compare

HERE = Path(__file__).parent
# Where the package departs from Python, whose Jinja renders as kiln does (templates.py).
DEPARTURES = {"gpt_oss": "prints true for True", "llama2": "'' equals false", "command_r": "prints lists as JSON"}


def main(program, folder):
    found = subprocess.run(["bash", HERE / "npm.sh"], capture_output=True, text=True)
    if found.returncode != 0:
        print(found.stderr)
        return 77
    all_cases = cases()
    kiln = by_kiln(program, all_cases, folder)
    done = subprocess.run(["node", HERE / "peer.mjs", found.stdout.strip(), Path(folder) / "cases.json"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    peer = json.loads(done.stdout)
    both = [i for i, (k, p) in enumerate(zip(kiln, peer, strict=True)) if "text" in k and "text" in p]
    bad = compare([all_cases[i] for i in both], [kiln[i] for i in both], [peer[i] for i in both],
                  lambda case: case["name"] in DEPARTURES)  # fmt: skip
    by_name = collections.Counter(all_cases[i]["name"] for i in both)
    print(f"{len(both)} renders of {len(by_name)} templates by both: {bad} differ", dict(by_name))
    return bad > 0 or len(both) < 2000


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
