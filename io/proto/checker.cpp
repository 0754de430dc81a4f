#include "io/proto/checker.h"

#include <onnx/checker.h>
#include <onnx/common/constants.h>

#include <algorithm>
#include <functional>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "io/proto/op_schemas.h"
#include "io/proto/sort_nodes.h"

namespace graft::onnx {
namespace {

constexpr std::size_t kMaxMessage = 600;
constexpr const char* kMicrosoft = "com.microsoft";
/// Of ops that the checker is not to look at.
constexpr const char* kUnchecked = "graft.unchecked";

/// Changes what the checker takes amiss, and takes the changes back.
class Amendments {
 public:
  explicit Amendments(pb::ModelProto& model) {
    for (const auto& import : model.opset_import()) {
      if (import.domain() == kMicrosoft) is_optimized_ = true;
      if (pb::NormalizeDomain(import.domain()).empty()) opset_ = import.version();
    }
    amend_graph(*model.mutable_graph());
    for (pb::FunctionProto& function : *model.mutable_functions()) {
      for (auto& import : *function.mutable_opset_import()) amend_domain(import);
      amend_nodes(*function.mutable_node());
    }
  }
  Amendments(const Amendments&) = delete;
  Amendments& operator=(const Amendments&) = delete;
  ~Amendments() {
    for (const auto& undo : undo_) undo();
  }

  /// Whether a node is in kUnchecked now.
  bool has_unchecked() const { return has_unchecked_; }

 private:
  template <class Proto>
  void amend_domain(Proto& proto) {
    if (proto.domain() != pb::AI_ONNX_DOMAIN) return;
    proto.set_domain(pb::ONNX_DOMAIN);
    undo_.push_back([&proto] { proto.set_domain(pb::AI_ONNX_DOMAIN); });
  }

  /// onnxruntime writes normalizations that it fuses as ops of the standard, before this had them.
  void amend_fused(pb::NodeProto& node) {
    constexpr std::int64_t kHasLayerNormalization = 17;
    const bool is_early = node.op_type() == "LayerNormalization" && opset_ < kHasLayerNormalization;
    if (!is_optimized_ || !node.domain().empty() ||
        !(is_early || node.op_type() == "SimplifiedLayerNormalization")) {
      return;
    }
    move_to(kMicrosoft, node);
  }

  /// The checker takes GroupNormalization for deprecated before its scales were one a channel;
  /// runtimes run it.
  void amend_deprecated(pb::NodeProto& node) {
    constexpr std::int64_t kFirst = 18;
    constexpr std::int64_t kOnePerChannel = 21;
    const bool is_early = opset_ >= kFirst && opset_ < kOnePerChannel;
    if (is_early && node.domain().empty() && node.op_type() == "GroupNormalization") {
      move_to(kUnchecked, node);
      has_unchecked_ = true;
    }
  }

  void move_to(const char* domain, pb::NodeProto& node) {
    undo_.push_back(
        [&node, had = node.has_domain()] { had ? node.set_domain("") : node.clear_domain(); });
    node.set_domain(domain);
  }

  void amend_graph(pb::GraphProto& graph) {
    if (graph.name().empty()) {
      undo_.push_back(
          [&graph, had = graph.has_name()] { had ? graph.set_name("") : graph.clear_name(); });
      graph.set_name("graph");
    }
    amend_nodes(*graph.mutable_node());
  }

  void amend_nodes(Repeated<pb::NodeProto>& nodes) {
    for (pb::NodeProto& node : nodes) {
      amend_domain(node);
      amend_fused(node);
      amend_deprecated(node);
      // The checker lets these pass, with a warning on stdout.
      if (pb::checker::check_is_experimental_op(node)) {
        fail(ErrorKind::model, label(node), ": op '", node.op_type(),
             "' was experimental and has been removed from ONNX");
      }
      for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) amend_graph(*attribute.mutable_g());
        for (pb::GraphProto& body : *attribute.mutable_graphs()) amend_graph(body);
      }
    }
  }

  bool is_optimized_ = false;
  bool has_unchecked_ = false;
  std::int64_t opset_ = 0;
  std::vector<std::function<void()>> undo_;
};

pb::checker::CheckerContext context_for(const pb::ModelProto& model,
                                        const std::filesystem::path& folder, bool has_unchecked) {
  // Before version 4 initializers had to be inputs; runtimes do not insist.
  constexpr std::int64_t kFreeInitializers = 4;
  std::unordered_map<std::string, int> imports;
  for (const auto& import : model.opset_import()) {
    imports[pb::NormalizeDomain(import.domain())] = static_cast<int>(import.version());
  }
  if (has_unchecked) imports[kUnchecked] = 1;
  pb::checker::CheckerContext context;
  context.set_schema_registry(&OpSchemas::instance());
  context.set_ir_version(static_cast<int>(std::max(model.ir_version(), kFreeInitializers)));
  context.set_opset_imports(std::move(imports));
  // As in a body: inputs and outputs may lack a shape.
  context.set_is_main_graph(false);
  context.set_model_dir(folder.empty() ? "" : (folder / "").string());
  return context;
}

std::string one_line(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  if (message.size() > kMaxMessage) message.resize(kMaxMessage);
  return message;
}

}  // namespace

void run_checker(pb::ModelProto& model, const std::filesystem::path& folder) {
  const Amendments amendments(model);
  const pb::checker::CheckerContext context =
      context_for(model, folder, amendments.has_unchecked());
  const pb::checker::LexicalScopeContext scope;
  try {
    pb::checker::check_graph(model.graph(), context, scope);
    pb::checker::check_model_local_functions(model, context, scope);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorKind::model, "the onnx checker refuses the model: ", one_line(error.what()));
  }
}

}  // namespace graft::onnx
