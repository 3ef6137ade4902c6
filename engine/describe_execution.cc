#include "duckdb/parser/parser.hpp"
#include "duckdb/planner/planner.hpp"
#include "engine/execution.h"
#include "engine/statement_kinds.h"
#include "engine/stopwatch.h"

namespace roost {

namespace {

// What binding alone says of a statement.
struct Description {
    duckdb::StatementProperties properties;
    duckdb::vector<std::string> names;
    duckdb::vector<duckdb::LogicalType> types;
    std::vector<uint32_t> param_oids;
};

using ParamTypes = std::vector<duckdb::LogicalType>;  // UNKNOWN: not declared

// One bind with the parameters that have a type as NULLs of it. Throws. REQUIRES: an open transaction.
Description bind_statement(duckdb::ClientContext &context, const duckdb::SQLStatement &statement, const ParamTypes &declared,
                           bool &resolved) {
    duckdb::Planner planner(context);
    for (size_t i = 0; i < declared.size(); i++) {
        if (declared[i].id() == duckdb::LogicalTypeId::UNKNOWN) continue;
        // Not as a literal: 'text' declared as text stays text.
        planner.parameter_data.emplace(std::to_string(i + 1),
                                       duckdb::BoundParameterData(duckdb::Value(declared[i]), declared[i]));
    }
    planner.CreatePlan(statement.Copy());
    resolved = planner.properties.bound_all_parameters;
    Description out{planner.properties, planner.names, planner.types, {}};
    for (size_t i = 0; i < declared.size(); i++) {
        const auto inferred = planner.value_map.find(std::to_string(i + 1));
        const bool known = declared[i].id() != duckdb::LogicalTypeId::UNKNOWN;
        const auto &type = known || inferred == planner.value_map.end() ? declared[i] : inferred->second->return_type;
        out.param_oids.push_back(pg_oid_of_param(type));
    }
    return out;
}

ParamTypes declared_types(const duckdb::SQLStatement &statement, const std::vector<uint32_t> &oids) {
    ParamTypes types(statement.named_param_map.size(), duckdb::LogicalType(duckdb::LogicalTypeId::UNKNOWN));
    for (size_t i = 0; i < types.size() && i < oids.size(); i++) {
        duckdb::LogicalType type = type_of_pg_oid(oids[i]);
        if (type.id() != duckdb::LogicalTypeId::SQLNULL) types[i] = std::move(type);
    }
    return types;
}

Result<Description> describe(LakeConnection &connection, const StatementSpec &spec) {
    auto &context = connection.context();
    duckdb::Parser parser(context.GetParserOptions());
    parser.ParseQuery(spec.sql);
    if (parser.statements.size() != 1) return Status(Code::syntax_error, "only one statement can be prepared");
    const auto &statement = *parser.statements.front();
    ROOST_RETURN_IF_ERROR(check_statement_kind(statement, spec.internal));
    ParamTypes types = declared_types(statement, spec.param_oids);
    Description description;
    context.RunFunctionInTransaction([&] {
        bool resolved = false;
        description = bind_statement(context, statement, types, resolved);
        if (resolved) return;
        // As PostgreSQL: what nothing tells the type of is text.
        for (auto &type : types) {
            if (type.id() == duckdb::LogicalTypeId::UNKNOWN) type = duckdb::LogicalType::VARCHAR;
        }
        description = bind_statement(context, statement, types, resolved);
    });
    return description;
}

ResultHeader header_of(const Description &description) {
    ResultHeader header;
    header.param_oids = description.param_oids;
    header.has_grid = description.properties.return_type == duckdb::StatementReturnType::QUERY_RESULT;
    if (!header.has_grid) return header;
    for (size_t i = 0; i < description.types.size(); i++) {
        header.columns.push_back(describe_column(description.names[i], description.types[i]));
    }
    return header;
}

}  // namespace

Result<PlanInfo> DescribeExecution::plan() {
    ROOST_RETURN_IF_ERROR(fail(cancellation_.reason()));
    const Stopwatch watch;
    auto pool = catalog();
    if (!pool.ok()) return fail(pool.status());
    auto instance = (*pool)->small();
    if (!instance.ok()) return fail(instance.status());
    auto connection = (*instance)->connect();
    if (!connection.ok()) return fail(connection.status());
    cancellation_.watch((*connection)->shared_context());
    PlanInfo info{.fits_small = true, .estimated_bytes = 0, .header = {}};
    Status status;
    try {
        (*connection)->apply(spec_.settings);
        (*connection)->begin(true);
        auto description = describe(**connection, spec_);
        status = description.status();
        if (status.ok()) info.header = header_of(*description);
    } catch (const std::exception &error) {
        status = cancellation_.requested() ? cancellation_.reason()
                                           : (*instance)->error(duckdb::ErrorData(error), spec_.sql);
    }
    cancellation_.watch(nullptr);
    (*instance)->give_back(std::move(connection).value());
    completion_.timings.plan_us = watch.elapsed_us();
    if (!status.ok()) return fail(std::move(status));
    return info;
}

Status DescribeExecution::start(const Grant &) { return fail(Status(Code::internal, "a description can't be run")); }

Result<bool> DescribeExecution::step(ResultSink &) { return fail(Status(Code::internal, "a description can't be run")); }

}  // namespace roost
