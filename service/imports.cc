// `roost import`: files that were uploaded to staging become rows of a table, in one transaction.
#include <boost/asio/detached.hpp>
#include <filesystem>

#include "lake/ducklake.h"
#include "service/gateway_service.h"

namespace roost::service {

namespace asio = net::asio;
namespace fs = std::filesystem;

namespace {

// One path segment that can't leave its folder.
bool is_plain_name(std::string_view name) {
    if (name.empty() || name.size() > 255 || name == "." || name == "..") return false;
    for (const char c : name) {
        if (c == '/' || c == '\\' || c == '*' || c == '?' || c == '[' || static_cast<unsigned char>(c) < 0x20)
            return false;
    }
    return true;
}

void replace_all(std::string &text, const std::string &from, const std::string &to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

sql::Statement internal_statement(std::string text, sql::Kind kind) {
    sql::Statement statement;
    statement.text = std::move(text);
    statement.kind = kind;
    return statement;
}

// By the name, as `roost import` tells the files of its own machine apart.
std::string format_of(const std::string &source) {
    for (const char *end : {".csv", ".csv.gz", ".tsv", ".tsv.gz"}) {
        if (source.ends_with(end)) return "csv";
    }
    return "parquet";
}

std::string reader_of(const std::string &format, const std::string &files) {
    if (format == "parquet") return "read_parquet([" + files + "], union_by_name => true)";
    return "read_csv([" + files + "], union_by_name => true)";
}

// What a person needs of the engine's error: the file by their name for it, the place and the reason, without the
// advice on SQL they did not write. A CSV error is a page: the line and its number, the reason, then advice and options
// with "file = PATH".
Error import_error(Error error, const std::vector<std::pair<std::string, std::string>> &renames) {
    std::string text = error.message + (error.detail.empty() ? "" : "\n" + error.detail);
    for (const auto &[path, original] : renames) replace_all(text, path, original);
    constexpr std::string_view kFile = "\n  file = ";
    std::string file;
    if (const size_t at = text.find(kFile); at != std::string::npos) {
        const size_t begin = at + kFile.size();
        file = text.substr(begin, text.find('\n', begin) - begin);
        text.resize(std::min({at, text.find("\nColumn "), text.find("\nPossible solutions")}));
    }
    error.message = file.empty() || text.find(file) != std::string::npos ? text : file + ": " + text;
    error.detail.clear();
    return error;
}

// Reading where somebody else's files lie is the operator's to allow, and the folders are the operator's.
Status check_foreign(const ImportRequest &request) {
    if (!request.in_place && request.sources.empty()) return Status();
    if (request.principal.role != "admin") {
        return Status(Code::not_allowed, request.in_place ? "registering files in place is for admins"
                                                          : "importing files that the nodes read is for admins")
            .with_rule(request.in_place ? "import.in_place" : "import.sources")
            .with_hint(request.in_place ? "import them with a copy, or ask an admin" : "upload them, or ask an admin");
    }
    const bool in_place = request.in_place && !request.in_place->patterns.empty();
    if (!request.files.empty() + !request.sources.empty() + in_place != 1) {
        return Status(
            Code::invalid_argument,
            "an import takes uploaded files, files that the nodes read, or files in place: one or more of one "
            "kind");
    }
    return Status();
}

std::string import_text(const ImportRequest &request) {
    std::string text =
        request.in_place ? "REGISTER " + std::to_string(request.in_place->patterns.size()) + " patterns IN PLACE INTO "
        : request.sources.empty()
            ? "IMPORT " + std::to_string(request.files.size()) + " files INTO "
            : "IMPORT " + std::to_string(request.sources.size()) + " patterns FROM THE NODES INTO ";
    return text + quote_identifier(request.schema) + "." + quote_identifier(request.table);
}

}  // namespace

Result<std::string> GatewayService::staging_path(const Principal &, const Uuid &import_id, std::string_view name) {
    if (!is_plain_name(name)) {
        return Status(Code::invalid_argument, "not a plain file name: '" + std::string(name.substr(0, 255)) + "'");
    }
    if (core_->lakes.empty()) return Status(Code::failed_precondition, "there is no catalog to import into");
    const fs::path folder = fs::path(core_->lakes.begin()->second.staging_path) / import_id.to_string();
    std::error_code ec;
    fs::create_directories(folder, ec);
    if (ec) return Status(Code::io_error, "can't make the staging folder: " + ec.message());
    return (folder / name).string();
}

void GatewayService::drop_staging(const Uuid &import_id) {
    for (const auto &[catalog, lake] : core_->lakes) {
        std::error_code ec;
        fs::remove_all(fs::path(lake.staging_path) / import_id.to_string(), ec);
        if (ec) core_->log.warn("staging_not_removed", {{"import_id", import_id}, {"error", ec.message()}});
    }
}

net::Task<Result<StatementInfo>> GatewayService::run_import(ImportRequest request, int64_t wait_ms) {
    if (request.files.empty() && request.sources.empty() && !request.in_place) {
        co_return Status(Code::invalid_argument, "the import names no files");
    }
    if (request.table.empty()) co_return Status(Code::invalid_argument, "the import names no table");
    if (request.schema.empty()) request.schema = "main";
    for (const ImportRequest::File &file : request.files) {
        if (file.format != "parquet" && file.format != "csv") {
            co_return Status(Code::invalid_argument,
                             "file '" + file.original + "': format is parquet or csv, not '" + file.format + "'");
        }
        auto path = staging_path(request.principal, request.import_id, file.name);
        if (!path.ok()) co_return path.status();
        if (!fs::exists(*path)) co_return Status(Code::not_found, "file '" + file.name + "' was not uploaded");
    }
    auto session = open_session({.principal = request.principal,
                                 .workspace = request.workspace,
                                 .catalog = request.catalog,
                                 .front = "internal",
                                 .origin = "import",
                                 .client_name = "roost import"});
    if (!session.ok()) co_return session.status();
    const std::string text = import_text(request);
    if (Status refused = check_foreign(request); !refused.ok()) {
        core_->audit.refused(**session, text, refused, Uuid());
        close_session(*session);
        co_return refused;
    }
    if (request.in_place) {
        request.in_place->schema = request.schema;
        request.in_place->table = request.table;
    }
    if (const auto rights = core_->access.rights_of(request.principal, (*session)->workspace_id)) {
        if (rights_in(*rights, (*session)->settings.catalog).of_schema(request.schema) != Privilege::writer) {
            const Status denied = Status(Code::permission_denied, "permission denied for schema " + request.schema)
                                      .with_rule("grant")
                                      .with_hint("importing takes the grant 'writer' on it");
            core_->audit.refused(**session, text, denied, Uuid());
            close_session(*session);
            co_return denied;
        }
    }
    const EntryPtr entry = make_entry(*session, text, "import", true);
    for (const ImportRequest::File &file : request.files) {
        auto path = staging_path(request.principal, request.import_id, file.name);
        if (!path.ok()) continue;
        entry->renames.emplace_back(*path, file.original);
        // The node's messages say "lake:staging" for the folder.
        for (const auto &[catalog, lake] : core_->lakes) {
            entry->renames.emplace_back(catalog + ":staging" + path->substr(lake.staging_path.size()), file.original);
        }
    }
    entry->ends_recorded = true;
    if (request.in_place) request.in_place->commit = entry->info.record.id;
    asio::co_spawn(core_->loop, run_imported(entry, *session, std::move(request)), asio::detached);
    co_return co_await wait_for(entry, wait_ms);
}

net::Task<void> GatewayService::run_imported(EntryPtr entry, std::shared_ptr<Session> session, ImportRequest request) {
    uint64_t rows = 0;
    Status status = co_await import_files(entry, session, request, rows);
    if (status.ok()) {
        entry->info.record.status = meta::StatementStatus::done;
        entry->info.record.row_count = rows;
    } else {
        Error error = import_error(status.error(), entry->renames);
        if (!request.sources.empty() && error.message.find("files.outside_lake") != std::string::npos) {
            error.hint = "the nodes read below the folders that the setting external names";
        }
        status = Status(std::move(error));
    }
    entry->info.record.finished_us = core_->clock.wall_us();
    drop_staging(request.import_id);
    finish_entry(entry, status);
    core_->meta.record_statement(entry->info.record, durable_callback(entry, Record::end));
    close_session(session);
}

// The table from the first group of files, or an insert into the one that exists; inserts from the others.
net::Task<Result<std::vector<ExecuteRequest>>> GatewayService::import_statements(std::shared_ptr<Session> session,
                                                                                 const ImportRequest &request) {
    const std::string schema = quote_identifier(session->settings.catalog) + "." + quote_identifier(request.schema);
    const std::string table = schema + "." + quote_identifier(request.table);
    std::vector<ExecuteRequest> statements;
    const auto add = [&statements](std::string text, sql::Kind kind) {
        statements.emplace_back().statement = internal_statement(std::move(text), kind);
    };
    if (request.in_place) {
        add(std::string(kRegisterFiles), sql::Kind::insert);
        statements.back().params = parameters_of(*request.in_place);
        co_return statements;
    }
    auto probe =
        co_await describe(session, internal_statement("SELECT * FROM " + table + " LIMIT 0", sql::Kind::select), {});
    bool exists = probe.ok();
    if (!exists && probe.status().sqlstate() != "42P01" && probe.status().sqlstate() != "3F000")
        co_return probe.status();
    if (!exists) add("CREATE SCHEMA IF NOT EXISTS " + schema, sql::Kind::create_schema);
    for (const char *format : {"parquet", "csv"}) {
        std::string files;
        for (const ImportRequest::File &file : request.files) {
            if (file.format != format) continue;
            auto path = staging_path(request.principal, request.import_id, file.name);
            if (!path.ok()) co_return path.status();
            if (!files.empty()) files += ", ";
            files += quote_literal(*path);
        }
        for (const std::string &source : request.sources) {
            if (format_of(source) != format) continue;
            if (!files.empty()) files += ", ";
            files += quote_literal(source.ends_with('/') ? source + "**/*.parquet" : source);
        }
        if (files.empty()) continue;
        const std::string select = " SELECT * FROM " + reader_of(format, files);
        if (exists) {
            add("INSERT INTO " + table + " BY NAME" + select, sql::Kind::insert);
        } else {
            add("CREATE TABLE " + table + " AS" + select, sql::Kind::create_table_as);
        }
        exists = true;
    }
    co_return statements;
}

// BEGIN; the schema; the statements; COMMIT. Anything that fails takes all of it back.
net::Task<Status> GatewayService::import_files(EntryPtr entry, std::shared_ptr<Session> session,
                                               const ImportRequest &request, uint64_t &rows) {
    auto statements = co_await import_statements(session, request);
    if (!statements.ok()) co_return statements.status();
    Status status = (co_await begin_transaction(session, internal_statement("BEGIN", sql::Kind::begin))).status();
    for (size_t i = 0; i < statements->size() && status.ok(); ++i) {
        if (!entry->cancel_reason.ok()) {
            status = entry->cancel_reason;
            break;
        }
        RunOptions options;
        options.internal = true;
        options.in_history = false;
        ExecuteRequest execute = std::move((*statements)[i]);
        execute.timeout_ms = 24LL * 3'600'000;
        auto made = make_run(session, std::move(execute), {}, std::move(options));
        if (!made.ok()) {
            status = made.status();
            break;
        }
        RunStream &run = **made;
        entry->running = &run;
        watch_progress(entry, run);
        status = co_await run.begin();
        while (status.ok()) {
            auto frame = co_await run.next();
            status = frame.status();
            if (frame.ok() && !frame->has_value()) break;
        }
        entry->running = nullptr;
        entry->info.record.node = run.record().node;
        if (status.ok()) rows += run.completion().affected.value_or(0);
    }
    if (!status.ok()) {
        forget_transaction(*session);
        co_return status;
    }
    // The commit's mark is the import's id, so that a gateway that is started again finds it.
    RunOptions options;
    options.id = entry->info.record.id;
    options.in_history = false;
    co_return (
        co_await end_transaction(session, internal_statement("COMMIT", sql::Kind::commit), true, std::move(options)))
        .status();
}

}  // namespace roost::service
