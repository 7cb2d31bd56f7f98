"""Prints docs/python_api.md from the docstrings of the package kiln."""

import inspect
import re

import kiln
from kiln import genai


def signature(name, thing):
    try:
        return name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(thing)))  # annotations are texts
    except (TypeError, ValueError):
        return None


def first_line_of(thing):
    lines = (inspect.getdoc(thing) or "").splitlines()
    return lines[0] if lines else ""


def of_function(name, thing):
    text = inspect.getdoc(thing) or ""
    head = signature(name, thing)
    if head is None:  # a compiled function begins with its signature
        head, _, text = text.partition("\n")
        head = re.sub(r"kiln\._(kiln|genai)\.", "", head).replace(": handle", ": Any").replace(": object", ": Any")
    return head, text.strip()


def say(text):
    print(" ".join(text.split()) if "\n\n" not in text else "\n\n".join(" ".join(p.split()) for p in text.split("\n\n")))


print("# The Python package, name by name\n")
print("Made from the docstrings by `cmake/python/api_page.py`; [python.md](python.md) is the place to begin.\n")
print("## Functions\n")
for name in kiln.__all__:
    thing = getattr(kiln, name)
    if inspect.isroutine(thing):
        head, text = of_function(name, thing)
        print(f"### `{head}`\n")
        say(text)
        print()


def say_classes(module):
    for name in module.__all__:
        thing = getattr(module, name)
        if not inspect.isclass(thing):
            continue
        print(f"### {name}\n")
        say(inspect.getdoc(thing) or "")
        print()
        rows = []
        for member, value in sorted(vars(thing).items()):
            if member.startswith("_"):
                continue
            if isinstance(value, property):
                rows.append((member, inspect.getdoc(value) or ""))
            elif inspect.isroutine(value) or callable(value):
                value = getattr(value, "__func__", value)  # of a static method
                head, text = of_function(member, value)
                rows.append((head.replace("(self: " + name + ", ", "(").replace("(self: " + name + ")", "()"), text))
        for member, text in rows:
            print(f"- `{member}`" + (": " + " ".join(text.split()) if text else ""))
        if rows:
            print()


print("## Classes\n")
say_classes(kiln)
print("## Ops\n")
print("Functions of `kiln.ops`: operands are Values, numbers or arrays; attributes go by keyword.\n")
print("| op | kind | attributes |\n|---|---|---|")
for name, kind, _, attributes in kiln._kiln._op_table():
    said = ", ".join(f"`{a}`: {of}".replace("|", "\\|") for a, of, _ in attributes)
    print(f"| `{name}` | {kind} | {said} |")

print("\n## Language models\n")
say(genai.__doc__)
print("\n[genai.md](genai.md) is the place to begin.\n")
say_classes(genai)
