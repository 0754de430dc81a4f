#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/ops/recurrent/recurrent.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

using Function = RecurrentActivation::Function;

/// Name, which of alpha and beta the function has, and their defaults.
struct FunctionRow {
  std::string_view name;
  Function function;
  bool has_alpha = false;
  bool has_beta = false;
  double alpha = 0.0;
  double beta = 0.0;
};

constexpr std::array<FunctionRow, 11> kFunctions{{
    {"Sigmoid", Function::sigmoid},
    {"Tanh", Function::tanh},
    {"Relu", Function::relu},
    {"Affine", Function::affine, true, true, 1.0, 0.0},
    {"LeakyRelu", Function::leaky_relu, true, false, 0.01},
    {"ThresholdedRelu", Function::thresholded_relu, true, false, 1.0},
    {"ScaledTanh", Function::scaled_tanh, true, true, 1.0, 1.0},
    {"HardSigmoid", Function::hard_sigmoid, true, true, 0.2, 0.5},
    {"Elu", Function::elu, true, false, 1.0},
    {"Softsign", Function::softsign},
    {"Softplus", Function::softplus},
}};

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](unsigned char c) { return std::tolower(c); },
      [](unsigned char c) { return std::tolower(c); });
}

const FunctionRow& function_row(const Node& node, std::string_view name) {
  const auto* const at = std::ranges::find_if(
      kFunctions, [&](const auto& row) { return same_letters(row.name, name); });
  if (at != kFunctions.end()) return *at;
  std::string valid;
  for (const FunctionRow& row : kFunctions) {
    valid += (valid.empty() ? "" : ", ") + std::string(row.name);
  }
  fail(ErrorKind::unsupported, node.label(), ": unknown activation '", name, "'; valid: ", valid);
}

/// One direction's functions where the node lists none.
std::vector<std::string> default_names(RecurrentKind kind) {
  switch (kind) {
    case RecurrentKind::lstm:
      return {"Sigmoid", "Tanh", "Tanh"};
    case RecurrentKind::gru:
      return {"Sigmoid", "Tanh"};
    case RecurrentKind::rnn:
      break;
  }
  return {"Tanh"};
}

std::vector<std::string> listed_names(const Node& node, RecurrentKind kind,
                                      std::int64_t directions) {
  const std::vector<std::string> defaults = default_names(kind);
  const Attribute* const given = node.attributes.find("activations");
  std::vector<std::string> names;
  if (given == nullptr) {
    for (std::int64_t d = 0; d < directions; ++d) {
      names.insert(names.end(), defaults.begin(), defaults.end());
    }
    return names;
  }
  const auto* const list = std::get_if<std::vector<std::string>>(&given->value);
  if (list == nullptr) {
    fail(ErrorKind::type, node.label(), ": activations is of type ", type_name(given->value),
         ", wanted strings");
  }
  const std::size_t wanted = defaults.size() * static_cast<std::size_t>(directions);
  if (list->size() != wanted) {
    fail(ErrorKind::model, node.label(), ": ", list->size(), " activations, wanted ", wanted, " (",
         defaults.size(), " a direction)");
  }
  return *list;
}

/// Hands out alphas or betas in the order of the functions that have them.
class Parameters {
 public:
  explicit Parameters(std::vector<float> given) : given_(std::move(given)) {}
  double next(double otherwise) {
    return next_ < given_.size() ? static_cast<double>(given_[next_++]) : otherwise;
  }

 private:
  std::vector<float> given_;
  std::size_t next_ = 0;
};

}  // namespace

RecurrentKind recurrent_kind(const Node& node) {
  if (node.op_type().starts_with("LSTM")) return RecurrentKind::lstm;
  return node.op_type().starts_with("GRU") ? RecurrentKind::gru : RecurrentKind::rnn;
}

RecurrentSettings::RecurrentSettings(const Node& node)
    : kind(recurrent_kind(node)),
      batch_first(node.attributes.get_int("layout", 0) != 0),
      couples_forget(node.attributes.get_int("input_forget", 0) != 0),
      linear_before_reset(node.attributes.get_int("linear_before_reset", 0) != 0),
      clip(std::numeric_limits<double>::infinity()) {
  const std::string direction = node.attributes.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    fail(ErrorKind::model, node.label(), ": direction is '", direction,
         "', wanted 'forward', 'reverse' or 'bidirectional'");
  }
  directions = direction == "bidirectional" ? 2 : 1;
  starts_reversed = direction == "reverse";
  const std::int64_t layout = node.attributes.get_int("layout", 0);
  if (layout != 0 && layout != 1) {
    fail(ErrorKind::model, node.label(), ": layout is ", layout, ", wanted 0 or 1");
  }
  if (node.attributes.has("clip")) {
    clip = node.attributes.get_float("clip", 0.0F);
    if (!(clip > 0.0)) {
      fail(ErrorKind::argument, node.label(), ": clip is ", clip, ", wanted a positive number");
    }
  }
  const std::vector<std::string> names = listed_names(node, kind, directions);
  const std::vector<std::string> defaults = default_names(kind);
  Parameters alphas(node.attributes.get_floats("activation_alpha"));
  Parameters betas(node.attributes.get_floats("activation_beta"));
  is_default = std::isinf(clip);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t within = i % defaults.size();
    const FunctionRow& row = function_row(node, names[i]);
    RecurrentActivation& activation = activations[i / defaults.size() * 3 + within];
    activation.function = row.function;
    activation.alpha = row.has_alpha ? alphas.next(row.alpha) : 0.0;
    activation.beta = row.has_beta ? betas.next(row.beta) : 0.0;
    is_default = is_default && row.name == defaults[within];
  }
}

std::int64_t RecurrentSettings::gates() const {
  switch (kind) {
    case RecurrentKind::lstm:
      return 4;
    case RecurrentKind::gru:
      return 3;
    case RecurrentKind::rnn:
      break;
  }
  return 1;
}

std::int64_t RecurrentSettings::slots() const {
  return gates() + (kind == RecurrentKind::gru && linear_before_reset ? 1 : 0);
}

RecurrentSizes::RecurrentSizes(const KernelRequest& request, const RecurrentSettings& settings,
                               int x, int r)
    : steps(request.shape(x)[settings.batch_first ? 1 : 0]),
      batch(request.shape(x)[settings.batch_first ? 0 : 1]),
      input(request.shape(x)[2]),
      hidden(request.shape(r)[2]),
      directions(settings.directions),
      batch_first(settings.batch_first) {
  // Nothing to walk, whatever the other dims are.
  if (batch == 0 || (input == 0 && hidden == 0)) batch = steps = 0;
  // The largest that kernels lay out, gates of all steps or the states between them, has fewer
  // elements: X may be without any, and its steps as many as a file says.
  constexpr std::int64_t kMostNumbers = 8;
  checked_multiply(checked_multiply(checked_add(steps, 1), batch),
                   checked_multiply(kMostNumbers, hidden));
}

}  // namespace graft
