#include "kiln/generate/saved_model.hpp"

#include <gmock/gmock.h>

#include "generate/weights/tiny_model.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/weights/model_files.hpp"
#include "quantize/message_of.hpp"

// Folders that models of weights alone are saved as, and drafts of other formats beside them.
namespace kiln::language::testing {
namespace {

using kiln::test::message_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// A folder of Hugging Face's with a tiny llama of 64 tokens.
std::filesystem::path write_llama(const test::temporary_folder& to) {
  const tiny_model m = tiny_llama();
  to.write("llama/config.json", m.config.dump());
  return to.write("llama/model.safetensors", safetensors_file(m.tensors)).parent_path();
}
errc code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return errc::internal;
}

TEST(saved_models, say_what_the_model_said) {
  const test::temporary_folder folder;
  const auto from = write_llama(folder), to = folder.path() / "saved";
  folder.write("llama/genai_config.json", R"({
    "model": {"type": "llama", "context_length": 48, "weight_type": "int8", "compute_type": "f32",
              "kv_cache_type": "int8", "share_prefixes": false, "tokenizer_dir": "words",
              "decoder": {"filename": "model.safetensors", "session_options": {"intra_op_num_threads": 3}},
              "draft": {"filename": "small/draft.kiln"}},
    "search": {"temperature": 0.5, "max_length": 40}, "speculative": {"max_draft_tokens": 3},
    "engine": {"dynamic_batching": {"block_size": 64}}})");
  folder.write("llama/words/tokenizer_config.json", "{}");
  folder.write("llama/small/draft.kiln", "a draft");
  save_model(read_config(from), to);
  const config c = read_config(to);
  EXPECT_EQ(c.decoder.filename, "model.kiln");
  EXPECT_EQ(c.context_length, 48);
  EXPECT_EQ(c.kv_cache_type, dtype::i8);
  EXPECT_FALSE(c.share_prefixes);
  EXPECT_FALSE(c.weight_type || c.compute_type);
  EXPECT_EQ(c.tokenizer_dir, "");
  EXPECT_TRUE(std::filesystem::exists(to / "tokenizer_config.json"));
  EXPECT_EQ(c.decoder.session.intra_op_num_threads, 3);
  EXPECT_EQ(c.decoder.num_key_value_heads, 2);
  ASSERT_TRUE(c.draft);
  EXPECT_EQ(c.draft->filename, "small/draft.kiln");
  EXPECT_TRUE(std::filesystem::exists(to / "small/draft.kiln"));
  EXPECT_EQ(get_number(c.search, "temperature"), 0.5);
  EXPECT_EQ(get_number(c.search, "max_length"), 40);
  EXPECT_EQ(get_number(c.speculative, "max_draft_tokens"), 3);
  ASSERT_TRUE(c.dynamic_batching);
  EXPECT_EQ(c.dynamic_batching->block_size, 64);
}

TEST(saved_models, take_as_many_tokens_as_their_weights) {
  const test::temporary_folder folder;
  config c = read_config(write_llama(folder));
  c.context_length = 32;  // less than the weights' own
  save_model(c, folder.path() / "saved");
  EXPECT_EQ(load_path(folder.path() / "saved")->context_length(), 32);
  const auto model = load_path(folder.path() / "saved", R"({"model": {"context_length": 4096}})");
  EXPECT_EQ(model->context_length(), 64);
  EXPECT_EQ(model->settings().context_length, 64);
  EXPECT_THAT(model->program().report().remarks, Contains("context_length 4096 is cut to the 64 of the weights"));
}

TEST(saved_models, go_into_a_folder_of_their_own) {
  const test::temporary_folder folder;
  const config c = read_config(write_llama(folder));
  const auto older = folder.write("older/tokenizer.json", "{}").parent_path();
  for (const auto& to : {older, c.folder, older / "tokenizer.json"}) {
    EXPECT_EQ(code_of([&] { save_model(c, to); }), errc::invalid_argument);
    EXPECT_THAT(message_of([&] { save_model(c, to); }),
                AllOf(HasSubstr(to.string()), HasSubstr("expected a folder that is empty or not there")));
  }
  EXPECT_FALSE(std::filesystem::exists(older / "model.kiln"));
  EXPECT_EQ(code_of([&] { save_model(c, older / "tokenizer.json" / "below"); }), errc::io);
  config drafted = c;
  drafted.draft.emplace().filename = "model.safetensors";
  EXPECT_EQ(code_of([&] { save_model(drafted, folder.path() / "empty"); }), errc::unsupported);
  drafted.draft->filename = "none.kiln";
  EXPECT_EQ(code_of([&] { save_model(drafted, folder.path() / "empty"); }), errc::not_found);
  save_model(c, folder.path() / "empty");
  EXPECT_EQ(format_of(folder.path() / "empty/model.kiln"), model_format::kiln);
}

TEST(saved_models, of_more_than_texts_are_refused) {
  const test::temporary_folder folder;
  save_model(read_config(write_llama(folder)), folder.path() / "saved");
  const auto refusal = [&](const char* more) { return message_of([&] { load_path(folder.path() / "saved", more); }); };
  EXPECT_THAT(refusal(R"({"model": {"vision": {}}})"), HasSubstr("not supported: a model with a part 'vision'"));
  EXPECT_THAT(refusal(R"({"model": {"type": "whisper"}})"), HasSubstr("not supported: whisper"));
  EXPECT_THAT(message_of([&] { load_path(folder.path() / "llama", R"({"model": {"encoder": {}}})"); }),
              HasSubstr("not supported: a model with a part 'encoder'"));
}

// What the weights are stored as and compute in holds for a draft of weights, and not for one with a graph.
TEST(saved_models, and_graphs_are_drafts_of_models_whose_types_are_told) {
  const test::temporary_folder folder;
  const auto from = write_llama(folder);
  save_model(read_config(from), folder.path() / "saved");
  const auto with = [&](const std::filesystem::path& draft) {
    return R"({"model": {"weight_type": "int8", "compute_type": "f32", "draft": {"filename": ")" + draft.string() +
           R"("}}})";
  };
  for (const auto& draft : {folder.path() / "saved/model.kiln", from / "model.safetensors"}) {
    const auto model = load_path(from, with(draft));
    ASSERT_TRUE(model->draft());
    EXPECT_EQ(model->settings().weight_type, quantize::weight_type::int8);
    EXPECT_EQ(model->draft()->settings().weight_type.has_value(), draft.extension() == ".safetensors");
  }
  // the file is read, and is of another vocabulary
  EXPECT_THAT(message_of([&] { load_path(from, with(KILN_SOURCE_DIR "/examples/models/scripture/model.onnx")); }),
              HasSubstr("the draft model has a vocabulary of"));
}

}  // namespace
}  // namespace kiln::language::testing
