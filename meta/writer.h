// The one thread that writes the SQLite meta store. What gathers while it commits goes into the next transaction
// together (group commit), so that history costs one commit for many statements. Thread-safe; used by SqliteStore
// alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "meta/sqlite_db.h"
#include "meta/store.h"

namespace roost::meta {

struct WriterLimits {
    // Of records of statements that begin; past these they are refused. Records of statements that end may take four
    // times as much: they were let in before.
    size_t queue_max_records = 20'000;
    size_t queue_max_bytes = 64U << 20;
    // Of one transaction, so that the first in it need not wait long for the last.
    size_t batch_max_records = 2'000;
    size_t batch_max_bytes = 8U << 20;
    // Records that nobody waits for gather this long: a commit alone costs 80 µs of CPU, together 16.
    int64_t gather_ms = 5;
    // For callers that wait.
    int64_t wait_max_ms = 30'000;
};

class MetaWriter {
public:
    MetaWriter(std::unique_ptr<Db> db, WriterLimits limits);
    // Commits what is queued.
    ~MetaWriter();
    MetaWriter(const MetaWriter &) = delete;
    MetaWriter &operator=(const MetaWriter &) = delete;

    // Never blocks. `durable` runs on the writer's thread. Without one the record may be written a little later.
    void record(StatementRecord record, std::function<void(Status)> durable);
    // Runs `work` in order with the records and waits until it is committed. `work` runs on the writer's thread,
    // possibly after the wait timed out, so it owns what it uses.
    Status run(std::function<Status(Db &)> work);
    // Waits for all that is queued now, at most `wait_max_ms`; for readers who want to see it.
    void settle(int64_t wait_max_ms);
    // Waits for all that is queued now. The first error of a record since the last flush, if there was one.
    Status flush();

private:
    struct Item {
        std::optional<StatementRecord> record;
        std::function<Status(Db &)> work;
        std::function<void(Status)> done;
        size_t bytes = 0;
        Status outcome;
        bool urgent() const { return work || done; }
    };

    Status run_within(std::function<Status(Db &)> work, int64_t wait_max_ms);
    bool has_room(const Item &item) const ROOST_REQUIRES(mutex_);
    void push(Item item) ROOST_EXCLUDES(mutex_);
    bool next_batch(std::vector<Item> &batch) ROOST_EXCLUDES(mutex_);
    void loop();
    void commit(std::vector<Item> &batch);
    Status write_all(std::vector<Item> &batch);

    const std::unique_ptr<Db> db_;  // of the writer's thread
    const WriterLimits limits_;
    Mutex mutex_;
    CondVar filled_;
    std::deque<Item> queue_ ROOST_GUARDED_BY(mutex_);
    size_t queued_bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    size_t urgent_ ROOST_GUARDED_BY(mutex_) = 0;  // items in the queue that somebody waits for
    bool stopping_ ROOST_GUARDED_BY(mutex_) = false;
    Status unreported_ ROOST_GUARDED_BY(mutex_);  // error of a record since the last flush
    std::thread thread_;
};

}  // namespace roost::meta
