"""Tests of how scripts/size_report.py finds functions."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from size_report import functions

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


class Functions(unittest.TestCase):
    def test_finds_name_line_and_length(self):
        self.assertEqual(
            list(functions(SOURCE.splitlines())),
            [("Point", 4, 5), ("Graph::order", 14, 12), ("operator==", 27, 3)],
        )


if __name__ == "__main__":
    unittest.main()
