// Pages and Arrow streams of stored results, and work on the segment cache by hand: short work, not admitted; an Arrow
// stream goes at its reader's pace by parking its job, not its thread.
#include "cluster/node_agent.h"

namespace roost::cluster {

using net::FrameLink;
using net::FrameType;

struct NodeAgent::Read {
    Read(net::Frame opened, std::shared_ptr<FrameLink> control, ResultLinks &links)
        : frame(std::move(opened)), out(std::move(control), links, frame.stream) {}

    const net::Frame frame;
    ResultOutput out;
    std::unique_ptr<StoredResultReader> reader;
    std::atomic<bool> cancelled = false;
};

void NodeAgent::on_read(const std::shared_ptr<FrameLink> &control, net::Frame frame) {
    auto job = std::make_shared<Read>(std::move(frame), control, result_links_);
    {
        MutexLock lock(mutex_);
        reads_[job->frame.stream] = job;
    }
    small_pool_.push([this, job] { read(job); });
}

void NodeAgent::on_cancel(const net::Frame &frame) {
    auto message = decode_cancel(frame.payload);
    if (!message.ok()) return;
    TaskPtr task;
    {
        MutexLock lock(mutex_);
        if (const auto found = tasks_.find(frame.stream); found != tasks_.end()) task = found->second;
        // A reader that is parked is woken by the gateway, which reads on or closes the link.
        if (const auto found = reads_.find(frame.stream); found != reads_.end()) found->second->cancelled = true;
    }
    // A cancel that crosses the end of its statement finds nothing; that is fine.
    if (task) cancel(task, message->reason);
}

void NodeAgent::read(const ReadPtr &read) {
    Status status;
    if (read->frame.type == FrameType::read_page) {
        auto request = decode_read_page(read->frame.payload);
        auto page = request.ok() ? engine_.read_page(request->statement, request->offset_rows, request->limit_rows)
                                 : Result<std::string>(request.status());
        if (page.ok()) (void)read->out.rows(0, std::move(*page));  // false: as in end_read
        return end_read(read, page.status());
    }
    if (read->frame.type == FrameType::cache_work) return work_on_cache(read);
    auto id = decode_id(read->frame.payload);
    auto reader = id.ok() ? engine_.open_arrow(*id) : Result<std::unique_ptr<StoredResultReader>>(id.status());
    if (!reader.ok()) return end_read(read, reader.status());
    read->reader = std::move(*reader);
    advance_read(read);
}

void NodeAgent::work_on_cache(const ReadPtr &read) {
    auto work = decode_cache_work(read->frame.payload);
    auto bytes = work.ok() ? engine_.cache_work(*work, [read] { return read->cancelled.load(); })
                           : Result<uint64_t>(work.status());
    end_read(read, bytes.status(), bytes.ok() ? *bytes : 0);
}

void NodeAgent::advance_read(const ReadPtr &read) {
    for (;;) {
        if (read->cancelled) return end_read(read, Status(Code::cancelled, "nobody reads the result any more"));
        auto more = read->reader->step(read->out);
        if (!more.ok()) return end_read(read, more.status());
        if (!read->out.broken().ok()) return end_read(read, read->out.broken());
        if (!*more) return end_read(read, Status());
        if (read->out.park([this, read] { small_pool_.push([this, read] { advance_read(read); }); })) return;
    }
}

void NodeAgent::end_read(const ReadPtr &read, Status status, std::optional<uint64_t> affected) {
    Completion done;
    done.status = std::move(status);
    done.affected = affected;
    read->reader.reset();
    {
        MutexLock lock(mutex_);
        reads_.erase(read->frame.stream);
    }
    (void)read->out.end(done);  // false: the gateway is gone, and nobody is left to tell
}

}  // namespace roost::cluster
