#pragma once
#include "kiln/interface/c/impl/handles.hpp"

namespace kiln::c {

/// Where the caller wants what is known of a port.
struct port_outputs {
  const char** name;
  kiln_dtype* type;
  std::size_t* rank;
  kiln_dim* lens;
};

inline void put_port(std::span<const port> ports, std::size_t index, const port_outputs& to) {
  if (index >= ports.size())
    raise(fault::of(errc::invalid_argument, "an index lies within the inputs or outputs", ports.size(), index));
  put(to.name, ports[index].name.c_str());
  put_shape(ports[index].type, to.type, to.rank, to.lens);
}

}  // namespace kiln::c
