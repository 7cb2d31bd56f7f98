#include "kiln/onnx/impl/import/op_resolver.hpp"

#include "kiln/onnx/impl/import/op_table.hpp"

namespace kiln::onnx {

std::int64_t op_resolver::version_of(const opsets& versions, const node& n) const {
  for (const opsets* list : {&versions, &model_.versions})
    for (const auto& [domain, version] : *list)
      if (domain == n.domain) return version;
  if (n.domain.empty()) raise(errc::malformed, "the model uses ai.onnx but imports no version of it");
  return 1;
}

resolved_op op_resolver::resolve(const opsets& versions, const node& n) const {
  resolved_op out;
  out.version = version_of(versions, n);
  const op_importer* found = nullptr;
  for (const op_importer& own : options_.op_importers)
    if (own.serves(n.domain, n.op_type, out.version) && (!found || own.since > found->since)) found = &own;
  if (!found) {
    for (const function& f : model_.functions)
      if (f.name == n.op_type && f.domain == n.domain && f.overload == n.overload) {
        out.callee = &f;
        return out;
      }
    found = find_op_importer(n.domain, n.op_type, out.version);
  }
  if (found && found->function) {
    out.function = found->function;
    return out;
  }
  const std::int64_t oldest = oldest_version(n.domain, n.op_type);
  out.why_missing = oldest > out.version ? "its importer serves versions from " + std::to_string(oldest) + " on"
                    : oldest             ? "its importer does not serve this version"
                                         : "no importer";
  return out;
}

}  // namespace kiln::onnx
