#include "app/result_writer.h"

#include <gtest/gtest.h>

#include <clocale>
#include <sstream>

namespace roost::app {
namespace {

std::string print(OutputFormat format, const std::vector<ResultColumn> &columns, const std::vector<ResultRow> &rows) {
    std::ostringstream out;
    const auto writer = make_result_writer(format, out);
    writer->begin(columns);
    for (const ResultRow &row : rows) writer->row(row);
    writer->end();
    return out.str();
}

const std::vector<ResultColumn> kColumns{{"id", "INTEGER"}, {"name", "VARCHAR"}, {"x", "DECIMAL(5,2)"}};

TEST(ResultWriter, TableAlignsNumbersRightAndTextLeft) {
    EXPECT_EQ(print(OutputFormat::table, kColumns, {{"1", R"("ann")", R"("1.50")"}, {"100", R"("x")", "null"}}),
              "  id | name |    x\n"
              "-----+------+------\n"
              "   1 | ann  | 1.50\n"
              " 100 | x    | NULL\n"
              "(2 rows)\n");
}

TEST(ResultWriter, TableOfNothingStillShowsItsColumns) {
    EXPECT_EQ(print(OutputFormat::table, {{"a", ""}}, {}), " a\n---\n(0 rows)\n");
}

TEST(ResultWriter, TableEscapesWhatWouldBreakTheGridOrTheTerminal) {
    EXPECT_EQ(print(OutputFormat::table, {{"a", "VARCHAR"}}, {{R"("a\nb\u001b[31m")"}}),
              " a\n--------------\n a\\nb\\x1b[31m\n(1 row)\n");
}

TEST(ResultWriter, TableGoesOnAfterTheRowsItMeasured) {
    std::vector<ResultRow> rows(2000, ResultRow{"1"});
    rows.back() = {"123456789"};
    const std::string text = print(OutputFormat::table, {{"n", "INTEGER"}}, rows);
    EXPECT_NE(text.find("\n 123456789\n(2000 rows)\n"), std::string::npos);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2003);
}

TEST(ResultWriter, CsvQuotesAndTellsNullFromEmpty) {
    EXPECT_EQ(print(OutputFormat::csv, kColumns, {{"1", R"("a,\"b\"\nc")", "null"}, {"2", R"("")", R"("0.10")"}}),
              "id,name,x\n1,\"a,\"\"b\"\"\nc\",\n2,\"\",0.10\n");
}

TEST(ResultWriter, JsonKeepsValuesAsTheServerWroteThem) {
    EXPECT_EQ(print(OutputFormat::json, {{"a\"b", "DOUBLE"}}, {{"3.0"}, {"NaN"}}),
              "[\n {\"a\\\"b\": 3.0},\n {\"a\\\"b\": NaN}\n]\n");
    EXPECT_EQ(print(OutputFormat::json, {{"a", ""}}, {}), "[]\n");
}

TEST(ResultWriter, WidthCountsWhatTheTerminalShows) {
    ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
    EXPECT_EQ(display_width("abc"), 3u);
    EXPECT_EQ(display_width("é"), 1u);
    EXPECT_EQ(display_width("日本"), 4u);
    EXPECT_EQ(printable("a\xff"), "a\\xff");
}

TEST(ResultWriter, UnknownFormatsNameTheKnownOnes) {
    EXPECT_EQ(parse_output_format("csv").value(), OutputFormat::csv);
    const Status wrong = parse_output_format("xml").status();
    EXPECT_NE(wrong.message().find("table, csv or json"), std::string::npos);
}

}  // namespace
}  // namespace roost::app
