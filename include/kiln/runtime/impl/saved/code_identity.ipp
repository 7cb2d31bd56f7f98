#include "kiln/runtime/impl/saved/code_identity.hpp"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace kiln::detail {
namespace {

struct search {
  std::uintptr_t function = 0;
  std::string found;
};

// The notes of a segment: three words (sizes of name and content, type), the name, the content, each to a multiple of
// the segment's alignment.
std::string build_id_in(const char* notes, std::size_t bytes, std::size_t alignment) {
  const auto aligned = [&](std::size_t n) { return (n + alignment - 1) / alignment * alignment; };
  ElfW(Nhdr) note;
  for (std::size_t at = 0; at + sizeof note <= bytes;) {
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note, content = aligned(name + note.n_namesz);
    if (content + note.n_descsz > bytes) break;
    constexpr std::string_view gnu("GNU", 4);
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(notes + name, note.n_namesz) == gnu)
      return {notes + content, note.n_descsz};
    at = aligned(content + note.n_descsz);
  }
  return {};
}

int visit(dl_phdr_info* object, std::size_t, void* data) {
  search& s = *static_cast<search*>(data);
  bool holds = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    holds =
        holds || (segment.p_type == PT_LOAD && s.function - (object->dlpi_addr + segment.p_vaddr) < segment.p_memsz);
  }
  if (!holds) return 0;
  for (int i = 0; i < object->dlpi_phnum && s.found.empty(); ++i)
    if (const auto& segment = object->dlpi_phdr[i]; segment.p_type == PT_NOTE)
      s.found = build_id_in(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz,
                            segment.p_align == 8 ? 8 : 4);
  return 1;
}

}  // namespace

std::string build_id_of(const void* function) {
  search s{reinterpret_cast<std::uintptr_t>(function), {}};
  ::dl_iterate_phdr(visit, &s);
  return std::move(s.found);
}

}  // namespace kiln::detail
