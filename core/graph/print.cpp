#include "core/graph/print.h"

#include <array>
#include <charconv>

namespace graft {
namespace {

/// Names of files are printed bare unless that would make the line ambiguous.
bool needs_quotes(std::string_view name) {
  constexpr std::string_view kSpecial = " \"\\,(){}[]=#@";
  if (name.empty() || name == "_") return true;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
    if (kSpecial.find(c) != std::string_view::npos) return true;
  }
  return false;
}

std::string quoted(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      out += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

std::string bare_or_quoted(std::string_view name) {
  return needs_quotes(name) ? quoted(name) : std::string(name);
}

template <class T>
std::string number(T value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string out(buffer.data(), end);
  // "1.0", so that a float is told from an integer; "inf" and "nan" are neither.
  if constexpr (std::is_floating_point_v<T>) {
    if (out.find_first_of(".en") == std::string::npos) out += ".0";
  }
  return out;
}

template <class List, class Format>
std::string joined(const List& list, const Format& format) {
  std::string out;
  for (const auto& entry : list) out += (out.empty() ? "" : ", ") + format(entry);
  return out;
}

template <class T>
std::string element(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return number(static_cast<float>(value));
  } else {
    return number(value);
  }
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void graph(const Graph& graph, std::string_view head, int indent);
  void model(const Model& model);
  std::string take() { return std::move(out_); }

 private:
  void line(int indent, const std::string& content) {
    out_.append(static_cast<std::size_t>(indent) * 2, ' ').append(content) += '\n';
  }
  void node(const Node& node, int indent);
  void bodies(const Attribute& attribute, int indent);
  void function(const Function& function);
  std::string typed(const Value& value) const {
    const bool is_plain = value.layout == Layout::row_major;
    return bare_or_quoted(value.name()) + ": " + text(value.type(), is_plain ? "" : " nhwc");
  }
  /// "{0, 1}", or empty when the elements are not to be shown.
  std::string elements(const Tensor& tensor) const;
  std::string initializer(const Value& value) const {
    if (value.is_variable) return " = variable";
    const std::string list = elements(value.initializer());
    return " = " + (list.empty() ? "initializer" : list);
  }
  static std::string shown(const OpaqueValue&) { return "opaque"; }
  static std::string shown(std::int64_t value) { return number(value); }
  static std::string shown(float value) { return number(value); }
  static std::string shown(const std::string& value) { return quoted(value); }
  std::string shown(const Tensor& value) const { return describe(value) + elements(value); }
  static std::string shown(const std::shared_ptr<Graph>&) { return {}; }
  static std::string shown(const std::vector<std::shared_ptr<Graph>>&) { return {}; }
  template <class T>
  std::string shown(const std::vector<T>& values) const {
    return "[" + joined(values, [&](const T& value) { return shown(value); }) + "]";
  }
  /// Empty for a body, which is printed below the node.
  std::string attribute(const Attribute& attribute) const;
  std::string attributes(const Node& node) const;

  const PrintOptions& options_;
  std::string out_;
};

std::string Printer::elements(const Tensor& tensor) const {
  if (!tensor.defined() || tensor.size() > options_.most_elements) return {};
  if (is_float(tensor.dtype()) && tensor.rank() > 0) return {};
  std::string out;
  const Tensor host = tensor.dtype() == DType::string ? tensor : tensor.to(cpu());
  visit_dtype(AllTypes{}, tensor.dtype(),
              [&]<class T>() { out = "{" + joined(host.values<const T>(), element<T>) + "}"; });
  return out;
}

std::string Printer::attribute(const Attribute& attribute) const {
  if (!attribute.reference.empty()) return "@" + bare_or_quoted(attribute.reference.str());
  return std::visit([&](const auto& value) { return shown(value); }, attribute.value);
}

std::string Printer::attributes(const Node& node) const {
  std::string list;
  for (const Attribute& entry : node.attributes) {
    const std::string value = attribute(entry);
    if (!value.empty()) {
      list += (list.empty() ? "" : ", ") + bare_or_quoted(entry.name) + " = " + value;
    }
  }
  return list.empty() ? "" : " {" + list + "}";
}

void Printer::bodies(const Attribute& attribute, int indent) {
  const std::string label = bare_or_quoted(attribute.name);
  if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
    graph(**one, label + " = ", indent);
  }
  if (const auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
    for (std::size_t i = 0; i < many->size(); ++i) {
      graph(*(*many)[i], label + "[" + std::to_string(i) + "] = ", indent);
    }
  }
}

void Printer::node(const Node& node, int indent) {
  std::string content;
  for (int i = 0; i < node.output_count(); ++i) {
    const Value* const output = node.output(i);
    content += (i > 0 ? ", " : "") + (output == nullptr ? std::string("_") : typed(*output));
  }
  content += content.empty() ? "" : " = ";
  if (!node.domain().empty()) content += bare_or_quoted(node.domain()) + ".";
  content += bare_or_quoted(node.op_type()) + "(";
  content += joined(node.inputs(), [](const Value* input) {
    return input == nullptr ? std::string("_") : bare_or_quoted(input->name());
  });
  content += ")" + attributes(node);
  if (options_.node_names && !node.name().empty()) content += "  # " + bare_or_quoted(node.name());
  line(indent, content);
  for (const Attribute& attribute : node.attributes) bodies(attribute, indent + 1);
}

void Printer::graph(const Graph& graph, std::string_view head, int indent) {
  const auto input = [this](const Value* value) {
    return typed(*value) + (value->is_initializer() ? initializer(*value) : "");
  };
  const auto output = [this](const Value* value) { return typed(*value); };
  line(indent, std::string(head) + bare_or_quoted(graph.name) + "(" +
                   joined(graph.inputs(), input) + ") -> (" + joined(graph.outputs(), output) +
                   ")");
  for (const Value* value : graph.initializers()) {
    if (!value->is_graph_input()) {
      line(indent + 1, typed(*value) + initializer(*value));
    }
  }
  for (const auto& each : graph.nodes()) node(*each, indent + 1);
}

std::string opset(const OpsetImport& import) {
  return "opset " + (import.domain.empty() ? "ai.onnx" : bare_or_quoted(import.domain)) + " " +
         std::to_string(import.version);
}

void Printer::function(const Function& function) {
  std::string parameters = joined(function.attributes, bare_or_quoted);
  for (const Attribute& entry : function.attribute_defaults) {
    parameters +=
        (parameters.empty() ? "" : ", ") + bare_or_quoted(entry.name) + " = " + attribute(entry);
  }
  line(0, "function " + (function.domain.empty() ? "" : bare_or_quoted(function.domain) + ".") +
              bare_or_quoted(function.name) + " {" + parameters + "}");
  for (const OpsetImport& import : function.opset_imports) line(1, opset(import));
  graph(*function.body, "", 1);
}

void Printer::model(const Model& model) {
  for (const OpsetImport& import : model.opset_imports) line(0, opset(import));
  for (const Function& each : model.functions) function(each);
  graph(model.graph(), "", 0);
}

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  Printer printer(options);
  printer.graph(graph, "", 0);
  return printer.take();
}

std::string print(const Model& model, const PrintOptions& options) {
  Printer printer(options);
  printer.model(model);
  return printer.take();
}

}  // namespace graft
