// fuzz_saved_program CASES SEED FILE...: damages saved programs (compiled for the CPU, with their source or without)
// and loads and runs them. Truncated files and changed bits are an error, or the same results where nothing reads the
// bits. For most cases checksums are made to fit again, so that what is behind them is reached: there any error of
// kiln's will do, and any result. Exits with 1 at the first case that ends otherwise; the case's file is left in the
// folder of temporary files.
#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <span>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/core/object.hpp"
#include "kiln/runtime/kept_files.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace {

using namespace kiln;
using generator = std::mt19937_64;

// docs/saved_programs.md: a header of 200 bytes with a table of sections, each with offset, size and checksum.
constexpr std::size_t file_bytes_at = 16, table_at = 24, entry_bytes = 24, sections = 7, header_checksum_at = 192;
constexpr std::size_t program_section = 1, decisions_section = 2, source_section = 3, data_section = 6;

std::uint64_t number_at(const std::string& file, std::size_t at) {
  std::uint64_t n = 0;
  std::memcpy(&n, file.data() + at, sizeof n);
  return n;
}
void put_number(std::string& file, std::size_t at, std::uint64_t n) { std::memcpy(file.data() + at, &n, sizeof n); }

// A file as its sections, which may grow and shrink.
struct parts {
  std::string header, section[sections];

  explicit parts(const std::string& file) : header(file.substr(0, table_at)) {
    for (std::size_t s = 0; s < sections; ++s) {
      const std::size_t entry = table_at + s * entry_bytes;
      section[s] = file.substr(number_at(file, entry), number_at(file, entry + 8));
    }
  }
  // The file with checksums that fit; those of the data too.
  std::string sealed() {
    constexpr std::size_t checksums_section = 5, chunk = 1 << 20, page = 4096;
    std::string sums;
    for (std::size_t at = 0; at < section[data_section].size(); at += chunk) {
      const std::uint64_t sum =
          XXH3_64bits(section[data_section].data() + at, std::min(chunk, section[data_section].size() - at));
      sums.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    }
    section[checksums_section] = sums;
    std::string file = header;
    file.resize(header_checksum_at + 8);
    for (std::size_t s = 0; s < sections; ++s) {
      if (s == data_section) file.resize((file.size() + page - 1) / page * page);
      const std::size_t entry = table_at + s * entry_bytes;
      put_number(file, entry, file.size());
      put_number(file, entry + 8, section[s].size());
      put_number(file, entry + 16, s == data_section ? 0 : XXH3_64bits(section[s].data(), section[s].size()));
      file += section[s];
    }
    put_number(file, file_bytes_at, file.size());
    put_number(file, header_checksum_at, XXH3_64bits(file.data(), header_checksum_at));
    return file;
  }
};

std::size_t below(generator& random, std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); }

// Changes the numbers of a section: operands, attributes, extents, counts, names.
void change_numbers(std::string& bytes, generator& random) {
  constexpr unsigned char telling[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 63, 64, 127, 128, 192, 255};
  for (std::size_t n = 1 + below(random, 4); n != 0 && !bytes.empty(); --n) {
    const std::size_t at = below(random, bytes.size());
    switch (below(random, 8)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] + 1); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] - 1); break;
      case 2: bytes[at] = static_cast<char>(random()); break;
      case 3: bytes.erase(at, 1 + below(random, 8)); break;
      case 4: bytes.insert(at, bytes.substr(below(random, bytes.size()), 1 + below(random, 32))); break;
      case 5: std::swap(bytes[at], bytes[below(random, bytes.size())]); break;
      default: bytes[at] = static_cast<char>(telling[below(random, sizeof telling)]); break;
    }
  }
}

enum class damage { cut, bits, sealed_bits, numbers, decisions, source };
constexpr std::size_t damages = 6;

std::string damaged(const std::string& whole, damage how, generator& random) {
  if (how == damage::cut) return whole.substr(0, below(random, whole.size()));
  const auto flip = [&](std::string& bytes) {
    for (std::size_t n = 1 + below(random, 8); n != 0 && !bytes.empty(); --n)
      bytes[below(random, bytes.size())] ^= static_cast<char>(1 << below(random, 8));
  };
  if (how == damage::bits) {
    std::string changed = whole;
    flip(changed);
    return changed;
  }
  parts p(whole);
  if (how == damage::sealed_bits) flip(p.section[below(random, sections)]);
  if (how == damage::numbers) change_numbers(p.section[program_section], random);
  if (how == damage::decisions) change_numbers(p.section[decisions_section], random);
  if (how == damage::source) change_numbers(p.section[source_section], random);
  return p.sealed();
}

argument some_values(const shape& s) {
  argument a(s);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    visit_compute(s.type, [&]<class T>(type_tag<T>) {
      const T x = static_cast<T>(i % 7);
      encode(s.type, &x, a.data() + static_cast<std::size_t>(i) * size_of(s.type), 1);
    });
  return a;
}

// Results for inputs that depend on nothing but the program; sizes that are open are 2.
std::vector<argument> results_of(const executable& exe) {
  constexpr std::int64_t most_bytes = 1 << 26;
  std::vector<argument> in;
  for (const port& p : exe.inputs()) {
    shape s(p.type.type, {});
    for (const dimension d : p.type.lens) s.lens.push_back(d.is_constant() ? d : dimension(2));
    if (is_object(s.type) || s.bytes().value() > most_bytes) raise(errc::limit, "inputs that are made for a test");
    in.push_back(some_values(s));
  }
  return exe.run(in);
}

bool same(const std::vector<argument>& a, const std::vector<argument>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!equal_values(a[k], b[k])) return false;
  return true;
}

struct outcome {
  std::string what;  // "results", or where it was refused
  bool allowed = true;
};

class fuzzer {
 public:
  explicit fuzzer(std::span<char* const> files)
      : file_((std::filesystem::temp_directory_path() / ("fuzz_saved_program." + std::to_string(::getpid()) + ".kiln"))
                  .string()) {
    options_.pool = std::make_shared<thread_pool>(1);
    for (const char* name : files) {
      seeds_.push_back(read_file(name));
      if (seeds_.back().empty()) raise(errc::not_found, name);
      expected_.push_back(results_of(load(name, target_, options_)));
    }
  }
  ~fuzzer() {
    if (!failed_) ::unlink(file_.c_str());
  }
  void run(std::size_t cases, std::uint64_t seed) {
    for (std::size_t i = 0; i < cases && !failed_; ++i) run_case(i, seed);
    for (const auto& [what, count] : counts_) fmt::print("{:7} {}\n", count, what);
  }
  bool failed() const { return failed_; }

 private:
  void run_case(std::size_t i, std::uint64_t seed) {
    generator random(seed * 1'000'003 + i);
    const std::size_t k = i % seeds_.size();
    const auto how = static_cast<damage>(i / seeds_.size() % damages);
    std::ofstream(file_, std::ios::binary) << damaged(seeds_[k], how, random);
    constexpr const char* names[] = {"cut", "bits", "sealed bits", "numbers", "decisions", "source"};
    const outcome o = try_it(how, k, random);
    ++counts_[std::string(names[static_cast<int>(how)]) + ": " + o.what];
    if (o.allowed) return;
    failed_ = true;
    fmt::print("FAILED case {} of seed {}, {}: {}; its file is {}\n", i, seed, names[static_cast<int>(how)], o.what,
               file_);
  }
  outcome try_it(damage how, std::size_t k, generator& random) {
    const bool sealed = how != damage::cut && how != damage::bits;
    std::string at = "at the load";
    try {
      if (how == damage::source) {
        const program source = load_program(file_);
        at = "by the compiler";
        compile_options quick = options_;
        quick.passes.fuse = below(random, 2) == 1;
        const executable exe = compile(source, reference_, quick);
        at = "by the run";
        results_of(exe);
        return {"results"};
      }
      const executable exe = load(file_, target_, options_, {{}, below(random, 2) == 1});
      at = "by the run";
      const std::vector<argument> found = results_of(exe);
      return {"results", sealed || same(found, expected_[k])};
    } catch (const error& e) {
      if (e.code() == errc::internal) return {std::string("an internal error: ") + e.what(), false};
      return {"refused " + at};
    } catch (const std::exception& e) {
      return {std::string("an exception that is not kiln's: ") + e.what(), false};
    }
  }

  const eigen_target target_;
  const reference_target reference_;
  compile_options options_;
  std::vector<std::string> seeds_;
  std::vector<std::vector<argument>> expected_;
  std::map<std::string, std::size_t> counts_;
  std::string file_;
  bool failed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print("usage: fuzz_saved_program CASES SEED FILE...\n");
    return 2;
  }
  fuzzer f(std::span<char* const>(argv + 3, argv + argc));
  f.run(std::stoull(argv[1]), std::stoull(argv[2]));
  return f.failed() ? 1 : 0;
}
