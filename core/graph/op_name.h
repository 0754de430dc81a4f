#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace graft {

struct OpDef;

/// What a node calls.
struct OpName {
  std::string type;    ///< ONNX's name of the op: "Conv"
  std::string domain;  ///< empty for the standard domain

  /// The op's definition, once it was looked up. Only OpRegistry reads and writes it.
  mutable std::atomic<const OpDef*> definition{nullptr};
};

/// The names of the ops that a graph's nodes call, each once: there are few, and many nodes.
class OpNames {
 public:
  /// Valid as long as the table.
  const OpName& of(std::string_view type, std::string_view domain);

 private:
  struct View {
    std::string_view type;
    std::string_view domain;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const View& name) const;
    std::size_t operator()(const OpName& name) const {
      return (*this)(View{name.type, name.domain});
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const OpName& a, const OpName& b) const {
      return (*this)(View{a.type, a.domain}, b);
    }
    bool operator()(const View& a, const OpName& b) const {
      return a.type == b.type && a.domain == b.domain;
    }
    bool operator()(const OpName& a, const View& b) const { return (*this)(b, a); }
  };

  std::unordered_set<OpName, Hash, Equal> names_;
};

}  // namespace graft
