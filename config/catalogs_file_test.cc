#include "config/catalogs_file.h"

#include <gtest/gtest.h>

namespace roost::config {
namespace {

Settings standard() {
    Settings settings;
    settings.store.path = "/pool/lake";
    settings.catalog.place = "/pool/catalog/lake.sqlite";
    return settings;
}

TEST(CatalogsFile, WhatIsLeftOutLiesBesideTheFirstLake) {
    const auto entries = parse_catalogs("[sales]\n[lab]\nworkspace = \"science\"\n", "f", standard());
    ASSERT_TRUE(entries.ok()) << entries.status().to_string();
    ASSERT_EQ(entries->size(), 2u);
    EXPECT_EQ((*entries)[0].name, "sales");
    EXPECT_EQ((*entries)[0].store.path, "/pool/lake/sales");
    EXPECT_EQ((*entries)[0].catalog.place, "/pool/catalog/sales.sqlite");
    EXPECT_EQ((*entries)[0].workspace, "main");
    EXPECT_EQ((*entries)[1].workspace, "science");
}

TEST(CatalogsFile, PlacesCanBeGiven) {
    const auto entries = parse_catalogs("[sales]\ncatalog = \"postgres:dbname=sales\"\nstore = \"s3://bucket/sales\"\n",
                                        "f", standard());
    ASSERT_TRUE(entries.ok()) << entries.status().to_string();
    EXPECT_TRUE(entries->front().store.is_s3);
    EXPECT_EQ(entries->front().catalog.kind, DatabaseLocation::Kind::postgres);
}

TEST(CatalogsFile, BesidePostgresEachNeedsADatabase) {
    Settings settings = standard();
    settings.catalog = {DatabaseLocation::Kind::postgres, "dbname=lake"};
    const auto entries = parse_catalogs("[sales]\n", "f", settings);
    ASSERT_FALSE(entries.ok());
    EXPECT_NE(entries.status().message().find("f:1"), std::string::npos);
}

TEST(CatalogsFile, MistakesAreNamedWithTheirLine) {
    for (const auto &[text, said] : std::vector<std::pair<std::string, std::string>>{
             {"\n[lake]\n", "f:2: the name 'lake' is taken"},
             {"[data]\n", "is taken"},
             {"[9a]\n", "a catalog's name is"},
             {"[__x]\n", "a catalog's name is"},
             {"[a]\nworkspace = \"A B\"\n", "f:2: workspace"},
             {"[a]\n\nkey = 1\n", "f:3: key"},
             {"[a]\nstore = \"\"\n", "f:2: store"},
             {"[a]\n[a]\n", "f:2"},
             {"[a]\nstore = \"/x\"\n[b]\nstore = \"/x\"\n", "has the store of another"},
             {"[a]\nstore = \"/pool/lake\"\n", "has the store of another"},
             {"[a]\nstore = \"/pool/lake/data/below\"\n", "has the store of another"},
             {"[a]\nstore = \"/pool/x/../lake\"\n", "has the store of another"},
             {"[a]\ncatalog = \"sqlite:/pool/catalog/lake.sqlite\"\n", "has the catalog of another"}}) {
        const auto entries = parse_catalogs(text, "f", standard());
        ASSERT_FALSE(entries.ok()) << text;
        EXPECT_NE(entries.status().message().find(said), std::string::npos) << entries.status().message();
    }
}

}  // namespace
}  // namespace roost::config
