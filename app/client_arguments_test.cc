#include "app/client_arguments.h"

#include <gtest/gtest.h>

namespace roost::app {
namespace {

// The arguments; fails the test when they are help or an error.
template <class T>
T taken(const Parsed<T> &parsed) {
    EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
    if (!parsed.ok() || !std::holds_alternative<T>(*parsed)) {
        ADD_FAILURE() << "no arguments";
        return T();
    }
    return std::get<T>(*parsed);
}

template <class T>
std::string refused(const Parsed<T> &parsed) {
    if (parsed.ok()) return "accepted";
    EXPECT_EQ(parsed.status().code(), Code::invalid_argument);
    return parsed.status().message() + " | " + parsed.status().error().hint;
}

TEST(ClientArguments, Sql) {
    const auto arguments = taken(parse_sql_arguments(
        {"-c", "select 1", "--command", "-- comment\nselect -1", "--format=json", "--dir", "d", "--timeout", "1.5"}));
    EXPECT_EQ(arguments.commands, (std::vector<std::string>{"select 1", "-- comment\nselect -1"}));
    EXPECT_EQ(arguments.format, OutputFormat::json);
    EXPECT_EQ(arguments.pool.dir, "d");
    EXPECT_EQ(arguments.workspace, "main");
    EXPECT_EQ(arguments.timeout_s, 1.5);
    EXPECT_EQ(taken(parse_sql_arguments({"-f", "-"})).file, "-");
    EXPECT_TRUE(taken(parse_sql_arguments({})).commands.empty());
}

TEST(ClientArguments, MistakesAreNamedWithAGuess) {
    EXPECT_EQ(refused(parse_sql_arguments({"--comand", "x"})), "unknown flag --comand | did you mean --command?");
    EXPECT_EQ(refused(parse_sql_arguments({"--formt=csv"})), "unknown flag --formt=csv | did you mean --format?");
    EXPECT_EQ(refused(parse_nodes_arguments({"--xyzzy"})), "unknown flag --xyzzy | roost nodes --help lists them");
    EXPECT_EQ(refused(parse_nodes_arguments({"drain", "n", "extra"})),
              "unexpected argument 'extra' | roost nodes --help explains what it takes");
    EXPECT_NE(refused(parse_nodes_arguments({"drown", "n"})).find("drain"), std::string::npos);
    EXPECT_EQ(refused(parse_nodes_arguments({"set-profile", "n"})),
              "which profile shall n have? | auto, single, equal_2, decaying_2 or decaying_3");
    EXPECT_EQ(refused(parse_nodes_arguments({"drain"})), "which node shall I drain? | `roost nodes` lists their names");
    EXPECT_NE(refused(parse_sql_arguments({"--format", "xml"})).find("table, csv or json"), std::string::npos);
    EXPECT_NE(refused(parse_sql_arguments({"-c", "x", "-f", "y"})).find("exclude each other"), std::string::npos);
    EXPECT_NE(refused(parse_sql_arguments({"--timeout", "soon"})).find("--timeout"), std::string::npos);
    EXPECT_NE(refused(parse_sql_arguments({"-c"})).find("-c"), std::string::npos);
}

TEST(ClientArguments, Import) {
    const auto arguments = taken(parse_import_arguments({"a.csv", "--into", "s.t", "b/*.parquet", "-q"}));
    EXPECT_EQ(arguments.files, (std::vector<std::string>{"a.csv", "b/*.parquet"}));
    EXPECT_EQ(arguments.into, "s.t");
    EXPECT_TRUE(arguments.quiet);
    EXPECT_NE(refused(parse_import_arguments({"a.csv"})).find("--into"), std::string::npos);
    EXPECT_NE(refused(parse_import_arguments({"--into", "t"})).find("FILE"), std::string::npos);
}

TEST(ClientArguments, ExplainRouteTakesOneStatement) {
    EXPECT_EQ(taken(parse_explain_route_arguments({"select 1"})).sql, "select 1");
    EXPECT_NE(refused(parse_explain_route_arguments({})).find("SQL"), std::string::npos);
}

TEST(ClientArguments, PlacementAndCacheTakeATable) {
    EXPECT_EQ(taken(parse_placement_arguments({})).table, "");
    EXPECT_EQ(taken(parse_placement_arguments({"sales.t", "--workspace", "w"})).table, "sales.t");
    EXPECT_EQ(taken(parse_cache_arguments({})).action, "");
    const auto arguments = taken(parse_cache_arguments({"warm", "t", "--node", "node-2"}));
    EXPECT_EQ(arguments.action + " " + arguments.table + " " + arguments.node, "warm t node-2");
    EXPECT_NE(refused(parse_cache_arguments({"evict"})).find("needs a TABLE"), std::string::npos);
    EXPECT_NE(refused(parse_cache_arguments({"burn", "t"})).find("burn"), std::string::npos);
}

TEST(ClientArguments, ConfigPassesFlagsOn) {
    const auto arguments = taken(parse_config_arguments({"gateway", "--json", "--http", "x:1", "up"}));
    EXPECT_EQ(arguments.command, config::Command::gateway);
    EXPECT_TRUE(arguments.json);
    EXPECT_EQ(arguments.flags, (std::vector<std::string>{"--http", "x:1", "up"}));
}

TEST(SimAdmission, units_of_the_flags_become_those_of_the_model) {
    const auto parsed = parse_sim_admission_arguments({"--profiles", "auto,none", "--memory-mib", "4096", "--seconds",
                                                       "2.5", "--admission-wait-s", "0", "--no-feedback"});
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const auto &command = std::get<sim::AdmissionCommand>(*parsed);
    EXPECT_EQ(command.profiles, (std::vector<std::string>{"auto", "none"}));
    EXPECT_EQ(command.node.memory_bytes, uint64_t{4} << 30);
    EXPECT_EQ(command.workload.duration_us, 2'500'000);
    EXPECT_EQ(command.node.admission_wait_us, 0);
    EXPECT_FALSE(command.node.feedback);
    EXPECT_FALSE(parse_sim_admission_arguments({"--memory-mib", "1"}).ok());
    EXPECT_FALSE(parse_sim_admission_arguments({"--floor-fraction", "2"}).ok());
}

TEST(ClientArguments, SimPlacement) {
    const auto parsed = parse_sim_placement_arguments({"--weights", "16,16,8", "--in-flight", "1,8", "--policies",
                                                       "seed", "--change", "join@100:0:16,die@200:2", "--trace", "t"});
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const auto &command = std::get<sim::SimCommand>(*parsed);
    EXPECT_EQ(command.pool.weights, (std::vector<uint32_t>{16, 16, 8}));
    EXPECT_EQ(command.in_flight, (std::vector<uint32_t>{1, 8}));
    EXPECT_EQ(command.policies, std::vector<std::string>{"seed"});
    ASSERT_EQ(command.plan.changes.size(), 2u);
    EXPECT_EQ(command.plan.changes[1].node, 2u);
    EXPECT_EQ(command.plan.warmup_statements, 0u) << "a trace is measured whole";
    EXPECT_FALSE(parse_sim_placement_arguments({"--weights", "0"}).ok());
    EXPECT_FALSE(parse_sim_placement_arguments({"--change", "explode@1"}).ok());
    EXPECT_FALSE(parse_sim_placement_arguments({"--cap-c", "0.5"}).ok());
}

TEST(ClientArguments, HelpComesBackAsText) {
    const auto parsed = parse_import_arguments({"--help"});
    ASSERT_TRUE(parsed.ok());
    ASSERT_TRUE(std::holds_alternative<HelpText>(*parsed));
    EXPECT_NE(std::get<HelpText>(*parsed).text.find("--into"), std::string::npos);
}

}  // namespace
}  // namespace roost::app
