#pragma once
#include <limits>

#include "kiln/kernel/pointwise/block_steps.hpp"

namespace kiln::kernels {

/// Prefetches the lines that begin in the memory needed later, for `times` blocks.
KILN_FN void fetch(block_fetch* fetches, std::size_t count, std::int64_t times) {
  for (std::size_t k = 0; k < count; ++k) {
    block_fetch& f = fetches[k];
    const auto at = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(f.at));
    for (std::int64_t line = -at & 63; line < f.bytes * times; line += 64) __builtin_prefetch(f.at + line);
    f.at += f.bytes * times;
  }
}

/// Steps that move blocks between memory and the accumulator.
template <block_width Width, class = std::make_index_sequence<block_vectors<Width>>> struct block_moves;

template <block_width Width, std::size_t... V> struct block_moves<Width, std::index_sequence<V...>> {
  using code = block_code<Width>;
  template <std::size_t> using vector = float_vec;
  using int_vec = vec<std::int32_t, native_lanes<float>>;
  static constexpr std::ptrdiff_t step = native_lanes<float>;

  // Values above the greatest byte become it, NaN becomes 0, and negative numbers wrap to unsigned bytes, as in
  // `convert_value`. Bounds leave NaN as it is.
  template <class Byte> KILN_FN static int_vec to_byte(float_vec x) {
    x = elementary::lesser(broadcast<float_vec>(static_cast<float>(std::numeric_limits<Byte>::max())), x);
    if constexpr (std::is_signed_v<Byte>) {
      x = elementary::greater(broadcast<float_vec>(-128.0F), x);
      x = select(x == x, x, broadcast<float_vec>(0.0F));
    }
    return convert<int_vec>(x);
  }
  template <class From> KILN_FN static float_vec from_integers(const void* from, std::size_t at) {
    return convert<float_vec>(load_bytes(static_cast<const From*>(from) + at));
  }
  template <class Byte> KILN_FN static void store_bytes(void* to, std::size_t at, float_vec x) {
    store(static_cast<Byte*>(to) + at, convert<vec<Byte, native_lanes<float>>>(to_byte<Byte>(x)));
  }

  template <block_form Form> KILN_FN static float_vec read(const void* from, std::size_t at) {
    if constexpr (Form == block_form::f32)
      return load<float_vec>(static_cast<const float*>(from) + at);
    else if constexpr (Form == block_form::f16)
      return load_half<float_vec>(static_cast<const std::uint16_t*>(from) + at);
    else if constexpr (Form == block_form::bf16)
      return load_bfloat16<float_vec>(static_cast<const std::uint16_t*>(from) + at);
    else if constexpr (Form == block_form::boolean)
      return (float_vec)load_mask(static_cast<const bool*>(from) + at, native_lanes<float>);
    else if constexpr (Form == block_form::u8)
      return from_integers<std::uint8_t>(from, at);
    else if constexpr (Form == block_form::i8)
      return from_integers<std::int8_t>(from, at);
    else
      return convert<float_vec>(load<int_vec>(static_cast<const std::int32_t*>(from) + at));
  }
  template <block_form Form> KILN_FN static void write(void* to, std::size_t at, float_vec x) {
    if constexpr (Form == block_form::f32)
      store(static_cast<float*>(to) + at, x);
    else if constexpr (Form == block_form::f16)
      store_half(static_cast<std::uint16_t*>(to) + at, x);
    else if constexpr (Form == block_form::bf16)
      store_bfloat16(static_cast<std::uint16_t*>(to) + at, x);
    else if constexpr (Form == block_form::boolean)
      store_mask(static_cast<bool*>(to) + at, (float_mask)x, native_lanes<float>);
    else if constexpr (Form == block_form::u8)
      store_bytes<std::uint8_t>(to, at, x);
    else
      store_bytes<std::int8_t>(to, at, x);
  }
  template <block_form Form> KILN_FN static float_vec rounded(float_vec x) {
    if constexpr (Form == block_form::u8)
      return convert<float_vec>(to_byte<std::uint8_t>(x) & broadcast<int_vec>(255));
    else if constexpr (Form == block_form::i8)
      return convert<float_vec>(to_byte<std::int8_t>(x));
    vec<std::uint16_t, native_lanes<float>> bits;
    write<Form>(&bits, 0, x);
    return read<Form>(&bits, 0);
  }

  template <block_form Form> static void load_step(const block_step* s, block_frame* frame, vector<V>...) {
    const void* const from = frame->at[s->in[0]];
    return code::next(s, frame, read<Form>(from, V * step)...);
  }
  template <block_form Form> static void store_step(const block_step* s, block_frame* frame, vector<V>... a) {
    void* const to = frame->at[s->out];
    (write<Form>(to, V * step, a), ...);
    return code::next(s, frame, a...);
  }
  static void stream_step(const block_step* s, block_frame* frame, vector<V>... a) {
    float* const to = code::place(frame, s->out);
    (stream(to + V * step, a), ...);
    return code::next(s, frame, a...);
  }
  static void repeat_step(const block_step* s, block_frame* frame, vector<V>... a) {
    float* const to = code::place(frame, s->out);
    const float_vec values[] = {a...};
    for (std::size_t v = 0; v < block_vectors<block_width::wide>; ++v) store(to + v * step, values[v % sizeof...(V)]);
    return code::next(s, frame, a...);
  }
  template <block_form Form> static void round_step(const block_step* s, block_frame* frame, vector<V>... a) {
    return code::next(s, frame, rounded<Form>(a)...);
  }
  // A quotient by a repeated value is a product where the reciprocal is a normal number.
  KILN_FN static bool has_inverse(float by) {
    const float magnitude = by < 0 ? -by : by;
    return magnitude >= 0x1p-126F && magnitude <= 0x1p126F;
  }
  static void divide_step(const block_step* s, block_frame* frame, vector<V>... a) {
    const float* const by = code::place(frame, s->in[0]);
    if (!frame->varied && has_inverse(*by)) [[likely]] {
      const auto inverse = broadcast<float_vec>(1.0F / *by);
      return code::next(s, frame, (a * inverse)...);
    }
    return code::next(s, frame, (a / load<float_vec>(by + V * step))...);
  }
  static void end_step(const block_step*, block_frame*, vector<V>...) {}

  static void run(const block_step* program, block_frame& frame, const block_loop& loop) {
    const auto first = reinterpret_cast<typename code::function>(program->call);
    for (std::int64_t block = 0; block < loop.blocks; ++block) {
      fetch(loop.fetches, loop.fetch_count, 1);
      first(program, &frame, vector<V>{}...);
      for (std::size_t k = 0; k < loop.move_count; ++k) frame.at[loop.moves[k].place] += loop.moves[k].bytes;
    }
    leave_wide_registers();
  }

  static void add(block_machine& m) {
    constexpr auto w = static_cast<std::size_t>(Width);
    const auto plain = [](auto f) { return reinterpret_cast<void (*)()>(f); };
    m.lanes[w] = static_cast<std::int64_t>(block_lanes<Width>);
    m.run[w] = run;
    const auto forms = [&]<std::size_t... F>(std::index_sequence<F...>) {
      ((m.move.load[F][w] = plain(load_step<block_form(F)>)), ...);
      const auto add_stored = [&]<std::size_t Form>(std::integral_constant<std::size_t, Form>) {
        if constexpr (Form < stored_block_forms) {
          m.move.store[Form][w] = plain(store_step<block_form(Form)>);
          if constexpr (block_form(Form) != block_form::f32 && block_form(Form) != block_form::boolean)
            m.move.round[Form][w] = plain(round_step<block_form(Form)>);
        }
      };
      (add_stored(std::integral_constant<std::size_t, F>{}), ...);
    };
    forms(std::make_index_sequence<block_forms>{});
    if constexpr (Width == block_width::narrow) m.move.repeat = plain(repeat_step);
    m.move.stream[w] = plain(stream_step);
    m.move.divide[w] = plain(divide_step);
    m.move.end[w] = plain(end_step);
  }
};

/// The machine of this translation unit's instruction set.
inline block_machine make_block_machine() {
  block_machine m;
  block_moves<block_width::narrow>::add(m);
  block_moves<block_width::wide>::add(m);
  m.fill = [](float* block, float value) {
    for (std::size_t v = 0; v < block_vectors<block_width::wide>; ++v)
      store(block + v * native_lanes<float>, broadcast<float_vec>(value));
  };
  m.fence = [] { stream_fence(); };
  return m;
}

}  // namespace kiln::kernels
