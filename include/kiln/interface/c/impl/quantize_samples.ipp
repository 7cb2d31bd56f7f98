#include "kiln/interface/c/impl/quantize_samples.hpp"

using namespace kiln;
using namespace kiln::c;

namespace {

std::optional<quantize::sample> called(const kiln_samples& from, std::size_t index) {
  kiln_sample filled;
  const kiln_status status = from.next(from.user, index, &filled);
  if (status != KILN_OK) raise(code_of(status), filled.why.empty() ? "the callback of samples failed" : filled.why);
  if (filled.inputs.empty()) return std::nullopt;
  return std::move(filled.inputs);
}

}  // namespace

quantize::repeated_data kiln::c::repeated(const kiln_samples* samples) {
  if (!samples) return {};
  return [samples]() -> quantize::calibration_data {
    return [samples, index = std::size_t{0}]() mutable -> std::optional<quantize::sample> {
      const std::size_t at = index++;
      if (samples->next) return called(*samples, at);
      return at < samples->all.size() ? std::optional(samples->all[at]) : std::nullopt;
    };
  };
}

kiln_status kiln_sample_set(kiln_sample* sample, const char* input, const kiln_tensor* value) {
  return guarded([&] {
    kiln_sample& to = given(sample, "sample");
    const char* const name = not_null(input, "input");
    const kiln_tensor& from = given(value, "value");
    check_on_host(from);
    to.inputs[name] = from.value.copy();
  });
}

kiln_status kiln_sample_fail(kiln_sample* sample, kiln_status status, const char* message) {
  if (sample && message) sample->why = message;
  return status;
}

kiln_status kiln_samples_create(kiln_samples** samples) {
  return guarded([&] {
    kiln_samples*& out = given(samples, "samples");
    out = new kiln_samples;
  });
}

kiln_status kiln_samples_create_callback(kiln_sample_callback next, void* user, kiln_samples** samples) {
  return guarded([&] {
    kiln_samples*& out = given(samples, "samples");
    not_null(reinterpret_cast<void*>(next), "next");
    out = new kiln_samples{{}, next, user};
  });
}

void kiln_samples_destroy(kiln_samples* samples) { delete samples; }

kiln_status kiln_samples_add(kiln_samples* samples, size_t input_count, const char* const* names,
                             const kiln_tensor* const* inputs) {
  return guarded([&] {
    kiln_samples& to = given(samples, "samples");
    if (to.next) raise(errc::invalid_argument, "samples of a callback take no others");
    const auto named = given_array(names, input_count, "names");
    const auto values = given_array(inputs, input_count, "inputs");
    if (values.empty()) raise(errc::invalid_argument, "a sample has an input: found none");
    quantize::sample made;
    for (std::size_t k = 0; k < input_count; ++k) {
      const kiln_tensor& from = given(values[k], "an input");
      check_on_host(from);
      made[not_null(named[k], "a name")] = from.value;
    }
    to.all.push_back(std::move(made));
  });
}
