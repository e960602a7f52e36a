#include "ymir/tune/data/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TextTable read(const std::string& bytes, const std::string& name, ReadOptions options = {}) {
  auto table = read_table(bytes, name, options);
  EXPECT_TRUE(table) << table.error().message;
  return table ? *std::move(table) : TextTable{};
}
std::string refusal(const std::string& bytes, const std::string& name, ReadOptions options = {}) {
  const auto table = read_table(bytes, name, options);
  return table ? "none" : table.error().message;
}
std::vector<std::string> texts(const TextTable& table) {
  std::vector<std::string> result;
  for (const TextRow& row : table.rows) result.push_back(row.label + "|" + row.text);
  return result;
}

TEST(CsvReader, QuotesNewlinesAndCrLfAreReadAndLinesArePhysical) {
  const auto table = read("text,label\r\n\"a \"\"b\"\", c\r\nd\",x\r\ne,y\r\n\r\nf,z", "t.csv");

  EXPECT_THAT(texts(table), ElementsAre("x|a \"b\", c\r\nd", "y|e", "z|f"));
  EXPECT_THAT(table.header, ElementsAre("text", "label"));
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[0].label_line, 3);
  EXPECT_EQ(table.rows[0].label_column, 4);
  EXPECT_EQ(table.rows[1].line, 4);
  EXPECT_EQ(table.rows[2].line, 6);
  EXPECT_TRUE(table.faults.empty());
}

TEST(CsvReader, AWrongNumberOfFieldsIsToldWithItsPhysicalLine) {
  const auto table = read("text,label\n\"a\nb\",x\nc,d,y\ne,z\nf\n", "dir/t.csv");

  EXPECT_THAT(texts(table), ElementsAre("x|a\nb", "z|e"));
  EXPECT_THAT(table.faults.messages(),
              ElementsAre("dir/t.csv:4: 3 fields, expected 2 as in the header",
                          "dir/t.csv:6: 1 fields, expected 2 as in the header"));
}

TEST(CsvReader, ABrokenQuoteIsToldWhereItStands) {
  EXPECT_THAT(read("text,label\n\"a\"b,x\nc,y\n", "t.csv").faults.messages(),
              ElementsAre(HasSubstr("t.csv:2:4: text follows a closing quote")));
  EXPECT_THAT(read("text,label\nc,y\nx,\"a\nb\n", "t.csv").faults.messages(),
              ElementsAre("t.csv:3:3: the quote that opens here is never closed"));
}

TEST(CsvReader, RowsAndColumnsAreBounded) {
  const std::string wide(5000, ',');
  const std::string longest((1u << 20) + 10, 'a');

  EXPECT_THAT(read("text,label\n" + wide + "\n", "t.csv").faults.messages(),
              ElementsAre("t.csv:2: more than 4096 columns"));
  EXPECT_THAT(read("text,label\n" + longest + ",x\nb,y\n", "t.csv").faults.messages(),
              ElementsAre("t.csv:2: row of more than 1048576 bytes"));
  EXPECT_THAT(read("text,label\n\"" + longest + "\",x\nb,y\n", "t.csv").faults.messages(),
              ElementsAre(HasSubstr("t.csv:2:1: the quote that opens here is not closed within")));
}

TEST(CsvReader, WithoutHeaderColumnsGoByNumber) {
  ReadOptions options{.columns = {{"text", "1"}, {"text_pair", "2"}, {"label", "0"}}};

  const auto table =
      read("\"3\",\"Fears\",\"Unions\"\n\"4\",\"Race\",\"SPACE\"\n", "t.csv", options);

  EXPECT_THAT(texts(table), ElementsAre("3|Fears", "4|Race"));
  EXPECT_TRUE(table.has_pair);
  EXPECT_EQ(table.rows[1].pair, "SPACE");
  EXPECT_THAT(table.header, testing::IsEmpty());
}

TEST(CsvReader, AnUnknownColumnNamesThoseFoundAndTheNearest) {
  EXPECT_EQ(refusal("sentence,label\na,x\n", "t.csv", {.columns = {{"text", "sentance"}}}),
            "data.columns: no column \"sentance\" in t.csv (found: sentence, label); did you mean "
            "\"sentence\"?");
  EXPECT_THAT(refusal("a,x\nb,y\n", "t.csv"), HasSubstr("has no header that names \"text\""));
  EXPECT_THAT(refusal("a,x\nb,y\n", "t.csv", {.columns = {{"text", "0"}, {"label", "7"}}}),
              HasSubstr("no column 7 in t.csv (its rows have 2"));
}

TEST(CsvReader, SemicolonsAndTabsSeparateFieldsToo) {
  const std::string semicolons = "Text;Note\r\n\"a; b\nc\";1,5\r\nd, e;2,5\r\n";
  const std::string tabs = "Text\tNote\n\"a \"\"q\"\"\"\t1\nb; c, d\t2\n";
  const ReadOptions options{.format = "csv", .columns = {{"text", "Text"}, {"label", "Note"}}};

  const auto of_semicolons = read(semicolons, "t.csv", options);
  const auto of_tabs = read(tabs, "t.tsv", options);

  EXPECT_THAT(texts(of_semicolons), ElementsAre("1,5|a; b\nc", "2,5|d, e"));
  EXPECT_EQ(of_semicolons.rows[1].line, 4);
  EXPECT_EQ(of_semicolons.rows[0].label_column, 4);
  EXPECT_THAT(texts(of_tabs), ElementsAre("1|a \"q\"", "2|b; c, d"));
}

TEST(CsvReader, ACommaSeparatesFieldsAlsoWhereTheTextsAreFullOfSemicolons) {
  const auto header = read("text,label\na;b;c,x\nd;e;f,y\n", "t.csv");
  const auto none =
      read("a;b,x\nc;d,y\ne,z\n", "t.csv", {.columns = {{"text", "0"}, {"label", "1"}}});
  const auto faulty = read("text;more,label\na;b,x\nc,d,y\n", "t.csv",
                           {.columns = {{"text", "text;more"}, {"label", "label"}}});

  EXPECT_THAT(texts(header), ElementsAre("x|a;b;c", "y|d;e;f"));
  EXPECT_THAT(texts(none), ElementsAre("x|a;b", "y|c;d", "z|e"));
  EXPECT_THAT(texts(faulty), ElementsAre("x|a;b"));
  EXPECT_THAT(faulty.faults.messages(),
              ElementsAre("t.csv:3: 3 fields, expected 2 as in the header"));
}

TEST(CsvReader, OneBadRowDoesNotHideTheSemicolons) {
  const auto table = read("text;label\na;x;y\nb;z\n", "t.csv");

  EXPECT_THAT(texts(table), ElementsAre("z|b"));
  EXPECT_THAT(table.faults.messages(),
              ElementsAre("t.csv:2: 3 fields, expected 2 as in the header"));
}

TEST(TsvReader, AQuoteIsTextAndOnlyMappedFieldsMustBeFilled) {
  ReadOptions options{.columns = {{"text", "3"}, {"label", "1"}}};

  const auto table = read("gj04\t1\t\t\"Who\" left.\ngj04\t0\t*\t \n", "t.tsv", options);

  EXPECT_THAT(texts(table), ElementsAre("1|\"Who\" left."));
  EXPECT_THAT(table.faults.messages(),
              ElementsAre("t.tsv:2:10: the text is empty (data.empty: drop leaves such rows out)"));
}

TEST(LinesReader, TheLabelStandsBeforeTheFirstBlank) {
  const auto table = read("1 a stirring , funny film \r\n\n0 dull .\n2\n", "stsa.binary.train");

  EXPECT_EQ(table.format, TextFormat::kLines);
  EXPECT_THAT(texts(table), ElementsAre("1|a stirring , funny film", "0|dull ."));
  EXPECT_THAT(
      table.faults.messages(),
      ElementsAre(
          "stsa.binary.train:4: the text is empty (data.empty: drop leaves such rows out)"));
}

TEST(JsonReaders, KeysAreColumnsAndNumbersMayBeLabels) {
  const std::string rows =
      "{\"s\": \"a\\nb\", \"y\": 1}\n\n{\"s\": \"c\", \"y\": \"two\", \"z\": []}\n";
  ReadOptions options{.columns = {{"text", "s"}, {"label", "y"}}};

  const auto lines = read(rows, "t.jsonl", options);
  const auto array =
      read("[\n {\"s\": \"a\\nb\",\n  \"y\": 1},\n {\"s\": \"]c\", \"y\": \"two\"}\n]\n", "t.json",
           options);

  EXPECT_THAT(texts(lines), ElementsAre("1|a\nb", "two|c"));
  EXPECT_EQ(lines.rows[1].line, 3);
  EXPECT_THAT(texts(array), ElementsAre("1|a\nb", "two|]c"));
  EXPECT_EQ(array.rows[0].line, 2);
  EXPECT_EQ(array.rows[1].line, 4);
}

TEST(JsonReaders, FaultsNameTheLine) {
  ReadOptions options{.columns = {{"text", "s"}, {"label", "y"}}};

  const auto lines = read("{\"s\":\"a\",\"y\":1}\n[1]\n{\"s\":2,\"y\":1}\n{\"s\":\"a\"}\n{\"s\n",
                          "t.jsonl", options);
  const auto cut = read("[{\"s\":\"a\",\"y\":1},\n{\"s\":", "t.json", options);
  const auto after = read("[{\"s\":\"a\",\"y\":1}]\n x", "t.json", options);

  EXPECT_THAT(lines.faults.messages(),
              ElementsAre("t.jsonl:2:1: is not a JSON object", HasSubstr("t.jsonl:5:1: not JSON"),
                          "t.jsonl:3:1: the text is not a text",
                          "t.jsonl:4: has no key \"y\" (or it is null)"));
  EXPECT_THAT(cut.faults.messages(), ElementsAre(HasSubstr("t.json:2:1: the element")));
  EXPECT_THAT(after.faults.messages(), ElementsAre("t.json:2:2: text follows the array"));
  EXPECT_EQ(refusal("{\"t\":\"a\",\"y\":1}\n", "t.jsonl", options),
            "data.columns: no column \"s\" in t.jsonl (found: t, y); did you mean \"t\"?");
}

TEST(JsonReaders, WhatAFileHoldsDecidesNotItsName) {
  const std::string lines = "\n{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\", \"label\": 2}\n";
  const std::string array = " [{\"text\": \"a\",\n \"label\": 1}]";

  const auto named_array = read(lines, "t.json");
  const auto named_lines = read(array, "t.jsonl");
  const auto wrapped = read("{\n \"data\": []}\n", "t.json");
  const auto told = read(array, "t.jsonl", {.format = "jsonl"});

  EXPECT_THAT(texts(named_array), ElementsAre("1|a", "2|b"));
  EXPECT_EQ(named_array.rows[1].line, 3);
  EXPECT_THAT(texts(named_lines), ElementsAre("1|a"));
  EXPECT_THAT(wrapped.faults.messages(),
              ElementsAre(HasSubstr("t.json:1:1: a JSON array of objects begins with [")));
  EXPECT_THAT(told.faults.messages().front(), HasSubstr("t.jsonl:1:1: not JSON"));
  EXPECT_THAT(read("{\"text\n", "t.jsonl").faults.messages(),
              ElementsAre(HasSubstr("t.jsonl:1:1: not JSON")));
}

TEST(JsonReaders, AListOrAnObjectIsNoLabelOfARowWithOne) {
  const auto table = read(
      "{\"text\":\"a\",\"label\":[1,2]}\n{\"text\":\"b\",\"label\":{}}\n{\"text\":\"c\",\"label\":"
      "true}\n"
      "{\"text\":\"d\",\"label\":null}\n{\"text\":\"e\",\"label\":\"[x]\"}\n",
      "t.jsonl");

  EXPECT_THAT(texts(table), ElementsAre("true|c", "[x]|e"));
  EXPECT_THAT(table.faults.messages(),
              ElementsAre(HasSubstr("t.jsonl:1:1: the label is a list; sets of labels are for "),
                          "t.jsonl:2:1: the label is an object",
                          "t.jsonl:4: has no key \"label\" (or it is null)"));
}

TEST(LinesReader, WithoutLabelsALineIsATextWithItsFirstWord) {
  const auto table = read("  Call me Ishmael. \n\nLoomings\n", "moby.txt", {.need_label = false});

  EXPECT_THAT(texts(table), ElementsAre("|Call me Ishmael.", "|Loomings"));
  EXPECT_EQ(table.rows[1].line, 3);
}

TEST(LinesReader, ColumnsAreRefusedRatherThanForgotten) {
  const auto message =
      refusal("good\t1.5\nbad\t2\n", "t.txt", {.columns = {{"text", "0"}, {"label", "1"}}});

  EXPECT_THAT(message, HasSubstr("have no columns; say data.format: csv or tsv"));
}

TEST(Reader, AHeaderInOtherLettersIsSuggestedByName) {
  const auto message = refusal("Text,LABEL\na,x\n", "t.csv");

  EXPECT_THAT(message, HasSubstr("data.columns: {text: Text, label: LABEL}"));
}

TEST(Reader, LinesThatEndWithCarriageReturnsAloneAreNamedWithWhatToDo) {
  EXPECT_THAT(refusal("text,label\ra,x\rb,y\r", "t.csv"), HasSubstr("tr '\\r' '\\n'"));
}

TEST(Reader, EncodingsAreToldApart) {
  const std::string latin = "text,label\ncaf\xe9,x\n";

  const auto wrong = read(latin, "t.csv");
  const auto right = read(latin, "t.csv", {.encoding = "latin-1"});
  const auto marked = read("\xEF\xBB\xBFtext,label\na,x\n", "t.csv");

  EXPECT_THAT(wrong.faults.messages(),
              ElementsAre(HasSubstr("t.csv:2:1: byte 4 of the text is not UTF-8")));
  EXPECT_THAT(texts(right), ElementsAre("x|caf\xc3\xa9"));
  EXPECT_THAT(texts(marked), ElementsAre("x|a"));
  EXPECT_THAT(marked.notes.messages(), ElementsAre("t.csv: a byte order mark was stripped"));
  EXPECT_THAT(refusal("\xFF\xFEt\0", "t.csv"), HasSubstr("is UTF-16"));
}

TEST(Reader, AFileThatIsNoTextIsNamedWithWhatToDo) {
  using namespace std::string_literals;

  EXPECT_THAT(refusal("\x1F\x8B\x08rest", "t.csv"), HasSubstr("t.csv: is gzip data; unpack it"));
  EXPECT_THAT(refusal("PAR1....", "t.csv"), HasSubstr("is Parquet; save it as CSV"));
  EXPECT_THAT(refusal("t\0e\0x\0t\0,\0l\0"s, "t.csv"), HasSubstr("iconv -f utf-16le"));
  EXPECT_THAT(refusal("\0t\0e\0x\0t\0,\0l"s, "t.csv"), HasSubstr("iconv -f utf-16be"));
  EXPECT_THAT(refusal("ab\0\0\0\0cd\0\0"s, "t.csv"), HasSubstr("is binary data, not text"));
}

TEST(Reader, ANulCharacterIsAFaultWithItsPlace) {
  using namespace std::string_literals;
  const auto table = read("text,label\nabcdefghij,x\nabcdef\0ghi,y\n"s, "t.csv");

  EXPECT_THAT(texts(table), ElementsAre("x|abcdefghij"));
  EXPECT_THAT(table.faults.messages(),
              ElementsAre(HasSubstr("t.csv:3:1: the text holds a NUL character")));
}

TEST(Reader, ColumnsCountCharactersAlsoInLatin1) {
  const auto utf8 = read("text,label\n\u00e9\u00e9,\n", "t.csv");
  const auto latin = read("text,label\n\xe9\xe9,\n", "t.csv", {.encoding = "latin-1"});
  const auto tabs = read("text\tlabel\n\u6f22\u5b57\t\n", "t.tsv");

  EXPECT_THAT(utf8.faults.messages(),
              ElementsAre("t.csv:2:4: the label is empty (data.empty: drop leaves such rows out)"));
  EXPECT_EQ(latin.faults.messages(), utf8.faults.messages());
  EXPECT_THAT(tabs.faults.messages(),
              ElementsAre("t.tsv:2:4: the label is empty (data.empty: drop leaves such rows out)"));
}

TEST(Reader, MessagesShowNoControlCharacters) {
  const auto message = refusal("\x1B[31mtext,b\x07\n1,2\n", "t.csv");

  EXPECT_THAT(message, HasSubstr("\\x1B[31mtext"));
  EXPECT_EQ(message.find('\x1B'), std::string::npos);
  EXPECT_EQ(message.find('\x07'), std::string::npos);
}

TEST(Reader, BytesOfWindowsAreRecognised) {
  const auto windows = read("text,label\n\x93quoted\x94,x\n", "t.csv");

  EXPECT_THAT(windows.faults.messages(), ElementsAre(HasSubstr("iconv -f windows-1252")));
}

TEST(Reader, AtMostTwentyFaultsOfAKindAreToldAndThenACount) {
  std::string bytes = "text,label\n";
  for (int i = 0; i < 50; ++i) bytes += "a\n";

  const auto messages = read(bytes, "t.csv").faults.messages();

  ASSERT_EQ(messages.size(), 21u);
  EXPECT_EQ(messages.back(), "t.csv: 30 more: wrong number of fields");
}

TEST(Reader, AFileWithoutRowsIsAFault) {
  EXPECT_THAT(read("", "t.csv").faults.messages(), ElementsAre("t.csv: holds no rows"));
  EXPECT_THAT(read("text,label\n", "t.csv").faults.messages(),
              ElementsAre("t.csv: holds a header and no rows"));
}

TEST(Reader, UnknownSettingsAreRefused) {
  EXPECT_THAT(refusal("", "t", {.format = "xml"}), HasSubstr("data.format \"xml\" is not one of"));
  EXPECT_THAT(refusal("", "t", {.columns = {{"txt", "a"}}}),
              HasSubstr("\"txt\" is not one of text"));
}

RC_GTEST_PROP(CsvReader, GivesBackWhatWasWritten, (const std::vector<std::string>& fields)) {
  std::string bytes = "text,label\n";
  std::size_t expected = 0;
  for (const std::string& field : fields) {
    if (field.find_first_not_of(" \t\r\n\v\f") == std::string::npos ||
        field.find('\0') != field.npos)
      continue;
    bytes += csv_field(field) + "," + csv_field("x") + "\r\n";
    ++expected;
  }

  const auto table = read_table(bytes, "t.csv", {});

  RC_ASSERT(static_cast<bool>(table));
  RC_ASSERT(static_cast<std::int64_t>(table->rows.size()) + table->faults.count("not UTF-8") +
                (expected == 0 ? 1 : 0) ==
            static_cast<std::int64_t>(expected) + table->faults.count("no rows"));
  std::size_t next = 0;
  for (const std::string& field : fields)
    if (next < table->rows.size() && field == table->rows[next].text) ++next;
  RC_ASSERT(next == table->rows.size());
}

// Rows of the real files, by the counts in their description.
TEST(Reader, RealFilesAreReadWhole) {
  const char* variable = std::getenv("YMIR_SHARED");
  const std::string root =
      (variable != nullptr ? variable : YMIR_SOURCE_DIR "/../shared") + std::string("/data/text/");
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no corpora in " << root;
  const auto rows = [&root](const std::string& name, const ReadOptions& options) {
    const auto table = read_table_file(root + name, options);
    EXPECT_TRUE(table) << table.error().message;
    EXPECT_TRUE(table->faults.empty()) << name << ": " << table->faults.messages()[0];
    return table->rows.size();
  };
  const ReadOptions lines{.format = "lines"}, latin{.format = "lines", .encoding = "latin-1"};

  EXPECT_EQ(rows("banking77/train.csv", {.columns = {{"label", "category"}}}), 10'003u);
  EXPECT_EQ(rows("banking77/test.csv", {.columns = {{"label", "category"}}}), 3'080u);
  EXPECT_EQ(rows("cola/in_domain_train.tsv", {.columns = {{"text", "3"}, {"label", "1"}}}), 8'551u);
  EXPECT_EQ(rows("sms_spam/sms.tsv", {.columns = {{"text", "1"}, {"label", "0"}}}), 5'574u);
  EXPECT_EQ(rows("ag_news_test/test.csv",
                 {.columns = {{"text", "1"}, {"text_pair", "2"}, {"label", "0"}}}),
            7'600u);
  EXPECT_EQ(rows("stsb/stsb-en-train.csv",
                 {.columns = {{"text", "0"}, {"text_pair", "1"}, {"label", "2"}}}),
            5'749u);
  EXPECT_EQ(rows("sentence_classification/stsa.binary.train", lines), 6'920u);
  EXPECT_EQ(rows("sentence_classification/rt-polarity.all", latin), 10'662u);
  EXPECT_EQ(rows("sentence_classification/TREC.train.all", latin), 5'452u);
}

}  // namespace
}  // namespace ymir
