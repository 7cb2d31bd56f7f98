#include "kiln/interface/language_session.hpp"
#if KILN_WITH_LANGUAGE
#include <algorithm>
#include <charconv>
#include <optional>

#include "kiln/generate/weights/model_files.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/quantize/byte_products.hpp"

namespace kiln::language {

namespace {

constexpr std::string_view own_options[] = {"target",      "device_id",  "threads",         "exhaustive_tune",
                                            "tuning_file", "cache_dir",  "fp16_enable",     "bf16_enable",
                                            "int8_enable", "fp8_enable", "accuracy_level_4"};

bool is_cpu(const provider& p) { return is_same_provider(p.name, "cpu"); }
bool is_own(const provider& p) {
  for (const std::string_view known : {"MIGraphX", "ROCM", "AMDGPU"})
    if (is_same_provider(p.name, known)) return true;
  return false;
}

[[noreturn]] void refuse_value(const provider& p, const std::string& key, const char* expected,
                               const std::string& found) {
  throw error(errc::invalid_argument,
              "option '" + key + "' of provider " + p.name + ": expected " + expected + ", found '" + found + "'");
}
bool flag_of(const provider& p, const std::string& key, const std::string& value) {
  for (const std::string_view yes : {"1", "true", "True"})
    if (value == yes) return true;
  for (const std::string_view no : {"0", "false", "False"})
    if (value == no) return false;
  refuse_value(p, key, "1, 0, true or false", value);
}
unsigned whole_of(const provider& p, const std::string& key, const std::string& value) {
  unsigned out = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (fault != std::errc() || end != value.data() + value.size()) refuse_value(p, key, "a whole number", value);
  return out;
}

// Reads a provider's options into the session; returns the number of the device they name.
std::optional<unsigned> read_options(const provider& p, session& to) {
  std::optional<unsigned> device;
  for (const auto& [key, value] : p.options) {
    const std::string_view prefix = "migraphx_";
    const std::string_view name = std::string_view(key).substr(key.starts_with(prefix) ? prefix.size() : 0);
    const auto asks = [&](std::string_view bits) { return name == bits && flag_of(p, key, value); };
    if (std::find(std::begin(own_options), std::end(own_options), name) == std::end(own_options)) {
      std::string known;
      for (const std::string_view o : own_options) known += (known.empty() ? "" : ", ") + std::string(o);
      throw error(errc::not_found, "option '" + key + "' of provider " + p.name + ": expected one of " + known);
    }
    if (name == "target") to.target = value;
    if (name == "device_id") device = whole_of(p, key, value);
    if (name == "threads") to.options.threads = whole_of(p, key, value);
    if (name == "exhaustive_tune") to.options.tune = flag_of(p, key, value);
    if (name == "tuning_file") to.options.tuning_file = value;
    if (name == "cache_dir") to.options.cache = value;
    if (name == "accuracy_level_4") to.bytes_suffice = flag_of(p, key, value);
    for (const auto& [option, precision] :
         {std::pair("fp16_enable", quantize::precision::f16), {"bf16_enable", quantize::precision::bf16}})
      if (asks(option)) {
        if (to.precision != quantize::precision::as_written && to.precision != precision)
          throw error(errc::invalid_argument,
                      "fp16_enable and bf16_enable of provider " + p.name + " exclude each other: found both");
        to.precision = precision;
      }
    if (asks("int8_enable") || asks("fp8_enable"))
      throw error(errc::unsupported, "option '" + key + "' of provider " + p.name +
                                         ": 8 bits need ranges of activations, which a language model's folder has "
                                         "not; export its weights in 4 or 8 bits");
  }
  return device;
}

}  // namespace

session session_of(const config& c, unsigned gpu) {
  session out;
  if (const auto n = c.decoder.session.intra_op_num_threads) out.options.threads = static_cast<unsigned>(*n);
  const provider* chosen = nullptr;
  for (const provider& p : c.decoder.session.providers) {
    if (is_cpu(p)) continue;
    if (!is_own(p))
      throw error(errc::unsupported, "provider '" + p.name + "': expected CPU or MIGraphX, which kiln stands in for");
    if (chosen)
      throw error(errc::unsupported, "one provider beside CPU: found '" + chosen->name + "' and '" + p.name + "'");
    chosen = &p;
  }
  if (!chosen) return out;
  const std::optional<unsigned> device = read_options(*chosen, out);
  if (const auto& type = chosen->hardware_device_type) {
    if (*type == "gpu" || *type == "GPU")
      out.target = "gpu";
    else if (*type != "cpu" && *type != "CPU")
      throw error(errc::unsupported,
                  "hardware_device_type of provider " + chosen->name + ": expected cpu or gpu, found '" + *type + "'");
    else if (out.target == "gpu" || out.target.starts_with("hip"))
      throw error(errc::invalid_argument, "provider " + chosen->name + ": hardware_device_type " + *type +
                                              " and target " + out.target + " exclude each other: found both");
  }
  const bool is_gpu = out.target == "gpu" || out.target.starts_with("hip");
  const auto has_no_effect = [&](const char* key, std::int64_t value, const char* why) {
    out.remarks.push_back(std::string(key) + " " + std::to_string(value) + " of provider " + chosen->name +
                          " has no effect: " + why);
  };
  if (device && !is_gpu)
    has_no_effect("device_id", *device, "the decoder runs on the processor; hardware_device_type gpu takes a GPU");
  if (const auto id = chosen->hardware_device_id)
    has_no_effect("hardware_device_id", *id, "the option device_id chooses a GPU");
  if (const auto id = chosen->hardware_vendor_id)
    has_no_effect("hardware_vendor_id", *id, "the option device_id chooses a GPU");
  if (out.target == "gpu" || out.target == "hip") out.target = "hip:" + std::to_string(device.value_or(gpu));
  return out;
}

tokenizer load_tokenizer(const config& c) { return tokenizer_of(c); }

std::shared_ptr<const language_model> load_model(config c, const session& s) {
  if (c.eos_token_id.empty() || !c.pad_token_id) try {
      const tokenizer t = load_tokenizer(c);
      if (c.eos_token_id.empty()) c.eos_token_id = t.special().eos;
      if (!c.pad_token_id) c.pad_token_id = t.special().pad;
    } catch (const error& e) {
      if (e.code() != errc::not_found) throw;  // tokens alone go in and out
    }
  compile_options options = s.options;
  const auto target = named_target(s.target, options);
  options.remarks.insert(options.remarks.end(), s.remarks.begin(), s.remarks.end());
  program_change change;
  if (s.precision != quantize::precision::as_written || s.bytes_suffice)
    change = [&](program p, std::vector<std::string>& remarks) {
      if (s.bytes_suffice) {
        const std::int64_t count = quantize::permit_byte_products(p);
        remarks.push_back(count ? "accuracy_level_4: products with " + std::to_string(count) +
                                      " weights in blocks may round their other operand to 8 bits"
                                : "accuracy_level_4 has no effect: no weight is stored in blocks of few bits");
      }
      if (s.precision == quantize::precision::as_written) return p;
      quantize::precision_options how;
      how.to = s.precision;
      quantize::quantized_program made = quantize::with_precision(std::move(p), how);
      for (std::string& line : quantize::remarks_on(s.precision, made.note)) remarks.push_back(std::move(line));
      return std::move(made.graph);
    };
  return language_model::load(c, *target, std::move(options), change);
}

}  // namespace kiln::language
#endif
