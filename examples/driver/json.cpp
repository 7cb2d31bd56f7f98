#include "json.hpp"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace kiln::driver {

json json_of(const dims& lens) {
  json out = json::array();
  for (dimension d : lens) {
    if (d.is_constant())
      out.push_back(d.value());
    else
      out.push_back(to_string(d));
  }
  return out;
}

json json_of(const shape& s) { return {{"type", to_string(s.type)}, {"dims", json_of(s.lens)}}; }

json json_of(std::span<const port> ports) {
  json out = json::array();
  for (const port& p : ports)
    out.push_back({{"name", p.name}, {"type", to_string(p.type.type)}, {"dims", json_of(p.type.lens)}});
  return out;
}

json json_of(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

void print_json(const json& object) {
  const std::string text = object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  end_output();
}

void end_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    raise(errc::io, std::string("can't write to standard output: ") + std::strerror(errno));
}

}  // namespace kiln::driver
