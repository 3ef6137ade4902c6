// A hub and nodes for tests, joined by real Unix sockets: the hub on the test's own loop and thread, each node on a
// thread of its own, over a FakeEngine.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "cluster/fake_engine.h"
#include "cluster/gateway_hub.h"
#include "cluster/node_agent.h"
#include "net/loop.h"

namespace roost::cluster {

constexpr const char *kTestToken = "token-of-the-pool";

// A node's process, as a thread.
class TestNode {
public:
    struct Options {
        Uuid id = Uuid::make();
        uint64_t incarnation = 1;
        uint32_t small_workers = 2;
        uint32_t queue_max = 100;
        uint64_t budget_bytes = 1200;  // lanes of 100 each, slots of 500
        std::string token = kTestToken;
        int64_t pid = 1;
        uint32_t cpus = 1;
        admission::Profile profile = admission::Profile::equal_2;
        std::vector<admission::GroupOptions> groups{};
        uint64_t memory_bytes = 0;
        std::function<uint64_t()> resident_bytes{};
    };
    TestNode(const std::string &socket, const Clock &clock, obs::Log &log, Options options)
        : id(options.id),
          engine(2 * admission::lanes_of(options.budget_bytes).small_bytes),
          agent_(agent_options(socket, options), engine, clock, log, loop_) {
        agent_.run();
        thread_ = std::thread([this] { loop_.run(); });
    }
    ~TestNode() { kill(); }
    TestNode(const TestNode &) = delete;
    TestNode &operator=(const TestNode &) = delete;

    // Ends it: its links first, so that nothing is heard of its statements.
    void kill() {
        if (!thread_.joinable()) return;
        loop_.stop();
        thread_.join();
        agent_.hang_up();
        engine.release();
        agent_.stop();
        loop_.end();
    }
    void drain(int64_t grace_ms) {
        net::asio::post(loop_, [this, grace_ms] { agent_.drain(grace_ms); });
    }
    bool ended() const { return loop_.stopped(); }

    const Uuid id;
    FakeEngine engine;

private:
    static NodeAgentOptions agent_options(const std::string &socket, const Options &options) {
        NodeAgentOptions agent;
        agent.gateway.unix_path = socket;
        agent.join_token = options.token;
        agent.hello.node = options.id;
        agent.hello.incarnation = options.incarnation;
        agent.hello.name = "node";
        agent.hello.version = "1";
        agent.hello.pid = options.pid;
        agent.hello.cpus = options.cpus;
        agent.hello.budget_bytes = options.budget_bytes;
        agent.profile = options.profile;
        agent.groups = options.groups;
        agent.hello.memory_bytes = options.memory_bytes;
        agent.resident_bytes = options.resident_bytes;
        agent.small_workers = options.small_workers;
        agent.queue_max = options.queue_max;
        return agent;
    }

    net::Loop loop_;
    NodeAgent agent_;
    std::thread thread_;
};

// What came of a stream: its frames up to the last, or the error in place of it.
struct Seen {
    bool ended = false;
    Status status;  // of the stream
    std::vector<net::FrameType> types;
    uint64_t rows = 0;
    Completion completion;
};

class TestPool : public ::testing::Test {
protected:
    TestPool() : log(obs::make_null_log()) { start_hub(); }
    ~TestPool() override { end(); }

    // Ends nodes, hub and loop. A fixture whose parts the loop's coroutines use calls it first in its destructor.
    void end() {
        nodes_.clear();
        if (hub_) hub_->stop();
        loop.end();
    }

    // A gateway, or one that is started again.
    void start_hub() {
        if (hub_) hub_->stop();
        settle();
        hub_ = std::make_unique<GatewayHub>(hub_options, clock, *log, loop);
        EXPECT_TRUE(hub_->listen().ok());
    }

    // Runs the loop until `done`; a test that waits for what does not come ends here.
    void run_until(const std::function<bool()> &done) {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        loop.restart();
        while (!done()) {
            if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("waited in vain");
            loop.run_one_for(std::chrono::milliseconds(2));
            if (loop.stopped()) loop.restart();
        }
    }
    // Runs what is ready, and what becomes so by it.
    void settle() {
        loop.restart();
        for (int i = 0; i < 3; ++i) loop.run_for(std::chrono::milliseconds(2)), loop.restart();
    }

    TestNode &add_node(TestNode::Options options = {}) {
        nodes_.push_back(std::make_unique<TestNode>(socket(), clock, *log, options));
        const Uuid id = nodes_.back()->id;
        run_until([&] { return hub_->members().contains(id); });
        return *nodes_.back();
    }

    GatewayHub &hub() { return *hub_; }
    const std::string &socket() const { return hub_options.listen.front().unix_path; }

    // Opens a stream and reads it to its end. `seen` outlives the loop's work.
    void run(const Uuid &node, const StatementSpec &spec, Seen &seen) {
        auto stream = hub().open(node, net::FrameType::dispatch, encode(spec));
        ASSERT_TRUE(stream.ok()) << stream.status().to_string();
        read(std::move(*stream), seen);
    }
    void read(std::shared_ptr<RemoteStream> stream, Seen &seen) {
        net::asio::co_spawn(loop, read_all(std::move(stream), seen), net::asio::detached);
    }

    SystemClock clock;
    std::unique_ptr<obs::Log> log;
    net::Loop loop;
    HubOptions hub_options = default_options();

private:
    static net::Task<void> read_all(std::shared_ptr<RemoteStream> stream, Seen &seen) {
        for (;;) {
            auto frame = co_await stream->next();
            if (!frame.ok()) {
                seen.status = frame.status();
                break;
            }
            seen.types.push_back(frame->type);
            seen.rows += frame->rows;
            if (frame->type == net::FrameType::end) seen.completion = decode_completion(frame->payload).value();
            if (frame->type == net::FrameType::end || frame->type == net::FrameType::refused) break;
        }
        seen.ended = true;
    }
    static HubOptions default_options() {
        static int count = 0;
        HubOptions options;
        net::Endpoint endpoint;
        endpoint.unix_path = (std::filesystem::temp_directory_path() /
                              ("roost-" + std::to_string(::getpid()) + "-" + std::to_string(count++)))
                                 .string();
        options.listen.push_back(endpoint);
        options.join_token = kTestToken;
        options.heartbeat_ms = 20;
        options.version = "1";
        return options;
    }

    std::unique_ptr<GatewayHub> hub_;
    std::vector<std::unique_ptr<TestNode>> nodes_;
};

inline StatementSpec spec_of(std::string words) {
    StatementSpec spec;
    spec.id = Uuid::make();
    spec.sql = std::move(words);
    return spec;
}

}  // namespace roost::cluster
