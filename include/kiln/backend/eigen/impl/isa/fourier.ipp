#include <unsupported/Eigen/FFT>

#include "kiln/backend/eigen/impl/isa/linear_algebra.hpp"
#include "kiln/op/linear/fourier_sum.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

template <class T> using complex = std::complex<T>;
using detail::unit_root;

// exp(-2 pi i k / n).
template <class T> complex<T> root(std::int64_t k, std::int64_t n) {
  const auto r = unit_root(k, n, -1);
  return {static_cast<T>(r.real), static_cast<T>(r.imaginary)};
}
// The inverse transform is the forward one with the parts of all numbers swapped.
template <class T> complex<T> swapped(complex<T> v) { return {v.imag(), v.real()}; }

// The forward transform of n complex numbers: Eigen's where n has no prime factors but 2, 3 and 5, else by Bluestein
// (1970) as a convolution of a greater length that has none.
template <class T> class forward_transform {
 public:
  explicit forward_transform(std::int64_t n) : n_(n), m_(n) {
    for (const int p : {2, 3, 5})
      while (m_ % p == 0) m_ /= p;
    const bool direct = m_ == 1;
    m_ = n;
    if (!direct)
      for (m_ = 1; m_ < 2 * n - 1;) m_ *= 2;
    if (m_ > 1) {
      plan_.make_twiddles(static_cast<int>(m_), false);
      plan_.factorize(static_cast<int>(m_));
    }
    if (direct) return;
    for (std::int64_t j = 0; j < n; ++j) chirp_.push_back(root<T>(j * j % (2 * n), 2 * n));
    std::vector<complex<T>> filter(static_cast<std::size_t>(m_));
    for (std::int64_t j = 0; j < n; ++j)
      filter[static_cast<std::size_t>(j)] = filter[static_cast<std::size_t>((m_ - j) % m_)] =
          std::conj(chirp_[static_cast<std::size_t>(j)]) / static_cast<T>(m_);
    filter_.resize(filter.size());
    smooth(filter_.data(), filter.data());
  }
  // Complex numbers of scratch.
  std::int64_t scratch() const { return chirp_.empty() ? 0 : 2 * m_; }

  // From `from` to `to`, which differ.
  void run(complex<T>* to, const complex<T>* from, complex<T>* scratch) const {
    if (chirp_.empty()) return smooth(to, from);
    complex<T>*const a = scratch, *const b = scratch + m_;
    const auto n = static_cast<std::size_t>(n_), m = static_cast<std::size_t>(m_);
    for (std::size_t j = 0; j < n; ++j) a[j] = from[j] * chirp_[j];
    std::fill(a + n, a + m, complex<T>());
    smooth(b, a);
    for (std::size_t j = 0; j < m; ++j) a[j] = swapped(b[j] * filter_[j]);
    smooth(b, a);
    for (std::size_t j = 0; j < n; ++j) to[j] = swapped(b[j]) * chirp_[j];
  }

 private:
  void smooth(complex<T>* to, const complex<T>* from) const {
    if (m_ > 1)
      plan_.work(0, to, from, 1, 1);
    else
      *to = *from;
  }

  std::int64_t n_, m_;  // the length, and that of Eigen's transforms
  // `work` changes what it is called on for prime factors above 5 alone.
  mutable Eigen::internal::kiss_cpx_fft<T> plan_;
  std::vector<complex<T>> chirp_, filter_;
};

// Real signals of even lengths are complex ones of half the length: even numbers are real parts, odd ones imaginary.
bool halves(const fourier_kind& kind) {
  return kind.length % 2 == 0 && (kind.inverse ? kind.one_sided : kind.from_real);
}

template <class T> class planned_fourier final : public fourier_plan {
 public:
  explicit planned_fourier(const fourier_kind& kind)
      : kind_(kind), n_(halves(kind) ? kind.length / 2 : kind.length), forward_(n_) {
    for (std::int64_t k = 0; halves(kind) && k <= n_; ++k) roots_.push_back(root<T>(k, kind.length));
  }
  std::size_t scratch_bytes(unsigned workers) const override {
    return static_cast<std::size_t>(each()) * sizeof(complex<T>) * workers;
  }

  void run(thread_pool& pool, const fourier_lines& lines, std::byte* scratch) const override {
    constexpr std::int64_t numbers = 4096;  // of a task
    const std::int64_t together = std::max<std::int64_t>(1, numbers / kind_.length);
    pool.parallel_for((lines.count + together - 1) / together, [&](std::int64_t task, unsigned worker) {
      auto* const src = reinterpret_cast<complex<T>*>(scratch) + worker * each();
      for (std::int64_t k = task * together; k < std::min(lines.count, (task + 1) * together); ++k) {
        std::int64_t rest = k, from = 0, to = 0;
        for (std::size_t d = lines.lens.size(); d-- > 0; rest /= lines.lens[d]) {
          from += rest % lines.lens[d] * lines.from_steps[d];
          to += rest % lines.lens[d] * lines.to_steps[d];
        }
        line(lines, static_cast<const T*>(lines.from) + from, static_cast<T*>(lines.to) + to, src);
      }
    });
  }

 private:
  std::int64_t each() const { return (2 * n_ + forward_.scratch() + 7) / 8 * 8; }

  void line(const fourier_lines& lines, const T* x, T* y, complex<T>* src) const {
    complex<T>*const dst = src + n_, *const scratch = dst + n_;
    const std::int64_t length = kind_.length;
    const auto number = [&](std::int64_t j) {
      if (j >= lines.given) return complex<T>();
      const T* const at = x + j * lines.from_step;
      return complex<T>(at[0], kind_.from_real ? T(0) : at[lines.from_part]);
    };
    const auto transform = [&] { forward_.run(dst, src, scratch); };
    if (kind_.inverse && kind_.one_sided) {
      const auto bin = [&](std::int64_t k) {
        const complex<T> v = number(2 * k > length ? length - k : k);
        return k == 0 || 2 * k == length ? complex<T>(v.real()) : 2 * k > length ? std::conj(v) : v;
      };
      const T scale = T(1) / static_cast<T>(n_);
      T* to = y;
      if (n_ == length) {
        for (std::int64_t k = 0; k < n_; ++k) src[k] = swapped(bin(k));
        transform();
        for (std::int64_t j = 0; j < n_; ++j, to += lines.to_step) *to = dst[j].imag() * scale;
        return;
      }
      for (std::int64_t k = 0; k < n_; ++k) {
        const complex<T> a = bin(k), b = std::conj(bin(n_ - k)), odd = (a - b) * std::conj(roots_[k]) * T(0.5);
        src[k] = swapped((a + b) * T(0.5) + complex<T>(-odd.imag(), odd.real()));
      }
      transform();
      for (std::int64_t j = 0; j < n_; ++j, to += 2 * lines.to_step)
        to[0] = dst[j].imag() * scale, to[lines.to_step] = dst[j].real() * scale;
      return;
    }
    const T scale = kind_.inverse ? T(1) / static_cast<T>(length) : T(1);
    const auto put = [&](std::int64_t k, complex<T> v) {
      T* const to = y + k * lines.to_step;
      to[0] = v.real() * scale, to[lines.to_part] = v.imag() * scale;
    };
    if (n_ == length) {
      for (std::int64_t j = 0; j < n_; ++j) src[j] = kind_.inverse ? swapped(number(j)) : number(j);
      transform();
      for (std::int64_t k = 0; k < lines.made; ++k) put(k, kind_.inverse ? swapped(dst[k]) : dst[k]);
      return;
    }
    for (std::int64_t j = 0; j < n_; ++j) src[j] = {number(2 * j).real(), number(2 * j + 1).real()};
    transform();
    for (std::int64_t k = 0; k <= n_; ++k) {
      const complex<T> a = dst[k == n_ ? 0 : k], b = std::conj(dst[k == 0 ? 0 : n_ - k]), odd = (a - b) * T(0.5);
      const complex<T> bin = (a + b) * T(0.5) + roots_[k] * complex<T>(odd.imag(), -odd.real());
      put(k, bin);
      if (k > 0 && length - k < lines.made) put(length - k, std::conj(bin));
    }
  }

  fourier_kind kind_;
  std::int64_t n_;  // of the complex transform
  forward_transform<T> forward_;
  std::vector<complex<T>> roots_;
};

}  // namespace

fourier_plan* plan_fourier(const fourier_kind& kind) {
  if (kind.type == dtype::f64) return new planned_fourier<double>(kind);
  return new planned_fourier<float>(kind);
}

}  // namespace kiln::eigen
