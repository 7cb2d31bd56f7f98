"""grammars.py SAMPLE_GUIDES TOKENIZER FOLDER: texts that guides of Lark grammars allow are what parsers of their own, or
Python's, take."""

import ast
import json
import re
import sys

from draw import draw_finished

CALCULATION = r"""
start: sum
?sum: product | sum "+" product | sum "-" product
?product: atom | product "*" atom
?atom: INT | "-" atom | "(" sum ")"
INT: "0" | /[1-9][0-9]{0,8}/
%ignore /[ \t]/
"""
JSON = r"""
start: value
?value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: "\"" (/[^"\\\x00-\x1f]/ | "\\" /["\\\/bfnrt]/)* "\""
NUMBER: "-"? ("0" | /[1-9][0-9]*/) ("." /[0-9]+/)? (/e/i /[+-]?[0-9]{1,2}/)?
%ignore " "
"""
LINES = r"""
start: line+
line: CNAME "=" (ESCAPED_STRING | SIGNED_INT) NEWLINE
%import common (CNAME, SIGNED_INT)
%import common.NEWLINE
ESCAPED_STRING: /"[^"\n\\]{0,20}"/
"""
BALANCED = """
start: pair+
pair: "(" pair* ")" | "[" pair* "]"
"""
CALLS = """
start: call (";" call)*
call: NAME %json {"type": "object", "properties": {"n": {"type": "integer", "minimum": -3, "maximum": 40}},
                  "required": ["n"], "additionalProperties": false}
NAME: /[a-z]{1,6}/
"""


def calculates(text):
    tree = ast.parse(text.strip(), mode="eval")
    allowed = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.USub)
    return all(isinstance(n, allowed) for n in ast.walk(tree))


def is_json(text):
    json.loads(text)
    return True


def is_lines(text):
    line = r'[A-Za-z_][A-Za-z0-9_]*=("[^"\n\\]{0,20}"|[+-]?[0-9]+)(\r?\n)+'
    return re.fullmatch(f"({line})+", text) is not None


def is_balanced(text):
    while "()" in text or "[]" in text:
        text = text.replace("()", "").replace("[]", "")
    return text == ""


def is_calls(text):
    for call in text.split(";"):
        name, body = re.fullmatch(r"([a-z]{1,6})(.*)", call, re.DOTALL).groups()
        value = json.loads(body)
        if not (name and list(value) == ["n"] and type(value["n"]) is int and -3 <= value["n"] <= 40):
            return False
    return True


def main():
    judged = [(CALCULATION, calculates), (JSON, is_json), (LINES, is_lines), (BALANCED, is_balanced), (CALLS, is_calls)]
    cases = [{"lark": g, "count": 40} for g, _ in judged]
    bad = drawn = 0
    for (grammar, holds), (texts, endless, refused) in zip(judged, draw_finished(sys.argv[1], sys.argv[2], cases, sys.argv[3]), strict=True):
        print(f"{holds.__name__}: {len(texts)} texts, {endless} had no end")
        if refused:
            print(f"{grammar}: {refused}")
            bad += 1
        drawn += len(texts)
        for text in texts:
            try:
                fault = None if holds(text) else "is not valid"
            except (ValueError, SyntaxError, AttributeError, RecursionError) as e:
                fault = str(e)
            if fault:
                bad += 1
                print(f"  {text!r}: {fault}")
    return bad != 0 or drawn < 100


if __name__ == "__main__":
    sys.exit(main())
