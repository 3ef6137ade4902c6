#include "lake/ducklake_postgres.h"

#include <array>
#include <chrono>

#include "lake/postgres_connection.h"
#include "lake/postgres_dsn.h"

namespace roost {

namespace {

constexpr std::chrono::seconds kLookup{10};

}  // namespace

Result<std::optional<uint64_t>> find_postgres_commit(const std::string &dsn, const std::string &mark) {
    ROOST_ASSIGN_OR_RETURN(std::string whole, complete_dsn(dsn));
    PostgresConnection connection(std::move(whole));
    std::optional<uint64_t> snapshot;
    const std::array<std::optional<std::string>, 1> parameters = {mark};
    const Status status = connection.query(
        "SELECT snapshot_id FROM public.ducklake_snapshot_changes WHERE commit_extra_info = $1 "
        "ORDER BY snapshot_id DESC LIMIT 1",
        parameters,
        [&snapshot](const PostgresRow &row) {
            snapshot = static_cast<uint64_t>(row.integer(0));
            return Status();
        },
        CallLimits::in(kLookup));
    if (status.ok()) return snapshot;
    // The database's own words name hosts and users: they are not for whoever sent the statement.
    if (status.code() == Code::io_error) return Status(Code::io_error, "the lake's catalog can't be read");
    return Status(Code::unavailable, "the lake's catalog can't be reached").with_retryable(true);
}

}  // namespace roost
