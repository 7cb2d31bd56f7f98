#include "kiln/onnx/impl/parse.hpp"
#include "kiln/op/dynamic/bind_dims.hpp"

// Numbers that attributes need and a run computes: each becomes a symbol that the run binds.
namespace kiln::onnx {

namespace {

class binder {
 public:
  binder(const call& c, std::string_view what, std::int64_t least) : c_(c), what_(what), least_(least) {}

  // A list is often put together from extents that are known and one number that is not.
  void collect(value v) {
    const auto& producer = c_.build.module().producer(v.id());
    if (producer.kind == instruction_kind::literal) {
      for (const dimension d : producer.constant.to<dimension>()) found.push_back(d);
    } else if (producer.kind == instruction_kind::op && producer.op.is<op::concat>()) {
      const small_vector<value_id> parts = producer.inputs;
      for (const value_id part : parts) collect(c_.build.wrap(part));
    } else {
      name(v);
    }
  }

  small_vector<dimension> found;

 private:
  void name(value v) {
    const dimension count = v.get_shape().elements();
    constexpr std::int64_t most = op::bind_dims().names.capacity();
    if (!count.is_constant() || count.value() > most)
      c_.unsupported(what_ + " has " + kiln::to_string(count) + " elements, and a run computes them");
    op::bind_dims o;
    for (std::int64_t k = 0; k < count.value(); ++k) {
      o.names.push_back(c_.bodies->fresh_symbol(what_, least_));
      found.push_back(o.names[static_cast<std::size_t>(k)]);
    }
    value numbers = v.convert(dtype::i64).reshape({count});
    if (least_ < 0) {
      const auto bound = [&](std::int64_t n) { return c_.build.scalar(dtype::i64, n); };
      numbers = numbers.max(bound(least_)).min(bound(-least_));
    }
    c_.build.add(o, numbers);
  }

  const call& c_;
  std::string what_;
  std::int64_t least_;
};

}  // namespace

std::vector<std::optional<dimension>> known_elements(const call& c, value list, std::string_view what) {
  const auto& producer = c.build.module().producer(list.id());
  std::vector<std::optional<dimension>> out;
  if (producer.kind == instruction_kind::literal) {
    for (const dimension d : producer.constant.to<dimension>()) out.push_back(d);
  } else if (producer.kind == instruction_kind::op && producer.op.is<op::concat>()) {
    for (const value_id part : producer.inputs)
      for (const auto& d : known_elements(c, c.build.wrap(part), what)) out.push_back(d);
  } else {
    const dimension count = list.get_shape().elements();
    constexpr std::int64_t most = 2 * max_rank;
    if (!count.is_constant() || count.value() > most)
      c.unsupported(std::string(what) + " has " + kiln::to_string(count) + " elements, and a run computes them");
    out.resize(static_cast<std::size_t>(count.value()));
  }
  return out;
}

small_vector<dimension> call::bound(value v, std::string_view what, std::int64_t least) const {
  if (!is_integer(v.type())) malformed(std::string(what) + " is an integer tensor, not " + to_string(v.get_shape()));
  binder b(*this, what, least);
  b.collect(v);
  return std::move(b.found);
}

}  // namespace kiln::onnx
