#include "obs/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <unordered_map>

#include "obs/process_stats.h"
#include "obs/series.h"

namespace roost::obs {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr size_t kSmallSetMax = 32;
constexpr size_t kStatementSeriesMax = 512;
constexpr size_t kNodesMax = 256;
constexpr size_t kRulesMax = 512;

// A statement takes from 10 µs (a prepared point read's stage) to its time limit of 10 minutes.
const Histogram::BucketBoundaries &duration_buckets() {
    static const Histogram::BucketBoundaries buckets = {
        10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3,
        0.1,   0.25,  0.5,   1.0,    2.5,    5.0,    10.0, 30.0,   60.0, 120.0, 300.0, 600.0,
    };
    return buckets;
}

class PrometheusMetrics final : public Metrics {
public:
    PrometheusMetrics() {
        in_flight_ = &gauge("roost_statements_in_flight", "Statements accepted and not ended yet");
        conflict_retries_ = &counter("roost_conflict_retries_total",
                                     "Writes that the gateway ran again because another writer had changed the lake");
        commits_unknown_ = &counter("roost_commits_unknown_total",
                                    "Writes whose client had to be told that nobody knows whether they were committed");
        retries_ = &counter("roost_statement_retries_total", "Statements that the gateway ran again on another node");
        lease_wait_ = &prometheus::BuildHistogram()
                           .Name("roost_write_lease_wait_seconds")
                           .Help("Time that writing statements waited for the catalog's single writer")
                           .Register(registry_)
                           .Add({}, duration_buckets());
        placed_units_ = &gauge("roost_placement_units", "Tables of which the gateway knows where they are warm");
        placed_dropped_ =
            &counter("roost_placement_dropped_total", "Tables whose homes were forgotten for want of room");
        placed_passed_on_ = &counter("roost_placement_passed_on_total",
                                     "Statements that went past their first candidate, which had no memory free");
        cpu_ = &counter("process_cpu_seconds_total", "User and system CPU time of the gateway, in seconds");
        resident_ = &gauge("process_resident_memory_bytes", "Resident size of the gateway");
        open_files_ = &gauge("process_open_fds", "Open file descriptors of the gateway");
        threads_ = &gauge("process_threads", "Threads of the gateway");
    }

    void statement_done(std::string_view front, std::string_view kind, std::string_view status) override {
        statements_.get({front, kind, status}).Increment();
    }
    void stage(std::string_view stage, double seconds) override { stages_.get({stage}).Observe(seconds); }
    void statements_in_flight(double value) override { in_flight_->Set(value); }
    void connections(std::string_view front, double value) override { connections_.get({front}).Set(value); }
    void bytes_sent(std::string_view front, uint64_t bytes) override {
        bytes_.get({front}).Increment(static_cast<double>(bytes));
    }
    void rows_sent(std::string_view front, uint64_t rows) override {
        rows_.get({front}).Increment(static_cast<double>(rows));
    }
    void routed(std::string_view reason) override { decisions_.get({reason}).Increment(); }
    void retried() override { retries_->Increment(); }
    void conflict_retried() override { conflict_retries_->Increment(); }
    void commit_unknown() override { commits_unknown_->Increment(); }
    void auth_failed(std::string_view front) override { auth_failures_.get({front}).Increment(); }
    void guard_refused(std::string_view rule) override { refusals_.get({rule}).Increment(); }
    void write_lease_wait(double seconds) override { lease_wait_->Observe(seconds); }

    void node(std::string_view node, const NodeGauges &gauges) override {
        node_running_.get({node}).Set(gauges.running);
        node_waiting_.get({node}).Set(gauges.waiting);
        node_queued_.get({node}).Set(gauges.queued);
        node_budget_.get({node}).Set(gauges.budget_bytes);
        node_granted_.get({node}).Set(gauges.granted_bytes);
        node_required_.get({node}).Set(gauges.required_bytes);
        node_elastic_.get({node}).Set(gauges.elastic_bytes);
        node_pressure_.get({node}).Set(gauges.pressure);
        growth_waiting_.get({node}).Set(gauges.waiting);
        const auto bring_to = [node](Series<Counter, 1> &series, double value) {
            Counter &counter = series.get({node});
            // A node that was started again counts from 0.
            const double more = value - counter.Value();
            if (more > 0) counter.Increment(more);
        };
        bring_to(estimates_abandoned_, gauges.estimates_abandoned);
        bring_to(admission_timeouts_, gauges.admission_timeouts);
        bring_to(not_shrunk_, gauges.not_shrunk);
        bring_to(cancelled_for_memory_, gauges.cancelled_for_memory);
        node_used_.get({node}).Set(gauges.used_bytes);
        node_resident_.get({node}).Set(gauges.resident_bytes);
        node_routable_.get({node}).Set(gauges.routable);
        node_up_.get({node}).Set(gauges.up);
    }
    void node_gone(std::string_view node) override {
        NodeGauges gone;
        gone.up = 0;
        this->node(node, gone);
    }

    void lake(std::string_view catalog, const LakeGauges &gauges) override {
        const auto bring_to = [catalog](Series<Counter, 1> &series, uint64_t value) {
            Counter &counter = series.get({catalog});
            counter.Increment(static_cast<double>(value) - counter.Value());
        };
        bring_to(mirror_checks_, gauges.checks);
        bring_to(mirror_advances_, gauges.advances);
        bring_to(mirror_loads_, gauges.loads);
        if (!gauges.contents) return;
        lake_snapshot_.get({catalog}).Set(static_cast<double>(gauges.contents->snapshot));
        lake_tables_.get({catalog}).Set(static_cast<double>(gauges.contents->tables));
        lake_segments_.get({catalog}).Set(static_cast<double>(gauges.contents->segments));
        lake_bytes_.get({catalog}).Set(static_cast<double>(gauges.contents->bytes));
        mirror_memory_.get({catalog}).Set(static_cast<double>(gauges.contents->memory_bytes));
    }

    void cache(std::string_view node, const CacheGauges &gauges) override {
        const auto bring_to = [this, node](Series<Counter, 2> &series, std::string_view what, uint64_t value) {
            Counter &counter = series.get({node, what});
            const MutexLock lock(cache_mutex_);
            // A count that went back is one of a new process.
            uint64_t &last = cache_last_[&counter];
            counter.Increment(static_cast<double>(value >= last ? value - last : value));
            last = value;
        };
        bring_to(cache_bytes_, "store", gauges.store_bytes);
        bring_to(cache_bytes_, "peer", gauges.peer_bytes);
        bring_to(cache_bytes_, "cache", gauges.cache_bytes);
        bring_to(cache_blocks_, "hit", gauges.hits);
        bring_to(cache_blocks_, "miss", gauges.misses);
        bring_to(cache_blocks_, "joined", gauges.joined);
        bring_to(cache_blocks_, "inserted", gauges.inserted);
        bring_to(cache_blocks_, "evicted", gauges.evicted);
        bring_to(cache_blocks_, "refused", gauges.refused);
        bring_to(cache_blocks_, "corrupt", gauges.corrupt);
        bring_to(cache_requests_, "fetch", gauges.fetches);
        cache_in_flight_.get({node}).Set(static_cast<double>(gauges.fetches_in_flight));
        cache_warm_.get({node}).Set(static_cast<double>(gauges.warm_bytes));
        cache_room_.get({node}).Set(static_cast<double>(gauges.room_bytes));
        cache_disk_.get({node}).Set(static_cast<double>(gauges.disk_mode));
    }

    void read_bytes(std::string_view source, uint64_t bytes) override {
        read_bytes_.get({source}).Increment(static_cast<double>(bytes));
    }
    void placement(uint64_t units, uint64_t dropped, uint64_t passed_on) override {
        placed_units_->Set(static_cast<double>(units));
        placed_dropped_->Increment(static_cast<double>(dropped) - placed_dropped_->Value());
        placed_passed_on_->Increment(static_cast<double>(passed_on) - placed_passed_on_->Value());
    }

    std::string expose() const override {
        const ProcessStats stats = read_process_stats();
        cpu_->Increment(stats.cpu_seconds - cpu_->Value());
        resident_->Set(static_cast<double>(stats.resident_bytes));
        open_files_->Set(static_cast<double>(stats.open_files));
        threads_->Set(static_cast<double>(stats.threads));
        return prometheus::TextSerializer().Serialize(registry_.Collect());
    }

private:
    Gauge &gauge(const char *name, const char *help) {
        return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add({});
    }
    Counter &counter(const char *name, const char *help) {
        return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add({});
    }
    Series<Counter, 1>::Make counters(const char *name, const char *help) {
        auto *family = &prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
        return [family](const auto &labels) -> Counter & { return family->Add(labels); };
    }
    Series<Gauge, 1>::Make gauges(const char *name, const char *help) {
        auto *family = &prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
        return [family](const auto &labels) -> Gauge & { return family->Add(labels); };
    }
    Series<Histogram, 1>::Make histograms(const char *name, const char *help) {
        auto *family = &prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
        return [family](const auto &labels) -> Histogram & { return family->Add(labels, duration_buckets()); };
    }
    Series<Counter, 1> node_counts(const char *name, const char *help) {
        return {{"node"}, kNodesMax, counters(name, help)};
    }
    Series<Gauge, 1> node_series(const char *name, const char *help) {
        return {{"node"}, kNodesMax, gauges(name, help)};
    }

    prometheus::Registry registry_;
    Series<Counter, 3> statements_{{"front", "kind", "status"},
                                   kStatementSeriesMax,
                                   counters("roost_statements_total", "Statements that ended, by how")};
    Series<Histogram, 1> stages_{
        {"stage"}, kSmallSetMax, histograms("roost_statement_stage_seconds", "Time of statements in each stage")};
    Series<Gauge, 1> connections_{{"front"}, kSmallSetMax, gauges("roost_connections", "Open client connections")};
    Series<Counter, 1> bytes_{
        {"front"}, kSmallSetMax, counters("roost_result_bytes_total", "Result bytes sent to clients")};
    Series<Counter, 1> rows_{
        {"front"}, kSmallSetMax, counters("roost_result_rows_total", "Result rows sent to clients")};
    Series<Counter, 1> read_bytes_{{"source"},
                                   kSmallSetMax,
                                   counters("roost_cache_statement_bytes_total",
                                            "Bytes that statements read through segment caches, by where they were")};
    Series<Counter, 1> decisions_{
        {"reason"}, kSmallSetMax, counters("roost_routing_decisions_total", "Routing decisions, by reason")};
    Series<Counter, 1> auth_failures_{
        {"front"},
        kSmallSetMax,
        counters("roost_auth_failures_total", "Log-ins and requests refused for their credentials")};
    Series<Counter, 1> refusals_{
        {"rule"},
        kRulesMax,
        counters("roost_guard_refusals_total", "Statements refused by the guard or by a node's walls, by rule")};
    Series<Gauge, 1> node_running_ = node_series("roost_node_running", "Statements running on the node");
    Series<Gauge, 1> node_waiting_ = node_series("roost_node_waiting", "Statements waiting for memory on the node");
    Series<Gauge, 1> node_queued_ = node_series("roost_node_queued", "Statements accepted by the node and not started");
    Series<Gauge, 1> node_budget_ = node_series("roost_node_budget_bytes", "Memory that the node lends to statements");
    Series<Gauge, 1> node_granted_ = node_series("roost_node_granted_bytes", "Memory granted to statements now");
    Series<Gauge, 1> node_required_ =
        node_series("roost_node_required_bytes", "Memory required for running statements: never taken from them");
    Series<Gauge, 1> node_elastic_ =
        node_series("roost_node_elastic_bytes", "Memory lent on top of it, called back as soon as somebody waits");
    Series<Gauge, 1> node_pressure_ = node_series(
        "roost_node_memory_pressure", "1: the process nears its memory and lends no elastic; 2: it admits nothing");
    Series<Gauge, 1> growth_waiting_ =
        node_series("roost_growth_waiting", "Statements that wait for memory on the node right now");
    Series<Counter, 1> estimates_abandoned_ = node_counts(
        "roost_estimates_abandoned_total", "Plans that took too long, so that a statement got a default size");
    Series<Counter, 1> admission_timeouts_ =
        node_counts("roost_admission_timeouts_total", "Statements that waited for memory in vain");
    Series<Counter, 1> not_shrunk_ = node_counts("roost_memory_not_given_back_total",
                                                 "Times that memory that was called back had not come after 2 s");
    Series<Counter, 1> cancelled_for_memory_ = node_counts(
        "roost_cancelled_for_memory_total", "Statements ended because their node's process came near its memory");
    Series<Gauge, 1> node_used_ = node_series("roost_node_used_bytes", "Memory that the engine's buffer managers use");
    Series<Gauge, 1> node_resident_ = node_series("roost_node_resident_bytes", "Resident size of the node's process");
    Series<Gauge, 1> node_routable_ = node_series("roost_node_routable", "1 while the node gets new statements");
    Series<Gauge, 1> node_up_ = node_series("roost_node_up", "1 while the node is a member, 0 when it is gone");
    Series<Gauge, 1> lake_series(const char *name, const char *help) {
        return {{"catalog"}, kSmallSetMax, gauges(name, help)};
    }
    Series<Counter, 1> lake_counts(const char *name, const char *help) {
        return {{"catalog"}, kSmallSetMax, counters(name, help)};
    }
    Series<Gauge, 1> lake_snapshot_ = lake_series("roost_lake_snapshot", "Newest snapshot of the lake that is known");
    Series<Gauge, 1> lake_tables_ = lake_series("roost_lake_tables", "Tables of the lake");
    Series<Gauge, 1> lake_segments_ = lake_series("roost_lake_segments", "Data files of the lake");
    Series<Gauge, 1> lake_bytes_ = lake_series("roost_lake_bytes", "Size of the lake's data files");
    Series<Gauge, 1> mirror_memory_ = lake_series("roost_mirror_memory_bytes", "Memory of the lake's mirror");
    Series<Counter, 1> mirror_checks_ =
        lake_counts("roost_mirror_checks_total", "Times that the catalog was asked for its newest snapshot");
    Series<Counter, 1> mirror_advances_ =
        lake_counts("roost_mirror_advances_total", "Times that the mirror was brought forward by what had changed");
    Series<Counter, 1> mirror_loads_ =
        lake_counts("roost_mirror_loads_total", "Times that the mirror was read from scratch");
    Series<Counter, 2> cache_bytes_{
        {"node", "source"},
        4 * kNodesMax,
        counters("roost_cache_read_bytes_total", "Bytes read through the cache, by source")};
    Series<Counter, 2> cache_blocks_{{"node", "event"},
                                     8 * kNodesMax,
                                     counters("roost_cache_blocks_total", "Blocks of the cache, by what happened")};
    Series<Counter, 2> cache_requests_{
        {"node", "kind"}, 2 * kNodesMax, counters("roost_cache_requests_total", "Requests of the cache to the store")};
    Series<Gauge, 1> cache_in_flight_ = node_series("roost_cache_fetches_in_flight", "Blocks being fetched now");
    Series<Gauge, 1> cache_warm_ = node_series("roost_cache_warm_bytes", "Bytes that the node's cache holds");
    Series<Gauge, 1> cache_room_ = node_series("roost_cache_room_bytes", "Bytes that the node's cache may hold now");
    Series<Gauge, 1> cache_disk_ =
        node_series("roost_cache_disk_mode", "The cache's disk: 0 ok, 1 full (no writes), 2 bypassed");
    Mutex cache_mutex_;
    std::unordered_map<const Counter *, uint64_t> cache_last_ ROOST_GUARDED_BY(cache_mutex_);
    Gauge *in_flight_ = nullptr;
    Counter *retries_ = nullptr;
    Counter *conflict_retries_ = nullptr;
    Counter *commits_unknown_ = nullptr;
    Histogram *lease_wait_ = nullptr;
    Counter *cpu_ = nullptr;
    Gauge *resident_ = nullptr;
    Gauge *open_files_ = nullptr;
    Gauge *threads_ = nullptr;
    Gauge *placed_units_ = nullptr;
    Counter *placed_dropped_ = nullptr;
    Counter *placed_passed_on_ = nullptr;
};

}  // namespace

std::unique_ptr<Metrics> Metrics::make() { return std::make_unique<PrometheusMetrics>(); }

}  // namespace roost::obs
