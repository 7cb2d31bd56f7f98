#pragma once

namespace kiln::onnx {

/// Sets a variable until the end of the scope.
template <class T> class restored {
 public:
  template <class New> restored(T& variable, New value) : variable_(variable), before_(variable) { variable = value; }
  restored(const restored&) = delete;
  restored& operator=(const restored&) = delete;
  ~restored() { variable_ = before_; }

 private:
  T& variable_;
  T before_;
};

}  // namespace kiln::onnx
