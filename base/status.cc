#include "base/status.h"

namespace roost {
namespace {

struct CodeInfo {
    std::string_view name;
    std::string_view sqlstate;
    int http_status;
};

CodeInfo info(Code code) {
    switch (code) {
        case Code::ok:
            return {"ok", "00000", 200};
        case Code::invalid_argument:
            return {"unprocessable_content", "22023", 422};
        case Code::syntax_error:
            return {"syntax_error", "42601", 422};
        case Code::not_allowed:
            return {"statement_not_allowed", "42501", 422};
        case Code::permission_denied:
            return {"forbidden", "42501", 403};
        case Code::unauthenticated:
            return {"unauthorized", "28P01", 401};
        case Code::not_found:
            return {"not_found", "42704", 404};
        case Code::already_exists:
            return {"already_exists", "42710", 409};
        case Code::failed_precondition:
            return {"failed_precondition", "55000", 409};
        case Code::conflict:
            return {"conflict", "40001", 409};
        case Code::resource_exhausted:
            return {"resource_exhausted", "53200", 429};
        case Code::timeout:
            return {"timeout", "57014", 504};
        case Code::cancelled:
            return {"cancelled", "57014", 499};
        case Code::unavailable:
            return {"unavailable", "57P01", 503};
        case Code::unimplemented:
            return {"unimplemented", "0A000", 501};
        case Code::io_error:
            return {"io_error", "58030", 500};
        case Code::engine_error:
            return {"engine_error", "XX000", 422};
        case Code::data_loss:
            return {"data_loss", "XX001", 500};
        case Code::internal:
            return {"internal_error", "XX000", 500};
    }
    return {"internal_error", "XX000", 500};
}

const std::string kEmpty;

}  // namespace

std::string_view code_name(Code code) { return info(code).name; }
std::string_view default_sqlstate(Code code) { return info(code).sqlstate; }
int default_http_status(Code code) { return info(code).http_status; }

Status::Status(Code code, std::string message) {
    if (code == Code::ok) return;
    error_ = std::make_unique<Error>();
    error_->code = code;
    error_->message = std::move(message);
    error_->retryable = code == Code::unavailable || code == Code::conflict;
}

Status::Status(Error error) : error_(std::make_unique<Error>(std::move(error))) {}

Status::Status(const Status &other) : error_(other.error_ ? std::make_unique<Error>(*other.error_) : nullptr) {}

Status &Status::operator=(const Status &other) {
    if (this != &other) error_ = other.error_ ? std::make_unique<Error>(*other.error_) : nullptr;
    return *this;
}

const std::string &Status::message() const { return error_ ? error_->message : kEmpty; }

std::string_view Status::name() const {
    if (!error_) return code_name(Code::ok);
    return error_->name.empty() ? code_name(error_->code) : std::string_view(error_->name);
}

std::string_view Status::sqlstate() const {
    if (!error_) return default_sqlstate(Code::ok);
    return error_->sqlstate.empty() ? default_sqlstate(error_->code) : std::string_view(error_->sqlstate);
}

Status Status::with_name(std::string name) && {
    if (error_) error_->name = std::move(name);
    return std::move(*this);
}
Status Status::with_sqlstate(std::string sqlstate) && {
    if (error_) error_->sqlstate = std::move(sqlstate);
    return std::move(*this);
}
Status Status::with_detail(std::string detail) && {
    if (error_) error_->detail = std::move(detail);
    return std::move(*this);
}
Status Status::with_hint(std::string hint) && {
    if (error_) error_->hint = std::move(hint);
    return std::move(*this);
}
Status Status::with_rule(std::string rule) && {
    if (error_) error_->rule = std::move(rule);
    return std::move(*this);
}
Status Status::with_position(uint32_t position) && {
    if (error_) error_->position = position;
    return std::move(*this);
}
Status Status::with_retryable(bool retryable) && {
    if (error_) error_->retryable = retryable;
    return std::move(*this);
}

std::string Status::to_string() const {
    if (!error_) return "ok";
    std::string out(name());
    out += ": ";
    out += error_->message;
    if (!error_->hint.empty()) out += " (" + error_->hint + ")";
    return out;
}

}  // namespace roost
