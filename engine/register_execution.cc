#include <algorithm>
#include <set>

#include "duckdb/main/prepared_statement.hpp"
#include "duckdb/main/table_description.hpp"
#include "engine/execution.h"
#include "engine/stopwatch.h"
#include "lake/ducklake.h"

namespace roost {

namespace {

constexpr size_t kFilesMax = 200'000;
// Files of one step: between two of them the statement can be cancelled, and so much is held of their footers.
constexpr size_t kBatch = 128;
constexpr std::chrono::seconds kPinsWithin{60};

std::string list_text(const std::vector<ForeignFile> &files, size_t from, size_t to) {
    std::string text;
    for (size_t i = from; i < to; i++) text += (text.empty() ? "[" : ", ") + quote_literal(files[i].path);
    return text + "]";
}

// DuckLake names its own parameters; a person has flags.
Status in_flags(const Status &status) {
    if (status.ok()) return status;
    Error error = status.error();
    const std::string whole = error.message + error.detail;
    if (whole.find("allow_missing =>") != std::string::npos) {
        error.detail.clear();
        error.hint = "--allow-missing registers it all the same: the column is NULL in its rows";
    } else if (whole.find("ignore_extra_columns =>") != std::string::npos) {
        error.detail.clear();
        error.hint =
            "--ignore-extra registers it all the same, without that column; or add the column to the table first";
    }
    return Status(std::move(error));
}

const char *bool_text(bool value) { return value ? "true" : "false"; }

}  // namespace

RegisterExecution::RegisterExecution(EngineParts &parts, StatementSpec spec)
    : BaseExecution(parts, std::move(spec)), session_(parts.sessions.open(spec_.session)) {}

Status RegisterExecution::start(const Grant &grant) {
    completion_.granted_bytes = grant.bytes;
    completion_.ran_large = true;
    auto request = register_files_of(spec_.params);
    if (!request.ok()) return fail(request.status());
    request_ = *std::move(request);
    auto pool = catalog();
    if (!pool.ok()) return fail(pool.status());
    SessionVisit visit(*session_, cancellation_);
    if (!visit.status().ok()) return fail(visit.status());
    ROOST_RETURN_IF_ERROR(fail(visit.fail(visit.ready(spec_, **pool, nullptr, grant.bytes))));
    instance_ = session_->instance;
    session_->wrote = true;
    session_->write_catalog = written_catalog(spec_);
    session_->statements++;
    return Status();
}

Result<bool> RegisterExecution::step(ResultSink &sink) {
    SessionVisit visit(*session_, cancellation_);
    if (!visit.status().ok()) return fail(visit.status());
    cancellation_.watch(session_->connection->shared_context());
    const Stopwatch watch;
    Status status = cancellation_.reason();
    if (status.ok()) status = in_flags(work());
    // What DuckDB calls an interrupt has a reason of ours.
    if (!status.ok() && cancellation_.requested()) status = cancellation_.reason();
    completion_.timings.execute_us += watch.elapsed_us();
    if (!status.ok()) return fail(visit.fail(std::move(status)));
    if (stage_ != Stage::done) return true;
    completion_.affected = rows_;
    sink.header({});
    return false;
}

Completion RegisterExecution::finish(Status status) { return account(std::move(status), nullptr, nullptr); }

// Listing is quick; looking, reading footers and adding take about as long each.
double RegisterExecution::progress() const {
    const size_t count = count_, at = at_;
    const double part = count == 0 ? 0 : 100.0 * static_cast<double>(std::min(at, count)) / static_cast<double>(count);
    switch (stage_.load()) {
        case Stage::list:
            return 0;
        case Stage::look:
            return part * 0.1;
        case Stage::columns:
            return 10 + part * 0.3;
        case Stage::pin:
        case Stage::create:
            return 40;
        case Stage::add:
            return 40 + part * 0.6;
        case Stage::done:
            return 100;
    }
    return -1;
}

Status RegisterExecution::work() {
    switch (stage_.load()) {
        case Stage::list:
            return list();
        case Stage::look:
            return look();
        case Stage::columns:
            return read_columns();
        case Stage::pin:
            return pin();
        case Stage::create:
            return create();
        case Stage::add:
            return add();
        case Stage::done:
            return Status();
    }
    return Status();
}

void RegisterExecution::next(Stage stage) {
    at_ = 0;
    count_ = files_.size();
    stage_ = stage;
}

size_t RegisterExecution::batch_size() const { return std::min(kBatch, files_.size() - at_); }

std::string RegisterExecution::table_arguments() const {
    return quote_literal(instance_->options().lake.catalog) + ", " + quote_literal(request_.table);
}

Status RegisterExecution::list() {
    ROOST_ASSIGN_OR_RETURN(files_, list_foreign_files(*instance_, request_.patterns, kFilesMax));
    ROOST_ASSIGN_OR_RETURN(const auto connection, instance_->connect());
    try {
        exists_ =
            connection->raw().TableInfo(instance_->options().lake.catalog, request_.schema, request_.table) != nullptr;
    } catch (const std::exception &error) {
        return instance_->error(duckdb::ErrorData(error), "");
    }
    if (exists_) ROOST_RETURN_IF_ERROR(leave_out_registered());
    next(files_.empty() ? Stage::done : Stage::look);
    return Status();
}

Status RegisterExecution::leave_out_registered() {
    ROOST_ASSIGN_OR_RETURN(const auto connection, instance_->connect());
    auto result = connection->raw().SendQuery("SELECT data_file FROM ducklake_list_files(" + table_arguments() +
                                              ", schema => " + quote_literal(request_.schema) + ")");
    if (result->HasError()) return instance_->error(result->GetErrorObject(), "");
    std::set<std::string> registered;
    for (const auto &row : *result) registered.insert(row.GetValue<std::string>(0));
    if (result->HasError()) return instance_->error(result->GetErrorObject(), "");
    const auto is_registered = [&](const ForeignFile &file) { return registered.contains(file.path); };
    if (request_.skip_registered) {
        std::erase_if(files_, is_registered);
        return Status();
    }
    const auto found = std::ranges::find_if(files_, is_registered);
    if (found == files_.end()) return Status();
    return Status(Code::already_exists, "the table reads " + found->path + " already")
        .with_sqlstate("42710")
        .with_hint("--skip-registered passes over such files");
}

// One question to the store for each file, but for those whose listing said it all.
Status RegisterExecution::look() {
    const size_t from = at_, count = batch_size();
    pins_.resize(from + count);
    ROOST_RETURN_IF_ERROR(
        for_each_file(*instance_, count, cancellation_, [&](duckdb::Connection &connection, size_t i) -> Status {
            const ForeignFile &file = files_[from + i];
            FilePin &pin = pins_[from + i];
            pin.path = file.path;
            if (file.listed) {
                pin.version = *file.listed;
                return Status();
            }
            ROOST_ASSIGN_OR_RETURN(pin.version, look_at(*instance_, connection, file.path));
            return Status();
        }));
    at_ = from + count;
    if (at_ < files_.size()) return Status();
    // From here on what is opened must be what was looked at.
    instance_->wall().expect(pins_);
    next(exists_ ? Stage::pin : Stage::columns);
    return Status();
}

Status RegisterExecution::read_columns() {
    const size_t from = at_, count = batch_size();
    struct Footer {
        std::vector<std::string> names;
        std::vector<duckdb::LogicalType> types;
    };
    std::vector<Footer> footers(count);
    ROOST_RETURN_IF_ERROR(
        for_each_file(*instance_, count, cancellation_, [&](duckdb::Connection &connection, size_t i) -> Status {
            const auto prepared = connection.Prepare(
                "SELECT * FROM read_parquet(" + quote_literal(files_[from + i].path) + ", hive_partitioning => false)");
            if (prepared->HasError()) {
                Error error = instance_->error(prepared->error, "").error();
                if (error.message.find(files_[from + i].path) == std::string::npos) {
                    error.message = files_[from + i].path + ": " + error.message;
                }
                return Status(std::move(error));
            }
            footers[i] = {prepared->GetNames(), prepared->GetTypes()};
            return Status();
        }));
    for (size_t i = 0; i < count; i++) {
        ROOST_RETURN_IF_ERROR(columns_.add(files_[from + i].path, footers[i].names, footers[i].types));
    }
    at_ = from + count;
    if (at_ < files_.size()) return Status();
    ROOST_ASSIGN_OR_RETURN(partitions_, columns_.add_partitions(files_, request_.hive_partitioning));
    next(Stage::pin);
    return Status();
}

Status RegisterExecution::pin() {
    ROOST_RETURN_IF_ERROR(write_pins(instance_->options().lake, request_.commit, pins_, CallLimits::in(kPinsWithin)));
    std::vector<FilePin>().swap(pins_);
    next(exists_ ? Stage::add : Stage::create);
    return Status();
}

Status RegisterExecution::run(const std::string &sql) {
    const auto result = session_->connection->raw().Query(sql);
    return result->HasError() ? instance_->error(result->GetErrorObject(), "") : Status();
}

Status RegisterExecution::create() {
    const std::string schema =
        quote_identifier(instance_->options().lake.catalog) + "." + quote_identifier(request_.schema);
    ROOST_RETURN_IF_ERROR(run("CREATE SCHEMA IF NOT EXISTS " + schema));
    ROOST_RETURN_IF_ERROR(
        run("CREATE TABLE " + schema + "." + quote_identifier(request_.table) + " " + columns_.definition()));
    next(Stage::add);
    return Status();
}

Status RegisterExecution::add() {
    const size_t from = at_, count = batch_size();
    std::vector<uint64_t> rows(count);
    // DuckLake reads footers one after the other; these are cached then.
    ROOST_RETURN_IF_ERROR(
        for_each_file(*instance_, count, cancellation_, [&](duckdb::Connection &connection, size_t i) -> Status {
            const auto result = connection.Query("SELECT num_rows FROM parquet_file_metadata(" +
                                                 quote_literal(files_[from + i].path) + ")");
            if (result->HasError()) return instance_->error(result->GetErrorObject(), "");
            rows[i] = result->GetValue(0, 0).GetValue<uint64_t>();
            return Status();
        }));
    // A table made of these files has all their columns; some file may lack some.
    const bool allow_missing = request_.allow_missing || !exists_;
    const bool partitions = exists_ ? request_.hive_partitioning.value_or(true) : partitions_;
    ROOST_RETURN_IF_ERROR(run("CALL ducklake_add_data_files(" + table_arguments() + ", " +
                              list_text(files_, from, from + count) + ", schema => " + quote_literal(request_.schema) +
                              ", allow_missing => " + bool_text(allow_missing) + ", ignore_extra_columns => " +
                              bool_text(request_.ignore_extra) + ", hive_partitioning => " + bool_text(partitions) +
                              ")"));
    for (const uint64_t in_file : rows) rows_ += in_file;
    at_ = from + count;
    if (at_ == files_.size()) next(Stage::done);
    return Status();
}

}  // namespace roost
