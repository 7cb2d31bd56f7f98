"""Continues prompts side by side."""

import time

import common
import onnxruntime_genai as og

parser = common.parser_of(__doc__)
parser.add_argument("-pr", "--prompts", nargs="+", default=["In the beginning", "And the LORD said unto Moses"])
args = parser.parse_args()

# [batch]
config = common.config_of(args)
config.overlay(f'{{"search": {{"batch_size": {len(args.prompts)}}}}}')
model = og.Model(config)
tokenizer = og.Tokenizer(model)
params = og.GeneratorParams(model)
params.set_search_options(**{"max_length": 40, **common.search_of(args)})

generator = og.Generator(model, params)
generator.append_tokens(tokenizer.encode_batch(args.prompts))
start = time.perf_counter()
while not generator.is_done():
    generator.generate_next_token()
seconds = time.perf_counter() - start

made = [generator.get_sequence(i) for i in range(len(args.prompts))]
for text in tokenizer.decode_batch(made):
    print(text, end="\n\n")
# [/batch]
if args.verbose:
    count = sum(map(len, made))
    print(f"Tokens: {count}, time: {seconds:.2f} s, tokens per second: {count / seconds:.2f}")
