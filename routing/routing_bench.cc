// What routing takes of a statement, from the names in it to the end of its decision, where 10,000 tables are known and
// warm on eight nodes: names to tables by the mirror, the decision with its reason, its end. `./dev bench` holds it
// against a point query through a pool (bar: 2 %).
#include <benchmark/benchmark.h>

#include "routing/placement_policy.h"
#include "routing/table_uses.h"
#include "routing/warm_units.h"

namespace roost::routing {
namespace {

constexpr uint64_t kTables = 10'000;

std::shared_ptr<const LakeState> lake_of_many() {
    LakeState::Tables tables;
    SegmentPacker packer;
    for (uint64_t id = 1; id <= kTables; ++id) {
        Segment segment;
        segment.data_file_id = id;
        segment.file_size_bytes = 1 << 20;
        segment.path = "f.parquet";
        segment.format = "parquet";
        packer.add_file(id, segment);
    }
    auto segments = packer.take();
    for (uint64_t id = 1; id <= kTables; ++id) {
        auto definition = std::make_shared<TableDefinition>();
        definition->id = id;
        definition->schema_name = "main";
        definition->name = "table_" + std::to_string(id);
        definition->data_path = "s3://bucket/lake/main/" + definition->name + "/";
        auto data = std::make_shared<TableData>();
        data->segments = segments[id];
        auto state = std::make_shared<TableState>();
        state->definition = definition;
        state->data = data;
        tables.push_back(state);
    }
    auto names = std::make_shared<LakeNames>();
    names->schemas = {{0, "", "main", {}, true, ""}};
    LakeSnapshot at;
    at.id = 1;
    return std::make_shared<LakeState>(at, "", false, names, std::move(tables));
}

void BM_route(benchmark::State &state) {
    const auto tables_each = static_cast<size_t>(state.range(0));
    const auto policy = make_policy("affinity");
    ClusterSnapshot cluster;
    for (int i = 0; i < 8; ++i) {
        NodeState node;
        node.id = Uuid::from_name("node " + std::to_string(i));
        node.name = "node-" + std::to_string(i);
        node.weight = 4;
        node.incarnation = 1;
        node.reports_bytes = true;
        cluster.nodes.push_back(node);
    }
    LakeStates states{{"lake", lake_of_many()}};
    WarmUnits warm(policy->directory());
    TableEpochs epochs;
    const ParseView parse = [](const std::string &) -> Result<std::vector<sql::Statement>> {
        return Status(Code::internal, "there are no views");
    };
    std::vector<placement::UnitReport> reports;
    const auto route = [&](uint64_t first) {
        sql::Statement statement;
        for (size_t i = 0; i < tables_each; ++i) {
            statement.reads.push_back({"", "", "table_" + std::to_string((first + i * 37) % kTables + 1)});
        }
        warm.know("lake", states["lake"]);
        const FoundTables found = find_table_uses(statement, {"lake", {}}, states, parse, epochs);
        StatementFeatures features;
        features.tables = found.uses;
        features.reads = statement.reads;
        Decision decision = policy->decide(cluster, features);
        policy->dispatched(decision, cluster.nodes[0]);
        reports.clear();
        for (const auto &part : decision.claim.parts) reports.push_back({part.unit, part.bytes, 1});
        policy->ended(decision, {true, reports, 0});
        benchmark::DoNotOptimize(decision.why.data());
    };
    for (uint64_t i = 0; i < kTables; ++i) route(i);
    uint64_t next = 0;
    for (auto _ : state) route(next = (next * 6364136223846793005u + 1442695040888963407u) % kTables);
    state.counters["units"] = static_cast<double>(policy->directory()->size());
}
BENCHMARK(BM_route)->ArgName("tables")->Arg(1)->Arg(5);

}  // namespace
}  // namespace roost::routing
