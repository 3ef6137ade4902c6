#include "duckdb/planner/planner.hpp"
#include "engine/execution.h"
#include "engine/parsed_statement.h"
#include "engine/plan_grants.h"
#include "engine/plan_wall.h"
#include "engine/stopwatch.h"
#include "engine/visible_names.h"

namespace roost {

namespace {

using ParamTypes = std::vector<duckdb::LogicalType>;  // UNKNOWN: not declared

bool is_known(const duckdb::LogicalType &type) {
    return type.IsValid() && type.id() != duckdb::LogicalTypeId::UNKNOWN && type.id() != duckdb::LogicalTypeId::SQLNULL;
}

// What binding alone says of a statement.
struct Description {
    duckdb::StatementProperties properties;
    duckdb::vector<std::string> names;
    duckdb::vector<duckdb::LogicalType> types;
    ParamTypes params;
    Status verdict;
};

// One bind with the parameters that have a type as NULLs of it; the others get what the statement says of them. Throws.
// REQUIRES: an open transaction.
Description bind_statement(duckdb::ClientContext &context, const duckdb::SQLStatement &statement,
                           const ParamTypes &declared, const std::optional<Rights> &rights) {
    duckdb::Planner planner(context);
    for (size_t i = 0; i < declared.size(); i++) {
        if (!is_known(declared[i])) continue;
        // With its type beside: a text value alone would be an untyped literal.
        planner.parameter_data.emplace(std::to_string(i + 1),
                                       duckdb::BoundParameterData(duckdb::Value(declared[i]), declared[i]));
    }
    planner.CreatePlan(statement.Copy());
    Description out{planner.properties, planner.names, planner.types, declared, Status()};
    if (planner.plan) out.verdict = check_bound_plan(*planner.plan);
    if (planner.plan && out.verdict.ok() && rights) out.verdict = check_grants(*planner.plan, *rights);
    for (size_t i = 0; i < declared.size(); i++) {
        const auto inferred = planner.value_map.find(std::to_string(i + 1));
        if (inferred != planner.value_map.end()) out.params[i] = inferred->second->return_type;
    }
    return out;
}

ParamTypes declared_types(const duckdb::SQLStatement &statement, const std::vector<uint32_t> &oids) {
    ParamTypes types(statement.named_param_map.size(), duckdb::LogicalType(duckdb::LogicalTypeId::UNKNOWN));
    for (size_t i = 0; i < types.size() && i < oids.size(); i++) {
        duckdb::LogicalType type = type_of_pg_oid(oids[i]);
        if (is_known(type)) types[i] = std::move(type);
    }
    return types;
}

ResultHeader header_of(const Description &description) {
    ResultHeader header;
    for (const auto &type : description.params) header.param_oids.push_back(pg_oid_of_param(type));
    header.has_grid = description.properties.return_type == duckdb::StatementReturnType::QUERY_RESULT;
    if (!header.has_grid) return header;
    for (size_t i = 0; i < description.types.size(); i++) {
        header.columns.push_back(describe_column(description.names[i], description.types[i]));
    }
    return header;
}

// Throws. REQUIRES: an open transaction.
Result<ResultHeader> bind_on(Instance &instance, LakeConnection &connection, const StatementSpec &spec) {
    auto &context = connection.context();
    set_rights(context, spec.rights);
    ROOST_ASSIGN_OR_RETURN(const auto parsed, parse_statement(connection, spec));
    const bool names_objects = may_name_objects(*parsed, spec.sql);
    if (names_objects) instance.load_schema(connection);
    const duckdb::SQLStatement &statement = *parsed;
    const ParamTypes types = declared_types(statement, spec.param_oids);
    Description description;
    connection.bind(spec.settings, names_objects, [&] {
        description = bind_statement(context, statement, types, spec.rights);
        if (description.properties.bound_all_parameters) return;
        // As PostgreSQL: what nothing tells the type of is text.
        for (auto &type : description.params) {
            if (!is_known(type)) type = duckdb::LogicalType::VARCHAR;
        }
        description = bind_statement(context, statement, description.params, spec.rights);
    });
    if (!spec.internal) {
        ROOST_RETURN_IF_ERROR(description.verdict);
        ROOST_RETURN_IF_ERROR(check_catalogs(description.properties, instance.catalogs()));
    }
    return header_of(description);
}

}  // namespace

Result<ResultHeader> DescribeExecution::describe() {
    ROOST_ASSIGN_OR_RETURN(const auto pool, catalog());
    ROOST_ASSIGN_OR_RETURN(const auto instance, pool->small());
    ROOST_ASSIGN_OR_RETURN(auto connection, instance->connect());
    cancellation_.watch(connection->shared_context());
    auto header = [&]() -> Result<ResultHeader> {
        try {
            connection->apply(spec_.settings);
            connection->begin(true);
            return bind_on(*instance, *connection, spec_);
        } catch (const std::exception &error) {
            return instance->error(duckdb::ErrorData(error), spec_.sql);
        }
    }();
    cancellation_.watch(nullptr);
    instance->give_back(std::move(connection));
    return header;
}

// An open transaction has tables of its own.
Result<ResultHeader> DescribeExecution::describe_in_session() {
    ROOST_ASSIGN_OR_RETURN(const auto pool, catalog());
    const auto session = parts_.sessions.open(spec_.session);
    SessionVisit visit(*session, cancellation_);
    if (!visit.status().ok()) return visit.status();
    ROOST_RETURN_IF_ERROR(visit.fail(visit.ready(spec_, *pool, nullptr, 0)));
    try {
        auto header = bind_on(*session->instance, *session->connection, spec_);
        if (!header.ok()) return visit.fail(header.status());
        return header;
    } catch (const std::exception &error) {
        return visit.fail(session->instance->error(duckdb::ErrorData(error), spec_.sql));
    }
}

Result<PlanInfo> DescribeExecution::plan() {
    ROOST_RETURN_IF_ERROR(fail(cancellation_.reason()));
    const Stopwatch watch;
    auto header = spec_.transaction == TransactionAction::in_session ? describe_in_session() : describe();
    completion_.timings.plan_us = watch.elapsed_us();
    if (!header.ok() && cancellation_.requested()) return fail(cancellation_.reason());
    if (!header.ok() && spec_.rights) {
        return fail(Status(header.status()).with_hint(hint_without_names(header.status())));
    }
    if (!header.ok()) return fail(header.status());
    return PlanInfo{.fits_small = true, .estimated_bytes = 0, .header = std::move(header).value()};
}

Status DescribeExecution::start(const Grant &) { return fail(Status(Code::internal, "a description can't be run")); }

Result<bool> DescribeExecution::step(ResultSink &) {
    return fail(Status(Code::internal, "a description can't be run"));
}

}  // namespace roost
