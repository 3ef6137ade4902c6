#include "lake/ducklake_postgres.h"

#include <libpq-fe.h>

#include <charconv>
#include <memory>

#include "lake/postgres_dsn.h"

namespace roost {

Result<std::optional<uint64_t>> find_postgres_commit(const std::string &dsn, const std::string &mark) {
    ROOST_ASSIGN_OR_RETURN(const std::string whole, complete_dsn(dsn));
    const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(whole.c_str()), &PQfinish);
    // libpq's own words name hosts and users: they are not for whoever sent the statement.
    const auto unreachable = [] {
        return Status(Code::unavailable, "the lake's catalog can't be reached").with_retryable(true);
    };
    if (!connection || PQstatus(connection.get()) != CONNECTION_OK) return unreachable();
    const char *values[] = {mark.c_str()};
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexecParams(connection.get(),
                     "SELECT snapshot_id FROM public.ducklake_snapshot_changes WHERE commit_extra_info = $1 "
                     "ORDER BY snapshot_id DESC LIMIT 1",
                     1, nullptr, values, nullptr, nullptr, 0),
        &PQclear);
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) {
        if (PQstatus(connection.get()) != CONNECTION_OK) return unreachable();
        return Status(Code::io_error, "the lake's catalog can't be read");
    }
    if (PQntuples(result.get()) == 0) return std::optional<uint64_t>();
    const std::string text = PQgetvalue(result.get(), 0, 0);
    uint64_t snapshot = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), snapshot).ec != std::errc()) {
        return Status(Code::io_error, "the lake's catalog can't be read");
    }
    return std::optional<uint64_t>(snapshot);
}

}  // namespace roost
