"""The families of language models, by what sets them apart (builders of ONNX Runtime GenAI name them)."""
import numpy as np

from decoder import Decoder
from states import GatedDeltaNet, GatedDeltaNetOfExperts, ShortConvolutions

HALF = np.float16
PHI = dict(type="phi", norms="layer", biases=("qkv", "out", "mlp", "head"), mlp="gelu", parallel=True, heads=2, depth=32, rotary=0.5)
PHI3 = dict(type="phi3", mlp="packed_silu", kv=4)
GEMMA2 = dict(type="gemma2", mlp="gelu_gate", post_norms=True, embed_scale=5.66, softcap=6.0, final_softcap=20.0, window=5,
              local_layers=(1,), attention_scale=0.3)
MOE = dict(mlp="moe", experts=4, chosen=2, three=True)
GPTOSS = dict(type="gptoss", mlp="quantized_moe", biases=("qkv", "out", "mlp"), sinks=True, window=6, local_layers=(0,))
QWEN35 = dict(type="qwen3_5_text", layers=3, head_norm=True, rotary=0.25, depth=16, attention="grouped", axes=3)
STATES = dict(conv=("past_key_values.%d.conv_state", "present.%d.conv_state"),
              recurrent=("past_key_values.%d.recurrent_state", "present.%d.recurrent_state"), full=(2,))

FAMILIES = {
    "llama": dict(),
    "llama_separate": dict(attention="grouped"),
    "llama_multi_head": dict(attention="multi_head"),
    "llama_multi_head_all": dict(attention="multi_head", kv=4),
    "llama_ops": dict(attention="ops", fused_norm=False),
    "llama_half": dict(dtype=HALF),
    "llama_multi_head_half": dict(attention="multi_head", dtype=HALF),
    "llama_ops_half": dict(attention="ops", fused_norm=False, dtype=HALF),
    "llama_int4": dict(bits=4, hidden=64, inner=64),
    "llama_int4_zeros": dict(bits=4, hidden=64, inner=64, attention="grouped", zero_points=True),
    "llama_int4_half": dict(bits=4, hidden=64, inner=64, dtype=HALF),
    "llama_bare_config": dict(attention="ops", config={"model": {}}),
    "gpt2": dict(type="gpt2", attention="gpt2", norms="layer", biases=("mlp",), mlp="gelu", kv=4),
    "gpt2_before_17": dict(type="gpt2", attention="gpt2", norms="layer", biases=("mlp",), mlp="gelu", kv=4, opset=14),
    "phi": dict(PHI),
    "phi_separate": dict(PHI, attention="grouped"),
    "phi_half": dict(PHI, dtype=HALF, attention="grouped"),
    "phi3": dict(PHI3),
    "phi3_long": dict(PHI3, layers=1, heads=2, kv=2, long_rope=4096, context=4224, prompt=(4081, 4100), steps=32),
    "phi3_window": dict(PHI3, window=6),
    "phi3_int4": dict(PHI3, bits=4, hidden=64, inner=64, attention="multi_head"),
    "phi3small": dict(type="phi3small", attention="sparse", mlp="gelu_gate", norms="layer", biases=("qkv", "out", "mlp"), heads=4,
                      kv=2, depth=16, prompt=(40, 70), context=256),
    "phimoe": dict(MOE, type="phimoe", norms="layer", biases=("qkv", "out", "head")),
    "qwen2": dict(type="qwen2", biases=("qkv",), theta=1e6),
    "qwen2_multi_head": dict(type="qwen2", biases=("qkv",), attention="multi_head"),
    "qwen3": dict(type="qwen3", head_norm=True),
    "qwen3_ops": dict(type="qwen3", head_norm=True, attention="ops"),
    "gemma": dict(type="gemma", mlp="gelu_gate", embed_scale=5.66, kv=1),
    "gemma2": dict(GEMMA2),
    "gemma2_ops": dict(GEMMA2, attention="ops"),
    "gemma2_half": dict(GEMMA2, dtype=HALF),
    "gemma3_text": dict(type="gemma3_text", mlp="gelu_gate", post_norms=True, head_norm=True, embed_scale=5.66, window=5, layers=3,
                        local_layers=(0, 1), theta=1e6, extra=dict(local_theta=10000.0)),
    "gemma4_text": dict(type="gemma4_text", mlp="gelu_gate", post_norms=True, head_norm=True, embed_scale=5.66, window=5, layers=3,
                        local_layers=(0, 1), theta=1e6, by_layer=((16, 2), (16, 2), (32, 1)), extra=dict(local_theta=10000.0)),
    "mistral": dict(type="mistral", window=8),
    "mistral_ops": dict(type="mistral", window=8, attention="ops"),
    "mixtral": dict(MOE, type="mistral"),
    "mixtral_turns": dict(MOE, type="mistral", three=False),
    "mixtral_int4": dict(MOE, type="mistral", mlp="quantized_moe"),
    "gptoss": dict(GPTOSS),
    "gptoss_half": dict(GPTOSS, dtype=HALF),
    "smooth": dict(type="decoder", smooth=True),
    "granite": dict(type="granite", embed_scale=3.0, residual_scale=0.4, logit_scale=0.5, attention_scale=0.2),
    "granitemoehybrid": dict(type="granitemoehybrid", mlp="packed_silu", embed_scale=3.0, residual_scale=0.4, logit_scale=0.5,
                             attention_scale=0.2),
    "granitemoehybrid_nope": dict(type="granitemoehybrid", mlp="packed_silu", embed_scale=3.0, residual_scale=0.4, logit_scale=0.5,
                                  attention_scale=0.2, rope=False, attention="ops"),
    "nemotron": dict(type="nemotron", norms="layer", mlp="relu2", rotary=0.5, depth=32),
    "olmo": dict(type="olmo", norms="plain", kv=4),
    "smollm3": dict(type="smollm3", layers=3, no_rope=(1,)),
    "chatglm": dict(type="chatglm", interleaved=True, rotary=0.5, depth=32, biases=("qkv",), mlp="packed_silu"),
    "chatglm_separate": dict(type="chatglm", interleaved=True, rotary=0.5, depth=16, biases=("qkv",), attention="grouped"),
    "internlm2": dict(type="internlm2", theta=1e6),
    "ernie4_5": dict(type="ernie4_5", interleaved=True),
    "hunyuan": dict(type="hunyuandensev1", head_norm=True, attention="grouped"),
    "lfm2": dict(cls=ShortConvolutions, type="lfm2", layers=3, head_norm=True,
                 extra=dict(conv=("past_conv.%d", "present_conv.%d"), full=(1,),
                            decoder=dict(layer_types=["conv", "full_attention", "conv"], conv_cache_size=2))),
    "qwen3_5": dict(QWEN35, cls=GatedDeltaNet, extra=dict(STATES, gates=True)),
    "qwen3_5_half": dict(QWEN35, cls=GatedDeltaNet, dtype=HALF, extra=dict(STATES, gates=True)),
    "qwen3_5_apart": dict(QWEN35, cls=GatedDeltaNet, axes=1, extra=dict(
        conv=("past.%d.conv", "present.%d.conv"), recurrent=("past.%d.recurrent", "present.%d.recurrent"), full=(0,), gates=False,
        decoder=dict(inputs=dict(past_conv_names="past.%d.conv", past_recurrent_names="past.%d.recurrent"),
                     outputs=dict(present_conv_names="present.%d.conv", present_recurrent_names="present.%d.recurrent")))),
    "qwen3_5_moe": dict(QWEN35, cls=GatedDeltaNetOfExperts, type="qwen3_5_moe_text", mlp="moe", experts=4, chosen=2, three=True,
                        extra=dict(STATES, gates=True)),
}

# Seeds that keep the best token ahead; make.py goes on from here if they no longer do.
SEEDS = dict(
    llama_multi_head_all=39, llama_int4=12, llama_int4_zeros=2, llama_int4_half=19, gpt2=11, gpt2_before_17=11, phi=2,
    phi_separate=15, phi_half=18, phi3=2, phi3_long=2, phi3_window=5, phi3_int4=12, phi3small=2, phimoe=17, qwen2=15, qwen3=8,
    qwen3_ops=8, gemma=2, gemma2=2, gemma2_ops=8, gemma2_half=2, gemma4_text=3, mistral=6, mistral_ops=10, mixtral=9,
    mixtral_turns=9, mixtral_int4=52, gptoss=2, gptoss_half=21, smooth=24, nemotron=19, olmo=13, smollm3=3, chatglm=10,
    chatglm_separate=5, internlm2=4, ernie4_5=10, hunyuan=8, lfm2=27, qwen3_5=110, qwen3_5_half=141, qwen3_5_apart=89,
    granitemoehybrid=2, granitemoehybrid_nope=5, qwen3_5_moe=11)


def make(name, seed, **more):
    options = dict(FAMILIES[name], **more)
    return options.pop("cls", Decoder)(name, seed, **options).build()
