#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/generate/engine.hpp"

// families FOLDER: a language model of test/peer/families/make.py gives the tokens that ONNX Runtime gave, alone and
// side by side, and the logits of the prompts. Exits with 77 where the folder was not written.
namespace {

using namespace kiln::language;

struct expected_row {
  tokens prompt, all;
  std::vector<double> logits;
};

int faults = 0;
void expect_tokens(const char* how, const tokens& found, const tokens& expected) {
  if (found == expected) return;
  ++faults;
  std::size_t k = 0;
  while (k < found.size() && k < expected.size() && found[k] == expected[k]) ++k;
  std::printf("%s: token %zu of %zu differs\n", how, k, expected.size());
}

void expect_logits(generator& g, const expected_row& row, double tolerance) {
  const auto found = g.logits().to<double>();
  double greatest = 0, apart = 0;
  for (std::size_t i = 0; i < row.logits.size(); ++i) {
    greatest = std::max(greatest, std::fabs(row.logits[i]));
    const double d = std::fabs(found[i] - row.logits[i]);
    if (!(d <= apart)) apart = d;
  }
  std::printf("logits apart by %.2g of their greatest, at most %.2g\n", apart / greatest, tolerance);
  if (!(apart <= tolerance * greatest)) ++faults;
}

// As requests of an engine, of which the second comes later.
void run_engine(const std::shared_ptr<const language_model>& model, const std::vector<expected_row>& rows) {
  engine e(model, {.max_scheduled_tokens = 3});
  std::vector<std::shared_ptr<request>> all;
  for (const expected_row& row : rows) {
    search_options search = model->settings().search;
    search.max_length = static_cast<std::int64_t>(row.all.size());
    all.push_back(std::make_shared<request>(model, search));
    all.back()->add_tokens(row.prompt);
    e.add(all.back());
    for (int k = 0; k < 3; ++k) e.step();
  }
  while (e.has_pending()) e.step();
  for (std::size_t b = 0; b < rows.size(); ++b) expect_tokens("by an engine", all[b]->sequence(), rows[b].all);
}

void run(const std::string& folder) {
  const auto json = nlohmann::json::parse(std::ifstream(folder + "/expected.json"));
  std::vector<expected_row> rows;
  for (const auto& r : json["rows"]) rows.push_back({r["prompt"], r["tokens"], r["logits"]});
  kiln::compile_options options;
  options.threads = 1;
  config c = read_config(folder);
  c.share_prefixes = false;  // every sequence runs all of its tokens
  const auto model = language_model::load(c, kiln::eigen_target(), options);
  search_options search = model->settings().search;
  for (const expected_row& row : rows) {
    search.max_length = static_cast<std::int64_t>(row.all.size());
    generator g(model, search);
    g.append_tokens(row.prompt);
    expect_logits(g, row, json["tolerance"]);
    while (!g.is_done()) g.generate_next_token();
    expect_tokens("alone", g.sequence(0), row.all);
  }
  // prompts of different lengths side by side; the shorter one has padding between its prompt and what follows
  search.batch_size = static_cast<std::int64_t>(rows.size());
  std::vector<tokens> prompts;
  std::size_t longest = 0;
  for (const expected_row& row : rows) {
    prompts.push_back(row.prompt);
    longest = std::max(longest, row.prompt.size());
    search.max_length = std::max(search.max_length, static_cast<std::int64_t>(row.all.size()));
  }
  generator g(model, search);
  g.append_sequences(prompts);
  while (!g.is_done()) g.generate_next_token();
  for (std::size_t b = 0; b < rows.size(); ++b) {
    tokens with_padding = rows[b].all;
    with_padding.insert(with_padding.begin() + static_cast<std::ptrdiff_t>(rows[b].prompt.size()),
                        longest - rows[b].prompt.size(), model->settings().pad_token_id.value_or(0));
    expect_tokens("side by side", g.sequence(b), with_padding);
  }
  run_engine(model, rows);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::puts("usage: families FOLDER");
    return 2;
  }
  if (!std::ifstream(std::string(argv[1]) + "/expected.json")) {
    std::printf("SKIPPED: %s was not written\n", argv[1]);
    return 77;
  }
  try {
    run(argv[1]);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
  return faults == 0 ? 0 : 1;
}
