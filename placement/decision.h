// What is asked of placement and what it answers. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "placement/unit.h"

namespace roost::placement {

enum class Mode : uint8_t {
    automatic,     // "auto": small tables by their homes, large ones by the owners of their segments
    affinity,      // every table by its homes, whatever its size
    segments,      // every segment by its owner, without memory and without a cap
    least_loaded,  // for comparison: smallest load, ties to the least recently used
    round_robin,
};
std::string_view mode_name(Mode mode);
std::optional<Mode> parse_mode(std::string_view name);

// How a decision came about; each is counted.
enum class Outcome : uint8_t {
    claim,         // nothing of it is warm anywhere: the winner is its home from now on
    sticky_fresh,  // the winner is a home, and up to date
    sticky_stale,  // the winner is a home, but written since, or has not all of it yet
    overflow,      // the best home was over its cap: the winner becomes a home as well (seed: instead)
    owner,         // by rank alone: segments of large tables
    moved,         // a node that joined, or has more weight, is its owner now: it takes the unit over from its homes
    pinned,        // an open transaction lives there
    no_refs,       // it reads no table: least loaded
    by_load,       // mode least_loaded
    by_turn,       // mode round_robin
    no_members,    // there is no node to run it
};
inline constexpr size_t kOutcomes = 11;
std::string_view outcome_name(Outcome outcome);  // "sticky_fresh", …; of by_load and by_turn the mode's name
using OutcomeCounts = std::array<uint64_t, kOutcomes>;

struct SegmentBytes {
    uint64_t segment = 0;  // data file id
    uint64_t bytes = 0;
};

// A table's segments, asked for only when the table is large and they are not known from an earlier statement.
using SegmentSource = std::function<void(const std::function<void(const SegmentBytes &)> &)>;

// A table that a statement names, as its snapshot has it.
struct TableUse {
    uint64_t catalog = 0;  // catalog_id
    uint64_t table = 0;
    uint64_t epoch = 0;  // snapshot that changed it last, as far as known
    uint64_t bytes = 0;  // of live data and delete files
    bool written = false;
    const SegmentSource *segments = nullptr;  // none: the table is one unit whatever its size
};

struct Request {
    std::span<const TableUse> tables;
    std::optional<Uuid> pinned;  // must run there
    std::optional<Uuid> avoid;   // just lost it there: the last resort
};

// A node as a decision saw it.
struct Candidate {
    Uuid node;
    uint64_t incarnation = 0;
    double load = 0, cap = 0;
    bool over_cap = false;
    uint64_t fresh_bytes = 0;   // warm and up to date
    uint64_t stale_bytes = 0;   // warm, but written since
    uint64_t coming_bytes = 0;  // being read there now for the first time
    uint64_t moved_bytes = 0;   // of units that are warm elsewhere and have become its own by rank
    uint64_t owned_bytes = 0;   // of units that nobody has: those it owns by rank
    uint64_t score = 0;
    // That need not be fetched there.
    uint64_t there_bytes() const { return fresh_bytes + stale_bytes + coming_bytes; }
};

// A statement's hold on the directory, from the decision to its end. Belongs to one statement; Directory::ended closes
// it.
struct Claim {
    struct Part {
        UnitId unit;
        uint64_t epoch = 0, bytes = 0;
        bool written = false;
    };
    std::vector<Part> parts;
    Uuid node;
    uint64_t incarnation = 0;
    bool reports_bytes = false;
    bool open = false;
};

// One node that is asked to take the statement.
struct Ask {
    static constexpr int64_t kAsLongAsItTakes = -1;
    size_t candidate = 0;  // its place in the list
    int64_t wait_us = 0;   // that the statement would wait there for memory; 0: at once or not at all
    bool operator==(const Ask &) const = default;
};
// In which order the candidates are asked until one takes it: those that have the data, then the best of these again
// for as long as waiting there is cheaper than reading elsewhere, then the rest; when none has room it waits, at the
// first. The last asks are refused by nodes only that stop.
std::vector<Ask> asks_of(size_t candidates, size_t near, int64_t patience_us);

struct Decision {
    Outcome outcome = Outcome::no_members;
    Mode mode = Mode::automatic;
    std::vector<Candidate> candidates;  // best first: asked as asks_of says
    size_t near = 0;                    // of these the first so many have as much of the data as the best one
    int64_t patience_us = 0;            // what it would cost to read elsewhere what they have
    uint64_t bytes = 0;                 // of all units named
    size_t units = 0;
    std::optional<Uuid> passed_over;  // the best home, when it was over its cap
    Claim claim;
};

// Why, for a person: one line; `name` says what nodes are called.
std::string reason_text(const Decision &decision, const std::function<std::string(const Uuid &)> &name);
std::string candidate_text(const Candidate &candidate);

}  // namespace roost::placement
