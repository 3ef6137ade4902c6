// One DuckDB connection to an instance with a lake: session settings and transactions from C++, past the configuration
// lock that SQL meets. Methods throw DuckDB's exceptions unless noexcept. Used by one thread at a time; pooled by
// Instance.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "duckdb/main/connection.hpp"
#include "engine/statement.h"

namespace roost {

// Of an instance: many commit at once, and who cleans up after a commit that failed does so alone. Whoever waits to be
// alone is not passed by those that come after.
struct CommitGate {
    std::mutex turn;  // held while `commits` is waited for
    std::shared_mutex commits;
};

class LakeConnection {
public:
    explicit LakeConnection(duckdb::DatabaseInstance &database);
    ~LakeConnection();
    LakeConnection(const LakeConnection &) = delete;
    LakeConnection &operator=(const LakeConnection &) = delete;

    duckdb::ClientContext &context() { return *connection_.context; }
    const duckdb::shared_ptr<duckdb::ClientContext> &shared_context() { return connection_.context; }
    duckdb::Connection &raw() { return connection_; }

    // Does nothing when the connection has these settings already. Unknown schemas are no error (as in PostgreSQL), an
    // unknown time zone is.
    void apply(const StatementSettings &settings);

    // Runs `work`, which binds a statement, in the open transaction. Where the statement may well need nothing of the
    // lake it is tried without the lake in the search path first: DuckDB looks up even the names of its own functions
    // there, and each look asks the catalog. `work` may run twice.
    void bind(const StatementSettings &settings, bool names_objects, const std::function<void()> &work);

    void begin(bool read_only);
    // The transaction, which changed `catalog`, is over when this returns or throws. `gate`: of the instance; cleaning
    // up after a failed commit must not meet DuckLake's connections in the midst of others.
    void commit(const std::string &catalog, CommitGate &gate);
    // A commit has failed, and the engine holds on to its transaction for ever.
    bool left_behind() const { return left_behind_; }
    // Since the transaction began.
    std::chrono::milliseconds age() const;
    void rollback() noexcept;
    bool in_transaction();

    // A statement may have left something behind (temporary objects, variables): don't lend it to another session.
    void spoil() { spoiled_ = true; }
    bool spoiled() const { return spoiled_; }

private:
    void apply_search_path(const StatementSettings &settings);
    void apply_time_zone(const std::string &time_zone);
    void apply_variables(const std::map<std::string, std::string> &variables);

    duckdb::Connection connection_;
    std::string catalog_;
    std::optional<std::vector<std::string>> search_path_;
    std::string time_zone_;
    std::map<std::string, std::string> variables_;
    bool spoiled_ = false;
    bool left_behind_ = false;
    std::chrono::steady_clock::time_point began_;
};

}  // namespace roost
