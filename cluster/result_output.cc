#include "cluster/result_output.h"

#include "cluster/messages.h"

namespace roost::cluster {

using net::FrameType;

Result<std::shared_ptr<net::FrameLink>> ResultLinks::take() {
    for (;;) {
        std::shared_ptr<net::FrameLink> link;
        {
            MutexLock lock(mutex_);
            if (idle_.empty()) break;
            link = std::move(idle_.back());
            idle_.pop_back();
        }
        if (!link->closed()) return link;
    }
    return dial_();
}

void ResultLinks::give_back(std::shared_ptr<net::FrameLink> link) {
    {
        MutexLock lock(mutex_);
        if (idle_.size() < kIdleMax && !link->closed()) {
            idle_.push_back(std::move(link));
            return;
        }
    }
    link->close();
}

void ResultLinks::close_all() {
    std::vector<std::shared_ptr<net::FrameLink>> links;
    {
        MutexLock lock(mutex_);
        links.swap(idle_);
    }
    for (const auto &link : links) link->close();
}

void ResultOutput::header(const ResultHeader &header) {
    net::append_frame(pending_, FrameType::header, stream_, encode(header));
}

bool ResultOutput::rows(uint32_t rows, std::string bytes) {
    if (!broken_.ok()) return false;
    sent_bytes_ += bytes.size();
    if (!link_ && pending_.size() + bytes.size() <= kInlineMaxBytes) {
        net::append_frame(pending_, FrameType::rows, stream_, bytes, rows);
        return true;
    }
    pending_ += net::frame_header(FrameType::rows, stream_, bytes, rows);
    return flush(std::move(bytes));
}

// Sends what is pending, and `payload` of the frame whose header is the last of it.
bool ResultOutput::flush(std::string payload) {
    if (!broken_.ok()) return false;
    if (!link_) {
        auto link = links_.take();
        if (!link.ok()) {
            broken_ = link.status();
            return false;
        }
        link_ = std::move(*link);
        std::string begin;
        net::append_frame(begin, FrameType::result_begin, stream_, {});
        pending_.insert(0, begin);
    }
    if (!link_->send(std::move(pending_), std::move(payload))) {
        broken_ = Status(Code::unavailable, "the gateway closed the result link");
        return false;
    }
    pending_.clear();
    return link_->queued_bytes() <= kQueueHighBytes;
}

bool ResultOutput::end(const Completion &completion) {
    net::append_frame(pending_, FrameType::end, stream_, encode(completion));
    if (!link_ && pending_.size() <= kInlineMaxBytes && broken_.ok()) return control_->send(std::move(pending_));
    if (!broken_.ok()) {
        // The result link is lost: the end still tells the gateway why, over the control link.
        std::string end;
        net::append_frame(end, FrameType::end, stream_, encode(completion));
        return control_->send(std::move(end));
    }
    flush();
    if (link_) links_.give_back(std::move(link_));
    return broken_.ok();
}

bool ResultOutput::restart() {
    if (link_ || !broken_.ok()) return false;
    pending_.clear();
    sent_bytes_ = 0;
    return true;
}

void ResultOutput::single(FrameType type, std::string payload) {
    std::string frame;
    net::append_frame(frame, type, stream_, payload);
    control_->send(std::move(frame));
}

bool ResultOutput::park(std::function<void()> resume) {
    return link_ && link_->park(kQueueLowBytes, std::move(resume));
}

}  // namespace roost::cluster
