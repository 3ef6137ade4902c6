#include "engine/foreign_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "duckdb/common/file_system.hpp"
#include "duckdb/common/hive_partitioning.hpp"
#include "duckdb/common/multi_file/multi_file_list.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/common/types/decimal.hpp"
#include "engine/pinned_file.h"
#include "lake/ducklake.h"

namespace roost {

namespace {

using duckdb::LogicalType;
using duckdb::LogicalTypeId;

constexpr size_t kThreads = 8;  // they wait for a store most of the time

bool has_wildcard(std::string_view pattern) { return pattern.find_first_of("*?[{") != std::string_view::npos; }

// Written beside data by those who make it: _SUCCESS, _temporary/…, .crc
bool is_hidden(std::string_view below) {
    return below.starts_with('_') || below.starts_with('.') || below.find("/_") != std::string_view::npos ||
           below.find("/.") != std::string_view::npos;
}

Status outside(const std::string &pattern) {
    return Status(Code::not_allowed, "'" + pattern + "' is below none of the folders whose files may be read in place")
        .with_rule("files.outside_external")
        .with_hint(
            "give the pool the folder: --external FOLDER (a directory, or s3://bucket/prefix), or external in "
            "roost.toml; or import the files with a copy, without --in-place");
}

// What a pattern means: files by exact name, or by a wildcard that may be ours.
struct Pattern {
    std::string glob;
    std::string folder;  // not empty: everything of value below it
};

Pattern pattern_of(duckdb::FileSystem &files, const std::string &text) {
    if (has_wildcard(text)) return {text, {}};
    std::string folder = text;
    const bool local = !has_scheme(text);
    if (!folder.ends_with('/')) {
        if (!local || !files.DirectoryExists(folder)) return {text, {}};
        folder += '/';
    }
    return {folder + "**/*.parquet", folder};
}

void glob(duckdb::ClientContext &context, const std::string &text, std::vector<ForeignFile> &found) {
    auto &files = duckdb::FileSystem::GetFileSystem(context);
    const Pattern pattern = pattern_of(files, text);
    if (!has_wildcard(pattern.glob)) {
        found.push_back({pattern.glob, std::nullopt});
        return;
    }
    for (const auto &file : files.GlobFiles(pattern.glob, duckdb::FileGlobOptions::ALLOW_EMPTY)) {
        if (!pattern.folder.empty() && is_hidden(std::string_view(file.path).substr(pattern.folder.size()))) continue;
        found.push_back({file.path, version_listed(file)});
    }
}

// Types as DuckLake lets a file of the second be read under the first (its DuckLakeParquetTypeChecker).
constexpr std::array kIntegers = {LogicalTypeId::TINYINT,  LogicalTypeId::SMALLINT, LogicalTypeId::INTEGER,
                                  LogicalTypeId::BIGINT,   LogicalTypeId::UTINYINT, LogicalTypeId::USMALLINT,
                                  LogicalTypeId::UINTEGER, LogicalTypeId::UBIGINT};

bool holds(LogicalTypeId wide, LogicalTypeId narrow) {
    constexpr size_t kSigned = 4;
    const auto at = [](LogicalTypeId type) {
        return static_cast<size_t>(std::find(kIntegers.begin(), kIntegers.end(), type) - kIntegers.begin());
    };
    const size_t w = at(wide), n = at(narrow);
    if (w == kIntegers.size() || n == kIntegers.size()) return false;
    if ((w < kSigned) == (n < kSigned)) return n <= w;
    return w < kSigned && n - kSigned < w;  // an unsigned one in a larger signed one
}

std::optional<LogicalType> common_integer(LogicalTypeId a, LogicalTypeId b) {
    if (holds(a, b)) return LogicalType(a);
    if (holds(b, a)) return LogicalType(b);
    for (const LogicalTypeId wide : kIntegers) {
        if (holds(wide, a) && holds(wide, b)) return LogicalType(wide);
    }
    return std::nullopt;
}

std::optional<LogicalType> common_decimal(const LogicalType &a, const LogicalType &b) {
    const auto scale = std::max(duckdb::DecimalType::GetScale(a), duckdb::DecimalType::GetScale(b));
    const auto whole = std::max(duckdb::DecimalType::GetWidth(a) - duckdb::DecimalType::GetScale(a),
                                duckdb::DecimalType::GetWidth(b) - duckdb::DecimalType::GetScale(b));
    if (whole + scale > duckdb::Decimal::MAX_WIDTH_DECIMAL) return std::nullopt;
    return LogicalType::DECIMAL(static_cast<uint8_t>(whole + scale), scale);
}

bool is_timestamp(LogicalTypeId type) {
    return type == LogicalTypeId::TIMESTAMP || type == LogicalTypeId::TIMESTAMP_MS ||
           type == LogicalTypeId::TIMESTAMP_SEC;
}

bool is_float(LogicalTypeId type) { return type == LogicalTypeId::FLOAT || type == LogicalTypeId::DOUBLE; }

// What DuckDB takes a partition's values for, tried in this order.
LogicalType partition_type(const std::set<std::string> &values) {
    for (const LogicalType &type : {LogicalType::DATE, LogicalType::TIMESTAMP, LogicalType::BIGINT}) {
        const bool all = std::ranges::all_of(values, [&](const std::string &value) {
            duckdb::Value cast;
            std::string error;
            return duckdb::HivePartitioning::IsNull(value) ||
                   duckdb::Value(duckdb::HivePartitioning::Unescape(value)).DefaultTryCastAs(type, cast, &error, true);
        });
        if (all) return type;
    }
    return LogicalType::VARCHAR;
}

}  // namespace

Result<std::vector<ForeignFile>> list_foreign_files(Instance &instance, const std::vector<std::string> &patterns,
                                                    size_t files_max) {
    ROOST_ASSIGN_OR_RETURN(const auto connection, instance.connect());
    std::vector<ForeignFile> all;
    std::set<std::string> seen;
    for (const std::string &pattern : patterns) {
        const size_t wildcard = pattern.find_first_of("*?[{");
        const std::string fixed = pattern.substr(0, pattern.rfind('/', wildcard) + 1);
        const bool inside = instance.wall().is_external(wildcard == std::string::npos ? pattern : fixed);
        if (!inside) return outside(pattern);
        std::vector<ForeignFile> found;
        try {
            connection->context().RunFunctionInTransaction([&] { glob(connection->context(), pattern, found); });
        } catch (const std::exception &error) {
            return instance.error(duckdb::ErrorData(error), "");
        }
        if (found.empty()) return Status(Code::not_found, "no file matches " + pattern);
        std::ranges::sort(found, {}, &ForeignFile::path);
        for (ForeignFile &file : found) {
            if (!instance.wall().is_external(file.path)) return outside(file.path);
            if (seen.insert(file.path).second) all.push_back(std::move(file));
        }
        if (all.size() > files_max) {
            return Status(Code::resource_exhausted, "the patterns match " + std::to_string(all.size()) +
                                                        " files; at once " + std::to_string(files_max) +
                                                        " can be registered")
                .with_hint("register them in parts, by narrower patterns");
        }
    }
    return all;
}

Status for_each_file(Instance &instance, size_t count, const Cancellation &cancellation,
                     const std::function<Status(duckdb::Connection &, size_t)> &work) {
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
    Mutex mutex;
    Status first;
    const auto run = [&] {
        Status status;
        auto connection = instance.connect();
        if (!connection.ok()) status = connection.status();
        while (status.ok() && !failed) {
            const size_t at = next.fetch_add(1);
            if (at >= count) break;
            status = cancellation.reason();
            try {
                if (status.ok()) status = work((*connection)->raw(), at);
            } catch (const std::exception &error) {
                status = instance.error(duckdb::ErrorData(error), "");
            }
        }
        if (!status.ok() && !failed.exchange(true)) {
            MutexLock lock(mutex);
            first = std::move(status);
        }
    };
    {
        std::vector<std::jthread> threads;
        for (size_t i = 1; i < std::min(kThreads, count); i++) threads.emplace_back(run);
        run();
    }
    MutexLock lock(mutex);
    return first;
}

Result<FileVersion> look_at(Instance &instance, duckdb::Connection &connection, const std::string &path) {
    if (!has_scheme(path)) {
        const auto version = version_on_disk(path);
        if (!version) return Status(Code::not_found, "there is no file " + path);
        return *version;
    }
    auto &files = duckdb::FileSystem::GetFileSystem(*connection.context);
    FileVersion version;
    try {
        connection.context->RunFunctionInTransaction([&] {
            const auto handle = files.OpenFile(path, duckdb::FileFlags::FILE_FLAGS_READ);
            version = version_of(handle->file_system, *handle);
        });
    } catch (const std::exception &error) {
        const duckdb::ErrorData data(error);
        const auto status = data.ExtraInfo().find("status_code");
        if (status != data.ExtraInfo().end() && status->second == "404") {
            return Status(Code::not_found, "there is no object " + path);
        }
        return instance.error(data, "");
    }
    if (version.etag.empty()) {
        return Status(Code::failed_precondition,
                      "the store gives no ETag for " + path + ", so a change of it could not be noticed")
            .with_hint("import the file with a copy, without --in-place");
    }
    return version;
}

std::optional<LogicalType> common_type(const LogicalType &a, const LogicalType &b) {
    if (a == b) return a;
    if (const auto integer = common_integer(a.id(), b.id())) return integer;
    if (is_float(a.id()) && is_float(b.id())) return LogicalType::DOUBLE;
    if (a.id() == LogicalTypeId::DECIMAL && b.id() == LogicalTypeId::DECIMAL) return common_decimal(a, b);
    if (is_timestamp(a.id()) && is_timestamp(b.id())) return LogicalType::TIMESTAMP;
    return std::nullopt;
}

Status ForeignColumns::add(const std::string &path, const std::vector<std::string> &names,
                           const std::vector<LogicalType> &types) {
    for (size_t i = 0; i < names.size(); i++) {
        const auto [entry, is_new] = by_name_.try_emplace(duckdb::StringUtil::Lower(names[i]), columns_.size());
        if (is_new) {
            columns_.push_back({names[i], types[i], path});
            continue;
        }
        ForeignColumn &column = columns_[entry->second];
        const auto common = common_type(column.type, types[i]);
        if (!common) {
            return Status(Code::engine_error, "column \"" + column.name + "\" is " + column.type.ToString() + " in " +
                                                  column.from + " and " + types[i].ToString() + " in " + path)
                .with_sqlstate("42804")
                .with_hint(
                    "register the files in tables of their own, or make the table first and import these files "
                    "with a copy");
        }
        if (*common != column.type) column.from = path;
        column.type = *common;
    }
    return Status();
}

Result<bool> ForeignColumns::add_partitions(const std::vector<ForeignFile> &files, std::optional<bool> wanted) {
    if (wanted == false || files.empty()) return false;
    std::map<std::string, std::set<std::string>> values;
    for (const auto &[key, value] : duckdb::HivePartitioning::Parse(files.front().path)) values[key].insert(value);
    for (const ForeignFile &file : files) {
        const auto parts = duckdb::HivePartitioning::Parse(file.path);
        const bool same = parts.size() == values.size() &&
                          std::ranges::all_of(parts, [&](const auto &part) { return values.contains(part.first); });
        if (!same) {
            if (!wanted) return false;
            return Status(Code::engine_error,
                          file.path + " has not the KEY=VALUE parts in its path that " + files.front().path + " has")
                .with_sqlstate("42804");
        }
        for (const auto &[key, value] : parts) values[key].insert(value);
    }
    for (const auto &[key, of_key] : values) {
        const auto [entry, is_new] = by_name_.try_emplace(duckdb::StringUtil::Lower(key), columns_.size());
        const LogicalType type = partition_type(of_key);
        if (is_new) {
            columns_.push_back({key, type, files.front().path});
        } else {
            columns_[entry->second].type = type;  // the path counts, as in DuckDB
        }
    }
    return !values.empty();
}

std::string ForeignColumns::definition() const {
    std::string text;
    for (const ForeignColumn &column : columns_) {
        text += (text.empty() ? "(" : ", ") + quote_identifier(column.name) + " " + column.type.ToString();
    }
    return text + ")";
}

}  // namespace roost
