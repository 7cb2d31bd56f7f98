#include "kiln/op/impl/pattern.hpp"

#include "kiln/core/error.hpp"
#if KILN_RE2
#include <re2/re2.h>
#else
#include <regex>
#endif

namespace kiln::op::detail {

namespace {

[[noreturn]] void refuse(const std::string& pattern, const std::string& why) {
  raise(errc::unsupported, "a pattern '" + pattern + "': " + why);
}

}  // namespace

#if KILN_RE2

struct text_pattern::engine {
  explicit engine(const std::string& pattern) : expression(pattern, RE2::CannedOptions::Quiet) {
    if (!expression.ok()) refuse(pattern, expression.error());
  }
  bool matches(const std::string& text) const { return RE2::FullMatch(text, expression); }
  RE2 expression;
};

#else

struct text_pattern::engine {
  explicit engine(const std::string& pattern) try
      // libstdc++'s breadth-first matcher: neither its time nor its stack explodes
      : expression(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial) {
  } catch (const std::regex_error& e) {
    refuse(pattern, std::string(e.what()) + " (kiln was built without RE2)");
  }
  bool matches(const std::string& text) const { return std::regex_match(text, expression); }
  std::regex expression;
};

#endif

text_pattern::text_pattern(const std::string& pattern) : engine_(std::make_unique<const engine>(pattern)) {}
text_pattern::~text_pattern() = default;
bool text_pattern::matches_all_of(const std::string& text) const { return engine_->matches(text); }

}  // namespace kiln::op::detail
