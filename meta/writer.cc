#include "meta/writer.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <unordered_map>
#include <utility>

#include "meta/statement_rows.h"

namespace roost::meta {
namespace {

constexpr size_t kFinishedFactor = 4;

bool is_finished(const StatementRecord &record) {
    return record.status != StatementStatus::queued && record.status != StatementStatus::running;
}

// What a blocked caller and the writer's thread share; either may leave first.
struct Wait {
    Mutex mutex;
    CondVar ready;
    std::optional<Status> outcome ROOST_GUARDED_BY(mutex);
};

// For each item the one that is written in its place: of each statement only the newest record of a batch is worth it.
template <class Item>
std::vector<size_t> newest_of(const std::vector<Item> &batch) {
    std::vector<size_t> out(batch.size());
    std::unordered_map<Uuid, size_t> newest;
    for (size_t i = batch.size(); i-- > 0;) {
        out[i] = batch[i].record ? newest.try_emplace(batch[i].record->id, i).first->second : i;
    }
    return out;
}

}  // namespace

MetaWriter::MetaWriter(std::unique_ptr<Db> db, WriterLimits limits) : db_(std::move(db)), limits_(limits) {
    thread_ = std::thread([this] { loop(); });
}

MetaWriter::~MetaWriter() {
    {
        const MutexLock lock(mutex_);
        stopping_ = true;
    }
    filled_.notify_one();
    thread_.join();
}

bool MetaWriter::has_room(const Item &item) const {
    if (!item.record) return true;
    const size_t factor = is_finished(*item.record) ? kFinishedFactor : 1;
    return queue_.size() < limits_.queue_max_records * factor &&
           queued_bytes_ + item.bytes <= limits_.queue_max_bytes * factor;
}

void MetaWriter::push(Item item) {
    bool wake = false;
    {
        const MutexLock lock(mutex_);
        if (!has_room(item)) {
            // The caller is told on the writer's thread like everybody else: it may hold locks now.
            item.record.reset();
            item.bytes = 0;
            item.outcome = Status(Code::resource_exhausted, "the statement history can't keep up with the statements")
                               .with_hint("run it again in a moment; is the disk of the meta store slow or full?")
                               .with_retryable(true);
        }
        const bool first_urgent = item.urgent() && urgent_ == 0;
        const bool large =
            queued_bytes_ < limits_.batch_max_bytes && queued_bytes_ + item.bytes >= limits_.batch_max_bytes;
        wake = queue_.empty() || first_urgent || large;
        urgent_ += item.urgent() ? 1 : 0;
        queued_bytes_ += item.bytes;
        queue_.push_back(std::move(item));
    }
    if (wake) filled_.notify_one();
}

void MetaWriter::record(StatementRecord record, std::function<void(Status)> durable) {
    Item item;
    item.bytes = record_bytes(record);
    item.record = std::move(record);
    item.done = std::move(durable);
    push(std::move(item));
}

Status MetaWriter::run(std::function<Status(Db &)> work) { return run_within(std::move(work), limits_.wait_max_ms); }

Status MetaWriter::run_within(std::function<Status(Db &)> work, int64_t wait_max_ms) {
    const auto wait = std::make_shared<Wait>();
    Item item;
    item.work = std::move(work);
    item.done = [wait](Status outcome) {
        const MutexLock lock(wait->mutex);
        wait->outcome = std::move(outcome);
        wait->ready.notify_one();
    };
    push(std::move(item));
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_max_ms);
    const MutexLock lock(wait->mutex);
    while (!wait->outcome) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0)
            return Status(Code::timeout, "the meta store did not write within its time; its disk may hang");
        wait->ready.wait_for(wait->mutex, left);
    }
    return *wait->outcome;
}

void MetaWriter::settle(int64_t wait_max_ms) {
    // On an error the reader sees what is there.
    (void)run_within([](Db &) { return Status(); }, wait_max_ms);
}

Status MetaWriter::flush() {
    ROOST_RETURN_IF_ERROR(run([](Db &) { return Status(); }));
    const MutexLock lock(mutex_);
    return std::exchange(unreported_, Status());
}

bool MetaWriter::next_batch(std::vector<Item> &batch) {
    batch.clear();
    const MutexLock lock(mutex_);
    while (queue_.empty() && !stopping_) filled_.wait(mutex_);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(limits_.gather_ms);
    while (!stopping_ && urgent_ == 0 && queue_.size() < limits_.batch_max_records &&
           queued_bytes_ < limits_.batch_max_bytes) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) break;
        filled_.wait_for(mutex_, left);
    }
    size_t bytes = 0;
    while (!queue_.empty() && batch.size() < limits_.batch_max_records && bytes < limits_.batch_max_bytes) {
        bytes += queue_.front().bytes;
        urgent_ -= queue_.front().urgent() ? 1 : 0;
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
    }
    queued_bytes_ -= bytes;
    return !batch.empty();
}

void MetaWriter::loop() {
    // Signals are the main thread's.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::vector<Item> batch;
    while (next_batch(batch)) {
        commit(batch);
        for (Item &item : batch) {
            if (!item.work && !item.outcome.ok()) {
                const MutexLock lock(mutex_);
                if (unreported_.ok()) unreported_ = item.outcome;
            }
            if (item.done) item.done(std::move(item.outcome));
        }
    }
}

// Fills in the outcome of each item. REQUIRES: outside a transaction.
void MetaWriter::commit(std::vector<Item> &batch) {
    Status status = db_->execute("BEGIN IMMEDIATE");
    if (status.ok()) status = write_all(batch);
    if (status.ok()) status = db_->execute("COMMIT");
    if (status.ok()) return;
    // What led here is what the callers are told.
    if (db_->in_transaction()) (void)db_->execute("ROLLBACK");
    for (Item &item : batch) {
        if (item.outcome.ok()) item.outcome = status;
    }
}

// An error of one item is its own; an error that ended the transaction is everybody's.
Status MetaWriter::write_all(std::vector<Item> &batch) {
    const std::vector<size_t> newest = newest_of(batch);
    for (size_t i = 0; i < batch.size(); ++i) {
        Item &item = batch[i];
        if (!item.outcome.ok() || newest[i] != i) continue;
        if (item.record) item.outcome = write_record(*db_, *item.record);
        if (item.work) item.outcome = item.work(*db_);
        if (!item.outcome.ok() && !db_->in_transaction()) return item.outcome;
    }
    for (size_t i = 0; i < batch.size(); ++i) {
        if (newest[i] != i) batch[i].outcome = batch[newest[i]].outcome;
    }
    return {};
}

}  // namespace roost::meta
