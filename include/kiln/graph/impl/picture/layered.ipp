#include <algorithm>
#include <type_traits>

#include "kiln/graph/impl/picture/layered.hpp"

namespace kiln::picture {

namespace {

double mean(const std::vector<std::size_t>& of, const std::vector<double>& values) {
  double sum = 0;
  for (const std::size_t b : of) sum += values[b];
  return sum / static_cast<double>(of.size());
}

picture_note note_of(const module_graph::instruction& i) {
  return {i.kind == instruction_kind::op ? color_of(i.op.kind()) : "#ffffff", {}};
}
// What the notes say of an instruction or output.
template <class Key>
picture_note note_of(const std::map<Key, picture_note>& notes, std::type_identity_t<Key> at, const std::string& other) {
  const auto found = notes.find(at);
  return found != notes.end() ? found->second : picture_note{other, {}};
}

}  // namespace

layered_drawing::layered_drawing(const program& p, const picture_notes* notes) {
  add_boxes(p, notes);
  add_bends();
  order_layers();
  place_boxes();
}

std::size_t layered_drawing::add_box(std::vector<std::string> lines, picture_note note, std::size_t layer) {
  box b;
  std::size_t widest = 4;
  for (const std::string& l : lines) widest = std::max(widest, characters(l));
  b.width = static_cast<double>(widest) * 6.8 + 16;
  b.height = static_cast<double>(lines.size()) * line_height + 8;
  b.lines = std::move(lines);
  b.color = std::move(note.color);
  b.tooltip = std::move(note.text);
  b.layer = layer;
  boxes_.push_back(std::move(b));
  return boxes_.size() - 1;
}
void layered_drawing::join(std::size_t from, std::size_t to) {
  auto& list = boxes_[from].below;
  if (std::find(list.begin(), list.end(), to) != list.end()) return;
  list.push_back(to);
  boxes_[to].above.push_back(from);
}
void layered_drawing::add_boxes(const program& p, const picture_notes* notes) {
  const module_graph& m = p.main();
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> box_of(m.size(), none);
  const std::vector<bool> boxes = boxes_of(m);
  for (const std::uint32_t k : m.order()) {
    const auto& i = m[k];
    if (!boxes[k]) {
      if (!i.inputs.empty()) box_of[k] = box_of[i.inputs[0].instruction];  // a view that another one continues
      continue;
    }
    std::size_t layer = 0;
    for (const value_id v : i.inputs)
      if (box_of[v.instruction] != none) layer = std::max(layer, boxes_[box_of[v.instruction]].layer + 1);
    box_of[k] = add_box(label_of(p, m, boxes, k),
                        notes ? note_of(notes->instructions, k, notes->other_color) : note_of(i), layer);
    for (const value_id v : i.inputs)
      if (box_of[v.instruction] != none) join(box_of[v.instruction], box_of[k]);
  }
  for (std::size_t k = 0; k < m.outputs.size(); ++k) {
    const std::size_t from = box_of[m.outputs[k].instruction];
    const std::size_t to = add_box({output_name(m, k)},
                                   notes ? note_of(notes->outputs, k, notes->other_color) : picture_note{"#ffffff", {}},
                                   from == none ? 0 : boxes_[from].layer + 1);
    if (from != none) join(from, to);
  }
  // sources stand right above their first reader
  for (box& b : boxes_) {
    if (!b.above.empty() || b.below.empty()) continue;
    std::size_t first = none;
    for (const std::size_t c : b.below) first = std::min(first, boxes_[c].layer);
    b.layer = first - 1;
  }
}
void layered_drawing::add_bends() {
  const std::size_t n = boxes_.size();
  for (std::size_t from = 0; from < n; ++from) {
    const auto targets = std::move(boxes_[from].below);
    boxes_[from].below.clear();
    for (const std::size_t to : targets) {
      std::erase(boxes_[to].above, from);
      if (boxes_[to].layer > boxes_[from].layer + longest_edge) {
        boxes_[from].far_below.push_back(to);
        continue;
      }
      std::size_t at = from;
      for (std::size_t l = boxes_[from].layer + 1; l < boxes_[to].layer; ++l) {
        box bend;
        bend.layer = l;
        boxes_.push_back(std::move(bend));
        join(at, boxes_.size() - 1);
        at = boxes_.size() - 1;
      }
      join(at, to);
    }
  }
  for (std::size_t b = 0; b < boxes_.size(); ++b) {
    if (boxes_[b].layer >= layers_.size()) layers_.resize(boxes_[b].layer + 1);
    layers_[boxes_[b].layer].push_back(b);
  }
}
// Fewer crossings: each layer is sorted by the mean position of its neighbors, downwards and upwards in turn.
void layered_drawing::order_layers() {
  std::vector<double> position(boxes_.size(), 0);
  const auto number_layer = [&](const std::vector<std::size_t>& layer) {
    for (std::size_t k = 0; k < layer.size(); ++k) position[layer[k]] = static_cast<double>(k);
  };
  for (const auto& layer : layers_) number_layer(layer);
  for (int sweep = 0; sweep < 6; ++sweep)
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      auto& layer = layers_[sweep % 2 ? layers_.size() - 1 - k : k];
      std::vector<std::pair<double, std::size_t>> keyed;
      for (const std::size_t b : layer) {
        const auto& near = sweep % 2 ? boxes_[b].below : boxes_[b].above;
        keyed.emplace_back(near.empty() ? position[b] : mean(near, position), b);
      }
      std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t j = 0; j < layer.size(); ++j) layer[j] = keyed[j].second;
      number_layer(layer);
    }
}
// Boxes move towards the middle of their neighbors as far as their layer's order and widths allow.
void layered_drawing::place_boxes() {
  for (const auto& layer : layers_) {
    double x = margin;
    for (const std::size_t b : layer) {
      boxes_[b].x = x + boxes_[b].width / 2;
      x += boxes_[b].width + gap_x;
    }
  }
  for (int sweep = 0; sweep < 12; ++sweep)
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      const auto& layer = layers_[sweep % 2 ? layers_.size() - 1 - k : k];
      for (std::size_t j = 0; j < layer.size(); ++j) {
        box& b = boxes_[layer[j]];
        double sum = 0;
        for (const std::size_t n : b.above) sum += boxes_[n].x;
        for (const std::size_t n : b.below) sum += boxes_[n].x;
        const std::size_t count = b.above.size() + b.below.size();
        if (!count) continue;
        double x = sum / static_cast<double>(count);
        if (j + 1 < layer.size()) {
          const box& next = boxes_[layer[j + 1]];
          x = std::min(x, next.x - (next.width + b.width) / 2 - gap_x);
        }
        double low = margin + b.width / 2;
        if (j > 0) {
          const box& last = boxes_[layer[j - 1]];
          low = last.x + (last.width + b.width) / 2 + gap_x;
        }
        b.x = std::max(x, low);
      }
    }
  // the last sweep may have left overlaps on the right
  for (const auto& layer : layers_)
    for (std::size_t j = 1; j < layer.size(); ++j) {
      const box& last = boxes_[layer[j - 1]];
      box& b = boxes_[layer[j]];
      b.x = std::max(b.x, last.x + (last.width + b.width) / 2 + gap_x);
    }
}

}  // namespace kiln::picture
