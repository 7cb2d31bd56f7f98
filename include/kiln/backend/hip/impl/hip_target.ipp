#include "kiln/backend/hip/hip_target.hpp"

#include "kiln/backend/hip/impl/gemm/stored_form.hpp"
#include "kiln/backend/hip/impl/gemm/turn_weights.hpp"
#include "kiln/backend/hip/impl/rows/convert_parts.hpp"
#include "kiln/backend/hip/kernels/attention/arguments.hpp"
#include "kiln/backend/hip/lower.hpp"
#include "kiln/lower/contraction.hpp"
#include "kiln/op/nn/resample.hpp"
#include "kiln/pass/expand_block_dequantize.hpp"
#include "kiln/pass/float8_products.hpp"
#include "kiln/pass/fuse_stored_weights.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln {

hip_target::hip_target(const hip_options& options) : multiplies_float8_(options.multiplies_float8) {
  const std::string cache = !options.keep           ? std::string()
                            : options.cache.empty() ? hip::default_cache_folder()
                                                    : options.cache;
  if (!options.architecture.empty()) {
    const auto where = hip::architecture::named(options.architecture);
    if (const std::string why = hip::why_not_compiled(where); !why.empty()) raise(errc::unsupported, why);
    context_ = std::make_shared<const hip::context>(where, cache);
    return;
  }
  const hip::runtime_calls& calls = hip::any_runtime();
  const int count = hip::device_count(calls.on);
  if (options.device < 0 || options.device >= count)
    raise(fault::of(errc::not_found, "a device by its number", count - 1, options.device));
  context_ = std::make_shared<const hip::context>(calls, options.device, cache);
  if (const std::string why = hip::why_not_compiled(context_->arch()); !why.empty()) raise(errc::unsupported, why);
  device_ = hip::make_device(calls, options.device);
}

// Matrix units read channels in long runs, so convolutions gain where groups have many.
target_passes hip_target::passes() const {
  static constexpr named_pass<program> forms[] = {
      {"expand_block_dequantize", [](program& p) { return expand_block_dequantize(p); }},
      {"convert_parts", hip::convert_parts},
  };
  if (hip::atom_for(dtype::f16, context_->arch()) != "atom_mma") return {forms, {}};
  // constant weights stay in blocks where kernels unpack them, and lie as kernels of few rows read them
  static constexpr named_pass<program> keep_blocks{"expand_block_dequantize",
                                                   [](program& p) { return expand_block_dequantize(p, false); }};
  static constexpr named_pass<program> keeping[] = {keep_blocks, {"convert_parts", hip::convert_parts}};
  // products of floats of eight bits are found while their matrices are in blocks
  static constexpr named_pass<program> keeping_float8[] = {
      {"float8_products", [](program& p) { return float8_products(p); }},
      keep_blocks,
      {"convert_parts", hip::convert_parts},
  };
  static constexpr dtype types[] = {dtype::f16, dtype::bf16};
  static constexpr named_pass<program> fuse[] = {
      {"fuse_stored_weights",
       [](program& p) {
         return fuse_stored_weights(p, types, [](const stored_weights& w, const module_graph& m) {
           return hip::find_stored_form(w, m).has_value();
         });
       }},
      {"turn_weights", hip::turn_weights},
  };
  if (multiplies_float8_ && hip::multiplies_float8(dtype::f8e4m3fn, context_->arch())) return {keeping_float8, fuse};
  return {keeping, fuse};
}

lower::layout_role hip_target::role(const program& whole, const basic_instruction<operation>& instruction) const {
  using lower::layout_role;
  const shape& made = instruction.results[0];
  if (made.rank() > 4 || !is_float(made.type) || instruction.results.size() != 1) return layout_role::none;
  if (instruction.op.is<op::deconvolution>()) return layout_role::prefers_nhwc;
  if (instruction.op.is<op::pooling>() || instruction.op.is<op::resample>()) return layout_role::propagates;
  if (const auto contraction = lower::contraction_of(whole, instruction))
    return contraction.get_if<op::convolution>() ? layout_role::prefers_nhwc : layout_role::none;
  return lower::pointwise_role(instruction);
}

std::int64_t hip_target::block_attention_rows() const { return gpu::block_attention_rows; }

std::string hip_target::binary_format() const { return "hip " + hip::code_format(context_->arch()); }

// Code and choices stand with the program that they are for.
std::shared_ptr<const hip::context> hip_target::context_of(const kernel_request& request) const {
  if (!request.derived) return context_;
  std::shared_ptr<tuning_cache> tuned;
  if (request.tuning) tuned = std::make_shared<tuning_cache>(request.tuning->by().cache().file());
  return context_->for_program(request.derived->code(), std::move(tuned));
}

std::unique_ptr<kernel> hip_target::make_kernel(const kernel_request& request) const {
  using lower = std::unique_ptr<kernel> (*)(const kernel_request&, const hip::context_pointer&);
  constexpr lower families[] = {hip::lower_rows,        hip::lower_dot,       hip::lower_grouped,
                                hip::lower_convolution, hip::lower_attention, hip::lower_block_attention,
                                hip::lower_window,      hip::lower_index,     hip::lower_sampling,
                                hip::lower_sequence,    hip::lower_select};
  const hip::context_pointer where = context_of(request);
  for (lower family : families)
    if (auto made = family(request, where)) return made;
  return nullptr;
}

std::unique_ptr<kernel> hip_target::make_copy(const derived_data* derived) const {
  return hip::make_copy(derived ? context_->for_program(derived->code(), nullptr) : context_);
}

argument hip_target::allocate(const shape& s) const {
  if (!device_) raise(errc::unsupported, "device memory where the device is: this target is for an absent one");
  buffer memory = device_->allocate(static_cast<std::size_t>(s.bytes().value()));
  std::byte* const data = memory.data();
  return {s, std::move(memory), data};
}

argument hip_target::to_device(const argument& a) const {
  const argument from = a.contiguous();
  argument to = allocate({from.get_shape().type, from.get_shape().lens});
  const auto queue = device_->make_queue();
  if (const auto n = static_cast<std::size_t>(to.get_shape().bytes().value())) queue->copy(to.data(), from.data(), n);
  queue->wait();
  return to;
}

argument hip_target::to_host(const argument& a) const {
  if (!device_) raise(errc::unsupported, "device memory where the device is: this target is for an absent one");
  argument to(shape(a.get_shape().type, a.get_shape().lens));
  if (a.get_shape().strides.size() == a.get_shape().lens.size() &&
      !layout{a.get_shape().lens, a.get_shape().strides, 0}.dense())
    raise(fault::of(errc::unsupported, "an argument on the device is row-major to be copied to the host"));
  const auto queue = device_->make_queue();
  if (const auto n = static_cast<std::size_t>(to.get_shape().bytes().value())) queue->copy(to.data(), a.data(), n);
  queue->wait();
  return to;
}

}  // namespace kiln
