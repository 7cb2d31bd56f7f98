#pragma once
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "peer/one_node.hpp"
#include "peer/plugin.hpp"
#include "runtime/compare.hpp"
#include "support/temporary_folder.hpp"

/// The stock ONNX Runtime with the plugin, and what the plugin says in its log: one for the whole process, since ONNX
/// Runtime has one log.
namespace kiln::peer {

/// Lines of the plugin's since the last call.
inline std::vector<std::string>& ep_lines() {
  static std::vector<std::string> lines;
  return lines;
}

inline const plugin_host& ep_host() {
  static const plugin_host* const host =
      new plugin_host([](void*, ort::severity, const char*, const char*, const char*, const char* message) {
        static std::mutex guard;
        const std::lock_guard lock(guard);
        if (std::string_view(message).starts_with("kiln: ")) ep_lines().emplace_back(message);
      });
  return *host;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& l : lines) out += l + "\n";
  return out;
}

/// What the log says while a session is made.
struct logged_session {
  logged_session(const message& model, const text_pairs& options, const text_pairs& entries = {})
      : logged_session([&] { return new plugin_session(ep_host(), model.bytes(), options, entries); }) {}
  template <class Make> explicit logged_session(Make&& make) {
    ep_lines().clear();
    of.reset(make());
    log = joined(ep_lines());
  }
  std::unique_ptr<plugin_session> of;
  std::string log;
};

/// The error of a session with these options; empty where there is none.
inline std::string ep_fault(const message& model, const text_pairs& options) {
  try {
    const plugin_session made(ep_host(), model.bytes(), options);
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

/// An environment variable for as long as it lives.
class variable {
 public:
  variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~variable() { ::unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
};

/// y = relu(erf(x w + b)) of any number of rows of three; `scale` of the weights.
inline message ep_dense(float scale = .25f, int opset = 17) {
  std::vector<float> w(12), b{.5f, -.25f, .125f, 0};
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i) * scale - 1;
  return test::model(test::graph({{test::node("MatMul", {"x", "w"}, {"p"}), test::node("Add", {"p", "b"}, {"s"}),
                                   test::node("Erf", {"s"}, {"e"}), test::node("Relu", {"e"}, {"y"})},
                                  {test::floats("w", {3, 4}, w), test::floats("b", {4}, b)},
                                  {test::value_info("x", f32, {"rows", 3})},
                                  {test::value_info("y", f32, {"rows", 4})}}),
                     {test::opset(opset)});
}

inline std::map<std::string, argument> ep_rows(std::int64_t n, unsigned seed = 3) {
  return {{"x", testing::random_argument({dtype::f32, {n, 3}}, seed)}};
}

inline std::vector<float> floats_of(const plugin_session& s, const std::map<std::string, argument>& given) {
  const auto found = s.run(given).front().to<float>();
  return {found.begin(), found.end()};
}

inline std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ep_test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library()) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
    ep_host();
  }
};

}  // namespace kiln::peer
