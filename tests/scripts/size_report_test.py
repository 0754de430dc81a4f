"""Tests of how scripts/size_report.py finds functions and classes, and what it refuses."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from size_report import definitions, measure

SOURCE = """\
namespace graft {

struct Point {
  Point(int x, int y)
      : x_(x),
        y_(y) {
    check();
  }

  int norm() const { return x_ + y_; }
};

template <typename T>
std::vector<T> Graph::order(const std::vector<T>& nodes,
                            int limit) {
  auto less = [&](int a, int b) {
    return a < b;
  };
  if (limit > 0) {
    return {};
  } else {
    sort(less);
  }
  return nodes;
}

bool operator==(const Point& a, const Point& b) {
  return true;
}

}  // namespace graft
"""


LONG_CLASS = "namespace graft {\n\nclass Long {\n" + "  int x;\n" * 200 + "};\n\n}  // namespace graft\n"


class Definitions(unittest.TestCase):
    def test_finds_kind_name_line_and_length(self):
        self.assertEqual(
            list(definitions(SOURCE.splitlines())),
            [
                ("functions", "Point", 4, 5),
                ("classes", "Point", 3, 9),
                ("functions", "Graph::order", 14, 12),
                ("functions", "operator==", 27, 3),
            ],
        )

    def test_finds_classes_in_templates_and_classes(self):
        source = """\
template <class T>
class Outer final : public Base<T> {
  struct alignas(64) Inner {
    int x;
  };
};

enum class Kind {
  one,
};
"""
        self.assertEqual(
            list(definitions(source.splitlines())),
            [("classes", "Inner", 3, 3), ("classes", "Outer", 2, 5)],
        )


class Budgets(unittest.TestCase):
    def complaints(self, name, source):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "core" / name
            path.parent.mkdir()
            path.write_text(source)
            return measure(Path(folder))[1]

    def test_what_fits_passes(self):
        self.assertEqual(self.complaints("a.cpp", SOURCE), [])
        self.assertEqual(self.complaints("a.cpp", "\n" * 400), [])

    def test_files_functions_and_classes_are_held_to_them(self):
        self.assertEqual(len(self.complaints("a.cpp", "\n" * 401)), 1)
        self.assertEqual(len(self.complaints("a.h", "\n" * 201)), 1)
        self.assertEqual(len(self.complaints("a.cpp", "int f() {\n" + "  x;\n" * 59 + "}\n")), 1)
        self.assertIn("core/a.cpp:3 Long: 202 lines", self.complaints("a.cpp", LONG_CLASS)[0])

    def test_a_reason_in_the_head_excuses_what_it_names(self):
        reason = "// Long: Long, because.\n"
        self.assertEqual(self.complaints("a.cpp", reason + LONG_CLASS), [])
        self.assertEqual(len(self.complaints("a.cpp", LONG_CLASS + reason)), 1)
        self.assertEqual(len(self.complaints("a.cpp", reason.replace(", because", "") + LONG_CLASS)), 1)
        other = self.complaints("a.cpp", reason.replace("Long,", "Other,") + LONG_CLASS)
        self.assertEqual(len(other), 2)

    def test_a_reason_that_nothing_needs_is_refused(self):
        self.assertIn("nothing called norm", self.complaints("a.cpp", "// Long: norm, once.\n")[0])


if __name__ == "__main__":
    unittest.main()
