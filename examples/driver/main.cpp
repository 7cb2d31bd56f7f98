#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "command_line.hpp"
#include "json.hpp"
#include "kiln/core/error.hpp"

namespace {

using namespace kiln::driver;

constexpr int bad_input = 2;

// On standard error, and with --json as the one object on standard output.
int fail(bool as_json, std::string_view code, const std::string& message) {
  fmt::print(stderr, "kiln: error: {}\n", message);
  if (!as_json) return bad_input;
  try {
    print_json({{"error", {{"code", code}, {"message", message}}}});
  } catch (const std::exception&) {  // standard output is what failed
  }
  return bad_input;
}

}  // namespace

int main(int argc, char** argv) {
  // known before the rest of the line is, which may be wrong
  const bool as_json = std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--json"; });
  try {
    const int status = read_command_line(argc, argv)();
    end_output();
    return status;
  } catch (const kiln::error& e) {
    return fail(as_json, kiln::to_string(e.code()), e.what());
  } catch (const usage_error& e) {
    return fail(as_json, "usage", e.what());
  } catch (const std::bad_alloc&) {
    return fail(as_json, "limit exceeded", "out of memory");
  } catch (const std::exception& e) {
    return fail(as_json, "internal error", e.what());
  }
}
