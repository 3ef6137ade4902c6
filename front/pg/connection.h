// One client of the Postgres front: login, then its messages in order, each translated to calls of the service. Loop
// thread only; made by the Listener, which owns it through the coroutine of run().
//
// connection.cc has the loop, deadlines and transactions; simple.cc the simple protocol; extended.cc the extended one;
// commands.cc what a session answers without a node.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "front/pg/channel.h"
#include "front/pg/message.h"
#include "front/pg/portal.h"
#include "front/pg/shared.h"
#include "service/session_variables.h"

namespace roost::pg {

class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(net::asio::ip::tcp::socket socket, std::shared_ptr<Shared> shared);
    ~Connection();
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;

    // Serves the client until it goes or must go.
    static net::Task<void> run(std::shared_ptr<Connection> self);
    // Stops the statement that runs now; without one nothing happens, so a late request hits nobody.
    void cancel_running();
    // Applies the deadlines; called every now and then.
    void sweep(int64_t now_ms);
    // The gateway is about to stop: an idle client is told and closed now, a busy one after its message.
    void drain();
    // Ends it now, whatever it does.
    void cut();

private:
    enum class Phase : uint8_t { login, idle, reading, running, ended };
    // Marks the time in which cancel_running() and the watch mean something.
    class RunScope;
    // How far a result went.
    enum class Relay : uint8_t { complete, suspended };
    using Stream = std::unique_ptr<service::ResultStream>;
    // Replies that wait for the engine's word on a statement, see resolve().
    struct Pending {
        std::shared_ptr<Prepared> unvalidated;  // parsed here, not yet seen by the engine
        std::shared_ptr<Portal> described;      // a Describe that the header of its execution may answer
        std::string replies;
        bool any() const { return unvalidated != nullptr || described != nullptr; }
    };

    // --- connection.cc
    net::Task<void> live();
    void greet();
    net::Task<void> serve();
    net::Task<std::optional<Message>> next_message();
    net::Task<bool> handle(const Message &message);
    net::Task<bool> ready();
    void end_with(Status last_words);
    void end();
    bool next_is_sync() const;
    void sweep_stalled(int64_t stalled_ms);
    void sweep_idle(int64_t idle_ms);
    void watch();
    static net::Task<void> watch_client(std::shared_ptr<Connection> self);

    void sync_settings();
    bool is_in_transaction() const { return session_->transaction != service::TransactionState::idle; }
    bool is_failed() const { return session_->transaction == service::TransactionState::failed; }
    Status check_not_failed(const sql::Statement &statement);
    net::Task<Status> control(sql::Statement statement);
    net::Task<Status> begin_implicit();
    net::Task<Status> commit_implicit();
    // Sends the error and does to the transaction what an error does.
    net::Task<void> fail(Status status);
    // The end of a message (or group): outside a transaction its settings become permanent or are undone, and its
    // portals end.
    void settle(bool ok);

    // Begins a statement: at a node, or as a command of the session.
    net::Task<Result<Stream>> start(const sql::Statement &statement, std::vector<Param> params,
                                    std::vector<int16_t> formats);
    net::Task<Result<Relay>> relay(RowCursor &cursor, uint64_t rows_max, uint64_t &rows);
    void track(RowCursor &cursor);
    // In what formats the rows of a statement come when `asked` was asked for: FETCH gives its cursor's.
    std::vector<int16_t> row_formats(const sql::Statement &statement, const std::vector<int16_t> &asked) const;

    // --- simple.cc
    // A long text takes a while; a cancel in that time is answered when it is over.
    net::Task<Result<std::vector<sql::Statement>>> parse(std::string_view text);
    net::Task<bool> on_query(std::string_view body);
    net::Task<Status> run_all(const std::vector<sql::Statement> &statements);
    net::Task<Status> run_simple(const std::vector<sql::Statement> &statements, size_t index);
    bool wants_implicit(const std::vector<sql::Statement> &statements, size_t from) const;
    // EXECUTE stands for what it runs.
    const sql::Statement &what_runs(const sql::Statement &statement) const;

    // --- extended.cc
    net::Task<void> on_parse(std::string_view body);
    net::Task<void> on_bind(std::string_view body);
    net::Task<void> on_describe(std::string_view body);
    net::Task<void> on_execute(std::string_view body);
    net::Task<void> on_close(std::string_view body);
    net::Task<bool> on_sync();
    net::Task<Status> add_prepared(const ParseMessage &message);
    net::Task<Status> add_portal(const BindMessage &message);
    net::Task<Status> describe_statement(const std::string &name);
    net::Task<Status> describe_portal(const std::string &name);
    net::Task<Status> execute_portal(const std::string &name, uint32_t rows_max);
    net::Task<Status> open_portal(Portal &portal);
    Status take_header(Portal &portal);
    net::Task<Status> describe(Prepared &prepared);
    Result<std::shared_ptr<Prepared>> find_prepared(const std::string &name) const;
    Result<std::shared_ptr<Portal>> find_portal(const std::string &name) const;
    void reply(char type);
    void release_pending();
    // Makes sure that what is pending is valid and sends its replies. An error is the engine's word against the pending
    // statement.
    net::Task<Status> resolve();
    net::Task<void> fail_group(Status status);
    void put_description(const Prepared &prepared, const std::vector<int16_t> &formats);

    // --- commands.cc
    net::Task<Result<Stream>> run_command(const sql::Statement &statement, std::vector<Param> params,
                                          std::vector<int16_t> formats);
    net::Task<Result<Stream>> run_begin(const sql::Statement &statement);
    net::Task<Result<Stream>> run_commit(const sql::Statement &statement);
    net::Task<Result<Stream>> run_rollback(const sql::Statement &statement);
    net::Task<Result<Stream>> run_use(const sql::Statement &statement);
    static Result<Stream> run_savepoint(const sql::Statement &statement);
    Result<Stream> run_set(const sql::SessionCommand &command);
    Result<Stream> run_set_transaction(const sql::SessionCommand &command);
    Result<Stream> run_reset(const sql::SessionCommand &command);
    Result<Stream> run_show(const sql::SessionCommand &command) const;
    Result<Stream> run_discard(const sql::SessionCommand &command);
    Result<Stream> run_deallocate(const sql::SessionCommand &command);
    net::Task<Result<Stream>> run_prepare(const sql::Statement &statement);
    net::Task<Result<Stream>> run_execute(const sql::SessionCommand &command, std::vector<int16_t> formats);
    net::Task<Result<Stream>> run_declare(const sql::Statement &statement, std::vector<Param> params);
    Result<Stream> run_fetch(const sql::Statement &statement);
    Result<Stream> run_close(const sql::SessionCommand &command);
    net::Task<Status> describe_command(Prepared &prepared);
    net::Task<Result<sql::Statement>> parse_one(std::string_view text);
    // SHOW of a name that is neither a variable nor a table: for a client of PostgreSQL it is an unknown variable.
    static Status explain_show(const sql::Statement &statement, Status status);

    std::shared_ptr<Shared> shared_;
    Channel channel_;
    std::shared_ptr<service::Session> session_;
    std::optional<service::SessionVariables> variables_;
    uint64_t applied_version_ = 0;                                   // of variables_, as the session has them
    int64_t idle_session_max_ms_ = 0, idle_transaction_max_ms_ = 0;  // 0: no limit
    std::optional<CancelRegistry::Key> key_;

    std::unordered_map<std::string, std::shared_ptr<Prepared>> statements_;
    std::unordered_map<std::string, std::shared_ptr<Portal>> portals_;
    Pending pending_;
    size_t message_bytes_ = 0;      // of the message being handled, at the front of the channel's input
    bool skip_until_sync_ = false;  // an error in the extended protocol
    bool implicit_ = false;         // the open transaction was made here, for one message or group

    Phase phase_ = Phase::login;
    struct {
        bool active = false, cancelled = false;
        RowCursor *cursor = nullptr;
    } running_;
    std::optional<Status> last_words_;  // why the connection ends, sent as FATAL

    uint64_t swept_progress_ = ~0ULL;  // what sweep() saw last, and since when
    Phase swept_phase_ = Phase::login;
    int64_t swept_since_ms_ = 0;
    int64_t login_until_ms_ = 0;
};

class Connection::RunScope {
public:
    explicit RunScope(Connection &connection)
        : connection_(connection), phase_(connection.phase_), outer_(connection.running_.active) {
        if (!outer_) connection_.running_ = {.active = true};
        connection_.phase_ = Phase::running;
    }
    RunScope(const RunScope &) = delete;
    RunScope &operator=(const RunScope &) = delete;
    ~RunScope() {
        connection_.running_.cursor = nullptr;
        if (outer_) return;
        connection_.running_ = {};
        connection_.phase_ = phase_;
        connection_.channel_.stop_watching();
    }

private:
    Connection &connection_;
    const Phase phase_;
    const bool outer_;  // one inside another: a command that asks the engine about a statement
};

}  // namespace roost::pg
