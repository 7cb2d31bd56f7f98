#pragma once
#include <migraphx/migraphx.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

// What the classes over handles of the interface for C have in common.
namespace migraphx {
inline namespace api {

/// Calls a function of the interface for C.
template <class F, class... Ts> void call(F f, Ts&&... xs) {
  if (f(std::forward<Ts>(xs)...) == migraphx_status_success) return;
  const char* const why = kiln_last_error();
  throw std::runtime_error(*why ? why : "Failed to call function");
}
/// Calls one whose first argument takes what it makes.
template <class T, class F, class... Ts> T* make(F f, Ts&&... xs) {
  T* out = nullptr;
  call(f, &out, std::forward<Ts>(xs)...);
  return out;
}

/// Whose a handle is: this object's, somebody else's, or a part of what another object owns.
struct own {};
struct borrow {};
template <class T> struct share {
  std::shared_ptr<T> owner;
  template <class U> std::shared_ptr<U> alias(U* p) const { return std::shared_ptr<U>(owner, p); }
};

/// A handle with its lifetime; copies share it.
template <class Raw, class Own, migraphx_status (*Destroy)(Own*), migraphx_status (*Assign)(Own*, const Own*)>
struct handle_base {
  using handle_type = Raw;
  handle_base() = default;
  template <class H, class Lifetime, class = std::enable_if_t<std::is_convertible<H*, Raw*>::value>>
  handle_base(H* p, Lifetime lifetime) {
    set_handle(p, std::move(lifetime));
  }

  const std::shared_ptr<Raw>& get_handle() const { return m_handle; }
  Raw* get_handle_ptr() const { return m_handle.get(); }
  template <class U> void set_handle(U* p, own) {
    m_handle = std::shared_ptr<U>(p, [](U* of) { (void)Destroy(const_cast<Own*>(of)); });
  }
  template <class U> void set_handle(U* p, borrow) {
    m_handle = std::shared_ptr<U>(p, [](U*) {});
  }
  template <class U, class V> void set_handle(U* p, share<V> with) { m_handle = std::shared_ptr<Raw>(with.owner, p); }
  template <class F, class... Ts> void make_handle(F f, Ts&&... xs) {
    set_handle(make<Own>(f, std::forward<Ts>(xs)...), own{});
  }
  share<Raw> share_handle() const { return {m_handle}; }
  void assign_to_handle(Own* to) const { call(Assign, to, get_handle_ptr()); }

 protected:
  std::shared_ptr<Raw> m_handle;
};

#define MIGRAPHX_HANDLE(name) \
  handle_base<migraphx_##name, migraphx_##name, &migraphx_##name##_destroy, &migraphx_##name##_assign_to>
#define MIGRAPHX_CONST_HANDLE(name) \
  handle_base<const migraphx_##name, migraphx_##name, &migraphx_##name##_destroy, &migraphx_##name##_assign_to>

/// What counts and hands out elements by index, as a range.
template <class Derived> struct array_base {
  struct iterator {
    const Derived* self;
    std::size_t index;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    template <class D = Derived> auto operator*() const -> decltype(std::declval<const D&>()[0]) {
      return (*self)[index];
    }
    iterator& operator++() {
      ++index;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++index;
      return old;
    }
    iterator operator+(std::ptrdiff_t n) const { return {self, index + static_cast<std::size_t>(n)}; }
    std::ptrdiff_t operator-(iterator other) const {
      return static_cast<std::ptrdiff_t>(index) - static_cast<std::ptrdiff_t>(other.index);
    }
    friend bool operator==(iterator a, iterator b) { return a.index == b.index; }
    friend bool operator!=(iterator a, iterator b) { return a.index != b.index; }
  };

  bool empty() const { return derived().size() == 0; }
  template <class D = Derived> auto front() const -> decltype(std::declval<const D&>()[0]) { return derived()[0]; }
  template <class D = Derived> auto back() const -> decltype(std::declval<const D&>()[0]) {
    return derived()[derived().size() - 1];
  }
  iterator begin() const { return {&derived(), 0}; }
  iterator end() const { return {&derived(), derived().size()}; }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

namespace detail {
/// A type's name, as the compiler says it.
template <class T> const std::string& type_name() {
  static const std::string name = [] {
    const std::string all = __PRETTY_FUNCTION__;
    const std::size_t from = all.find("T = ") + 4;
    return all.substr(from, all.find_first_of(";]", from) - from);
  }();
  return name;
}
}  // namespace detail

}  // namespace api
}  // namespace migraphx
