"""Conversations for templates, and every template with each of them."""

import itertools
from pathlib import Path

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather", "description": "Weather of a place.\nIn words.",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "City, e.g. \"Köln\""}, "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "days": {"type": ["integer", "null"]}, "at": {"type": "array", "items": {"type": "number"}},
            "more": {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]}}, "required": ["place"]},
    },
}  # fmt: skip
PLAIN = {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def call(name, arguments, number="abc123456"):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


CHATS = [
    [],
    [user("Hi")],
    [user("  Hi there \n")],
    [system("Be brief."), user("Hi")],
    [system(""), user("Hi")],
    [system("Answer /no_think please."), user("1 < 2 & 3?")],
    [user("Hi"), assistant("Hello!"), user("Bye")],
    [system("S"), user("a"), assistant("b"), user("c"), assistant("d")],
    [user("日本語 🙂 ñ \"q\" 'x' \\n \u200b"), assistant("<|im_end|> {{ x }}"), user("ß\r\nÜ")],
    [user("")],
    [user("a"), user("b")],
    [assistant("starts")],
    [user("q"), assistant("<think>\nlong\n</think>\n\nshort"), user("again")],
    [user("q"), assistant("<think>\nlong\n</think>\n\nshort")],
    [user("q"), assistant("answer", reasoning_content="because")],
    [user("w?"), assistant("", tool_calls=[call("get_weather", {"place": "Köln", "unit": "C"})]),
     {"role": "tool", "content": "12 °C", "tool_call_id": "abc123456", "name": "get_weather"}, assistant("12 degrees"), user("ok")],
    [system("T"), user("w?"), assistant(None, tool_calls=[call("now", {}, "xyz")])],
    [user("w?"), assistant("", tool_calls=[call("now", {}), call("get_weather", {"place": "A", "days": 2})]),
     {"role": "tool", "content": "1", "tool_call_id": "abc123456"}, {"role": "tool", "content": "{\"t\": 2.5}", "tool_call_id": "abc123457"}],
    [user([{"type": "text", "text": " look "}, {"type": "image"}, {"type": "text", "text": "here"}])],
    [system([{"type": "text", "text": "sys"}]), user([{"type": "text", "text": "t"}])],
    [{"role": "developer", "content": "D"}, user("x")],
    [{"role": "system", "content": "with tools", "tools": "[{\"name\": \"f\"}]"}, user("x")],
    [{"role": "user"}],
]  # fmt: skip
TOOLS = [None, [WEATHER], [WEATHER, PLAIN]]
EXTRAS = [{}, {"enable_thinking": False, "tools_in_user_message": False, "builtin_tools": ["code_interpreter", "now"]}]


def cases():
    folder = Path(__file__).parent / "templates"
    out = []
    for file in sorted(folder.glob("*.jinja")):
        for chat, tools, prompt, extra in itertools.product(CHATS, TOOLS, [True, False], EXTRAS):
            variables = {"messages": chat, "tools": tools, "documents": None, "add_generation_prompt": prompt, "bos_token": "<s>",
                         "eos_token": "</s>", "date_string": "24 Nov 2026", **extra}  # fmt: skip
            out.append({"template": file.read_text(), "variables": variables, "name": file.stem})
    return out
