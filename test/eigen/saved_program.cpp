// Compiled programs in files: what is loaded computes the same bits, packs nothing, and is refused where it doesn't
// fit.
#include "eigen/saved_program.hpp"

#include <cstring>

#include "kiln/op/more.hpp"
#include "kiln/runtime/tuner.hpp"

namespace my {

struct doubled {
  float by = 2;
  template <class T> constexpr T operator()(T x) const { return x * static_cast<T>(by); }
};

}  // namespace my

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using saved_program = saved_program_files;

TEST_F(saved_program, a_network_computes_the_same_bits) { expect_same_again(network); }

TEST_F(saved_program, constants_of_many_sizes_and_types) {
  expect_same_again(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {40, 300});
        // packed and, as another operand, not; larger and smaller than what graphs always keep
        const value w = b.constant(weights({300, 300}));
        b.output(x.dot(w) + x.dot(w + 1.0f) * 0.5f, "twice");
        b.output(x.dot(b.constant(weights({300, 200}))).convert(dtype::f64), "wide");
        b.output(b.constant(weights({50000}, dtype::f16)).convert(dtype::f32), "constant");
        b.output(b.constant(weights({30000, 4})).gather(b.input("i", dtype::i64, {5}), 0), "rows");
      },
      {random_argument({dtype::f32, {40, 300}}, 1),
       argument::of<std::int64_t>({5}, std::vector<std::int64_t>{0, 29999, 7, 8, 9})});
}

TEST_F(saved_program, kernels_that_pack_in_other_ways) {
  expect_same_again([](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 8, 9, 9});
    b.output(b.add(op::deconvolution{.stride = {2, 2}}, x, b.constant(weights({8, 4, 3, 3}))), "larger");
    const value d = b.input("d", dtype::f64, {20, 30});
    b.output(d.dot(b.constant(weights({30, 40}, dtype::f64))), "double");
  });
}

TEST_F(saved_program, sizes_that_only_a_run_knows) {
  const auto make = [](builder& b) {
    const dimension n = dimension::symbol("n", 1, 64);
    const value x = b.input("x", dtype::f32, {n, 300});
    b.output(x.dot(b.constant(weights({300, 300}))).relu(), "y");
    b.output(x.reshape({n * 300}), "flat");
  };
  expect_same_again(make, {random_argument({dtype::f32, {5, 300}}, 1)});
  const executable again = load(file, eigen_target(), plain_options());
  EXPECT_EQ(again.inputs()[0].type.lens[0], dimension::symbol("n", 1, 64));
  EXPECT_EQ(to_string(again.outputs()[1].type), "f32[300*n]");
  const argument more = random_argument({dtype::f32, {64, 300}}, 2);
  EXPECT_TRUE(equal_values(again.run({&more, 1})[0], compile_eigen(make).run({&more, 1})[0]));
}

TEST_F(saved_program, a_tuned_program_keeps_its_choices) {
  compile_options options = plain_options();
  tuning_options tuning;
  tuning.file.clear();
  // the last candidate always wins
  double next = 1;
  tuning.seconds = [&](std::string_view, const std::function<void()>&) { return next *= 0.5; };
  options.tuning = std::make_shared<tuner>(tuning);
  expect_same_again(network, random_inputs(network), options);
}

TEST_F(saved_program, outputs_that_grow_in_place) {
  const auto make = [](builder& b) {
    const dimension past = dimension::symbol("past", 0, 100);
    const value before = b.input("past", dtype::f32, {2, past, 4});
    b.output(before.concat(b.input("x", dtype::f32, {2, 1, 4}), 1), "present");
  };
  compile_options options = plain_options();
  options.aliases = {{"present", "past"}};
  const executable exe = compile_eigen(make, options);
  save(exe, file);
  const executable again = load(file, eigen_target(), plain_options());
  const argument memory = random_argument({dtype::f32, {2, 8, 4}}, 3), x = random_argument({dtype::f32, {2, 1, 4}}, 4);
  const argument in[] = {leading_part(memory, {2, 3, 4}), x};
  const auto out = again.run(in);
  EXPECT_EQ(out[0].data(), memory.data());
  EXPECT_TRUE(equal_values(leading_part(memory, {2, 4, 4}), out[0]));
}

TEST_F(saved_program, a_users_op_is_found_by_its_table) {
  const auto make = [](builder& b) { b.output(b.add(my::doubled{3}, {b.input("x", dtype::f32, {4})}), "y"); };
  save(compile_eigen(make), file);
  const auto found = error_of([&] { load(file, eigen_target(), plain_options()); });
  EXPECT_EQ(found.first, errc::not_found);
  EXPECT_THAT(found.second, HasSubstr("doubled"));
  const executable again = load(file, eigen_target(), plain_options(), {{&table_of<my::doubled>()}, false});
  const float x[] = {1, 2, 3, 4};
  const argument in = argument::of<float>({4}, x);
  EXPECT_EQ(again.run({&in, 1})[0].as<float>()[3], 12);
}

TEST_F(saved_program, two_loads_share_the_constants) {
  save(compile_eigen(network), file);
  const executable one = load(file, eigen_target(), plain_options());
  save(one, folder / "again.kiln");  // what was loaded can be saved
  EXPECT_EQ(read_file(folder / "again.kiln"), bytes());
}

TEST_F(saved_program, it_says_what_it_is) {
  save(compile_eigen(network), file);
  EXPECT_TRUE(is_saved_program(file));
  const saved_program_info info = inspect(file);
  EXPECT_EQ(info.target, "eigen");
  EXPECT_EQ(info.format, eigen_target().binary_format());
  EXPECT_FALSE(info.has_source);
  EXPECT_EQ(info.inputs[0].name, "x");
  EXPECT_EQ(info.outputs[0].name, "classes");
  EXPECT_EQ(info.file_bytes, bytes().size());
  EXPECT_NE(info.options.size(), 0u);
  write("no program at all");
  EXPECT_FALSE(is_saved_program(file));
}

TEST_F(saved_program, another_target_needs_the_source) {
  builder b;
  network(b);
  const program source = b.finish();
  const executable exe = compile(source, eigen_target(), plain_options());
  save(exe, file);
  const auto found = error_of([&] { load(file, reference_target(), plain_options()); });
  EXPECT_EQ(found.first, errc::unsupported);
  EXPECT_THAT(found.second, AllOf(HasSubstr("target: expected reference, found eigen"), HasSubstr(file.string())));
  EXPECT_EQ(error_of([&] { load_program(file); }).first, errc::unsupported);
  save(exe, source, file);
  const executable again = load(file, reference_target(), plain_options());
  EXPECT_EQ(again.report().target, "reference");
  EXPECT_THAT(again.report().remarks, ::testing::Contains(HasSubstr("compiled anew from the source")));
  EXPECT_THAT(load(file, eigen_target(), plain_options()).report().passes, IsEmpty());
  const auto inputs = random_inputs(network);
  expect_close(again.run(inputs)[0], exe.run(inputs)[0], {1e-4, 1e-5});
}

// [save]
void save_and_load(const program& source, const target& t, const std::filesystem::path& file) {
  const executable exe = compile(source, t);
  save(exe, file);          // compiled
  save(source, file);       // the graph with its weights
  save(exe, source, file);  // both
  const executable again = load(file, t);
}
// [/save]

TEST_F(saved_program, the_last_save_counts) {
  builder b;
  network(b);
  save_and_load(b.finish(), eigen_target(), file);
  EXPECT_TRUE(inspect(file).has_source);
  EXPECT_EQ(inspect(file).target, "eigen");
}

TEST_F(saved_program, a_source_alone_is_compiled) {
  builder b;
  network(b);
  save(b.finish(), file);
  EXPECT_EQ(inspect(file).target, "");
  const auto inputs = random_inputs(network);
  const executable again = load(file, eigen_target(), plain_options());
  EXPECT_TRUE(equal_values(again.run(inputs)[0], compile_eigen(network).run(inputs)[0]));
  EXPECT_EQ(compile(load_program(file), eigen_target(), plain_options()).run(inputs).size(), 1u);
}

// ---- damage

TEST_F(saved_program, other_files_are_refused) {
  EXPECT_EQ(error_of([&] { load(folder / "none.kiln", eigen_target()); }).first, errc::not_found);
  EXPECT_EQ(error_of([&] { load(folder, eigen_target()); }).first, errc::io);
  for (const char* text : {"", "kiln", "\x93kiln\r\n\x1a"}) {
    write(text);
    const auto found = error_of([&] { load(file, eigen_target()); });
    EXPECT_EQ(found.first, errc::malformed);
    EXPECT_THAT(found.second, HasSubstr(file.string()));
  }
}

TEST_F(saved_program, a_file_of_another_format_says_how_to_make_one) {
  save(compile_eigen(network), file);
  std::string changed = bytes();
  changed[8] = 77;
  write(changed);
  const auto found = error_of([&] { load(file, eigen_target()); });
  EXPECT_EQ(found.first, errc::unsupported);
  EXPECT_THAT(found.second, AllOf(HasSubstr("format 1"), HasSubstr("found 77"), HasSubstr("save the program again")));
}

TEST_F(saved_program, cut_files_are_errors) {
  save(compile_eigen(network), file);
  const std::string whole = bytes();
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    write(whole.substr(0, random() % whole.size()));
    EXPECT_EQ(error_of([&] { load(file, eigen_target(), plain_options()); }).first, errc::malformed);
  }
}

TEST_F(saved_program, a_changed_byte_is_an_error_of_the_load_or_the_first_run) {
  builder b;
  network(b);
  save(compile_eigen(network), b.finish(), file);
  const std::string whole = bytes();
  const auto inputs = random_inputs(network);
  std::mt19937 random(5);
  std::size_t at_load = 0, at_run = 0;
  for (int i = 0; i < 400; ++i) {
    // the sections as often as the data
    const std::size_t at = i % 2 ? random() % whole.size() : random() % 8192;
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    write(changed);
    bool loaded = false;
    try {
      const executable exe = load(file, eigen_target(), plain_options());
      loaded = true;
      exe.run(inputs);
      ADD_FAILURE() << "byte " << at << " of " << whole.size();
    } catch (const error& e) {
      EXPECT_NE(e.code(), errc::internal) << e.what();
      ++(loaded ? at_run : at_load);
    }
    EXPECT_THROW(load(file, eigen_target(), plain_options(), {{}, true}), error);
  }
  EXPECT_GT(at_load, 50u);
  EXPECT_GT(at_run, 50u);
}

TEST_F(saved_program, a_run_of_damaged_constants_fails_each_time) {
  save(compile_eigen(network), file);
  std::string changed = bytes();
  changed[changed.size() - 100] ^= 4;
  write(changed);
  const executable exe = load(file, eigen_target(), plain_options());
  for (int i = 0; i < 2; ++i) {
    const auto found = error_of([&] { exe.run(random_inputs(network)); });
    EXPECT_EQ(found.first, errc::malformed);
    EXPECT_THAT(found.second, AllOf(HasSubstr("damaged"), HasSubstr(file.string())));
  }
}

TEST_F(saved_program, a_place_that_can_t_be_written_is_an_error_and_leaves_nothing) {
  const executable exe = compile_eigen(network);
  EXPECT_EQ(error_of([&] { save(exe, folder / "none" / "x.kiln"); }).first, errc::io);
  std::filesystem::create_directories(file / "below");
  EXPECT_EQ(error_of([&] { save(exe, file); }).first, errc::io);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

}  // namespace
}  // namespace kiln::testing
