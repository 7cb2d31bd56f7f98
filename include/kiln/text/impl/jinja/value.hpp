#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kiln/core/error.hpp"

// Values of templates: Python's, as far as templates see them. All that is larger than a word lives in a heap, which
// frees it at the end of the render: values are copied as pointers, and cycles among them do no harm.
namespace kiln::language::jinja {

class interpreter;
class value;

/// How deep lists and dicts nest where they are printed, compared or hashed.
constexpr int most_nesting = 400;
/// Bytes of one text: a bound for what is made before a heap can count it.
constexpr std::size_t most_text = std::size_t{1} << 28;
/// Throws `error` (limit) above that bound.
void check_size(std::size_t bytes);

enum class kind : std::uint8_t { undefined, none, boolean, integer, real, string, list, dict, object };

struct string_object {
  std::string bytes;
  std::size_t points = 0;  ///< code points
  bool is_ascii() const { return points == bytes.size(); }
};

/// The positional and named arguments of a call.
struct arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string_view, value>> named;
};

struct list_object;
struct dict_object;

/// What is no plain value: functions, macros, loops, namespaces.
struct object {
  virtual ~object() = default;
  virtual std::string_view type_name() const = 0;
  /// The attribute, or nothing where there is none.
  virtual std::optional<value> attribute(interpreter&, std::string_view name);
  virtual bool is_callable() const { return false; }
  virtual value call(interpreter&, const arguments&);
};

class value {
 public:
  value() : integer_(0) {}
  static value none() { return value(kind::none); }
  /// What a name without a value gives; `why` says it when the value is used, and lives as long as the heap.
  static value undefined(const std::string* why) {
    value v;
    v.why_ = why;
    return v;
  }
  value(bool b) : kind_(kind::boolean), integer_(b) {}
  value(std::int64_t i) : kind_(kind::integer), integer_(i) {}
  value(double d) : kind_(kind::real), real_(d) {}
  value(const string_object* s) : kind_(kind::string), string_(s) {}
  value(list_object* l) : kind_(kind::list), list_(l) {}
  value(dict_object* d) : kind_(kind::dict), dict_(d) {}
  value(object* o) : kind_(kind::object), object_(o) {}
  template <class T> value(T*) = delete;

  kind type() const { return kind_; }
  bool is(kind k) const { return kind_ == k; }
  bool is_number() const { return is(kind::integer) || is(kind::real) || is(kind::boolean); }
  bool is_whole() const { return is(kind::integer) || is(kind::boolean); }
  std::int64_t integer() const { return integer_; }
  double real() const { return is(kind::real) ? real_ : static_cast<double>(integer_); }
  const string_object& str() const { return *string_; }
  const std::string& bytes() const { return string_->bytes; }
  list_object* list() const { return list_; }
  dict_object* dict() const { return dict_; }
  object* other() const { return object_; }
  const std::string* why() const { return why_; }

 private:
  explicit value(kind k) : kind_(k), integer_(0) {}
  kind kind_ = kind::undefined;
  union {
    std::int64_t integer_;
    double real_;
    const string_object* string_;
    list_object* list_;
    dict_object* dict_;
    object* object_;
    const std::string* why_;
  };
};

/// A Python list or a sequence that prints in another way.
struct list_object {
  enum class form : std::uint8_t { list, tuple, keys, values, items, range, generator };
  std::vector<value> items;
  form as = form::list;
};

/// A mapping that keeps the order in which keys came.
struct dict_object {
  std::vector<std::pair<value, value>> entries;
  std::unordered_multimap<std::size_t, std::size_t> places;  ///< of entries by hash, once there are many

  value* find(const value& key);
  value* find(std::string_view key);
  void set(const value& key, value v);
  /// Takes the entry out; false where there was none.
  bool erase(const value& key);

 private:
  void index();
};

/// Owns what values point to.
class heap {
 public:
  explicit heap(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  heap(const heap&) = delete;
  heap& operator=(const heap&) = delete;

  value string(std::string bytes);
  value list(std::vector<value> items, list_object::form as = list_object::form::list);
  value tuple(std::vector<value> items) { return list(std::move(items), list_object::form::tuple); }
  dict_object* dict();
  value undefined(std::string why);
  template <class T, class... A> T* make(A&&... a) {
    charge(sizeof(T) + 64);
    auto made = std::make_unique<T>(std::forward<A>(a)...);
    T* raw = made.get();
    objects_.push_back(std::move(made));
    return raw;
  }
  /// Counts bytes that a value takes; throws `error` (limit) above the bound.
  void charge(std::size_t bytes);

 private:
  std::size_t most_bytes_, bytes_ = 0;
  std::deque<string_object> strings_;
  std::deque<list_object> lists_;
  std::deque<dict_object> dicts_;
  std::deque<std::string> reasons_;
  std::vector<std::unique_ptr<object>> objects_;
};

/// The name of the value's type in Python.
std::string_view type_name(const value&);
bool is_true(const value&);
/// Python's ==: numbers compare by value, whatever their type.
bool equal(const value& a, const value& b);
/// Less than 0, 0 or more than 0; throws `error` where Python has no order.
int order(const value& a, const value& b);
/// Equal values have equal hashes; throws `error` for lists and dicts.
std::size_t hash(const value& v);
/// Python's str() and repr().
std::string to_text(const value&);
std::string repr(const value& v, int depth = 0);
/// Python's repr of a float: the shortest decimal that reads back the same.
std::string repr(double);
/// Throws `error` for a misuse of a value: its message.
[[noreturn]] void fail(std::string message);
/// Throws the error of an undefined value that is used.
[[noreturn]] void fail_undefined(const value&);

}  // namespace kiln::language::jinja
