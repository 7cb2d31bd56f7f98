#include "kiln/runtime/impl/source_op/compiler.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/error.hpp"
#include "kiln/runtime/kept_files.hpp"

extern "C" char** environ;

namespace kiln::detail {
namespace {

namespace fs = std::filesystem;

// No flag changes values: products and sums are not contracted, only errno and floating-point traps are given up.
constexpr const char* flags[] = {
    "-std=c++20",         "-O3", "-fPIC", "-shared", "-w", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-fvisibility=hidden"};
constexpr std::size_t most_message = 4000;
constexpr std::size_t seal_bytes = 32;

std::string on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : std::string();
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file)) return file;
  }
  return {};
}

// A folder that is removed with this object.
class passing_folder {
 public:
  passing_folder() {
    std::string name = (fs::temp_directory_path() / "kiln-XXXXXX").string();
    if (!mkdtemp(name.data())) raise(errc::io, "a folder for compiled code is made: " + std::string(strerror(errno)));
    path = name;
  }
  passing_folder(const passing_folder&) = delete;
  passing_folder& operator=(const passing_folder&) = delete;
  ~passing_folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

std::string read_to_end(int from) {
  std::string out;
  char piece[4096];
  for (;;) {
    const ssize_t n = read(from, piece, sizeof piece);
    if (n > 0 && out.size() < most_message) out.append(piece, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) return out.substr(0, most_message);
  }
}

// Runs a command to its end. What it says on its standard outputs goes to `said`; the result tells whether it ended
// with 0.
bool run_command(const std::vector<std::string>& words, std::string& said) {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) raise(errc::io, "a pipe to the compiler opens: " + std::string(strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child = 0;
  const int failed = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (!failed) said = read_to_end(ends[0]);
  close(ends[0]);
  if (failed) raise(errc::io, "the compiler " + words[0] + " starts: " + strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string compiled(const std::string& source, std::vector<std::string> command) {
  const passing_folder folder;
  const fs::path text = folder.path / "op.cpp", object = folder.path / "op.so";
  if (!keep_file(text, source)) raise(errc::io, "the op's source is written to " + text.string());
  command.insert(command.end(), std::begin(flags), std::end(flags));
  command.insert(command.end(), {"-o", object.string(), text.string()});
  std::string said;
  if (!run_command(command, said))
    raise(errc::invalid_argument, "the op's source compiles: " + command[0] + " says\n" + said);
  return read_file(object);
}

// A loader maps a shortened object and crashes: what is kept ends with a digest of the rest, which loaders ignore.
std::string seal_of(std::string_view object) {
  digest d;
  d.add(object);
  return d.str();
}
bool sealed(std::string_view kept) {
  return kept.size() > seal_bytes &&
         seal_of(kept.substr(0, kept.size() - seal_bytes)) == kept.substr(kept.size() - seal_bytes);
}

std::string digest_of(const std::string& source, const std::vector<std::string>& command) {
  digest d;
  d.add(source);
  for (const std::string& word : command) d.add(word);
  for (const char* flag : flags) d.add(flag);
  std::error_code unknown;
  d.add(std::to_string(fs::last_write_time(command[0], unknown).time_since_epoch().count()));
  return d.str();
}

void* opened(const fs::path& object) {
  void* const handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) raise(errc::io, std::string("compiled code is loaded: ") + dlerror());
  return handle;
}

}  // namespace

std::vector<std::string> compiler_command(const std::string& given) {
  const char* const variable = std::getenv("CXX");
  const std::string wanted = !given.empty() ? given : variable ? variable : "";
  std::istringstream text(wanted);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  if (!words.empty()) {
    const std::string file = on_path(words[0]);
    if (file.empty())
      raise(errc::not_found, "an op's source needs a C++ compiler: found no program '" + words[0] + "'" +
                                 (given.empty() ? " ($CXX)" : ""));
    words[0] = file;
    return words;
  }
  for (const char* name : {"g++", "clang++", "c++"})
    if (const std::string file = on_path(name); !file.empty()) return {file};
  raise(errc::not_found, "an op's source needs a C++ compiler: $CXX names none, and PATH has no g++, clang++ or c++");
}

std::string code_digest(const std::string& source, const std::string& compiler) {
  return digest_of(source, compiler_command(compiler));
}

void* load_compiled(const std::string& source, const std::string& compiler, const fs::path& folder) {
  const std::vector<std::string> command = compiler_command(compiler);
  const fs::path kept = folder / (digest_of(source, command) + ".so");
  if (!folder.empty() && sealed(read_file(kept))) return opened(kept);
  std::string object = compiled(source, command);
  object += seal_of(object);
  if (!folder.empty() && keep_file(kept, object)) return opened(kept);
  const passing_folder own;  // nowhere to keep it: loaded code needs its file no more
  if (!keep_file(own.path / "op.so", object)) raise(errc::io, "compiled code is written to " + own.path.string());
  return opened(own.path / "op.so");
}

}  // namespace kiln::detail
