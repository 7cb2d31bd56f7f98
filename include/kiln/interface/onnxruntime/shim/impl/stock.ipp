#include "kiln/interface/onnxruntime/shim/stock.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "kiln/core/error.hpp"

namespace kiln::onnxruntime {

namespace {

namespace fs = std::filesystem;
constexpr const char* soname = "libonnxruntime.so.1";

/// The file that this code was loaded from.
fs::path own_file() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&find_stock), &info) || !info.dli_fname) return {};
  std::error_code ignored;
  const fs::path found = fs::canonical(info.dli_fname, ignored);
  return found.empty() ? fs::path(info.dli_fname) : found;
}

/// Candidates that were looked at, with the reason why each was not taken.
class search {
 public:
  /// Takes the file where it is an ONNX Runtime and not another copy of the shim.
  bool take(const fs::path& file) {
    std::error_code unreadable;
    if (!fs::exists(file, unreadable)) return refuse(file, "no such file");
    if (fs::equivalent(file, own_, unreadable)) return refuse(file, "kiln's own library");
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return refuse(file, dlerror());
    const bool kilns = dlsym(handle, "kiln_onnxruntime_shim") != nullptr;
    auto* const get = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
    if (kilns || !get) {
      dlclose(handle);
      return refuse(file, kilns ? "kiln's own library" : "it does not export OrtGetApiBase");
    }
    found = {handle, get(), file.string()};
    return true;
  }
  std::string tried() const { return tried_.empty() ? " nothing was there to try" : tried_; }

  stock found;

 private:
  bool refuse(const fs::path& file, const std::string& reason) {
    tried_ += "\n  " + file.string() + ": " + reason;
    return false;
  }
  const fs::path own_ = own_file();
  std::string tried_;
};

/// Files of the process that have the name of ONNX Runtime's library.
std::vector<std::string> loaded() {
  std::vector<std::string> out;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        if (fs::path(info->dlpi_name).filename().string().starts_with("libonnxruntime.so"))
          static_cast<std::vector<std::string>*>(to)->push_back(info->dlpi_name);
        return 0;
      },
      &out);
  return out;
}

/// Folders that the loader looks into for the program's libraries, and the one of what is installed by hand.
std::vector<std::string> folders() {
  std::vector<std::string> out;
  void* const program = dlopen(nullptr, RTLD_NOW);
  Dl_serinfo size{};
  if (program && dlinfo(program, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* const all = reinterpret_cast<Dl_serinfo*>(memory.data());
    if (dlinfo(program, RTLD_DI_SERINFOSIZE, all) == 0 && dlinfo(program, RTLD_DI_SERINFO, all) == 0)
      for (unsigned i = 0; i < all->dls_cnt; ++i) out.emplace_back(all->dls_serpath[i].dls_name);
  }
  if (program) dlclose(program);
  out.emplace_back("/usr/local/lib");
  return out;
}

}  // namespace

stock find_stock() {
  search from;
  if (const char* named = std::getenv("KILN_ONNXRUNTIME_LIBRARY"); named && *named) {
    if (from.take(named)) return from.found;
    raise(errc::not_found, "KILN_ONNXRUNTIME_LIBRARY names no ONNX Runtime:" + from.tried());
  }
  for (const std::string& file : loaded())
    if (from.take(file)) return from.found;
  if (*KILN_ONNXRUNTIME_STOCK && from.take(KILN_ONNXRUNTIME_STOCK)) return from.found;
  for (const std::string& folder : folders())
    if (from.take(fs::path(folder) / soname)) return from.found;
  raise(errc::not_found,
        "kiln's " + std::string(soname) +
            " passes calls to ONNX Runtime, and found none; KILN_ONNXRUNTIME_LIBRARY may name its file. Tried:" +
            from.tried());
}

std::string find_plugin() {
  std::string tried;
  const auto there = [&](const fs::path& file) {
    std::error_code unreadable;
    if (fs::is_regular_file(file, unreadable)) return true;
    tried += "\n  " + file.string();
    return false;
  };
  if (const char* named = std::getenv("KILN_ONNXRUNTIME_EP"); named && *named) {
    if (there(named)) return fs::absolute(named).string();
    raise(errc::not_found, "KILN_ONNXRUNTIME_EP names no file:" + tried);
  }
  fs::path folder = own_file().parent_path();
  for (int up = 0; up < 4; ++up, folder = folder.parent_path())
    if (const fs::path file = folder / "libkiln_onnxruntime_ep.so"; there(file)) return file.string();
  raise(errc::not_found,
        "kiln's plugin libkiln_onnxruntime_ep.so is not there; KILN_ONNXRUNTIME_EP may name it. Tried:" + tried);
}

}  // namespace kiln::onnxruntime
