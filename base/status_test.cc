#include "base/status.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace roost {
namespace {

constexpr int kLastCode = static_cast<int>(Code::internal);

Status fails() { return Status(Code::not_found, "no such table").with_hint("look again"); }

Status passes_on(bool fail) {
    ROOST_RETURN_IF_ERROR(fail ? fails() : Status());
    return Status(Code::conflict, "got past");
}

Result<std::string> text_or_error(bool fail) {
    if (fail) return fails();
    return std::string("text");
}

Result<size_t> length(bool fail) {
    ROOST_ASSIGN_OR_RETURN(const std::string text, text_or_error(fail));
    ROOST_ASSIGN_OR_RETURN(const std::string again, text_or_error(fail));
    return text.size() + again.size();
}

TEST(Status, default_is_ok_and_has_no_error) {
    const Status status;
    EXPECT_TRUE(status.ok());
    EXPECT_TRUE(static_cast<bool>(status));
    EXPECT_EQ(status.code(), Code::ok);
    EXPECT_EQ(status.message(), "");
    EXPECT_EQ(status.sqlstate(), "00000");
    EXPECT_FALSE(status.retryable());
    EXPECT_EQ(status.to_string(), "ok");
}

TEST(Status, code_ok_with_a_message_is_ok) { EXPECT_TRUE(Status(Code::ok, "nothing wrong").ok()); }

TEST(Status, every_code_has_a_wire_name_a_sqlstate_and_an_http_status) {
    std::set<std::string_view> names;
    for (int i = 0; i <= kLastCode; ++i) {
        const auto code = static_cast<Code>(i);
        const std::string_view name = code_name(code);
        EXPECT_TRUE(names.insert(name).second) << name;
        EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << name;
        EXPECT_EQ(default_sqlstate(code).size(), 5U) << name;
        EXPECT_EQ(default_sqlstate(code).find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                  std::string_view::npos);
        EXPECT_TRUE(code == Code::ok ? default_http_status(code) == 200 : default_http_status(code) >= 400) << name;
    }
}

TEST(Status, defaults_come_from_the_code_and_builders_override_them) {
    EXPECT_EQ(fails().name(), "not_found");
    EXPECT_EQ(fails().sqlstate(), "42704");
    const Status status =
        fails().with_name("no_table").with_sqlstate("42P01").with_detail("d").with_rule("r").with_position(7);
    EXPECT_EQ(status.name(), "no_table");
    EXPECT_EQ(status.sqlstate(), "42P01");
    EXPECT_EQ(status.error().detail, "d");
    EXPECT_EQ(status.error().rule, "r");
    EXPECT_EQ(status.error().position, 7U);
    EXPECT_EQ(status.error().hint, "look again");
    EXPECT_EQ(status.to_string(), "no_table: no such table (look again)");
}

TEST(Status, builders_leave_an_ok_status_ok) {
    const Status status =
        Status().with_name("x").with_hint("y").with_sqlstate("z").with_retryable(true).with_position(3);
    EXPECT_TRUE(status.ok());
    EXPECT_FALSE(status.retryable());
}

TEST(Status, only_lost_races_and_lost_servers_are_retryable_unless_said) {
    for (int i = 0; i <= kLastCode; ++i) {
        const auto code = static_cast<Code>(i);
        EXPECT_EQ(Status(code, "m").retryable(), code == Code::unavailable || code == Code::conflict)
            << code_name(code);
    }
    EXPECT_TRUE(Status(Code::internal, "m").with_retryable(true).retryable());
    EXPECT_FALSE(Status(Code::unavailable, "m").with_retryable(false).retryable());
}

TEST(Status, copies_are_independent_of_each_other) {
    Status first = fails();
    Status second = first;
    EXPECT_EQ(second.message(), "no such table");
    second = Status();
    EXPECT_TRUE(second.ok());
    EXPECT_FALSE(first.ok());
    Status &alias = first;
    first = alias;
    EXPECT_EQ(first.message(), "no such table");
    const Status moved = std::move(first);
    EXPECT_EQ(moved.message(), "no such table");
}

TEST(Result, holds_a_value_or_a_status) {
    auto good = text_or_error(false);
    ASSERT_TRUE(good.ok());
    EXPECT_TRUE(good.status().ok());
    EXPECT_EQ(*good, "text");
    EXPECT_EQ(good->size(), 4U);
    const std::string taken = *std::move(good);
    EXPECT_EQ(taken, "text");
    const auto bad = text_or_error(true);
    EXPECT_FALSE(bad.ok());
    EXPECT_EQ(bad.status().code(), Code::not_found);
}

TEST(Result, an_ok_status_without_a_value_is_an_internal_error_and_not_success) {
    const Result<int> result{Status()};
    EXPECT_FALSE(result.ok());
    EXPECT_FALSE(result.status().ok());
    EXPECT_EQ(result.status().code(), Code::internal);
}

TEST(Result, may_hold_what_can_only_be_moved) {
    Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
    const std::unique_ptr<int> taken = std::move(result).value();
    EXPECT_EQ(*taken, 5);
}

TEST(Macros, return_early_with_the_error_and_go_on_without_one) {
    EXPECT_EQ(passes_on(true).code(), Code::not_found);
    EXPECT_EQ(passes_on(false).code(), Code::conflict);
    EXPECT_EQ(*length(false), 8U);
    EXPECT_EQ(length(true).status().code(), Code::not_found);
}

}  // namespace
}  // namespace roost
