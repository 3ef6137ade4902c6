#include "service/gateway_service.h"

#include <boost/asio/detached.hpp>
#include <filesystem>

#include "lake/ducklake.h"
#include "service/aborted_transaction.h"
#include "service/local_stream.h"
#include "service/variable_stream.h"

namespace roost::service {

namespace asio = net::asio;

namespace {

constexpr int64_t kTokenCacheUs = 5'000'000;  // a revoked token is refused after this at the latest
constexpr size_t kTokenCacheMax = 10'000;

// The statement that a position in the text lies in.
sql::Kind kind_at(const std::vector<sql::Statement> &statements, uint32_t position) {
    sql::Kind kind = sql::Kind::other;
    for (const sql::Statement &statement : statements) {
        if (statement.offset < position || kind == sql::Kind::other) kind = statement.kind;
    }
    return kind;
}

constexpr int64_t kMirrorEveryMs = 10'000;

}  // namespace

// Any thread.
GatewayService::Judged GatewayService::judge(sql::StatementCache &cache, std::string_view text, sql::Context context,
                                             const sql::GuardPolicy &policy) {
    Judged judged;
    const auto parsed = cache.parse(text);
    judged.status = parsed.status();
    if (!parsed.ok()) return judged;
    judged.status = sql::check_all((*parsed)->statements, context, policy);
    if (judged.status.ok()) {
        judged.statements = (*parsed)->statements;
    } else {
        judged.refused = kind_at((*parsed)->statements, judged.status.error().position);
    }
    return judged;
}

GatewayService::GatewayService(std::unique_ptr<Core> core) : core_(std::move(core)) {}

GatewayService::~GatewayService() { stopping_ = true; }

Status GatewayService::start(const std::vector<LakeLocation> &lakes) {
    ROOST_ASSIGN_OR_RETURN(workspaces_, core_->meta.workspaces());
    for (const LakeLocation &lake : lakes) {
        core_->lakes[lake.catalog] = lake;
        core_->mirrors.add(lake);
    }
    ROOST_RETURN_IF_ERROR(load_access());
    ROOST_ASSIGN_OR_RETURN(const auto members, core_->meta.members());
    for (const meta::Member &member : members) {
        known_members_[member.id] = member;
        if (member.drained) core_->drained.insert(member.id);
    }
    ROOST_RETURN_IF_ERROR(recover());
    core_->hub.on_join = [this](const cluster::Member &member) {
        core_->note_join(member, known_members_);
        remember_member(member);
        core_->outcomes.note_join(member.hello.node);
        if (!core_->unsettled.empty()) asio::co_spawn(core_->loop, settle_commits(), asio::detached);
    };
    core_->hub.on_leave = [this](const Uuid &id) {
        core_->metrics.node_gone(id.to_string());
        lose_transactions(id);
    };
    core_->hub.on_heartbeat = [this](const cluster::Member &member) {
        const cluster::Heartbeat &beat = member.heartbeat;
        note_beat(member);
        core_->metrics.node(member.hello.node.to_string(),
                            {.running = static_cast<double>(beat.running),
                             .waiting = static_cast<double>(beat.waiting),
                             .queued = static_cast<double>(beat.queued),
                             .budget_bytes = static_cast<double>(member.hello.budget_bytes),
                             .granted_bytes = static_cast<double>(beat.granted_bytes),
                             .required_bytes = static_cast<double>(beat.memory.required_bytes),
                             .elastic_bytes = static_cast<double>(beat.memory.elastic_bytes),
                             .estimates_abandoned = static_cast<double>(beat.memory.estimates_abandoned),
                             .admission_timeouts = static_cast<double>(beat.memory.admission_timeouts),
                             .not_shrunk = static_cast<double>(beat.memory.not_shrunk),
                             .cancelled_for_memory = static_cast<double>(beat.memory.cancelled_for_memory),
                             .pressure = static_cast<double>(beat.memory.pressure),
                             .used_bytes = static_cast<double>(beat.used_bytes),
                             .resident_bytes = static_cast<double>(beat.resident_bytes),
                             .up = 1,
                             .routable = core_->standing(member).state.empty() ? 1.0 : 0.0});
        core_->note_heartbeat(member);
    };
    core_->hub.on_refused = [this](const Uuid &id, const Status &why) { note_refused(id, why); };
    asio::co_spawn(core_->loop, tick(), asio::detached);
    asio::co_spawn(core_->loop, watch_lakes(), asio::detached);
    return Status();
}

// What an earlier run of this gateway left unfinished: its reads are rolled back by their nodes, as the link broke. A
// write may have been committed before that, or be committed while we look: it stays under way until its node is back.
Status GatewayService::recover() {
    ROOST_ASSIGN_OR_RETURN(auto unfinished, core_->meta.unfinished_statements());
    std::set<Uuid> nodes;
    for (const auto &[id, member] : known_members_) nodes.insert(id);
    core_->outcomes.expect(std::move(nodes));
    for (meta::StatementRecord &record : unfinished) {
        if (record.writes) {
            asio::co_spawn(core_->loop, settle_commit({record.id, record.catalog, record.node, 0}), asio::detached);
        } else {
            record_recovered(std::move(record), {CommitOutcome::Kind::not_committed, 0, Status()});
        }
    }
    return core_->meta.flush();
}

// Writes the end of a statement whose gateway, or whose client, did not hear of it.
void GatewayService::record_recovered(meta::StatementRecord record, const CommitOutcome &outcome) {
    const bool heard = record.finished_us != 0;  // it has an end already: that nobody knows
    record.status = meta::StatementStatus::failed;
    if (!heard) {
        record.error = "the gateway stopped while the statement was under way";
        record.error_code = "gateway_restarted";
        record.sqlstate = "57P01";
        record.finished_us = core_->clock.wall_us();
    }
    switch (outcome.kind) {
        case CommitOutcome::Kind::committed:
            record.status = meta::StatementStatus::done;
            record.error.clear();
            record.error_code.clear();
            record.sqlstate.clear();
            break;
        case CommitOutcome::Kind::not_committed:
            if (heard) record.error = "the node was lost before it committed";
            if (heard) record.error_code = "unavailable";
            if (heard) record.sqlstate = "57P01";
            if (record.writes) record.error += "; nothing was written";
            break;
        case CommitOutcome::Kind::unknown:
            record.error += "; whether it was committed is not known yet";
            record.error_code = "commit_unknown";
            record.sqlstate = "08007";
            break;
    }
    core_->log.warn("statement_recovered", {{"statement_id", record.id},
                                            {"status", meta::status_name(record.status)},
                                            {"error_code", record.error_code},
                                            {"snapshot", outcome.snapshot}});
    if (const auto entry = entries_.find(record.id); entry != entries_.end()) {
        entry->second->info.record = record;
        entry->second->changed.notify();
    }
    core_->meta.record_statement(std::move(record), {});
}

// Finds out what became of a write of an earlier run, however long its node is away.
net::Task<void> GatewayService::settle_commit(UnsettledCommit commit) {
    const CommitOutcome outcome =
        co_await core_->outcomes.learn(*core_, commit, core_->limits.outcome_wait_max_ms, false, false);
    auto record =
        co_await core_->blocking([meta = &core_->meta, id = commit.statement] { return meta->find_statement(id); });
    if (outcome.kind == CommitOutcome::Kind::unknown || !record.ok()) core_->remember_unsettled(commit);
    if (record.ok() && record->has_value()) record_recovered(std::move(**record), outcome);
}

// Asks again about what nobody knew; a node that is back, or a catalog that answers again, may have settled it.
net::Task<void> GatewayService::settle_commits() {
    const std::deque<UnsettledCommit> asked = std::exchange(core_->unsettled, {});
    for (const UnsettledCommit &commit : asked) {
        const CommitOutcome outcome = co_await core_->outcomes.learn(*core_, commit, 0, false, false);
        auto record =
            co_await core_->blocking([meta = &core_->meta, id = commit.statement] { return meta->find_statement(id); });
        if (outcome.kind == CommitOutcome::Kind::unknown || !record.ok()) {
            core_->remember_unsettled(commit);
        } else if (record->has_value()) {
            record_recovered(std::move(**record), outcome);
        }
    }
}

// Keeps the mirrors near the lakes, so that whoever asks waits for little.
net::Task<void> GatewayService::watch_lakes() {
    asio::steady_timer timer(core_->loop);
    while (!stopping_) {
        for (const auto &[catalog, lake] : core_->lakes) {
            // A failure is logged; the next round asks again.
            static_cast<void>(co_await core_->mirrors.refresh(catalog, kMirrorEveryMs));
        }
        timer.expires_after(std::chrono::milliseconds(kMirrorEveryMs));
        co_await timer.async_wait(asio::use_awaitable);
    }
}

net::Task<void> GatewayService::tick() {
    asio::steady_timer timer(core_->loop);
    for (uint64_t n = 0; !stopping_; ++n) {
        timer.expires_after(std::chrono::milliseconds(200));
        co_await timer.async_wait(asio::use_awaitable);
        for (RunStream *run : core_->running) {
            if (run->age_us() > 150'000) run->record_state();
        }
        if (n % 25 == 0 && !core_->unsettled.empty()) co_await settle_commits();
        if (n % 25 == 24) co_await reload_access();
        probe_members();
        if (n % 5 == 0) expire_sql_sessions();
        if (n % 5 == 0) {
            const int64_t limit_us = core_->clock.monotonic_us() - core_->limits.idle_transaction_timeout_ms * 1000;
            for (const auto &session : sessions_) {
                if (session->active > 0 || session->last_active_us > limit_us) continue;
                if (!session->wrote) session->leases.clear();  // a reader has no need of its turn
                if (!session->wrote) continue;
                core_->log.warn("idle_transaction_ended", {{"session_id", session->id}});
                fail_transaction(*session,
                                 Status(Code::failed_precondition,
                                        "the transaction was rolled back: it wrote and was then left idle for " +
                                            std::to_string(core_->limits.idle_transaction_timeout_ms / 1000) + " s")
                                     .with_sqlstate("25P03"));
            }
        }
        co_await write_audit();
        if (n % 3000 == 0) co_await prune();
    }
}

net::Task<void> GatewayService::prune() {
    const int64_t now_us = core_->clock.wall_us();
    if (core_->limits.history_retention_ms > 0) {
        const int64_t before_us = now_us - core_->limits.history_retention_ms * 1000;
        auto pruned = co_await core_->blocking([this, before_us] { return core_->meta.prune_statements(before_us); });
        if (!pruned.ok()) core_->log.warn("history_not_pruned", {{"error", pruned.status().message()}});
    }
    const int64_t before_us = now_us - core_->limits.audit_retention_ms * 1000;
    const Status pruned = co_await core_->blocking(
        [this, before_us] { return core_->meta.prune_audit(before_us, core_->limits.audit_max_rows); });
    if (!pruned.ok()) core_->log.warn("audit_not_pruned", {{"error", pruned.message()}});
}

// What gathered since the last time, as one transaction.
net::Task<void> GatewayService::write_audit() {
    std::vector<meta::AuditRecord> records = core_->audit.take();
    if (records.empty()) co_return;
    const Status written = co_await core_->blocking([this, records] { return core_->meta.append_audit(records); });
    if (written.ok()) co_return;
    core_->log.warn("audit_not_written", {{"records", records.size()}, {"error", written.message()}});
    core_->audit.give_back(std::move(records));
}

net::Task<void> GatewayService::drain(int64_t grace_ms) {
    core_->draining = true;
    const int64_t end_us = core_->clock.monotonic_us() + grace_ms * 1000;
    while (!core_->running.empty()) {
        const int64_t left_ms = (end_us - core_->clock.monotonic_us()) / 1000;
        if (left_ms <= 0) break;
        co_await core_->ended.wait_for(std::chrono::milliseconds(left_ms));
    }
    // cancel() may settle and erase, so work on a copy.
    const std::vector<RunStream *> left(core_->running.begin(), core_->running.end());
    for (RunStream *run : left) {
        if (core_->running.contains(run)) {
            run->cancel(Status(Code::unavailable,
                               "terminating connection due to administrator command: roost is shutting down"));
        }
    }
    const int64_t told_us = core_->clock.monotonic_us() + 1'000'000;
    while (!core_->running.empty() && core_->clock.monotonic_us() < told_us) {
        co_await core_->ended.wait_for(std::chrono::milliseconds(100));
    }
    co_await write_audit();
    if (Status status = core_->meta.flush(); !status.ok()) {
        core_->log.error("history_not_flushed", {{"error", status.message()}});
    }
}

// --- who

Result<Principal> GatewayService::authenticate_token(std::string_view token) {
    if (token.empty() || token.size() > 1024) return Status(Code::unauthenticated, "the token is not valid");
    const int64_t now_us = core_->clock.monotonic_us();
    const std::string key(token);
    if (const auto found = tokens_.find(key); found != tokens_.end() && found->second.until_us > now_us) {
        return found->second.principal;
    }
    tokens_.erase(key);
    ROOST_ASSIGN_OR_RETURN(const auto user, core_->meta.find_token(token));
    if (!user)
        return Status(Code::unauthenticated, "the token is not valid")
            .with_hint("see the token in the credentials file");
    if (tokens_.size() >= kTokenCacheMax) tokens_.clear();
    Principal principal{user->id, user->name, user->role};
    tokens_[key] = {principal, now_us + kTokenCacheUs};
    return principal;
}

Result<std::optional<meta::User>> GatewayService::find_user(std::string_view name) {
    auto user = core_->meta.find_user(name);
    // Whoever may not log in gets the same exchange as somebody who does not exist.
    if (user.ok() && *user && !(*user)->active) return std::optional<meta::User>();
    return user;
}

// The workspaces that somebody is no member of are not there for them. Without a name: the oldest of theirs.
Result<const meta::Workspace *> GatewayService::find_workspace(const Principal &who,
                                                               std::string_view slug_or_id) const {
    const meta::Workspace *found = nullptr;
    for (const meta::Workspace &workspace : workspaces_) {
        if (core_->access.role_of(who, workspace.id) == Role::none) continue;
        if (!slug_or_id.empty() && workspace.slug != slug_or_id && workspace.id.to_string() != slug_or_id) continue;
        if (!found || workspace.created_us < found->created_us) found = &workspace;
    }
    if (found) return found;
    if (slug_or_id.empty()) {
        return Status(Code::permission_denied, "user '" + who.user_name + "' is not a member of any workspace")
            .with_hint("an owner of a workspace or an admin can add members");
    }
    return Status(Code::not_found, "there is no workspace '" + std::string(slug_or_id) + "'")
        .with_name("workspace_not_found")
        .with_sqlstate("3D000");
}

const meta::Catalog *GatewayService::find_catalog(const Principal &who, const Uuid &workspace,
                                                  std::string_view slug_or_id) const {
    for (const meta::Catalog &catalog : catalogs_) {
        if (catalog.workspace != workspace || !core_->access.sees(who, catalog)) continue;
        if (catalog.slug == slug_or_id || catalog.id.to_string() == slug_or_id) return &catalog;
    }
    return nullptr;
}

// Where the catalog is that somebody named without a workspace.
const meta::Workspace *GatewayService::workspace_with(const Principal &who, std::string_view catalog) const {
    for (const meta::Workspace &workspace : workspaces_) {
        if (core_->access.role_of(who, workspace.id) == Role::none) continue;
        if (find_catalog(who, workspace.id, catalog)) return &workspace;
    }
    return nullptr;
}

Result<std::shared_ptr<Session>> GatewayService::open_session(const OpenSession &request) {
    const Principal &who = request.principal;
    ROOST_ASSIGN_OR_RETURN(const meta::Workspace *workspace, find_workspace(who, request.workspace));
    const std::string wanted = request.catalog.empty() ? workspace->default_catalog : request.catalog;
    const meta::Catalog *catalog = find_catalog(who, workspace->id, wanted);
    if (!catalog && request.workspace.empty() && !request.catalog.empty()) {
        if (const meta::Workspace *other = workspace_with(who, wanted)) {
            workspace = other;
            catalog = find_catalog(who, workspace->id, wanted);
        }
    }
    if (!catalog) {
        return Status(Code::not_found, "database \"" + wanted + "\" does not exist")
            .with_name("catalog_not_found")
            .with_sqlstate("3D000")
            .with_hint("GET /api/catalogs lists the catalogs that you may use");
    }
    auto session = std::make_shared<Session>();
    session->id = Uuid::make();
    session->principal = request.principal;
    session->workspace_id = workspace->id;
    session->workspace = workspace->slug;
    session->front = request.front;
    session->origin = request.origin;
    session->client_name = request.client_name;
    session->peer = request.peer;
    session->settings.catalog = catalog->slug;
    session->catalogs = catalog_names(who, workspace->id);
    session->settings.search_path = {"main"};
    session->last_active_us = core_->clock.monotonic_us();
    sessions_.insert(session);
    return session;
}

void GatewayService::forget_transaction(Session &session) {
    if (session.pinned_node) core_->hub.end_session(*session.pinned_node, session.id);
    session.pinned_node.reset();
    session.wrote = false;
    session.write_catalog.clear();
    session.written_units.clear();
    session.transaction_catalogs.clear();
    session.leases.clear();
    session.changes.clear();
    session.transaction = TransactionState::idle;
    session.transaction_has_read = false;
    session.transaction_read_only = false;
    session.transaction_failure = Status();
}

// Ended by roost itself: whatever the client says next in it, COMMIT too, is answered with `why`.
void GatewayService::fail_transaction(Session &session, Status why) {
    forget_transaction(session);
    session.transaction = TransactionState::failed;
    session.transaction_failure = std::move(why);
}

// A node that has left has rolled back everything, and does not know the transaction when it is back a moment later:
// what is sent to it then would be a transaction without its beginning.
void GatewayService::lose_transactions(const Uuid &node) {
    // Whether that has happened is found out by the COMMIT itself; and what only begins, begins elsewhere.
    std::set<const Session *> spared;
    for (const RunStream *run : core_->running) {
        if (run->commits_transaction() || run->outlives_its_node()) spared.insert(&run->session());
    }
    for (const auto &session : sessions_) {
        if (session->pinned_node != node || session->transaction != TransactionState::open) continue;
        if (spared.contains(session.get())) continue;
        core_->log.warn("transaction_lost", {{"session_id", session->id}, {"node_id", node}});
        fail_transaction(*session, lost_transaction());
    }
}

void GatewayService::close_session(const std::shared_ptr<Session> &session) {
    if (session->closed) return;
    session->closed = true;
    forget_transaction(*session);
    for (const Uuid &node : session->kept_on) core_->hub.end_session(node, session->id);
    sessions_.erase(session);
}

// --- run

net::Task<GatewayService::Judged> GatewayService::judge_text(std::string_view text, sql::Context context,
                                                             const sql::GuardPolicy &policy) {
    if (text.size() <= core_->limits.parse_inline_max_bytes || text.size() > core_->limits.sql_text_max_bytes) {
        co_return judge(core_->statements, text, context, policy);
    }
    co_return co_await core_->parsing([&cache = core_->statements, text = std::string(text), context, policy] {
        Judged result = judge(cache, text, context, policy);
        // The tree of a long text is large: nobody needs it any more, and it goes on this thread.
        for (sql::Statement &statement : result.statements) statement.tree.reset();
        return result;
    });
}

net::Task<Result<std::vector<sql::Statement>>> GatewayService::parse(std::string_view text, sql::Context context,
                                                                     std::shared_ptr<Session> session) {
    sql::GuardPolicy policy;
    if (session) {
        policy.catalogs = session->catalogs;
    } else {
        for (const auto &[catalog, lake] : core_->lakes) policy.catalogs.push_back(catalog);
    }
    Judged judged = co_await judge_text(text, context, policy);
    // A function that nobody knows may be a macro of the lake.
    if (session && !judged.status.ok() && judged.status.error().rule.starts_with("function:")) {
        const std::set<std::string> macros = co_await macros_of(*session);
        policy.is_macro = [&macros](std::string_view name) { return macros.contains(std::string(name)); };
        if (!macros.empty()) judged = co_await judge_text(text, context, policy);
    }
    if (judged.status.ok()) co_return std::move(judged.statements);
    if (judged.refused != sql::Kind::empty) {
        const Error &refusal = judged.status.error();
        const std::string nobody;
        core_->log.warn("statement_refused", {{"rule", refusal.rule},
                                              {"position", refusal.position},
                                              {"user", session ? session->principal.user_name : nobody},
                                              {"session_id", session ? session->id : Uuid()},
                                              {"peer", session ? session->peer : nobody}});
        core_->metrics.guard_refused(rule_label(refusal.rule));
        if (session) core_->audit.refused(*session, text, judged.status, Uuid());
        core_->metrics.statement_done(context == sql::Context::oneshot ? "http" : "pg", sql::kind_name(judged.refused),
                                      "refused");
    }
    co_return judged.status;
}

Result<std::unique_ptr<RunStream>> GatewayService::make_run(const std::shared_ptr<Session> &session,
                                                            ExecuteRequest request, Reach reach, RunOptions options) {
    if (core_->draining) {
        return Status(Code::unavailable, "roost is shutting down")
            .with_sqlstate("57P03")
            .with_hint("connect again in a moment");
    }
    if (session->closed)
        return Status(Code::failed_precondition, "the session is closed").with_name("session_not_open");
    StatementSpec spec;
    spec.sql = request.statement.text;
    spec.params = std::move(request.params);
    spec.result_formats = std::move(request.result_formats);
    spec.settings = session->settings;
    spec.writes = sql::changes_lake(request.statement.kind);
    spec.timeout_ms = request.timeout_ms > 0              ? request.timeout_ms
                      : session->statement_timeout_ms > 0 ? session->statement_timeout_ms
                                                          : core_->limits.statement_timeout_ms;
    spec.session = session->id;
    spec.session_lasts = session->front == "pg";
    spec.read_only = session->transaction_read_only;
    spec.write_catalog = std::move(reach.write_catalog);
    spec.catalogs = std::move(reach.catalogs);
    spec.rights = std::move(reach.rights);
    if (session->transaction == TransactionState::open) {
        spec.transaction = TransactionAction::in_session;
        ROOST_RETURN_IF_ERROR(join_transaction(*session, spec));
    }
    const bool read_only =
        session->transaction == TransactionState::open ? session->transaction_read_only : session->default_read_only;
    if (spec.writes && read_only) {
        Status refused = Status(Code::failed_precondition, "cannot execute " + command_tag(request.statement, {}, 0) +
                                                               " in a read-only transaction")
                             .with_sqlstate("25006");
        if (session->transaction == TransactionState::open) session->transaction = TransactionState::failed;
        return refused;
    }
    session->last_active_us = core_->clock.monotonic_us();
    return std::make_unique<RunStream>(*core_, session, std::move(request.statement), std::move(spec),
                                       std::move(options));
}

net::Task<Result<std::unique_ptr<ResultStream>>> GatewayService::execute(std::shared_ptr<Session> session,
                                                                         ExecuteRequest request) {
    using sql::Kind;
    const Kind kind = request.statement.kind;
    session->last_active_us = core_->clock.monotonic_us();
    if (kind == Kind::empty) co_return std::make_unique<LocalStream>("");
    if (kind == Kind::begin) co_return co_await begin_transaction(session, request.statement);
    if (kind == Kind::commit || kind == Kind::rollback) {
        co_return co_await end_transaction(session, request.statement, kind == Kind::commit);
    }
    if (session->transaction == TransactionState::failed) co_return aborted_transaction(*session);
    if (kind == Kind::use) co_return use(session, request.statement);
    if (kind == Kind::set_variable) co_return co_await set_variable(session, std::move(request));
    if (sql::is_session_command(kind)) {
        co_return Status(Code::unimplemented, std::string(sql::kind_name(kind)) + " is not supported here");
    }
    auto reach = co_await find_reach(session, request.statement);
    if (!reach.ok()) {
        if (session->transaction == TransactionState::open) session->transaction = TransactionState::failed;
        co_return reach.status();
    }
    auto run = make_run(session, std::move(request), std::move(*reach), {});
    if (!run.ok()) co_return run.status();
    // Not begun yet: the front must hold the stream to be able to cancel a wait for the write lease.
    co_return std::unique_ptr<ResultStream>(std::move(*run));
}

// What runs is the value as a SELECT of its own, judged like one.
net::Task<Result<std::unique_ptr<ResultStream>>> GatewayService::set_variable(std::shared_ptr<Session> session,
                                                                              ExecuteRequest request) {
    std::string name = folded(request.statement.command.name);
    if (request.statement.command.body.empty()) {
        session->settings.variables.erase(name);
        co_return std::make_unique<LocalStream>("RESET");
    }
    auto value = co_await parse(request.statement.command.body, sql::Context::session, session);
    if (!value.ok()) co_return value.status();
    auto reach = co_await find_reach(session, value->front());
    if (!reach.ok()) {
        if (session->transaction == TransactionState::open) session->transaction = TransactionState::failed;
        co_return reach.status();
    }
    request.statement = std::move(value->front());
    request.result_formats.clear();
    RunOptions options;
    options.format = ResultFormat::value;
    auto run = make_run(session, std::move(request), std::move(*reach), std::move(options));
    if (!run.ok()) co_return run.status();
    co_return std::make_unique<VariableStream>(std::move(session), std::move(name), std::move(*run));
}

net::Task<Result<std::unique_ptr<ResultStream>>> GatewayService::begin_transaction(std::shared_ptr<Session> session,
                                                                                   const sql::Statement &statement) {
    if (core_->draining) co_return Status(Code::unavailable, "roost is shutting down").with_sqlstate("57P03");
    if (session->transaction == TransactionState::idle) {
        session->transaction = TransactionState::open;
        session->transaction_has_read = false;
        const auto option = statement.command.options.find("read_only");
        session->transaction_read_only =
            option != statement.command.options.end() ? option->second == "on" : session->default_read_only;
        session->transaction_failure = Status();
    }
    co_return std::make_unique<LocalStream>(statement.command.name == "start transaction" ? "START TRANSACTION"
                                                                                          : "BEGIN");
}

net::Task<Result<std::unique_ptr<ResultStream>>> GatewayService::end_transaction(std::shared_ptr<Session> session,
                                                                                 const sql::Statement &statement,
                                                                                 bool commit, RunOptions options) {
    const bool really_commits = commit && session->transaction == TransactionState::open && session->pinned_node;
    const bool failed = session->transaction == TransactionState::failed;
    if (!really_commits) {
        Status untold = std::exchange(session->transaction_failure, Status());
        forget_transaction(*session);
        if (commit && !untold.ok()) co_return untold;
        co_return std::make_unique<LocalStream>(commit && !failed ? "COMMIT" : "ROLLBACK");
    }
    StatementSpec spec;
    spec.settings = session->settings;
    spec.session = session->id;
    spec.transaction = TransactionAction::commit;
    spec.writes = session->wrote;
    spec.write_catalog = session->write_catalog;
    spec.timeout_ms = core_->limits.statement_timeout_ms;
    const bool wrote = spec.writes;
    const std::string written = written_catalog(spec);
    auto run = std::make_unique<RunStream>(*core_, session, statement, std::move(spec), std::move(options));
    Status status = co_await run->begin();
    while (status.ok()) {
        auto frame = co_await run->next();
        status = frame.status();
        if (frame.ok() && !frame->has_value()) break;
    }
    if (wrote && (status.ok() || status.sqlstate() == "08007")) core_->leases->count_commit(written);
    forget_transaction(*session);
    if (!status.ok()) co_return status;
    co_return std::make_unique<LocalStream>("COMMIT");
}

Result<std::unique_ptr<ResultStream>> GatewayService::use(const std::shared_ptr<Session> &session,
                                                          const sql::Statement &statement) {
    const std::vector<std::string> &path = statement.command.values;
    if (path.empty() || path.size() > 2) return Status(Code::syntax_error, "USE takes a schema, or catalog.schema");
    std::string catalog = session->settings.catalog;
    std::string schema = path.back();
    const auto known = [&session](const std::string &name) {
        return std::ranges::find(session->catalogs, name) != session->catalogs.end();
    };
    if (path.size() == 2 || known(path[0])) {
        catalog = path[0];
        schema = path.size() == 2 ? path[1] : "main";
    }
    if (!known(catalog)) {
        return Status(Code::not_found, "there is no catalog '" + catalog + "'").with_sqlstate("3D000");
    }
    if (session->pinned_node && catalog != session->settings.catalog) {
        return Status(Code::failed_precondition, "the catalog can't be changed inside a transaction")
            .with_sqlstate("25001")
            .with_hint("COMMIT or ROLLBACK first, or name tables as catalog.schema.table");
    }
    session->settings.catalog = catalog;
    session->settings.search_path = {schema};
    return std::unique_ptr<ResultStream>(std::make_unique<LocalStream>("USE"));
}

// --- look

Result<std::vector<meta::Workspace>> GatewayService::workspaces(const Principal &who) {
    std::vector<meta::Workspace> own;
    for (const meta::Workspace &workspace : workspaces_) {
        if (core_->access.role_of(who, workspace.id) != Role::none) own.push_back(workspace);
    }
    return own;
}

Result<std::vector<meta::Catalog>> GatewayService::catalogs(const Principal &who, std::string_view workspace) {
    ROOST_ASSIGN_OR_RETURN(const meta::Workspace *found, find_workspace(who, workspace));
    std::vector<meta::Catalog> catalogs;
    for (const meta::Catalog &catalog : catalogs_) {
        if (catalog.workspace == found->id && core_->access.sees(who, catalog)) catalogs.push_back(catalog);
    }
    return catalogs;
}

net::Task<Result<RouteExplanation>> GatewayService::explain_route(const Principal &who, std::string_view workspace,
                                                                  std::string_view sql) {
    auto opened = open_session({.principal = who, .workspace = std::string(workspace), .catalog = {}, .front = "http"});
    if (!opened.ok()) co_return opened.status();
    const std::shared_ptr<Session> session = *opened;
    const auto statements = co_await parse(sql, sql::Context::oneshot, session);
    Status status = statements.status();
    if (status.ok() && statements->size() != 1) {
        status = Status(Code::invalid_argument, "give one statement, not " + std::to_string(statements->size()));
    }
    // What the caller may not see must not be told of here either.
    if (status.ok()) status = (co_await find_reach(session, statements->front())).status();
    close_session(session);
    if (!status.ok()) co_return status;
    const sql::Statement &statement = statements->front();
    routing::StatementFeatures features;
    features.reads = statement.reads;
    features.writes = statement.writes;
    const routing::ClusterSnapshot cluster = core_->snapshot();
    const routing::FoundTables found = core_->tables_of(statement, session->settings);
    features.tables = found.uses;
    const routing::Decision decision = core_->policy->explain(cluster, features);
    RouteExplanation explanation;
    explanation.kind = sql::kind_name(statement.kind);
    explanation.policy = core_->policy->name();
    explanation.reason = decision.why.empty() ? decision.reason : decision.why;
    if (!decision.candidates.empty()) explanation.node = decision.candidates.front().to_string();
    for (size_t i = 0; i < decision.candidates.size(); ++i) {
        const Uuid &id = decision.candidates[i];
        for (const routing::NodeState &node : cluster.nodes) {
            if (node.id != id) continue;
            std::string note = node.name + ": " + std::to_string(node.in_flight) + " in flight on " +
                               std::to_string(node.weight) + " vCPUs";
            if (i < decision.looks.size()) note += "; " + placement::candidate_text(decision.looks[i]);
            explanation.candidates.push_back({id.to_string(), node.load(), std::move(note)});
        }
    }
    co_return explanation;
}

net::Task<Result<meta::AuditPage>> GatewayService::audit(const Principal &who, meta::AuditFilter filter) {
    if (who.role != "admin") {
        co_return Status(Code::permission_denied, "the audit is for admins").with_hint("ask an admin of the pool");
    }
    co_await write_audit();  // what has just happened is in it
    co_return co_await core_->blocking([this, filter = std::move(filter)] { return core_->meta.list_audit(filter); });
}

bool GatewayService::ready() const { return !core_->draining && !core_->hub.members().empty(); }

std::string GatewayService::metrics_text() { return core_->metrics.expose(); }

void GatewayService::connection_opened(std::string_view front) {
    core_->metrics.connections(front, ++connections_[std::string(front)]);
}

void GatewayService::connection_closed(std::string_view front) {
    core_->metrics.connections(front, --connections_[std::string(front)]);
}

void GatewayService::auth_failed(std::string_view front, std::string_view user, std::string_view peer) {
    core_->metrics.auth_failed(front);
    core_->log.warn("auth_failed", {{"front", front}, {"user", user.substr(0, 64)}, {"peer", peer}});
    core_->audit.login_failed(front, user, peer);
}

}  // namespace roost::service
