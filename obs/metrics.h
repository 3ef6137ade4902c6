// The gateway's metrics, exposed in Prometheus text format. One object a process, made in app/ and passed down.
// Thread-safe. Names start with roost_; labels are few and bounded (never SQL, users or ids; node is the node's id).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace roost::obs {

// What a node reports of itself with each heartbeat.
struct NodeGauges {
    double running = 0, waiting = 0, queued = 0;
    double budget_bytes = 0, granted_bytes = 0, required_bytes = 0, elastic_bytes = 0;
    double estimates_abandoned = 0, admission_timeouts = 0, not_shrunk = 0,
           cancelled_for_memory = 0;  // since its start
    double pressure = 0;
    double used_bytes = 0, resident_bytes = 0;
    double up = 1, routable = 1;
};

struct LakeContents {
    uint64_t snapshot = 0, tables = 0, segments = 0, bytes = 0;
    uint64_t memory_bytes = 0;  // of the mirror
};
// A lake as the gateway's mirror knows it.
struct LakeGauges {
    uint64_t checks = 0, advances = 0, loads = 0;  // of the mirror, since its start
    std::optional<LakeContents> contents;          // unset: as last told
};

// A node's segment cache; counts since the node's start.
struct CacheGauges {
    uint64_t store_bytes = 0, peer_bytes = 0, cache_bytes = 0;  // read, by where they came from
    uint64_t hits = 0, misses = 0, joined = 0;                  // blocks
    uint64_t inserted = 0, evicted = 0, refused = 0, corrupt = 0;
    uint64_t fetches = 0;  // requests
    uint64_t fetches_in_flight = 0;
    uint64_t warm_bytes = 0, room_bytes = 0;
    uint64_t disk_mode = 0;  // 0 ok, 1 full, 2 bypass
};

class Metrics {
public:
    virtual ~Metrics() = default;
    static std::unique_ptr<Metrics> make();

    // roost_statements_total{front,kind,status}: front http|pg|internal, status done|failed|cancelled|timeout|refused
    virtual void statement_done(std::string_view front, std::string_view kind, std::string_view status) = 0;
    // roost_statement_stage_seconds{stage}:
    // parse|route|dispatch|queue|plan|admission|execute|encode|blocked|commit|total
    virtual void stage(std::string_view stage, double seconds) = 0;
    virtual void statements_in_flight(double value) = 0;                  // roost_statements_in_flight
    virtual void connections(std::string_view front, double value) = 0;   // roost_connections{front}
    virtual void bytes_sent(std::string_view front, uint64_t bytes) = 0;  // roost_result_bytes_total{front}
    virtual void rows_sent(std::string_view front, uint64_t rows) = 0;    // roost_result_rows_total{front}
    // roost_routing_decisions_total{reason}
    virtual void routed(std::string_view reason) = 0;
    virtual void retried() = 0;                                              // roost_statement_retries_total
    virtual void conflict_retried() = 0;                                     // roost_conflict_retries_total
    virtual void commit_unknown() = 0;                                       // roost_commits_unknown_total
    virtual void auth_failed(std::string_view front) = 0;                    // roost_auth_failures_total{front}
    virtual void guard_refused(std::string_view rule) = 0;                   // roost_guard_refusals_total{rule}
    virtual void write_lease_wait(double seconds) = 0;                       // roost_write_lease_wait_seconds
    virtual void node(std::string_view node, const NodeGauges &gauges) = 0;  // roost_node_*{node}
    virtual void node_gone(std::string_view node) = 0;  // keeps the series, sets roost_node_up to 0
    virtual void lake(std::string_view catalog, const LakeGauges &gauges) = 0;  // roost_lake_*, roost_mirror_*{catalog}
    virtual void cache(std::string_view node, const CacheGauges &gauges) = 0;   // roost_cache_*{node}
    // roost_cache_statement_bytes_total{source}: store|peer|cache; what statements read through segment caches
    virtual void read_bytes(std::string_view source, uint64_t bytes) = 0;
    // roost_placement_*: units that the directory knows; units forgotten for want of room; statements that went past
    // their first candidate
    virtual void placement(uint64_t units, uint64_t dropped, uint64_t passed_on) = 0;
    virtual std::string expose() const = 0;
};

}  // namespace roost::obs
