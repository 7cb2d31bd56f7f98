#include <gmock/gmock.h>

#include "generate/weights/gguf_form.hpp"
#include "kiln/generate/saved_model.hpp"
#include "kiln/generate/weights/model_files.hpp"
#include "quantize/message_of.hpp"

// Models of GGUF files in several parts.
namespace kiln::language::testing {
namespace {

using kiln::test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::filesystem::path part_name(std::size_t k) { return "tiny-0000" + std::to_string(k + 1) + "-of-00003.gguf"; }
gguf_writer tiny() { return gguf_of(tiny_llama(), "llama"); }
void write_parts(const test::temporary_folder& to, const gguf_writer& model) {
  const auto parts = model.parts(3);
  for (std::size_t k = 0; k < parts.size(); ++k) to.write(part_name(k), parts[k]);
}

TEST(gguf_parts, are_read_by_the_path_of_any_or_of_the_folder) {
  const test::temporary_folder whole, folder;
  const auto expected = logits_of(*load_path(whole.write("model.gguf", tiny().file())));
  write_parts(folder, tiny());
  EXPECT_EQ(read_config(folder.path()).decoder.filename, part_name(0));
  EXPECT_EQ(logits_of(*load_path(folder.path())), expected);
  EXPECT_EQ(logits_of(*load_path(folder / part_name(0))), expected);
  EXPECT_EQ(logits_of(*load_path(folder / part_name(2))), expected);
}

TEST(gguf_parts, go_with_a_model_as_its_draft) {
  const test::temporary_folder folder;
  write_parts(folder, tiny());
  folder.write("model.gguf", tiny().file());
  folder.write("genai_config.json", R"({"model": {"type": "llama", "decoder": {"filename": "model.gguf"},
    "draft": {"filename": "tiny-00001-of-00003.gguf"}}})");
  save_model(read_config(folder.path()), folder / "saved");
  for (std::size_t k = 0; k < 3; ++k) EXPECT_TRUE(std::filesystem::exists(folder / "saved" / part_name(k))) << k;
  EXPECT_TRUE(load_path(folder / "saved")->draft());
}

TEST(gguf_parts, are_named_by_five_digits) {
  EXPECT_THAT(gguf_parts("a/m-00002-of-00003.gguf"),
              ElementsAre("a/m-00001-of-00003.gguf", "a/m-00002-of-00003.gguf", "a/m-00003-of-00003.gguf"));
  for (const char* other : {"m.gguf", "-00001-of-00002.gguf", "m-00003-of-00002.gguf", "m-00000-of-00002.gguf",
                            "m-0001-of-00002.gguf", "m-00001_of-00002.gguf", "m-0000x-of-00002.gguf"})
    EXPECT_THAT(gguf_parts(other), ElementsAre(other));
}

TEST(gguf_parts, that_do_not_belong_together_are_refused) {
  const test::temporary_folder folder;
  const auto load = [&](std::size_t k) { return message_of([&] { gguf_file::load(folder / part_name(k)); }); };
  write_parts(folder, tiny());
  EXPECT_EQ(load(1), "no error");
  std::filesystem::remove(folder / part_name(1));
  EXPECT_THAT(load(2), HasSubstr("tiny-00002-of-00003.gguf: expected part 2 of the model's 3, found no file"));
  write_parts(folder, tiny());
  std::filesystem::remove(folder / part_name(0));
  EXPECT_THAT(message_of([&] { read_config(folder.path()); }),
              HasSubstr("tiny-00001-of-00003.gguf: expected part 1 of the model's 3, found no file"));
  write_parts(folder, tiny());
  std::filesystem::copy_file(folder / part_name(2), folder / part_name(1),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(load(0), HasSubstr("tiny-00002-of-00003.gguf: 'split.no': expected 1, as the file's name says, found 2"));
  folder.write(part_name(1), tiny().parts(4)[1]);
  EXPECT_THAT(load(0), HasSubstr("'split.count': expected 3, as the file's name says, found 4"));

  gguf_writer more = tiny();
  std::vector<float> values(4);
  more.tensor(tensor_of("further", {4}, values));
  write_parts(folder, tiny()), folder.write(part_name(2), more.parts(3)[2]);
  EXPECT_THAT(load(0), HasSubstr("'split.tensors.count': expected as many tensors as the parts have"));

  const std::string bytes = tiny().parts(3)[1];
  EXPECT_THAT(message_of([&] { gguf_file::load(folder.write("some.gguf", bytes)); }),
              HasSubstr("expected a name as NAME-00001-of-00003.gguf of a file that is one of 3"));
  const buffer alone = buffer::borrow(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  EXPECT_THAT(message_of([&] { gguf_file(alone, "bytes"); }, errc::unsupported),
              HasSubstr("found a part of 3, which are read by their path"));
}

}  // namespace
}  // namespace kiln::language::testing
