#define PCRE2_CODE_UNIT_WIDTH 8
#include "kiln/text/impl/regex.hpp"

#include <pcre2.h>

#include <new>

#include "kiln/core/error.hpp"

namespace kiln::language::detail {

struct regex_memory::pcre2_parts {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, 16 << 20, nullptr);

  pcre2_parts() {
    if (data == nullptr || context == nullptr || stack == nullptr) throw std::bad_alloc();
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  pcre2_parts(const pcre2_parts&) = delete;
  pcre2_parts& operator=(const pcre2_parts&) = delete;
  ~pcre2_parts() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

regex_memory::regex_memory() : parts_(std::make_unique<pcre2_parts>()) {}
regex_memory::~regex_memory() = default;

struct regex::machine_code {
  ::pcre2_code* compiled = nullptr;
  bool jit = false;

  explicit machine_code(::pcre2_code* code) : compiled(code), jit(pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0) {}
  machine_code(const machine_code&) = delete;
  machine_code& operator=(const machine_code&) = delete;
  ~machine_code() { pcre2_code_free(compiled); }
};

regex::regex(std::string_view pattern) {
  constexpr std::size_t longest = 1 << 16;
  if (pattern.size() > longest)
    raise(errc::limit, "a regular expression of " + std::to_string(pattern.size()) + " bytes; at most 65536");
  const std::string translated = to_pcre2_syntax(pattern);
  int code = 0;
  PCRE2_SIZE at = 0;
  ::pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr);
  if (compiled == nullptr) {
    unsigned char text[256] = {};
    pcre2_get_error_message(code, text, sizeof text);
    raise(errc::malformed, "the regular expression \"" + std::string(pattern) + "\" is not understood, at \"" +
                               translated.substr(std::min(at, translated.size())) +
                               "\": " + reinterpret_cast<const char*>(text));
  }
  code_ = std::make_unique<machine_code>(compiled);
}
regex::~regex() = default;
regex::regex(regex&&) noexcept = default;

bool regex::find(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end,
                 regex_memory& memory) const {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto& m = *memory.parts_;
  const int found =
      code_->jit ? pcre2_jit_match(code_->compiled, subject, text.size(), from, 0, m.data, m.context)
                 : pcre2_match(code_->compiled, subject, text.size(), from, PCRE2_NO_UTF_CHECK, m.data, m.context);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) {
    unsigned char message[256] = {};
    pcre2_get_error_message(found, message, sizeof message);
    raise(errc::limit, "a regular expression fails on a text of " + std::to_string(text.size()) +
                           " bytes: " + reinterpret_cast<const char*>(message));
  }
  const PCRE2_SIZE* place = pcre2_get_ovector_pointer(m.data);
  begin = place[0];
  end = place[1];
  if (end < begin) end = begin;  // \K after a lookahead
  return true;
}

}  // namespace kiln::language::detail
