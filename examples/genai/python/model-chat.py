"""Talks with a model: every turn goes on from the caches of the turns before."""

import json

import common
import onnxruntime_genai as og

parser = common.parser_of(__doc__)
parser.add_argument("-s", "--system_prompt", default="You are a helpful assistant.", help="the system's message")
parser.add_argument("-r", "--rewind", action="store_true", help="forget each turn when it is over")
args = parser.parse_args()

model = og.Model(common.config_of(args))
tokenizer = og.Tokenizer(model)
params = og.GeneratorParams(model)
params.set_search_options(**common.search_of(args))

# [turns]
generator = og.Generator(model, params)
messages = [{"role": "system", "content": args.system_prompt}]
system = tokenizer.encode(tokenizer.apply_chat_template(json.dumps(messages), add_generation_prompt=False))
generator.append_tokens(system)


def turn(text: str) -> None:
    user = json.dumps([{"role": "user", "content": text}])
    generator.append_tokens(tokenizer.encode(tokenizer.apply_chat_template(user, add_generation_prompt=True)))
    stream = tokenizer.create_stream()
    while not generator.is_done():
        generator.generate_next_token()
        print(stream.decode(generator.get_next_tokens()[0]), end="", flush=True)
    print("\n")
    if args.rewind:
        generator.rewind_to(len(system))


# [/turns]
while True:
    try:
        text = input("Prompt (quit() ends): ")
    except EOFError:
        break
    if text == "quit()":
        break
    if text:
        turn(text)
