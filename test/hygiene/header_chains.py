"""header_chains.py: reads names of headers below the working folder, one a line, and prints them in as few lines as there
can be, so that each includes those before it in its line, directly or not. A unit that includes a line from left to right
compiles each of them as it is compiled alone: what was included before is what it includes itself, and is shown to
compile alone by its own place.

By the same argument a header that the first one of a line includes, directly or not, may come before the line. A few such
headers serve many lines and can be precompiled: the one of a line is printed before it, behind a plus sign."""

import functools
import os
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s*[<"](kiln/[^>"]+)[>"]')
OTHER = re.compile(r"\s*#\s*include\s*<(?!kiln/)([^>]+)>")


@functools.cache
def lines_of(header):
    if not os.path.exists(header):
        return ()
    with open(header, encoding="utf-8") as f:
        return tuple(f)


@functools.cache
def direct(header):
    """The headers of kiln that this one names."""
    return frozenset(m[1] for line in lines_of(header) if (m := INCLUDE.match(line)))


@functools.cache
def below(header):
    """All headers of kiln that this one includes, directly or not; of two that include each other, both."""
    found, rest = set(), [header]
    while rest:
        new = direct(rest.pop()) - found
        found |= new
        rest.extend(new)
    return frozenset(found)


@functools.cache
def size(header):
    """About how long it takes to read: other libraries' headers are far longer than kiln's."""
    all_of_it = below(header) | {header}
    others = {m[1] for h in all_of_it for line in lines_of(h) if (m := OTHER.match(line))}
    return len(all_of_it) + 10 * len(others)


def kind(header):
    """What the flags depend on (lone_headers.sh): headers of two kinds share no line."""
    return re.search(r"avx512|avx2|python|eigen\.hpp|\.h$", header) and header


def longest_lines(headers):
    """As many pairs of a header and the next one as there can be, by augmenting paths (Kuhn)."""
    after = {h: sorted((o for o in headers if h in below(o) and kind(h) == kind(o)), key=lambda o: len(below(o))) for h in headers}
    previous = {}

    def place(header, seen):
        for o in after[header]:
            if o not in seen:
                seen.add(o)
                if o not in previous or place(previous[o], seen):
                    previous[o] = header
                    return True
        return False

    for h in sorted(headers, key=lambda h: -len(below(h))):
        place(h, set())
    return previous


def shared_beginnings(lines, most=10):
    """The header that comes before each line, or none: as many different ones as `most`, chosen one after another so that
    they spare most headers."""
    able = {line[0]: below(line[0]) for line in lines if not kind(line[0])}
    candidates = sorted(set().union(*able.values()))
    spared = {first: 0 for first in able}
    chosen = []
    for _ in range(most):
        gain = {c: sum(max(0, size(c) - spared[f]) for f, all in able.items() if c in all) for c in candidates}
        best = max(candidates, key=gain.get, default=None)
        if best is None or gain[best] <= 4 * size(best):  # to precompile it takes some of what it spares
            break
        chosen.append(best)
        for first, all in able.items():
            if best in all:
                spared[first] = max(spared[first], size(best))
    return {f: max((c for c in chosen if c in all), key=size, default=None) for f, all in able.items()}


def main():
    sys.setrecursionlimit(10000)  # augmenting paths
    headers = sys.stdin.read().split()
    previous = longest_lines(headers)
    inner = set(previous.values())
    lines = []
    for last in sorted(set(headers) - inner, key=lambda h: -len(below(h))):
        line = [last]
        while line[0] in previous:
            line.insert(0, previous[line[0]])
        lines.append(line)
    beginnings = shared_beginnings(lines)
    for line in lines:
        begin = beginnings.get(line[0])
        print(*(["+" + begin] if begin else []), *line)


main()
