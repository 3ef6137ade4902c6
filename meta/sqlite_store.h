// The meta store on SQLite, for a single machine: a writer thread with a connection of its own, and two reading
// connections, so that a long listing holds up no login. WAL with synchronous=NORMAL: what was committed survives kill
// -9 of the process; after a power cut the newest commits may be missing, the file is whole. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "meta/sqlite_db.h"
#include "meta/store.h"
#include "meta/writer.h"

namespace roost::meta {

struct SqliteStoreOptions {
    WriterLimits writer;
    int busy_timeout_ms = 5'000;
    // A page of the history ends here, whatever its limit of rows: texts may be 16 MiB each.
    size_t page_max_bytes = 32U << 20;
    int64_t list_timeout_ms = 10'000;
    // A listing waits this long for records that are queued, so that what has just ended is in it.
    int64_t settle_max_ms = 500;
};

class SqliteStore final : public Store {
public:
    static Result<std::unique_ptr<SqliteStore>> open(const std::string &path, const SqliteStoreOptions &options = {});

    Result<std::optional<User>> find_user(std::string_view name) override;
    Status put_user(const User &user) override;
    Result<std::optional<User>> find_token(std::string_view token) override;
    Status put_token(const Uuid &user, std::string_view token, int64_t expires_us) override;
    Result<std::vector<User>> users() override;
    Result<AccessTables> access() override;
    Status put_membership(const Membership &membership) override;
    Status drop_membership(const Uuid &workspace, const Uuid &user) override;
    Status put_grant(const Grant &grant) override;
    Status drop_grant(const Uuid &id) override;
    Result<std::vector<Workspace>> workspaces() override;
    Status put_workspace(const Workspace &workspace) override;
    Result<std::vector<Catalog>> catalogs() override;
    Status put_catalog(const Catalog &catalog) override;
    Status put_member(const Member &member) override;
    Result<std::vector<Member>> members() override;
    void record_statement(StatementRecord record, std::function<void(Status)> durable) override;
    Status flush() override;
    Result<std::optional<StatementRecord>> find_statement(const Uuid &id) override;
    Result<StatementPage> list_statements(const StatementFilter &filter) override;
    Result<std::vector<StatementRecord>> unfinished_statements() override;
    Result<std::vector<Uuid>> prune_statements(int64_t before_us) override;
    Status append_audit(std::vector<AuditRecord> records) override;
    Result<AuditPage> list_audit(const AuditFilter &filter) override;
    Status prune_audit(int64_t before_us, uint64_t keep_rows) override;

private:
    struct Reader {
        explicit Reader(std::unique_ptr<Db> connection) : db(std::move(connection)) {}
        Mutex mutex;
        const std::unique_ptr<Db> db ROOST_PT_GUARDED_BY(mutex);
    };

    SqliteStore(std::unique_ptr<Db> writer, std::unique_ptr<Db> point_reader, std::unique_ptr<Db> list_reader,
                const SqliteStoreOptions &options);

    const SqliteStoreOptions options_;
    const SystemClock clock_;
    Reader points_;  // short look-ups
    Reader lists_;   // listings
    MetaWriter writer_;
};

}  // namespace roost::meta
