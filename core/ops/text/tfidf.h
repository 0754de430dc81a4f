#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/node.h"

namespace graft {

/// The attributes of a TfIdfVectorizer, with its n-grams of integers as a tree.
struct TfIdf {
  /// Throws Error{model} or Error{shape} naming the node if the attributes do not fit together.
  explicit TfIdf(const Node& node);

  /// The n-gram that ends here.
  struct Gram {
    std::int64_t prefix;      ///< names it as the beginning of longer ones
    std::int64_t coordinate;  ///< of the output; -1 where it is only a beginning
  };

  std::int64_t least_length;
  std::int64_t most_length;
  std::int64_t most_skipped;
  std::vector<std::int64_t> coordinates;
  bool counts_once = false;
  std::int64_t width = 0;  ///< of the output
  std::vector<float> weights;
  /// By its beginning (0: none) and its last number. Empty for a pool of strings.
  std::map<std::pair<std::int64_t, std::int64_t>, Gram> grams;

 private:
  void read_pool(const Node& node, const std::vector<std::int64_t>& pool);
  void add_gram(const Node& node, const std::vector<std::int64_t>& pool, std::int64_t at,
                std::int64_t length, std::int64_t gram);
};

}  // namespace graft
