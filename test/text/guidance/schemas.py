"""schemas.py SAMPLE_GUIDES TOKENIZER FOLDER: what guides of 200 random JSON schemas allow, json parses and a validator of
JSON schema accepts."""

import datetime
import ipaddress
import json
import random
import re
import sys
import uuid

from draw import draw_finished

rng = random.Random(928)
NAMES = ["a", "b", "ab", "name", "é", 'q"', "日本", "back\\slash", "", "tab\t", "x y"]
PATTERNS = ["^[a-z]{1,4}$", "[0-9]", '^"', "é+$", "^(\\\\|/)*$", "^a|b$", "\\n", "^\\d{4}-\\d{2}$", "^.{2,3}$", "^$", r"^\w+\s\D$", r"^\S\W", r"^[^\w][^\D\s]"]
FORMATS = {"date": datetime.date.fromisoformat, "date-time": datetime.datetime.fromisoformat, "ipv4": ipaddress.IPv4Address,
           "ipv6": ipaddress.IPv6Address, "uuid": uuid.UUID}
CONSTANTS = ["a", "b", 'quo"te', "é\n", 1, -2.5, True, False, None, [1, "a"], {"k": [None]}, 10, ""]


def some(x, p=0.5):
    return x if rng.random() < p else {}


def bounds():
    low = rng.randint(-150, 150)
    return rng.choice([{}, {"minimum": low}, {"exclusiveMaximum": low}, {"multipleOf": rng.randint(1, 12)},
                       {"exclusiveMinimum": low, "maximum": low + rng.randint(1, 300)}])


def schema(depth, names):
    """A random schema; `names` are definitions that it may refer to."""
    kind = rng.choice(["object", "array", "string", "number", "other"] if depth else ["string", "number", "other"])
    if kind == "object":
        keys = rng.sample(NAMES, rng.randint(0, 4))
        s = {"type": "object", "properties": {k: schema(depth - 1, names) for k in keys}}
        needed = [k for k in keys if rng.random() < 0.5]
        more = rng.choice([None, True, False, False, "schema"])
        if more is not False and rng.random() < 0.2:
            needed.append(rng.choice(NAMES))
        if more is not None:
            s["additionalProperties"] = schema(0, []) if more == "schema" else more
        return {**s, **some({"required": sorted(set(needed))})}
    if kind == "array":
        least = rng.randint(0, 3)
        s = {"type": "array", **some({"prefixItems": [schema(depth - 1, names) for _ in range(rng.randint(1, 3))]}, 0.3)}
        s |= some({"items": schema(depth - 1, names)}, 0.7) | some({"minItems": least}) | some({"maxItems": least + rng.randint(0, 3)})
        return s
    if kind == "string":
        if rng.random() < 0.3:
            return {"type": "string", "pattern": rng.choice(PATTERNS)}
        if rng.random() < 0.2:
            return {"type": "string", "format": rng.choice(list(FORMATS))}
        least = rng.randint(0, 4)
        return {"type": "string", **some({"minLength": least}), **some({"maxLength": least + rng.randint(0, 5)})}
    if kind == "number":
        return {"type": rng.choice(["integer", "number"]), "description": "a number", **bounds()}
    choices = ["enum", "const", "simple", "list", "any", "all"] + ["anyOf", "oneOf"] * (depth > 0) + ["ref"] * 2 * bool(names)
    match rng.choice(choices):
        case "enum":
            return {"enum": rng.sample(CONSTANTS, rng.randint(1, 5))}
        case "const":
            return {"const": rng.choice(CONSTANTS)}
        case "simple":
            return {"type": rng.choice(["boolean", "null"])}
        case "list":
            return {"type": rng.sample(["boolean", "null", "integer", "string", "number"], 2), **some({"maxLength": 2})}
        case "any":
            return rng.choice([{}, True, {"maxItems": 2, "minLength": 1, "required": ["k"]}])
        case "all":
            own = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"minLength": 1}}, "required": ["a"]}
            other = {"properties": {"a": {"minimum": 3}, "c": {"const": 1}}, "additionalProperties": rng.choice([True, {"maxLength": 3}])}
            return rng.choice([{"allOf": [own, other]}, {**own, "anyOf": [other, {"required": ["b"]}]}])
        case "anyOf":
            return {"anyOf": [schema(depth - 1, names) for _ in range(rng.randint(1, 3))]}
        case "oneOf":
            tagged = [{"type": "object", "properties": {"kind": {"const": k}, "v": schema(depth - 1, names)}, "required": ["kind"]} for k in "xy"]
            return {"oneOf": tagged + [{"type": ["string", "null"]}, {"enum": [1, 2.5]}]}
        case "ref":
            return {"$ref": "#/$defs/" + rng.choice(names)}


def document():
    names = ["tree", "leaf/~"]
    refs = ["tree", "leaf~1~0"]
    top = schema(3, refs)
    if not isinstance(top, dict) or "$ref" in top:
        top = {"type": "array", "items": top}
    leaf = schema(1, [])
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "value": {"$ref": "#/$defs/leaf~1~0"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["value"], "additionalProperties": False}
    return {**top, "$defs": dict(zip(names, [tree, leaf]))}


def same(a, b):
    """Equality of JSON: true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def is_a(kind, v):
    number = isinstance(v, (int, float)) and not isinstance(v, bool)
    return {
        "object": isinstance(v, dict),
        "array": isinstance(v, list),
        "string": isinstance(v, str),
        "number": number,
        "integer": number and v == int(v),
        "boolean": isinstance(v, bool),
        "null": v is None,
    }[kind]


def is_format(name, text):
    try:
        FORMATS[name](text)
    except ValueError:
        return False
    return True


def holds(root, s, v):
    """JSON schema 2020-12, of the keywords that are drawn here."""
    if isinstance(s, bool):
        return s
    if "$ref" in s:
        target = root
        for key in s["$ref"].split("/")[1:]:
            target = target[key.replace("~1", "/").replace("~0", "~")]
        if not holds(root, target, v):
            return False
    kinds = s.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    ok = not kinds or any(is_a(k, v) for k in kinds)
    ok = ok and ("enum" not in s or any(same(v, e) for e in s["enum"])) and ("const" not in s or same(v, s["const"]))
    ok = ok and ("anyOf" not in s or any(holds(root, o, v) for o in s["anyOf"]))
    ok = ok and ("oneOf" not in s or sum(holds(root, o, v) for o in s["oneOf"]) == 1)
    ok = ok and all(holds(root, part, v) for part in s.get("allOf", []))
    if isinstance(v, (int, float)) and not isinstance(v, bool):
        ok = ok and s.get("minimum", v) <= v <= s.get("maximum", v)
        ok = ok and ("exclusiveMinimum" not in s or s["exclusiveMinimum"] < v)
        ok = ok and ("exclusiveMaximum" not in s or v < s["exclusiveMaximum"])
        ok = ok and ("multipleOf" not in s or v % s["multipleOf"] == 0)
    if isinstance(v, str):
        ok = ok and ("format" not in s or is_format(s["format"], v))
        ok = ok and s.get("minLength", 0) <= len(v) <= s.get("maxLength", len(v))
        ok = ok and ("pattern" not in s or re.search(s["pattern"].replace("$", "\\Z"), v) is not None)
    if isinstance(v, list):
        first = s.get("prefixItems", [])
        ok = ok and s.get("minItems", 0) <= len(v) <= s.get("maxItems", len(v))
        ok = ok and all(holds(root, p, x) for p, x in zip(first, v))
        ok = ok and all(holds(root, s.get("items", True), x) for x in v[len(first) :])
    if isinstance(v, dict):
        listed = s.get("properties", {})
        ok = ok and all(k in v for k in s.get("required", []))
        ok = ok and all(holds(root, listed.get(k, s.get("additionalProperties", True)), x) for k, x in v.items())
    return ok


def main():
    schemas = [document() for _ in range(200)]
    bad = drawn = open_ends = 0
    used = set()
    cases = [{"schema": s, "count": 10} for s in schemas]
    for s, (texts, endless, refused) in zip(schemas, draw_finished(sys.argv[1], sys.argv[2], cases, sys.argv[3]), strict=True):
        if refused:
            print(f"{json.dumps(s)}: {refused}")
            bad += 1
        drawn += len(texts)
        open_ends += endless
        for text in texts:
            try:
                value = json.loads(text)
                used.add(type(value))
                fault = None if holds(s, s, value) else "is not valid"
            except ValueError as e:
                fault = str(e)
            if fault:
                bad += 1
                print(f"{json.dumps(s)}\n  {text!r}: {fault}")
    print(f"{len(schemas)} schemas, {drawn} texts of {len(used)} types of Python, {bad} faults; {open_ends} had no end")
    return bad != 0 or drawn < 1800 or len(used) < 7


if __name__ == "__main__":
    sys.exit(main())
