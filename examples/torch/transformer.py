"""A transformer of PyTorch's, and one whose middle PyTorch keeps."""

import torch
from torch import nn

import kiln.torch

torch.manual_seed(0)
model = nn.Transformer(d_model=64, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=128).eval()
source, target = torch.rand(10, 1, 64), torch.rand(7, 1, 64)
mask = nn.Transformer.generate_square_subsequent_mask(7)
fast = kiln.torch.compile(model, (source, target), {"tgt_mask": mask})
with torch.no_grad():
    wanted = model(source, target, tgt_mask=mask)
found = fast(source, target, tgt_mask=mask)
assert torch.allclose(found, wanted, atol=1e-4) and fast.report.programs == 1


# [parts]
class Mixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = (x * 2 + 1).relu().softmax(-1)
        triangle = torch.linalg.qr(scaled)[1]  # kiln has no form of it
        return triangle.abs().sum(-1).sqrt()


mixed = kiln.torch.compile(Mixed(), torch.rand(8, 8))
print(mixed.report)
# [/parts]
assert [part.by for part in mixed.report.parts] == ["kiln", "torch", "kiln"]
