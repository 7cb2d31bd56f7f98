#include <gmock/gmock.h>

#include "kiln/core/error.hpp"
#include "text/guidance/vocabularies.hpp"

namespace {

using namespace kiln::language;
using testing::HasSubstr;

// Reads a text byte by byte.
class schema {
 public:
  explicit schema(std::string_view text) : guide_(guide::json_schema(bytes(), text)) {}

  bool operator()(std::string_view text) const {
    guide g = guide_;
    for (const char c : text) {
      const token id = static_cast<token>(static_cast<unsigned char>(c)) + 1;
      if (!allows(mask_of(g, bytes().size()), id)) return false;
      g.advance(id);
    }
    EXPECT_EQ(g.is_accepting(), allows(mask_of(g, bytes().size()), 0));
    return g.is_accepting();
  }

 private:
  guide guide_;
};

std::string message_of(std::string_view text) {
  try {
    guide::json_schema(bytes(), text);
  } catch (const kiln::error& e) {
    return e.what();
  }
  return "no error";
}

TEST(json_schema, objects_have_their_properties_in_order) {
  const schema s(R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}, "c": true},
                     "required": ["b"], "additionalProperties": false})");
  EXPECT_TRUE(s(R"({"a":1,"b":null,"c":[]})"));
  EXPECT_TRUE(s("{ \"a\": -10, \"b\": null }"));
  EXPECT_TRUE(s("{\n  \"b\": null,\n  \"c\": {\"a\": 1e5}\n}"));
  EXPECT_FALSE(s(R"({"b":null,"a":1})"));
  EXPECT_FALSE(s(R"({"a":1})"));
  EXPECT_FALSE(s(R"({"b":null,"d":1})"));
  EXPECT_FALSE(s(R"({"b":null,})"));
  EXPECT_FALSE(s(R"({,"b":null})"));
  EXPECT_FALSE(s(R"({"b":null "c":1})"));
  EXPECT_FALSE(s("{}"));
  EXPECT_FALSE(s("  {\"b\":null}"));
  EXPECT_FALSE(s("{  \"b\":null}"));
}

TEST(json_schema, other_properties_have_other_names) {
  const schema s(R"({"type": "object", "properties": {"ab": {"type": "null"}, "é\"": {"type": "null"}},
                     "required": ["z"], "additionalProperties": {"type": "integer"}})");
  EXPECT_TRUE(s(R"({"ab":null,"é\"":null,"z":1})"));
  EXPECT_TRUE(s(R"({"z":1,"a":2,"abc":3,"é":4,"":5,"\"":6})"));
  EXPECT_FALSE(s(R"({"z":1,"ab":2})"));
  EXPECT_FALSE(s(R"({"z":1,"é\"":2})"));
  EXPECT_FALSE(s(R"({"z":1,"\u0061b":2})"));  // "ab" in another spelling
  EXPECT_FALSE(s(R"({"z":1,"z":2})"));
  EXPECT_FALSE(s(R"({"y":1})"));
  EXPECT_FALSE(s(R"({"z":1,"y":null})"));
  const schema empty(R"({"type": "object", "additionalProperties": false})");
  EXPECT_TRUE(empty("{}"));
  EXPECT_TRUE(empty("{ }"));
  EXPECT_FALSE(empty(R"({"a":1})"));
}

TEST(json_schema, arrays_have_first_elements_and_lengths) {
  const schema s(
      R"({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": {"type": "integer"},
                     "minItems": 1, "maxItems": 3})");
  EXPECT_TRUE(s("[null]"));
  EXPECT_TRUE(s("[ null, true, 3 ]"));
  EXPECT_FALSE(s("[]"));
  EXPECT_FALSE(s("[true]"));
  EXPECT_FALSE(s("[null,1]"));
  EXPECT_FALSE(s("[null,true,3,4]"));
  EXPECT_FALSE(s("[null,]"));
  const schema open(R"({"type": "array", "prefixItems": [true], "items": {"type": "integer"}, "minItems": 2})");
  EXPECT_FALSE(open("[[]]"));
  EXPECT_TRUE(open("[[],1]"));
  EXPECT_TRUE(open("[[{}],1,2,3,4,5]"));
  EXPECT_FALSE(open("[1,2,{}]"));
  const schema none(R"({"type": "array", "items": false})");
  EXPECT_TRUE(none("[]"));
  EXPECT_FALSE(none("[1]"));
  EXPECT_FALSE(schema(R"({"type": "array", "maxItems": 0})")("[1]"));
}

TEST(json_schema, strings_have_lengths_in_characters_and_patterns) {
  const schema s(R"({"type": "string", "minLength": 1, "maxLength": 2})");
  EXPECT_TRUE(s(R"("é😀")"));
  EXPECT_TRUE(s(R"("\n\"")"));
  EXPECT_TRUE(s(R"("\u001f")"));
  EXPECT_FALSE(s(R"("")"));
  EXPECT_FALSE(s(R"("abc")"));
  EXPECT_FALSE(s("\"\n\""));
  EXPECT_FALSE(s(R"("\q")"));
  const schema p(R"({"type": "string", "pattern": "b+|^c[\"\\n]$"})");
  EXPECT_TRUE(p(R"("abbd")"));
  EXPECT_TRUE(p(R"("c\"")"));
  EXPECT_TRUE(p(R"("c\n")"));
  EXPECT_FALSE(p(R"("ac\"")"));
  EXPECT_FALSE(p(R"("c\"d")"));
  // What ECMA-262 and Python both take.
  const schema classes(R"({"type": "string", "pattern": "^\\d\\w\\s\\D\\W\\S.$"})");
  EXPECT_FALSE(classes(R"("1a -é💩b")"));
  EXPECT_TRUE(classes(R"("1a --💩b")"));
  EXPECT_FALSE(classes(R"("٣a --xb")"));
  EXPECT_FALSE(classes(R"("1é --xb")"));
  EXPECT_FALSE(classes(R"("1a ٣-xb")"));
  EXPECT_FALSE(classes(R"("1a --x\r")"));
  const schema others(R"({"type": "string", "pattern": "^[^\\d][^\\W]$"})");
  EXPECT_TRUE(others(R"("aa")"));
  EXPECT_FALSE(others(R"("٣a")"));
  EXPECT_FALSE(others(R"("aé")"));
}

TEST(json_schema, numbers_are_jsons) {
  const schema number(R"({"type": "number"})"), integer(R"({"type": "integer"})");
  for (const char* text : {"0", "-0", "12", "1.50", "-0.1e-7", "1E+22"}) EXPECT_TRUE(number(text)) << text;
  for (const char* text : {"01", "1.", ".5", "+1", "1e", "-", "1e400", "NaN"}) EXPECT_FALSE(number(text)) << text;
  EXPECT_TRUE(integer("-123456789012345678901234567890"));
  EXPECT_FALSE(integer("1.0"));
}

TEST(json_schema, constants_alternatives_and_types) {
  const schema s(R"({"enum": ["a\"", 1, null, {"b": [1, 2]}], "type": ["string", "object", "integer"]})");
  EXPECT_TRUE(s(R"("a\"")"));
  EXPECT_TRUE(s("1"));
  EXPECT_TRUE(s(R"({"b":[1,2]})"));
  EXPECT_FALSE(s("null"));
  EXPECT_FALSE(s("11"));
  const schema any(
      R"({"anyOf": [{"const": 5}, {"type": ["boolean", "null"]}, {"type": "array", "items": {"const": "x"}}]})");
  for (const char* text : {"5", "true", "null", "[]", R"(["x", "x"])"}) EXPECT_TRUE(any(text)) << text;
  for (const char* text : {"6", "\"x\"", R"(["y"])"}) EXPECT_FALSE(any(text)) << text;
  // Keywords of a type say nothing about other types.
  const schema mixed(R"({"maxLength": 1, "maxItems": 1})");
  for (const char* text : {"\"a\"", "[1]", "123", "{\"long\":[1]}"}) EXPECT_TRUE(mixed(text)) << text;
  for (const char* text : {"\"ab\"", "[1,2]"}) EXPECT_FALSE(mixed(text)) << text;
}

TEST(json_schema, references_nest) {
  const schema s(R"({"$ref": "#/$defs/list", "$defs": {"list": {"type": "object", "properties": {
      "head": {"type": "integer"}, "tail": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}},
      "required": ["head", "tail"], "additionalProperties": false}}})");
  std::string text = "null";
  for (int k = 0; k < 200; ++k) {
    text = R"({"head":1,"tail":)" + text + "}";
    if (k % 50 == 0) {
      EXPECT_TRUE(s(text));
    }
  }
  EXPECT_FALSE(s(text.substr(0, text.size() - 1)));
  EXPECT_FALSE(s(text + "}"));
  EXPECT_TRUE(schema(R"({"type": "array", "items": {"$ref": "#"}})")("[[],[[]]]"));
}

TEST(json_schema, alternatives_of_one_of_are_apart) {
  EXPECT_EQ(message_of(R"({"oneOf": [{"type": "integer"}, {"type": "string"}, {"const": 1.5}]})"), "no error");
  EXPECT_EQ(message_of(R"({"oneOf": [{"properties": {"k": {"const": 1}}, "required": ["k"], "type": "object"},
                                     {"properties": {"k": {"const": 2}}, "required": ["k"], "type": "object"}]})"),
            "no error");
  for (
      const char* list :
      {R"([{"type": "integer"}, {"type": "number"}])", R"([{"const": 1}, {"type": "number"}])",
       R"([{"enum": [1, 2]}, {"enum": [2, 3]}])", R"([{"const": 1.0}, {"type": "integer"}])",
       R"([true, {"type": "null"}])",
       R"([{"properties": {"k": {"const": 1}}, "type": "object"}, {"properties": {"k": {"const": 2}}, "type": "object"}])"})
    EXPECT_THAT(message_of(std::string("{\"oneOf\": ") + list + "}"),
                HasSubstr("#/oneOf: expected alternatives of different types or constants, found that 0 and 1"))
        << list;
}

TEST(json_schema, numbers_have_bounds) {
  for (const auto& [low, high] : {std::pair(0, 0), {3, 17}, {98, 1203}, {-5, 12}, {-120, -99}, {-7, 0}, {100, 199}}) {
    const schema whole("{\"type\": \"integer\", \"minimum\": " + std::to_string(low) +
                       ", \"exclusiveMaximum\": " + std::to_string(high + 1) + "}");
    const schema number("{\"type\": \"number\", \"minimum\": " + std::to_string(low) +
                        ", \"exclusiveMaximum\": " + std::to_string(high + 1) + "}");
    for (int n = low - 30; n <= high + 30; ++n) {
      const bool is_in = low <= n && n <= high;
      EXPECT_EQ(whole(std::to_string(n)), is_in) << n << " of " << low << " " << high;
      EXPECT_EQ(number(std::to_string(n)), is_in) << n << " of " << low << " " << high;
      const double half = n < 0 ? n - .5 : n + .5;
      EXPECT_EQ(number(std::to_string(n) + ".5"), low <= half && half < high + 1) << n;
      EXPECT_FALSE(whole(std::to_string(n) + ".0")) << n;
    }
    EXPECT_FALSE(whole("01"));
    EXPECT_FALSE(whole(std::to_string(high) + "000"));
  }
  const schema most(R"({"type": "number", "maximum": 10, "exclusiveMinimum": -1})");
  for (const char* text : {"10", "10.00", "9.999", "-0.5", "0", "0.0"}) EXPECT_TRUE(most(text)) << text;
  for (const char* text : {"10.01", "11", "-1", "-1.5", "1e1", "-1.0"}) EXPECT_FALSE(most(text)) << text;
  const schema open(R"({"type": "integer", "minimum": 95})");
  for (const char* text : {"95", "99", "100", "123456789012345678901234567890"}) EXPECT_TRUE(open(text)) << text;
  for (const char* text : {"94", "9", "-95", "0"}) EXPECT_FALSE(open(text)) << text;
  const schema sevens(R"({"type": "integer", "multipleOf": 7})");
  for (int n = -200; n <= 200; ++n) EXPECT_EQ(sevens(std::to_string(n)), n % 7 == 0) << n;
}

TEST(json_schema, schemas_that_all_hold_are_joined) {
  const schema s(R"({"$defs": {"base": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}},
    "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"a": {"type": ["integer", "null"]}, "b": {"maxLength": 2}}},
              {"additionalProperties": {"type": ["integer", "string", "boolean"]}}], "required": ["b"]})");
  for (const char* text : {R"({"a":1,"b":"xy"})", R"({"a":1,"b":true,"c":"long"})"}) EXPECT_TRUE(s(text)) << text;
  for (const char* text :
       {R"({"a":1})", R"({"a":null,"b":1})", R"({"a":1.5,"b":1})", R"({"a":1,"b":"xyz"})", R"({"a":1,"b":1,"c":null})"})
    EXPECT_FALSE(s(text)) << text;
  const schema t(R"({"type": ["integer", "string"], "minLength": 1, "$ref": "#/$defs/short",
                     "$defs": {"short": {"maxLength": 2}}})");
  for (const char* text : {R"("a")", R"("ab")", "5"}) EXPECT_TRUE(t(text)) << text;
  for (const char* text : {R"("")", R"("abc")", "null"}) EXPECT_FALSE(t(text)) << text;
  const schema beside(R"({"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"],
    "additionalProperties": false, "anyOf": [{"properties": {"k": {"minimum": 5}}}, {"properties": {"k": {"const": 1}}}]})");
  for (const char* text : {R"({"k":5})", R"({"k":1})"}) EXPECT_TRUE(beside(text)) << text;
  for (const char* text : {R"({"k":2})", R"({"k":1,"l":2})"}) EXPECT_FALSE(beside(text)) << text;
  const schema list(R"({"$ref": "#/$defs/list", "$defs": {"list": {"allOf": [{"type": "object",
    "properties": {"tail": {"$ref": "#/$defs/list"}}}, {"additionalProperties": {"$ref": "#/$defs/list"}}]}}})");
  EXPECT_TRUE(list(R"({"tail":{"tail":{"x":{}}}})"));
  EXPECT_FALSE(list(R"({"tail":{"tail":1}})"));
}

TEST(json_schema, formats_and_names_by_pattern) {
  const auto format = [](const std::string& name) {
    return schema("{\"type\": \"string\", \"format\": \"" + name + "\"}");
  };
  EXPECT_TRUE(format("date")(R"("2024-02-28")"));
  EXPECT_FALSE(format("date")(R"("2024-02-31")"));
  EXPECT_FALSE(format("date")(R"("2024-13-01")"));
  EXPECT_TRUE(format("date-time")(R"("1999-12-31T23:59:59.5+01:00")"));
  EXPECT_FALSE(format("date-time")(R"("1999-12-31T24:00:00Z")"));
  EXPECT_TRUE(format("ipv4")(R"("192.168.0.255")"));
  EXPECT_FALSE(format("ipv4")(R"("192.168.0.256")"));
  EXPECT_TRUE(format("uuid")(R"("01234567-89ab-cdef-0123-456789ABCDEF")"));
  EXPECT_TRUE(format("email")(R"("a.b@c-d.org")"));
  EXPECT_FALSE(format("email")(R"("a.b@-c.org")"));
  const schema named(R"({"type": "object", "patternProperties": {"^x_[a-z]+$": {"type": "integer"}},
                         "additionalProperties": false})");
  for (const char* text : {"{}", R"({"x_a":1})", R"({"x_a":1,"x_bc":2})"}) EXPECT_TRUE(named(text)) << text;
  for (const char* text : {R"({"x_":1})", R"({"y":1})", R"({"x_a":null})"}) EXPECT_FALSE(named(text)) << text;
}

TEST(json_schema, objects_have_so_many_properties) {
  const schema s(R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
                     "required": ["b"], "additionalProperties": {"const": 9}, "minProperties": 2, "maxProperties": 3})");
  for (const char* text : {R"({"a":1,"b":2})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})", R"({"b":2,"x":9})",
                           R"({"a":1,"b":2,"x":9})", R"({"b":2,"x":9,"y":9})"})
    EXPECT_TRUE(s(text)) << text;
  for (const char* text :
       {"{}", R"({"b":2})", R"({"a":1,"c":3})", R"({"a":1,"b":2,"c":3,"x":9})", R"({"b":2,"x":9,"y":9,"z":9})"})
    EXPECT_FALSE(s(text)) << text;
  const schema empty(R"({"type": "object", "maxProperties": 0})");
  EXPECT_TRUE(empty("{}"));
  EXPECT_FALSE(empty(R"({"a":1})"));
  const schema least(R"({"type": "object", "minProperties": 2})");
  EXPECT_FALSE(least(R"({"a":1})"));
  EXPECT_TRUE(least(R"({"a":1,"b":2})"));
  EXPECT_TRUE(least(R"({"a":1,"b":2,"c":3,"d":4})"));
  EXPECT_THAT(message_of(R"({"type": "object", "minProperties": 2, "maxProperties": 1})"),
              HasSubstr("no text matches"));
}

TEST(json_schema, elements_come_once) {
  const schema s(R"({"type": "array", "uniqueItems": true, "items": {"enum": ["a", "ab", 1]}, "minItems": 1})");
  for (const char* text : {R"(["a"])", R"(["ab", "a"])", R"([1,"a","ab"])", R"(["a",1])"}) EXPECT_TRUE(s(text)) << text;
  for (const char* text : {"[]", R"(["a","a"])", R"([1,"a",1])", R"(["a","ab",1,"a"])"}) EXPECT_FALSE(s(text)) << text;
  const schema two(R"({"$defs": {"e": {"enum": [1, 2, 3]}}, "type": "array", "uniqueItems": true,
                       "items": {"$ref": "#/$defs/e"}, "maxItems": 2})");
  for (const char* text : {"[]", "[3]", "[2,1]"}) EXPECT_TRUE(two(text)) << text;
  for (const char* text : {"[2,2]", "[1,2,3]"}) EXPECT_FALSE(two(text)) << text;
  const schema flags(R"({"type": "array", "uniqueItems": true, "items": {"type": "boolean"}})");
  EXPECT_TRUE(flags("[false,true]"));
  EXPECT_FALSE(flags("[true,true]"));
  EXPECT_TRUE(schema(R"({"type": "array", "uniqueItems": true, "maxItems": 1})")("[{}]"));
}

TEST(json_schema, not_is_of_types_values_bounds_and_properties) {
  const schema types(R"({"not": {"type": ["object", "array", "number"]}})");
  for (const char* text : {"null", "true", R"("x")"}) EXPECT_TRUE(types(text)) << text;
  for (const char* text : {"1", "{}", "[]"}) EXPECT_FALSE(types(text)) << text;
  const schema words(R"({"type": ["string", "boolean", "null"], "not": {"enum": ["no", "none", true, null]}})");
  for (const char* text : {R"("yes")", R"("n")", R"("nones")", R"("non")", R"("")", "false"})
    EXPECT_TRUE(words(text)) << text;
  for (const char* text : {R"("no")", R"("none")", "true", "null"}) EXPECT_FALSE(words(text)) << text;
  const schema left(R"({"enum": [1, 2, "a"], "not": {"const": 2}})");
  EXPECT_TRUE(left("1"));
  EXPECT_FALSE(left("2"));
  const schema bounds(R"({"type": "integer", "not": {"minimum": 5}})");
  EXPECT_TRUE(bounds("4"));
  EXPECT_FALSE(bounds("5"));
  const schema outside(R"({"type": "integer", "not": {"minimum": 5, "maximum": 9}})");
  for (const char* text : {"4", "10", "-7"}) EXPECT_TRUE(outside(text)) << text;
  for (const char* text : {"5", "7", "9"}) EXPECT_FALSE(outside(text)) << text;
  const schema neither(R"({"type": ["string", "null", "boolean"],
                           "not": {"anyOf": [{"const": "a"}, {"type": "null"}, {"const": false}]}})");
  for (const char* text : {R"("b")", "true"}) EXPECT_TRUE(neither(text)) << text;
  for (const char* text : {R"("a")", "null", "false"}) EXPECT_FALSE(neither(text)) << text;
}

TEST(json_schema, conditions_hold) {
  const schema s(R"({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer"}},
    "required": ["kind"], "additionalProperties": false,
    "if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
    "then": {"required": ["n"]}, "else": {"properties": {"n": {"const": 0}}}})");
  for (const char* text : {R"({"kind":"a","n":7})", R"({"kind":"b"})", R"({"kind":"b","n":0})"})
    EXPECT_TRUE(s(text)) << text;
  for (const char* text : {R"({"kind":"a"})", R"({"kind":"b","n":7})", R"({"kind":"c"})"})
    EXPECT_FALSE(s(text)) << text;
  const schema open(R"({"if": {"type": "string"}, "then": {"maxLength": 1}})");
  for (const char* text : {R"("a")", "17", "[]"}) EXPECT_TRUE(open(text)) << text;
  EXPECT_FALSE(open(R"("ab")"));
  const schema without(R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
    "additionalProperties": false, "not": {"required": ["a", "b"]}})");
  for (const char* text : {"{}", R"({"a":1})", R"({"b":2})"}) EXPECT_TRUE(without(text)) << text;
  EXPECT_FALSE(without(R"({"a":1,"b":2})"));
  const schema nothing(R"({"then": false, "type": "null"})");  // of no meaning without "if"
  EXPECT_TRUE(nothing("null"));
}

TEST(json_schema, errors_name_keyword_and_place) {
  EXPECT_THAT(message_of(R"({"properties": {"a": {"type": "object", "dependentRequired": {}}}})"),
              HasSubstr("#/properties/a: \"dependentRequired\" is not supported"));
  EXPECT_THAT(message_of(R"({"items": {"anyOf": [{"not": {"pattern": "a"}}]}})"),
              HasSubstr("#/items/anyOf/0: \"not\" or \"if\" of a schema with \"pattern\" is not supported"));
  EXPECT_THAT(message_of(R"({"anyOf": [true], "if": {"multipleOf": 2}})"), HasSubstr("with \"multipleOf\""));
  EXPECT_THAT(message_of(R"({"not": {"const": 3}})"),
              HasSubstr("#: \"not\" of 3 is not supported among values of type integer"));
  EXPECT_THAT(message_of(R"({"not": {"type": "integer"}})"), HasSubstr("numbers that are not whole"));
  EXPECT_THAT(message_of(R"({"not": {"maxLength": 9223372036854775807}})"),
              HasSubstr("\"maxLength\" in \"not\": expected a count up to 2^53, found 9223372036854775807"));
  EXPECT_THAT(message_of(R"({"type": "string", "maxLength": 3, "not": {"const": "a"}})"),
              HasSubstr("\"not\" of a string beside \"maxLength\""));
  EXPECT_THAT(message_of(R"({"not": {}})"), HasSubstr("no text matches"));
  EXPECT_THAT(message_of(R"({"items": {"format": "iri"}})"), HasSubstr("#/items: \"format\": \"iri\" is not"));
  EXPECT_THAT(message_of(R"({"uniqueItems": true})"), HasSubstr("#: \"uniqueItems\" is supported with"));
  EXPECT_THAT(message_of(R"({"uniqueItems": true, "items": {"enum": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}})"),
              HasSubstr("at most 10 values"));
  EXPECT_THAT(message_of(R"({"type": "number", "minimum": 0.5})"), HasSubstr("#: \"minimum\": expected a whole"));
  EXPECT_THAT(message_of(R"({"multipleOf": 0.1})"), HasSubstr("#: \"multipleOf\": expected an integer from 1"));
  EXPECT_THAT(message_of(R"({"multipleOf": 2, "maximum": 4})"), HasSubstr("\"multipleOf\" is not supported beside"));
  EXPECT_THAT(message_of(R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})"),
              HasSubstr("#/allOf: \"pattern\" of two schemas that both hold cannot be joined"));
  EXPECT_THAT(message_of(R"({"patternProperties": {"a": {}}})"),
              HasSubstr("#: \"patternProperties\" is supported with"));
  EXPECT_THAT(message_of(R"({"additionalProperties": {"$ref": "#/$defs/x"}})"),
              HasSubstr("#/additionalProperties: there is no \"#/$defs/x\""));
  EXPECT_THAT(message_of(R"({"$ref": "http://x"})"), HasSubstr("#: expected a \"$ref\" that begins with #"));
  EXPECT_THAT(message_of(R"({"$ref": "#"})"), HasSubstr("#: refers to itself"));
  EXPECT_THAT(
      message_of(
          R"({"$defs": {"a": {"anyOf": [true, {"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})"),
      HasSubstr("refers to itself"));
  EXPECT_THAT(message_of(R"({"type": "text"})"), HasSubstr("#: expected a \"type\" of JSON, found \"text\""));
  EXPECT_THAT(message_of(R"({"minItems": -1})"),
              HasSubstr("\"minItems\": expected an integer from 0 to 10000, found -1"));
  EXPECT_THAT(message_of(R"({"pattern": "a", "minLength": 1})"), HasSubstr("\"pattern\" is not supported beside"));
  EXPECT_THAT(message_of(R"({"items": {"pattern": "("}})"),
              HasSubstr("#/items: \"pattern\": regular expression: position 1"));
  EXPECT_THAT(message_of(R"({"required": ["a"], "type": "object", "additionalProperties": false})"),
              HasSubstr("no text matches"));
  EXPECT_THAT(message_of(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})"),
              HasSubstr("no text matches"));
  EXPECT_THAT(message_of(R"({"items": 1})"), HasSubstr("#/items: expected a schema, found 1"));
  EXPECT_THAT(message_of("{"), HasSubstr("JSON schema: expected JSON"));
  EXPECT_THAT(message_of("false"), HasSubstr("no text matches"));
  EXPECT_THAT(message_of(std::string(100000, '[')), HasSubstr("at most 1000 values in each other"));
}

}  // namespace
