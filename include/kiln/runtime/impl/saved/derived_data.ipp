#include "kiln/runtime/derived_data.hpp"

#include <vector>

#include "kiln/core/error.hpp"
#include "kiln/runtime/kept_code.hpp"

namespace kiln {

struct derived_data::body {
  std::vector<std::int64_t> decisions;
  std::vector<buffer> blocks;
  bool replays = false;
  std::size_t next_decision = 0, next_block = 0;
  std::shared_ptr<kept_code> code = std::make_shared<kept_code>();
};

namespace {
[[noreturn]] void misfit() {
  raise(errc::malformed, "a saved program's decisions and packed constants are those of its kernels: these are not");
}
}  // namespace

derived_data::derived_data() : body_(std::make_unique<body>()) {}
derived_data::derived_data(std::span<const std::int64_t> decisions, std::span<const buffer> blocks) : derived_data() {
  body_->decisions.assign(decisions.begin(), decisions.end());
  body_->blocks.assign(blocks.begin(), blocks.end());
  body_->replays = true;
}
derived_data::~derived_data() = default;
derived_data::derived_data(derived_data&& other) noexcept = default;
derived_data& derived_data::operator=(derived_data&& other) noexcept = default;

std::span<const std::int64_t> derived_data::decisions() const { return body_->decisions; }
std::span<const buffer> derived_data::blocks() const { return body_->blocks; }
bool derived_data::replays() const { return body_->replays; }
std::shared_ptr<kept_code> derived_data::code() const { return body_->code; }

void derived_data::append(derived_data&& other) {
  for (const std::int64_t d : other.body_->decisions) body_->decisions.push_back(d);
  for (buffer& b : other.body_->blocks) body_->blocks.push_back(std::move(b));
  for (const auto& [key, code] : other.body_->code->entries()) body_->code->keep(key, code);
}

std::int64_t derived_data::kept(std::int64_t decision) { return body_->decisions.emplace_back(decision); }
buffer derived_data::kept(buffer block) { return body_->blocks.emplace_back(std::move(block)); }

std::int64_t derived_data::taken_decision(std::int64_t end) {
  if (body_->next_decision == body_->decisions.size()) misfit();
  const std::int64_t d = body_->decisions[body_->next_decision++];
  if (d < 0 || d >= end) misfit();
  return d;
}
buffer derived_data::taken_block(std::size_t bytes) {
  if (body_->next_block == body_->blocks.size() || body_->blocks[body_->next_block].size() != bytes) misfit();
  return body_->blocks[body_->next_block++];
}

std::optional<std::string> kept_code::find(std::string_view key) const {
  const std::lock_guard guard(lock_);
  const auto at = entries_.find(key);
  return at == entries_.end() ? std::nullopt : std::optional(at->second);
}
void kept_code::keep(std::string_view key, std::string_view code) {
  const std::lock_guard guard(lock_);
  entries_.emplace(key, code);
}
std::map<std::string, std::string, std::less<>> kept_code::entries() const {
  const std::lock_guard guard(lock_);
  return entries_;
}

}  // namespace kiln
