#include "kiln/text/impl/guidance/json_numbers.hpp"

#include <string>

namespace kiln::language::guidance {

namespace {

using node = automaton::node;
using whole = std::uint64_t;

class numbers {
 public:
  numbers(automaton& a, bool is_whole) : a_(a), is_whole_(is_whole) {}

  // Magnitudes from `low` to `high` (none: all after it).
  void magnitudes(node from, node to, whole low, bool low_is_in, std::optional<whole> high, bool high_is_in) {
    if (high && (*high < low || (*high == low && !(low_is_in && high_is_in)))) return;
    const node digits = a_.add_place();
    if (is_whole_) {
      integers(from, to, low_is_in ? low : low + 1, high ? std::optional(high_is_in ? *high : *high - 1) : high);
      return;
    }
    // whole parts after which any fraction may come
    const whole first = low_is_in ? low : low + 1;
    if (!high || *high > first) integers(from, digits, first, high ? std::optional(*high - 1) : high);
    a_.add_free(digits, to);
    a_.add_free(some_digits(text(digits, ".")), to);
    if (!low_is_in) {  // low, and a fraction that is not 0
      const node zeros = text(exact(from, low), "."), more = a_.add_place();
      edge(zeros, zeros, '0', '0');
      edge(zeros, more, '1', '9');
      edge(more, more, '0', '9');
      a_.add_free(more, to);
    }
    if (high && high_is_in) {
      const node end = exact(from, *high);
      a_.add_free(end, to);
      const node zero = text(text(end, "."), "0");
      edge(zero, zero, '0', '0');
      a_.add_free(zero, to);
    }
  }

  node text(node from, const std::string& bytes) {
    for (const char c : bytes) {
      const node to = a_.add_place();
      edge(from, to, c, c);
      from = to;
    }
    return from;
  }

 private:
  void edge(node from, node to, char low, char high) {
    a_.places[from].edges.push_back({static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), to});
  }
  node exact(node from, whole n) { return text(from, std::to_string(n)); }
  node some_digits(node from) {
    const node to = a_.add_place();
    edge(from, to, '0', '9');
    edge(to, to, '0', '9');
    return to;
  }

  void integers(node from, node to, whole low, std::optional<whole> high) {
    const std::string first = std::to_string(low);
    const std::size_t last = high ? std::to_string(*high).size() : first.size();
    for (std::size_t n = first.size(); n <= last; ++n) {
      const std::string least = n == first.size() ? first : "1" + std::string(n - 1, '0');
      const std::string most = high && n == last ? std::to_string(*high) : std::string(n, '9');
      if (least <= most) between(from, to, least, most);
    }
    if (high) return;
    node longer = a_.add_place();
    edge(from, longer, '1', '9');
    for (std::size_t n = 0; n < first.size(); ++n) {
      const node next = a_.add_place();
      edge(longer, next, '0', '9');
      longer = next;
    }
    edge(longer, longer, '0', '9');
    a_.add_free(longer, to);
  }
  // Numbers of as many digits as both ends.
  void between(node from, node to, const std::string& low, const std::string& high) {
    if (low.empty()) return a_.add_free(from, to);
    const auto rest = [&](char first_digit, char last_digit, const std::string& a, const std::string& b) {
      const node next = a_.add_place();
      edge(from, next, first_digit, last_digit);
      between(next, to, a, b);
    };
    const std::size_t n = low.size() - 1;
    if (low.front() == high.front()) return rest(low.front(), low.front(), low.substr(1), high.substr(1));
    const std::string zeros(n, '0'), nines(n, '9');
    char first = low.front(), last = high.front();
    if (low.substr(1) != zeros) rest(first, first, low.substr(1), nines), ++first;
    if (high.substr(1) != nines) rest(last, last, zeros, high.substr(1)), --last;
    if (first <= last) any(from, to, first, last, n);
  }
  void any(node from, node to, char first, char last, std::size_t more) {
    node at = a_.add_place();
    edge(from, at, first, last);
    for (std::size_t k = 0; k < more; ++k) {
      const node next = a_.add_place();
      edge(at, next, '0', '9');
      at = next;
    }
    a_.add_free(at, to);
  }

  automaton& a_;
  bool is_whole_;
};

// Digits by what is left of the number so far.
node multiples(automaton& a, node from, std::int64_t of) {
  const auto edge = [&](node at, node to, std::int64_t digit) {
    const auto byte = static_cast<std::uint8_t>('0' + digit);
    a.places[at].edges.push_back({byte, byte, to});
  };
  const node begin = a.add_place(), minus = a.add_place(), end = a.add_place();
  a.add_free(from, begin);
  a.places[begin].edges.push_back({'-', '-', minus});
  std::vector<node> left;
  for (std::int64_t r = 0; r < of; ++r) left.push_back(a.add_place());
  edge(begin, end, 0);
  for (const node at : {begin, minus})
    for (std::int64_t d = 1; d <= 9; ++d) edge(at, left[static_cast<std::size_t>(d % of)], d);
  for (std::int64_t r = 0; r < of; ++r)
    for (std::int64_t d = 0; d <= 9; ++d)
      edge(left[static_cast<std::size_t>(r)], left[static_cast<std::size_t>((r * 10 + d) % of)], d);
  a.add_free(left[0], end);
  return end;
}

whole magnitude(std::int64_t n) { return n < 0 ? whole{0} - static_cast<whole>(n) : static_cast<whole>(n); }

}  // namespace

node add_numbers(automaton& a, node from, const number_bounds& b) {
  if (b.multiple != 1) return multiples(a, from, b.multiple);
  numbers n(a, b.is_whole);
  const node begin = a.add_place(), to = a.add_place();
  a.add_free(from, begin);
  const auto least = b.least, most = b.most;
  if (!most || most->at >= 0) {
    const bool from_zero = !least || least->at < 0;
    n.magnitudes(begin, to, from_zero ? 0 : magnitude(least->at), from_zero || least->is_in,
                 most ? std::optional(magnitude(most->at)) : std::nullopt, most && most->is_in);
  }
  if (!least || least->at < 0) {
    const bool to_zero = !most || most->at >= 0;
    n.magnitudes(n.text(begin, "-"), to, to_zero ? 0 : magnitude(most->at), !to_zero && most->is_in,
                 least ? std::optional(magnitude(least->at)) : std::nullopt, least && least->is_in);
  }
  return to;
}

}  // namespace kiln::language::guidance
