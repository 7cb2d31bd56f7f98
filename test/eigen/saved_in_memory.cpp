// Saved programs without a file.
#include <cstring>

#include "eigen/saved_program.hpp"
#include "kiln/core/mapped_file.hpp"
#include "kiln/graph/print.hpp"

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using saved_in_memory = saved_program_files;

buffer buffer_of(const std::vector<std::byte>& bytes, std::size_t offset = 0) {
  buffer whole = buffer::allocate(bytes.size() + offset);
  std::memcpy(whole.data() + offset, bytes.data(), bytes.size());
  return buffer_part(whole, offset, bytes.size());
}

program source_of_network() {
  builder b;
  network(b);
  return b.finish();
}

TEST_F(saved_in_memory, the_bytes_are_those_of_a_file_and_run) {
  const program source = source_of_network();
  const executable exe = compile(source, eigen_target(), plain_options());
  save(exe, source, file);
  const std::vector<std::byte> bytes = save_to_bytes({&exe, &source});
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), read_file(file));
  EXPECT_TRUE(is_saved_program(std::span(bytes)));
  EXPECT_FALSE(is_saved_program(std::span(bytes).first(4)));
  const auto inputs = random_inputs(network);
  for (const std::size_t offset : {0u, 1u}) {  // aligned, and not
    const saved_bytes held{buffer_of(bytes, offset)};
    const executable again = load(held, eigen_target(), plain_options());
    EXPECT_TRUE(equal_values(again.run(inputs)[0], exe.run(inputs)[0]));
    EXPECT_EQ(inspect(held).file_bytes, bytes.size());
    EXPECT_EQ(print(load_program(held)), print(load_program(file)));
  }
}

TEST_F(saved_in_memory, notes_are_given_back) {
  const program source = source_of_network();
  const executable exe = compile(source, eigen_target(), plain_options());
  const std::vector<std::pair<std::string, std::string>> notes{{"made by", "a test"}, {"", ""}};
  save({&exe, nullptr, notes}, file);
  EXPECT_EQ(inspect(file).notes, notes);
  save({nullptr, &source, notes}, file);
  EXPECT_EQ(inspect(file).notes, notes);
  save(source, file);
  EXPECT_TRUE(inspect(file).notes.empty());
  EXPECT_EQ(error_of([&] { save(saved_parts{}, file); }).first, errc::invalid_argument);
}

TEST_F(saved_in_memory, damage_names_the_memory) {
  const program source = source_of_network();
  std::vector<std::byte> bytes = save_to_bytes({nullptr, &source});
  bytes.pop_back();
  const auto found = error_of([&] { load_program(saved_bytes{buffer_of(bytes), "the message"}); });
  EXPECT_EQ(found.first, errc::malformed);
  EXPECT_THAT(found.second, AllOf(HasSubstr("the message is damaged"), HasSubstr("bytes, found")));
  EXPECT_EQ(error_of([&] { load(saved_bytes{}, eigen_target()); }).first, errc::malformed);
}

}  // namespace
}  // namespace kiln::testing
