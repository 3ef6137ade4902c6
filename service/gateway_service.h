// The Service of a gateway: sessions and transactions, statements through RunStream, stored results and their pages,
// imports, history. Constructed in app/ with everything it uses; lives as long as the loop. Loop thread only.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "service/core.h"
#include "service/run_stream.h"
#include "service/service.h"

namespace roost::service {

class GatewayService final : public Service {
public:
    explicit GatewayService(std::unique_ptr<Core> core);
    ~GatewayService() override;

    // Loads workspaces and catalogs, marks what an earlier run left unfinished, starts the ticker. `lakes` by catalog
    // name.
    Status start(const std::vector<LakeLocation> &lakes);
    // No new statements; running ones get `grace_ms`, then are told (57P01).
    net::Task<void> drain(int64_t grace_ms);

    Result<Principal> authenticate_token(std::string_view token) override;
    Result<std::optional<meta::User>> find_user(std::string_view name) override;
    Result<std::shared_ptr<Session>> open_session(const OpenSession &request) override;
    void close_session(const std::shared_ptr<Session> &session) override;

    net::Task<Result<std::vector<sql::Statement>>> parse(std::string_view text, sql::Context context,
                                                         std::shared_ptr<Session> session) override;
    net::Task<Result<std::unique_ptr<ResultStream>>> execute(std::shared_ptr<Session> session,
                                                             ExecuteRequest request) override;
    net::Task<Result<ResultHeader>> describe(std::shared_ptr<Session> session, const sql::Statement &statement,
                                             std::vector<uint32_t> param_oids) override;

    net::Task<Result<StatementInfo>> submit(SubmitRequest request) override;
    net::Task<Result<StatementInfo>> status(const Principal &who, const Uuid &id, int64_t wait_ms) override;
    net::Task<Result<RowsPage>> rows(const Principal &who, const Uuid &id, uint64_t offset_rows,
                                     uint32_t limit_rows) override;
    net::Task<Result<std::unique_ptr<ResultStream>>> arrow(const Principal &who, const Uuid &id) override;
    net::Task<Status> cancel(const Principal &who, const Uuid &id) override;
    net::Task<Result<meta::StatementPage>> list(const Principal &who, meta::StatementFilter filter) override;
    net::Task<Result<std::string>> profile(const Principal &who, const Uuid &id) override;

    std::vector<NodeInfo> nodes() const override;
    Result<std::vector<meta::Workspace>> workspaces(const Principal &who) override;
    Result<std::vector<meta::Catalog>> catalogs(const Principal &who, std::string_view workspace) override;
    net::Task<Result<std::vector<SchemaInfo>>> schemas(const Principal &who, std::string workspace,
                                                       std::string catalog) override;
    net::Task<Result<std::vector<TableInfo>>> tables(const Principal &who, std::string workspace, std::string catalog,
                                                     std::string schema) override;
    net::Task<Result<RouteExplanation>> explain_route(const Principal &who, std::string_view workspace,
                                                      std::string_view sql) override;
    net::Task<Result<meta::AuditPage>> audit(const Principal &who, meta::AuditFilter filter) override;
    bool ready() const override;
    std::string metrics_text() override;

    Result<std::string> staging_path(const Principal &who, const Uuid &import_id, std::string_view name) override;
    net::Task<Result<StatementInfo>> run_import(ImportRequest request, int64_t wait_ms) override;
    void drop_staging(const Uuid &import_id) override;

    void connection_opened(std::string_view front) override;
    void connection_closed(std::string_view front) override;
    void auth_failed(std::string_view front, std::string_view user, std::string_view peer) override;
    bool draining() const override { return core_->draining; }

private:
    // A statement submitted over HTTP: its state, shared by the coroutine that runs it and those that wait for it.
    struct Entry {
        Entry(net::asio::any_io_executor executor) : changed(std::move(executor)) {}
        StatementInfo info;
        net::Event changed;
        RunStream *running = nullptr;
        Status cancel_reason;
        // The history has its beginning, its end: nothing is acknowledged before that.
        bool start_durable = false, end_durable = false;
        bool ends_recorded = false;  // its end is written by its RunStream, or as an import's
        std::vector<std::pair<std::string, std::string>> renames;  // import: staging paths → the person's own names
    };
    using EntryPtr = std::shared_ptr<Entry>;

    Result<std::unique_ptr<RunStream>> make_run(const std::shared_ptr<Session> &session, ExecuteRequest request,
                                                RunOptions options);
    net::Task<Result<std::unique_ptr<ResultStream>>> begin_transaction(std::shared_ptr<Session> session,
                                                                       const sql::Statement &statement);
    // `options`: of the statement that commits.
    net::Task<Result<std::unique_ptr<ResultStream>>> end_transaction(std::shared_ptr<Session> session,
                                                                     const sql::Statement &statement, bool commit,
                                                                     RunOptions options = {});
    Result<std::unique_ptr<ResultStream>> use(const std::shared_ptr<Session> &session, const sql::Statement &statement);
    void forget_transaction(Session &session);
    void fail_transaction(Session &session, Status why);
    void lose_transactions(const Uuid &node);

    net::Task<Result<std::shared_ptr<const LakeState>>> browse(const Principal &who, std::string workspace,
                                                               std::string catalog);
    Status check_node(const std::optional<Uuid> &node) const;
    // Makes the entry and writes its beginning to the history.
    EntryPtr make_entry(const std::shared_ptr<Session> &session, const std::string &sql, std::string kind, bool writes);
    net::Task<void> run_submitted(EntryPtr entry, std::shared_ptr<Session> session,
                                  std::vector<sql::Statement> statements, SubmitRequest request);
    net::Task<Status> run_one(EntryPtr entry, std::shared_ptr<Session> session, ExecuteRequest request,
                              RunOptions options, bool last);
    net::Task<void> run_imported(EntryPtr entry, std::shared_ptr<Session> session, ImportRequest request);
    net::Task<Result<std::vector<ExecuteRequest>>> import_statements(std::shared_ptr<Session> session,
                                                                     const ImportRequest &request);
    net::Task<Status> import_files(EntryPtr entry, std::shared_ptr<Session> session, const ImportRequest &request,
                                   uint64_t &rows);
    void watch_progress(const EntryPtr &entry, RunStream &run);
    void finish_entry(const EntryPtr &entry, const Status &status);
    net::Task<StatementInfo> wait_for(EntryPtr entry, int64_t wait_ms);
    Result<EntryPtr> find_entry(const Principal &who, const Uuid &id);
    Result<EntryPtr> finished_entry(const Principal &who, const Uuid &id);
    enum class Record : uint8_t { start, end };
    std::function<void(Status)> durable_callback(const EntryPtr &entry, Record record);
    net::Task<void> tick();
    net::Task<void> watch_lakes();
    net::Task<void> write_audit();
    net::Task<void> prune();
    Status recover();
    void record_recovered(meta::StatementRecord record, const CommitOutcome &outcome);
    net::Task<void> settle_commit(UnsettledCommit commit);
    net::Task<void> settle_commits();
    void remember_member(const cluster::Member &member);
    Result<const meta::Workspace *> find_workspace(std::string_view slug_or_id) const;

    std::unique_ptr<Core> core_;
    std::vector<meta::Workspace> workspaces_;
    std::vector<meta::Catalog> catalogs_;
    std::map<Uuid, meta::Member> known_members_;
    std::set<std::shared_ptr<Session>> sessions_;
    std::unordered_map<Uuid, EntryPtr> entries_;
    std::deque<Uuid> finished_entries_;
    struct CachedToken {
        Principal principal;
        int64_t until_us = 0;
    };
    std::unordered_map<std::string, CachedToken> tokens_;
    std::map<std::string, double, std::less<>> connections_;
    bool stopping_ = false;
};

}  // namespace roost::service
