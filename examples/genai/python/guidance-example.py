"""Text that a JSON schema, a regular expression or a grammar of Lark allows."""

import common
import onnxruntime_genai as og

parser = common.parser_of(__doc__)
parser.add_argument("-pr", "--prompt", default="And his name was")
parser.add_argument("-t", "--type", default="json_schema", choices=["json_schema", "regex", "lark_grammar"])
parser.add_argument("-d", "--data", help="the schema, the expression or the grammar")
args = parser.parse_args()

model = og.Model(common.config_of(args))
tokenizer = og.Tokenizer(model)
# [guided]
schema = """{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
            "years": {"type": "integer", "enum": [7, 40, 70]}}, "required": ["name", "years"]}"""
params = og.GeneratorParams(model)
params.set_search_options(**{"max_length": 80, **common.search_of(args)})
params.set_guidance(args.type, args.data or schema)
generator = og.Generator(model, params)
prompt = tokenizer.encode(args.prompt)
generator.append_tokens(prompt)
while not generator.is_done():
    generator.generate_next_token()
print(tokenizer.decode(generator.get_sequence(0)[len(prompt) :]))
# [/guided]
