// The result of a command that roost answers itself: no rows, a tag.
#pragma once

#include <string>

#include "service/result_stream.h"

namespace roost::service {

class LocalStream final : public ResultStream {
public:
    explicit LocalStream(std::string tag) : id_(Uuid::make()), tag_(std::move(tag)) {}
    const Uuid &id() const override { return id_; }
    net::Task<Result<ResultHeader>> header() override { co_return ResultHeader(); }
    net::Task<Result<std::optional<RowsFrame>>> next() override { co_return std::optional<RowsFrame>(); }
    const Completion &completion() const override { return completion_; }
    std::string tag(uint64_t) const override { return tag_; }
    void cancel(Status) override {}

private:
    Uuid id_;
    std::string tag_;
    Completion completion_;
};

}  // namespace roost::service
