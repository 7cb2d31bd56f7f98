#include "kiln/core/raw_dimension.hpp"
#include "kiln/interface/c/impl/handles.hpp"

namespace kiln::c {

static_assert(KILN_MAX_RANK == max_rank);
static_assert(KILN_F32 == static_cast<int>(dtype::f32) && KILN_BOOL == static_cast<int>(dtype::boolean) &&
              KILN_F8E8M0 == static_cast<int>(dtype::f8e8m0) && KILN_U2 == static_cast<int>(dtype::u2) &&
              KILN_STRING == static_cast<int>(dtype::string) && KILN_C128 == static_cast<int>(dtype::c128) &&
              KILN_C128 + 1 == all_dtypes);

dtype checked_type(kiln_dtype type) {
  if (static_cast<unsigned>(type) >= all_dtypes)
    raise(fault::of(errc::invalid_argument, "an element type is one of kiln_dtype", "0 to 28", static_cast<int>(type)));
  return static_cast<dtype>(type);
}

namespace {

dims checked_list(std::size_t rank, const std::int64_t* values, const char* what) {
  if (rank > max_rank) raise(fault::of(errc::limit, "rank of a tensor", max_rank, rank));
  dims out;
  for (const std::int64_t v : given_array(values, rank, what)) out.push_back(v);
  return out;
}

}  // namespace

dims checked_lens(std::size_t rank, const std::int64_t* lens) {
  const dims out = checked_list(rank, lens, "lens");
  for (const dimension d : out)
    if (d.value() < 0) raise(fault::of(errc::invalid_argument, "an extent is not negative", 0, d));
  return out;
}

shape checked_shape(kiln_dtype type, std::size_t rank, const std::int64_t* lens, const std::int64_t* strides) {
  shape s(checked_type(type), checked_lens(rank, lens));
  if (strides) s.strides = checked_list(rank, strides, "strides");
  (void)s.bytes();  // raises where they don't fit into 64 bits
  return s;
}

void put_shape(const shape& s, kiln_dtype* type, std::size_t* rank, std::int64_t* lens) {
  put(type, s.type);
  put(rank, s.rank());
  for (std::size_t i = 0; lens && i < s.rank(); ++i) lens[i] = s.lens[i].raw();
}

}  // namespace kiln::c

using namespace kiln;
using namespace kiln::c;

const char* kiln_dtype_name(kiln_dtype type) {
  return static_cast<unsigned>(type) < all_dtypes ? to_string(static_cast<dtype>(type)).data() : nullptr;
}

size_t kiln_dtype_size(kiln_dtype type) {
  return static_cast<unsigned>(type) < all_dtypes ? size_of(static_cast<dtype>(type)) : 0;
}

int kiln_dim_is_symbolic(kiln_dim dim) { return !dimension::from_raw(dim).is_constant(); }

kiln_status kiln_dim_bounds(kiln_dim dim, int64_t* min, int64_t* max) {
  return guarded([&] {
    const dimension d = checked_dimension(dim);
    const std::int64_t least = d.min(), greatest = d.max();
    put(min, least);
    put(max, greatest);
  });
}

kiln_status kiln_dim_text(kiln_dim dim, char** text) {
  return guarded([&] {
    char*& out = given(text, "text");
    out = new_string(to_string(checked_dimension(dim)));
  });
}

kiln_status kiln_dim_symbol(const char* name, int64_t min, int64_t max, kiln_dim* dim) {
  return guarded([&] {
    kiln_dim& out = given(dim, "dim");
    const std::string_view symbol = not_null(name, "name");
    if (symbol.empty() || min < 0 || max < min)
      raise(errc::invalid_argument, "a symbol has a name and bounds with 0 <= min <= max: found '" +
                                        std::string(symbol) + "' in [" + std::to_string(min) + ", " +
                                        std::to_string(max) + "]");
    out = dimension::symbol(symbol, min, max).raw();
  });
}

kiln_status kiln_dim_combine(char op, kiln_dim a, kiln_dim b, kiln_dim* dim) {
  return guarded([&] {
    kiln_dim& out = given(dim, "dim");
    const dimension x = checked_dimension(a), y = checked_dimension(b);
    switch (op) {
      case '+': out = (x + y).raw(); return;
      case '-': out = (x - y).raw(); return;
      case '*': out = (x * y).raw(); return;
      case '/': out = (x / y).raw(); return;
      case '%': out = (x % y).raw(); return;
      default:
        raise(errc::invalid_argument,
              "an operation on extents is one of + - * / %: found '" + std::string(1, op) + "'");
    }
  });
}
