#include "engine/lake_connection.h"

#include "base/wall.h"
#include "duckdb/catalog/catalog_search_path.hpp"
#include "duckdb/execution/operator/helper/physical_set.hpp"
#include "duckdb/main/client_config.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/main/client_data.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/transaction/meta_transaction.hpp"
#include "engine/failed_commit.h"
#include "engine/variables.h"

namespace roost {

LakeConnection::LakeConnection(duckdb::DatabaseInstance &database) : connection_(database) {
    auto &config = duckdb::ClientConfig::GetConfig(context());
    config.use_replacement_scans = !stands(Wall::replacement_scans);
    mark_as_ours(context());
}

LakeConnection::~LakeConnection() { rollback(); }

void LakeConnection::apply(const StatementSettings &settings) {
    if (search_path_ != settings.search_path || catalog_ != settings.catalog) {
        apply_search_path(settings);
        search_path_ = settings.search_path;
        catalog_ = settings.catalog;
    }
    if (time_zone_ != settings.time_zone) {
        apply_time_zone(settings.time_zone);
        time_zone_ = settings.time_zone;
    }
    if (variables_ != settings.variables) {
        apply_variables(settings.variables);
        variables_ = settings.variables;
    }
}

void LakeConnection::apply_variables(const std::map<std::string, std::string> &variables) {
    auto &held = duckdb::ClientConfig::GetConfig(context());
    held.user_variables.clear();
    for (const auto &[name, value] : variables) held.user_variables[name] = read_variable(value);
}

void LakeConnection::apply_search_path(const StatementSettings &settings) {
    duckdb::vector<duckdb::CatalogSearchEntry> entries;
    for (const auto &schema : settings.search_path) {
        if (!schema.empty()) entries.emplace_back(settings.catalog, schema);
    }
    if (entries.empty()) entries.emplace_back(settings.catalog, "main");
    duckdb::ClientData::Get(context()).catalog_search_path->Set(std::move(entries),
                                                                duckdb::CatalogSetPathType::SET_DIRECTLY);
}

void LakeConnection::bind(const StatementSettings &settings, bool names_objects, const std::function<void()> &work) {
    if (!names_objects) {
        search_path_.reset();  // apply() sets it again
        duckdb::ClientData::Get(context()).catalog_search_path->Set(
            duckdb::CatalogSearchEntry(SYSTEM_CATALOG, DEFAULT_SCHEMA), duckdb::CatalogSetPathType::SET_DIRECTLY);
        try {
            context().RunFunctionInTransaction(work);
            return;
        } catch (const std::exception &error) {
            // A missing name may be a macro or a type of the lake; or it is missing there too and says so again.
            const duckdb::ExceptionType type = duckdb::ErrorData(error).Type();
            if (type != duckdb::ExceptionType::CATALOG && type != duckdb::ExceptionType::BINDER) throw;
        }
        apply(settings);
    }
    context().RunFunctionInTransaction(work);
}

void LakeConnection::apply_time_zone(const std::string &time_zone) {
    duckdb::ExtensionOption option;
    if (!duckdb::DBConfig::GetConfig(context()).TryGetExtensionOption("TimeZone", option)) {
        throw duckdb::InternalException("the engine has no time zones");
    }
    try {
        duckdb::PhysicalSet::SetExtensionVariable(context(), option, "TimeZone", duckdb::SetScope::SESSION,
                                                  duckdb::Value(time_zone));
    } catch (const duckdb::NotImplementedException &) {
        throw duckdb::InvalidInputException("unrecognized time zone \"" + time_zone + "\"");
    }
}

void LakeConnection::begin(bool read_only) {
    auto &transaction = context().transaction;
    began_ = std::chrono::steady_clock::now();
    transaction.SetAutoCommit(false);  // begins one
    if (read_only) transaction.SetReadOnly();
}

std::chrono::milliseconds LakeConnection::age() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began_);
}

void LakeConnection::commit(const std::string &catalog, CommitGate &gate) {
    context().CancelTransaction();  // ends an open stream, whatever its name says
    auto &transaction = context().transaction;
    if (duckdb::ValidChecker::IsInvalidated(transaction.ActiveTransaction())) {
        transaction.Rollback(nullptr);
        throw duckdb::TransactionException("current transaction is aborted");
    }
    FailedCommit failed(context(), catalog);
    std::shared_lock committing(gate.commits, std::defer_lock);
    {
        const std::scoped_lock turn(gate.turn);
        committing.lock();
    }
    try {
        transaction.Commit();
    } catch (...) {
        committing.unlock();
        const std::scoped_lock turn(gate.turn);
        const std::unique_lock alone(gate.commits);
        left_behind_ = !failed.let_go();
        throw;
    }
}

void LakeConnection::rollback() noexcept {
    if (!in_transaction()) return;
    try {
        context().CancelTransaction();  // ends an open stream, whatever its name says
        if (in_transaction()) context().transaction.Rollback(nullptr);
    } catch (const std::exception &) {
        // The transaction is gone either way; what it left in memory goes with the connection.
        spoiled_ = true;
    }
}

bool LakeConnection::in_transaction() { return context().transaction.HasActiveTransaction(); }

}  // namespace roost
