#pragma once
#include <optional>

#include "kiln/backend/eigen/block_program.hpp"

namespace kiln::eigen {

/// The form in which blocks of a dtype are loaded and stored; empty where they have none.
inline std::optional<kernels::block_form> form_of(dtype t) {
  using kernels::block_form;
  switch (t) {
    case dtype::f32: return block_form::f32;
    case dtype::f16: return block_form::f16;
    case dtype::bf16: return block_form::bf16;
    case dtype::boolean: return block_form::boolean;
    case dtype::u8: return block_form::u8;
    case dtype::i8: return block_form::i8;
    case dtype::i32: return block_form::i32;
    default: return std::nullopt;
  }
}
inline bool narrow_floats(dtype t) { return t == dtype::f16 || t == dtype::bf16; }
inline bool is_byte(dtype t) { return t == dtype::u8 || t == dtype::i8; }
inline bool is_real(dtype t) { return t == dtype::f32 || narrow_floats(t); }

/// Turns the calls of a tile program into steps.
class block_compiler {
 public:
  explicit block_compiler(const tile_program& from) : from_(from), isa_(*kiln_eigen_isa()), machine_(*isa_.blocks()) {}
  std::unique_ptr<block_program> compile();

 private:
  static constexpr std::uint32_t nothing = 0xffff'ffff;
  using block_form = kernels::block_form;
  using block_step = kernels::block_step;
  using what = tile_program::call::what;
  using source = tile_program::source;
  using call = tile_program::call;
  using code_by_width = std::vector<block_step>[2];

  const kernels::pointwise_steps* steps_of(const call& c) const;
  bool rounds(const call& c) const;
  bool served() const;
  void give_places();
  void find_memory_uses();
  void compile_level(int level);
  void emit_per_row(int level);
  void find_reads(int level, code_by_width& code);
  void emit_full(int level, code_by_width& code);
  void emit_results(std::uint32_t v, block_program::level& to, code_by_width& code);
  void find_moves(block_program::level& to);
  void share_fetches();
  void emit_call(const call& c, code_by_width& code);
  void release_slots(const call& c);
  void emit(code_by_width& code, void (*const (&step)[kernels::block_widths])(), block_step rest) {
    for (std::size_t w = 0; w < kernels::block_widths; ++w) {
      rest.call = step[w];
      code[w].push_back(rest);
    }
  }
  void emit_load(code_by_width& code, dtype t, std::uint16_t place) {
    emit(code, machine_.move.load[static_cast<std::size_t>(*form_of(t))], {.in = {place}});
  }
  void emit_store(code_by_width& code, dtype t, std::uint16_t place) {
    emit(code, machine_.move.store[static_cast<std::size_t>(*form_of(t))], {.out = place});
  }
  std::uint16_t new_place() { return out_->places_++; }
  std::uint16_t new_slot() {
    const std::uint16_t place = new_place();
    out_->slot_places_.resize(out_->places_, 0);
    out_->slot_places_[place] = ++out_->slots_;
    return place;
  }
  // A repeat is the block of the value that it repeats.
  std::uint32_t resolved(std::uint32_t v) const { return alias_[v]; }
  block_program::level& level_at(int level) { return out_->levels_[static_cast<std::size_t>(level)]; }
  // A call over the elements of a row at this level.
  bool is_full_call(const call& c, int level) const { return !c.per_row && c.kind != what::repeat && c.level == level; }
  bool is_full(std::uint32_t v) const { return from_.values_[v].full && from_.values_[v].from != source::constant; }

  const tile_program& from_;
  const isa_table& isa_;
  const kernels::block_machine& machine_;
  std::unique_ptr<block_program> out_;
  std::vector<std::uint32_t> alias_;
  std::vector<std::uint16_t> place_;   // by value: where its block is read
  std::vector<std::uint16_t> stream_;  // by value: a converted parameter's stream
  std::vector<bool> memory_;           // by value: read from memory at its own level
  std::vector<std::size_t> last_;      // by value: the call that reads it last
  std::vector<std::uint16_t> free_;    // slots after the last read of their values
  std::vector<std::uint16_t> result_;  // by result
  std::uint32_t accumulator_ = nothing;
};

}  // namespace kiln::eigen
