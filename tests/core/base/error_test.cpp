#include "core/base/error.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <locale>
#include <set>
#include <sstream>

#include "core/graph/value.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

TEST(Error, CarriesKindAndJoinedText) {
  const Error error =
      error_of([] { fail(ErrorKind::shape, "softmax: axis ", 3, " out of range for rank ", 2); });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_STREQ(error.what(), "softmax: axis 3 out of range for rank 2");
}

TEST(Error, ZeroBytesOfANameDoNotEndTheText) {
  const Error error = error_of([] { fail(ErrorKind::model, std::string("\0x", 2), ": no"); });
  EXPECT_STREQ(error.what(), "\\x00x: no");
}

TEST(Error, EveryKindHasItsOwnName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::numeric); ++kind) {
    names.insert(name(static_cast<ErrorKind>(kind)));
  }
  EXPECT_EQ(names.size(), 9U);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Text, JoinsWordsAndNumbers) {
  EXPECT_EQ(text(), "");
  EXPECT_EQ(text("a", std::string("b"), std::string_view("c"), 'd', 7), "abcd7");
  EXPECT_EQ(text(std::numeric_limits<std::int64_t>::min(), ' ',
                 std::numeric_limits<std::uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(text(std::int8_t{-7}, std::uint8_t{65}), "-765");  // numbers, not letters
}

TEST(Text, HasSixDigitsOfANumberAsStreamsHave) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double number : {0.0, -0.0, 1.0, 0.1, 1.0 / 3.0, 1e-5, 123456.0, 1234567.0, 1e100,
                              5e-324, -2.5, kInfinity, -kInfinity}) {
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream << number;
    EXPECT_EQ(text(number), stream.str());
    EXPECT_EQ(text(static_cast<float>(number)),
              text(static_cast<double>(static_cast<float>(number))));
  }
  EXPECT_EQ(text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Text, DoesNotFollowTheLocaleOfTheProgram) {
  struct Grouping : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::string joined = text(1234567, ' ', 1.5);
  std::locale::global(before);
  EXPECT_EQ(joined, "1234567 1.5");
}

/// A locale of C in which numbers are "1,5", made in a folder.
class CommaLocale {
 public:
  CommaLocale()
      : folder_(std::filesystem::path(testing::TempDir()) / text("graft_locale_", getpid())) {
    std::filesystem::create_directories(folder_);
    const std::filesystem::path definition = folder_ / "comma.def";
    std::ofstream(definition) << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                 "grouping 3\nEND LC_NUMERIC\n";
    const std::string command =
        text("localedef --no-archive -c -f ANSI_X3.4-1968 -i '", definition.string(), "' '",
             (folder_ / "comma").string(), "' > /dev/null 2>&1");
    // It warns of what is not defined, and then exits with 1.
    [[maybe_unused]] const int status = std::system(command.c_str());
    setenv("LOCPATH", folder_.c_str(), 1);
    is_set_ = std::setlocale(LC_NUMERIC, "comma") != nullptr;
  }
  ~CommaLocale() {
    std::setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    std::filesystem::remove_all(folder_);
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  bool is_set() const { return is_set_; }

 private:
  std::filesystem::path folder_;
  bool is_set_ = false;
};

TEST(Text, DoesNotFollowTheLocaleOfC) {
  const CommaLocale locale;
  if (!locale.is_set()) GTEST_SKIP() << "localedef makes no locale here";
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), "%g", 1.5);
  ASSERT_STREQ(digits.data(), "1,5");
  EXPECT_EQ(text(1234567, ' ', 1.5), "1234567 1.5");
  std::snprintf(digits.data(), digits.size(), "%g", 1.5);
  EXPECT_STREQ(digits.data(), "1,5") << "the program's locale is as it was";
}

TEST(Text, OfAGraftTypeGoesToStreamsToo) {
  std::ostringstream stream;
  stream << DType::f32 << ' ' << Shape{2, 3} << ' ' << SymShape{Dim("N"), Dim(), Dim(4)} << ' '
         << ValueType{.dtype = DType::i64, .shape = SymShape{Dim(1)}};
  EXPECT_EQ(stream.str(), "f32 [2,3] [N,?,4] i64[1]");
}

}  // namespace
}  // namespace graft
