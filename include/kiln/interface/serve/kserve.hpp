#pragma once
#include <memory>
#include <string_view>

#include "kiln/interface/serve/http.hpp"
#include "kiln/interface/serve/models.hpp"
#include "kiln/interface/serve/record.hpp"

namespace kiln::serve {

/// The Open Inference Protocol (KServe v2) over HTTP, with its extension of binary tensors, for the models of tensors:
/// `/v2`, `/v2/health/live`, `/v2/health/ready`, and `/v2/models/M`, `/ready` and `/infer` after it, with or without
/// `/versions/1`. Sets the record's route and model. Errors are answers in the protocol's form, `{"error": ...}`.
http_reply answer_kserve(const http_request& request, const model_set& models, request_record& record, bool is_ready);

/// An error in the protocol's form, with the headers of `reply_of`.
http_reply kserve_reply_of(const api_error& e);

/// A datatype by the protocol's name, and the reverse; empty and `not_found` errors where there is none.
std::string_view kserve_name(dtype t);
dtype kserve_type(std::string_view name);

}  // namespace kiln::serve
