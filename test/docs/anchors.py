"""Links to a heading lead to one: of README.md, CHANGELOG.md, CONTRIBUTING.md and docs/, as GitHub names headings."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").glob("*.md"))


def prose(page):
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf8"))


def anchors(page):
    """A heading's words in lower case, joined by hyphens; a second one of that name ends in -1."""
    found = {}
    for heading in re.findall(r"(?m)^#+ (.*)$", prose(page)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {name if k == 0 else f"{name}-{k}" for name, last in found.items() for k in range(last + 1)}


known = {page: anchors(page) for page in PAGES}
faults = 0
for page in PAGES:
    for file, anchor in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", prose(page)):
        target = (page.parent / file).resolve() if file else page
        if target in known and anchor not in known[target]:
            print(f"{page.relative_to(ROOT)}: no heading #{anchor} in {target.relative_to(ROOT)}", file=sys.stderr)
            faults += 1
sys.exit(faults > 0)
