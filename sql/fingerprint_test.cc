#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sql/statement.h"

namespace roost::sql {
namespace {

using Pair = std::pair<const char *, const char *>;

TEST(Fingerprint, equal_shapes) {
    const std::vector<Pair> pairs = {
        {"SELECT 1", "select 2"},
        {"SELECT 1", "SELECT 'a'"},
        {"SELECT 1", " SELECT\n/* c */ 1 -- d"},
        {"SELECT 1", "SELECT 1;"},
        {"SELECT 1", "SELECT $1"},
        {"SELECT ?", "SELECT $1"},
        {"SELECT a FROM T WHERE b = 'x'", "select A from t where B=$$y; z$$"},
        {"SELECT * FROM t WHERE a IN (1, 2, 3)", "SELECT * FROM t WHERE a IN (4)"},
        {"SELECT * FROM t WHERE a IN ('a', NULL, -1)", "SELECT * FROM t WHERE a IN ($1)"},
        {"INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)"},
        {"INSERT INTO t VALUES (f(1), 'a')", "INSERT INTO t VALUES (f(2), 'b')"},
        {"SELECT\u00a01", "SELECT 1"},
        {"SELECT U&'a'", "SELECT E'b'"},
        {"SELECT \"A\"", "SELECT \"a\""},
    };
    for (const auto &[a, b] : pairs) EXPECT_EQ(fingerprint(a), fingerprint(b)) << a << " | " << b;
}

TEST(Fingerprint, different_shapes) {
    const std::vector<Pair> pairs = {
        {"SELECT 1", "SELECT 1, 2"},
        {"SELECT a", "SELECT b"},
        {"SELECT a b", "SELECT ab"},
        {"SELECT a", "SELECT 'a'"},
        {"SELECT \"select\"", "SELECT select"},
        {"SELECT a FROM t", "SELECT a FROM u"},
        {"SELECT f(1)", "SELECT f(1, 2)"},
        {"SELECT * FROM t WHERE a IN (1, 2)", "SELECT * FROM t WHERE a IN (b, 2)"},
        {"SELECT * FROM t WHERE a IN (1)", "SELECT * FROM t WHERE a NOT IN (1)"},
        {"SELECT * FROM t WHERE a IN (1)", "SELECT * FROM t WHERE a IN (SELECT 1)"},
        {"INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1, 2)"},
        {"INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (a)"},
        {"SELECT a < b", "SELECT a > b"},
        {"SELECT a.b", "SELECT a, b"},
        {"SELECT NULL", "SELECT 1"},
        {"SELECT (1)", "SELECT 1"},
        {"", "SELECT 1"},
    };
    for (const auto &[a, b] : pairs) EXPECT_NE(fingerprint(a), fingerprint(b)) << a << " | " << b;
}

// Histories keep shapes: they must not change from build to build or machine to machine.
TEST(Fingerprint, is_stable) {
    EXPECT_EQ(fingerprint("SELECT a FROM t WHERE b = 1"), fingerprint("SELECT a FROM t WHERE b = 'x'"));
    EXPECT_EQ(fingerprint("SELECT 1"), 16940064313153704961ULL);
}

}  // namespace
}  // namespace roost::sql
