#include "kiln/interface/python_arrays/array.hpp"

namespace kiln::python {
namespace {

struct letter_row {
  dtype type;
  char letter;
};
constexpr letter_row letters[] = {{dtype::f64, 'd'}, {dtype::f32, 'f'}, {dtype::f16, 'e'}, {dtype::i8, 'b'},
                                  {dtype::i16, 'h'}, {dtype::i32, 'i'}, {dtype::i64, 'q'}, {dtype::u8, 'B'},
                                  {dtype::u16, 'H'}, {dtype::u32, 'I'}, {dtype::u64, 'Q'}, {dtype::boolean, '?'}};

std::optional<dtype> integer_of(bool is_signed, std::size_t bytes) {
  switch (bytes) {
    case 1: return is_signed ? dtype::i8 : dtype::u8;
    case 2: return is_signed ? dtype::i16 : dtype::u16;
    case 4: return is_signed ? dtype::i32 : dtype::u32;
    case 8: return is_signed ? dtype::i64 : dtype::u64;
    default: return std::nullopt;
  }
}

// The dtype of a buffer's format, by the size of its elements: that of 'l' depends on the machine.
std::optional<dtype> dtype_of_format(const char* format, std::size_t bytes) {
  if (!format) return dtype::u8;
  const char order = *format;
  if (order == '@' || order == '=' || order == '<' || order == '|') ++format;
  if ((order == '>' || order == '!') && bytes == 1) ++format;
  if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
  const char letter = format[0];
  if (letter == 'd' || letter == 'f' || letter == 'e' || letter == '?') {
    for (const letter_row& row : letters)
      if (row.letter == letter && size_of(row.type) == bytes) return row.type;
    return std::nullopt;
  }
  if (std::string_view("bhilqn").find(letter) != std::string_view::npos) return integer_of(true, bytes);
  if (std::string_view("BHILQN").find(letter) != std::string_view::npos) return integer_of(false, bytes);
  return std::nullopt;
}

// The same of a typestr of __array_interface__: "<f4".
std::optional<dtype> dtype_of_typestr(std::string_view text, std::size_t& bytes) {
  if (text.size() < 3 || text[2] < '1' || text[2] > '8' || text.size() > 3) return std::nullopt;
  bytes = static_cast<std::size_t>(text[2] - '0');
  if (text[0] == '>' && bytes != 1) return std::nullopt;
  switch (text[1]) {
    case 'f': return bytes == 8 ? dtype::f64 : bytes == 4 ? dtype::f32 : dtype::f16;
    case 'i': return integer_of(true, bytes);
    case 'u': return integer_of(false, bytes);
    case 'b': return dtype::boolean;
    default: return std::nullopt;
  }
}

// Unsigned integers stand for dtypes that Python has no word for.
dtype meant(dtype found, std::optional<dtype> wanted) {
  if (!wanted || letter_of(*wanted) || is_object(*wanted)) return found;
  return found == integer_of(false, size_of(*wanted)) ? *wanted : found;
}

void release_view(void* owner) {
  auto* const view = static_cast<Py_buffer*>(owner);
  if (!Py_IsInitialized()) return;  // the process ends
  const py::gil_scoped_acquire held;
  PyBuffer_Release(view);
  delete view;
}

void release_object(void* owner) {
  if (!Py_IsInitialized()) return;
  const py::gil_scoped_acquire held;
  Py_DECREF(static_cast<PyObject*>(owner));
}

}  // namespace

char letter_of(dtype type) {
  for (const letter_row& row : letters)
    if (row.type == type) return row.letter;
  return 0;
}

void borrowed_array::take(void* data, dtype type, std::size_t item, std::size_t rank, const Py_ssize_t* lens,
                          const Py_ssize_t* strides) {
  shape s;
  s.type = type;
  if (rank > max_rank) raise(fault::of(errc::limit, "number of dims of an array", max_rank, rank));
  bool in_place = reinterpret_cast<std::uintptr_t>(data) % item == 0;
  bool dense = true;
  Py_ssize_t step = static_cast<Py_ssize_t>(item);
  for (std::size_t i = 0; i < rank; ++i) s.lens.push_back(lens[i]);
  for (std::size_t i = rank; strides && i-- > 0; step *= lens[i]) dense = dense && (lens[i] == 1 || strides[i] == step);
  for (std::size_t i = 0; !dense && i < rank; ++i) {
    in_place = in_place && strides[i] % static_cast<Py_ssize_t>(item) == 0;
    s.strides.push_back(strides[i] / static_cast<Py_ssize_t>(item));
  }
  if (s.elements() == dimension(0)) {
    value = argument(s.with(s.lens));
  } else if (in_place) {
    value = argument(s, data);
  } else {
    value = argument(shape(s.type, s.lens));
    // byte by byte through the strides: elements may stand anywhere
    const auto total = static_cast<std::size_t>(s.elements().value());
    std::byte* to = value.data();
    ints at(rank, 0);
    for (std::size_t n = 0; n < total; ++n, to += item) {
      const std::byte* from = static_cast<const std::byte*>(data);
      for (std::size_t i = 0; i < rank; ++i) from += (strides ? strides[i] : 0) * at[i];
      if (strides)
        std::memcpy(to, from, item);
      else
        std::memcpy(to, from + n * item, item);
      for (std::size_t i = rank; i-- > 0 && ++at[i] == lens[i];) at[i] = 0;
    }
  }
}

bool borrowed_array::read_tensor(py::handle object) {
  std::optional<held_tensor> t = own_array(object);
  if (!t) return false;
  value = std::move(t->value);
  where = t->where;
  read_only = t->read_only;
  return true;
}

bool borrowed_array::read_buffer(py::handle object, std::optional<dtype> wanted) {
  if (!PyObject_CheckBuffer(object.ptr())) return false;
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_RECORDS_RO) != 0) {
    view_.obj = nullptr;
    PyErr_Clear();  // an array of objects, say: other roads may be open
    return false;
  }
  const auto item = static_cast<std::size_t>(view_.itemsize);
  const std::optional<dtype> type = dtype_of_format(view_.format, item);
  if (!type) {
    PyBuffer_Release(&view_);
    view_.obj = nullptr;
    return false;
  }
  read_only = view_.readonly != 0;
  take(view_.buf, meant(*type, wanted), item, static_cast<std::size_t>(view_.ndim), view_.shape, view_.strides);
  return true;
}

bool borrowed_array::read_dlpack(py::handle object) {
  if (!PyCapsule_CheckExact(object.ptr()) && !py::hasattr(object, "__dlpack__")) return false;
  dlpack::received r;
  try {
    r = receive_from(object);
  } catch (py::error_already_set& e) {
    if (!e.matches(PyExc_BufferError)) throw;
    return false;  // elements that DLPack has no word for
  }
  value = std::move(r.value);
  where = r.where;
  read_only = r.read_only;
  return true;
}

bool borrowed_array::read_interface(py::handle object, std::optional<dtype> wanted) {
  if (!py::hasattr(object, "__array_interface__")) return false;
  const py::dict about = object.attr("__array_interface__");
  std::size_t item = 0;
  const std::optional<dtype> type = dtype_of_typestr(py::cast<std::string>(about["typestr"]), item);
  if (!type || !about.contains("data") || about["data"].is_none()) return false;
  const py::tuple data = about["data"];
  std::vector<Py_ssize_t> lens, strides;
  for (const py::handle n : py::cast<py::tuple>(about["shape"])) lens.push_back(py::cast<Py_ssize_t>(n));
  const bool strided = about.contains("strides") && !about["strides"].is_none();
  if (strided)
    for (const py::handle n : py::cast<py::tuple>(about["strides"])) strides.push_back(py::cast<Py_ssize_t>(n));
  if (strided && strides.size() != lens.size())
    raise(fault::of(errc::malformed, "__array_interface__ has a stride for each dim", lens.size(), strides.size()));
  kept_ = py::reinterpret_borrow<py::object>(object);
  read_only = py::cast<bool>(data[1]);
  take(reinterpret_cast<void*>(py::cast<std::uintptr_t>(data[0])), meant(*type, wanted), item, lens.size(), lens.data(),
       strided ? strides.data() : nullptr);
  return true;
}

void borrowed_array::read(py::handle object, std::optional<dtype> wanted) {
  if (read_tensor(object) || read_buffer(object, wanted) || read_dlpack(object) || read_interface(object, wanted))
    return;
  // an array of strings, complex numbers or foreign byte order gives its elements one by one
  const bool is_array = py::hasattr(object, "tolist") && py::hasattr(object, "dtype");
  value = argument_of_list(is_array ? py::object(object.attr("tolist")()) : py::reinterpret_borrow<py::object>(object),
                           is_array && !wanted ? std::optional(dtype_of_object(object.attr("dtype"))) : wanted);
}

void borrowed_array::read_writable(py::handle object, std::optional<dtype> wanted) {
  if (!read_tensor(object) && !read_buffer(object, wanted) && !read_dlpack(object) && !read_interface(object, wanted))
    raise(errc::invalid_argument, "an output is given as a Tensor or an array: found " +
                                      py::cast<std::string>(py::str(py::type::handle_of(object))));
  if (read_only)
    raise(errc::invalid_argument, "an output is given in memory that can be written: found a read-only array");
  if (view_.obj && value.data() != view_.buf && value.elements() != 0)
    raise(errc::invalid_argument, "an output is given in aligned memory: found an array of unaligned elements");
}

argument borrowed_array::keep(argument part) const {
  const shape& s = part.get_shape();
  const auto bytes = static_cast<std::size_t>(s.bytes().value());
  PyObject* const owner = view_.obj ? view_.obj : kept_.ptr();
  if (owner) {
    Py_INCREF(owner);
    return argument(s, buffer::borrow(part.data(), bytes, owner, release_object), part.data());
  }
  const auto release = [](void* held) { delete static_cast<argument*>(held); };
  return argument(s, buffer::borrow(part.data(), bytes, new argument(value), release), part.data());
}

argument borrowed_array::shared() {
  if (!view_.obj && !kept_) return value;  // it has its own share already
  std::byte* const data = value.data();
  if (view_.obj && data != view_.buf) return value;  // a copy
  const auto bytes = static_cast<std::size_t>(value.get_shape().bytes().value());
  if (view_.obj) {
    auto* const view = new Py_buffer(view_);
    view_.obj = nullptr;
    return argument(value.get_shape(), buffer::borrow(data, bytes, view, release_view), data);
  }
  return argument(value.get_shape(), buffer::borrow(data, bytes, kept_.release().ptr(), release_object), data);
}

}  // namespace kiln::python
