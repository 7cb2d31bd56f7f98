#include "kiln/text/impl/sentencepiece/model_file.hpp"

#include <cmath>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/sentencepiece/wire.hpp"

namespace kiln::language::detail {

namespace {

// An enumeration with the values 1 to `last`.
template <class Enum> Enum choice(const wire_reader& in, Enum last, std::string_view what) {
  const std::int64_t value = in.integer();
  if (value < 1 || value > static_cast<std::int64_t>(last))
    raise(errc::malformed, std::string(what) + ": expected 1 to " + std::to_string(static_cast<int>(last)) +
                               ", found " + std::to_string(value));
  return static_cast<Enum>(value);
}

void read_piece(std::string_view bytes, std::size_t number, std::vector<sentencepiece_file::piece>& out) {
  const std::string name = "pieces[" + std::to_string(number) + "]";
  sentencepiece_file::piece one;
  for (wire_reader in(bytes, name); in.next();) switch (in.field()) {
      case 1: one.text = in.text(); break;
      case 2: one.score = in.number(); break;
      case 3: one.type = choice(in, sentencepiece_file::piece_type::byte, name + ".type"); break;
      default: break;
    }
  if (one.text.empty()) raise(errc::malformed, name + ".piece: expected a text, found none");
  if (std::isnan(one.score)) raise(errc::malformed, name + ".score: expected a number, found NaN");
  out.push_back(one);
}

void read_trainer(std::string_view bytes, sentencepiece_file::trainer_spec& out) {
  for (wire_reader in(bytes, "trainer_spec"); in.next();) switch (in.field()) {
      case 3: out.model = choice(in, sentencepiece_file::model_type::character, "trainer_spec.model_type"); break;
      case 24: out.whitespace_as_suffix = in.flag(); break;
      case 35: out.byte_fallback = in.flag(); break;
      case 44: out.unk_surface = in.text(); break;
      case 45: out.unk = in.text(); break;
      case 46: out.bos = in.text(); break;
      case 47: out.eos = in.text(); break;
      case 48: out.pad = in.text(); break;
      default: break;
    }
}

void read_normalizer_spec(std::string_view bytes, std::string_view name, sentencepiece_file::normalizer_spec& out) {
  for (wire_reader in(bytes, name); in.next();) switch (in.field()) {
      case 2: out.charsmap = in.bytes(); break;
      case 3: out.add_dummy_prefix = in.flag(); break;
      case 4: out.remove_extra_whitespaces = in.flag(); break;
      case 5: out.escape_whitespaces = in.flag(); break;
      default: break;
    }
}

}  // namespace

sentencepiece_file read_sentencepiece_file(std::string_view bytes) {
  sentencepiece_file out;
  sentencepiece_file::normalizer_spec denormalizer;
  for (wire_reader in(bytes, "the model"); in.next();) switch (in.field()) {
      case 1: read_piece(in.bytes(), out.pieces.size(), out.pieces); break;
      case 2: read_trainer(in.bytes(), out.trainer); break;
      case 3: read_normalizer_spec(in.bytes(), "normalizer_spec", out.normalizer); break;
      case 5: read_normalizer_spec(in.bytes(), "denormalizer_spec", denormalizer); break;
      default: break;
    }
  if (out.pieces.empty()) raise(errc::malformed, "pieces: expected one or more, found none");
  if (!denormalizer.charsmap.empty())
    raise(errc::unsupported, "denormalizer_spec.precompiled_charsmap: rules for decoded text");
  return out;
}

}  // namespace kiln::language::detail
