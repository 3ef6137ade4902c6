#include "config/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "config/settings_file.h"

namespace roost::config {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(Variables variables) {
    return [variables = std::move(variables)](const std::string &name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
}

Result<Settings> load_with(const std::vector<std::string> &flags, const Variables &variables = {},
                           Command command = Command::up) {
    return load(command, flags, environment_of(variables), "");
}

std::string error_of(const Result<Settings> &result) { return result.ok() ? "" : result.status().to_string(); }

class SettingsFile : public testing::Test {
protected:
    SettingsFile() {
        std::string pattern = testing::TempDir() + "roost_config_XXXXXX";
        dir_ = mkdtemp(pattern.data());
        path_ = dir_ + "/roost.toml";
    }
    ~SettingsFile() override { std::filesystem::remove_all(dir_); }

    Result<Settings> load_text(const std::string &text, const std::vector<std::string> &flags = {},
                               const Variables &variables = {}) {
        std::ofstream(path_) << text;
        return load(Command::up, flags, environment_of(variables), path_);
    }

    std::string dir_, path_;
};

TEST(SettingsTable, names_flags_and_variables_follow_one_rule_and_are_unique) {
    std::set<std::string> names;
    for (const Setting &setting : all_settings()) {
        EXPECT_EQ(setting.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
            << setting.name;
        EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
        EXPECT_NE(setting.commands, 0) << setting.name;
        EXPECT_GT(setting.meaning.size(), 10U) << setting.name;
        EXPECT_NE(setting.meaning.back(), '.') << setting.name;
        EXPECT_FALSE(setting.form.empty()) << setting.name;
        EXPECT_EQ(setting.flag().empty(), setting.secret) << setting.name;
    }
    const auto &table = all_settings();
    const auto memory = std::find_if(table.begin(), table.end(), [](const auto &s) { return s.name == "node_memory"; });
    ASSERT_NE(memory, table.end());
    EXPECT_EQ(memory->flag(), "--node-memory");
    EXPECT_EQ(memory->variable(), "ROOST_NODE_MEMORY");
}

TEST(SettingsTable, every_default_is_a_value_that_its_setting_takes_and_every_value_reads_back) {
    const auto settings = load_with({});
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    for (const Setting &setting : all_settings()) {
        const std::string text = setting.get(*settings);
        Settings again = *settings;
        const Status status = setting.set(again, text);
        EXPECT_TRUE(status.ok()) << setting.name << " = " << text << ": " << status.to_string();
        EXPECT_EQ(setting.get(again), text) << setting.name;
    }
}

TEST(Load, defaults_are_those_that_are_documented) {
    const auto settings = load_with({});
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    EXPECT_EQ(settings->dir, ".roost");
    EXPECT_EQ(settings->nodes, 3U);
    EXPECT_EQ(settings->node_memory_bytes, uint64_t{2} << 30);
    EXPECT_EQ(settings->http.to_string(), "127.0.0.1:8080");
    EXPECT_EQ(settings->pg.to_string(), "127.0.0.1:5433");
    EXPECT_EQ(settings->sample.to_string(), "tpch:0.1");
    EXPECT_EQ(settings->routing, "auto");
    EXPECT_EQ(settings->heartbeat_ms, 5'000);
    EXPECT_EQ(settings->node_drop_ms, 30'000);
    EXPECT_EQ(settings->statement_timeout_ms, 600'000);
    EXPECT_EQ(settings->admission_wait_ms, 300'000);
    EXPECT_EQ(settings->session_idle_timeout_ms, 900'000);
    EXPECT_EQ(settings->session_life_ms, 14'400'000);
    EXPECT_EQ(settings->idle_transaction_timeout_ms, 60'000);
    EXPECT_EQ(settings->result_retention_ms, 86'400'000);
    EXPECT_EQ(settings->page_rows, 200U);
    EXPECT_EQ(settings->page_rows_max, 1'000U);
    EXPECT_EQ(settings->sql_text_max_bytes, 16U << 20);
    EXPECT_EQ(settings->message_max_bytes, 64U << 20);
    EXPECT_EQ(settings->inline_result_max_bytes, 64U << 10);
    EXPECT_EQ(settings->node_queue_max, 100U);
    EXPECT_EQ(settings->gateway_connections_max, 10'000U);
    EXPECT_EQ(settings->admission_profile, "equal_2");
    EXPECT_EQ(settings->session_max_bucket_fraction, 0.3333);
    EXPECT_EQ(settings->grant_feedback_enabled, "true");
    EXPECT_EQ(settings->grant_feedback_safety_multiplier, 1.25);
    EXPECT_FALSE(settings->join.has_value());
    EXPECT_TRUE(settings->is_default("http"));
    EXPECT_EQ(settings->sources.at("http").where, "default");
}

TEST(Load, places_follow_the_directory_unless_they_are_given) {
    const auto settings = load_with({"--dir", "/srv/r", "--meta", "sqlite:/other/meta.sqlite"});
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    EXPECT_EQ(settings->store.to_string(), "/srv/r/lake");
    EXPECT_EQ(settings->catalog.to_string(), "sqlite:/srv/r/catalog/lake.sqlite");
    EXPECT_EQ(settings->listen.to_string(), "unix:/srv/r/gateway.sock");
    EXPECT_EQ(settings->meta.to_string(), "sqlite:/other/meta.sqlite");
}

TEST(Load, a_directory_whose_name_looks_like_the_placeholder_is_taken_as_it_is) {
    const auto settings = load_with({"--dir", "/srv/{dir}"});
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    EXPECT_EQ(settings->store.to_string(), "/srv/{dir}/lake");
    EXPECT_EQ(load_with({"--ready-file", "{dir}/ready"})->ready_file, "{dir}/ready");
}

TEST_F(SettingsFile, flag_beats_variable_beats_file_beats_default_and_each_remembers_its_source) {
    const std::string text = "# settings\nhttp = \"127.0.0.1:1\"\npg = \"127.0.0.1:2\"\nnodes = 5\n";
    const auto settings =
        load_text(text, {"--http", "127.0.0.1:3"}, {{"ROOST_HTTP", "127.0.0.1:4"}, {"ROOST_PG", "127.0.0.1:5"}});
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    EXPECT_EQ(settings->http.port, 3);
    EXPECT_EQ(settings->pg.port, 5);
    EXPECT_EQ(settings->nodes, 5U);
    EXPECT_EQ(settings->sources.at("http").where, "--http");
    EXPECT_EQ(settings->sources.at("pg").where, "ROOST_PG");
    EXPECT_EQ(settings->sources.at("nodes").where, path_ + ":4");
    EXPECT_EQ(settings->sources.at("nodes").kind, Source::Kind::file);
    EXPECT_TRUE(settings->is_default("routing"));
    EXPECT_FALSE(settings->is_default("nodes"));
}

TEST_F(SettingsFile, a_better_source_hides_a_bad_value_of_a_worse_one) {
    EXPECT_TRUE(load_text("nodes = \"many\"\n", {"--nodes", "2"}).ok());
}

TEST_F(SettingsFile, numbers_and_strings_are_both_taken) {
    const auto settings =
        load_text("node_memory = 4294967296\nheartbeat_ms = 1000\nnode_drop_ms = \"10s\"\nnode_cpus = \"auto\"\n");
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    EXPECT_EQ(settings->node_memory_bytes, uint64_t{4} << 30);
    EXPECT_EQ(settings->heartbeat_ms, 1'000);
    EXPECT_EQ(settings->node_drop_ms, 10'000);
}

TEST_F(SettingsFile, errors_name_the_line_and_what_was_meant) {
    EXPECT_EQ(load_text("\n\nnode_memroy = \"1GiB\"\n").status().to_string(),
              "unprocessable_content: " + path_ + ":3: unknown setting 'node_memroy' (did you mean node_memory?)");
    EXPECT_NE(error_of(load_text("nodes = 3\nhttp = \"nowhere\"\n")).find(path_ + ":2"), std::string::npos);
    EXPECT_NE(error_of(load_text("nodes = [1, 2]\n")).find(path_ + ":1"), std::string::npos);
    EXPECT_NE(
        error_of(load_text("nodes = 3\n\n[gateway]\nhttp = \"x\"\n")).find(":3: unknown section or table 'gateway'"),
        std::string::npos);
    EXPECT_NE(error_of(load_text("nodes = 3\n[:x]\n")).find(path_ + ":2"), std::string::npos);
    EXPECT_NE(error_of(load_text("nodes = 3\n\uFE7Fi\n")).find(path_ + ":2"), std::string::npos);
    EXPECT_NE(error_of(load_text("nodes = = 3\n")).find(path_ + ":1"), std::string::npos);
    EXPECT_NE(error_of(load_text("nodes = 3\nnodes = 4\n")).find(path_ + ":2"), std::string::npos);
    EXPECT_NE(error_of(load_text("config = \"other.toml\"\n")).find("can't be set in a file"), std::string::npos);
}

TEST_F(SettingsFile, a_named_file_must_be_there_and_the_default_one_need_not) {
    EXPECT_TRUE(load(Command::up, {}, environment_of({}), dir_ + "/none.toml").ok());
    EXPECT_NE(error_of(load_with({"--config", dir_ + "/none.toml"})).find("No such file"), std::string::npos);
    std::ofstream(path_) << "nodes = 7\n";
    EXPECT_EQ(load_with({"--config", path_})->nodes, 7U);
    EXPECT_EQ(load_with({}, {{"ROOST_CONFIG", path_}})->nodes, 7U);
    EXPECT_FALSE(load_with({"--config", dir_}).ok());
    std::ofstream(path_) << std::string(2 << 20, '#');
    EXPECT_NE(error_of(load_with({"--config", path_})).find("larger than 1 MiB"), std::string::npos);
}

TEST(Load, flags_take_both_forms_and_the_last_one_counts) {
    const auto settings = load_with({"--nodes=4", "--http", "127.0.0.1:0", "--nodes", "5"});
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    EXPECT_EQ(settings->nodes, 5U);
    EXPECT_EQ(settings->http.port, 0);
    EXPECT_EQ(load_with({"--ready-file=a=b"})->ready_file, "a=b");
    EXPECT_EQ(load_with({"--ready-file="})->ready_file, "");
}

TEST(Load, bad_flags_are_refused_with_what_was_meant) {
    EXPECT_NE(error_of(load_with({"--node-memroy", "1GiB"})).find("did you mean --node-memory?"), std::string::npos);
    EXPECT_NE(error_of(load_with({"--nodes"})).find("--nodes needs a value"), std::string::npos);
    EXPECT_NE(error_of(load_with({"nodes=3"})).find("is not a flag"), std::string::npos);
    EXPECT_NE(error_of(load_with({"--"})).find("is not a flag"), std::string::npos);
    EXPECT_NE(error_of(load_with({"--join", "http://h:1"})).find("not a flag of this command"), std::string::npos);
    EXPECT_NE(error_of(load_with({"--nodes", "0"})).find("--nodes: '0' is out of range"), std::string::npos);
    EXPECT_NE(error_of(load_with({"--s3-secret-access-key", "x"})).find("unknown flag"), std::string::npos);
}

TEST(Load, bad_variables_are_named_and_empty_ones_are_not_set) {
    EXPECT_NE(
        error_of(load_with({}, {{"ROOST_NODES", "x"}})).find("nodes (from ROOST_NODES): 'x' is not a whole number"),
        std::string::npos);
    EXPECT_EQ(load_with({}, {{"ROOST_NODES", ""}})->nodes, 3U);
    // A variable of a setting that the command does not take is not looked at.
    EXPECT_TRUE(load_with({}, {{"ROOST_JOIN", "nonsense"}}).ok());
}

TEST(Load, the_object_store_takes_the_usual_variables_and_its_own_first) {
    const auto settings = load_with({}, {{"AWS_ACCESS_KEY_ID", "key"},
                                         {"AWS_SECRET_ACCESS_KEY", "secret"},
                                         {"AWS_DEFAULT_REGION", "eu-west-1"},
                                         {"AWS_REGION", "eu-central-1"},
                                         {"AWS_ENDPOINT_URL", "http://localhost:9000"},
                                         {"ROOST_S3_ENDPOINT", "http://localhost:9001"}});
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    EXPECT_EQ(settings->s3_access_key_id, "key");
    EXPECT_EQ(settings->s3_secret_access_key, "secret");
    EXPECT_EQ(settings->s3_region, "eu-central-1");
    EXPECT_EQ(settings->s3_endpoint, "http://localhost:9001");
    EXPECT_NE(error_of(load_with({}, {{"AWS_ACCESS_KEY_ID", "key"}})).find("belong together"), std::string::npos);
}

TEST(Load, settings_that_contradict_each_other_are_refused) {
    EXPECT_NE(error_of(load_with({"--heartbeat-ms", "20s"})).find("at least twice"), std::string::npos);
    EXPECT_FALSE(load_with({"--page-rows", "300", "--page-rows-max", "200"}).ok());
    EXPECT_FALSE(load_with({"--sql-text-max-bytes", "64MiB", "--message-max-bytes", "1MiB"}).ok());
    EXPECT_FALSE(load_with({"--dir", ""}).ok());
}

TEST(Load, a_node_needs_its_gateway_its_token_and_its_directory) {
    const std::vector<std::string> flags = {"--join", "http://gateway:7000", "--token-file", "t", "--dir", "d"};
    const auto settings = load_with(flags, {}, Command::node);
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    EXPECT_EQ(settings->join->port, 7000);
    EXPECT_EQ(settings->cpus, 0U);
    EXPECT_EQ(settings->memory_bytes, 0U);
    EXPECT_EQ(settings->pool, "default");
    for (size_t i = 0; i < flags.size(); i += 2) {
        std::vector<std::string> fewer = flags;
        fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i), fewer.begin() + static_cast<ptrdiff_t>(i) + 2);
        EXPECT_NE(error_of(load_with(fewer, {}, Command::node)).find("needs " + flags[i]), std::string::npos)
            << flags[i];
    }
    EXPECT_FALSE(load_with({"--pool", "Default!"}, {}, Command::any).ok());
    EXPECT_FALSE(load_with({"--http", "127.0.0.1:1"}, {}, Command::node).ok());
}

TEST(Children, get_the_same_settings_through_their_environment) {
    const Variables variables = {
        {"AWS_ACCESS_KEY_ID", "key"}, {"AWS_SECRET_ACCESS_KEY", "secret"}, {"ROOST_LOG_LEVEL", "debug"}};
    const auto parent = load_with({"--dir", "/srv/r", "--nodes", "2", "--http", "[::1]:0", "--catalog",
                                   "postgres:host=h password=p", "--heartbeat-ms", "250", "--node-memory", "1.5GiB"},
                                  variables);
    ASSERT_TRUE(parent.ok()) << error_of(parent);
    const auto handed = variables_of(*parent, Command::gateway);
    const auto child = load_with({}, Variables(handed.begin(), handed.end()), Command::gateway);
    ASSERT_TRUE(child.ok()) << error_of(child);
    for (const Setting &setting : all_settings()) {
        if (!setting.takes(Command::gateway)) continue;
        EXPECT_EQ(setting.get(*child), setting.get(*parent)) << setting.name;
    }
    for (const auto &[name, value] : handed) EXPECT_NE(name, "ROOST_NODES");
}

TEST(Printing, text_and_json_show_value_source_and_meaning_and_no_secret) {
    const auto settings = load_with({"--meta", "postgres:host=h password=hunter2", "--nodes", "2"},
                                    {{"AWS_ACCESS_KEY_ID", "key-id"}, {"AWS_SECRET_ACCESS_KEY", "hunter3"}});
    ASSERT_TRUE(settings.ok()) << error_of(settings);
    const std::string text = print_text(*settings, Command::up);
    const std::string json_text = print_json(*settings, Command::up);
    for (const std::string &out : {text, json_text}) {
        EXPECT_EQ(out.find("hunter"), std::string::npos);
        EXPECT_EQ(out.find("key-id"), std::string::npos);
        EXPECT_NE(out.find("password=***"), std::string::npos);
        EXPECT_EQ(out.find("token_file"), std::string::npos) << "not a setting of up";
    }
    EXPECT_NE(text.find("AWS_SECRET_ACCESS_KEY"), std::string::npos);
    const auto json = nlohmann::json::parse(json_text);
    const auto nodes = std::find_if(json.begin(), json.end(), [](const auto &row) { return row["name"] == "nodes"; });
    ASSERT_NE(nodes, json.end());
    EXPECT_EQ((*nodes)["value"], "2");
    EXPECT_EQ((*nodes)["source"], "--nodes");
    EXPECT_EQ((*nodes)["variable"], "ROOST_NODES");
    EXPECT_EQ((*nodes)["default"], "3");
    // One line a setting, and the columns stand under each other.
    const size_t meaning = text.find("MEANING");
    std::istringstream in(text);
    std::string header;
    std::getline(in, header);
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("http ", 0) == 0) EXPECT_EQ(line.find("Address of the HTTP"), meaning) << line;
    }
}

TEST(Printing, help_names_each_flag_of_the_command_and_only_those) {
    const std::string up = print_flags(Command::up);
    EXPECT_NE(up.find("--node-memory BYTES"), std::string::npos);
    EXPECT_NE(up.find("(default: 2GiB)"), std::string::npos);
    EXPECT_EQ(up.find("--join"), std::string::npos);
    EXPECT_EQ(up.find("secret"), std::string::npos);
    EXPECT_NE(print_flags(Command::node).find("--join URL"), std::string::npos);
}

TEST(ProcessEnvironment, reads_the_real_one) {
    ASSERT_EQ(setenv("ROOST_TEST_VARIABLE", "here", 1), 0);
    EXPECT_EQ(process_environment()("ROOST_TEST_VARIABLE"), "here");
    unsetenv("ROOST_TEST_VARIABLE");
    EXPECT_EQ(process_environment()("ROOST_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace roost::config
