#include "obs/metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "obs/process_stats.h"

namespace roost::obs {
namespace {

// The samples of an exposition, by "name{labels}".
std::map<std::string, double> samples(const Metrics &metrics) {
    std::map<std::string, double> out;
    std::istringstream in(metrics.expose());
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        const size_t blank = line.rfind(' ');
        out[line.substr(0, blank)] = std::stod(line.substr(blank + 1));
    }
    return out;
}

TEST(Metrics, statements_are_counted_by_front_kind_and_status) {
    const auto metrics = Metrics::make();
    metrics->statement_done("pg", "select", "done");
    metrics->statement_done("pg", "select", "done");
    metrics->statement_done("http", "insert", "failed");
    auto found = samples(*metrics);
    EXPECT_EQ(found.at(R"(roost_statements_total{front="pg",kind="select",status="done"})"), 2);
    EXPECT_EQ(found.at(R"(roost_statements_total{front="http",kind="insert",status="failed"})"), 1);
}

TEST(Metrics, counts_of_a_cache_go_on_when_its_node_starts_again) {
    const auto metrics = Metrics::make();
    CacheGauges gauges;
    gauges.store_bytes = 100;
    gauges.hits = 7;
    gauges.warm_bytes = 50;
    gauges.disk_mode = 2;
    metrics->cache("n1", gauges);
    gauges.store_bytes = 130;
    metrics->cache("n1", gauges);
    gauges.store_bytes = 20;  // of a new process
    metrics->cache("n1", gauges);
    const auto found = samples(*metrics);
    EXPECT_EQ(found.at(R"(roost_cache_read_bytes_total{node="n1",source="store"})"), 150);
    EXPECT_EQ(found.at(R"(roost_cache_blocks_total{event="hit",node="n1"})"), 7);
    EXPECT_EQ(found.at(R"(roost_cache_warm_bytes{node="n1"})"), 50);
    EXPECT_EQ(found.at(R"(roost_cache_disk_mode{node="n1"})"), 2);
}

TEST(Metrics, every_name_of_the_interface_is_exposed_with_its_value) {
    const auto metrics = Metrics::make();
    metrics->statements_in_flight(3);
    metrics->connections("pg", 7);
    metrics->bytes_sent("http", 1000);
    metrics->bytes_sent("http", 24);
    metrics->rows_sent("http", 5);
    metrics->routed("least_loaded");
    metrics->retried();
    metrics->conflict_retried();
    metrics->commit_unknown();
    LakeGauges lake{5, 2, 1, LakeContents{7, 3, 20, 4096, 900}};
    metrics->lake("lake", lake);
    lake.checks = 6;
    lake.contents.reset();
    metrics->lake("lake", lake);
    metrics->auth_failed("pg");
    metrics->write_lease_wait(0.02);
    auto found = samples(*metrics);
    EXPECT_EQ(found.at("roost_statements_in_flight"), 3);
    EXPECT_EQ(found.at(R"(roost_connections{front="pg"})"), 7);
    EXPECT_EQ(found.at(R"(roost_result_bytes_total{front="http"})"), 1024);
    EXPECT_EQ(found.at(R"(roost_result_rows_total{front="http"})"), 5);
    EXPECT_EQ(found.at(R"(roost_routing_decisions_total{reason="least_loaded"})"), 1);
    EXPECT_EQ(found.at("roost_statement_retries_total"), 1);
    EXPECT_EQ(found.at("roost_conflict_retries_total"), 1);
    EXPECT_EQ(found.at("roost_commits_unknown_total"), 1);
    EXPECT_EQ(found.at(R"(roost_mirror_checks_total{catalog="lake"})"), 6);
    EXPECT_EQ(found.at(R"(roost_mirror_advances_total{catalog="lake"})"), 2);
    EXPECT_EQ(found.at(R"(roost_lake_snapshot{catalog="lake"})"), 7);
    EXPECT_EQ(found.at(R"(roost_lake_segments{catalog="lake"})"), 20);
    EXPECT_EQ(found.at(R"(roost_auth_failures_total{front="pg"})"), 1);
    EXPECT_EQ(found.at("roost_write_lease_wait_seconds_count"), 1);
    EXPECT_DOUBLE_EQ(found.at("roost_write_lease_wait_seconds_sum"), 0.02);
}

TEST(Metrics, a_stage_lands_in_its_bucket_from_ten_microseconds_to_ten_minutes) {
    const auto metrics = Metrics::make();
    metrics->stage("queue", 5e-6);
    metrics->stage("queue", 2e-3);
    metrics->stage("queue", 599);
    metrics->stage("queue", 10'000);
    auto found = samples(*metrics);
    const auto at_most = [&](const std::string &bound) {
        return found.at(R"(roost_statement_stage_seconds_bucket{stage="queue",le=")" + bound + "\"}");
    };
    EXPECT_EQ(at_most("1e-05"), 1);
    EXPECT_EQ(at_most("0.001"), 1);
    EXPECT_EQ(at_most("0.0025"), 2);
    EXPECT_EQ(at_most("600"), 3);
    EXPECT_EQ(at_most("+Inf"), 4);
}

TEST(Metrics, a_node_reports_and_a_gone_node_is_down_with_its_series_kept) {
    const auto metrics = Metrics::make();
    NodeGauges gauges;
    gauges.running = 2;
    gauges.budget_bytes = 1e9;
    gauges.used_bytes = 5e8;
    metrics->node("n1", gauges);
    EXPECT_EQ(samples(*metrics).at(R"(roost_node_used_bytes{node="n1"})"), 5e8);
    EXPECT_EQ(samples(*metrics).at(R"(roost_node_up{node="n1"})"), 1);
    metrics->node_gone("n1");
    EXPECT_EQ(samples(*metrics).at(R"(roost_node_up{node="n1"})"), 0);
    EXPECT_EQ(samples(*metrics).at(R"(roost_node_running{node="n1"})"), 0);
}

TEST(Metrics, labels_are_bounded_in_number_and_length_and_always_escaped) {
    const auto metrics = Metrics::make();
    for (int i = 0; i < 10'000; ++i) metrics->statement_done("pg", "kind" + std::to_string(i), "done");
    metrics->routed(std::string(100'000, 'x'));
    metrics->auth_failed("a\"b\nc\\");
    auto found = samples(*metrics);
    EXPECT_LT(found.size(), 1'000U);
    double total = 0;
    for (const auto &[name, value] : found) total += name.rfind("roost_statements_total", 0) == 0 ? value : 0;
    EXPECT_EQ(total, 10'000);
    EXPECT_GT(found.at(R"(roost_statements_total{front="other",kind="other",status="other"})"), 9'000);
    EXPECT_EQ(found.at(R"(roost_auth_failures_total{front="a\"b\nc\\"})"), 1);
    for (const auto &[name, value] : found) EXPECT_LT(name.size(), 300U);
}

TEST(Metrics, label_values_that_join_to_the_same_text_stay_apart) {
    const auto metrics = Metrics::make();
    metrics->statement_done("a", "bc", "d");
    metrics->statement_done("ab", "c", "d");
    EXPECT_EQ(samples(*metrics).at(R"(roost_statements_total{front="ab",kind="c",status="d"})"), 1);
}

TEST(Metrics, counts_of_many_threads_add_up_while_it_is_scraped) {
    const auto metrics = Metrics::make();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&metrics, t] {
            for (int i = 0; i < 2'000; ++i) {
                metrics->statement_done("pg", t % 2 == 0 ? "select" : "insert", "done");
                metrics->stage("total", 0.001 * i);
                if (i % 500 == 0) metrics->expose();
            }
        });
    }
    for (auto &thread : threads) thread.join();
    auto found = samples(*metrics);
    EXPECT_EQ(found.at(R"(roost_statements_total{front="pg",kind="select",status="done"})"), 4'000);
    EXPECT_EQ(found.at(R"(roost_statement_stage_seconds_count{stage="total"})"), 8'000);
}

TEST(Metrics, the_process_itself_is_in_it) {
    const auto metrics = Metrics::make();
    auto found = samples(*metrics);
    EXPECT_GT(found.at("process_resident_memory_bytes"), 1e6);
    EXPECT_GE(found.at("process_open_fds"), 3);
    EXPECT_GE(found.at("process_threads"), 1);
    EXPECT_GE(found.at("process_cpu_seconds_total"), 0);
    EXPECT_GE(samples(*metrics).at("process_cpu_seconds_total"), found.at("process_cpu_seconds_total"));
}

}  // namespace
}  // namespace roost::obs
