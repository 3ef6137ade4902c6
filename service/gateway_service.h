// The Service of a gateway: sessions and transactions, statements through RunStream, stored results and their pages,
// imports, history. Constructed in app/ with everything it uses; lives as long as the loop. Loop thread only.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "service/access_admin.h"
#include "service/core.h"
#include "service/reach.h"
#include "service/run_stream.h"
#include "service/service.h"
#include "service/sql_sessions.h"

namespace roost::service {

class GatewayService final : public Service, public AccessAdmin, public SqlSessions {
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
    net::Task<Result<NodeInfo>> set_profile(Principal who, std::string node, std::string profile) override;
    net::Task<Result<NodeInfo>> drain_node(Principal who, std::string node, bool drained) override;
    Result<std::vector<meta::Workspace>> workspaces(const Principal &who) override;
    Result<std::vector<meta::Catalog>> catalogs(const Principal &who, std::string_view workspace) override;
    net::Task<Result<std::vector<SchemaInfo>>> schemas(const Principal &who, std::string workspace,
                                                       std::string catalog) override;
    net::Task<Result<std::vector<TableInfo>>> tables(const Principal &who, std::string workspace, std::string catalog,
                                                     std::string schema) override;
    net::Task<Result<RouteExplanation>> explain_route(const Principal &who, std::string_view workspace,
                                                      std::string_view sql) override;
    net::Task<Result<std::vector<TablePlacement>>> placement(Principal who, std::string workspace,
                                                             std::string table) override;
    net::Task<Result<std::vector<CacheDone>>> cache_work(Principal who, CacheRequest request) override;
    net::Task<Result<meta::AuditPage>> audit(const Principal &who, meta::AuditFilter filter) override;
    bool ready() const override;
    std::string metrics_text() override;

    SqlSessions *sql_sessions() override { return core_->limits.http_sessions ? this : nullptr; }
    Result<SqlSessionInfo> open_sql_session(const OpenSession &request, std::optional<Uuid> node) override;
    Result<SqlSessionInfo> sql_session(const Principal &who, const Uuid &id) override;
    Result<SqlSessionPage> list_sql_sessions(const Principal &who, std::string_view workspace,
                                             const std::vector<std::string> &statuses, std::string_view cursor,
                                             size_t limit) override;
    net::Task<Status> close_sql_session(Principal who, Uuid id) override;
    net::Task<Result<StatementInfo>> submit_in_session(SubmitRequest request, Uuid session) override;

    AccessAdmin *access_admin() override { return this; }
    net::Task<Result<std::vector<meta::User>>> users(Principal who) override;
    net::Task<Result<CreatedUser>> create_user(Principal who, NewUser request) override;
    net::Task<Result<meta::User>> update_user(Principal who, Uuid user, std::optional<std::string> role,
                                              std::optional<bool> active) override;
    net::Task<Result<meta::Workspace>> create_workspace(Principal who, std::string slug, std::string name) override;
    net::Task<Result<std::vector<MemberInfo>>> members(Principal who, std::string workspace) override;
    net::Task<Result<MemberInfo>> put_member(Principal who, std::string workspace, Uuid user,
                                             std::string role) override;
    net::Task<Status> drop_member(Principal who, std::string workspace, Uuid user) override;
    net::Task<Result<GrantList>> grants(Principal who, std::string workspace, std::string catalog) override;
    net::Task<Result<meta::Grant>> put_grant(Principal who, std::string workspace, std::string catalog,
                                             meta::Grant wanted) override;
    net::Task<Status> drop_grant(Principal who, std::string workspace, std::string catalog, Uuid grant) override;
    net::Task<Result<meta::Catalog>> set_access_mode(Principal who, std::string workspace, std::string catalog,
                                                     std::string mode) override;

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
        bool queued = false;         // in its session, behind others
        bool ends_recorded = false;  // its end is written by its RunStream, or as an import's
        std::vector<std::pair<std::string, std::string>> renames;  // import: staging paths → the person's own names
    };
    using EntryPtr = std::shared_ptr<Entry>;

    // A session over HTTP: what runs in it, and what waits for that to end.
    struct SqlSession {
        explicit SqlSession(std::shared_ptr<Session> of, net::asio::any_io_executor executor)
            : session(std::move(of)),
              variables(SessionVariables::Identity{.user = session->principal.user_name}),
              idle(std::move(executor)) {}
        struct Queued {
            EntryPtr entry;
            std::vector<sql::Statement> statements;
            SubmitRequest request;
        };
        SqlSessionInfo info;
        const std::shared_ptr<Session> session;
        SessionVariables variables;
        std::deque<Queued> queue;
        std::optional<Uuid> node;
        EntryPtr entry;   // what runs; null: nothing
        net::Event idle;  // nothing runs any more
        int64_t opened_us = 0;
    };
    using SqlSessionPtr = std::shared_ptr<SqlSession>;
    Result<SqlSessionPtr> find_sql_session(const Principal &who, const Uuid &id) const;
    static const SqlSessionInfo &look_at(SqlSession &sql);
    void end_sql_session(const SqlSessionPtr &sql, std::string_view status, std::string_view why);
    void expire_sql_sessions();
    net::Task<void> run_session(SqlSessionPtr sql);
    net::Task<Status> run_queued(SqlSessionPtr sql, SqlSession::Queued &queued);
    net::Task<Status> run_command(SqlSessionPtr sql, ExecuteRequest request, Uuid id);
    void end_local(const EntryPtr &entry);

    Result<std::unique_ptr<RunStream>> make_run(const std::shared_ptr<Session> &session, ExecuteRequest request,
                                                Reach reach, RunOptions options);
    net::Task<Result<std::unique_ptr<ResultStream>>> set_variable(std::shared_ptr<Session> session,
                                                                  ExecuteRequest request);
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

    // A lake and what somebody may see of it.
    struct Browsed {
        std::shared_ptr<const LakeState> state;
        CatalogRights rights;
    };
    net::Task<Result<Browsed>> browse(const Principal &who, std::string workspace, std::string catalog);
    struct SeenTable {
        std::string catalog;
        std::shared_ptr<const LakeState> state;
        std::shared_ptr<const TableState> table;
    };
    net::Task<Result<std::vector<SeenTable>>> seen_tables(Principal who, std::string workspace, std::string table);
    TablePlacement placement_of(const SeenTable &seen, const placement::Rendezvous &ring) const;
    placement::Rendezvous routable_ring() const;
    std::string node_name(const Uuid &node) const;
    std::vector<Uuid> nodes_for(const SeenTable &seen, const CacheRequest &request) const;
    net::Task<Result<uint64_t>> work_at(Uuid node, CacheWork work);
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
    void note_beat(const cluster::Member &member);
    void note_refused(const Uuid &node, const Status &why);
    const meta::Member *find_member(std::string_view node) const;
    static net::Task<Status> answer_of(cluster::RemoteStream &remote);
    void probe_members();
    net::Task<void> probe(Uuid node);
    Result<const meta::Workspace *> find_workspace(const Principal &who, std::string_view slug_or_id) const;
    // Null: there is none that they may see.
    const meta::Catalog *find_catalog(const Principal &who, const Uuid &workspace, std::string_view slug_or_id) const;
    const meta::Workspace *workspace_with(const Principal &who, std::string_view catalog) const;
    std::vector<std::string> catalog_names(const Principal &who, const Uuid &workspace) const;
    net::Task<void> changed_access(const Principal &who, std::string workspace, std::string event, std::string what);
    net::Task<Result<meta::User>> user_by_id(Uuid id);
    Result<meta::Workspace> managed_workspace(const Principal &who, const std::string &name) const;
    Result<meta::Catalog> managed_catalog(const Principal &who, const std::string &name,
                                          const std::string &catalog) const;
    Status load_access();
    net::Task<void> reload_access();
    void apply_to_sessions(const std::vector<meta::User> &users);
    // Sets what the meta store says; the part of load_access that is the loop's.
    void take_access(std::vector<meta::Workspace> workspaces, std::vector<meta::Catalog> catalogs,
                     meta::AccessTables tables);
    // What a statement names, and whether its caller may.
    // A text's statements and what the guard says of them.
    struct Judged {
        std::vector<sql::Statement> statements;
        Status status;
        sql::Kind refused = sql::Kind::empty;  // the statement that the guard refused; empty: none
    };
    static Judged judge(sql::StatementCache &cache, std::string_view text, sql::Context context,
                        const sql::GuardPolicy &policy);
    net::Task<Judged> judge_text(std::string_view text, sql::Context context, const sql::GuardPolicy &policy);
    // Names of the macros in the catalogs of the session's workspace, folded.
    net::Task<std::set<std::string>> macros_of(const Session &session);
    net::Task<Result<Reach>> find_reach(std::shared_ptr<Session> session, const sql::Statement &statement);
    Status join_transaction(Session &session, StatementSpec &spec);

    std::unique_ptr<Core> core_;
    std::vector<meta::Workspace> workspaces_;
    std::vector<meta::Catalog> catalogs_;
    std::map<Uuid, meta::Member> known_members_;
    std::map<Uuid, std::string> refused_members_;  // that said hello and may not join, and why
    std::set<std::shared_ptr<Session>> sessions_;
    std::unordered_map<Uuid, EntryPtr> entries_;
    std::deque<Uuid> finished_entries_;
    std::map<Uuid, SqlSessionPtr> sql_sessions_;  // the closed ones too, for a while
    std::deque<Uuid> closed_sql_sessions_;
    struct CachedToken {
        Principal principal;
        int64_t until_us = 0;
    };
    std::unordered_map<std::string, CachedToken> tokens_;
    std::map<std::string, double, std::less<>> connections_;
    bool stopping_ = false;
};

}  // namespace roost::service
