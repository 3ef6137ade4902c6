// What is known of the memory of a statement's shape: what the plan said, and what its last runs used. A shape is the
// statement with its literals taken out, with the catalogs, the schema and the tables' schema epoch it is bound to; the
// caller makes the key. What was measured counts before what was planned: the largest of the last three peaks with a
// margin. Bounded, least recently used first out; entries expire; a write to a table drops what reads it, since the
// next run of such a shape sees other data.
//
// Not thread-safe: the caller locks.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "admission/profile.h"

namespace roost::admission {

inline constexpr size_t kPeaksKept = 3;

struct ShapeMemoryOptions {
    size_t shapes_max = 4'096;
    int64_t ttl_us = int64_t{6} * 3600 * 1'000'000;  // since the last plan or run
    bool feedback = true;                            // false: from the plan alone
    double safety_multiplier = 1.25;                 // of the largest peak; below 1 counts as 1
    uint64_t step_bytes = 16 * kMiB;                 // measured sizes are rounded up to it
};

class ShapeMemory {
public:
    explicit ShapeMemory(ShapeMemoryOptions options = {});

    struct Known {
        enum class Why : uint8_t { planned, measured, spilled } why = Why::planned;
        uint64_t bytes = 0;     // to ask the ledger for
        uint64_t estimate = 0;  // of the plan; 0: none was made
        uint64_t peak = 0;      // the largest remembered, of those that spilled their grant; 0: none
    };
    // What to size the next run of the shape from; nothing: it is to be planned.
    std::optional<Known> find(const std::string &shape, int64_t now_us);

    // The plan of a shape that reads or writes `tables`.
    void planned(const std::string &shape, const std::vector<std::string> &tables, uint64_t estimate_bytes,
                 int64_t now_us);
    // A run ended. One that spilled was given too little, so its grant counts when that is more than its peak: with the
    // margin the next one is larger. Without feedback: no effect.
    void ran(const std::string &shape, const std::vector<std::string> &tables, uint64_t peak_bytes,
             uint64_t granted_bytes, bool has_spilled, int64_t now_us);
    // DDL or DML on the table, here or by others. `except`: the shape of the statement that did it, whose own memory
    // says as much as before.
    void changed(const std::string &table, std::string_view except = {});

    size_t size() const { return entries_.size(); }

private:
    struct Peak {
        uint64_t bytes = 0;
        bool spilled = false;
    };
    struct Entry {
        std::string shape;
        std::vector<std::string> tables;
        uint64_t estimate = 0;
        bool has_plan = false;
        std::vector<Peak> peaks;  // the newest last
        int64_t at_us = 0;
    };
    using Entries = std::list<Entry>;  // the most recently used first

    Entry &touch(const std::string &shape, const std::vector<std::string> &tables, int64_t now_us);
    void drop(Entries::iterator entry);

    const ShapeMemoryOptions options_;
    Entries entries_;
    std::unordered_map<std::string, Entries::iterator> by_shape_;
    std::unordered_map<std::string, std::unordered_set<std::string>> by_table_;  // shapes
};

}  // namespace roost::admission
