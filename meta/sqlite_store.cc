#include "meta/sqlite_store.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "meta/audit_rows.h"
#include "meta/schema.h"
#include "meta/statement_rows.h"

namespace roost::meta {
namespace {

constexpr int64_t kPruneBatch = 1'000;

std::string sha256(std::string_view text) {
    std::string digest(SHA256_DIGEST_LENGTH, '\0');
    SHA256(reinterpret_cast<const unsigned char *>(text.data()), text.size(),
           reinterpret_cast<unsigned char *>(digest.data()));
    return digest;
}

Status file_error(const std::string &path, int error) {
    return Status(Code::io_error, "can't open the meta store " + path + ": " + std::strerror(error))
        .with_hint(error == ENOENT ? "its directory does not exist"
                                   : "check its permissions and those of its directory");
}

// The file holds password verifiers, so it is its owner's alone; SQLite gives its companions the same mode. An existing
// file is changed by name: closing a descriptor of it would drop the locks that another connection of this process
// holds.
Status make_private_file(const std::string &path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        ::close(fd);
        return {};
    }
    if (errno != EEXIST) return file_error(path, errno);
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return file_error(path, errno);
    if (!S_ISREG(info.st_mode)) return Status(Code::io_error, "the meta store " + path + " is not a file");
    if ((info.st_mode & 077) != 0 && chmod(path.c_str(), 0600) != 0) return file_error(path, errno);
    return {};
}

Result<std::unique_ptr<Db>> open_writer(const std::string &path, int busy_timeout_ms) {
    ROOST_ASSIGN_OR_RETURN(auto db, Db::open(path, Db::Mode::write, busy_timeout_ms));
    // The WAL is cut back after a checkpoint that found it larger than this.
    ROOST_RETURN_IF_ERROR(
        db->execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; "
                    "PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864"));
    {
        Query mode(*db, "PRAGMA journal_mode");
        if (!mode.step() || mode.text() != "wal") {
            return Status(Code::io_error, path + ": SQLite can't use a write-ahead log there")
                .with_hint("the meta store needs a local disk; network file systems won't do");
        }
    }
    ROOST_RETURN_IF_ERROR(bring_schema_up_to_date(*db, path));
    return db;
}

constexpr std::string_view kUserColumns = "u.id, u.name, u.role, u.scram_verifier, u.created_us, u.email, u.active";

User user_of(Query &query) {
    User user;
    user.id = query.id();
    user.name = query.text();
    user.role = query.text();
    user.scram_verifier = query.text();
    user.created_us = query.integer();
    user.email = query.text();
    user.active = query.integer() != 0;
    return user;
}

Result<std::optional<User>> read_user(Query &query) {
    std::optional<User> user;
    if (query.step()) user = user_of(query);
    if (!query.status().ok()) return query.status();
    return user;
}

template <class Row, class Read>
Result<std::vector<Row>> read_all(Query &query, Read read) {
    std::vector<Row> rows;
    while (query.step()) rows.push_back(read(query));
    if (!query.status().ok()) return query.status();
    return rows;
}

// Says what was there before, where SQLite would name an index.
Status or_exists(Status status, const std::string &what) {
    if (status.code() != Code::already_exists) return status;
    return Status(Code::already_exists, what + " exists already");
}

void bind_all(Query &query, const std::vector<ListQuery::Value> &values) {
    for (const auto &value : values) {
        std::visit([&query](const auto &item) { query.bind(item); }, value);
    }
}

Result<StatementPage> read_page(Db &db, const StatementFilter &filter, const ListQuery &list, size_t max_bytes) {
    Query numbers(db, list.sql);
    bind_all(numbers, list.values);
    ROOST_ASSIGN_OR_RETURN(const auto found, read_all<int64_t>(numbers, [](Query &row) { return row.integer(); }));
    StatementPage page;
    size_t bytes = 0;
    for (const int64_t number : found) {
        if (page.items.size() == page_limit(filter) || bytes >= max_bytes) {
            page.has_more = true;
            page.cursor = cursor_after(filter, page.items.back());
            return page;
        }
        Query query(db, "SELECT " + std::string(record_columns()) + " FROM statements WHERE seq = ?");
        query.bind(number);
        if (query.step()) page.items.push_back(read_record(query));
        if (!query.status().ok()) return query.status();
        if (page.items.empty()) return Status(Code::data_loss, "an index of the history names a row that is not there");
        bytes += record_bytes(page.items.back());
    }
    return page;
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string &path, const SqliteStoreOptions &options) {
    if (path.empty() || path.front() == ':' || path.find('\0') != std::string::npos) {
        return Status(Code::invalid_argument, "the meta store needs the path of a file, as in sqlite:data/meta.sqlite");
    }
    ROOST_RETURN_IF_ERROR(make_private_file(path));
    ROOST_ASSIGN_OR_RETURN(auto writer, open_writer(path, options.busy_timeout_ms));
    ROOST_ASSIGN_OR_RETURN(auto points, Db::open(path, Db::Mode::read, options.busy_timeout_ms));
    ROOST_ASSIGN_OR_RETURN(auto lists, Db::open(path, Db::Mode::read, options.busy_timeout_ms));
    return std::unique_ptr<SqliteStore>(
        new SqliteStore(std::move(writer), std::move(points), std::move(lists), options));
}

SqliteStore::SqliteStore(std::unique_ptr<Db> writer, std::unique_ptr<Db> point_reader, std::unique_ptr<Db> list_reader,
                         const SqliteStoreOptions &options)
    : options_(options),
      points_(std::move(point_reader)),
      lists_(std::move(list_reader)),
      writer_(std::move(writer), options.writer) {}

Result<std::optional<User>> SqliteStore::find_user(std::string_view name) {
    const MutexLock lock(points_.mutex);
    Query query(*points_.db, "SELECT " + std::string(kUserColumns) + " FROM users u WHERE u.name = ?");
    query.bind(name);
    return read_user(query);
}

Status SqliteStore::put_user(const User &user) {
    const Status status = writer_.run([user](Db &db) {
        Query query(
            db,
            "INSERT INTO users(id, name, role, scram_verifier, created_us, email, active) VALUES(?,?,?,?,?,?,?) "
            "ON CONFLICT(id) DO UPDATE SET name = excluded.name, role = excluded.role, "
            "scram_verifier = excluded.scram_verifier, email = excluded.email, active = excluded.active");
        query.bind_blob(user.id.raw()).bind(user.name).bind(user.role).bind(user.scram_verifier).bind(user.created_us);
        query.bind(user.email).bind(user.active);
        return query.run();
    });
    return or_exists(status, "the user " + user.name);
}

Result<std::optional<User>> SqliteStore::find_token(std::string_view token) {
    const std::string hash = sha256(token);
    const MutexLock lock(points_.mutex);
    Query query(*points_.db, "SELECT " + std::string(kUserColumns) +
                                 " FROM tokens t JOIN users u ON u.id = t.user "
                                 "WHERE t.sha256 = ? AND u.active <> 0 AND (t.expires_us = 0 OR t.expires_us > ?)");
    query.bind_blob(hash).bind(clock_.wall_us());
    return read_user(query);
}

Status SqliteStore::put_token(const Uuid &user, std::string_view token, int64_t expires_us) {
    return writer_.run([user, hash = sha256(token), expires_us](Db &db) {
        Query query(db,
                    "INSERT INTO tokens(sha256, user, expires_us) VALUES(?,?,?) ON CONFLICT(sha256) DO UPDATE "
                    "SET user = excluded.user, expires_us = excluded.expires_us");
        query.bind_blob(hash).bind_blob(user.raw()).bind(expires_us);
        return query.run();
    });
}

Result<std::vector<User>> SqliteStore::users() {
    const MutexLock lock(points_.mutex);
    Query query(*points_.db, "SELECT " + std::string(kUserColumns) + " FROM users u ORDER BY u.name");
    return read_all<User>(query, user_of);
}

Result<AccessTables> SqliteStore::access() {
    const MutexLock lock(points_.mutex);
    AccessTables tables;
    Query members(*points_.db, "SELECT workspace, user, role, created_us FROM memberships");
    ROOST_ASSIGN_OR_RETURN(tables.memberships, read_all<Membership>(members, [](Query &row) {
                               Membership membership;
                               membership.workspace = row.id();
                               membership.user = row.id();
                               membership.role = row.text();
                               membership.created_us = row.integer();
                               return membership;
                           }));
    Query grants(*points_.db,
                 "SELECT id, user, catalog, schema_name, table_name, tier, granted_by, created_us FROM grants "
                 "ORDER BY created_us, id");
    ROOST_ASSIGN_OR_RETURN(tables.grants, read_all<Grant>(grants, [](Query &row) {
                               Grant grant;
                               grant.id = row.id();
                               grant.user = row.id();
                               grant.catalog = row.id();
                               grant.schema = row.text();
                               grant.table = row.text();
                               grant.tier = row.text();
                               grant.granted_by = row.id();
                               grant.created_us = row.integer();
                               return grant;
                           }));
    return tables;
}

Status SqliteStore::put_membership(const Membership &membership) {
    return writer_.run([membership](Db &db) {
        Query query(db,
                    "INSERT INTO memberships(workspace, user, role, created_us) VALUES(?,?,?,?) "
                    "ON CONFLICT(workspace, user) DO UPDATE SET role = excluded.role");
        query.bind_blob(membership.workspace.raw()).bind_blob(membership.user.raw());
        query.bind(membership.role).bind(membership.created_us);
        return query.run();
    });
}

Status SqliteStore::drop_membership(const Uuid &workspace, const Uuid &user) {
    return writer_.run([workspace, user](Db &db) -> Status {
        Query grants(db,
                     "DELETE FROM grants WHERE user = ? AND catalog IN (SELECT id FROM catalogs WHERE workspace = ?)");
        grants.bind_blob(user.raw()).bind_blob(workspace.raw());
        ROOST_RETURN_IF_ERROR(grants.run());
        Query query(db, "DELETE FROM memberships WHERE workspace = ? AND user = ?");
        query.bind_blob(workspace.raw()).bind_blob(user.raw());
        return query.run();
    });
}

Status SqliteStore::put_grant(const Grant &grant) {
    return writer_.run([grant](Db &db) {
        Query query(db,
                    "INSERT INTO grants(id, user, catalog, schema_name, table_name, tier, granted_by, created_us) "
                    "VALUES(?,?,?,?,?,?,?,?) ON CONFLICT(user, catalog, schema_name, table_name) DO UPDATE SET "
                    "tier = excluded.tier, granted_by = excluded.granted_by, created_us = excluded.created_us");
        query.bind_blob(grant.id.raw()).bind_blob(grant.user.raw()).bind_blob(grant.catalog.raw());
        query.bind(grant.schema).bind(grant.table).bind(grant.tier);
        query.bind_blob(grant.granted_by.raw()).bind(grant.created_us);
        return query.run();
    });
}

Status SqliteStore::drop_grant(const Uuid &id) {
    return writer_.run([id](Db &db) {
        Query query(db, "DELETE FROM grants WHERE id = ?");
        query.bind_blob(id.raw());
        return query.run();
    });
}

Result<std::vector<Workspace>> SqliteStore::workspaces() {
    const MutexLock lock(points_.mutex);
    Query query(*points_.db, "SELECT id, slug, name, default_catalog, created_us FROM workspaces ORDER BY slug");
    return read_all<Workspace>(query, [](Query &row) {
        Workspace workspace;
        workspace.id = row.id();
        workspace.slug = row.text();
        workspace.name = row.text();
        workspace.default_catalog = row.text();
        workspace.created_us = row.integer();
        return workspace;
    });
}

Status SqliteStore::put_workspace(const Workspace &workspace) {
    const Status status = writer_.run([workspace](Db &db) {
        Query query(
            db,
            "INSERT INTO workspaces(id, slug, name, default_catalog, created_us) VALUES(?,?,?,?,?) ON CONFLICT(id) DO "
            "UPDATE SET slug = excluded.slug, name = excluded.name, default_catalog = excluded.default_catalog");
        query.bind_blob(workspace.id.raw()).bind(workspace.slug).bind(workspace.name);
        query.bind(workspace.default_catalog).bind(workspace.created_us);
        return query.run();
    });
    return or_exists(status, "the workspace " + workspace.slug);
}

Result<std::vector<Catalog>> SqliteStore::catalogs() {
    const MutexLock lock(points_.mutex);
    Query query(*points_.db,
                "SELECT id, slug, metadata, data_path, workspace, is_default, created_us, access_mode FROM catalogs "
                "ORDER BY slug");
    return read_all<Catalog>(query, [](Query &row) {
        Catalog catalog;
        catalog.id = row.id();
        catalog.slug = row.text();
        catalog.metadata = row.text();
        catalog.data_path = row.text();
        catalog.workspace = row.id();
        catalog.is_default = row.integer() != 0;
        catalog.created_us = row.integer();
        catalog.access_mode = row.text();
        return catalog;
    });
}

Status SqliteStore::put_catalog(const Catalog &catalog) {
    const Status status = writer_.run([catalog](Db &db) -> Status {
        Query query(
            db,
            "INSERT INTO catalogs(id, slug, metadata, data_path, workspace, is_default, created_us, access_mode) "
            "VALUES(?,?,?,?,?,?,?,?) "
            "ON CONFLICT(id) DO UPDATE SET slug = excluded.slug, metadata = excluded.metadata, "
            "data_path = excluded.data_path, workspace = excluded.workspace, is_default = excluded.is_default, "
            "access_mode = excluded.access_mode");
        query.bind_blob(catalog.id.raw()).bind(catalog.slug).bind(catalog.metadata).bind(catalog.data_path);
        query.bind_blob(catalog.workspace.raw()).bind(catalog.is_default).bind(catalog.created_us);
        query.bind(catalog.access_mode);
        ROOST_RETURN_IF_ERROR(query.run());
        if (!catalog.is_default) return {};
        // A workspace has one default.
        Query others(db, "UPDATE catalogs SET is_default = 0 WHERE workspace = ? AND id <> ?");
        others.bind_blob(catalog.workspace.raw()).bind_blob(catalog.id.raw());
        return others.run();
    });
    return or_exists(status, "the catalog " + catalog.slug);
}

Status SqliteStore::put_member(const Member &member) {
    return writer_.run([member](Db &db) {
        Query query(
            db,
            "INSERT INTO members(id, name, pool, version, cpus, memory_bytes, dir, first_seen_us, last_seen_us, "
            "drained) "
            "VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET name = excluded.name, pool = excluded.pool, "
            "version = excluded.version, cpus = excluded.cpus, memory_bytes = excluded.memory_bytes, "
            "dir = excluded.dir, last_seen_us = excluded.last_seen_us, drained = excluded.drained");
        query.bind_blob(member.id.raw()).bind(member.name).bind(member.pool).bind(member.version);
        query.bind(static_cast<int64_t>(member.cpus)).bind(static_cast<int64_t>(member.memory_bytes)).bind(member.dir);
        query.bind(member.first_seen_us).bind(member.last_seen_us).bind(int64_t{member.drained});
        return query.run();
    });
}

Result<std::vector<Member>> SqliteStore::members() {
    const MutexLock lock(points_.mutex);
    Query query(*points_.db,
                "SELECT id, name, pool, version, cpus, memory_bytes, dir, first_seen_us, last_seen_us, drained FROM "
                "members ORDER BY "
                "first_seen_us, id");
    return read_all<Member>(query, [](Query &row) {
        Member member;
        member.id = row.id();
        member.name = row.text();
        member.pool = row.text();
        member.version = row.text();
        member.cpus = static_cast<uint32_t>(row.integer());
        member.memory_bytes = static_cast<uint64_t>(row.integer());
        member.dir = row.text();
        member.first_seen_us = row.integer();
        member.last_seen_us = row.integer();
        member.drained = row.integer() != 0;
        return member;
    });
}

void SqliteStore::record_statement(StatementRecord record, std::function<void(Status)> durable) {
    writer_.record(std::move(record), std::move(durable));
}

Status SqliteStore::flush() { return writer_.flush(); }

Result<std::optional<StatementRecord>> SqliteStore::find_statement(const Uuid &id) {
    const MutexLock lock(points_.mutex);
    Query query(*points_.db, "SELECT " + std::string(record_columns()) + " FROM statements WHERE id = ?");
    query.bind_blob(id.raw());
    std::optional<StatementRecord> record;
    if (query.step()) record = read_record(query);
    if (!query.status().ok()) return query.status();
    return record;
}

Result<StatementPage> SqliteStore::list_statements(const StatementFilter &filter) {
    ROOST_ASSIGN_OR_RETURN(const ListQuery list, build_list_query(filter, clock_.wall_us()));
    writer_.settle(options_.settle_max_ms);
    const MutexLock lock(lists_.mutex);
    Db &db = *lists_.db;
    db.set_deadline_us(clock_.monotonic_us() + options_.list_timeout_ms * 1000);
    // One snapshot for the row numbers and the rows.
    ROOST_RETURN_IF_ERROR(db.execute("BEGIN"));
    Result<StatementPage> page = read_page(db, filter, list, options_.page_max_bytes);
    // It has read only, so how it ends makes no difference.
    (void)db.execute("ROLLBACK");
    if (page.status().code() == Code::timeout) {
        return Status(Code::timeout,
                      "the history is too long to search in " + std::to_string(options_.list_timeout_ms) + " ms")
            .with_hint("narrow it down with since, until or session_id");
    }
    return page;
}

Result<std::vector<StatementRecord>> SqliteStore::unfinished_statements() {
    const MutexLock lock(points_.mutex);
    Query query(*points_.db, "SELECT " + std::string(record_columns()) +
                                 " FROM statements WHERE status < 2 ORDER BY started_us, id");
    return read_all<StatementRecord>(query, read_record);
}

Result<std::vector<Uuid>> SqliteStore::prune_statements(int64_t before_us) {
    std::vector<Uuid> pruned;
    // In pieces, so that the history of running statements does not wait for all of it.
    for (;;) {
        const auto piece = std::make_shared<std::vector<Uuid>>();
        ROOST_RETURN_IF_ERROR(writer_.run([before_us, piece](Db &db) {
            Query query(
                db,
                "DELETE FROM statements WHERE seq IN (SELECT seq FROM statements WHERE started_us < ? AND status >= 2 "
                "ORDER BY started_us LIMIT ?) RETURNING id");
            query.bind(before_us).bind(kPruneBatch);
            while (query.step()) piece->push_back(query.id());
            return query.status();
        }));
        pruned.insert(pruned.end(), piece->begin(), piece->end());
        if (piece->size() < static_cast<size_t>(kPruneBatch)) return pruned;
    }
}

Status SqliteStore::append_audit(std::vector<AuditRecord> records) {
    return writer_.run([records = std::move(records)](Db &db) { return write_audit(db, records); });
}

Result<AuditPage> SqliteStore::list_audit(const AuditFilter &filter) {
    const MutexLock lock(lists_.mutex);
    Db &db = *lists_.db;
    db.set_deadline_us(clock_.monotonic_us() + options_.list_timeout_ms * 1000);
    return read_audit(db, filter);
}

Status SqliteStore::prune_audit(int64_t before_us, uint64_t keep_rows) {
    for (;;) {
        const auto removed = std::make_shared<uint64_t>(0);
        ROOST_RETURN_IF_ERROR(writer_.run([=](Db &db) -> Status {
            ROOST_ASSIGN_OR_RETURN(*removed, meta::prune_audit(db, before_us, keep_rows, kPruneBatch));
            return {};
        }));
        if (*removed < static_cast<uint64_t>(kPruneBatch)) return {};
    }
}

}  // namespace roost::meta
