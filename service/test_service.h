// A service for tests, over a real hub and store, with nodes that run a fake engine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cluster/test_pool.h"
#include "service/gateway_service.h"

namespace roost::service {

namespace asio = net::asio;
namespace fs = std::filesystem;

class GatewayServiceTest : public cluster::TestPool {
protected:
    explicit GatewayServiceTest(bool on_postgres = false) {
        dir_ = fs::temp_directory_path() / ("roost-service-" + Uuid::make().to_string());
        fs::create_directories(dir_);
        store_ = std::move(meta::Store::open("sqlite:" + (dir_ / "meta.db").string()).value());
        const meta::Workspace workspace{Uuid::make(), "main", "main", "lake", 1};
        EXPECT_TRUE(store_->put_workspace(workspace).ok());
        EXPECT_TRUE(store_->put_catalog({Uuid::make(), "lake", "sqlite:x", "x", workspace.id, true, 1}).ok());
        ann_ = {Uuid::make(), "ann", "user"};
        EXPECT_TRUE(store_->put_membership({workspace.id, ann_.user_id, "owner", 1}).ok());
        ServiceLimits limits;
        limits.cancel_max_ms = 50;
        limits.outcome_wait_max_ms = 100;
        service_ = std::make_unique<GatewayService>(
            std::make_unique<Core>(hub(), *store_, routing::make_policy("auto"), *metrics_, *log, clock, loop, limits,
                                   [this](const LakeLocation &, const Uuid &id) { return find_commit(id); }));
        LakeLocation lake;
        lake.catalog = "lake";
        lake.metadata_path = (dir_ / "no-lake.db").string();
        lake.on_postgres = on_postgres;
        lake.staging_path = (dir_ / "staging").string();
        EXPECT_TRUE(service_->start({lake}).ok());
    }
    ~GatewayServiceTest() override {
        end();
        service_.reset();
        store_.reset();
        fs::remove_all(dir_);
    }

    // Runs a task of the service to its end.
    template <class T>
    T wait(net::Task<T> task) {
        std::optional<T> result;
        begin(std::move(task), result);
        run_until([&] { return result.has_value(); });
        return std::move(*result);
    }
    template <class T>
    void begin(net::Task<T> task, std::optional<T> &result) {
        asio::co_spawn(
            loop,
            [](net::Task<T> mine, std::optional<T> &out) -> net::Task<void> { out = co_await std::move(mine); }(
                                                             std::move(task), result),
            asio::detached);
    }

    SubmitRequest request(std::string sql, int64_t wait_ms = 10'000) const {
        SubmitRequest request;
        request.principal = ann_;
        request.workspace = "main";
        request.sql = std::move(sql);
        request.wait_ms = wait_ms;
        return request;
    }
    StatementInfo submit(std::string sql, int64_t wait_ms = 10'000) {
        auto info = wait(service_->submit(request(std::move(sql), wait_ms)));
        EXPECT_TRUE(info.ok()) << info.status().to_string();
        return info.ok() ? *info : StatementInfo{};
    }
    std::vector<meta::StatementRecord> history() {
        meta::StatementFilter filter;
        filter.ascending = true;
        return wait(service_->list(ann_, filter)).value().items;
    }
    meta::StatementRecord latest() {
        const auto all = history();
        EXPECT_FALSE(all.empty());
        return all.empty() ? meta::StatementRecord{} : all.back();
    }
    std::shared_ptr<Session> open_session() {
        return service_->open_session({.principal = ann_, .workspace = "main", .catalog = {}, .front = "pg"}).value();
    }
    Result<std::unique_ptr<ResultStream>> try_execute(const std::shared_ptr<Session> &session, const std::string &sql) {
        auto statements = wait(service_->parse(sql, sql::Context::session, nullptr));
        EXPECT_TRUE(statements.ok()) << statements.status().to_string();
        ExecuteRequest execute;
        execute.statement = std::move(statements->front());
        return wait(service_->execute(session, std::move(execute)));
    }
    std::unique_ptr<ResultStream> execute(const std::shared_ptr<Session> &session, const std::string &sql) {
        auto stream = try_execute(session, sql);
        EXPECT_TRUE(stream.ok()) << stream.status().to_string();
        return stream.ok() ? std::move(*stream) : nullptr;
    }
    struct Outcome {
        Status status;
        uint64_t rows = 0;
        bool ended = false;
    };
    // Reads it to its end while the test goes on; both outlive the loop's work.
    void read(ResultStream &stream, Outcome &outcome) {
        asio::co_spawn(loop, read_all(stream, outcome), asio::detached);
    }
    Outcome read(ResultStream &stream) {
        Outcome outcome;
        read(stream, outcome);
        run_until([&] { return outcome.ended; });
        return outcome;
    }
    double metric(const std::string &series) {
        const std::string text = service_->metrics_text();
        const size_t at = text.find("\n" + series + " ");
        return at == std::string::npos ? 0 : std::stod(text.substr(at + series.size() + 2));
    }
    // Nothing runs and nothing is charged any more.
    void expect_quiet() {
        run_until([&] {
            return std::ranges::all_of(hub().members(), [](const auto &entry) { return entry.second.in_flight == 0; });
        });
        EXPECT_EQ(metric("roost_statements_in_flight"), 0);
    }

    // The catalog, as far as commits are looked up in it: called on the blocking thread.
    Result<std::optional<uint64_t>> find_commit(const Uuid &id) {
        MutexLock lock(catalog_mutex_);
        lookups_++;
        if (!catalog_up_) return Status(Code::unavailable, "the catalog is down");
        const auto found = commits_.find(id);
        return found == commits_.end() ? std::nullopt : std::optional<uint64_t>(found->second);
    }
    void commit(const Uuid &id) {
        MutexLock lock(catalog_mutex_);
        commits_[id] = 7;
    }
    void set_catalog_up(bool up) {
        MutexLock lock(catalog_mutex_);
        catalog_up_ = up;
    }
    int lookups() {
        MutexLock lock(catalog_mutex_);
        return lookups_;
    }

    Mutex catalog_mutex_;
    std::map<Uuid, uint64_t> commits_ ROOST_GUARDED_BY(catalog_mutex_);
    bool catalog_up_ ROOST_GUARDED_BY(catalog_mutex_) = true;
    int lookups_ ROOST_GUARDED_BY(catalog_mutex_) = 0;

    fs::path dir_;
    std::unique_ptr<meta::Store> store_;
    std::unique_ptr<obs::Metrics> metrics_ = obs::Metrics::make();
    Principal ann_;
    std::unique_ptr<GatewayService> service_;

private:
    static net::Task<void> read_all(ResultStream &stream, Outcome &outcome) {
        auto header = co_await stream.header();
        outcome.status = header.status();
        while (outcome.status.ok()) {
            auto frame = co_await stream.next();
            outcome.status = frame.status();
            if (frame.ok() && !frame->has_value()) break;
            if (frame.ok()) outcome.rows += (*frame)->rows;
        }
        outcome.ended = true;
    }
};

}  // namespace roost::service
