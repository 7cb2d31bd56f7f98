"""A network of torchvision's, compiled: one program, for any batch, saved and loaded."""

import os
import tempfile

import torch
import torchvision

# [compile]
import kiln.torch

network = torchvision.models.mobilenet_v3_small(weights=None).eval()
image = torch.rand(1, 3, 96, 96)
fast = kiln.torch.compile(network, image, dynamic_batch=True)
scores = fast(torch.rand(8, 3, 96, 96))
# [/compile]
print(fast.report)
assert scores.shape == (8, 1000) and fast.report.programs == 1

with torch.no_grad():
    error = float((fast(image) - network(image)).abs().max() / network(image).abs().max())
print(f"error beside eager PyTorch: {error:.2g}")
assert error < 1e-4

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "fast.pt")
    # [save]
    torch.save(fast, path)
    again = torch.load(path, weights_only=False)  # holds the compiled program: nothing is compiled anew
    # [/save]
assert torch.equal(again(image), fast(image))

# [half]
half = kiln.torch.compile(network, image, precision="bf16")
print(half.report.error)  # beside eager PyTorch, of the greatest score
# [/half]
assert 0 < half.report.error < 0.1

# [script]
with tempfile.TemporaryDirectory() as folder:
    torch.jit.script(network).save(folder + "/network.pt")
    scripted = kiln.torch.compile(folder + "/network.pt", image)
# [/script]
assert torch.allclose(scripted(image), fast(image), atol=1e-5)
