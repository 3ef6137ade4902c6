// Reads a ResultStream a number of rows at a time: the rows stay the bytes that the node encoded, cut at their
// boundaries. Owns the stream; dropping the cursor drops the stream, which stops its work on the node. Loop thread
// only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/async.h"
#include "service/result_stream.h"

namespace roost::pg {

class RowCursor {
public:
    struct Slice {
        std::string_view bytes;  // whole DataRow messages; valid until the next call
        uint32_t rows = 0;
    };

    explicit RowCursor(std::unique_ptr<service::ResultStream> stream) : stream_(std::move(stream)) {}

    // Waits for the header; asked again it answers from memory. An error ends the cursor.
    net::Task<Status> open();
    // REQUIRES: open() was ok.
    const ResultHeader &header() const { return header_; }
    // At most `rows_max` (>= 1) rows. nullopt: there are no more, now and for ever.
    net::Task<Result<std::optional<Slice>>> next(uint32_t rows_max);
    // The command tag when `rows` rows went to the client. REQUIRES: next() has returned nullopt.
    std::string tag(uint64_t rows) const { return stream_->tag(rows); }
    bool at_end() const { return at_end_; }
    void cancel(Status reason) { stream_->cancel(std::move(reason)); }

private:
    Slice cut(uint32_t rows, size_t size_bytes);

    std::unique_ptr<service::ResultStream> stream_;
    ResultHeader header_;
    bool opened_ = false, at_end_ = false;
    std::string frame_;
    size_t frame_at_ = 0;      // bytes of frame_ already handed out
    uint32_t frame_rows_ = 0;  // rows of it left
};

// A result that the gateway itself makes (SHOW, SET …), so that the fronts' code has one way to send results.
class LocalResult : public service::ResultStream {
public:
    // A command without rows.
    explicit LocalResult(std::string tag) : tag_(std::move(tag)) {}
    LocalResult(std::string tag, std::vector<std::string> names, const std::vector<std::vector<std::string>> &rows);

    const Uuid &id() const override { return id_; }
    net::Task<Result<ResultHeader>> header() override { co_return header_; }
    net::Task<Result<std::optional<service::RowsFrame>>> next() override;
    const Completion &completion() const override { return completion_; }
    std::string tag(uint64_t) const override { return tag_; }
    void cancel(Status) override {}

    static std::vector<Column> text_columns(std::vector<std::string> names);

private:
    Uuid id_;
    std::string tag_;
    ResultHeader header_;
    Completion completion_;
    std::optional<service::RowsFrame> frame_;
};

}  // namespace roost::pg
