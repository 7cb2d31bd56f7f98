"""Pages in English and Chinese: the same headings, in the order that is asked for, the same points and the same code."""

import re

# What stands before a block of code (comments), its language, its lines.
BLOCK = re.compile(r"(?m)((?:^<!-- [^\n]* -->\n)*)^```(\S*)\n(.*?)^```$", re.DOTALL)


def headings(text):
    return [line for line in re.sub(r"(?ms)^```.*?^```$", "", text).splitlines() if line.startswith("#")]


def faults_of(english, chinese, wanted, fix):
    """What is wrong with two pages, given as paths; with `fix`, the Chinese page's code is rewritten."""
    faults = []

    def check(condition, text):
        if not condition:
            faults.append(text)

    texts = english.read_text(), chinese.read_text()
    lines = [headings(t) for t in texts]
    rest = iter(lines[0])
    for heading in wanted:
        check(any(h == heading for h in rest), f"{english.name}: no {heading} in its place")
    check(len(lines[0]) == len(lines[1]), f"{chinese.name}: the pages have other headings")
    for en, zh in zip(*lines):
        level, name = en.split(" ", 1)
        check(zh.startswith(level + " ") and (zh.endswith(f"({name})") or zh == en), f"'{zh}' is not the heading '{en}'")
    points = [len(re.findall(r"(?m)^- ", t)) for t in texts]
    check(points[0] == points[1], f"{points[0]} points in English, {points[1]} in Chinese: one page fell behind")
    rows = [len(re.findall(r"(?m)^\|", t)) for t in texts]
    check(rows[0] == rows[1], f"{rows[0]} rows of tables in English, {rows[1]} in Chinese: one page fell behind")
    blocks = [[m.groups() for m in BLOCK.finditer(t)] for t in texts]
    if fix and len(blocks[0]) == len(blocks[1]):
        parts = iter(blocks[0])
        chinese.write_text(BLOCK.sub(lambda m: "{}```{}\n{}```".format(*next(parts)), texts[1]))
    else:
        check(blocks[0] == blocks[1], f"{chinese.name}: the pages' code differs (--fix)")
    return faults
