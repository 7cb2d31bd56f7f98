"""header_chains.py: reads names of headers below the working folder, one a line, and prints them in as few lines as there
can be, so that each includes those before it in its line, directly or not. A unit that includes a line from left to right
compiles each of them as it is compiled alone: what was included before is what it includes itself, and is shown to
compile alone by its own place."""

import functools
import os
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s*[<"](kiln/[^>"]+)[>"]')


@functools.cache
def direct(header):
    """The headers of kiln that this one names."""
    if not os.path.exists(header):
        return frozenset()
    with open(header, encoding="utf-8") as f:
        return frozenset(m[1] for line in f if (m := INCLUDE.match(line)))


@functools.cache
def below(header):
    """All headers of kiln that this one includes, directly or not; of two that include each other, both."""
    found, rest = set(), [header]
    while rest:
        new = direct(rest.pop()) - found
        found |= new
        rest.extend(new)
    return frozenset(found)


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


def main():
    sys.setrecursionlimit(10000)  # augmenting paths
    headers = sys.stdin.read().split()
    previous = longest_lines(headers)
    inner = set(previous.values())
    for last in sorted(set(headers) - inner, key=lambda h: -len(below(h))):
        line = [last]
        while line[0] in previous:
            line.insert(0, previous[line[0]])
        print(*line)


main()
