"""Text from a model whose folder names the provider MIGraphX: kiln runs it, on the CPU or on an AMD GPU."""

import sys

import onnxruntime_genai as og

if len(sys.argv) < 2:
    sys.exit("usage: migraphx_example.py MODEL_FOLDER [PROMPT]")
path, prompt = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "In the beginning"

# [flow]
model = og.Model(path)
tokenizer = og.Tokenizer(model)
params = og.GeneratorParams(model)
params.set_search_options(max_length=48)

generator = og.Generator(model, params)
generator.append_tokens(tokenizer.encode(prompt))
stream = tokenizer.create_stream()
while not generator.is_done():
    generator.generate_next_token()
    print(stream.decode(generator.get_next_tokens()[0]), end="", flush=True)
print()
# [/flow]
print(f"type {model.type}, device {model.device_type}, target {model.target}")
for remark in model.remarks:
    print(remark)
