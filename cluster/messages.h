// What gateway and node say to each other: plain structs with an encoding each. Decoders take hostile bytes: every
// field is bounds-checked, trailing bytes are an error. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.h"
#include "base/ids.h"
#include "base/status.h"
#include "engine/cache_report.h"
#include "engine/statement.h"

namespace roost::cluster {

// Of the messages of the links. Raised when they change: a node and a gateway of different ones don't work together.
constexpr uint32_t kProtocol = 1;

// node → gateway, first on a control link. Its head (protocol, version, name) never changes, so that a gateway can say
// whom it refused and why.
struct Hello {
    uint32_t protocol = kProtocol;
    Uuid node;
    uint64_t incarnation = 0;  // one run of a node process
    std::string name, pool, version, engine_version, dir;
    int64_t pid = 0;
    uint32_t cpus = 1;  // effective vCPUs: the node's weight
    uint64_t memory_bytes = 0, budget_bytes = 0;
    bool reports_bytes = false;  // it says what is warm in its segment cache
};

// A node's memory by its ledger.
struct MemoryReport {
    std::string profile;
    uint64_t required_bytes = 0, elastic_bytes = 0;  // promised, the lanes not counted
    uint64_t lane_bytes = 0;                         // estimates of what is in the small lane
    uint32_t pressure = 0;                           // 0 none, 1 no elastic is lent, 2 nothing is granted
    // Since its start.
    uint64_t estimates_abandoned = 0;  // plans that took too long, so that a default was used
    uint64_t admission_timeouts = 0;
    uint64_t not_shrunk = 0;            // times that an instance did not give back what was called back
    uint64_t cancelled_for_memory = 0;  // statements ended because the process came near its limit
    struct Group {
        std::string name;
        uint32_t running = 0, waiting = 0;
        uint64_t required_bytes = 0;
        bool operator==(const Group &) const = default;
    };
    std::vector<Group> groups;
    bool operator==(const MemoryReport &) const = default;
};
constexpr size_t kGroupsMax = 100;

struct Heartbeat {
    uint32_t running = 0, waiting = 0, queued = 0;
    uint64_t granted_bytes = 0, used_bytes = 0, resident_bytes = 0;
    uint32_t cpus = 0;      // as in Hello, now: quotas and affinity change; 0: as it said
    bool stopping = false;  // it takes nothing new, and ends when what it has has ended
    MemoryReport memory;
    CacheReport cache;
};

// gateway → node: you are in; and how often to say so.
struct Welcome {
    std::string gateway_version;
    uint32_t heartbeat_ms = 5000;
};

// A running statement's state, sent when it changes.
struct Progress {
    enum class Phase : uint8_t { queued, planning, waiting, running } phase = Phase::queued;
    uint32_t place = 0;  // waiting: 1 is the head
    double percent = -1;
};

struct Cancel {
    Status reason;
};

// gateway → node: admission goes by this profile from now on; what runs keeps what it has. Answered on its stream by
// end.
struct SetProfile {
    std::string profile;
};

struct ReadPage {
    Uuid statement;
    uint64_t offset_rows = 0;
    uint32_t limit_rows = 0;
};

std::string encode(const Hello &message);
std::string encode(const Heartbeat &message);
std::string encode(const Welcome &message);
std::string encode(const Progress &message);
std::string encode(const Cancel &message);
std::string encode(const SetProfile &message);
std::string encode(const ReadPage &message);
std::string encode(const CacheWork &message);
std::string encode(const StatementSpec &spec);  // dispatch
std::string encode(const ResultHeader &header);
std::string encode(const Completion &completion);
std::string encode_id(const Uuid &id);  // end_session, open_arrow, drop_result

Result<Hello> decode_hello(std::string_view bytes);
Result<Heartbeat> decode_heartbeat(std::string_view bytes);
Result<Welcome> decode_welcome(std::string_view bytes);
Result<Progress> decode_progress(std::string_view bytes);
Result<Cancel> decode_cancel(std::string_view bytes);
Result<SetProfile> decode_set_profile(std::string_view bytes);
Result<ReadPage> decode_read_page(std::string_view bytes);
Result<CacheWork> decode_cache_work(std::string_view bytes);
Result<StatementSpec> decode_spec(std::string_view bytes);
Result<ResultHeader> decode_header(std::string_view bytes);
Result<Completion> decode_completion(std::string_view bytes);
Result<Uuid> decode_id(std::string_view bytes);

}  // namespace roost::cluster
