"""Attention and the blocks around it: ai.onnx's and com.microsoft's."""
from case import case, contrib, cycle, given, index, weight, x

# (batch, queries, heads, width of a head)
SIZES = [(1, 33, 4, 32), (2, 384, 12, 64)]
STEP = [(1, 128, 8, 64), (4, 1000, 32, 128)]
flat = lambda b, s, h, d: x(b, s, h * d)

contrib("Attention", lambda b, s, h, d: [flat(b, s, h, d), weight(h * d, 3 * h * d, std=(h * d) ** -0.5), weight(3 * h * d)], types="f32",
        sizes=SIZES, num_heads=lambda b, s, h, d: h)
contrib("Attention", lambda b, s, h, d: [flat(b, s, h, d), weight(h * d, 3 * h * d, std=(h * d) ** -0.5), weight(3 * h * d), cycle((b,), [s, s - 5], "i32")],
        sizes=SIZES, variant="lengths", num_heads=lambda b, s, h, d: h)
contrib("Attention", lambda b, s, h, d: [flat(b, s, h, d), weight(h * d, 3 * h * d, std=(h * d) ** -0.5), weight(3 * h * d)], sizes=SIZES, variant="causal",
        num_heads=lambda b, s, h, d: h, unidirectional=1)
contrib("MultiHeadAttention", lambda *p: [flat(*p)] * 3, types="f32 f16", sizes=SIZES, num_heads=lambda b, s, h, d: h)
contrib("MultiHeadAttention", lambda b, s, h, d: [flat(b, s, h, d), x(b, 77, h * d), x(b, 77, h * d)], sizes=[(1, 256, 4, 32), (2, 1024, 8, 40)], variant="across",
        num_heads=lambda b, s, h, d: h)
contrib("MultiHeadAttention", lambda b, s, h, d: [flat(b, s, h, d)] * 3 + [None, None, x(1, h, s, s)], sizes=SIZES, variant="bias", num_heads=lambda b, s, h, d: h)
contrib("PackedMultiHeadAttention", lambda *p: [flat(*p)] * 3, sizes=SIZES, num_heads=lambda b, s, h, d: h)


def group_query(past):
    def inputs(b, s, h, d):
        now, kv = (1 if past else s), h // 4
        k = lambda: x(b, now, kv * d)
        old = [x(b, kv, s, d), x(b, kv, s, d)] if past else [None, None]
        return [x(b, now, h * d), k(), k()] + old + [cycle((b,), [s if past else s - 1], "i32"), given(s + 1 if past else s, "i32")]
    return inputs


for past, variant, sizes in ((0, "prompt", [(1, 64, 8, 32), (1, 512, 16, 64)]), (1, "step", STEP)):
    contrib("GroupQueryAttention", group_query(past), types="f32 f16", sizes=sizes, variant=variant, outs=3, num_heads=lambda b, s, h, d: h,
            kv_num_heads=lambda b, s, h, d: h // 4)
contrib("GroupQueryAttention", lambda b, s, h, d: group_query(1)(b, s, h, d) + [weight(4096, d // 2), weight(4096, d // 2)], sizes=STEP, variant="step, rotary",
        outs=3, num_heads=lambda b, s, h, d: h, kv_num_heads=lambda b, s, h, d: h // 4, do_rotary=1)
case("Attention", lambda b, s, h, d: [x(b, h, s, d)] * 3, "f32 f16", SIZES, opset=23)
case("Attention", lambda b, s, h, d: [x(b, h, s, d)] * 3, "f32", SIZES, opset=23, variant="causal", is_causal=1)
case("Attention", lambda b, s, h, d: [x(b, h, s, d), x(b, h // 4, s, d), x(b, h // 4, s, d), x(1, 1, s, s)], "f32", SIZES, opset=23, variant="mask, grouped")
contrib("RotaryEmbedding", lambda b, s, h, d: [x(b, h, s, d), given([0]), weight(4096, d // 2), weight(4096, d // 2, std=0.5)], types="f32 f16", sizes=[(1, 33, 12, 64), (2, 512, 32, 128)])
case("RotaryEmbedding", lambda b, s, h, d: [x(b, h, s, d), weight(s, d // 2), weight(s, d // 2, std=0.5), index(b, s, below=s)], "f32", [(1, 33, 12, 64), (2, 512, 32, 128)], opset=23)
contrib("EmbedLayerNormalization", lambda b, s, h: [index(b, s, below=3000, type="i32"), index(b, s, below=2, type="i32"), weight(3000, h), weight(512, h), weight(2, h), weight(h),
                                                    weight(h), index(b, s, below=2, type="i32")], sizes=[(1, 128, 768), (8, 512, 768)], outs=2)
contrib("RelativePositionBias", lambda h, q: [weight(32, h), cycle((), [q]), cycle((), [q])], sizes=[(8, 64), (12, 512)], max_distance=128, is_bidirectional=1)
contrib("GatedRelativePositionBias", lambda b, s, h, d: [flat(b, s, h, d), weight(h * d), x(1, h, s, s), weight(d, 8), weight(8), weight(1, h, 1, 1)], sizes=SIZES,
        num_heads=lambda b, s, h, d: h)
contrib("MoE", lambda t, d, h, e: [x(t, d), x(t, e), weight(e, h, d, std=d ** -0.5), None, weight(e, d, h, std=h ** -0.5)],
        sizes=[(16, 64, 256, 4), (64, 512, 1024, 8)], k=2, normalize_routing_weights=1, activation_type="gelu", tolerance=1e-2)
contrib("LinearAttention", lambda b, s, h, d: [flat(b, s, h, d)] * 3 + [x(b, h, d, d)], sizes=[(1, 33, 4, 32), (2, 384, 8, 64)], outs=2,
        q_num_heads=lambda b, s, h, d: h, kv_num_heads=lambda b, s, h, d: h, update_rule="linear")
contrib("LinearAttention", lambda b, s, h, d: [flat(b, s, h, d), x(b, s, h * d, low=-0.1, high=0.1), flat(b, s, h, d), x(b, h, d, d), x(b, s, h, low=-0.5, high=0), x(b, s, h, low=0, high=1)],
        sizes=[(1, 1, 16, 128), (1, 512, 16, 128)], variant="gated delta", outs=2, q_num_heads=lambda b, s, h, d: h, kv_num_heads=lambda b, s, h, d: h, update_rule="gated_delta")
contrib("CausalConvWithState", lambda b, c, n: [x(b, c, n), weight(c, 1, 4), weight(c), x(b, c, 3)], sizes=[(1, 512, 200), (2, 2048, 1000)], outs=2, activation="silu")
contrib("DecoderMaskedMultiHeadAttention", lambda b, s, h, d: [x(b, 1, h * d)] * 3 + [None, None, x(b, h, s + 8, d), x(b, h, s + 8, d), given([s], "i32")],
        sizes=STEP, outs=3, num_heads=lambda b, s, h, d: h, past_present_share_buffer=1)
contrib("NGramRepeatBlock", lambda b, s, v: [index(b, s, below=50), x(b, v)], sizes=[(4, 20, 1000), (16, 200, 50257)], ngram_size=3)
contrib("Trilu", lambda *d: [x(*d)], upper=0)
contrib("CropAndResize", lambda n, c, s, r: [x(n, c, s, s), cycle((r, 4), [v for i in range(11) for v in (i / 40, i / 50, 0.5 + i / 40, 0.6 + i / 50)], "f32"),
                                             index(r, below=n, type="i32"), given([14, 14], "i32")], sizes=[(1, 32, 50, 20), (1, 256, 50, 300)])
contrib("ExpandDims", lambda *d: [x(*d), given(1, "i32")])
contrib("TransposeMatMul", lambda b, m, k, n: [x(b, m, k), x(b, n, k)], sizes=[(12, 64, 32, 64), (96, 197, 64, 197)], transB=1)
contrib("UnfoldTensor", lambda a, b: [x(a, b)], sizes=[(8, 4001), (64, 8001)], dim=1, size=16, step=4)
contrib("MaxpoolWithMask", lambda n, c, s: [x(n, c, s, s), index(n, 1, s, s, below=2, type="i32")], sizes=[(1, 32, 56), (4, 64, 128)], kernel_shape=[3, 3])
