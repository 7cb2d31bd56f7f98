#include "kiln/graph/op_attributes.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/core/edit_distance.hpp"
#include "kiln/graph/impl/every_own_op.hpp"

namespace kiln {
namespace detail {
namespace {

std::string text_of(const attribute_value& v) {
  return std::visit(
      [](const auto& x) -> std::string {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, bool>) {
          return x ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return "'" + x + "'";
        } else if constexpr (std::is_same_v<T, dimension>) {
          return to_string(x);
        } else if constexpr (std::is_same_v<T, std::vector<attribute_value>>) {
          std::string out = "[";
          for (std::size_t i = 0; i < x.size() && i < 8; ++i) out += (i ? ", " : "") + text_of(x[i]);
          return out + (x.size() > 8 ? ", ...]" : "]");
        } else {
          return std::to_string(x);
        }
      },
      v.is);
}

template <class... Ops> std::vector<op_row> rows_of(type_list<Ops...>) {
  std::vector<op_row> out;
  const auto append = [&]<class Op>(type_tag<Op>) {
    if constexpr (!control<Op> && !calling<Op>) out.push_back(op_row_of<Op>());
  };
  (append(type_tag<Ops>{}), ...);
  return out;
}

}  // namespace

void refuse_attribute(std::string_view op, std::string_view name, const std::vector<attribute_info>& known) {
  std::string all;
  for (const attribute_info& a : known) all.append(all.empty() ? "one of " : ", ").append(a.name);
  raise(errc::not_found, "an attribute of " + std::string(op) + ": expected " + (all.empty() ? "none" : all) +
                             ", found '" + std::string(name) + "'");
}

void refuse_attribute_value(std::string_view op, std::string_view name, std::string_view expected,
                            const attribute_value& found) {
  raise(errc::invalid_argument, "attribute " + std::string(name) + " of " + std::string(op) + ": expected " +
                                    (expected.empty() ? "what kiln alone sets" : std::string(expected)) + ", found " +
                                    text_of(found));
}

bool read_attribute(const attribute_value& from, bool& to) {
  const bool* const held = std::get_if<bool>(&from.is);
  if (held) to = *held;
  return held != nullptr;
}

bool read_attribute(const attribute_value& from, dtype& to) {
  const auto* const held = std::get_if<std::string>(&from.is);
  for (std::size_t i = 0; held && i < all_dtypes; ++i)
    if (to_string(static_cast<dtype>(i)) == *held) {
      to = static_cast<dtype>(i);
      return true;
    }
  return false;
}

bool read_attribute(const attribute_value& from, dimension& to) {
  if (const auto* const d = std::get_if<dimension>(&from.is)) return to = *d, true;
  if (const auto* const n = std::get_if<std::int64_t>(&from.is)) return to = *n, true;
  return false;
}

bool read_attribute(const attribute_value& from, std::int64_t& to, std::int64_t least, std::int64_t most) {
  std::int64_t n = 0;
  if (const auto* const held = std::get_if<std::int64_t>(&from.is))
    n = *held;
  else if (const auto* const d = std::get_if<dimension>(&from.is); d && d->is_constant())
    n = d->value();
  else
    return false;
  if (n < least || n > most) return false;
  to = n;
  return true;
}

bool read_attribute(const attribute_value& from, double& to) {
  if (const auto* const held = std::get_if<double>(&from.is)) return to = *held, true;
  if (const auto* const n = std::get_if<std::int64_t>(&from.is)) return to = static_cast<double>(*n), true;
  return false;
}

bool read_attribute(const attribute_value& from, std::string& to) {
  const auto* const held = std::get_if<std::string>(&from.is);
  if (held) to = *held;
  return held != nullptr;
}

}  // namespace detail

std::span<const op_row> op_rows() {
  static const std::vector<op_row> rows = [] {
    std::vector<op_row> all = detail::rows_of(default_registry::types{}),
                        more = detail::rows_of(detail::every_own_op{});
    all.insert(all.end(), more.begin(), more.end());
    std::sort(all.begin(), all.end(), [](const op_row& a, const op_row& b) { return a.table->name < b.table->name; });
    return all;
  }();
  return rows;
}

operation make_operation(std::string_view name, std::span<const named_attribute> attributes) {
  std::string_view nearest;
  std::size_t least = name.size() + 1;
  for (const op_row& row : op_rows()) {
    if (row.table->name == name) return row.make(attributes);
    const std::size_t d = edit_distance(name, row.table->name);
    if (d < least) least = d, nearest = row.table->name;
  }
  raise(errc::not_found, "an op by its name: found '" + std::string(name) + "'" +
                             (nearest.empty() ? "" : "; the nearest one is '" + std::string(nearest) + "'"));
}

}  // namespace kiln
