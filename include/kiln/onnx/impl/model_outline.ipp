#include "kiln/onnx/impl/model_outline.hpp"

#include <cstdint>

namespace kiln::onnx {
namespace {

using bytes_view = std::span<const std::byte>;

// Fields of the messages in onnx.proto, and the encodings of protobuf's wire format.
constexpr std::uint64_t model_graph = 7, graph_initializer = 5, tensor_raw_data = 9;
constexpr std::uint64_t varint = 0, eight_bytes = 1, delimited = 2, four_bytes = 5;
constexpr std::size_t large = std::size_t{1} << 14;

struct field {
  std::uint64_t number = 0, encoding = 0;
  bytes_view whole;    // with tag and length
  bytes_view content;  // of one with a length
};

// Takes a message apart; `ok()` is false from the first byte on that is none of a message.
class fields {
 public:
  explicit fields(bytes_view message) : rest_(message) {}
  bool ok() const { return ok_; }

  bool next(field& f) {
    if (!ok_ || rest_.empty()) return false;
    const bytes_view from = rest_;
    std::uint64_t tag = 0, size = 0;
    ok_ = number(tag);
    f.number = tag >> 3, f.encoding = tag & 7, f.content = {};
    if (ok_ && f.encoding == varint) {
      ok_ = number(size);
    } else if (ok_) {
      ok_ = f.encoding == eight_bytes || f.encoding == four_bytes || f.encoding == delimited;
      size = f.encoding == eight_bytes ? 8 : 4;
      if (ok_ && f.encoding == delimited) ok_ = number(size);
      ok_ = ok_ && size <= rest_.size();
      if (!ok_) return false;
      f.content = rest_.first(size);
      rest_ = rest_.subspan(size);
    }
    f.whole = from.first(from.size() - rest_.size());
    return ok_;
  }

 private:
  bool number(std::uint64_t& to) {
    to = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<std::uint64_t>(rest_[0]);
      rest_ = rest_.subspan(1);
      to |= (byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  bytes_view rest_;
  bool ok_ = true;
};

void append(std::string& to, bytes_view bytes) { to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }
void append_number(std::string& to, std::uint64_t n) {
  for (; n > 127; n >>= 7) to += static_cast<char>(n | 128);
  to += static_cast<char>(n);
}
void append_message(std::string& to, std::uint64_t number, const std::string& message) {
  append_number(to, number << 3 | delimited);
  append_number(to, message.size());
  to += message;
}

// Writes a tensor without its raw bytes, which are the answer; false where it is no message.
bool outline_tensor(bytes_view message, std::string& to, bytes_view& raw) {
  fields all(message);
  std::string text;
  for (field f; all.next(f);) {
    if (f.number == tensor_raw_data && f.encoding == delimited && f.content.size() >= large && raw.empty())
      raw = f.content;
    else if (f.number == tensor_raw_data)
      return false;  // of several the last one counts
    else
      append(text, f.whole);
  }
  append_message(to, graph_initializer, text);
  return all.ok();
}

bool outline_graph(bytes_view message, model_outline& to, std::string& text) {
  fields all(message);
  for (field f; all.next(f);) {
    if (f.number != graph_initializer || f.encoding != delimited) {
      append(text, f.whole);
      continue;
    }
    bytes_view raw;
    if (f.content.size() < large)
      append(text, f.whole);
    else if (std::string tensor; outline_tensor(f.content, tensor, raw))
      text += tensor;
    else
      append(text, f.whole), raw = {};
    to.raw.push_back(raw);
  }
  return all.ok();
}

}  // namespace

std::optional<model_outline> outline_of(bytes_view bytes) {
  if (bytes.size() < large) return std::nullopt;
  model_outline out;
  std::string graph;
  int graphs = 0;
  fields all(bytes);
  for (field f; all.next(f);) {
    if (f.number != model_graph || f.encoding != delimited)
      append(out.text, f.whole);
    else if (++graphs > 1 || !outline_graph(f.content, out, graph))
      return std::nullopt;
  }
  if (!all.ok() || graphs != 1) return std::nullopt;
  append_message(out.text, model_graph, graph);
  return out.text.size() <= bytes.size() / 2 ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace kiln::onnx
