#include "kiln/generate/embedder.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/weights/open_weights.hpp"
#include "kiln/onnx/import.hpp"

namespace kiln::language {

namespace {

bool is_whole(dtype t) { return t == dtype::i64 || t == dtype::i32; }

executable compiled(const embedding_config& c, const target& t, compile_options options) {
  if (!c.takes_types()) {
    onnx::imported read = onnx::read_model(c.model.string());
    options.remarks.insert(options.remarks.begin(), read.remarks.begin(), read.remarks.end());
    return compile(std::move(read.graph), t, options);
  }
  const auto about = find_weights(c.model);
  if (!about)
    throw error(
        errc::not_found,
        c.model.string() + ": expected onnx/model.onnx, model.onnx, or a decoder's weights, found none of them");
  const detail::weight_source from = detail::open_weights(*about);
  detail::built_decoder made = detail::build_decoder(from, about->type,
                                                     {.now = dimension::symbol("tokens", 1),
                                                      .past = dimension::symbol("past", 0),
                                                      .compute = c.compute_type.value_or(dtype::f32),
                                                      .weights = c.weight_type,
                                                      .states_alone = true});
  options.remarks.insert(options.remarks.begin(), made.remarks.begin(), made.remarks.end());
  return compile(std::move(made.graph), t, options);
}

void add_scaled(std::vector<double>& to, const float* row, double by) {
  for (std::size_t k = 0; k < to.size(); ++k) to[k] += by * static_cast<double>(row[k]);
}

// States f32[count, width] of a text's tokens.
std::vector<double> pooled(const std::vector<float>& states, std::size_t count, std::size_t width, pooling by) {
  std::vector<double> out(width, 0);
  const auto row = [&](std::size_t k) { return states.data() + k * width; };
  const auto n = static_cast<double>(count);
  switch (by) {
    case pooling::cls: add_scaled(out, row(0), 1); break;
    case pooling::last: add_scaled(out, row(count - 1), 1); break;
    case pooling::max:
      std::copy_n(row(0), width, out.begin());
      for (std::size_t k = 1; k < count; ++k)
        for (std::size_t i = 0; i < width; ++i) out[i] = std::max(out[i], static_cast<double>(row(k)[i]));
      break;
    case pooling::mean:
    case pooling::mean_sqrt:
      for (std::size_t k = 0; k < count; ++k) add_scaled(out, row(k), 1 / (by == pooling::mean ? n : std::sqrt(n)));
      break;
    case pooling::weighted_mean:
      for (std::size_t k = 0; k < count; ++k) add_scaled(out, row(k), static_cast<double>(k + 1) / (n * (n + 1) / 2));
      break;
  }
  return out;
}

}  // namespace

embedder::embedder(embedding_config c, executable exe) : settings_(std::move(c)), exe_(std::move(exe)) {
  const std::string where = settings_.model.string() + ": ";
  for (const port& p : exe_.inputs()) {
    const std::size_t rank = p.type.lens.size();
    const bool is_row = rank == 2 && is_whole(p.type.type);
    if (p.name == "input_ids" && is_row)
      roles_.push_back(role::tokens);
    else if (p.name == "attention_mask" && is_row)
      roles_.push_back(role::ones);
    else if (p.name == "token_type_ids" && is_row)
      roles_.push_back(role::zeros);
    else if (p.name == "position_ids" && is_row)
      roles_.push_back(role::positions);
    else if (p.name.starts_with("past_key_values") && rank == 4)
      roles_.push_back(role::cache);
    else
      throw error(errc::unsupported, where + "an input of an embedding model is input_ids, attention_mask, " +
                                         "token_type_ids, position_ids or past_key_values.*, found " +
                                         std::string(p.name) + " " + to_string(p.type));
  }
  if (std::find(roles_.begin(), roles_.end(), role::tokens) == roles_.end())
    throw error(errc::unsupported, where + "expected an input input_ids, found none");
  const auto outs = exe_.outputs();
  std::vector<std::size_t> found;
  for (std::size_t k = 0; k < outs.size(); ++k) {
    if (outs[k].type.lens.size() != 3 || !is_float(outs[k].type.type)) continue;
    const std::string_view name = outs[k].name;
    if (name == "last_hidden_state" || name == "token_embeddings") {
      found = {k};
      break;
    }
    found.push_back(k);
  }
  if (found.size() != 1)
    throw error(errc::unsupported, where +
                                       "expected an output last_hidden_state or token_embeddings, or one alone of " +
                                       "rank 3, found " + std::to_string(found.size()));
  states_ = found[0];
  const dimension width = outs[states_].type.lens.back();
  if (!width.is_constant())
    throw error(errc::unsupported, where + "expected states of a known width, found " + to_string(width));
  width_ = width.value();
}

std::shared_ptr<const embedder> embedder::load(const embedding_config& c, const target& t, compile_options options) {
  return std::shared_ptr<const embedder>(new embedder(c, compiled(c, t, std::move(options))));
}

std::vector<float> embedder::embed(std::span<const token> text, std::int64_t dimensions) const {
  const auto refuse = [](const std::string& what) { throw error(errc::invalid_argument, what); };
  const auto count = static_cast<std::int64_t>(text.size());
  if (text.empty()) refuse("a text to embed has at least one token");
  if (settings_.max_tokens > 0 && count > settings_.max_tokens)
    refuse("the model embeds texts of at most " + std::to_string(settings_.max_tokens) + " tokens: found " +
           std::to_string(count));
  if (dimensions < 0 || dimensions > width_)
    refuse("dimensions: expected 1 to " + std::to_string(width_) + ", found " + std::to_string(dimensions));
  workspace w;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) w = std::move(free_.back()), free_.pop_back();
  }
  std::vector<argument> in;
  const auto ports = exe_.inputs();
  for (std::size_t k = 0; k < ports.size(); ++k) {
    shape s = ports[k].type;
    if (roles_[k] == role::cache) {
      s.lens[0] = 1, s.lens[2] = 0;
      in.emplace_back(s);
      continue;
    }
    s.lens = {1, count};
    std::vector<std::int64_t> numbers(text.size(), roles_[k] == role::ones ? 1 : 0);
    if (roles_[k] == role::tokens) numbers.assign(text.begin(), text.end());
    if (roles_[k] == role::positions)
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    argument a(s);
    encode(s.type, numbers.data(), a.data(), count);
    in.push_back(std::move(a));
  }
  std::vector<argument> out(exe_.outputs().size());
  exe_.run(w, in, out);
  const auto states = out[states_].to<float>();
  out.clear();  // may be the workspace's memory
  {
    constexpr std::size_t kept = 8;
    const std::lock_guard lock(mutex_);
    if (free_.size() < kept) free_.push_back(std::move(w));
  }
  if (static_cast<std::int64_t>(states.size()) != count * width_)
    throw error(errc::unsupported, "expected a state of each token: " + std::to_string(count * width_) +
                                       " numbers, found " + std::to_string(states.size()));
  auto sums = pooled({states.begin(), states.end()}, text.size(), static_cast<std::size_t>(width_), settings_.by);
  if (dimensions > 0) sums.resize(static_cast<std::size_t>(dimensions));
  double length = 0;
  for (const double x : sums) length += x * x;
  length = settings_.normalizes && length > 0 ? std::sqrt(length) : 1;
  std::vector<float> made;
  for (const double x : sums) made.push_back(static_cast<float>(x / length));
  return made;
}

}  // namespace kiln::language
