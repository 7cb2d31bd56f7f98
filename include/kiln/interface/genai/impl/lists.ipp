#include "kiln/interface/genai/impl/values.hpp"

using namespace kiln::genai;

OgaResult* OgaCreateSequences(OgaSequences** out) {
  return made(out, [] { return new OgaSequences; });
}
void OgaDestroySequences(OgaSequences* sequences) { delete sequences; }
size_t OgaSequencesCount(const OgaSequences* sequences) { return sequences ? sequences->lists.size() : 0; }

OgaResult* OgaAppendTokenSequence(const int32_t* token_ptr, size_t token_cnt, OgaSequences* sequences) {
  return guarded([&] {
    const auto all = given_array(token_ptr, token_cnt, "the tokens");
    given(sequences, "the sequences").lists.emplace_back(all.begin(), all.end());
  });
}
OgaResult* OgaAppendTokenToSequence(int32_t token, OgaSequences* sequences, size_t sequence_index) {
  return guarded([&] {
    auto& lists = given(sequences, "the sequences").lists;
    if (sequence_index > lists.size())
      raise(kiln::fault::of(kiln::errc::invalid_argument, "sequence index out of bounds: the next one is the last",
                            lists.size(), sequence_index));
    if (sequence_index == lists.size()) lists.emplace_back();
    lists[sequence_index].push_back(token);
  });
}
size_t OgaSequencesGetSequenceCount(const OgaSequences* sequences, size_t sequence_index) {
  return sequence_index < OgaSequencesCount(sequences) ? sequences->lists[sequence_index].size() : 0;
}
const int32_t* OgaSequencesGetSequenceData(const OgaSequences* sequences, size_t sequence_index) {
  return sequence_index < OgaSequencesCount(sequences) ? sequences->lists[sequence_index].data() : nullptr;
}

OgaResult* OgaCreateStringArray(OgaStringArray** out) {
  return made(out, [] { return new OgaStringArray; });
}
OgaResult* OgaCreateStringArrayFromStrings(const char* const* strs, size_t count, OgaStringArray** out) {
  return made(out, [&] {
    OgaStringArray all;
    for (const char* one : given_array(strs, count, "the strings")) all.texts.emplace_back(text(one, "a string"));
    return new OgaStringArray(std::move(all));
  });
}
void OgaDestroyStringArray(OgaStringArray* string_array) { delete string_array; }
OgaResult* OgaStringArrayAddString(OgaStringArray* string_array, const char* str) {
  return guarded([&] { given(string_array, "the string array").texts.emplace_back(text(str, "the string")); });
}
OgaResult* OgaStringArrayGetCount(const OgaStringArray* string_array, size_t* out) {
  return told(out, [&] { return given(string_array, "the string array").texts.size(); });
}
OgaResult* OgaStringArrayGetString(const OgaStringArray* string_array, size_t index, const char** out) {
  return told(out, [&] {
    const auto& texts = given(string_array, "the string array").texts;
    if (index >= texts.size())
      raise(
          kiln::fault::of(kiln::errc::invalid_argument, "an index lies within the string array", texts.size(), index));
    return texts[index].c_str();
  });
}
