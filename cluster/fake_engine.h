// An Engine for tests: a statement does what its text says, in words, and the test sees what the node asked for. Words:
//   rows=N      rows of the result (1); frame=N rows in a frame (100); bytes=N in a row (10)
//   ddl         no rows; affected=N changed rows
//   large       does not fit the small lane; estimate=N bytes by its plan (0: not known)
//   hang=AT     stays in plan, start or step until it is cancelled, or release()
//   fail=AT     fails in plan, start, step (after its rows) or commit, which is then in doubt
//   outage      … for a reason of the node
//   conflict=N  loses the first N races for the catalog, all statements of that text together
//   oom         runs out of memory in the small lane, not in a slot; oom=commit: in its COMMIT there
//   deaf        hears no cancel; release() ends it
//   pins        gives nothing of its slot's memory back while it runs
//   used=N      the bytes that its slot uses while it runs, and after it when the slot is kept
// Thread-safe.
#pragma once

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "engine/engine.h"

namespace roost::cluster {

struct FakeScript {
    explicit FakeScript(std::string_view sql) {
        while (!sql.empty()) {
            const size_t end = std::min(sql.find(' '), sql.size());
            const std::string_view word = sql.substr(0, end);
            sql.remove_prefix(std::min(end + 1, sql.size()));
            const size_t equals = std::min(word.find('='), word.size());
            words[std::string(word.substr(0, equals))] = word.substr(std::min(equals + 1, word.size()));
        }
    }
    bool has(const std::string &word) const { return words.contains(word); }
    std::string text(const std::string &word) const { return has(word) ? words.at(word) : std::string(); }
    uint64_t number(const std::string &word, uint64_t otherwise) const {
        const std::string value = text(word);
        uint64_t number = otherwise;
        std::from_chars(value.data(), value.data() + value.size(), number);
        return number;
    }
    std::map<std::string, std::string> words;
};

class FakeEngine final : public Engine {
public:
    // What the two lanes hold, whatever runs.
    explicit FakeEngine(uint64_t lanes_bytes = 0) : lanes_bytes_(lanes_bytes) {}

    // --- what the test asks
    std::vector<std::string> log() const {  // "plan TEXT", "start TEXT", "finish TEXT: CODE", "end_session" …
        MutexLock lock(mutex_);
        return log_;
    }
    size_t count(const std::string &line) const {
        MutexLock lock(mutex_);
        return static_cast<size_t>(std::count(log_.begin(), log_.end(), line));
    }
    // COMMIT stays in commit until release().
    void hang_commits() {
        MutexLock lock(mutex_);
        commits_hang_ = true;
    }
    // Where statements hang now.
    size_t hanging(const std::string &at) const {
        MutexLock lock(mutex_);
        return static_cast<size_t>(std::count(hanging_.begin(), hanging_.end(), at));
    }
    void release() {
        MutexLock lock(mutex_);
        released_ = true;
        changed_.notify_all();
    }
    // Memory that was promised at one time, at most: lanes, grants of what runs, instances of imports.
    uint64_t promised_max_bytes() const {
        MutexLock lock(mutex_);
        return promised_max_bytes_;
    }
    uint64_t promised_bytes() const {
        MutexLock lock(mutex_);
        return promised();
    }
    // Limits of the slots that run or are kept.
    std::vector<uint64_t> slot_limits() const {
        MutexLock lock(mutex_);
        std::vector<uint64_t> limits;
        for (const auto &[slot, held] : slots_) limits.push_back(held.limit_bytes);
        return limits;
    }
    std::vector<StatementSpec> specs() const {
        MutexLock lock(mutex_);
        return specs_;
    }
    // Executions that were made and are not finished.
    size_t open() const {
        MutexLock lock(mutex_);
        return open_;
    }

    // --- Engine
    Result<std::unique_ptr<Execution>> create(StatementSpec spec) override {
        MutexLock lock(mutex_);
        specs_.push_back(spec);
        open_++;
        return std::unique_ptr<Execution>(std::make_unique<FakeExecution>(*this, std::move(spec)));
    }
    void end_session(const Uuid &session) override {
        MutexLock lock(mutex_);
        log_.push_back("end_session");
        sessions_.erase(session);
        instances_.erase(session);
    }
    bool has_session(const Uuid &session) const override {
        MutexLock lock(mutex_);
        return sessions_.contains(session);
    }
    Result<std::string> read_page(const Uuid &id, uint64_t offset_rows, uint32_t limit_rows) override {
        MutexLock lock(mutex_);
        const auto found = results_.find(id);
        if (found == results_.end()) return Status(Code::not_found, "the result is not there");
        std::string page = "[";
        for (uint64_t row = offset_rows; row < std::min<uint64_t>(found->second, offset_rows + limit_rows); ++row) {
            page += (page.size() > 1 ? ",{\"n\":" : "{\"n\":") + std::to_string(row) + "}";
        }
        return page + "]";
    }
    Result<std::unique_ptr<StoredResultReader>> open_arrow(const Uuid &id) override {
        MutexLock lock(mutex_);
        const auto found = results_.find(id);
        if (found == results_.end()) return Status(Code::not_found, "the result is not there");
        return std::unique_ptr<StoredResultReader>(std::make_unique<FakeReader>(*this, found->second));
    }
    Status drop_result(const Uuid &id) override {
        MutexLock lock(mutex_);
        return results_.erase(id) > 0 ? Status() : Status(Code::not_found, "the result is not there");
    }
    Result<uint64_t> set_slot_limit(uint32_t slot, uint64_t bytes) override {
        MutexLock lock(mutex_);
        const auto found = slots_.find(slot);
        if (found == slots_.end()) return uint64_t{0};
        Slot &known = found->second;
        if (known.pinned && bytes < known.limit_bytes) return Status(Code::resource_exhausted, "it is pinned");
        known.limit_bytes = bytes;
        known.used_bytes = std::min(known.used_bytes, bytes);
        if (bytes == 0 && !known.runs) slots_.erase(found);
        promised_max_bytes_ = std::max(promised_max_bytes_, promised());
        changed_.notify_all();
        return bytes == 0 ? 0 : known.used_bytes;
    }
    uint64_t slot_used_bytes(uint32_t slot) const override {
        MutexLock lock(mutex_);
        const auto found = slots_.find(slot);
        return found == slots_.end() ? 0 : found->second.used_bytes;
    }
    void sweep() override {}
    uint64_t used_bytes() const override { return 0; }
    std::string version() const override { return "v0"; }

private:
    class FakeExecution final : public Execution {
    public:
        FakeExecution(FakeEngine &engine, StatementSpec spec)
            : engine_(engine), spec_(std::move(spec)), script_(spec_.sql), rows_(script_.number("rows", 1)) {}

        Result<PlanInfo> plan() override {
            ROOST_RETURN_IF_ERROR(pass("plan"));
            return PlanInfo{.fits_small = !script_.has("large") && !spec_.internal,
                            .estimated_bytes = script_.number("estimate", 0),
                            .header = header()};
        }
        Status start(const Grant &grant) override {
            {
                MutexLock lock(engine_.mutex_);
                grant_ = grant;
                if (spec_.transaction == TransactionAction::in_session) engine_.sessions_.insert(spec_.session);
                if (is_import()) {
                    engine_.instances_.try_emplace(spec_.session, grant.bytes);
                } else if (grant.lane == Grant::Lane::slot && !spec_.internal) {
                    Slot &slot = engine_.slots_[grant.slot];
                    if (slot.runs) engine_.log_.push_back("slot taken twice");
                    slot = {grant.bytes + grant.elastic_bytes, script_.number("used", 0), script_.has("pins"), true};
                    slot.used_bytes = std::min(slot.used_bytes, slot.limit_bytes);
                } else {
                    engine_.granted_bytes_ += grant.bytes;
                }
                started_ = true;
                engine_.promised_max_bytes_ = std::max(engine_.promised_max_bytes_, engine_.promised());
            }
            return pass("start");
        }
        Result<bool> step(ResultSink &sink) override {
            if (!header_sent_) sink.header(header());
            header_sent_ = true;
            if (script_.has("oom") && script_.text("oom").empty() && grant_.lane == Grant::Lane::small) {
                return Status(Code::resource_exhausted, "out of memory").with_sqlstate("53200");
            }
            while (rows_ > sent_ && !is_end() && spec_.format == ResultFormat::pg_rows && !script_.has("ddl")) {
                ROOST_RETURN_IF_ERROR(cancelled());
                const auto rows = static_cast<uint32_t>(std::min(script_.number("frame", 100), rows_ - sent_));
                sent_ += rows;
                if (!sink.rows(rows, std::string(rows * script_.number("bytes", 10), 'x'))) return true;
            }
            ROOST_RETURN_IF_ERROR(pass("step"));
            if (spec_.writes || is_end()) {
                ROOST_RETURN_IF_ERROR(lose_race());
                const Status committed = pass("commit");
                in_doubt_ = !committed.ok();
                ROOST_RETURN_IF_ERROR(committed);
            }
            return false;
        }
        Completion finish(Status status) override {
            MutexLock lock(engine_.mutex_);
            engine_.open_--;
            engine_.log_.push_back("finish " + spec_.sql + ": " + std::string(status.ok() ? "ok" : status.name()));
            if (started_ && grant_.lane == Grant::Lane::slot && !spec_.internal) {
                const auto slot = engine_.slots_.find(grant_.slot);
                slot->second.runs = slot->second.pinned = false;
                if (!grant_.keeps) engine_.slots_.erase(slot);
            } else if (started_ && !is_import()) {
                engine_.granted_bytes_ -= grant_.bytes;
            }
            if (is_end()) {
                engine_.sessions_.erase(spec_.session);
                engine_.instances_.erase(spec_.session);
            }
            Completion completion;
            completion.rows = script_.has("ddl") ? 0 : rows_;
            if (script_.has("affected")) completion.affected = script_.number("affected", 0);
            if (spec_.format == ResultFormat::stored && status.ok()) {
                engine_.results_[spec_.id] = rows_;
                completion.first_page = "[{\"n\":0}]";
            }
            completion.status = std::move(status);
            completion.commit_in_doubt = in_doubt_;
            return completion;
        }
        void cancel(Status reason) override {
            if (script_.has("deaf")) return;
            MutexLock lock(engine_.mutex_);
            if (cancel_.ok()) cancel_ = std::move(reason);
            engine_.changed_.notify_all();
        }
        double progress() const override { return 50; }

    private:
        bool is_import() const { return spec_.internal && spec_.transaction == TransactionAction::in_session; }
        bool is_end() const {
            return spec_.transaction == TransactionAction::commit || spec_.transaction == TransactionAction::rollback;
        }
        ResultHeader header() const {
            ResultHeader header;
            header.has_grid = !script_.has("ddl") && !is_end();
            if (header.has_grid) header.columns.push_back({.name = "n", .type = "INTEGER", .pg_oid = 23});
            return header;
        }
        Status cancelled() {
            MutexLock lock(engine_.mutex_);
            return cancel_;
        }
        Status lose_race() {
            MutexLock lock(engine_.mutex_);
            if (engine_.races_[spec_.sql]++ >= script_.number("conflict", 0)) return Status();
            return Status(Code::conflict, "another writer was first").with_retryable(true);
        }
        Status pass(const std::string &at) {
            MutexLock lock(engine_.mutex_);
            engine_.log_.push_back(at + " " + spec_.sql);
            if (script_.text("hang") == at || (is_end() && at == "commit" && engine_.commits_hang_)) {
                engine_.hanging_.insert(at);
                while (cancel_.ok() && !engine_.released_) engine_.changed_.wait(engine_.mutex_);
                engine_.hanging_.erase(engine_.hanging_.find(at));
            }
            if (!cancel_.ok()) return cancel_;
            if (script_.text("fail") == at && script_.has("outage")) {
                return Status(Code::io_error, "the store does not answer");
            }
            if (script_.text("oom") == at && grant_.lane == Grant::Lane::small) {
                return Status(Code::resource_exhausted, "out of memory")
                    .with_sqlstate("53200")
                    .with_name(std::string(kCommitFailed));
            }
            if (script_.text("fail") == at) {
                return Status(Code::engine_error, "failed as asked").with_sqlstate("22012").with_hint("ask for less");
            }
            return Status();
        }

        FakeEngine &engine_;
        const StatementSpec spec_;
        const FakeScript script_;
        const uint64_t rows_;
        Grant grant_;
        bool started_ = false, header_sent_ = false, in_doubt_ = false;
        uint64_t sent_ = 0;
        Status cancel_;  // guarded by the engine's mutex
    };

    class FakeReader final : public StoredResultReader {
    public:
        FakeReader(FakeEngine &engine, uint64_t rows) : engine_(engine), rows_(rows) {}
        ~FakeReader() override {
            MutexLock lock(engine_.mutex_);
            engine_.log_.push_back(sent_ < rows_ ? "reader left" : "reader done");
        }
        Result<bool> step(ResultSink &sink) override {
            while (sent_ < rows_) {
                const auto rows = static_cast<uint32_t>(std::min<uint64_t>(100, rows_ - sent_));
                sent_ += rows;
                if (!sink.rows(rows, std::string(rows * 10, 'a'))) return true;
            }
            return false;
        }

    private:
        FakeEngine &engine_;
        const uint64_t rows_;
        uint64_t sent_ = 0;
    };

    struct Slot {
        uint64_t limit_bytes = 0, used_bytes = 0;
        bool pinned = false, runs = false;
    };

    uint64_t promised() const ROOST_REQUIRES(mutex_) {
        uint64_t bytes = lanes_bytes_ + granted_bytes_;
        for (const auto &[slot, held] : slots_) bytes += held.limit_bytes;
        for (const auto &[session, own_bytes] : instances_) bytes += own_bytes;
        return bytes;
    }

    const uint64_t lanes_bytes_;
    mutable Mutex mutex_;
    CondVar changed_;
    bool released_ ROOST_GUARDED_BY(mutex_) = false;
    std::vector<std::string> log_ ROOST_GUARDED_BY(mutex_);
    bool commits_hang_ ROOST_GUARDED_BY(mutex_) = false;
    std::multiset<std::string> hanging_ ROOST_GUARDED_BY(mutex_);
    std::vector<StatementSpec> specs_ ROOST_GUARDED_BY(mutex_);
    std::set<Uuid> sessions_ ROOST_GUARDED_BY(mutex_);
    std::map<std::string, uint64_t> races_ ROOST_GUARDED_BY(mutex_);  // for the catalog, by text
    std::map<Uuid, uint64_t> instances_ ROOST_GUARDED_BY(mutex_);     // of imports, with their limits
    std::map<uint32_t, Slot> slots_ ROOST_GUARDED_BY(mutex_);         // those that run or are kept
    std::map<Uuid, uint64_t> results_ ROOST_GUARDED_BY(mutex_);       // stored, with their rows
    uint64_t granted_bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t promised_max_bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    size_t open_ ROOST_GUARDED_BY(mutex_) = 0;
};

}  // namespace roost::cluster
