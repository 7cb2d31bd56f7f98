#pragma once
#include <map>
#include <string>

#include "kiln/core/wire_format.hpp"

namespace kiln::tensorflow {

/// A file that maps keys to values in blocks, as LevelDB's tables do: its entries, by key. Checksums of all blocks are
/// compared. Errors: `malformed` says where; `unsupported` for compressed blocks without libsnappy; `limit`.
std::map<std::string, std::string> read_table(bytes_view file);

}  // namespace kiln::tensorflow
