#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "kiln/core/error.hpp"
#include "kiln/generate/weights/weight_table.hpp"

namespace kiln::language {

/// A value of a GGUF file's metadata. Texts are parts of the file.
struct gguf_value {
  enum class kind : std::uint8_t { integer, real, flag, text, numbers, texts };
  kind is = kind::integer;
  std::int64_t integer = 0;  ///< of integers, and 0 or 1 of flags
  double real = 0;           ///< of reals
  std::string_view text;
  std::vector<double> numbers;  ///< of lists of integers, reals or flags
  std::vector<std::string_view> texts;
};

/// A file in the format GGUF, version 2 or 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
class gguf_file {
 public:
  /// Reads metadata and the table of tensors. Errors: `malformed` names the field and its place: counts, lengths and
  /// offsets beyond the file's end, types that do not exist, two keys or tensors of one name; `unsupported`: other
  /// versions, the other order of bytes, bytes that are one part of several.
  gguf_file(buffer file, std::string_view name);
  /// The same of a mapped file, or of all parts (`split.count`) of a model of which it is one: the metadata is the
  /// first one's. Errors, beside those of each part: `not_found` names a part that is not there; `malformed` one whose
  /// name, `split.no` or `split.count` is another's, and tensors that are not as many as `split.tensors.count` says.
  static gguf_file load(const std::filesystem::path& path);

  const weight_table& weights() const { return weights_; }
  const std::map<std::string, gguf_value, std::less<>>& metadata() const { return metadata_; }
  /// Null where there is none of that key.
  const gguf_value* find(std::string_view key) const;
  /// A value of that kind: unset where there is none. One of another kind is a `malformed` error with the key.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  /// Empty where there are none.
  const std::vector<std::string_view>& texts(std::string_view key) const;
  const std::vector<double>& numbers(std::string_view key) const;
  const std::string& name() const { return name_; }

 private:
  struct part {};  // or a file that is whole
  gguf_file(buffer file, std::string_view name, part);

  buffer file_;
  std::string name_;
  std::map<std::string, gguf_value, std::less<>> metadata_;
  weight_table weights_;
};

/// The files that a model is stored in by the name of one of them: for NAME-00002-of-00003.gguf all three in their
/// order, else the file itself.
std::vector<std::filesystem::path> gguf_parts(const std::filesystem::path& file);
/// The error of a part that is not there, the `part`-th from 0.
error missing_part(const std::filesystem::path& file, std::size_t part);

}  // namespace kiln::language
