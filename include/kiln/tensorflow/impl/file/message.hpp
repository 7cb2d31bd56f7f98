#pragma once
#include <cstring>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"
#include "kiln/core/wire_format.hpp"

// How a message of the file is taken apart.
namespace kiln::tensorflow {

[[noreturn]] inline void refuse(const std::string& where, const std::string& why) {
  raise(errc::malformed, where + ": " + why);
}

/// The fields of a message; what does not belong to one is an error.
template <class Each> void each_field(bytes_view message, const std::string& where, Each&& each) {
  wire_reader from(message);
  for (wire_field f; from.next(f);) each(f);
  if (!from.ok()) refuse(where, "the bytes are no message");
}
/// The numbers of a field that is packed or not.
template <class Each> void each_number(const wire_field& f, const std::string& where, Each&& each) {
  if (f.encoding != wire_encoding::delimited) return each(f.value);
  wire_reader packed(f.content);
  for (std::uint64_t n = 0; packed.next(n);) each(n);
  if (!packed.ok()) refuse(where, "a packed list ends too soon");
}
/// Key and value of an entry of a map.
inline std::pair<std::string, bytes_view> read_entry(bytes_view message, const std::string& where) {
  std::pair<std::string, bytes_view> out;
  each_field(message, where, [&](const wire_field& e) {
    if (e.number == 1) out.first = e.text();
    if (e.number == 2) out.second = e.content;
  });
  return out;
}

template <class T, class Each> void each_real(const wire_field& f, const std::string& where, Each&& each) {
  if (f.encoding == wire_encoding::varint || f.content.size() % sizeof(T)) refuse(where, "a list of floats is damaged");
  for (std::size_t i = 0; i < f.content.size(); i += sizeof(T)) {
    T v;
    std::memcpy(&v, f.content.data() + i, sizeof v);
    each(v);
  }
}

}  // namespace kiln::tensorflow
