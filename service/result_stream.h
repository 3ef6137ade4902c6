// A running statement as a front sees it: the header, then rows in the format it asked for, then the completion. Single
// owner (the front), used on the gateway's loop only. Dropping it cancels the statement on its node; a front that loses
// its client drops it. Backpressure: rows are read from the node only when next() asks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/statement.h"
#include "net/async.h"

namespace roost::service {

struct RowsFrame {
    uint32_t rows = 0;
    std::string bytes;  // whole DataRow messages, `rows` of them
};

class ResultStream {
public:
    virtual ~ResultStream() = default;
    virtual const Uuid &id() const = 0;
    // Waits for the header. An error means the statement failed before it; the completion is there as well.
    virtual net::Task<Result<ResultHeader>> header() = 0;
    // The next rows; nullopt at the end, when completion() is valid. An error (node lost, statement failed midway,
    // cancelled) ends the stream: never a short result.
    virtual net::Task<Result<std::optional<RowsFrame>>> next() = 0;
    // REQUIRES: next() has returned nullopt or an error.
    virtual const Completion &completion() const = 0;
    // The command tag for the completion ("SELECT 3", "INSERT 0 1", "CREATE TABLE"). REQUIRES: as completion(). `rows`
    // is what the front itself counts for SELECT.
    virtual std::string tag(uint64_t rows) const = 0;
    // Makes header()/next() end with `reason` soon, and stops the work on the node. Idempotent.
    virtual void cancel(Status reason) = 0;
};

}  // namespace roost::service
