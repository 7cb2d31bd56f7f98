#pragma once

#include <string_view>
#include <vector>

namespace kiln::language::detail {

/// The content of SentencePiece's `tokenizer.model`, by the fields of its `sentencepiece_model.proto`. Texts are parts
/// of the file's bytes.
struct sentencepiece_file {
  enum class piece_type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  enum class model_type { unigram = 1, bpe = 2, word = 3, character = 4 };
  struct piece {
    std::string_view text;
    float score = 0;
    piece_type type = piece_type::normal;
  };
  struct trainer_spec {
    model_type model = model_type::unigram;
    bool whitespace_as_suffix = false, byte_fallback = false;
    std::string_view unk = "<unk>", bos = "<s>", eos = "</s>", pad = "<pad>";
    std::string_view unk_surface = " \xE2\x81\x87 ";  // what an unknown token is decoded to
  };
  struct normalizer_spec {
    std::string_view charsmap;
    bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  };

  std::vector<piece> pieces;
  trainer_spec trainer;
  normalizer_spec normalizer;
};

/// Reads a file's bytes. Throws `error`: `malformed`, and `unsupported` for a file with rules for decoding.
sentencepiece_file read_sentencepiece_file(std::string_view bytes);

}  // namespace kiln::language::detail
