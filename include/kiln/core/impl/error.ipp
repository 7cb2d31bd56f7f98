#include "kiln/core/error.hpp"

namespace kiln {

error::error(const fault& f)
    : code_(f.code), message_(f.rule.view()), expected_(f.expected.view()), found_(f.found.view()) {
  compose();
}

error& error::at_op(std::string_view name) {
  if (op_.empty()) op_ = name, compose();
  return *this;
}
error& error::at_instruction(std::string_view name) {
  if (instruction_.empty()) instruction_ = name, compose();
  return *this;
}
error& error::at_source(std::string_view place) {
  if (source_.empty()) source_ = place, compose();
  return *this;
}

void error::compose() {
  whole_.assign(to_string(code_)).append(": ");
  if (!op_.empty()) whole_.append(op_).append(": ");
  whole_.append(message_);
  if (!expected_.empty() || !found_.empty())
    whole_.append(": expected ").append(expected_).append(", found ").append(found_);
  if (!instruction_.empty()) whole_.append(" (at ").append(instruction_).append(")");
  if (!source_.empty()) whole_.append(" (from ").append(source_).append(")");
}

void raise(const fault& f) { throw error(f); }
void raise(errc code, std::string message) { throw error(code, std::move(message)); }

}  // namespace kiln
