#include <fmt/format.h>

#include "json.hpp"
#include "kiln/op/ops.hpp"
#include "options.hpp"

namespace kiln::driver {

namespace {

// What `kiln ops` says of one op.
struct row {
  op_info info;
  std::string attributes;  ///< with their defaults, as programs print them
};

template <class... Ops> std::vector<row> rows(type_list<Ops...>) {
  const auto one = []<class Op>(type_tag<Op>) {
    text attributes;
    print_fields(Op{}, attributes);
    return row{info_of<Op>(), attributes.str()};
  };
  return {one(type_tag<Ops>{})...};
}

std::vector<std::string_view> names_of(dtype_set types) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < all_dtypes; ++i)
    if (const auto t = static_cast<dtype>(i); types.contains(t)) out.push_back(to_string(t));
  return out;
}

std::string inputs_of(const op_info& i) { return i.inputs < 0 ? "any" : std::to_string(i.inputs); }

}  // namespace

int ops(bool as_json) {
  const std::vector<row> all = rows(default_registry::types{});
  if (!as_json) {
    for (const row& r : all)
      fmt::print("{:20} {:12} {:>3} {}\n", r.info.name, to_string(r.info.kind), inputs_of(r.info), r.attributes);
    fmt::print("{} ops\n", all.size());
    return 0;
  }
  json listed = json::array();
  for (const row& r : all)
    listed.push_back({{"name", r.info.name},
                      {"kind", to_string(r.info.kind)},
                      {"inputs", r.info.inputs < 0 ? json(nullptr) : json(r.info.inputs)},
                      {"types", names_of(r.info.types)},
                      {"commutative", r.info.commutative},
                      {"pure", r.info.pure},
                      {"attributes", r.attributes}});
  print_json({{"ops", listed}});
  return 0;
}

}  // namespace kiln::driver
