#include "kiln/text/impl/jinja/loop.hpp"

namespace kiln::language::jinja {
namespace {

loop_object& loop_of(const value& self) { return static_cast<loop_object&>(*self.other()); }

constexpr native cycle{"cycle", "*", [](interpreter&, const value& self, const bound& a) -> value {
                         const auto& items = a.all().positional;
                         if (items.empty()) fail("cycle() has no items to cycle through");
                         return items[static_cast<std::size_t>(loop_of(self).index()) % items.size()];
                       }};
constexpr native changed{"changed", "*", [](interpreter&, const value& self, const bound& a) -> value {
                           return loop_of(self).is_changed(a.all().positional);
                         }};

}  // namespace

bool loop_object::is_changed(const std::vector<value>& now) {
  const auto same = [&] {
    if (!last_ || last_->size() != now.size()) return false;
    for (std::size_t i = 0; i < now.size(); ++i)
      if (!equal((*last_)[i], now[i])) return false;
    return true;
  };
  if (same()) return false;
  last_ = now;
  return true;
}

bool loop_object::read_ahead(interpreter& in) {
  while (cursor_ < source_->items.size()) {
    const value item = source_->items[cursor_++];
    in.step();
    if (statement_.filter && !in.passes_filter(statement_, outer_, item)) continue;
    ahead_.push_back(item);
    return true;
  }
  return false;
}

bool loop_object::advance(interpreter& in) {
  if (ahead_.empty() && !read_ahead(in)) return false;
  ++index_;
  previous_ = current_;
  current_ = ahead_.front();
  ahead_.pop_front();
  return true;
}

std::int64_t loop_object::length(interpreter& in) {
  if (!statement_.filter) return static_cast<std::int64_t>(source_->items.size());
  while (read_ahead(in)) {
  }
  return index_ + 1 + static_cast<std::int64_t>(ahead_.size());
}

std::optional<value> loop_object::attribute(interpreter& in, std::string_view name) {
  const auto method = [&](const native& f) {
    return value(static_cast<object*>(in.values.make<bound_native>(f, value(static_cast<object*>(this)))));
  };
  if (name == "index") return value(index_ + 1);
  if (name == "index0") return value(index_);
  if (name == "first") return value(index_ == 0);
  if (name == "last") return value(ahead_.empty() && !read_ahead(in));
  if (name == "length") return value(length(in));
  if (name == "revindex") return value(length(in) - index_);
  if (name == "revindex0") return value(length(in) - index_ - 1);
  if (name == "depth") return value(std::int64_t{depth_} + 1);
  if (name == "depth0") return value(std::int64_t{depth_});
  if (name == "previtem") return index_ == 0 ? in.values.undefined("there is no previous item") : previous_;
  if (name == "nextitem") {
    const bool has_next = !ahead_.empty() || read_ahead(in);
    return has_next ? ahead_.front() : in.values.undefined("there is no next item");
  }
  if (name == "cycle") return method(cycle);
  if (name == "changed") return method(changed);
  return std::nullopt;
}

value loop_object::call(interpreter& in, const arguments& a) {
  if (!statement_.is_recursive) fail("only a loop marked as 'recursive' can be called");
  const bound args("loop", "iterable", a);
  return in.run_loop_again(statement_, outer_, args[0], depth_ + 1);
}

}  // namespace kiln::language::jinja
