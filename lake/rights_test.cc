#include "lake/rights.h"

#include <gtest/gtest.h>

namespace roost {
namespace {

TEST(Rights, OfATableAreTheHighestOfItsCatalogSchemaAndOwn) {
    CatalogRights rights;
    EXPECT_FALSE(rights.sees_anything());
    rights.add("Sales", "Orders", Privilege::reader);
    EXPECT_EQ(rights.of_table("sales", "ORDERS"), Privilege::reader);
    EXPECT_EQ(rights.of_table("sales", "customers"), Privilege::none);
    EXPECT_EQ(rights.of_schema("sales"), Privilege::none);
    EXPECT_TRUE(rights.sees_schema("SALES"));
    EXPECT_FALSE(rights.sees_schema("sale"));
    EXPECT_FALSE(rights.sees_schema("sales2"));
    rights.add("sales", "", Privilege::metadata);
    EXPECT_EQ(rights.of_table("sales", "customers"), Privilege::metadata);
    EXPECT_EQ(rights.of_table("sales", "orders"), Privilege::reader);
    rights.add("", "", Privilege::writer);
    EXPECT_EQ(rights.of_table("other", "t"), Privilege::writer);
}

TEST(Rights, OfACatalogThatIsNotThereAreNone) {
    Rights rights;
    rights["sales"].add("", "", Privilege::reader);
    EXPECT_EQ(rights_in(rights, "sales").all, Privilege::reader);
    EXPECT_FALSE(rights_in(rights, "lab").sees_anything());
    EXPECT_FALSE(rights_in(rights, "").sees_anything());
    EXPECT_EQ(rights.size(), 1u);
}

TEST(Rights, AreOnlyRaised) {
    CatalogRights rights;
    rights.add("s", "t", Privilege::writer);
    rights.add("S", "T", Privilege::metadata);
    EXPECT_EQ(rights.of_table("s", "t"), Privilege::writer);
}

TEST(Rights, NamesOfPrivileges) {
    for (const auto privilege : {Privilege::metadata, Privilege::reader, Privilege::writer}) {
        EXPECT_EQ(parse_privilege(privilege_name(privilege)), privilege);
    }
    EXPECT_EQ(parse_privilege("none"), std::nullopt);
    EXPECT_EQ(parse_privilege("owner"), std::nullopt);
    EXPECT_EQ(parse_privilege(""), std::nullopt);
}

}  // namespace
}  // namespace roost
