"""regexes.py SAMPLE_GUIDES TOKENIZER FOLDER: what guides of 200 random regular expressions allow, Python's re matches."""

import random
import re
import sys
import unicodedata

from draw import draw_finished

rng = random.Random(28)
ATOMS = ["a", "b", "c", "0", " ", "é", "日", "😀", "-", r"\.", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", ".", r"\n", r"\x41", r"\u00df", r"\\", r"\[", '"']
ITEMS = ["a-c", "x-z", "0-9", "à-ü", "一-龠", "_", "-", ".", r"\d", r"\s", r"\w", r"\W", r"\]", r"\\", "(", "$", "^", "*", r"\n", r"\t-\r", "😀-😎"]


def item_class():
    items = rng.sample(ITEMS, rng.randint(1, 4))
    items.sort(key=lambda i: i == "-")  # last, where it is no range
    if items[0] == "^":
        items = items[1:] + items[:1] if len(items) > 1 and items[1] != "-" else ["a", "^"]
    return "[" + rng.choice(["", "", "^"]) + "".join(items) + "]"


def expression(depth):
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(ATOMS) if rng.random() < 0.7 else item_class()
    if kind < 0.6:
        return "".join(expression(depth - 1) for _ in range(rng.randint(1, 4)))
    if kind < 0.8:
        inner = "|".join(expression(depth - 1) for _ in range(rng.randint(1, 3)))
        return rng.choice(["(", "(?:"]) + inner + ("|" if rng.random() < 0.1 else "") + ")"
    low = rng.randint(0, 3)
    count = rng.choice(["*", "+", "?", "{%d}" % low, "{%d,}" % low, "{%d,%d}" % (low, low + rng.randint(0, 3)), "*?", "+?"])
    return "(?:" + expression(depth - 1) + ")" + count


patterns = []
while len(patterns) < 200:
    p = expression(4)
    patterns.append("^" + p + "$" if rng.random() < 0.1 and "|" not in p else p)
cases = [{"regex": p, "count": 10} for p in patterns]
bad = drawn = open_ends = newer = 0
for pattern, (texts, endless, fault) in zip(patterns, draw_finished(sys.argv[1], sys.argv[2], cases, sys.argv[3]), strict=True):
    if fault:
        print(f"{pattern!r}: {fault}")
        bad += 1
    drawn += len(texts)
    open_ends += endless
    for text in texts:
        if re.fullmatch(pattern, text):
            continue
        if any(unicodedata.category(c) == "Cn" for c in text):  # of a later Unicode than Python's
            newer += 1
            continue
        bad += 1
        print(f"{pattern!r} does not match {text!r}")
print(f"{len(patterns)} expressions, {drawn} texts match but for {bad} and {newer} of a later Unicode; {open_ends} had no end")
sys.exit(bad != 0 or drawn < 1800 or newer > 20)
