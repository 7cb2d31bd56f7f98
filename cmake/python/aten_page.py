"""Prints docs/pytorch_operators.md from kiln.torch's table."""

import sys

from kiln.torch.aten import table

families = {}
for name, entry in table.items():
    families.setdefault(entry.lower.__module__, []).append((name.removeprefix("aten::"), entry))

print("# PyTorch's operators that become kiln's\n")
print("Made from the table by `cmake/python/aten_page.py`. Overloads are of the namespace `aten` unless another one is named; those of")
print("one line become the same ops of kiln.")
print("An operator that mutates has the form without the underscore: tracing writes it so. Operators with ? are left to PyTorch")
print("where an argument asks for what kiln has no form of, and `kiln.torch.lower.supports(node)` says why: training, a result")
print("whose shape the data decide, a symbolic extent that is resized. Of operators with a number, so many results are made.")
print("Tensors are strided and real, of f64, f32, f16, bf16, i64, i32, i16, i8, u8 or bool; types promote as PyTorch's do.\n")
for module in sorted(families):
    title = (sys.modules[module].__doc__ or "").splitlines()[0].rstrip(".")
    print(f"## {title}\n")
    lines = {}
    for name, entry in families[module]:
        mark = ("?" if entry.check else "") + (f" ({entry.makes})" if entry.makes is not None else "")
        lines.setdefault(id(entry.lower), []).append(f"`{name}`{mark}")
    for names in sorted(lines.values()):
        print("- " + ", ".join(sorted(names)))
    print()
print(f"{len(table)} overloads.")
