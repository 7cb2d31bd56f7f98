#include <algorithm>
#include <string>
#include <vector>

#include "kiln/onnx/impl/ops/common.hpp"

// Einsum as transposes, sums and matrix products of one pair of operands after the other.
namespace kiln::onnx {

namespace {

// A value whose dims are named by letters; dims of "..." are named '0', '1', … from the right.
struct term {
  value x;
  std::string labels;
};

bool holds(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// The labels of one term; the ellipsis stands for the dims that have no letter.
std::string expand(const node_context& c, const std::string& written, std::size_t rank) {
  const std::size_t dots = written.find("...");
  if (dots == std::string::npos) {
    if (written.size() != rank) c.malformed("term '" + written + "' does not have the operand's rank");
    return written;
  }
  const std::size_t named = written.size() - 3;
  if (named > rank || rank - named > 9) c.malformed("term '" + written + "' does not have the operand's rank");
  std::string hidden;
  for (std::size_t k = rank - named; k-- > 0;) hidden.push_back(static_cast<char>('0' + k));
  return written.substr(0, dots) + hidden + written.substr(dots + 3);
}

ints permutation_to(const std::string& from, const std::string& to) {
  ints p;
  for (const char label : to) p.push_back(static_cast<std::int64_t>(from.find(label)));
  return p;
}
term ordered(const term& t, const std::string& to) {
  return t.labels == to ? t : term{t.x.transpose(permutation_to(t.labels, to)), to};
}

// The elements with equal positions along two axes, in the place of the first: a step of n + 1 over both.
value diagonal(value x, std::int64_t a, std::int64_t b) {
  ints order;
  dims joined;
  const std::int64_t n = x.dim(a).value();
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(x.rank()); ++d) {
    if (d == b) continue;
    order.push_back(d);
    joined.push_back(d == a ? dimension(n * n) : x.dim(d));
    if (d == a) order.push_back(b);
  }
  if (b != a + 1) x = x.transpose(order);
  return x.reshape(joined).slice({{a}, {0}, {n * n}, {n + 1}});
}

// A repeated label selects the diagonal.
term without_repeats(node_context& c, term t) {
  for (std::size_t j = 1; j < t.labels.size(); ++j) {
    const std::size_t i = t.labels.find(t.labels[j]);
    if (i == j) continue;
    const dims& lens = t.x.get_shape().lens;
    const auto square = same(lens[i], lens[j]);
    if (square && !*square)
      c.malformed("label '" + std::string(1, t.labels[j]) + "' stands for extents of " + kiln::to_string(lens[i]) +
                  " and " + kiln::to_string(lens[j]) + " of one operand");
    if (!square) {  // the run compares them
      dims equal = lens;
      equal[j] = lens[i];
      t.x = t.x.expect_dims(equal);
    }
    const auto a = static_cast<std::int64_t>(i), b = static_cast<std::int64_t>(j);
    if (t.x.dim(a).is_constant() && t.x.dim(b).is_constant()) {
      t.x = diagonal(t.x, a, b);
      t.labels.erase(j--, 1);
      continue;
    }
    const value row = indices_along(c, t.labels.size(), a, t.x.dim(a)),
                column = indices_along(c, t.labels.size(), b, t.x.dim(b));
    t.x = row.equal(column).where(t.x, c.build.scalar(t.x.type(), 0)).reduce_sum({b}).squeeze({b});
    t.labels.erase(j--, 1);
  }
  return t;
}

term without(const term& t, const std::string& kept) {
  ints summed;
  std::string left;
  for (std::size_t d = 0; d < t.labels.size(); ++d) {
    if (holds(kept, t.labels[d]))
      left.push_back(t.labels[d]);
    else
      summed.push_back(static_cast<std::int64_t>(d));
  }
  return summed.empty() ? t : term{t.x.reduce_sum(summed).squeeze(summed), left};
}

// The term with its extents of 1 broadcast to the other term's extents of the same labels.
term broadcast_like(const term& t, const term& other) {
  dims lens = t.x.get_shape().lens;
  for (std::size_t d = 0; d < lens.size(); ++d)
    if (const std::size_t at = other.labels.find(t.labels[d]); at != std::string::npos)
      if (lens[d] == dimension(1)) lens[d] = other.x.get_shape().lens[at];
  return {t.x.broadcast_to(lens), t.labels};
}

// Contracts two terms; `kept` are the labels that the result or later terms need.
term product(term a, term b, const std::string& kept) {
  a = without(a, kept + b.labels);
  b = broadcast_like(without(b, kept + a.labels), a);
  a = broadcast_like(a, b);
  std::string batch, summed, rows, columns;
  for (const char l : a.labels) (holds(b.labels, l) ? holds(kept, l) ? batch : summed : rows).push_back(l);
  for (const char l : b.labels)
    if (!holds(a.labels, l)) columns.push_back(l);
  if (summed.empty()) {
    // elementwise: both get every dim
    const std::string all = batch + rows + columns;
    const auto spread = [&](const term& t) {
      ints missing;
      std::string own;
      for (std::size_t d = 0; d < all.size(); ++d)
        if (holds(t.labels, all[d]))
          own.push_back(all[d]);
        else
          missing.push_back(static_cast<std::int64_t>(d));
      const value x = ordered(t, own).x;
      return missing.empty() ? x : x.unsqueeze(missing);
    };
    return {spread(a) * spread(b), all};
  }
  const auto extents = [](const term& t, const std::string& labels) {
    dims out;
    for (const char l : labels) out.push_back(t.x.get_shape().lens[t.labels.find(l)]);
    return out;
  };
  dims lens = extents(a, batch);
  const dimension n = kiln::product(lens);
  const value left = ordered(a, batch + rows + summed)
                         .x.reshape({n, kiln::product(extents(a, rows)), kiln::product(extents(a, summed))}),
              right = ordered(b, batch + summed + columns)
                          .x.reshape({n, kiln::product(extents(b, summed)), kiln::product(extents(b, columns))});
  for (const dimension d : extents(a, rows)) lens.push_back(d);
  for (const dimension d : extents(b, columns)) lens.push_back(d);
  return {left.dot(right).reshape(lens), batch + rows + columns};
}

variables import_einsum(node_context& c) {
  std::string equation;
  for (const char ch : c.text("equation", ""))
    if (ch != ' ') equation.push_back(ch);
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> written{""};
  for (const char ch : equation.substr(0, arrow)) {
    if (ch == ',')
      written.emplace_back();
    else if (ch == '.' || (ch | 0x20) >= 'a')
      written.back().push_back(ch);
    else
      c.malformed("the equation holds '" + std::string(1, ch) + "'");
  }
  if (written.size() != c.size()) c.malformed("the equation has a term for each input");
  std::vector<term> terms;
  std::string hidden, labels;
  for (std::size_t i = 0; i < written.size(); ++i) {
    terms.push_back({c.in(i), expand(c, written[i], c.in(i).rank())});
    for (const char l : terms.back().labels) {
      labels.push_back(l);
      if (l <= '9' && !holds(hidden, l)) hidden.push_back(l);
    }
    terms.back() = without_repeats(c, terms.back());
  }
  std::sort(hidden.rbegin(), hidden.rend());
  std::string result = hidden;
  if (arrow == std::string::npos) {
    // without an arrow: the ellipsis, then what stands once, by name
    std::string sorted = labels;
    std::sort(sorted.begin(), sorted.end());
    for (const char l : sorted)
      if (l > '9' && std::count(labels.begin(), labels.end(), l) == 1) result.push_back(l);
  } else {
    result = equation.substr(arrow + 2);
    if (const std::size_t dots = result.find("..."); dots != std::string::npos) result.replace(dots, 3, hidden);
  }
  for (const char l : result)
    if (!holds(labels, l) || std::count(result.begin(), result.end(), l) != 1)
      c.malformed("the result's term '" + result + "' does not fit the inputs'");
  term all = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    std::string kept = result;
    for (std::size_t k = i + 1; k < terms.size(); ++k) kept += terms[k].labels;
    all = product(all, terms[i], kept);
  }
  return {ordered(without(all, result), result).x};
}

}  // namespace

std::span<const op_importer> einsum_importers() {
  static constexpr op_importer table[] = {{"", "Einsum", 12, import_einsum}};
  return table;
}

}  // namespace kiln::onnx
