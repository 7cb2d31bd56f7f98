#include "kiln/backend/hip/compile.hpp"

#include <array>
#include <filesystem>
#include <mutex>

#include "kiln/core/error.hpp"
#include "kiln/runtime/kept_files.hpp"

namespace kiln::hip {
namespace {

const std::string& digest_of_headers() {
  static const std::string made = [] {
    digest d;
    for (const embedded_header& h : embedded_headers()) d.add(h.name), d.add(h.text);
    return d.str();
  }();
  return made;
}

// hiprtc before 5.5 crashes the process where it has no device library.
bool known_to_old_hiprtc(std::string_view name) {
  constexpr std::array known = {"gfx803",  "gfx900",  "gfx902",  "gfx904",  "gfx906",  "gfx908",
                                "gfx909",  "gfx90a",  "gfx90c",  "gfx1010", "gfx1011", "gfx1012",
                                "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035"};
  for (std::string_view one : known)
    if (one == name) return true;
  return false;
}

std::vector<std::string> options_of(const source& what, const architecture& where) {
  std::vector<std::string> out = {"-std=c++20"};
  if (where.on == platform::nvidia) {
    out.push_back("-arch=" + where.name + (what.own_instructions ? "a" : ""));
    out.push_back(what.short_results ? "--fmad=true" : "--fmad=false");
    if (what.short_results) out.push_back("--prec-div=false"), out.push_back("--prec-sqrt=false");
    out.push_back("-default-device");
    out.push_back("-diag-suppress=177,550");
    out.push_back("-DKILN_NVIDIA=1");
    if (where.chains) out.push_back("-DKILN_CHAINED=1");
    if (where.matrices == matrix_unit::wgmma) out.push_back("-DKILN_FLOAT8=1");  // instructions convert them
  } else {
    out.push_back("--offload-arch=" + where.name);
    out.push_back(what.short_results ? "-ffp-contract=fast" : "-ffp-contract=off");
    if (what.short_results) out.push_back("-fno-hip-fp32-correctly-rounded-divide-sqrt");
    out.push_back("-O3");
    out.push_back("-w");
    out.push_back("-DKILN_AMD=1");
    if (where.lanes == 64) out.push_back("-DKILN_WAVE64=1");
  }
  return out;
}

std::string compile_now(const compiler_calls& calls, const source& what, const std::vector<std::string>& options) {
  std::vector<const char*> words, texts, names;
  for (const std::string& one : options) words.push_back(one.c_str());
  for (const embedded_header& h : embedded_headers()) texts.push_back(h.text), names.push_back(h.name);
  void* made = nullptr;
  const auto checked = [&](int code, const char* call) {
    if (code != 0)
      raise(errc::internal, std::string(call) + " of " + calls.library + ": " + calls.hiprtcGetErrorString(code));
  };
  checked(calls.hiprtcCreateProgram(&made, what.text.c_str(), (what.entry + ".hip").c_str(),
                                    static_cast<int>(texts.size()), texts.data(), names.data()),
          "creating a program");
  struct closer {
    const compiler_calls& calls;
    void* made;
    ~closer() { calls.hiprtcDestroyProgram(&made); }
  } close{calls, made};
  if (const int code = calls.hiprtcCompileProgram(made, static_cast<int>(words.size()), words.data())) {
    std::size_t bytes = 0;
    calls.hiprtcGetProgramLogSize(made, &bytes);
    std::string log(bytes, '\0');
    if (bytes != 0) calls.hiprtcGetProgramLog(made, log.data());
    raise(errc::internal, "a generated kernel does not compile (" + std::string(calls.hiprtcGetErrorString(code)) +
                              "): " + what.entry + "\n" + log.c_str() + "\n" + what.text);
  }
  std::size_t bytes = 0;
  checked(calls.hiprtcGetCodeSize(made, &bytes), "getting code");
  std::string code(bytes, '\0');
  checked(calls.hiprtcGetCode(made, code.data()), "getting code");
  return code;
}

}  // namespace

std::string why_not_compiled(const architecture& where) {
  const compiler_calls* calls = find_compiler(where.on);
  const bool amd = where.on == platform::amd;
  if (!calls)
    return std::string("no compiler for ") + where.name + " here: expected " +
           (amd ? "libhiprtc.so or libamdhip64.so" : "libnvrtc.so.13 or libnvrtc.so.12");
  if (amd && (calls->major < 5 || (calls->major == 5 && calls->minor < 5)) && !known_to_old_hiprtc(where.name))
    return calls->library + " of HIP " + std::to_string(calls->major) + "." + std::to_string(calls->minor) +
           " has no device library for " + where.name;
  return {};
}

std::string default_cache_folder() {
  const std::filesystem::path folder = user_cache_folder();
  return folder.empty() ? std::string() : (folder / "hip").string();
}

std::string code_key(const source& what, const architecture& where) {
  digest d;
  d.add(what.entry);
  d.add(what.text);
  for (const std::string& one : options_of(what, where)) d.add(one);
  d.add(digest_of_headers());
  return d.str();
}

std::string code_format(const architecture& where) {
  const compiler_calls* calls = find_compiler(where.on);
  const std::string version = calls ? std::to_string(calls->major) + "." + std::to_string(calls->minor) : "none";
  return where.name + ", " + (where.on == platform::amd ? "hiprtc " : "NVRTC ") + version + ", headers " +
         digest_of_headers();
}

std::string compile(const source& what, const architecture& where, const std::string& cache) {
  if (const std::string why = why_not_compiled(where); !why.empty()) raise(errc::unsupported, why);
  const compiler_calls& calls = *find_compiler(where.on);
  digest d;
  d.add(code_key(what, where));
  d.add(code_format(where));
  const std::filesystem::path file = cache.empty() ? std::filesystem::path() : std::filesystem::path(cache) / d.str();
  if (!cache.empty())
    if (std::string kept = read_file(file); !kept.empty()) return kept;
  // hiprtc of HIP 5 does not survive two compilations at a time
  static std::mutex one_at_a_time;
  std::unique_lock<std::mutex> guard(one_at_a_time, std::defer_lock);
  if (calls.on == platform::amd && calls.major < 6) guard.lock();
  std::string code = compile_now(calls, what, options_of(what, where));
  if (!cache.empty()) keep_file(file, code);
  return code;
}

}  // namespace kiln::hip
