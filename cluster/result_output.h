// Where a statement's frames go on the node: held back while they are small and sent inline on the control link with
// the end; past the inline limit on a result link of their own. Used by one worker at a time; park() resumes it from
// the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "engine/engine.h"
#include "net/link.h"

namespace roost::cluster {

constexpr size_t kInlineMaxBytes = 64 * 1024;
constexpr size_t kQueueHighBytes =
    1024 * 1024;  // past it the worker leaves the statement until the reader has caught up
constexpr size_t kQueueLowBytes = 256 * 1024;

// Idle result links, dialled when none is left. Thread-safe.
class ResultLinks {
public:
    using Dial = std::function<Result<std::shared_ptr<net::FrameLink>>()>;
    explicit ResultLinks(Dial dial) : dial_(std::move(dial)) {}
    Result<std::shared_ptr<net::FrameLink>> take();
    void give_back(std::shared_ptr<net::FrameLink> link);
    void close_all();

private:
    static constexpr size_t kIdleMax = 8;
    Dial dial_;
    Mutex mutex_;
    std::vector<std::shared_ptr<net::FrameLink>> idle_ ROOST_GUARDED_BY(mutex_);
};

class ResultOutput final : public ResultSink {
public:
    ResultOutput(std::shared_ptr<net::FrameLink> control, ResultLinks &links, uint64_t stream)
        : control_(std::move(control)), links_(links), stream_(stream) {}

    void header(const ResultHeader &header) override;
    bool rows(uint32_t rows, std::string bytes) override;
    // Sends the last frame. False: the gateway is gone.
    bool end(const Completion &completion);
    // Forgets what was produced, so that the statement can start anew. False when some of it has been sent.
    bool restart();
    // Sends one frame that is not part of a result (refused).
    void single(net::FrameType type, std::string payload);
    // When the reader is behind: calls `resume` once it has caught up, and returns true.
    bool park(std::function<void()> resume);
    // Why nothing can be sent any more; ok while it can.
    const Status &broken() const { return broken_; }
    uint64_t sent_bytes() const { return sent_bytes_; }

private:
    bool flush(std::string payload = {});

    std::shared_ptr<net::FrameLink> control_;
    ResultLinks &links_;
    uint64_t stream_;
    std::shared_ptr<net::FrameLink> link_;
    std::string pending_;
    Status broken_;
    uint64_t sent_bytes_ = 0;
};

}  // namespace roost::cluster
