#include "meta/sqlite_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace roost::meta {
namespace {

constexpr int64_t kSecond = 1'000'000;

class StoreTest : public testing::Test {
protected:
    StoreTest() {
        std::string pattern = testing::TempDir() + "roost_meta_XXXXXX";
        dir_ = mkdtemp(pattern.data());
        path_ = dir_ + "/meta.sqlite";
    }
    ~StoreTest() override { std::filesystem::remove_all(dir_); }

    std::unique_ptr<SqliteStore> open(const SqliteStoreOptions &options = {}) const {
        auto store = SqliteStore::open(path_, options);
        EXPECT_TRUE(store.ok()) << store.status().to_string();
        return store.ok() ? std::move(store).value() : nullptr;
    }

    std::string dir_, path_;
};

StatementRecord make_record(int64_t started_us) {
    StatementRecord record;
    record.id = Uuid::make();
    record.workspace = Uuid::from_name("workspace");
    record.user = Uuid::from_name("user");
    record.user_name = "ada";
    record.workspace_slug = "main";
    record.catalog = "lake";
    record.front = "http";
    record.origin = "interactive";
    record.sql = "SELECT 1";
    record.kind = "select";
    record.status = StatementStatus::running;
    record.started_us = started_us;
    return record;
}

StatementRecord finished(StatementRecord record, int64_t duration_us, StatementStatus status = StatementStatus::done) {
    record.status = status;
    record.running_us = record.started_us;
    record.finished_us = record.started_us + duration_us;
    return record;
}

void put(Store &store, const StatementRecord &record) { store.record_statement(record, {}); }

std::vector<Uuid> ids_of(const std::vector<StatementRecord> &records) {
    std::vector<Uuid> ids;
    for (const auto &record : records) ids.push_back(record.id);
    return ids;
}

// All pages of a listing, in order.
std::vector<Uuid> list_all(Store &store, StatementFilter filter) {
    std::vector<Uuid> ids;
    for (;;) {
        const auto page = store.list_statements(filter);
        EXPECT_TRUE(page.ok()) << page.status().to_string();
        if (!page.ok()) return ids;
        EXPECT_LE(page->items.size(), filter.limit);
        EXPECT_EQ(page->has_more, !page->cursor.empty());
        for (const auto &id : ids_of(page->items)) ids.push_back(id);
        if (!page->has_more) return ids;
        filter.cursor = page->cursor;
    }
}

TEST_F(StoreTest, location_says_which_store_and_what_is_not_there_yet) {
    EXPECT_TRUE(Store::open("sqlite:" + path_).ok());
    const auto postgres = Store::open("postgres:host=h password=secret");
    EXPECT_EQ(postgres.status().code(), Code::unimplemented);
    EXPECT_EQ(postgres.status().error().hint, "use --meta sqlite:PATH");
    EXPECT_EQ(postgres.status().to_string().find("secret"), std::string::npos);
    for (const char *location : {"", "sqlite:", "sqlite::memory:", "meta.sqlite", "mysql:x"}) {
        EXPECT_EQ(Store::open(location).status().code(), Code::invalid_argument) << location;
    }
}

TEST_F(StoreTest, the_files_are_their_owners_alone_also_when_they_were_not) {
    std::ofstream(path_).flush();
    ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
    const auto store = open();
    put(*store, make_record(1));
    ASSERT_TRUE(store->flush().ok());
    for (const char *suffix : {"", "-wal", "-shm"}) {
        struct stat info {};
        ASSERT_EQ(stat((path_ + suffix).c_str(), &info), 0) << suffix;
        EXPECT_EQ(info.st_mode & 0777, 0600U) << suffix;
    }
}

TEST_F(StoreTest, users_are_found_by_name_and_names_are_unique) {
    const auto store = open();
    EXPECT_FALSE(store->find_user("ada")->has_value());
    User user{Uuid::make(), "ada", "admin", make_scram_verifier("pw"), 5};
    ASSERT_TRUE(store->put_user(user).ok());
    user.role = "user";
    ASSERT_TRUE(store->put_user(user).ok());
    const auto found = store->find_user("ada");
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_EQ((*found)->id, user.id);
    EXPECT_EQ((*found)->role, "user");
    EXPECT_EQ((*found)->scram_verifier, user.scram_verifier);
    EXPECT_EQ((*found)->created_us, 5);
    const Status taken = store->put_user(User{Uuid::make(), "ada", "user", "", 0});
    EXPECT_EQ(taken.code(), Code::already_exists);
    EXPECT_EQ(taken.message(), "the user ada exists already");
    EXPECT_FALSE(store->find_user("' OR 1=1 --")->has_value());
}

TEST_F(StoreTest, tokens_expire_and_are_not_kept_in_clear) {
    const auto store = open();
    const User user{Uuid::make(), "ada", "admin", "", 0};
    ASSERT_TRUE(store->put_user(user).ok());
    const int64_t now_us = SystemClock().wall_us();
    ASSERT_TRUE(store->put_token(user.id, "forever-token-text", 0).ok());
    ASSERT_TRUE(store->put_token(user.id, "later", now_us + 3600 * kSecond).ok());
    ASSERT_TRUE(store->put_token(user.id, "over", now_us - 1).ok());
    EXPECT_EQ((*store->find_token("forever-token-text"))->id, user.id);
    EXPECT_EQ((*store->find_token("later"))->name, "ada");
    EXPECT_FALSE(store->find_token("over")->has_value());
    EXPECT_FALSE(store->find_token("unknown")->has_value());
    EXPECT_FALSE(store->find_token("")->has_value());
    for (const char *suffix : {"", "-wal"}) {
        std::ifstream in(path_ + suffix, std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        EXPECT_EQ(bytes.find("forever-token-text"), std::string::npos) << suffix;
    }
}

TEST_F(StoreTest, workspaces_catalogs_and_members_come_back_after_reopening) {
    const Workspace workspace{Uuid::make(), "main", "Main", "lake", 1};
    const Catalog lake{Uuid::make(), "lake", "sqlite:/c", "/data", workspace.id, true, 2};
    const Catalog other{Uuid::make(), "other", "sqlite:/o", "/o", workspace.id, true, 3};
    Member member{Uuid::make(), "node-1", "default", "0.1", 4, uint64_t{1} << 40, "/n", 10, 10, false};
    {
        const auto store = open();
        ASSERT_TRUE(store->put_workspace(workspace).ok());
        ASSERT_TRUE(store->put_catalog(lake).ok());
        ASSERT_TRUE(store->put_catalog(other).ok());
        ASSERT_TRUE(store->put_member(member).ok());
        member.first_seen_us = member.last_seen_us = 20;
        ASSERT_TRUE(store->put_member(member).ok());
        Catalog clash = lake;
        clash.id = Uuid::make();
        EXPECT_EQ(store->put_catalog(clash).code(), Code::already_exists);
    }
    const auto store = open();
    ASSERT_EQ(store->workspaces()->size(), 1U);
    EXPECT_EQ((*store->workspaces())[0].default_catalog, "lake");
    const auto catalogs = store->catalogs();
    ASSERT_EQ(catalogs->size(), 2U);
    EXPECT_FALSE((*catalogs)[0].is_default) << "a workspace has one default, the last one set";
    EXPECT_TRUE((*catalogs)[1].is_default);
    EXPECT_EQ((*catalogs)[0].workspace, workspace.id);
    const auto members = store->members();
    ASSERT_EQ(members->size(), 1U);
    EXPECT_EQ((*members)[0].memory_bytes, uint64_t{1} << 40);
    EXPECT_EQ((*members)[0].first_seen_us, 10);
    EXPECT_EQ((*members)[0].last_seen_us, 20);
}

TEST_F(StoreTest, a_record_keeps_every_field) {
    const auto store = open();
    StatementRecord record = finished(make_record(1'000), 2'000, StatementStatus::failed);
    record.session = Uuid::make();
    record.node = Uuid::make();
    record.sql = "SELECT '\xc3\xa4\n%_'";
    record.error = "it failed";
    record.error_code = "engine_error";
    record.sqlstate = "22012";
    record.has_result = true;
    record.row_count = UINT64_MAX;
    record.result_bytes = uint64_t{1} << 62;
    record.column_schema = R"([{"name":"a","type":"INTEGER"}])";
    record.profile = "{}";
    record.writes = true;
    put(*store, record);
    ASSERT_TRUE(store->flush().ok());
    const auto found = store->find_statement(record.id);
    ASSERT_TRUE(found.ok() && found->has_value());
    const StatementRecord &read = **found;
    EXPECT_EQ(read.workspace, record.workspace);
    EXPECT_EQ(read.user, record.user);
    EXPECT_EQ(read.session, record.session);
    EXPECT_EQ(read.node, record.node);
    EXPECT_EQ(read.user_name, "ada");
    EXPECT_EQ(read.workspace_slug, "main");
    EXPECT_EQ(read.catalog, "lake");
    EXPECT_EQ(read.front, "http");
    EXPECT_EQ(read.origin, "interactive");
    EXPECT_EQ(read.sql, record.sql);
    EXPECT_EQ(read.kind, "select");
    EXPECT_EQ(read.status, StatementStatus::failed);
    EXPECT_EQ(read.error, "it failed");
    EXPECT_EQ(read.error_code, "engine_error");
    EXPECT_EQ(read.sqlstate, "22012");
    EXPECT_TRUE(read.has_result);
    EXPECT_EQ(read.row_count, UINT64_MAX);
    EXPECT_EQ(read.result_bytes, uint64_t{1} << 62);
    EXPECT_EQ(read.column_schema, record.column_schema);
    EXPECT_EQ(read.profile, "{}");
    EXPECT_EQ(read.started_us, 1'000);
    EXPECT_EQ(read.running_us, 1'000);
    EXPECT_EQ(read.finished_us, 3'000);
    EXPECT_TRUE(read.writes);
    EXPECT_FALSE(store->find_statement(Uuid::make())->has_value());
}

TEST_F(StoreTest, absent_values_stay_absent) {
    const auto store = open();
    put(*store, make_record(1));
    StatementRecord bare;
    bare.id = Uuid::make();
    put(*store, bare);
    ASSERT_TRUE(store->flush().ok());
    const auto read = *store->find_statement(bare.id);
    ASSERT_TRUE(read.has_value());
    EXPECT_FALSE(read->row_count.has_value());
    EXPECT_TRUE(read->session.is_nil());
    EXPECT_TRUE(read->user.is_nil());
    EXPECT_EQ(read->sql, "");
}

TEST_F(StoreTest, the_end_of_a_statement_replaces_its_beginning_in_one_batch_or_in_two) {
    const auto store = open();
    for (const bool apart : {false, true}) {
        StatementRecord record = make_record(5);
        put(*store, record);
        if (apart) ASSERT_TRUE(store->flush().ok());
        record = finished(record, 100);
        record.row_count = 7;
        put(*store, record);
        ASSERT_TRUE(store->flush().ok());
        const auto read = *store->find_statement(record.id);
        EXPECT_EQ(read->status, StatementStatus::done);
        EXPECT_EQ(read->row_count, 7U);
        EXPECT_EQ(read->sql, "SELECT 1");
    }
    EXPECT_EQ(list_all(*store, {}).size(), 2U);
}

TEST_F(StoreTest, durable_is_called_once_for_each_record_in_order_and_after_the_commit) {
    const auto store = open();
    std::vector<int> order;
    for (int i = 0; i < 500; ++i) {
        StatementRecord record = make_record(i);
        if (i % 3 == 0) put(*store, record);
        const Uuid id = record.id;
        store->record_statement(std::move(record), [&, i, id](const Status &status) {
            EXPECT_TRUE(status.ok()) << status.to_string();
            // Another connection sees it: it is committed.
            EXPECT_TRUE(store->find_statement(id)->has_value());
            order.push_back(i);
        });
    }
    ASSERT_TRUE(store->flush().ok());
    ASSERT_EQ(order.size(), 500U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(StoreTest, a_listing_shows_what_was_recorded_before_it) {
    const auto store = open();
    for (int i = 0; i < 50; ++i) {
        const StatementRecord record = make_record(i);
        put(*store, record);
        const auto page = store->list_statements({.limit = 1});
        ASSERT_TRUE(page.ok());
        ASSERT_EQ(page->items.at(0).id, record.id);
    }
}

TEST_F(StoreTest, records_that_nobody_waits_for_share_a_commit) {
    SqliteStoreOptions options;
    options.writer.gather_ms = 60'000;
    const auto store = open(options);
    std::vector<Uuid> ids;
    for (int i = 0; i < 10; ++i) {
        ids.push_back(make_record(i).id);
        StatementRecord record = make_record(i);
        record.id = ids.back();
        put(*store, record);
    }
    EXPECT_FALSE(store->find_statement(ids[0])->has_value()) << "still gathering";
    // One that somebody waits for takes the others along.
    std::promise<void> done;
    store->record_statement(make_record(10), [&](const Status &) { done.set_value(); });
    done.get_future().wait();
    for (const Uuid &id : ids) EXPECT_TRUE(store->find_statement(id)->has_value());
}

TEST_F(StoreTest, unfinished_statements_are_those_queued_or_running) {
    const auto store = open();
    std::vector<Uuid> expected;
    for (int i = 0; i < 5; ++i) {
        StatementRecord record = make_record(i);
        record.status = static_cast<StatementStatus>(i);
        put(*store, record);
        if (i < 2) expected.push_back(record.id);
    }
    ASSERT_TRUE(store->flush().ok());
    EXPECT_EQ(ids_of(*store->unfinished_statements()), expected);
}

TEST_F(StoreTest, pruning_deletes_what_ended_and_came_in_before_and_names_it) {
    const auto store = open();
    std::set<Uuid> old;
    for (int i = 0; i < 2'500; ++i) {
        const StatementRecord record = finished(make_record(i), 10);
        put(*store, record);
        if (i < 2'300) old.insert(record.id);
    }
    const StatementRecord still_running = make_record(0);
    put(*store, still_running);
    const auto pruned = store->prune_statements(2'300);
    ASSERT_TRUE(pruned.ok()) << pruned.status().to_string();
    EXPECT_EQ(std::set<Uuid>(pruned->begin(), pruned->end()), old);
    EXPECT_EQ(pruned->size(), old.size());
    EXPECT_EQ(list_all(*store, {.limit = 1000}).size(), 201U);
    EXPECT_TRUE(store->find_statement(still_running.id)->has_value());
    EXPECT_TRUE(store->prune_statements(2'300)->empty());
}

TEST_F(StoreTest, a_full_queue_refuses_beginnings_but_takes_ends_and_says_so_on_the_writers_thread) {
    SqliteStoreOptions options;
    options.writer.queue_max_records = 10;
    const auto store = open(options);
    // The writer stands in the callback of the first record until the queue is full.
    std::promise<void> full;
    std::promise<void> standing;
    store->record_statement(make_record(0), [&](const Status &) {
        standing.set_value();
        full.get_future().wait();
    });
    standing.get_future().wait();
    std::vector<StatementRecord> begun;
    std::atomic<int> refused = 0;
    std::atomic<int> written = 0;
    const auto caller = std::this_thread::get_id();
    for (int i = 1; i <= 25; ++i) {
        begun.push_back(make_record(i));
        store->record_statement(begun.back(), [&](const Status &status) {
            EXPECT_NE(std::this_thread::get_id(), caller);
            if (status.ok()) {
                ++written;
            } else {
                EXPECT_EQ(status.code(), Code::resource_exhausted);
                EXPECT_TRUE(status.retryable());
                ++refused;
            }
        });
    }
    for (int i = 0; i < 10; ++i) {
        store->record_statement(finished(begun[static_cast<size_t>(i)], 5),
                                [](const Status &status) { EXPECT_TRUE(status.ok()); });
    }
    full.set_value();
    EXPECT_EQ(store->flush().code(), Code::resource_exhausted) << "a flush tells of what was lost";
    EXPECT_TRUE(store->flush().ok()) << "once";
    EXPECT_EQ(written, 10);
    EXPECT_EQ(refused, 15);
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ((*store->find_statement(begun[static_cast<size_t>(i)].id))->status, StatementStatus::done);
}

TEST_F(StoreTest, the_queue_is_bounded_in_bytes_too) {
    SqliteStoreOptions options;
    options.writer.queue_max_bytes = 1 << 20;
    const auto store = open(options);
    std::promise<void> go;
    std::promise<void> standing;
    store->record_statement(make_record(0), [&](const Status &) {
        standing.set_value();
        go.get_future().wait();
    });
    standing.get_future().wait();
    std::atomic<int> refused = 0;
    for (int i = 0; i < 4; ++i) {
        StatementRecord record = make_record(i);
        record.sql = std::string(400'000, 'x');
        store->record_statement(std::move(record), [&](const Status &status) { refused += status.ok() ? 0 : 1; });
    }
    go.set_value();
    (void)store->flush();
    EXPECT_EQ(refused, 2);
}

TEST_F(StoreTest, what_is_queued_when_the_store_closes_is_committed) {
    std::vector<Uuid> ids;
    {
        const auto store = open();
        for (int i = 0; i < 5'000; ++i) {
            const StatementRecord record = make_record(i);
            ids.push_back(record.id);
            put(*store, record);
        }
    }
    std::reverse(ids.begin(), ids.end());
    EXPECT_EQ(list_all(*open(), {.limit = 1000}), ids);
}

TEST_F(StoreTest, many_threads_write_and_read_at_once) {
    const auto store = open();
    constexpr int kEach = 300;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&store, t] {
            for (int i = 0; i < kEach; ++i) {
                StatementRecord record = make_record(t * 1'000 + i);
                put(*store, record);
                put(*store, finished(record, 1));
                if (i % 50 == 0) {
                    EXPECT_TRUE(store->list_statements({}).ok());
                    EXPECT_TRUE(
                        store->put_user(User{Uuid::make(), "u" + std::to_string(t * 1'000 + i), "user", "", 0}).ok());
                    EXPECT_TRUE(store->find_user("u" + std::to_string(t * 1'000 + i))->has_value());
                }
            }
        });
    }
    for (auto &thread : threads) thread.join();
    ASSERT_TRUE(store->flush().ok());
    EXPECT_EQ(list_all(*store, {.limit = 1000}).size(), 4U * kEach);
    EXPECT_TRUE(store->unfinished_statements()->empty());
}

// Runs in a process of its own, started by the next test, and writes until it is killed: each id that was reported
// durable goes to stdout.
TEST(CrashChild, DISABLED_writes_until_killed) {
    const char *path = getenv("ROOST_TEST_CRASH_PATH");
    ASSERT_NE(path, nullptr);
    auto store = SqliteStore::open(path);
    ASSERT_TRUE(store.ok());
    for (int i = 0;; ++i) {
        StatementRecord record = make_record(i);
        record.sql = std::string(static_cast<size_t>(i % 7) * 500, 'x');
        const Uuid id = record.id;
        (*store)->record_statement(std::move(record), [id](const Status &status) {
            if (status.ok() && write(STDERR_FILENO, id.bytes.data(), id.bytes.size()) != 16) _exit(1);
        });
        if (i % 100 == 99) (void)(*store)->flush();
    }
}

class Child {
public:
    explicit Child(const std::string &path) {
        int ends[2];
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        setenv("ROOST_TEST_CRASH_PATH", path.c_str(), 1);
        std::string program = "/proc/self/exe";
        std::string filter = "--gtest_filter=CrashChild.*";
        std::string also = "--gtest_also_run_disabled_tests";
        char *arguments[] = {program.data(), filter.data(), also.data(), nullptr};
        EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        out_ = ends[0];
    }
    ~Child() { close(out_); }

    // Ids reported durable: `count` of them while it lives, then those still in the pipe.
    std::vector<Uuid> kill_after(size_t count) {
        std::vector<Uuid> ids;
        Uuid id;
        while (ids.size() < count && read_id(id)) ids.push_back(id);
        kill(pid_, SIGKILL);
        int status = 0;
        waitpid(pid_, &status, 0);
        EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
        while (read_id(id)) ids.push_back(id);
        return ids;
    }

private:
    bool read_id(Uuid &id) {
        size_t got = 0;
        while (got < id.bytes.size()) {
            const ssize_t size = read(out_, id.bytes.data() + got, id.bytes.size() - got);
            if (size <= 0) return false;
            got += static_cast<size_t>(size);
        }
        return true;
    }

    pid_t pid_ = -1;
    int out_ = -1;
};

TEST_F(StoreTest, what_was_durable_is_there_after_kill_9_and_the_store_goes_on) {
    std::set<Uuid> acknowledged;
    for (int round = 0; round < 4; ++round) {
        Child child(path_);
        const auto ids = child.kill_after(static_cast<size_t>(200 + round * 700));
        ASSERT_GE(ids.size(), 200U);
        acknowledged.insert(ids.begin(), ids.end());
        const auto store = open();
        ASSERT_NE(store, nullptr);
        const auto listed = list_all(*store, {.limit = 1000});
        const std::set<Uuid> there(listed.begin(), listed.end());
        EXPECT_EQ(there.size(), listed.size());
        for (const Uuid &id : acknowledged) ASSERT_TRUE(there.contains(id)) << "round " << round;
        EXPECT_EQ(store->unfinished_statements()->size(), listed.size());
        put(*store, make_record(1));
        ASSERT_TRUE(store->flush().ok());
        // One more than the child wrote; it is in the next round's listing.
    }
}

TEST_F(StoreTest, a_file_that_is_no_database_is_named_and_left_alone) {
    const std::string text = "this is a shopping list, and has been one for years\n" + std::string(2'000, '.');
    std::ofstream(path_) << text;
    const auto store = SqliteStore::open(path_);
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), Code::data_loss) << store.status().to_string();
    EXPECT_NE(store.status().message().find(path_), std::string::npos);
    EXPECT_NE(store.status().error().hint.find("no SQLite database"), std::string::npos);
    std::ifstream in(path_);
    EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()), text);
}

TEST_F(StoreTest, a_database_of_something_else_and_one_of_a_newer_roost_are_left_alone) {
    std::ofstream(path_).flush();
    {
        auto db = *Db::open(path_, Db::Mode::write, 1'000);
        ASSERT_TRUE(db->execute("CREATE TABLE recipes(name TEXT)").ok());
    }
    auto store = SqliteStore::open(path_);
    EXPECT_EQ(store.status().code(), Code::failed_precondition);
    EXPECT_NE(store.status().message().find("something else"), std::string::npos);
    path_ = dir_ + "/newer.sqlite";
    open().reset();
    {
        auto db = *Db::open(path_, Db::Mode::write, 1'000);
        ASSERT_TRUE(db->execute("PRAGMA user_version = 99").ok());
    }
    store = SqliteStore::open(path_);
    EXPECT_EQ(store.status().code(), Code::failed_precondition);
    EXPECT_NE(store.status().message().find("version 99"), std::string::npos);
}

TEST_F(StoreTest, a_missing_directory_and_a_directory_in_the_files_place_are_clear_errors) {
    auto store = SqliteStore::open(dir_ + "/missing/meta.sqlite");
    EXPECT_EQ(store.status().code(), Code::io_error);
    EXPECT_NE(store.status().error().hint.find("directory does not exist"), std::string::npos);
    store = SqliteStore::open(dir_);
    EXPECT_EQ(store.status().code(), Code::io_error);
    EXPECT_NE(store.status().message().find("is not a file"), std::string::npos);
}

// Whatever is damaged: an error or an answer, never a crash, and data_loss where SQLite notices.
TEST_F(StoreTest, damage_anywhere_in_the_file_gives_errors_and_no_crash) {
    {
        const auto store = open();
        for (int i = 0; i < 2'000; ++i) put(*store, finished(make_record(i), i));
        ASSERT_TRUE(store->flush().ok());
    }
    std::ifstream in(path_, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const uint64_t seed = std::random_device()();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    int noticed = 0;
    for (int round = 0; round < 60; ++round) {
        std::string bytes = whole;
        if (round % 3 == 0) {
            bytes.resize(random() % bytes.size());
        } else {
            const size_t at = random() % (bytes.size() - 4096);
            for (size_t i = 0; i < 4096; ++i) bytes[at + i] = static_cast<char>(random());
        }
        path_ = dir_ + "/damaged" + std::to_string(round) + ".sqlite";
        std::ofstream(path_, std::ios::binary) << bytes;
        auto store = SqliteStore::open(path_);
        if (!store.ok()) {
            EXPECT_FALSE(store.status().message().empty());
            noticed += store.status().code() == Code::data_loss ? 1 : 0;
            continue;
        }
        StatementFilter filter;
        filter.by_duration = true;
        const auto page = (*store)->list_statements(filter);
        noticed += page.status().code() == Code::data_loss ? 1 : 0;
        put(**store, make_record(1));
        (void)(*store)->flush();
        (void)(*store)->find_user("ada");
    }
    EXPECT_GT(noticed, 10);
}

TEST_F(StoreTest, a_lock_of_another_process_is_waited_for_and_then_named) {
    open().reset();
    SqliteStoreOptions options;
    options.busy_timeout_ms = 50;
    const auto store = open(options);
    auto other = *Db::open(path_, Db::Mode::write, 1'000);
    ASSERT_TRUE(other->execute("BEGIN IMMEDIATE").ok());
    const Status refused = store->put_user(User{Uuid::make(), "ada", "user", "", 0});
    EXPECT_EQ(refused.code(), Code::unavailable) << refused.to_string();
    EXPECT_TRUE(refused.retryable());
    ASSERT_TRUE(other->execute("ROLLBACK").ok());
    EXPECT_TRUE(store->put_user(User{Uuid::make(), "ada", "user", "", 0}).ok());
}

TEST(Scram, verifier_is_the_one_that_postgres_would_store) {
    // The example of RFC 7677: user "user", password "pencil".
    const std::string salt = "\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81";
    EXPECT_EQ(make_scram_verifier("pencil", salt),
              "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
              "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=");
    const std::string made = make_scram_verifier("pencil");
    EXPECT_EQ(made.rfind("SCRAM-SHA-256$4096:", 0), 0U);
    EXPECT_NE(made, make_scram_verifier("pencil")) << "each has a salt of its own";
    EXPECT_EQ(made.size(), std::string("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$=:").size() + 43 + 44);
    EXPECT_FALSE(make_scram_verifier("").empty());
}

TEST(StatusNames, round_trip) {
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(parse_status(status_name(static_cast<StatementStatus>(i))), static_cast<StatementStatus>(i));
    EXPECT_FALSE(parse_status("Done").has_value());
    EXPECT_FALSE(parse_status("").has_value());
}

}  // namespace
}  // namespace roost::meta
