#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "kiln/core/buffer.hpp"

namespace kiln {

class kept_code;

/// What compilation derives of a program for one machine, in the order in which it does: which of several methods are
/// taken, constants in the forms that kernels read, and code that is compiled for a device. A saved program keeps it,
/// and a load, which makes the same kernels in the same order, takes it from there: nothing is weighed, timed, packed
/// or compiled again.
class derived_data {
 public:
  derived_data();
  /// Of a saved program.
  derived_data(std::span<const std::int64_t> decisions, std::span<const buffer> blocks);
  ~derived_data();
  derived_data(derived_data&& other) noexcept;
  derived_data& operator=(derived_data&& other) noexcept;

  std::span<const std::int64_t> decisions() const;
  std::span<const buffer> blocks() const;
  /// Whether this is of a saved program: constants that kernels have packed have no data.
  bool replays() const;
  /// The code of a device's kernels, which keep it as long as they are.
  std::shared_ptr<kept_code> code() const;

  /// A decision among fewer than `end`; `choose()` takes it where this is a compilation.
  template <class Choose> std::int64_t decide(std::int64_t end, Choose&& choose) {
    return replays() ? taken_decision(end) : kept(static_cast<std::int64_t>(choose()));
  }
  /// So many bytes; `make()` gives them where this is a compilation.
  template <class Make> buffer block(std::size_t bytes, Make&& make) {
    return replays() ? taken_block(bytes) : kept(make());
  }
  /// All of another compilation after what this has.
  void append(derived_data&& other);

 private:
  struct body;
  std::int64_t kept(std::int64_t decision);
  buffer kept(buffer block);
  std::int64_t taken_decision(std::int64_t end);
  buffer taken_block(std::size_t bytes);
  std::unique_ptr<body> body_;
};

}  // namespace kiln
