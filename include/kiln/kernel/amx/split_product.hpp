#pragma once

#include "kiln/kernel/amx/split_floats.hpp"

namespace kiln::kernels {

/// Splits operands between the products of the matrix unit, while the core's vector units are idle: two jobs, a quarter
/// of a tile at a time, spread so that they end when the products do.
class background_split {
 public:
  /// Leaves `a_left` and `b_left` quarters of `a` and `b` after `turns` turns.
  background_split(tile_splitter& a, std::int64_t a_left, tile_splitter& b, std::int64_t b_left, std::int64_t turns)
      : a_(a),
        b_(b),
        a_left_(a_left),
        turns_(turns),
        due_(a.quarters_left() - a_left + std::max<std::int64_t>(0, b.quarters_left() - b_left)) {}

  KILN_FN void turn() {
    for (share_ += due_; share_ >= turns_; share_ -= turns_)
      if (a_.quarters_left() > a_left_)
        a_.quarter();
      else if (b_.quarters_left() > 0)
        b_.quarter();
  }

 private:
  tile_splitter &a_, &b_;
  std::int64_t a_left_, turns_, due_, share_ = 0;
};

/// Turns of the splitting for each step of the depth of 2 x 2 tiles, of operands of one or all parts; other shapes have
/// fewer, and the remaining quarters are split after them.
constexpr std::int64_t turns_of_step(bool left_one, bool right_one) {
  return left_one && right_one ? 4 : left_one || right_one ? 8 : 10;
}

/// Sums of Rows x Cols tiles, which stay in the unit, and the products of split floats that are added to them, where an
/// operand has one part or all. An operand's tile is loaded after its last product, so that those of the other rows or
/// columns hide the load.
template <int Rows, int Cols, bool LeftOne, bool RightOne> class split_tiles {
  static constexpr int left0 = 4, right0 = 6;

 public:
  /// `a` and `b` are the first parts of the first tiles, whose `steps` steps are adjacent; B's next column tile is
  /// `b_next` away.
  [[gnu::noinline]] static void multiply(const std::uint16_t* a, const std::uint16_t* b, std::int64_t steps,
                                         std::ptrdiff_t b_next, float* c, std::ptrdiff_t c_row, bool accumulate,
                                         background_split& meanwhile) {
    const std::ptrdiff_t a_next = steps * split_tile_size;
    for_tiles<Rows * Cols>([&]<int I>() {
      if (accumulate)
        tile_load<I>(sums(c, c_row, I), c_row * 4);
      else
        tile_zero<I>();
    });
    const auto left = [&]<int R>(int part) {
      tile_load<left0 + R>(a + R * a_next + part * matrix_unit::tile_values, row_bytes);
    };
    const auto right = [&]<int C>(int part) {
      tile_load<right0 + C>(b + C * b_next + part * matrix_unit::tile_values, row_bytes);
    };
    const auto then_left = [&](int part) {
      for_tiles<Rows>([&]<int R>() {
        for_tiles<Cols>([&]<int C>() { product<R, C>(); });
        left.template operator()<R>(part);
        meanwhile.turn();
      });
    };
    const auto then_right = [&](int part) {
      for_tiles<Cols>([&]<int C>() {
        for_tiles<Rows>([&]<int R>() { product<R, C>(); });
        right.template operator()<C>(part);
        meanwhile.turn();
      });
    };
    // Products that zeros would add are left out of one order, so that a sum does not depend on what its tile's
    // neighbors hold.
    constexpr int first_left = LeftOne ? 0 : 2;
    for_tiles<Rows>([&]<int R>() { left.template operator()<R>(first_left); });
    for_tiles<Cols>([&]<int C>() { right.template operator()<C>(0); });
    for (std::int64_t i = 1;; ++i) {
      if constexpr (!LeftOne) {
        then_left(1);
        then_left(0);
      }
      if constexpr (!RightOne) {
        then_right(2);
        then_right(1);
      }
      if constexpr (!LeftOne && !RightOne) then_left(1);
      if (i == steps) break;
      b += split_tile_size;
      if constexpr (LeftOne || RightOne) {
        a += split_tile_size;
        for_tiles<Rows>([&]<int R>() {
          for_tiles<Cols>([&]<int C>() {
            product<R, C>();
            if (R + 1 == Rows) {
              right.template operator()<C>(0);
              meanwhile.turn();
            }
          });
          left.template operator()<R>(first_left);
          meanwhile.turn();
        });
      } else {
        then_right(0);
        a += split_tile_size;
        for_tiles<Rows>([&]<int R>() { left.template operator()<R>(first_left); });
      }
    }
    for_tiles<Rows>([&]<int R>() { for_tiles<Cols>([&]<int C>() { product<R, C>(); }); });
    for_tiles<Rows * Cols>([&]<int I>() { tile_store<I>(sums(c, c_row, I), c_row * 4); });
  }

 private:
  static constexpr std::ptrdiff_t row_bytes = 64;

  template <int N, class F> KILN_FN static void for_tiles(F&& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      (f.template operator()<I>(), ...);
    }
    (std::make_integer_sequence<int, N>());
  }
  template <int R, int C> KILN_FN static void product() { tile_multiply<R * Cols + C, left0 + R, right0 + C>(); }
  KILN_FN static float* sums(float* c, std::ptrdiff_t c_row, int i) {
    return c + i / Cols * matrix_unit::rows * c_row + i % Cols * matrix_unit::cols;
  }
};

/// A block of one or two tiles in each dimension. `left_one`, `right_one`: the operand's first parts are all of it.
inline void multiply_split(std::int64_t rows, std::int64_t cols, bool left_one, bool right_one, const std::uint16_t* a,
                           const std::uint16_t* b, std::int64_t steps, std::ptrdiff_t b_next, float* c,
                           std::ptrdiff_t c_row, bool accumulate, background_split& meanwhile) {
  const auto run = [&]<int Rows, int Cols>() {
    const auto way = left_one    ? right_one ? &split_tiles<Rows, Cols, true, true>::multiply
                                             : &split_tiles<Rows, Cols, true, false>::multiply
                     : right_one ? &split_tiles<Rows, Cols, false, true>::multiply
                                 : &split_tiles<Rows, Cols, false, false>::multiply;
    way(a, b, steps, b_next, c, c_row, accumulate, meanwhile);
  };
  if (rows == 2)
    cols == 2 ? run.template operator()<2, 2>() : run.template operator()<2, 1>();
  else
    cols == 2 ? run.template operator()<1, 2>() : run.template operator()<1, 1>();
}

}  // namespace kiln::kernels
