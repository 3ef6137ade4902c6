#include "engine/running_query.h"

#include <chrono>
#include <thread>

#include "duckdb/execution/executor.hpp"
#include "duckdb/execution/physical_plan_generator.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/main/query_profiler.hpp"
#include "duckdb/optimizer/optimizer.hpp"
#include "duckdb/parser/parsed_data/create_table_info.hpp"
#include "duckdb/parser/statement/create_statement.hpp"
#include "duckdb/planner/planner.hpp"
#include "engine/encode.h"
#include "engine/object_cache.h"
#include "engine/parsed_statement.h"
#include "engine/plan_grants.h"
#include "engine/plan_wall.h"
#include "engine/result_output.h"
#include "engine/stopwatch.h"
#include "engine/visible_names.h"

namespace roost {

namespace {

// What to do while other threads have all the tasks there are: look again at once, then ever less often. DuckDB's own
// loop spins, which takes a core from other statements.
class Idling {
public:
    void worked() { rounds_ = 0; }
    void idle() {
        if (++rounds_ > kSpins) std::this_thread::sleep_for(kNap);
    }

private:
    static constexpr int kSpins = 32;
    static constexpr std::chrono::microseconds kNap{50};
    int rounds_ = 0;
};

// A profile holds the statement's text, and says less the longer it is.
constexpr size_t kProfiledSqlMaxBytes = 64 * 1024;
constexpr size_t kProfileMaxBytes = 256 * 1024;

bool changes_lake(const duckdb::StatementProperties &properties) {
    for (const auto &[database, change] : properties.modified_databases) {
        if (database != TEMP_CATALOG) return true;
    }
    return false;
}

// Leaves nothing in the connection that another session could see.
bool is_plain(duckdb::StatementType type) {
    switch (type) {
        case duckdb::StatementType::SELECT_STATEMENT:
        case duckdb::StatementType::INSERT_STATEMENT:
        case duckdb::StatementType::UPDATE_STATEMENT:
        case duckdb::StatementType::DELETE_STATEMENT:
        case duckdb::StatementType::MERGE_INTO_STATEMENT:
        case duckdb::StatementType::EXPLAIN_STATEMENT:
            return true;
        default:
            return false;
    }
}

// CREATE TABLE … AS tells how many rows it made, though DuckDB's properties call it DDL.
bool is_create_table_as(const duckdb::SQLStatement &statement) {
    if (statement.type != duckdb::StatementType::CREATE_STATEMENT) return false;
    const auto &info = *statement.Cast<duckdb::CreateStatement>().info;
    return info.type == duckdb::CatalogType::TABLE_ENTRY && info.Cast<duckdb::CreateTableInfo>().query != nullptr;
}

// Bytes without a type mean nothing by themselves. Text without one is an untyped literal, which DuckDB fits to its
// place, but for what PostgreSQL writes differently: arrays {…}, bytea \x….
bool needs_type(const Param &param) {
    if (param.pg_oid != 0 || !param.value) return false;
    if (param.form == Param::Form::pg_binary) return true;
    return param.form == Param::Form::pg_text &&
           (param.value->starts_with('{') || param.value->find('\\') != std::string::npos);
}

// What the statement says of its parameters' types, by position; UNKNOWN where it says nothing.
std::vector<duckdb::LogicalType> inferred_types(duckdb::ClientContext &context, const duckdb::SQLStatement &statement,
                                                const std::vector<Param> &params) {
    std::vector<duckdb::LogicalType> types(params.size(), duckdb::LogicalType(duckdb::LogicalTypeId::UNKNOWN));
    if (std::none_of(params.begin(), params.end(), needs_type)) return types;
    duckdb::Planner planner(context);
    planner.CreatePlan(statement.Copy());
    for (size_t i = 0; i < types.size(); i++) {
        const auto found = planner.value_map.find(std::to_string(i + 1));
        if (found != planner.value_map.end() && needs_type(params[i])) types[i] = found->second->return_type;
    }
    return types;
}

// Carries a Status through DuckDB's code that only knows exceptions.
struct Refused {
    Status status;
};

}  // namespace

RunningQuery::RunningQuery(Instance &instance, LakeConnection &connection, Cancellation &cancellation)
    : instance_(instance),
      connection_(connection),
      cancellation_(cancellation),
      reads_(instance.options().cache ? std::make_shared<StatementReads>(instance.options().cache->segments())
                                      : nullptr) {}

RunningQuery::~RunningQuery() { close(); }

Status RunningQuery::failed(const duckdb::ErrorData &error) {
    if (error.Type() == duckdb::ExceptionType::INTERRUPT) {
        if (cancellation_.requested()) return cancellation_.reason();
        // Fetch drops the executor, and with it why another thread of the statement interrupted this one.
        return Status(Code::engine_error, "the statement was ended by an error in one of its threads; run it again");
    }
    if (instance_.options().altered->remember(error, filtered_tables_)) {
        return Status(Code::conflict,
                      "a table of the statement has a column whose type was altered: it has to be run another way")
            .with_name("altered_table")
            .with_hint("run the transaction again")
            .with_retryable(true);
    }
    return instance_.error(error, sql_);
}

Status RunningQuery::prepare(const StatementSpec &spec) {
    set_rights(connection_.context(), spec.rights);
    account();
    Status status = prepare_with_rights(spec);
    // What the engine suggests instead may be hidden from the caller.
    return status.ok() || !spec.rights ? status : std::move(status).with_hint(hint_without_names(status));
}

Status RunningQuery::prepare_with_rights(const StatementSpec &spec) {
    sql_ = spec.sql;
    written_catalog_ = written_catalog(spec);
    auto &context = connection_.context();
    try {
        context.ClearInterrupt();
        cancellation_.renew();
        ROOST_ASSIGN_OR_RETURN(auto statement, parse_statement(connection_, spec));
        if (!is_plain(statement->type)) connection_.spoil();
        creates_table_as_ = is_create_table_as(*statement);
        const bool names_objects = may_name_objects(*statement, sql_);
        if (names_objects) instance_.load_schema(connection_);
        connection_.bind(spec.settings, names_objects, [&] { plan(*statement, spec); });
        if (names_objects) bound_to_ = instance_.schema_versions(connection_);
        for (const std::string &schema : spec.settings.search_path) bound_to_ += "/" + schema;
        data_->unbound_statement = std::move(statement);
    } catch (const Refused &refused) {
        return refused.status;
    } catch (const std::exception &error) {
        return failed(duckdb::ErrorData(error));
    }
    ROOST_RETURN_IF_ERROR(check_catalogs(data_->properties, instance_.catalogs()));
    if (!spec.writes && changes_lake(data_->properties)) {
        return Status(Code::internal, "a statement that changes the lake was sent as one that only reads");
    }
    // The gateway's lease and the commit's mark are for one catalog.
    for (const auto &[name, change] : data_->properties.modified_databases) {
        if (name == TEMP_CATALOG || name == written_catalog(spec)) continue;
        return Status(Code::internal,
                      "a statement that changes " + name + " was sent as one that changes " + written_catalog(spec));
    }
    return cancellation_.reason();
}

// What ClientContext does between PendingQuery and the executor, but apart from it: the plan can be judged before it
// runs.
void RunningQuery::plan(const duckdb::SQLStatement &statement, const StatementSpec &spec) {
    auto &context = connection_.context();
    const std::vector<Param> &params = spec.params;
    const auto types = inferred_types(context, statement, params);
    duckdb::Planner planner(context);
    for (size_t i = 0; i < params.size(); i++) {
        auto value = decode_param(params[i], i, types[i], &context);
        if (!value.ok()) throw Refused{value.status()};
        planner.parameter_data.emplace(std::to_string(i + 1), duckdb::BoundParameterData(std::move(value).value()));
    }
    auto data = duckdb::make_shared_ptr<duckdb::PreparedStatementData>(statement.type);
    planner.CreatePlan(statement.Copy());
    data->properties = planner.properties;
    data->names = planner.names;
    data->types = planner.types;
    if (!planner.plan || !planner.properties.bound_all_parameters || !planner.value_map.empty()) {
        throw Refused{Status(Code::engine_error, "the statement has more parameters than values were given")
                          .with_sqlstate("08P01")};
    }
    // Roost's own statements read uploaded files.
    if (!spec.internal) {
        if (Status verdict = check_bound_plan(*planner.plan); !verdict.ok()) throw Refused{std::move(verdict)};
    }
    if (spec.rights) {
        if (Status verdict = check_grants(*planner.plan, *spec.rights); !verdict.ok())
            throw Refused{std::move(verdict)};
    }
    data->properties.parameter_count = 0;  // the values are constants of the plan
    // It was planned in the transaction it runs in: nothing it was bound to can change, so planning again would only
    // cost time.
    data->properties.always_require_rebind = false;
    auto logical = std::move(planner.plan);
    if (context.config.enable_optimizer && logical->RequireOptimizer()) {
        duckdb::Optimizer optimizer(*planner.binder, context);
        logical = optimizer.Optimize(std::move(logical));
        filtered_tables_ = instance_.options().altered->spare(*logical);
    }
    duckdb::PhysicalPlanGenerator generator(context);
    data->physical_plan = generator.Plan(std::move(logical));
    data_ = std::move(data);
}

ResultShape RunningQuery::shape() const {
    if (creates_table_as_) return ResultShape::changes;
    switch (data_->properties.return_type) {
        case duckdb::StatementReturnType::QUERY_RESULT:
            return ResultShape::grid;
        case duckdb::StatementReturnType::CHANGED_ROWS:
            return ResultShape::changes;
        default:
            return ResultShape::nothing;
    }
}

PlanEstimate RunningQuery::estimate(uint32_t threads) const {
    return estimate_plan(data_->physical_plan->Root(), connection_.context(), {.threads = threads, .text_length = {}});
}

PlanInfo RunningQuery::plan_info(const PlanEstimate &estimate) const {
    PlanInfo info;
    info.estimated_bytes = static_cast<uint64_t>(estimate.peak_bytes);
    info.header = header_of(*this);
    info.bound_to = bound_to_;
    for (const PlanEstimate::Table &table : estimate.tables) {
        const std::string &catalog = table.catalog.empty() ? written_catalog_ : table.catalog;
        info.tables.push_back(
            {.name = catalog + "." + table.table, .rows = static_cast<uint64_t>(table.rows), .written = table.written});
    }
    return info;
}

void RunningQuery::sample_memory() {
    const Instance::MemoryUse now = instance_.memory_use();
    if (now.held_bytes > idle_.held_bytes) peak_bytes_ = std::max(peak_bytes_, now.held_bytes - idle_.held_bytes);
    if (now.spilled_bytes > idle_.spilled_bytes) {
        spilled_bytes_ = std::max(spilled_bytes_, now.spilled_bytes - idle_.spilled_bytes);
    }
}

Status RunningQuery::start(Watch watch) {
    account();
    idle_ = instance_.memory_use();
    try {
        if (reads_) note_files(data_->physical_plan->Root(), reads_->files_ahead());
    } catch (const std::exception &error) {
        return failed(duckdb::ErrorData(error));
    }
    watch_ = sql_.size() > kProfiledSqlMaxBytes ? Watch::not_at_all : watch;
    auto &config = connection_.context().config;
    config.enable_profiler = watch_ == Watch::closely;
    config.emit_profiler_output = false;
    config.enable_progress_bar = watch_ == Watch::closely;
    config.print_progress_bar = false;
    config.wait_time = 0;
    duckdb::PendingQueryParameters parameters;
    parameters.query_parameters.output_type = duckdb::QueryResultOutputType::ALLOW_STREAMING;
    parameters.query_parameters.memory_type = duckdb::QueryResultMemoryType::BUFFER_MANAGED;
    try {
        pending_ = connection_.context().PendingQuery(sql_, data_, parameters);
    } catch (const std::exception &error) {
        return failed(duckdb::ErrorData(error));
    }
    if (pending_->HasError()) return failed(pending_->GetErrorObject());
    active_ = true;
    cancellation_.renew();
    return Status();
}

Status RunningQuery::run_to_first_chunk() {
    Idling idling;
    for (;;) {
        if (cancellation_.requested()) return cancellation_.reason();
        const auto state = pending_->ExecuteTask();
        if (duckdb::PendingQueryResult::IsResultReady(state)) break;
        if (state == duckdb::PendingExecutionResult::BLOCKED) {
            pending_->WaitForTask();
        } else if (state == duckdb::PendingExecutionResult::NO_TASKS_AVAILABLE) {
            idling.idle();
        } else {
            idling.worked();
            sample_memory();
        }
    }
    if (pending_->HasError()) {
        active_ = false;  // DuckDB ended it
        return failed(pending_->GetErrorObject());
    }
    result_ = pending_->Execute();
    active_ = result_->type == duckdb::QueryResultType::STREAM_RESULT && !result_->HasError();
    if (result_->HasError()) return failed(result_->GetErrorObject());
    return Status();
}

// One step of the executor. A thread that fails interrupts the others, and the stream says only that: the executor
// knows why.
duckdb::StreamExecutionResult RunningQuery::execute_task(duckdb::StreamQueryResult &stream) {
    try {
        return stream.ExecuteTask();
    } catch (const std::exception &error) {
        if (duckdb::ErrorData(error).Type() != duckdb::ExceptionType::INTERRUPT || cancellation_.requested()) throw;
        auto &executor = connection_.context().GetExecutor();
        if (executor.HasError()) executor.ThrowException();
        throw;
    }
}

// Until Fetch has a chunk to give, or the end.
void RunningQuery::wait_for_chunk(duckdb::StreamQueryResult &stream) {
    using duckdb::StreamExecutionResult;
    Idling idling;
    while (!cancellation_.requested()) {
        const Stopwatch watch;
        const auto state = execute_task(stream);
        if (duckdb::StreamQueryResult::IsChunkReady(state)) break;
        if (state == StreamExecutionResult::BLOCKED) {
            stream.WaitForTask();
        } else if (watch.elapsed_us() == 0) {
            idling.idle();  // it found nothing to do; it does not say so
        } else {
            idling.worked();
            sample_memory();
        }
    }
}

Result<duckdb::unique_ptr<duckdb::DataChunk>> RunningQuery::next() {
    if (abandoned_) {
        return Status(Code::failed_precondition, "the result ended with the transaction it belongs to")
            .with_sqlstate("34000");
    }
    if (ended_) return duckdb::unique_ptr<duckdb::DataChunk>();
    account();
    try {
        if (!result_) ROOST_RETURN_IF_ERROR(run_to_first_chunk());
        if (active_) wait_for_chunk(static_cast<duckdb::StreamQueryResult &>(*result_));
        if (cancellation_.requested()) return cancellation_.reason();
        // Fetch would speak of a closed result.
        auto chunk = result_->HasError() ? nullptr : result_->Fetch();
        sample_memory();
        if (result_->HasError()) {
            active_ = false;
            return failed(result_->GetErrorObject());
        }
        if (!chunk) end();
        return chunk;
    } catch (const std::exception &error) {
        return failed(duckdb::ErrorData(error));
    }
}

void RunningQuery::end() {
    active_ = false;
    ended_ = true;
    if (watch_ != Watch::closely) return;
    profile_json_ = duckdb::QueryProfiler::Get(connection_.context()).ToJSON();
    if (profile_json_.size() > kProfileMaxBytes) profile_json_.clear();
}

void RunningQuery::close() {
    result_.reset();
    pending_.reset();
    if (active_) {
        active_ = false;
        try {
            connection_.context().Interrupt();  // its other threads stop sooner
            connection_.context().CancelTransaction();
        } catch (const std::exception &) {
            // The transaction is rolled back next, which reports what is wrong with it.
            connection_.spoil();
        }
    }
    drop_plan();
}

// What operators hold of a run goes with the plan, and looks at the connection as it goes.
void RunningQuery::drop_plan() {
    if (data_) data_->physical_plan.reset();
}

void RunningQuery::abandon() {
    close();
    abandoned_ = true;
}

}  // namespace roost
