#include "front/pg/row_cursor.h"

#include <algorithm>

#include "front/pg/message.h"

namespace roost::pg {

net::Task<Status> RowCursor::open() {
    if (opened_) co_return Status();
    Result<ResultHeader> header = co_await stream_->header();
    if (!header.ok()) {
        at_end_ = true;
        co_return header.status();
    }
    header_ = std::move(header).value();
    opened_ = true;
    co_return Status();
}

RowCursor::Slice RowCursor::cut(uint32_t rows, size_t size_bytes) {
    const Slice slice{std::string_view(frame_).substr(frame_at_, size_bytes), rows};
    frame_at_ += size_bytes;
    frame_rows_ -= rows;
    return slice;
}

net::Task<Result<std::optional<RowCursor::Slice>>> RowCursor::next(uint32_t rows_max) {
    while (frame_rows_ == 0) {
        if (at_end_) co_return std::optional<Slice>();
        Result<std::optional<service::RowsFrame>> frame = co_await stream_->next();
        if (!frame.ok()) {
            at_end_ = true;
            co_return frame.status();
        }
        if (!frame->has_value()) {
            at_end_ = true;
            continue;
        }
        frame_ = std::move((*frame)->bytes);
        frame_rows_ = (*frame)->rows;
        frame_at_ = 0;
    }
    if (rows_max >= frame_rows_) co_return cut(frame_rows_, frame_.size() - frame_at_);
    const Result<size_t> size_bytes = rows_bytes(std::string_view(frame_).substr(frame_at_), rows_max);
    if (!size_bytes.ok()) {
        at_end_ = true;
        frame_rows_ = 0;
        co_return size_bytes.status();
    }
    co_return cut(rows_max, *size_bytes);
}

std::vector<Column> LocalResult::text_columns(std::vector<std::string> names) {
    std::vector<Column> columns;
    for (std::string &name : names) columns.push_back(Column{.name = std::move(name), .type = "VARCHAR"});
    return columns;
}

LocalResult::LocalResult(std::string tag, std::vector<std::string> names,
                         const std::vector<std::vector<std::string>> &rows)
    : tag_(std::move(tag)) {
    header_.has_grid = true;
    header_.columns = text_columns(std::move(names));
    frame_.emplace();
    for (const std::vector<std::string> &row : rows) {
        put_text_row(frame_->bytes, std::vector<std::optional<std::string>>(row.begin(), row.end()));
        frame_->rows++;
    }
    completion_.rows = frame_->rows;
}

net::Task<Result<std::optional<service::RowsFrame>>> LocalResult::next() {
    co_return std::exchange(frame_, std::nullopt);
}

}  // namespace roost::pg
