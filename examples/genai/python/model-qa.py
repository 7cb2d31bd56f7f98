"""Answers questions, each for itself."""

import time

import common
import onnxruntime_genai as og

parser = common.parser_of(__doc__)
parser.add_argument("-s", "--system_prompt", default="", help="the system's message")
parser.add_argument("-up", "--user_prompt", help="one question; without it they are asked for")
args = parser.parse_args()

model = og.Model(common.config_of(args))
tokenizer = og.Tokenizer(model)


def answer(question: str) -> None:
    # [stream]
    params = og.GeneratorParams(model)
    params.set_search_options(**common.search_of(args))
    generator = og.Generator(model, params)
    stream = tokenizer.create_stream()
    prompt = tokenizer.encode(common.prompt_of(tokenizer, question, args.system_prompt))
    start = time.perf_counter()
    generator.append_tokens(prompt)
    first = time.perf_counter() - start
    try:
        while not generator.is_done():
            generator.generate_next_token()
            print(stream.decode(generator.get_next_tokens()[0]), end="", flush=True)
    except KeyboardInterrupt:
        print(" (interrupted)")
    # [/stream]
    print("\n")
    if args.verbose:
        made = generator.token_count() - len(prompt)
        seconds = time.perf_counter() - start - first
        print(f"Prompt: {len(prompt)} tokens in {first:.3f} s; answer: {made} tokens, {made / seconds:.2f} a second")


if args.user_prompt is not None:
    answer(args.user_prompt)
while args.user_prompt is None:
    try:
        text = input("Prompt (quit() ends): ")
    except EOFError:
        break
    if text == "quit()":
        break
    if text:
        answer(text)
