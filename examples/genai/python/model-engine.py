"""Continues prompts side by side, each as its own request: they come and go while others run."""

import common
import onnxruntime_genai as og

parser = common.parser_of(__doc__)
parser.add_argument("-pr", "--prompts", nargs="+", default=["In the beginning", "And the LORD said unto Moses"])
args = parser.parse_args()

model = og.Model(common.config_of(args))
tokenizer = og.Tokenizer(model)
# [requests]
engine = og.Engine(model)
texts = {}
for prompt in args.prompts:
    params = og.GeneratorParams(model)
    params.set_search_options(**{"max_length": 40, **common.search_of(args)})
    request = og.Request(params)
    request.add_tokens(tokenizer.encode(prompt))
    request.set_opaque_data((prompt, tokenizer.create_stream()))
    texts[prompt] = prompt
    engine.add_request(request)

while request := engine.step():
    prompt, stream = request.get_opaque_data()
    while request.has_unseen_tokens():
        texts[prompt] += stream.decode(request.get_unseen_token())
    if request.is_done():
        engine.remove_request(request)
        print(texts[prompt], end="\n\n")
# [/requests]
