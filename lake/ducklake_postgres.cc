#include "lake/ducklake_postgres.h"

#include <array>
#include <chrono>

#include "lake/postgres_connection.h"
#include "lake/postgres_dsn.h"

namespace roost {

namespace {

constexpr std::chrono::seconds kLookup{10};

Result<std::optional<uint64_t>> look_up(PostgresConnection &connection, const std::string &mark,
                                        const CallLimits &limits) {
    std::optional<uint64_t> snapshot;
    const std::array<std::optional<std::string>, 1> parameters = {mark};
    ROOST_RETURN_IF_ERROR(connection.query(
        "SELECT snapshot_id FROM public.ducklake_snapshot_changes WHERE commit_extra_info = $1 "
        "ORDER BY snapshot_id DESC LIMIT 1",
        parameters,
        [&snapshot](const PostgresRow &row) {
            snapshot = static_cast<uint64_t>(row.integer(0));
            return Status();
        },
        limits));
    return snapshot;
}

// As look_up, when no commit is under way any more: the lock waits for those that have entered their snapshot. Whoever
// has not done so when his client is gone does not commit.
Result<std::optional<uint64_t>> look_up_finally(PostgresConnection &connection, const std::string &mark,
                                                const CallLimits &limits) {
    ROOST_RETURN_IF_ERROR(connection.execute("BEGIN", limits));
    ROOST_RETURN_IF_ERROR(connection.execute("LOCK TABLE public.ducklake_snapshot_changes IN SHARE MODE", limits));
    auto found = look_up(connection, mark, limits);
    ROOST_RETURN_IF_ERROR(connection.execute("ROLLBACK", limits));
    return found;
}

}  // namespace

Result<std::optional<uint64_t>> find_postgres_commit(const std::string &dsn, const std::string &mark) {
    ROOST_ASSIGN_OR_RETURN(std::string whole, complete_dsn(dsn));
    PostgresConnection connection(std::move(whole));
    const CallLimits limits = CallLimits::in(kLookup);
    auto found = look_up(connection, mark, limits);
    if (found.ok() && !found->has_value()) found = look_up_finally(connection, mark, limits);
    if (found.ok()) return found;
    // The database's own words name hosts and users: they are not for whoever sent the statement.
    if (found.status().code() == Code::io_error) return Status(Code::io_error, "the lake's catalog can't be read");
    return Status(Code::unavailable, "the lake's catalog can't be reached").with_retryable(true);
}

}  // namespace roost
