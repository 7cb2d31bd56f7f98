#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace kiln::language::testing {

/// A decoder in plain loops over doubles, token by token, written from the papers and independent of kiln's blocks.
/// Matrices are [outputs, inputs] by role: `token_embd`, `blk.0.attn_q`, …; a bias has `.bias` at the end.
struct reference {
  std::size_t layers = 2, width = 32, heads = 4, kv_heads = 2, depth = 8, vocabulary = 48;
  double epsilon = 1e-6, scale = 0, softcap = 0, logit_softcap = 0, embedding_scale = 1, turn_factor = 1;
  bool layer_norm = false, one_more = false, parallel = false, norms_after = false, adjacent = false, gelu_tanh = false;
  std::vector<std::size_t> windows;          // by layer; 0: all
  std::vector<std::vector<double>> inverse;  // by layer; the last one for those that follow
  std::size_t used = 0;                      // experts of each token
  bool shares_sum_to_one = true;
  std::map<std::string, std::vector<float>> weights;

  using row = std::vector<double>;

  /// Logits of each token of a sequence.
  std::vector<row> run(const std::vector<int>& tokens) const {
    std::vector<std::vector<row>> keys(layers), values(layers);
    std::vector<row> out;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      row x = row_of("token_embd", static_cast<std::size_t>(tokens[t]), width);
      for (double& v : x) v *= embedding_scale;
      if (has("position_embd")) add(x, row_of("position_embd", t, width));
      for (std::size_t l = 0; l < layers; ++l) layer(x, l, t, keys[l], values[l]);
      row logits = times(has("output") ? "output" : "token_embd", norm(x, "output_norm"));
      if (logit_softcap != 0)
        for (double& v : logits) v = std::tanh(v / logit_softcap) * logit_softcap;
      out.push_back(std::move(logits));
    }
    return out;
  }

  /// The tokens that follow by the greatest score.
  std::vector<int> greedy(std::vector<int> tokens, std::size_t count) const {
    for (std::size_t k = 0; k < count; ++k) {
      const row last = run(tokens).back();
      tokens.push_back(static_cast<int>(std::max_element(last.begin(), last.end()) - last.begin()));
    }
    return tokens;
  }

 private:
  bool has(const std::string& name) const { return weights.count(name) != 0; }
  static void add(row& to, const row& by) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += by[i];
  }
  row row_of(const std::string& name, std::size_t k, std::size_t n) const {
    const auto& w = weights.at(name);
    return {w.begin() + static_cast<std::ptrdiff_t>(k * n), w.begin() + static_cast<std::ptrdiff_t>((k + 1) * n)};
  }
  row times(const std::string& name, const row& x) const {
    const auto& w = weights.at(name);
    row y(w.size() / x.size(), 0);
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t k = 0; k < x.size(); ++k) y[i] += w[i * x.size() + k] * x[k];
    if (has(name + ".bias")) add(y, row_of(name + ".bias", 0, y.size()));
    return y;
  }
  row norm(const row& x, const std::string& name, bool by_square = false) const {
    double mean = 0, square = 0;
    const bool centers = layer_norm && !by_square;
    const auto n = static_cast<double>(x.size());
    if (centers) mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
    for (const double v : x) square += (v - mean) * (v - mean);
    row y(x.size());
    const auto& w = weights.at(name);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = (x[i] - mean) / std::sqrt(square / n + epsilon) * (static_cast<double>(w[i]) + (one_more ? 1 : 0));
    if (has(name + ".bias")) add(y, row_of(name + ".bias", 0, y.size()));
    return y;
  }
  void turn(double* x, const row& w, std::size_t at) const {
    const std::size_t half = w.size();
    for (std::size_t i = 0; i < half; ++i) {
      double &a = x[adjacent ? 2 * i : i], &b = x[adjacent ? 2 * i + 1 : i + half];
      const double angle = static_cast<double>(at) * w[i], c = std::cos(angle) * turn_factor,
                   s = std::sin(angle) * turn_factor, was = a;
      a = was * c - b * s;
      b = was * s + b * c;
    }
  }
  double unit(double x) const {
    if (!gelu_tanh) return x / (1 + std::exp(-x));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  row network(const row& x, const std::string& gate, const std::string& up, const std::string& down) const {
    row y = times(up, x);
    if (has(gate)) {
      const row g = times(gate, x);
      for (std::size_t i = 0; i < y.size(); ++i) y[i] *= unit(g[i]);
    } else if (weights.at(down).size() / width == y.size()) {
      for (double& v : y) v = unit(v);
    } else {  // gates first
      const std::size_t half = y.size() / 2;
      for (std::size_t i = 0; i < half; ++i) y[i] = unit(y[i]) * y[i + half];
      y.resize(half);
    }
    return times(down, y);
  }
  row feed_forward(const row& x, const std::string& at) const {
    if (used == 0) return network(x, at + "ffn_gate", at + "ffn_up", at + "ffn_down");
    row p = times(at + "ffn_gate_inp", x);
    double sum = 0;
    for (double& v : p) sum += v = std::exp(v);
    for (double& v : p) v /= sum;
    std::vector<std::size_t> order(p.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
    double kept = 0;
    for (std::size_t k = 0; k < used; ++k) kept += p[order[k]];
    row y(width, 0);
    for (std::size_t k = 0; k < used; ++k) {
      const std::string e = "." + std::to_string(order[k]);
      const row one = network(x, at + "ffn_gate_exps" + e, at + "ffn_up_exps" + e, at + "ffn_down_exps" + e);
      for (std::size_t i = 0; i < width; ++i) y[i] += one[i] * p[order[k]] / (shares_sum_to_one ? kept : 1);
    }
    if (!has(at + "ffn_up_shexp")) return y;
    const row one = network(x, at + "ffn_gate_shexp", at + "ffn_up_shexp", at + "ffn_down_shexp");
    const double gate = 1 / (1 + std::exp(-times(at + "ffn_gate_inp_shexp", x)[0]));
    for (std::size_t i = 0; i < width; ++i) y[i] += one[i] * gate;
    return y;
  }
  void layer(row& x, std::size_t l, std::size_t t, std::vector<row>& keys, std::vector<row>& values) const {
    const std::string at = "blk." + std::to_string(l) + ".";
    const row h = norm(x, at + "attn_norm");
    row q, k, v;
    if (has(at + "attn_qkv")) {
      const row all = times(at + "attn_qkv", h);
      const auto cut = [&](std::size_t from, std::size_t n) {
        return row(all.begin() + static_cast<std::ptrdiff_t>(from),
                   all.begin() + static_cast<std::ptrdiff_t>(from + n));
      };
      q = cut(0, heads * depth), k = cut(heads * depth, kv_heads * depth);
      v = cut((heads + kv_heads) * depth, kv_heads * depth);
    } else {
      q = times(at + "attn_q", h), k = times(at + "attn_k", h), v = times(at + "attn_v", h);
    }
    const auto prepare = [&](row& of, const char* name) {
      for (std::size_t g = 0; g < of.size() / depth; ++g) {
        double* const head = of.data() + g * depth;
        if (has(at + name)) {
          const row y = norm(row(head, head + depth), at + name, true);
          std::copy(y.begin(), y.end(), head);
        }
        if (!inverse.empty()) turn(head, inverse[std::min(l, inverse.size() - 1)], t);
      }
    };
    prepare(q, "attn_q_norm"), prepare(k, "attn_k_norm");
    keys.push_back(k), values.push_back(v);
    row mixed(heads * depth, 0);
    const std::size_t window = windows.empty() ? 0 : windows[l];
    const std::size_t first = window != 0 && t + 1 > window ? t + 1 - window : 0;
    for (std::size_t g = 0; g < heads; ++g) {
      const std::size_t own = g / (heads / kv_heads) * depth;
      row p;
      double sum = 0;
      for (std::size_t j = first; j <= t; ++j) {
        double s = 0;
        for (std::size_t i = 0; i < depth; ++i) s += q[g * depth + i] * keys[j][own + i];
        s *= scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(depth));
        if (softcap != 0) s = std::tanh(s / softcap) * softcap;
        p.push_back(s);
      }
      const double top = *std::max_element(p.begin(), p.end());
      for (double& s : p) sum += s = std::exp(s - top);
      for (std::size_t j = first; j <= t; ++j)
        for (std::size_t i = 0; i < depth; ++i) mixed[g * depth + i] += p[j - first] / sum * values[j][own + i];
    }
    row y = times(at + "attn_output", mixed);
    if (parallel) {
      add(x, y);
      return add(x, feed_forward(h, at));
    }
    add(x, norms_after ? norm(y, at + "post_attention_norm", true) : y);
    y = feed_forward(norm(x, at + "ffn_norm"), at);
    add(x, norms_after ? norm(y, at + "post_ffw_norm", true) : y);
  }
};

}  // namespace kiln::language::testing
