#include <cmath>

#include "kiln/interface/genai/impl/handles.hpp"

struct OgaSpeculativeStats {
  kiln::language::speculative_stats value;
};

using namespace kiln::genai;
namespace language = kiln::language;

namespace {

language::speculative_options& ahead_of(OgaGeneratorParams* p) {
  return given(p, "the generator's params").value.ahead;
}
const language::speculative_options& ahead_of(const OgaGeneratorParams* p) {
  return given(p, "the generator's params").value.ahead;
}
double stat_of(const OgaSpeculativeStats* stats, const char* name) {
  return language::get_stat(given(stats, "the statistics").value, text(name, "the statistic's name"));
}

}  // namespace

OgaResult* OgaGeneratorParamsSetSpeculativeNumber(OgaGeneratorParams* params, const char* name, double value) {
  return guarded([&] { language::set_number(ahead_of(params), text(name, "the option's name"), value); });
}
OgaResult* OgaGeneratorParamsGetSpeculativeNumber(const OgaGeneratorParams* params, const char* name, double* value) {
  return told(value, [&] { return language::get_number(ahead_of(params), text(name, "the option's name")); });
}
OgaResult* OgaGeneratorParamsSetSpeculativeBool(OgaGeneratorParams* params, const char* name, bool value) {
  return guarded([&] { language::set_flag(ahead_of(params), text(name, "the option's name"), value); });
}
OgaResult* OgaGeneratorParamsGetSpeculativeBool(const OgaGeneratorParams* params, const char* name, bool* value) {
  return told(value, [&] { return language::get_flag(ahead_of(params), text(name, "the option's name")); });
}

OgaResult* OgaGenerator_GetSpeculativeStats(const OgaGenerator* generator, OgaSpeculativeStats** out) {
  return made(out, [&] { return new OgaSpeculativeStats{given(generator, "the generator").value.speculation()}; });
}
void OgaDestroySpeculativeStats(OgaSpeculativeStats* stats) { delete stats; }
OgaResult* OgaSpeculativeStatsGetCount(const OgaSpeculativeStats* stats, const char* name, uint64_t* value) {
  return told(value, [&] {
    const double n = stat_of(stats, name);
    if (n != std::floor(n))
      raise(kiln::errc::invalid_argument, "statistic '" + std::string(name) + "' is a number, not a count");
    return static_cast<uint64_t>(n);
  });
}
OgaResult* OgaSpeculativeStatsGetNumber(const OgaSpeculativeStats* stats, const char* name, double* value) {
  return told(value, [&] { return stat_of(stats, name); });
}
OgaResult* OgaSpeculativeStatsGetBool(const OgaSpeculativeStats* stats, const char* name, bool* value) {
  return told(value, [&]() -> bool {
    stat_of(stats, name);
    raise(kiln::errc::invalid_argument, "statistic '" + std::string(name) + "' is a number, not true or false");
  });
}
