// SET VARIABLE as its client sees it: the node's statement makes the value, and when that has ended the session has it.
// Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "service/result_stream.h"
#include "service/session.h"

namespace roost::service {

class VariableStream final : public ResultStream {
public:
    // `value`: a statement whose format is ResultFormat::value.
    VariableStream(std::shared_ptr<Session> session, std::string name, std::unique_ptr<ResultStream> value)
        : session_(std::move(session)), name_(std::move(name)), value_(std::move(value)) {}

    const Uuid &id() const override { return value_->id(); }
    net::Task<Result<ResultHeader>> header() override {
        auto header = co_await value_->header();
        if (!header.ok()) co_return header.status();
        co_return ResultHeader();
    }
    net::Task<Result<std::optional<RowsFrame>>> next() override {
        for (;;) {
            auto frame = co_await value_->next();
            if (!frame.ok()) co_return frame.status();
            if (!frame->has_value()) break;
            bytes_ = std::move((*frame)->bytes);
        }
        if (Status status = keep(); !status.ok()) co_return status;
        co_return std::optional<RowsFrame>();
    }
    const Completion &completion() const override { return value_->completion(); }
    std::string tag(uint64_t) const override { return "SET"; }
    void cancel(Status reason) override { value_->cancel(std::move(reason)); }

private:
    Status keep() {
        auto &variables = session_->settings.variables;
        uint64_t size_bytes = name_.size() + bytes_.size();
        for (const auto &[name, bytes] : variables) size_bytes += name == name_ ? 0 : name.size() + bytes.size();
        if (size_bytes > kVariablesMaxBytes || (variables.size() >= kVariablesMax && !variables.contains(name_))) {
            return Status(Code::invalid_argument, "the session has too many variables, or too large ones")
                .with_sqlstate("54000")
                .with_hint("RESET VARIABLE name gives one up");
        }
        variables[name_] = std::move(bytes_);
        return Status();
    }

    std::shared_ptr<Session> session_;
    std::string name_;
    std::unique_ptr<ResultStream> value_;
    std::string bytes_;
};

}  // namespace roost::service
