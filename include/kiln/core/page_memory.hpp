#pragma once
#include <chrono>
#include <cstddef>

namespace kiln {

/// While one lives, in any thread, large buffers lie one after the other in pages of 2 MiB, and what they give back
/// serves the next ones: a page from the system costs its zeroing, and in a virtual machine often a fault of the host,
/// ten times as long, and loading a model makes and frees more bytes than it keeps. While none lives the system gets
/// the pages that nobody uses, but for `kept_free_bytes`: at once, or, where a scope that `fills_ahead` lived as they
/// were taken, within `kept_free_for` by a thread of this time, so that who loads a program in place of another does
/// not wait for pages again. A forked process may go on with all of it.
class page_scope {
 public:
  /// `fills_ahead`: a thread has the system give pages before they are taken.
  explicit page_scope(bool fills_ahead = false);
  ~page_scope();
  page_scope(const page_scope&) = delete;
  page_scope& operator=(const page_scope&) = delete;

  /// So much stays free in pages that were used, for the next program that is loaded.
  static constexpr std::size_t kept_free_bytes = std::size_t{32} << 20;
  static constexpr std::chrono::milliseconds kept_free_for{1000};

 private:
  bool fills_ahead_;
};

namespace detail {

/// Uninitialized bytes, aligned to 64, from the pages of a scope, and what gives them back. Null where no scope lives
/// or the system gives no memory.
struct page_part {
  std::byte* at = nullptr;
  void* owner = nullptr;
  void (*give_back)(void* owner) = nullptr;
};
page_part take_pages(std::size_t bytes);

}  // namespace detail

}  // namespace kiln
