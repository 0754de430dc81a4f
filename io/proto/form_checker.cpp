#include "io/proto/form_checker.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/words.h"
#include "io/proto/sort_nodes.h"

namespace graft::onnx {
namespace {

/// One letter a place, as op_forms has it.
struct Places {
  int least = 0;
  std::string letters;

  bool is_variadic() const { return letters.ends_with('*'); }
  int most() const { return letters == "-" ? 0 : static_cast<int>(letters.size()); }
  /// Whether the place may not be left out.
  bool is_wanted(int i) const { return i < most() && letters[static_cast<std::size_t>(i)] == '1'; }
};

/// What a version of an op takes.
struct Form {
  std::string op;
  std::int64_t since = 0;
  Places inputs;
  Places outputs;
  std::vector<std::string> attributes;  // name:type, or name:type!
};

Form parse_form(std::string_view line) {
  Form form;
  form.op = take_word(line);
  form.since = take_integer(line);
  for (Places* places : {&form.inputs, &form.outputs}) {
    take_word(line);
    places->least = static_cast<int>(take_integer(line));
    places->letters = take_word(line);
  }
  take_word(line);
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    form.attributes.emplace_back(word);
  }
  return form;
}

class FormChecker {
 public:
  explicit FormChecker(std::span<const std::string_view> lines, std::string_view missing)
      : missing_(missing) {
    for (const std::string_view line : lines) {
      Form form = parse_form(line);
      forms_[form.op].push_back(std::move(form));
    }
  }

  /// `imports`: those of the model or of the function.
  template <class Imports>
  void check(const Repeated<pb::NodeProto>& nodes, const Imports& imports) const {
    std::int64_t opset = 0;
    for (const pb::OperatorSetIdProto& import : imports) {
      if (is_standard(import.domain())) opset = import.version();
    }
    check(nodes, opset);
  }

 private:
  static bool is_standard(const std::string& domain) {
    return domain.empty() || domain == "ai.onnx";
  }

  void check(const Repeated<pb::NodeProto>& nodes, std::int64_t opset) const {
    for (const pb::NodeProto& node : nodes) {
      if (is_standard(node.domain())) check(node, form_of(node, opset));
      for (const pb::AttributeProto& attribute : node.attribute()) {
        check(attribute.g().node(), opset);
        for (const pb::GraphProto& body : attribute.graphs()) check(body.node(), opset);
      }
    }
  }

  const Form& form_of(const pb::NodeProto& node, std::int64_t opset) const {
    const auto known = forms_.find(node.op_type());
    if (known == forms_.end()) {
      fail(ErrorKind::unsupported, label(node), ": op ", node.op_type(), " is ", missing_);
    }
    const Form* found = nullptr;
    for (const Form& form : known->second) {
      if (form.since <= opset) found = &form;
    }
    if (found == nullptr) {
      fail(ErrorKind::model, label(node), ": op ", node.op_type(), " is not in opset ", opset);
    }
    return *found;
  }

  static void check(const pb::NodeProto& node, const Form& form) {
    check_places(node, "inputs", node.input(), form.inputs);
    check_places(node, "outputs", node.output(), form.outputs);
    for (const pb::AttributeProto& attribute : node.attribute()) {
      check_attribute(node, attribute, form);
    }
    for (const std::string& wanted : form.attributes) {
      if (wanted.back() != '!') continue;
      const std::string name = wanted.substr(0, wanted.find(':'));
      if (std::ranges::none_of(node.attribute(), [&](const pb::AttributeProto& attribute) {
            return attribute.name() == name;
          })) {
        fail(ErrorKind::model, label(node), ": attribute '", name, "' is required and missing");
      }
    }
  }

  static void check_places(const pb::NodeProto& node, std::string_view what,
                           const Repeated<std::string>& names, const Places& places) {
    if (names.size() < places.least || (!places.is_variadic() && names.size() > places.most())) {
      fail(ErrorKind::model, label(node), " has ", names.size(), ' ', what, ", wanted ",
           places.least, places.is_variadic() ? " or more" : text(" to ", places.most()));
    }
    for (int i = 0; i < names.size(); ++i) {
      if (names[i].empty() && places.is_wanted(i)) {
        fail(ErrorKind::model, label(node), ": ", what, " ", i, " is left out, but required");
      }
    }
  }

  static void check_attribute(const pb::NodeProto& node, const pb::AttributeProto& attribute,
                              const Form& form) {
    const std::string start = attribute.name() + ":";
    const auto at = std::ranges::find_if(
        form.attributes, [&](const std::string& known) { return known.starts_with(start); });
    if (at == form.attributes.end()) {
      fail(ErrorKind::model, label(node), " has an attribute '", attribute.name(), "', which op ",
           form.op, " of opset ", form.since, " does not know");
    }
    int type = 0;
    std::from_chars(at->data() + start.size(), at->data() + at->size(), type);
    if (attribute.type() != type) {
      fail(ErrorKind::model, label(node), ": attribute '", attribute.name(), "' is of type ",
           pb::AttributeProto::AttributeType_Name(attribute.type()), ", wanted ",
           pb::AttributeProto::AttributeType_Name(type));
    }
  }

  std::string_view missing_;
  std::unordered_map<std::string, std::vector<Form>> forms_;  // in rising order of versions
};

}  // namespace

void check_forms(const pb::ModelProto& model, std::span<const std::string_view> lines,
                 std::string_view missing) {
  const FormChecker checker(lines, missing);
  checker.check(model.graph().node(), model.opset_import());
  for (const pb::FunctionProto& function : model.functions()) {
    checker.check(function.node(), function.opset_import());
  }
}

}  // namespace graft::onnx
