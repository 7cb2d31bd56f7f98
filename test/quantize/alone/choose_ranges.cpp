// choose_ranges CASES: for each line of the file CASES, reads samples and prints the range that a method chooses.
// A case: name, file of f32 data, method, symmetric (0, 1, or - for the default), moving_average, averaging_constant,
// per_channel, bins, quantized_bins, percentile, scenario, samples a batch, then the extents of each sample as 2x3x5.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "kiln/quantize/methods.hpp"

namespace {

using namespace kiln;
using namespace kiln::quantize;

calibration_options read_options(std::istream& in) {
  calibration_options o;
  std::string method, symmetric, scenario;
  in >> method >> symmetric >> o.moving_average >> o.averaging_constant >> o.per_channel >> o.bins >>
      o.quantized_bins >> o.percentile >> scenario;
  for (const auto m : {calibration_method::min_max, calibration_method::entropy, calibration_method::percentile,
                       calibration_method::distribution})
    if (to_string(m) == method) o.method = m;
  if (symmetric != "-") o.symmetric = symmetric == "1";
  if (scenario == "p3") o.scenario = float8_scenario::p3;
  return o;
}

dims read_extents(const std::string& text) {
  std::stringstream in(text);
  dims out;
  for (std::string extent; std::getline(in, extent, 'x');) out.push_back(std::stoll(extent));
  return out;
}

void run_case(const std::string& line) {
  std::stringstream in(line);
  std::string name, file;
  in >> name >> file;
  const calibration_options o = read_options(in);
  check(o);
  std::size_t batch = 0, samples = 0;
  in >> batch;
  tensor_statistics s(statistics_for(o));
  std::ifstream data(file, std::ios::binary);
  for (std::string extents; in >> extents;) {
    argument a(shape{dtype::f32, read_extents(extents)});
    data.read(reinterpret_cast<char*>(a.data()), static_cast<std::streamsize>(4 * a.elements()));
    s.add(tensor_of(a));
    if (batch != 0 && ++samples % batch == 0) s.end_batch();
  }
  const tensor_range r = choose_range(s, o);
  std::printf("%s %.17g %.17g", name.c_str(), r.whole.low, r.whole.high);
  for (const range& c : r.channels) std::printf(" %.17g %.17g", c.low, c.high);
  if (r.distribution) std::printf(" %.17g %.17g", r.distribution->mean, r.distribution->deviation);
  std::printf("\n");
}

}  // namespace

int main(int, char** arguments) try {
  std::ifstream cases(arguments[1]);
  for (std::string line; std::getline(cases, line);) run_case(line);
} catch (const error& e) {
  std::cerr << e.what() << "\n";
  return 2;
}
