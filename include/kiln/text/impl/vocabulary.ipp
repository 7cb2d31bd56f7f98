#include <algorithm>
#include <bit>
#include <limits>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/vocabulary.hpp"

namespace kiln::language::detail {

namespace {
constexpr std::size_t fewest_slots = 64;
}

void vocabulary::reserve(std::size_t n) {
  places_.reserve(n);
  if (std::bit_ceil(n * 2) > slots_.size()) grow(std::bit_ceil(n * 2));
}

void vocabulary::grow(std::size_t slots) {
  slots_.assign(std::max(slots, fewest_slots), slot{});
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t id = 0; id < places_.size(); ++id) {
    if (!places_[id].known) continue;
    const std::uint64_t hash = hash_bytes((*this)[static_cast<token>(id)]);
    std::size_t at = hash & mask;
    while (slots_[at].id >= 0) at = (at + 1) & mask;
    slots_[at] = {static_cast<std::uint32_t>(hash >> 32), static_cast<token>(id)};
  }
}

bool vocabulary::put(std::string_view spelling, token id) {
  // holes cost memory: a file's numbers must bear some relation to their count
  if (id < 0 || static_cast<std::size_t>(id) > (std::size_t{1} << 22) + 64 * count_)
    raise(errc::limit, "token " + std::to_string(id) + ": a vocabulary's numbers are from 0 and near its size");
  if (pool_.size() + spelling.size() > std::numeric_limits<std::uint32_t>::max() / 2)
    raise(errc::limit, "a vocabulary's spellings take at most 2 GiB");
  if (contains(id) || find(spelling) >= 0) return false;
  if (slots_.size() < 2 * (count_ + 1)) grow(slots_.size() * 2);
  if (static_cast<std::size_t>(id) >= places_.size()) places_.resize(static_cast<std::size_t>(id) + 1);
  place& p = places_[static_cast<std::size_t>(id)];
  p.begin = static_cast<std::uint32_t>(pool_.size());
  p.size = static_cast<std::uint32_t>(spelling.size()) & 0x7FFFFFFFu;
  p.known = 1;
  pool_ += spelling;
  ++count_;
  const std::uint64_t hash = hash_bytes(spelling);
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at].id >= 0) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {static_cast<std::uint32_t>(hash >> 32), id};
  return true;
}

token vocabulary::find(std::string_view spelling) const {
  if (slots_.empty()) return -1;
  const std::uint64_t hash = hash_bytes(spelling);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & (slots_.size() - 1); slots_[at].id >= 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].tag == tag && (*this)[slots_[at].id] == spelling) return slots_[at].id;
  return -1;
}

}  // namespace kiln::language::detail
