#include <map>
#include <regex>
#include <sstream>

#include "driver/program.hpp"

// What the program says of itself, and that it takes every flag that it names.
namespace kiln::driver {
namespace {

class help : public program {
 protected:
  // The help of a verb; empty: of all. A flag that another one takes for its own makes each call of a verb fail.
  std::string of(const std::string& verb) {
    const outcome o = kiln(verb + " --help");
    EXPECT_EQ(o.status, 0) << verb << ": " << o.error;
    EXPECT_THAT(o.out, HasSubstr("Usage: kiln" + (verb.empty() ? "" : " " + verb) + " ")) << verb;
    EXPECT_THAT(o.error, IsEmpty()) << verb;
    return o.out;
  }
  static std::vector<std::string> verbs_in(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream lines(text.substr(std::min(text.size(), text.find("Subcommands:"))));
    const std::regex form("  ([a-z]+) .*");
    std::smatch found;
    for (std::string line; std::getline(lines, line) && (out.empty() || !line.empty());)
      if (std::regex_match(line, found, form)) out.push_back(found[1]);
    return out;
  }
  struct flag {
    std::string name, type;  // `type` is empty where it takes no value
  };
  static std::vector<flag> flags_in(const std::string& text) {
    std::vector<flag> out;
    std::istringstream lines(text);
    const std::regex form("  (-[^ ]+)(?: ([A-Z][^ ]*))?.*");
    std::smatch found;
    for (std::string line; std::getline(lines, line);) {
      if (!std::regex_match(line, found, form)) continue;
      std::istringstream names(found[1]);
      for (std::string name; std::getline(names, name, ',');) out.push_back({name.substr(0, name.find('{')), found[2]});
    }
    return out;
  }
};

TEST_F(help, is_there_for_every_verb) {
  const auto verbs = verbs_in(of(""));
  EXPECT_THAT(verbs, testing::IsSupersetOf({"run", "test", "perf", "show", "verify", "ops", "serve", "genai"}));
  for (const std::string& verb : verbs)
    for (const std::string& inner : verbs_in(of(verb))) of(verb + " " + inner);
}

// With a good value each time, so that what is refused is the model, which is not there.
TEST_F(help, names_flags_of_serve_that_are_all_taken) {
  write("line", "a line\n");
  const std::map<std::string, std::string> values = {{"--api-key-file", at("line")},
                                                     {"--chat-template", at("line")},
                                                     {"--log", at("log")},
                                                     {"--tls-cert", at("line") + " --tls-key " + at("line")},
                                                     {"--tls-key", at("line") + " --tls-cert " + at("line")},
                                                     {"--speculative", "ngram_size=3"},
                                                     {"--compute-type", "f32"},
                                                     {"--weights", "int4"},
                                                     {"--cache-type", "f16"},
                                                     {"--allow-origin", "http://localhost:3000"},
                                                     {"--target", "eigen"}};
  std::size_t taken = 0;
  std::vector<std::string> names;
  for (const flag& f : flags_in(of("serve"))) {
    names.push_back(f.name);
    if (f.name == "-h" || f.name == "--help") continue;
    std::string value = f.type.empty() ? "" : f.type == "NAME=NAME" ? "out=in" : "3";
    if (const auto special = values.find(f.name); special != values.end()) value = special->second;
    const outcome o = kiln("serve " + at("none.gguf") + " " + f.name + " " + value);
    EXPECT_EQ(o.status, 2) << f.name;
    EXPECT_THAT(o.error, AllOf(HasSubstr("not found: kiln serve"), HasSubstr(at("none.gguf")))) << f.name;
    ++taken;
  }
  EXPECT_GT(taken, 40u);
  EXPECT_THAT(names, testing::IsSupersetOf({"-m", "--model", "-a", "--served-model-name", "-c", "--context-length",
                                            "--ctx-size", "--max-model-len", "--max-num-seqs", "--parallel",
                                            "--max-num-batched-tokens", "--alias", "--no-fuse"}));
}

}  // namespace
}  // namespace kiln::driver
