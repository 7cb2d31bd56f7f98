#include "kiln/backend/eigen/index.hpp"
#include "kiln/kernel/index/extreme.hpp"
#include "kiln/kernel/index/gather.hpp"
#include "kiln/kernel/index/scan.hpp"
#include "kiln/kernel/index/scatter.hpp"
#include "kiln/kernel/index/top.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

template <class T> struct element { using type = T; };
// Calls f with the type of elements; 16-bit floats and objects are not asked for.
template <class F> void with_element(dtype t, F&& f) {
  switch (t) {
    case dtype::f64: return f(element<double>());
    case dtype::f32: return f(element<float>());
    case dtype::i8: return f(element<std::int8_t>());
    case dtype::i16: return f(element<std::int16_t>());
    case dtype::i32: return f(element<std::int32_t>());
    case dtype::i64: return f(element<std::int64_t>());
    case dtype::u8:
    case dtype::boolean: return f(element<std::uint8_t>());
    case dtype::u16: return f(element<std::uint16_t>());
    case dtype::u32: return f(element<std::uint32_t>());
    case dtype::u64: return f(element<std::uint64_t>());
    default: return;
  }
}

// The same for types that are ordered, with 16-bit floats.
template <class F> void with_ordered(dtype t, F&& f) {
  if (t == dtype::f16) return f(element<upper_f16>());
  if (t == dtype::bf16) return f(element<upper_bf16>());
  with_element(t, f);
}

void scatter_of(const slice_updates& u, dtype type, op::scatter_mode mode) {
  using op::scatter_mode;
  if (mode == scatter_mode::none) return scatter_replace(u, size_of(type));
  if (type == dtype::boolean)  // or, and
    mode = mode == scatter_mode::add || mode == scatter_mode::max ? scatter_mode::max : scatter_mode::min;
  with_element(type, [&]<class T>(element<T>) { scatter_combine<T>(u, mode); });
}

// Sums and products of signed integers are those of unsigned ones.
dtype unsigned_of(dtype t) {
  switch (t) {
    case dtype::i8: return dtype::u8;
    case dtype::i16: return dtype::u16;
    case dtype::i32: return dtype::u32;
    case dtype::i64: return dtype::u64;
    default: return t;
  }
}
void scan_of(thread_pool& pool, const scan_problem& p, dtype type, bool product) {
  with_element(unsigned_of(type), [&]<class T>(element<T>) {
    if constexpr (!std::is_integral_v<T> || std::is_unsigned_v<T>) {
      if (product)
        scan<T, running_product>(p).run(pool);
      else
        scan<T, running_sum>(p).run(pool);
    }
  });
}

std::size_t top_scratch(const top_problem& p, dtype type, unsigned threads) {
  return size_of(type) == 8 ? top<std::uint64_t>::scratch_bytes(p, threads)
                            : top<std::uint32_t>::scratch_bytes(p, threads);
}
void top_of(thread_pool& pool, const top_problem& p, dtype type, std::byte* scratch) {
  key_maker<std::uint64_t> wide = nullptr;
  key_maker<std::uint32_t> narrow = nullptr;
  with_ordered(type, [&]<class T>(element<T>) {
    if constexpr (sizeof(T) == 8)
      wide = make_keys<T>;
    else
      narrow = make_keys<T>;
  });
  if (wide)
    top<std::uint64_t>(p, size_of(type), wide, scratch).run(pool);
  else
    top<std::uint32_t>(p, size_of(type), narrow, scratch).run(pool);
}

void extremes_of(thread_pool& pool, const extreme_problem& p, dtype type) {
  with_ordered(type, [&]<class T>(element<T>) {
    if (p.last)
      extremes<T, true>(p).run(pool);
    else
      extremes<T, false>(p).run(pool);
  });
}

constexpr index_table table{
    .places = [](const index_list& list, std::int64_t first, std::int64_t n, std::int64_t extent, std::int64_t step,
                 std::int64_t* to) { return places(list, first, n, extent, step, to); },
    .gather_slices = gather_slices,
    .element_positions = element_positions,
    .scatter = scatter_of,
    .scan = scan_of,
    .top_scratch = top_scratch,
    .top = top_of,
    .extremes = extremes_of,
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const index_table* kiln_eigen_index() { return &table; }

}  // namespace kiln::eigen
