#include <algorithm>

#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/core/literal.hpp"
#include "kiln/core/visit_size.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/random/random_uniform.hpp"
#include "kiln/runtime/thread_pool.hpp"

// Ops that copy parts of rows, of any dtype, and fill the rest, numbered rows, random numbers, and
// filters: pad, triangles, iota, random_uniform and mel_weights.
namespace kiln::eigen {
namespace {

// Rows of a task: about 64 KiB.
std::int64_t rows_of_task(std::size_t row_bytes) {
  return std::max<std::int64_t>(1, 65536 / static_cast<std::int64_t>(row_bytes + 64));
}

class pad_kernel final : public kernel {
 public:
  explicit pad_kernel(const op::pad& attributes) : attributes_(attributes) {
    for (const dimension d : attributes.pads) pads_.push_back(d.value());
  }
  std::string name() const override { return std::string("pad ") + std::string(to_string(attributes_.mode)); }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    const std::size_t rank = y.rank();
    ints x_step(rank, 1), kept(rank, 0);
    for (std::size_t d = rank; d-- > 1;) x_step[d - 1] = x_step[d] * x.lens[d];
    for (std::size_t d = 0; d < rank; ++d) {
      kept[d] = x.lens[d] + std::min<std::int64_t>(pads_[d], 0) + std::min<std::int64_t>(pads_[rank + d], 0);
      if (attributes_.mode != op::pad_mode::constant && kept[d] == 0)
        raise(fault::of(errc::shape_mismatch, "a padded extent has an element to repeat", "at least 1", kept[d]));
    }
    visit_size(size_of(y.type), [&]<class T>(T) { pad_rows<T>(l, x_step, kept); });
  }

 private:
  template <class T> void pad_rows(const launch& l, const ints& x_step, const ints& kept) const {
    const tensor &x = l.in[0], &y = l.out[0];
    const std::size_t inner = y.rank() - 1;
    const T value = l.in.size() > 1 ? l.in[1].as<const T>()[0] : T(0);
    const std::int64_t width = y.lens[inner], rows = y.elements() / width;
    const std::int64_t before = std::clamp<std::int64_t>(pads_[inner], 0, width),
                       cropped = std::max<std::int64_t>(-pads_[inner], 0),
                       whole = std::clamp<std::int64_t>(kept[inner], 0, width - before);
    // which element of the row each one before and after the copied ones repeats, or -1 for the constant
    std::vector<std::int64_t> around;
    for (std::int64_t i = 0; i < width; ++i) {
      if (i == before) i += whole;
      if (i < width) around.push_back(attributes_.source(i - before, kept[inner]));
    }
    const std::int64_t each = rows_of_task(static_cast<std::size_t>(width) * sizeof(T));
    l.pool->parallel_for((rows + each - 1) / each, [&](std::int64_t task, unsigned) {
      // where the row lies in each dim, and which row of x it repeats
      ints at(inner, 0);
      for (std::int64_t d = static_cast<std::int64_t>(inner), rest = task * each; d-- > 0;
           rest /= y.lens[static_cast<std::size_t>(d)])
        at[static_cast<std::size_t>(d)] = rest % y.lens[static_cast<std::size_t>(d)];
      for (std::int64_t row = task * each; row < std::min(rows, (task + 1) * each); ++row) {
        T* const to = y.as<T>() + row * width;
        std::int64_t from = 0;
        bool inside = kept[inner] > 0;
        for (std::size_t d = 0; d < inner; ++d) {
          std::int64_t i = at[d] - std::max<std::int64_t>(pads_[d], 0);
          if (i < 0 || i >= kept[d]) i = attributes_.source(i, kept[d]);
          inside = inside && i >= 0;
          from += (i + std::max<std::int64_t>(-pads_[d], 0)) * x_step[d];
        }
        for (std::size_t d = inner; d-- > 0;) {
          if (++at[d] < y.lens[d]) break;
          at[d] = 0;
        }
        if (!inside) {
          std::fill_n(to, width, value);
          continue;
        }
        const T* const row_from = x.as<const T>() + from + cropped;
        std::memcpy(to + before, row_from, static_cast<std::size_t>(whole) * sizeof(T));
        for (std::int64_t i = 0; i < before; ++i) to[i] = around[i] < 0 ? value : row_from[around[i]];
        for (std::int64_t i = before + whole; i < width; ++i)
          to[i] = around[i - whole] < 0 ? value : row_from[around[i - whole]];
      }
    });
  }
  op::pad attributes_;
  std::vector<std::int64_t> pads_;
};

class tri_kernel final : public kernel {
 public:
  explicit tri_kernel(const op::tri& attributes) : attributes_(attributes) {}
  std::string name() const override { return attributes_.upper ? "upper triangle" : "lower triangle"; }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    const std::int64_t m = y.lens[y.rank() - 2], n = y.lens[y.rank() - 1], rows = y.elements() / n;
    const std::size_t bytes = size_of(y.type);
    const std::int64_t each = rows_of_task(static_cast<std::size_t>(n) * bytes);
    l.pool->parallel_for((rows + each - 1) / each, [&](std::int64_t task, unsigned) {
      for (std::int64_t row = task * each; row < std::min(rows, (task + 1) * each); ++row) {
        // columns before `cut` are below the diagonal; the diagonal is among them where the lower triangle is kept
        const std::int64_t i = row % m, bound = std::clamp<std::int64_t>(attributes_.k, -m - 1, n + 1);
        const std::int64_t cut = std::clamp<std::int64_t>(i + bound + !attributes_.upper, 0, n);
        const auto head = static_cast<std::size_t>(cut) * bytes, all = static_cast<std::size_t>(n) * bytes;
        std::byte* const to = y.data + static_cast<std::size_t>(row) * all;
        const std::byte* const from = x.data + static_cast<std::size_t>(row) * all;
        if (attributes_.upper) {
          std::fill_n(to, head, std::byte{});
          std::copy(from + head, from + all, to + head);
        } else {
          std::copy_n(from, head, to);
          std::fill(to + head, to + all, std::byte{});
        }
      }
    });
  }

 private:
  op::tri attributes_;
};

// Every element's own index along an axis: rows of one number, or ascending ones.
class iota_kernel final : public kernel {
 public:
  explicit iota_kernel(const op::iota& attributes) : attributes_(attributes) {}
  std::string name() const override { return "iota"; }
  void run(const launch& l) const override {
    const tensor& y = l.out[0];
    if (y.elements() == 0) return;
    switch (y.type) {
      case dtype::f32: return write<float>(l);
      case dtype::f64: return write<double>(l);
      case dtype::i32: return write<std::int32_t>(l);
      default: return write<std::int64_t>(l);
    }
  }

 private:
  template <class T> void write(const launch& l) const {
    const tensor& y = l.out[0];
    const auto s = detail::split_at(y.lens, attributes_.axis);
    constexpr std::int64_t grain = 16384;
    const std::int64_t all = y.elements();
    l.pool->parallel_for((all + grain - 1) / grain, [&](std::int64_t task, unsigned) {
      T* const to = y.as<T>();
      for (std::int64_t i = task * grain, last = std::min(all, i + grain); i < last;) {
        const std::int64_t k = i / s.inner % s.extent;
        std::int64_t some = s.inner == 1 ? s.extent - k : s.inner - i % s.inner;
        some = std::min(some, last - i);
        if (s.inner == 1)
          for (std::int64_t j = 0; j < some; ++j) to[i + j] = static_cast<T>(k + j);
        else
          std::fill_n(to + i, some, static_cast<T>(k));
        i += some;
      }
    });
  }
  op::iota attributes_;
};

// Numbers of places, by blocks that threads share.
class random_kernel final : public kernel {
 public:
  explicit random_kernel(const op::random_uniform& attributes) : attributes_(attributes) {}
  std::string name() const override { return "random_uniform"; }
  void run(const launch& l) const override {
    if (l.out[0].type == dtype::f64)
      write<double>(l);
    else
      write<float>(l);
  }

 private:
  // Floats of 16 bits are rounded from f32.
  template <class T> void write(const launch& l) const {
    constexpr std::int64_t block = 2048;  // even: a counter makes two numbers
    const tensor& y = l.out[0];
    const std::int64_t all = y.elements();
    const uniform_range range = attributes_.range();
    l.pool->parallel_for((all + block - 1) / block, [&](std::int64_t task, unsigned) {
      T numbers[block];
      const std::int64_t first = task * block, count = std::min(block, all - first);
      for (std::int64_t k = 0; k < count; k += 2) {
        const philox drawn(static_cast<std::uint64_t>((first + k) / 2), attributes_.seed);
        for (int j = 0; j < 2; ++j) numbers[k + j] = static_cast<T>(range.at(drawn.number(j)));
      }
      encode(y.type, numbers, y.data + first * static_cast<std::int64_t>(size_of(y.type)), count);
    });
  }
  op::random_uniform attributes_;
};

// Filters over the bins of a spectrum: each thread writes some bins, zeros and the few weights among them.
class mel_kernel final : public kernel {
 public:
  explicit mel_kernel(const op::mel_weights& attributes) : attributes_(attributes) {}
  std::string name() const override { return "mel_weights"; }
  void run(const launch& l) const override {
    const auto number = [&](std::size_t i) {
      if (l.in[i].elements() != 1) raise(op::mel_weights::not_one(shape{l.in[i].type, to_dims(l.in[i].lens)}));
      double x = 0;
      decode(l.in[i].type, l.in[i].data, &x, 1);
      return x;
    };
    const tensor& y = l.out[0];
    const std::int64_t bins = y.lens[0], mels = y.lens[1];
    const dimension told = attributes_.length;
    const std::int64_t length = told.is_constant() ? told.value() : l.symbols->evaluate(told);
    const mel_filters filters(number(0), number(1), number(2), length, mels);
    if (!filters.fit()) raise(op::mel_weights::outside(length));
    if (y.elements() == 0) return;
    const std::int64_t each = rows_of_task(static_cast<std::size_t>(mels) * sizeof(float));
    l.pool->parallel_for((bins + each - 1) / each, [&](std::int64_t task, unsigned) {
      const std::int64_t first = task * each;
      filters.write(first, std::min(bins, first + each), y.as<float>() + first * mels);
    });
  }

 private:
  op::mel_weights attributes_;
};

}  // namespace

std::unique_ptr<kernel> lower_placement(const kernel_request& r) {
  if (const auto* const numbers = r.instruction.op.get_if<op::iota>()) {
    const dtype t = numbers->type;
    if (t != dtype::f32 && t != dtype::f64 && t != dtype::i32 && t != dtype::i64) return nullptr;
    return std::make_unique<iota_kernel>(*numbers);
  }
  if (const auto* const random = r.instruction.op.get_if<op::random_uniform>())
    return std::make_unique<random_kernel>(*random);
  if (const auto* const filters = r.instruction.op.get_if<op::mel_weights>())
    return std::make_unique<mel_kernel>(*filters);
  const dtype type = r.inputs.empty() ? dtype::f32 : r.inputs[0].type;
  if (!dtypes::numbers.contains(type) && type != dtype::boolean) return nullptr;  // zero is zero bytes in all of these
  if (const auto* const tri = r.instruction.op.get_if<op::tri>()) return std::make_unique<tri_kernel>(*tri);
  const auto* const pad = r.instruction.op.get_if<op::pad>();
  if (!pad || r.inputs[0].rank() == 0) return nullptr;
  for (const dimension d : pad->pads)
    if (!d.is_constant()) return nullptr;
  return std::make_unique<pad_kernel>(*pad);
}

}  // namespace kiln::eigen
