#include "kiln/cpp_export/impl/exporter.hpp"

// Writers of ops that choose elements or places.
namespace kiln::aot {

// An index in an extent; one outside is the nearest one inside: a run reports no errors.
static std::string nearest(std::string_view index, std::int64_t extent) {
  return cat("math::picked(static_cast<std::int64_t>(", index, "), ", extent, ")");
}

// Whether candidate x at position i is better than y at position j; a NaN is greater than any number.
static std::string better(dtype t, bool greatest, std::string_view x, std::string_view y) {
  const std::string sign = greatest ? " > " : " < ";
  if (!is_float(t)) return cat(x, sign, y);
  return greatest ? cat(x, " > ", y, " || (", x, " != ", x, " && ", y, " == ", y, ")")
                  : cat(x, " < ", y, " || (", y, " != ", y, " && ", x, " == ", x, ")");
}

template <class Op> void cpp_exporter::write_extreme(const draft& d, const Op& op, std::string_view sign) {
  const std::vector<place> at = places(d);
  const place &in = at[0], &to = at[1];
  const auto axis = static_cast<std::size_t>(normal_axis(op.axis, in.lens.size()));
  declare("in", in, false);
  declare("out", to, true);
  const std::string result = open_all(to.lens, to);
  out_.line("std::int64_t best = 0;");
  out_.line("for (std::int64_t k = 1; k < ", in.lens[axis], "; ++k) {");
  out_.line("const auto x = in[", element(in, "i", axis, "k"), "], b = in[", element(in, "i", axis, "best"), "];");
  const std::string_view equal = op.select_last_index ? "=" : "";
  // a NaN is better than any number
  if (is_float(in.type))
    out_.line("if (b != b ? ", op.select_last_index ? "x != x" : "false", " : x != x || x ", sign, equal,
              " b) best = k;");
  else
    out_.line("if (x ", sign, equal, " b) best = k;");
  out_.close();
  out_.line("out[", result, "] = best;");
  out_.close(to.lens.size());
}
void cpp_exporter::write(const draft& d, const op::arg_max& op) { write_extreme(d, op, ">"); }
void cpp_exporter::write(const draft& d, const op::arg_min& op) { write_extreme(d, op, "<"); }

void cpp_exporter::write(const draft& d, const op::topk& op) {
  const std::vector<place> at = places(d);
  const place &in = at[0], &values = at[1], &indices = at[2];
  const auto axis = static_cast<std::size_t>(normal_axis(op.axis, in.lens.size()));
  const std::int64_t n = op.k.value();
  if (n == 0) return;
  declare("in", in, false);
  declare("values", values, true);
  declare("indices", indices, true);
  for (std::size_t k = 0; k < in.lens.size(); ++k)
    if (k != axis) out_.loop(cat("i", k), in.lens[k]);
  // the best ones so far in their order: each element moves those after its place
  out_.line("for (std::int64_t k = 0; k < ", in.lens[axis], "; ++k) {");
  out_.line("const auto x = in[", element(in, "i", axis, "k"), "];");
  out_.line("std::int64_t at = k < ", n, " ? k : ", n, ";");
  out_.line("for (; at > 0; --at) {");
  out_.line("const auto y = values[", element(values, "i", axis, "(at - 1)"), "];");
  out_.line("if (!(", better(in.type, op.largest, "x", "y"), ")) break;");
  out_.line("if (at == ", n, ") continue;");
  out_.line("values[", element(values, "i", axis, "at"), "] = y;");
  out_.line("indices[", element(indices, "i", axis, "at"), "] = indices[", element(indices, "i", axis, "(at - 1)"),
            "];");
  out_.close();
  out_.line("if (at == ", n, ") continue;");
  out_.line("values[", element(values, "i", axis, "at"), "] = x;");
  out_.line("indices[", element(indices, "i", axis, "at"), "] = k;");
  out_.close(in.lens.size());
}

void cpp_exporter::write(const draft& d, const op::one_hot& op) {
  const std::vector<place> at = places(d);
  const place &indices = at[0], &values = at[1], &to = at[2];
  const auto axis = static_cast<std::size_t>(normal_axis(op.axis, to.lens.size()));
  declare("indices", indices, false);
  declare("values", values, false);
  declare("out", to, true);
  const std::string result = open_all(to.lens, to);
  index_text from;
  for (std::size_t k = 0; k < indices.lens.size(); ++k) from.add(cat("i", k < axis ? k : k + 1), indices.strides[k]);
  out_.line("const std::int64_t hot = static_cast<std::int64_t>(indices[", from.str(), "]);");
  out_.line("out[", result, "] = values[hot == i", axis, " || hot + ", to.lens[axis], " == i", axis, " ? ",
            values.strides[0], " : 0];");
  out_.close(to.lens.size());
}

void cpp_exporter::write(const draft& d, const op::gather_elements& op) {
  const std::vector<place> at = places(d);
  const place &data = at[0], &indices = at[1], &to = at[2];
  const auto axis = static_cast<std::size_t>(normal_axis(op.axis, data.lens.size()));
  declare("data", data, false);
  declare("indices", indices, false);
  declare("out", to, true);
  const std::string result = open_all(to.lens, to);
  out_.line("const std::int64_t at = ", nearest(cat("indices[", element(indices), "]"), data.lens[axis]), ";");
  out_.line("out[", result, "] = data[", element(data, "i", axis, "at"), "];");
  out_.close(to.lens.size());
}

// The element after an update.
static std::string updated(op::scatter_mode mode, dtype t, const std::string& old, const std::string& update) {
  using op::scatter_mode;
  const bool grows = mode == scatter_mode::add || mode == scatter_mode::max, is_bool = t == dtype::boolean;
  if (mode == scatter_mode::none) return update;
  if (is_bool) return cat(old, grows ? " || " : " && ", update);
  if (mode == scatter_mode::min || mode == scatter_mode::max) {
    const std::string nan = is_float(t) ? cat(update, " != ", update, " || ") : "";
    return cat(nan, update, grows ? " > " : " < ", old, " ? ", update, " : ", old);
  }
  const std::string wide = is_float(t) ? value_name(t) : "std::uint64_t";
  return cat("static_cast<", stored_name(t), ">(static_cast<", wide, ">(", old, ")", grows ? " + " : " * ",
             "static_cast<", wide, ">(", update, "))");
}
void cpp_exporter::write_copied(const place& in, const place& to) {
  const std::string result = open_all(to.lens, to);
  out_.line("out[", result, "] = data[", element(in), "];");
  out_.close(to.lens.size());
}

void cpp_exporter::write(const draft& d, const op::scatter_elements& op) {
  const std::vector<place> at = places(d);
  const place &data = at[0], &indices = at[1], &updates = at[2], &to = at[3];
  const auto axis = static_cast<std::size_t>(normal_axis(op.axis, data.lens.size()));
  declare("data", data, false);
  declare("indices", indices, false);
  declare("updates", updates, false);
  declare("out", to, true);
  write_copied(data, to);
  const std::string index = open_all(indices.lens, indices);
  out_.line("const std::int64_t at = ", nearest(cat("indices[", index, "]"), data.lens[axis]), ";");
  const std::string element_text = cat("out[", element(to, "i", axis, "at"), "]");
  out_.line(element_text, " = ", updated(op.reduction, to.type, element_text, cat("updates[", element(updates), "]")),
            ";");
  out_.close(indices.lens.size());
}

void cpp_exporter::write(const draft& d, const op::gather_nd& op) {
  const std::vector<place> at = places(d);
  const place &data = at[0], &indices = at[1], &to = at[2];
  const auto batch = static_cast<std::size_t>(op.batch_dims), rows = indices.lens.size() - 1,
             tuple = static_cast<std::size_t>(indices.lens.back());
  declare("data", data, false);
  declare("indices", indices, false);
  declare("out", to, true);
  const std::string result = open_all(to.lens, to);
  index_text row, from;
  for (std::size_t k = 0; k < rows; ++k) row.add(cat("i", k), indices.strides[k]);
  for (std::size_t k = 0; k < batch; ++k) from.add(cat("i", k), data.strides[k]);
  for (std::size_t k = 0; k < tuple; ++k) {
    const std::string index =
        cat("indices[", index_text(row).add(static_cast<std::int64_t>(k) * indices.strides[rows]).str(), "]");
    out_.line("const std::int64_t at", k, " = ", nearest(index, data.lens[batch + k]), ";");
    from.add(cat("at", k), data.strides[batch + k]);
  }
  for (std::size_t k = batch + tuple; k < data.lens.size(); ++k)
    from.add(cat("i", rows + k - batch - tuple), data.strides[k]);
  out_.line("out[", result, "] = data[", from.str(), "];");
  out_.close(to.lens.size());
}

void cpp_exporter::write(const draft& d, const op::scatter_nd& op) {
  const std::vector<place> at = places(d);
  const place &data = at[0], &indices = at[1], &updates = at[2], &to = at[3];
  const auto rows = indices.lens.size() - 1, tuple = static_cast<std::size_t>(indices.lens.back());
  declare("data", data, false);
  declare("indices", indices, false);
  declare("updates", updates, false);
  declare("out", to, true);
  write_copied(data, to);
  const std::string update = open_all(updates.lens, updates);
  index_text row, result;
  for (std::size_t k = 0; k < rows; ++k) row.add(cat("i", k), indices.strides[k]);
  for (std::size_t k = 0; k < tuple; ++k) {
    const std::string index =
        cat("indices[", index_text(row).add(static_cast<std::int64_t>(k) * indices.strides[rows]).str(), "]");
    out_.line("const std::int64_t at", k, " = ", nearest(index, data.lens[k]), ";");
    result.add(cat("at", k), to.strides[k]);
  }
  for (std::size_t k = tuple; k < data.lens.size(); ++k) result.add(cat("i", rows + k - tuple), to.strides[k]);
  const std::string element_text = cat("out[", result.str(), "]");
  out_.line(element_text, " = ", updated(op.reduction, to.type, element_text, cat("updates[", update, "]")), ";");
  out_.close(updates.lens.size());
}

}  // namespace kiln::aot
