#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/error.hpp"
#include "kiln/interface/onnxruntime/abi.hpp"

namespace kiln::onnxruntime {

/// A table of ONNX Runtime's functions.
class function_table {
 public:
  explicit function_table(const void* const* functions) : functions_(functions) {}
  template <std::size_t Index, class Result, class... Args>
  Result operator()(slot<Index, Result(Args...)>, std::type_identity_t<Args>... args) const {
    return reinterpret_cast<Result (*)(Args...)>(const_cast<void*>(functions_[Index]))(args...);
  }

 private:
  const void* const* functions_;
};

/// What a tensor is: ONNX's number of its element type, and its extents, which live as long as the tensor.
struct tensor_type {
  int element = 0;
  std::span<const std::int64_t> extents;
};

/// The ONNX Runtime that loaded the plugin. A call whose status is an error throws `error` with its message.
class host {
 public:
  /// An ONNX Runtime before 1.24 is an `unsupported` error.
  explicit host(const OrtApiBase& base);

  /// What the structs of session-wide callbacks are stamped with: the last version of which kiln uses something and
  /// that ONNX Runtime has.
  std::uint32_t version() const { return version_; }

  /// Calls a function of the main table, of the plugins' one, or of the one that makes graphs.
  template <std::size_t Index, class Result, class... Args>
  Result call(slot<Index, Result(Args...)> f, std::type_identity_t<Args>... args) const {
    return checked<Result>([&] { return api_(f, args...); });
  }
  template <std::size_t Index, class Result, class... Args>
  Result call_ep(slot<Index, Result(Args...)> f, std::type_identity_t<Args>... args) const {
    return checked<Result>([&] { return ep_(f, args...); });
  }
  template <std::size_t Index, class Result, class... Args>
  Result call_editor(slot<Index, Result(Args...)> f, std::type_identity_t<Args>... args) const {
    return checked<Result>([&] { return editor_(f, args...); });
  }
  /// A call whose status may be an error that is no fault; the caller releases it.
  template <std::size_t Index, class... Args>
  OrtStatus* try_call(slot<Index, OrtStatus*(Args...)> f, std::type_identity_t<Args>... args) const {
    return api_(f, args...);
  }
  /// A call whose last argument receives the answer.
  template <class Answer, std::size_t Index, class Result, class... Args, class... Given>
  Answer get(slot<Index, Result(Args...)> f, Given... given) const {
    Answer out{};
    call(f, given..., &out);
    return out;
  }
  /// The list that two functions give, how many and which ones.
  template <class Item, std::size_t I, std::size_t J, class F, class G, class Of>
  std::vector<Item> list(slot<I, F> count, slot<J, G> items, Of of) const {
    std::vector<Item> out(get<std::size_t>(count, of));
    if (!out.empty()) call(items, of, out.data(), out.size());
    return out;
  }

  /// The extents of a declared tensor.
  std::vector<std::int64_t> extents_of(const OrtTensorTypeAndShapeInfo* of) const;
  /// A tensor's type and extents, which are its own.
  tensor_type type_of(const OrtValue* of) const {
    tensor_type out;
    const std::int64_t* extents = nullptr;
    std::size_t rank = 0;
    call(api::tensor_type, of, &out.element, &extents, &rank);
    out.extents = {extents, rank};
    return out;
  }

  /// The exception that is being handled as a status, for callbacks.
  OrtStatus* status_of_exception() const noexcept;
  /// Runs the body of a callback: what it throws becomes the status.
  template <class Body> OrtStatus* guarded(Body&& body) const noexcept {
    try {
      body();
      return nullptr;
    } catch (...) {
      return status_of_exception();
    }
  }
  void log(const OrtLogger* logger, severity level, const std::string& message) const noexcept;
  /// Entries of a session's options, plugin options among them, by key.
  std::vector<std::pair<std::string, std::string>> entries(const OrtSessionOptions* of) const;

 private:
  [[noreturn]] void refuse(OrtStatus* status) const;
  template <class Result, class Call> Result checked(Call&& call) const {
    if constexpr (std::is_same_v<Result, OrtStatus*>) {
      OrtStatus* const status = call();
      if (status) refuse(status);
      return nullptr;
    } else {
      return call();
    }
  }
  std::uint32_t version_;
  function_table api_, ep_, editor_;
};

/// An object that ONNX Runtime made, until it is given back at the end.
template <std::size_t Release, class Object> class owned {
 public:
  owned(const host& ort, slot<Release, void(Object*)> release, Object* of) : ort_(ort), release_(release), of_(of) {}
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;
  ~owned() { ort_.call(release_, of_); }
  Object* get() const { return of_; }

 private:
  const host& ort_;
  slot<Release, void(Object*)> release_;
  Object* of_;
};

}  // namespace kiln::onnxruntime
