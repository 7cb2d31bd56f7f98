"""Spectra, windows, random values, losses and texts' counts."""
from case import case, cycle, given, index, weight, x

# ONNX Runtime's spectra of 4099 floats are 1.1e-3 of the greatest value beside those in f64; kiln's are within 1e-5
for n, name, tolerance in ((0, "power of two", 1e-3), (1, "odd", 3e-3)):
    case("DFT", lambda b, k: [x(b, k, 1)], "f32", [(16, 4096 + 3 * n), (512, 4096 + 3 * n)], variant=name, opset=17, axis=1, tolerance=tolerance)
case("DFT", lambda b, k: [x(b, k, 1)], "f32", [(16, 4096), (512, 4096)], variant="one side", opset=17, axis=1, onesided=1)
case("DFT", lambda b, k: [x(b, k, 2)], "f32", [(16, 4096), (512, 4096)], variant="inverse", opset=17, axis=1, inverse=1)
case("DFT", lambda b, k: [x(b, k, 1), None, given(1)], "f64", [(16, 4096), (128, 4096)], variant="axis as input")
case("STFT", lambda b, n: [x(b, n, 1), given(160), weight(400, low=0, high=2), given(400)], "f32", [(1, 48000), (4, 480000)], variant="400 by 160", onesided=1)
case("STFT", lambda b, n: [x(b, n, 1), given(128), weight(512, low=0, high=2), given(512)], "f32", [(1, 48000), (4, 480000)], variant="512 by 128", onesided=1)
for kind in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    case(kind, lambda n: [cycle((), [n])], "f32", [(4001,), (99991,)])
case("MelWeightMatrix", lambda b: [cycle((), [b]), given(1024), given(16000), given(0.0, "f32"), given(8000.0, "f32")], "f32", [(80,), (128,)])
for kind in ("RandomNormalLike", "RandomUniformLike"):
    case(kind, lambda *d: [x(*d)], "f32", tolerance=-1)
case("RandomNormal", lambda *d: [], "f32", shape=lambda *d: list(d), tolerance=-1)
case("Bernoulli", lambda *d: [x(*d, low=0, high=1)], "f32", tolerance=-1)
case("Multinomial", lambda b, n: [x(b, n)], "f32", [(10, 1000), (16, 50257)], sample_size=10, tolerance=-1)
case("NegativeLogLikelihoodLoss", lambda n, c: [x(n, c), index(n, below=c)], "f32", [(100, 1000), (4000, 1000)])
case("SoftmaxCrossEntropyLoss", lambda n, c: [x(n, c), index(n, below=c)], "f32", [(100, 1000), (4000, 1000)])
