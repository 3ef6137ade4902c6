// For tests: one engine over a lake in a temporary directory, shared by all tests of the process, and a sink that takes
// rows apart.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deps/duckdb_extensions.h"
#include "engine/engine.h"
#include "engine/sample.h"
#include "obs/log.h"

namespace roost::testing {

using Row = std::vector<std::optional<std::string>>;

// Collects the rows of DataRow messages; can stop after each batch, and can drop rows (counting them) to hold no
// memory.
class RowSink final : public ResultSink {
public:
    void header(const ResultHeader &header) override { header_ = header; }
    bool rows(uint32_t rows, std::string bytes) override {
        row_count += rows;
        batch_bytes_max = std::max(batch_bytes_max, bytes.size());
        batches++;
        if (keep) take_apart(bytes);
        return !stop_after_batch;
    }

    ResultHeader header_;
    std::vector<Row> kept;
    uint64_t row_count = 0;
    size_t batch_bytes_max = 0;
    size_t batches = 0;
    bool keep = true;
    bool stop_after_batch = false;

private:
    static uint32_t be(const std::string &bytes, size_t at, size_t size) {
        uint32_t value = 0;
        for (size_t i = 0; i < size; i++) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
        return value;
    }
    void take_apart(const std::string &bytes) {
        size_t at = 0;
        while (at < bytes.size()) {
            ASSERT_EQ(bytes[at], 'D');
            const size_t end = at + 1 + be(bytes, at + 1, 4);
            const uint32_t columns = be(bytes, at + 5, 2);
            at += 7;
            Row row;
            for (uint32_t i = 0; i < columns; i++) {
                const auto size = static_cast<int32_t>(be(bytes, at, 4));
                at += 4;
                if (size < 0) {
                    row.emplace_back();
                } else {
                    row.emplace_back(bytes.substr(at, static_cast<size_t>(size)));
                    at += static_cast<size_t>(size);
                }
            }
            ASSERT_EQ(at, end);
            kept.push_back(std::move(row));
        }
    }
};

struct Outcome {
    Status status;
    Completion completion;
    PlanInfo plan;
    std::vector<Row> rows;
    ResultHeader header;
    // The single value of a single row.
    std::string value() const {
        if (rows.size() != 1 || rows[0].size() != 1)
            return "<" + std::to_string(rows.size()) + " rows> " + status.to_string();
        return rows[0][0].value_or("NULL");
    }
};

inline constexpr uint64_t kSmallBytes = 128ull << 20;
inline constexpr uint64_t kPinnedBytes = 96ull << 20;
inline constexpr uint64_t kSlotBytes = 256ull << 20;

class TestEngine {
public:
    TestEngine() {
        char name[] = "/tmp/roost-engine-XXXXXX";
        dir_ = std::filesystem::canonical(mkdtemp(name)).string();
        lake_ = {.catalog = "lake",
                 .metadata_path = dir_ + "/lake/catalog.sqlite",
                 .data_path = dir_ + "/lake/data/",
                 .staging_path = dir_ + "/staging"};
        std::filesystem::create_directories(lake_.staging_path);
        sample_ = {.extension_dir = extension_dir(), .spill_dir = dir_ + "/scratch"};
        const Status made = create_lake(lake_, sample_);
        EXPECT_TRUE(made.ok()) << made.to_string();
        log_ = obs::make_null_log();
        engine_ = open();
    }
    ~TestEngine() {
        engine_.reset();
        std::error_code ignored;
        std::filesystem::remove_all(dir_, ignored);
    }
    // Shared by all tests of the process.
    static TestEngine &get() {
        if (!shared()) shared() = std::make_unique<TestEngine>();
        return *shared();
    }
    static std::unique_ptr<TestEngine> &shared() {
        static std::unique_ptr<TestEngine> engine;
        return engine;
    }

    static std::string extension_dir() { return std::string(deps::kBuildTreeExtensionDir); }
    EngineOptions options() const {
        return {.dir = dir_ + "/node",
                .extension_dir = extension_dir(),
                .lakes = {lake_},
                .threads = 2,
                .small_bytes = kSmallBytes,
                .pinned_bytes = kPinnedBytes,
                .spill_max_bytes = 1ull << 30,
                .removal_grace_ms = 0,
                .frozen_quiet_ms = -1};
    }
    std::unique_ptr<Engine> open() {
        auto engine = Engine::open(options(), *log_);
        EXPECT_TRUE(engine.ok()) << engine.status().to_string();
        return engine.ok() ? std::move(engine).value() : nullptr;
    }

    Engine &engine() { return *engine_; }
    obs::Log &log() { return *log_; }
    const std::string &dir() const { return dir_; }
    const LakeLocation &lake() const { return lake_; }
    const SampleOptions &sample() const { return sample_; }

    static StatementSpec spec(const std::string &sql) {
        StatementSpec spec;
        spec.id = Uuid::make();
        spec.sql = sql;
        spec.settings.catalog = "lake";
        return spec;
    }
    static StatementSpec write_spec(const std::string &sql) {
        StatementSpec made = spec(sql);
        made.writes = true;
        return made;
    }
    static StatementSpec session_spec(const Uuid &session, const std::string &sql, bool writes = false) {
        StatementSpec made = spec(sql);
        made.session = session;
        made.writes = writes;
        made.transaction = TransactionAction::in_session;
        return made;
    }
    static StatementSpec end_spec(const Uuid &session, TransactionAction action) {
        StatementSpec made = spec("");
        made.session = session;
        made.transaction = action;
        return made;
    }

    // The grant a caller would give after plan().
    static Grant grant_for(const StatementSpec &spec, const PlanInfo &plan) {
        if (!spec.session.is_nil()) return {.lane = Grant::Lane::pinned, .slot = 0, .bytes = 0};
        if (plan.fits_small) return {.lane = Grant::Lane::small, .slot = 0, .bytes = 0};
        return {.lane = Grant::Lane::slot, .slot = 0, .bytes = kSlotBytes};
    }
    // plan, start, step to the end, finish.
    Outcome run(StatementSpec spec, RowSink &sink, std::optional<Grant> grant = std::nullopt) {
        Outcome outcome;
        auto execution = engine_->create(spec);
        if (!execution.ok()) {
            outcome.status = execution.status();
            return outcome;
        }
        outcome.status = drive(**execution, spec, sink, grant, outcome.plan);
        outcome.completion = (*execution)->finish(outcome.status);
        outcome.status = outcome.completion.status;
        outcome.rows = std::move(sink.kept);
        outcome.header = sink.header_;
        return outcome;
    }
    Outcome run(StatementSpec spec, std::optional<Grant> grant = std::nullopt) {
        RowSink sink;
        return run(std::move(spec), sink, grant);
    }
    Outcome read(const std::string &sql) { return run(spec(sql)); }
    Outcome write(const std::string &sql) { return run(write_spec(sql)); }

private:
    static Status drive(Execution &execution, const StatementSpec &spec, RowSink &sink,
                        const std::optional<Grant> &grant, PlanInfo &info) {
        if (!grant) {
            auto plan = execution.plan();
            if (!plan.ok()) return plan.status();
            info = *plan;
        }
        ROOST_RETURN_IF_ERROR(execution.start(grant ? *grant : grant_for(spec, info)));
        for (;;) {
            auto more = execution.step(sink);
            if (!more.ok()) return more.status();
            if (!*more) return Status();
        }
    }

    std::string dir_;
    LakeLocation lake_;
    SampleOptions sample_;
    std::unique_ptr<obs::Log> log_;
    std::unique_ptr<Engine> engine_;
};

// Ends the shared engine before main does: DuckDB keeps state in thread locals, which are gone in exit handlers.
class EngineEnvironment final : public ::testing::Environment {
public:
    void TearDown() override { TestEngine::shared().reset(); }
};
inline ::testing::Environment *const engine_environment = ::testing::AddGlobalTestEnvironment(new EngineEnvironment);

}  // namespace roost::testing
