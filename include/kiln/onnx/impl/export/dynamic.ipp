#include "kiln/core/object.hpp"
#include "kiln/onnx/element.hpp"
#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/onnx/impl/image/decode_image.hpp"
#include "kiln/onnx/impl/ops/ml/classifier.hpp"
#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/dynamic/map.hpp"
#include "kiln/op/dynamic/optional_rank.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/sequence.hpp"
#include "kiln/op/dynamic/strings.hpp"

// Ops whose results only a run can size, and ops on sequences, optionals, maps and strings.
namespace kiln::onnx {

namespace {

void write_branch(exporter& x, const exported& e) { x.branch(e); }
void write_loop(exporter& x, const exported& e) { x.loop(e); }
void write_bind_dims(exporter& x, const exported& e) {
  const auto& o = e.as<op::bind_dims>();
  x.write("Identity", e.in, e.out);
  x.learn_elements(e.out[0], all(o.names));
}

template <class Op> exporter::node_writer put_axis(exporter::node_writer n, const Op& o) {
  if (!o.flat) n.set("axis", o.along);
  return n;
}
void write_compress(exporter& x, const exported& e) {
  put_axis(x.write("Compress", e.in, e.out), e.as<op::compress>());
}
void write_unique(exporter& x, const exported& e) {
  const auto& o = e.as<op::unique>();
  put_axis(x.write("Unique", e.in, e.out), o).set("sorted", std::int64_t{o.ascending});
}
void write_non_max_suppression(exporter& x, const exported& e) {
  const auto& o = e.as<op::non_max_suppression>();
  names in{e.in[0], e.in[1]};
  for (std::size_t k = 2; k < (o.has_least_score ? 5u : 4u); ++k) in.push_back(x.reshaped(e.in[k], {1}));
  x.write("NonMaxSuppression", in, e.out).set("center_point_box", std::int64_t{o.centered});
}

// ONNX has ranges of f32, f64, i16, i32 and i64; others are cast from one that holds their numbers.
void write_progression(exporter& x, const exported& e) {
  const dtype t = e.result().type;
  const bool written = t == dtype::f32 || t == dtype::f64 || t == dtype::i16 || t == dtype::i32 || t == dtype::i64;
  const dtype as = written ? t : is_integer(t) ? dtype::i64 : dtype::f32;
  names in;
  for (std::size_t k = 0; k < 3; ++k) {
    in.push_back(e.types[k].rank() == 0 ? e.in[k] : x.reshaped(e.in[k], {}));
    if (!written) in.back() = x.cast(in.back(), as);
  }
  if (written)
    x.write("Range", in, e.out);
  else
    x.write("Cast", {x.make("Range", in)}, e.out).set("to", static_cast<std::int64_t>(to_element(t)));
}

// A position is a scalar.
names with_position(exporter& x, const exported& e, std::size_t k) {
  names in = e.in;
  if (k < in.size() && e.types[k].rank() != 0) in[k] = x.reshaped(in[k], {});
  if (k < in.size() && e.types[k].type != dtype::i64 && e.types[k].type != dtype::i32)
    in[k] = x.cast(in[k], dtype::i64);
  return in;
}
void write_make_sequence(exporter& x, const exported& e) {
  if (!e.in.empty()) {
    x.write("SequenceConstruct", e.in, e.out);
    return;
  }
  const element t = to_element(x.content_of(*e.home, {e.at, 0}).type);
  x.write("SequenceEmpty", {}, e.out).set("dtype", static_cast<std::int64_t>(t));
}
// A tensor from a sequence; an optional holds one of unknown rank.
void write_taken(exporter& x, const exported& e, const std::string& tensor) {
  x.write(e.result().type == dtype::optional ? "Optional" : "Identity", {tensor}, e.out);
}
void write_sequence_at(exporter& x, const exported& e) {
  names in = with_position(x, e, 1);
  if (in.size() < 2) in.push_back(x.scalar(dtype::i64, 0));
  write_taken(x, e, x.make("SequenceAt", in));
}
void write_sequence_insert(exporter& x, const exported& e) { x.write("SequenceInsert", with_position(x, e, 2), e.out); }
void write_sequence_erase(exporter& x, const exported& e) { x.write("SequenceErase", with_position(x, e, 1), e.out); }
void write_split_sequence(exporter& x, const exported& e) {
  const auto& o = e.as<op::split_sequence>();
  x.write("SplitToSequence", e.in, e.out).set("axis", o.axis).set("keepdims", std::int64_t{o.keep});
}
void write_join_sequence(exporter& x, const exported& e) {
  const auto& o = e.as<op::join_sequence>();
  const std::string joined = x.fresh("joined");
  x.write("ConcatFromSequence", e.in, {joined}).set("axis", o.along).set("new_axis", std::int64_t{o.stacks});
  write_taken(x, e, joined);
}
void write_make_optional(exporter& x, const exported& e) {
  auto n = x.write("Optional", e.in, e.out);
  if (e.in.empty()) n.set_type("type", x.content_of(*e.home, {e.at, 0}));
}

void write_optional_rank(exporter& x, const exported& e) {
  x.write("Size", {x.make("Shape", {x.make("OptionalGetElement", e.in)})}, e.out);
}

// Strings that are attributes in ONNX.
std::vector<std::string> texts(const exported& e, std::size_t i) {
  const literal* l = e.constant(i);
  if (!l) exporter::unsupported("texts that are no constants");
  return strings_of(argument(*l));
}
std::string text(const exported& e, std::size_t i) {
  const auto all = texts(e, i);
  if (all.size() != 1) exporter::unsupported("more than one text");
  return all[0];
}
void write_normalize_strings(exporter& x, const exported& e) {
  const auto& o = e.as<op::normalize_strings>();
  auto n = x.write("StringNormalizer", {e.in[0]}, e.out);
  n.set("case_change_action", std::string_view(o.to == op::letter_case::lower   ? "LOWER"
                                               : o.to == op::letter_case::upper ? "UPPER"
                                                                                : "NONE"));
  n.set("is_case_sensitive", std::int64_t{o.case_matters});
  if (const auto words = texts(e, 1); !words.empty()) n.set("stopwords", names(words));
}
void write_split_strings(exporter& x, const exported& e) {
  const auto& o = e.as<op::split_strings>();
  auto n = x.write("StringSplit", {e.in[0]}, e.out);
  n.set("delimiter", std::string_view(text(e, 1)));
  if (o.most >= 0) n.set("maxsplit", o.most);
}
void write_match_strings(exporter& x, const exported& e) {
  x.write("RegexFullMatch", {e.in[0]}, e.out).set("pattern", std::string_view(text(e, 1)));
}
void write_cast(exporter& x, const exported& e) {
  x.write("Cast", e.in, e.out).set("to", static_cast<std::int64_t>(to_element(e.result().type)));
}

void write_decode_image(exporter& x, const exported& e) {
  const auto to = e.as<decode_image>().to;
  x.write("ImageDecoder", e.in, e.out)
      .set("pixel_format", std::string_view(to == pixel_format::bgr         ? "BGR"
                                            : to == pixel_format::grayscale ? "Grayscale"
                                                                            : "RGB"));
}

// The keys of a map as the attribute for their type.
void put_keys(exporter::node_writer n, const exported& e, std::string_view strings, std::string_view integers) {
  const literal* keys = e.constant(1);
  if (!keys) exporter::unsupported("keys that are no constants");
  n.of_domain(ai_onnx_ml);
  if (keys->get_shape().type == dtype::string)
    n.set(strings, names(texts(e, 1)));
  else
    n.set(integers, std::span<const std::int64_t>(keys->to<std::int64_t>()));
}
void write_zip_maps(exporter& x, const exported& e) {
  if (e.types[0].type != dtype::f32) exporter::unsupported("maps to numbers other than f32");
  put_keys(x.write("ZipMap", {e.in[0]}, e.out), e, "classlabels_strings", "classlabels_int64s");
}
void write_map_row(exporter& x, const exported& e) {
  put_keys(x.write("DictVectorizer", {e.in[0]}, e.out), e, "string_vocabulary", "int64_vocabulary");
}
void write_map_values(exporter& x, const exported& e) {
  const dtype t = e.result().type;
  if (t != dtype::f32 && t != dtype::string) exporter::unsupported("values of a map that are neither f32 nor strings");
  x.write("CastMap", e.in, e.out)
      .of_domain(ai_onnx_ml)
      .set("cast_to", std::string_view(t == dtype::f32 ? "TO_FLOAT" : "TO_STRING"));
}

}  // namespace

std::span<const op_exporter> export_dynamic() {
  static constexpr op_exporter table[] = {
      {"bind_dims", write_bind_dims},
      {"branch", write_branch},
      {"compress", write_compress},
      {"concat_strings", write_same<"StringConcat">},
      {"kiln::onnx::decode_image", write_decode_image},
      {"equal_strings", write_same<"Equal">},
      {"join_sequence", write_join_sequence},
      {"loop", write_loop},
      {"make_optional", write_make_optional},
      {"make_sequence", write_make_sequence},
      {"map_row", write_map_row},
      {"map_values", write_map_values},
      {"match_strings", write_match_strings},
      {"non_max_suppression", write_non_max_suppression},
      {"nonzero", write_same<"NonZero">},
      {"normalize_strings", write_normalize_strings},
      {"optional_get", write_same<"OptionalGetElement">},
      {"optional_has", write_same<"OptionalHasElement">},
      {"optional_rank", write_optional_rank},
      {"print_numbers", write_cast},
      {"progression", write_progression},
      {"read_numbers", write_cast},
      {"select_objects", write_same<"Where">},
      {"sequence_at", write_sequence_at},
      {"sequence_erase", write_sequence_erase},
      {"sequence_insert", write_sequence_insert},
      {"sequence_length", write_same<"SequenceLength">},
      {"slice_at", write_same<"Slice">},
      {"split_sequence", write_split_sequence},
      {"split_strings", write_split_strings},
      {"unique", write_unique},
      {"zip_maps", write_zip_maps},
  };
  return table;
}

}  // namespace kiln::onnx
