#include "kiln/runtime/options.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t most_threads = 1024, most_cached_mib = 1 << 30;

constexpr compile_option compile_rows[] = {
    make_option<&compile_options::threads>("threads", "threads that a run uses; 0: one for each processor",
                                           most_threads),
    make_option<&compile_options::tune>("tune", "choose kernels by timing them on this machine; the choices are kept"),
    make_path_option<&compile_options::tuning_file>(
        "tuning_file", "file in which tune keeps its choices; empty: kiln/tuned.tsv in the user's cache folder"),
    make_path_option<&compile_options::cache>(
        "cache", "folder that keeps compiled programs and gives them back; empty: nothing is kept"),
    make_option<&compile_options::cache_limit>(
        "cache_limit", "MiB that the folder of compiled programs may hold; the least recently used go first",
        most_cached_mib),
    make_option<&compile_options::passes, &pass_options::simplify>(
        "simplify", "rewrite the graph to fewer and cheaper instructions"),
    make_option<&compile_options::passes, &pass_options::fuse>("fuse", "group instructions into kernels"),
    make_option<&compile_options::passes, &pass_options::verify>("verify_passes",
                                                                 "check the graph's invariants after each pass"),
    make_option<&compile_options::aliases>(
        "alias", "OUTPUT=INPUT: the output grows in the memory of the input, as a key-value cache does"),
};
static_assert(is_well_formed<compile_options>(compile_rows));

constexpr run_option run_rows[] = {
    make_option<&run_options::stream>(
        "stream", "a GPU's stream that is given the run's work without waiting; 0: the run has its own and waits"),
};
static_assert(is_well_formed<run_options>(run_rows));

}  // namespace

std::span<const compile_option> compile_option_table() { return compile_rows; }
std::span<const run_option> run_option_table() { return run_rows; }

void set_option(compile_options& to, std::string_view name, std::string_view value) {
  find_option(compile_option_table(), name).set(to, value);
}
void set_option(run_options& to, std::string_view name, std::string_view value) {
  find_option(run_option_table(), name).set(to, value);
}

std::string get_option(const compile_options& from, std::string_view name) {
  return find_option(compile_option_table(), name).get(from);
}
std::string get_option(const run_options& from, std::string_view name) {
  return find_option(run_option_table(), name).get(from);
}

}  // namespace kiln
