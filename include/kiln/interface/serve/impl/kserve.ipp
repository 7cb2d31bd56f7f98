#include "kiln/interface/serve/kserve.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "kiln/core/error.hpp"
#include "kiln/interface/serve/impl/named_inputs.hpp"
#include "kiln/interface/serve/impl/tensor_json.hpp"
#include "kiln/version.hpp"

namespace kiln::serve {

namespace {

constexpr std::array<std::pair<std::string_view, dtype>, 13> names{{{"BOOL", dtype::boolean},
                                                                    {"UINT8", dtype::u8},
                                                                    {"UINT16", dtype::u16},
                                                                    {"UINT32", dtype::u32},
                                                                    {"UINT64", dtype::u64},
                                                                    {"INT8", dtype::i8},
                                                                    {"INT16", dtype::i16},
                                                                    {"INT32", dtype::i32},
                                                                    {"INT64", dtype::i64},
                                                                    {"FP16", dtype::f16},
                                                                    {"FP32", dtype::f32},
                                                                    {"FP64", dtype::f64},
                                                                    {"BF16", dtype::bf16}}};
constexpr std::int64_t most_elements = std::int64_t{1} << 28;

http_reply reply(const json& j, int status = 200) {
  http_reply r;
  r.status = status;
  r.body = text_of(j);
  return r;
}

json described(std::span<const port> ports) {
  json out = json::array();
  for (const port& p : ports) {
    json lens = json::array();
    for (const dimension d : p.type.lens) lens.push_back(d.is_constant() ? d.value() : -1);
    out.push_back({{"name", p.name}, {"datatype", kserve_name(p.type.type)}, {"shape", std::move(lens)}});
  }
  return out;
}

// A count in a header or a parameter, of bytes that are there.
std::size_t count_of(std::string_view text, std::size_t most, const std::string& where) {
  std::size_t n = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (fault != std::errc() || end != text.data() + text.size() || n > most)
    throw api_error(where + ": expected at most " + std::to_string(most) + " bytes, found " +
                    std::string(text.substr(0, 30)));
  return n;
}

struct inference {
  const tensor_entry& model;
  std::string_view binary;  // what is left of it
  json head;

  // Fields of `parameters`, of a request or of a tensor.
  static const json* parameter(const json& of, const char* name) {
    const auto all = of.find("parameters");
    if (all == of.end() || !all->is_object()) return nullptr;
    const auto at = all->find(name);
    return at == all->end() ? nullptr : &*at;
  }
  static bool is_set(const json& of, const char* name, bool otherwise) {
    const json* const v = parameter(of, name);
    if (!v) return otherwise;
    if (!v->is_boolean()) throw api_error(std::string(name) + ": expected true or false");
    return v->get<bool>();
  }
  argument input(const json& t, const port& p, const std::string& where) {
    fields f(t, where);
    const json* const lens = f.get("shape");
    if (!lens) f.refuse("shape", "a list of extents");
    const shape s{p.type.type, extents_of(*lens, where + ".shape", most_elements)};
    if (const json* const size = parameter(t, "binary_data_size")) {
      if (f.get("data")) f.refuse("data", "no data beside binary_data_size");
      const std::size_t n = count_of(text_of(*size), binary.size(), where + ".parameters.binary_data_size");
      const auto own = binary.substr(0, n);
      binary.remove_prefix(n);
      return argument_of(own, s, where);
    }
    const json* const data = f.get("data");
    if (!data || !data->is_array()) f.refuse("data", "a list of elements");
    return argument_of(*data, s, where + ".data");
  }
  std::vector<argument> inputs() {
    fields f(head);
    const json* const list = f.get("inputs");
    if (!list || !list->is_array()) f.refuse("inputs", "a list of tensors");
    named_inputs out(model.runner->program().inputs());
    for (std::size_t k = 0; k < list->size(); ++k) {
      const std::string where = "inputs[" + std::to_string(k) + "]";
      fields own((*list)[k], where);
      const port& p = out.find(own.text("name").value_or(""), own.text("datatype").value_or(""), where);
      out.put(p, input((*list)[k], p, where));
    }
    auto all = out.finish();
    if (!binary.empty())
      throw api_error("expected bytes of inputs alone after the JSON, found " + std::to_string(binary.size()) +
                      " more");
    return all;
  }
  // Which outputs are asked for, and whether each one is binary.
  std::vector<std::pair<std::size_t, bool>> wanted() {
    const auto ports = model.runner->program().outputs();
    const bool all_binary = is_set(head, "binary_data_output", false);
    std::vector<std::pair<std::size_t, bool>> out;
    fields f(head);
    const json* const list = f.get("outputs");
    if (!list)
      for (std::size_t k = 0; k < ports.size(); ++k) out.emplace_back(k, all_binary);
    else if (!list->is_array() || list->size() > ports.size())
      f.refuse("outputs", "a list of outputs of the model");
    else
      for (const json& t : *list) {
        fields own(t, "outputs");
        const std::string name = own.text("name").value_or("");
        const auto at = std::find_if(ports.begin(), ports.end(), [&](const port& p) { return p.name == name; });
        if (at == ports.end()) own.refuse("name", "the name of an output of the model");
        out.emplace_back(static_cast<std::size_t>(at - ports.begin()), is_set(t, "binary_data", all_binary));
      }
    return out;
  }
  http_reply run() {
    const auto outputs_asked = wanted();
    const auto made = model.runner->run(inputs());
    json out = {{"model_name", model.name}, {"model_version", "1"}};
    if (const auto id = fields(head).text("id")) out["id"] = *id;
    out["outputs"] = json::array();
    std::string bytes;
    bool any = false;
    for (const auto& [k, is_binary] : outputs_asked) {
      const argument& a = made[k];
      json lens = json::array();
      for (const dimension d : a.get_shape().lens) lens.push_back(d.value());
      json t = {{"name", model.runner->program().outputs()[k].name},
                {"datatype", kserve_name(a.get_shape().type)},
                {"shape", std::move(lens)}};
      if (is_binary) {
        const std::string own = bytes_of(a);
        t["parameters"] = {{"binary_data_size", own.size()}};
        bytes += own, any = true;
      } else {
        t["data"] = json_of(a, model.runner->program().outputs()[k].name);
      }
      out["outputs"].push_back(std::move(t));
    }
    http_reply r = reply(out);
    if (any) {
      r.headers.emplace_back("Inference-Header-Content-Length", std::to_string(r.body.size()));
      r.type = "application/octet-stream";
      r.body += bytes;
    }
    return r;
  }
};

http_reply infer(const http_request& request, const tensor_entry& model) {
  constexpr std::string_view length = "inference-header-content-length";
  std::string_view text = request.body, binary;
  if (const auto given = request.header(length); !given.empty()) {
    const std::size_t n = count_of(given, text.size(), "Inference-Header-Content-Length");
    binary = text.substr(n), text = text.substr(0, n);
  }
  return inference{model, binary, parse_body(text)}.run();
}

http_reply state(const std::string& name, bool is_ready) {
  return reply({{"name", name}, {"ready", is_ready}}, is_ready ? 200 : 503);
}

// The next part of a path, without the slash before it.
std::string_view next_part(std::string_view& path) {
  if (!path.starts_with('/')) return {};
  const auto end = std::min(path.find('/', 1), path.size());
  const auto out = path.substr(1, end - 1);
  path.remove_prefix(end);
  return out;
}

http_reply answer(const http_request& request, const model_set& models, request_record& record, bool is_ready) {
  std::string_view path = request.path;
  path.remove_prefix(3);  // /v2
  const auto expect = [&](std::string_view method, std::string_view route) {
    record.route = "/v2" + std::string(route);
    if (request.method != method && !(request.method == "HEAD" && method == "GET"))
      throw api_error(record.route + ": expected " + std::string(method) + ", found " + request.method.substr(0, 20),
                      {}, {}, 405);
  };
  if (path.empty()) {
    expect("GET", "");
    return reply({{"name", "kiln"}, {"version", version_text}, {"extensions", {"binary_tensor_data"}}});
  }
  if (path == "/health/live") return expect("GET", path), reply({{"live", true}});
  if (path == "/health/ready") return expect("GET", path), reply({{"ready", is_ready}}, is_ready ? 200 : 503);
  record.route = "/v2";
  if (next_part(path) == "models") {
    const std::string name(next_part(path));
    std::string_view version;
    if (path.starts_with("/versions/")) next_part(path), version = next_part(path);
    const tensor_entry& model = find_model(models, name, version);
    record.model = name;
    if (path.empty()) {
      expect("GET", "/models/*");
      const executable& exe = model.runner->program();
      return reply({{"name", name},
                    {"versions", {"1"}},
                    {"platform", "kiln"},
                    {"inputs", described(exe.inputs())},
                    {"outputs", described(exe.outputs())}});
    }
    if (path == "/ready") return expect("GET", "/models/*/ready"), state(name, is_ready);
    if (path == "/infer") return expect("POST", "/models/*/infer"), infer(request, model);
  }
  throw api_error("there is nothing at " + request.path.substr(0, 200), {}, {}, 404);
}

}  // namespace

std::string_view kserve_name(dtype t) {
  for (const auto& [name, type] : names)
    if (type == t) return name;
  return {};
}
dtype kserve_type(std::string_view name) {
  for (const auto& [own, type] : names)
    if (own == name) return type;
  raise(errc::not_found, "no datatype " + std::string(name.substr(0, 40)));
}

http_reply answer_kserve(const http_request& request, const model_set& models, request_record& record, bool is_ready) {
  try {
    return answer(request, models, record, is_ready);
  } catch (const api_error& e) {
    record.error = e.what();
    http_reply out = kserve_reply_of(e);
    if (e.status() == 405) out.headers.emplace_back("Allow", record.route.ends_with("/infer") ? "POST" : "GET");
    return out;
  } catch (const error& e) {
    record.error = e.what();
    return kserve_reply_of(api_error(e.what(), {}, {}, e.code() == errc::internal ? 500 : 400));
  }
}

http_reply kserve_reply_of(const api_error& e) {
  http_reply out = reply_of(e);
  out.body = text_of({{"error", e.what()}});
  return out;
}

}  // namespace kiln::serve
