"""A script for Torch-MIGraphX, with kiln in that role."""

import torch
import torchvision

# [lower]
import torch_migraphx

resnet = torchvision.models.resnet18()
sample_input = torch.randn(2, 3, 64, 64)
resnet_mgx = torch_migraphx.fx.lower_to_mgx(resnet, [sample_input])
result = resnet_mgx(sample_input)
# [/lower]
assert resnet.training and result.shape == (2, 1000)
with torch.no_grad():
    wanted = resnet.eval()(sample_input)
assert torch.allclose(result, wanted, atol=1e-4 * float(wanted.abs().max()))
