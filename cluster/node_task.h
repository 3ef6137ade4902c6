// One statement on a node, from its dispatch to its end: NodeAgent's own, shared by the files of its code.
#pragma once

#include <memory>
#include <string>

#include "cluster/node_agent.h"

namespace roost::cluster {

struct NodeAgent::Task {
    Task(uint64_t stream_no, StatementSpec s, std::shared_ptr<net::FrameLink> link, ResultLinks &links)
        : stream(stream_no), spec(std::move(s)), control(std::move(link)), out(control, links, stream) {}

    const uint64_t stream;
    const StatementSpec spec;
    const std::shared_ptr<net::FrameLink> control;

    // Guarded by the agent's mutex.
    Phase phase = Phase::queued;
    std::shared_ptr<Execution> execution;
    Status cancel_reason;
    int64_t deadline_us = 0;  // of execution; 0 before it starts and when there is none
    bool holds_slot = false;
    Uuid holder;  // its account, once it has asked
    Progress::Phase reported = Progress::Phase::queued;
    Grant grant;         // set before the task is resumed
    bool keeps = false;  // its account is its session's, which keeps the instance; set with holder

    // The worker that advances the task; handed over through the agent's mutex.
    Stage stage = Stage::plan;
    ResultOutput out;
    NodeTimings timings;
    MemoryAccount memory;
    PlanInfo plan;                                       // without its header; nothing in it when it was not planned
    std::optional<admission::ShapeMemory::Known> known;  // what to ask for
    Uuid lane;                                           // its name in the small lane; nil: it is not there
    bool begun = false;                                  // its account's orders wait for it to be started, or to finish
    int64_t stage_since_us = 0;
    int64_t parked_since_us = 0;
    bool started = false;
};

// Name of the status of who would wait for memory and may not.
constexpr std::string_view kWouldWait = "would_wait";

}  // namespace roost::cluster
