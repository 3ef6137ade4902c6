#include "sql/session_command.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sql/statement.h"

namespace roost::sql {
namespace {

// One line that says what a command was read as: kind name values options flags.
std::string read(std::string_view text) {
    const auto statements = parse(text);
    if (!statements.ok()) return "error @" + std::to_string(statements.status().error().position);
    const Statement &statement = statements->at(0);
    const SessionCommand &command = statement.command;
    std::string out(kind_name(statement.kind));
    if (!command.name.empty()) out += " " + command.name;
    for (const std::string &value : command.values) out += " [" + value + "]";
    for (const auto &[key, value] : command.options) out += " " + key + "=" + value;
    if (!command.body.empty()) out += " {" + command.body + "}";
    if (command.is_default) out += " default";
    if (command.is_local) out += " local";
    if (command.is_number) out += " number";
    if (statement.read_only_hint) out += " read_only";
    return out;
}

struct Case {
    const char *text;
    const char *expected;
};

void expect_all(const std::vector<Case> &cases) {
    for (const Case &one : cases) EXPECT_EQ(read(one.text), one.expected) << one.text;
}

TEST(SessionCommand, set) {
    expect_all({
        {"SET search_path TO a, \"B c\", 'd'", "set search_path [a] [B c] [d]"},
        {"SET search_path = a", "set search_path [a]"},
        {"set SEARCH_PATH to \"$user\", public", "set search_path [$user] [public]"},
        {"SET SESSION x TO 1", "set x [1] number"},
        {"SET LOCAL x TO -1.5", "set x [-1.5] local number"},
        {"SET GLOBAL x = 1", "set x [1] scope=global number"},
        {"SET x TO DEFAULT", "set x default"},
        {"SET x = on", "set x [on]"},
        {"SET myapp.user_id TO '42'", "set myapp.user_id [42]"},
        {"SET \"Quoted\" = 1", "set quoted [1] number"},
        {"SET x = E'a\\'b'", "set x [a'b]"},
        {"SET x = $$a b$$", "set x [a b]"},
        {"SET TIME ZONE 'UTC'", "set timezone [UTC]"},
        {"SET TIME ZONE UTC", "set timezone [UTC]"},
        {"SET TIME ZONE -3", "set timezone [-3] number"},
        {"SET TIME ZONE LOCAL", "set timezone default"},
        {"SET TIME ZONE DEFAULT", "set timezone default"},
        {"SET LOCAL TIME ZONE 'UTC'", "set timezone [UTC] local"},
        {"SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "set timezone [+00:00] interval=1"},
        {"SET NAMES 'UTF8'", "set client_encoding [UTF8]"},
        {"SET NAMES utf8", "set client_encoding [utf8]"},
        {"SET NAMES", "set client_encoding default"},
        {"SET SCHEMA 'a'", "set search_path [a]"},
        {"SET schema = 'a'", "set schema [a]"},
        {"SET ROLE NONE", "set role [none]"},
        {"SET ROLE 'me'", "set role [me]"},
        {"SET role TO me", "set role [me]"},
        {"SET SESSION AUTHORIZATION DEFAULT", "set session_authorization default"},
        {"SET XML OPTION DOCUMENT", "set xmloption [document]"},
        {"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "set transaction isolation=read committed"},
        {"SET TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE",
         "set transaction isolation=serializable read_only=on read_only"},
        {"SET TRANSACTION SNAPSHOT '3'", "set transaction snapshot=3"},
        {"SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "set session characteristics read_only=off"},
        {"SET CONSTRAINTS ALL DEFERRED", "set_constraints mode=deferred"},
        {"SET CONSTRAINTS a, s.b IMMEDIATE", "set_constraints [a] [s.b] mode=immediate"},
        {"SET x = current_setting('y')", "set x [current_setting('y')] expression=1"},
        {"SET x = ['/']", "set x [['/']] expression=1"},
        {"SET /* c */ x -- d\n = 1", "set x [1] number"},
    });
}

TEST(SessionCommand, reset_and_show) {
    expect_all({
        {"RESET x", "reset x"},
        {"RESET ALL", "reset all all=1"},
        {"RESET TIME ZONE", "reset timezone"},
        {"RESET SESSION AUTHORIZATION", "reset session_authorization"},
        {"RESET TRANSACTION ISOLATION LEVEL", "reset transaction_isolation"},
        {"RESET GLOBAL threads", "reset threads scope=global"},
        {"RESET myapp.x", "reset myapp.x"},
        {"SHOW ALL", "show all all=1"},
        {"SHOW search_path", "show search_path"},
        {"SHOW SERVER_VERSION", "show server_version"},
        {"SHOW TIME ZONE", "show timezone"},
        {"SHOW TRANSACTION ISOLATION LEVEL", "show transaction_isolation"},
        {"SHOW SESSION AUTHORIZATION", "show session_authorization"},
        {"SHOW memory_limit", "show memory_limit"},
        {"SHOW orders", "describe orders"},
        {"SHOW myapp.x", "describe myapp.x"},
        {"SHOW ALL TABLES", "describe"},
        {"SHOW", "describe"},
    });
}

TEST(SessionCommand, transactions) {
    expect_all({
        {"BEGIN", "begin"},
        {"BEGIN WORK", "begin"},
        {"BEGIN TRANSACTION READ ONLY", "begin read_only=on read_only"},
        {"BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE NOT DEFERRABLE",
         "begin deferrable=off isolation=repeatable read read_only=off"},
        {"BEGIN ISOLATION LEVEL READ UNCOMMITTED, DEFERRABLE", "begin deferrable=on isolation=read uncommitted"},
        {"START TRANSACTION", "begin start=1"},
        {"START TRANSACTION READ ONLY", "begin read_only=on start=1 read_only"},
        {"COMMIT", "commit"},
        {"COMMIT WORK AND NO CHAIN", "commit"},
        {"COMMIT AND CHAIN", "commit chain=on"},
        {"END TRANSACTION", "commit"},
        {"ROLLBACK", "rollback"},
        {"ROLLBACK WORK", "rollback"},
        {"ABORT", "rollback"},
        {"SAVEPOINT a", "savepoint a"},
        {"SAVEPOINT \"A b\"", "savepoint A b"},
        {"RELEASE SAVEPOINT a", "release a"},
        {"RELEASE a", "release a"},
        {"ROLLBACK TO a", "rollback_to a"},
        {"ROLLBACK TRANSACTION TO SAVEPOINT a", "rollback_to a"},
    });
}

TEST(SessionCommand, prepared_statements) {
    expect_all({
        {"PREPARE p AS SELECT 1", "prepare p kind=select {SELECT 1}"},
        {"PREPARE p (int, numeric(10, 2), text) AS INSERT INTO t VALUES ($1, $2, $3)",
         "prepare p [int] [numeric(10, 2)] [text] kind=insert {INSERT INTO t VALUES ($1, $2, $3)}"},
        {"EXECUTE p", "execute p"},
        {"EXECUTE p (1, 'a')", "execute p {(1, 'a')}"},
        {"DEALLOCATE p", "deallocate p"},
        {"DEALLOCATE PREPARE p", "deallocate p"},
        {"DEALLOCATE ALL", "deallocate all all=1"},
        {"DEALLOCATE PREPARE ALL", "deallocate all all=1"},
        {"DEALLOCATE \"all\"", "deallocate all"},
        {"DEALLOCATE prepare", "deallocate prepare"},
    });
}

TEST(SessionCommand, cursors) {
    expect_all({
        {"DECLARE c CURSOR FOR SELECT 1", "declare c kind=select {SELECT 1}"},
        {"DECLARE \"SQL_CUR0x7f\" BINARY INSENSITIVE NO SCROLL CURSOR WITH HOLD FOR VALUES (1)",
         "declare SQL_CUR0x7f binary=on hold=on insensitive=on kind=select scroll=off {VALUES (1)}"},
        {"DECLARE c SCROLL CURSOR WITHOUT HOLD FOR SELECT $1", "declare c kind=select scroll=on {SELECT $1}"},
        {"FETCH c", "fetch c direction=next"},
        {"FETCH FROM c", "fetch c direction=next"},
        {"FETCH NEXT FROM c", "fetch c direction=next"},
        {"FETCH 10 FROM c", "fetch c count=10 direction=forward"},
        {"FETCH FORWARD 10 IN c", "fetch c count=10 direction=forward"},
        {"FETCH FORWARD ALL c", "fetch c count=all direction=forward"},
        {"FETCH ALL FROM c", "fetch c count=all direction=forward"},
        {"FETCH -1 FROM c", "fetch c count=-1 direction=forward"},
        {"FETCH BACKWARD FROM c", "fetch c direction=backward"},
        {"FETCH ABSOLUTE -3 FROM c", "fetch c count=-3 direction=absolute"},
        {"FETCH FIRST FROM c", "fetch c direction=first"},
        {"FETCH next", "fetch next direction=next"},
        {"MOVE 5 c", "move c count=5 direction=forward"},
        {"CLOSE c", "close c"},
        {"CLOSE ALL", "close all all=1"},
    });
}

TEST(SessionCommand, the_rest) {
    expect_all({
        {"DISCARD ALL", "discard all"},
        {"DISCARD TEMPORARY", "discard temp"},
        {"LISTEN c", "listen c"},
        {"UNLISTEN *", "unlisten all all=1"},
        {"UNLISTEN c", "unlisten c"},
        {"NOTIFY c, 'hello'", "notify c [hello]"},
        {"LOCK TABLE a, s.b IN ACCESS SHARE MODE NOWAIT", "lock [a] [s.b] mode=access share"},
        {"LOCK a", "lock [a]"},
        {"USE lake", "use [lake]"},
        {"USE lake.\"Main\"", "use [lake] [Main]"},
    });
}

TEST(SessionCommand, what_goes_wrong_says_where) {
    expect_all({
        {"SET", "error @4"},
        {"SET x", "error @6"},
        {"SET x TO", "error @9"},
        {"SET x = a b", "error @11"},
        {"SET x = (", "error @10"},
        {"BEGIN READ", "error @11"},
        {"BEGIN READ ONLY,", "error @17"},
        {"COMMIT PREPARED 'x'", "error @0"},
        {"SAVEPOINT", "error @10"},
        {"SAVEPOINT 'a'", "error @11"},
        {"PREPARE p AS", "error @13"},
        {"PREPARE p (int AS SELECT 1", "error @27"},
        {"PREPARE p () AS SELECT 1", "error @12"},
        {"EXECUTE p 1", "error @11"},
        {"DECLARE c FOR SELECT 1", "error @11"},
        {"DECLARE c CURSOR FOR", "error @21"},
        {"FETCH", "error @6"},
        {"FETCH 'x'", "error @7"},
        {"DISCARD SOME", "error @9"},
        {"USE a.b.c", "error @5"},
        {"RESET", "error @6"},
        {"LOCK t IN MODE", "error @11"},
        {"SHOW TRANSACTION ISOLATION", "error @27"},
    });
}

}  // namespace
}  // namespace roost::sql
