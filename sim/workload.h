// What is run: units with sizes, and a sequence of statements, made from a seed or read from a trace.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/random.h"

namespace roost::sim {

struct SimStatement {
    double at_us = -1;  // when it arrives; -1: as soon as its client is free
    std::vector<uint32_t> units;
    bool writes = false;  // the first unit is written, the others are read
    double cpu_us = 0;    // of one vCPU, with all data at hand
};

struct WorkloadOptions {
    uint32_t units = 8'000;
    uint64_t unit_bytes = uint64_t{64} << 20;
    double size_spread = 0;  // sigma of the logarithm of sizes; 0: all equal
    double zipf = 0.8;
    double write_share = 0;   // of statements that write their unit
    double join_share = 0;    // of statements that read two units
    uint32_t tenants = 1;     // each has its own part of the units and its own hot ones; they take turns being busy
    uint32_t scan_every = 0;  // a client that goes through all units once begins each so many statements; 0: none
    double cpu_us = 50'000;   // mean; a statement takes from half of it up
};

// Statements in their order; infinite when synthetic.
class Workload {
public:
    virtual ~Workload() = default;
    virtual const std::vector<uint64_t> &unit_bytes() const = 0;
    // False when there are no more.
    virtual bool next(SimStatement &statement) = 0;
};

std::unique_ptr<Workload> make_synthetic(const WorkloadOptions &options, uint64_t seed);

// A recorded trace: a line of text each,
//   roost-trace 1
//   unit NUMBER BYTES                              each unit before its first use, numbered from 0 without gaps
//   run AT_US r|w CPU_US UNIT[,UNIT…]              in any order; w writes the first unit
// Empty lines and those that begin with # are skipped. Errors name the line.
Result<std::unique_ptr<Workload>> read_trace(std::istream &in);
void write_trace(std::ostream &out, Workload &workload, uint64_t statements);

}  // namespace roost::sim
