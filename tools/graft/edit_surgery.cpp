#include "tools/graft/edit_surgery.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "core/graph/edit.h"
#include "core/layers/append.h"
#include "core/layers/cut.h"
#include "core/layers/merge.h"
#include "core/layers/parse.h"
#include "core/layers/replace_head.h"
#include "core/layers/retype.h"
#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/pairs.h"

namespace graft::cli {
namespace {

std::optional<Init> init_of(const SurgeryArguments& arguments) {
  if (arguments.init.empty()) return std::nullopt;
  return parse_init(arguments.init);
}

void print_head(const edit::ReplacedHead& head) {
  std::cout << "head: " << head.layer << ", " << head.features << " features, from "
            << head.old_classes << " to " << head.classes << " classes; fresh";
  for (const std::string& name : head.parameters) std::cout << ' ' << name;
  if (!head.kept.empty()) std::cout << "; kept behind it";
  for (const std::string& node : head.kept) std::cout << ' ' << node;
  std::cout << '\n';
}

void replace_head(Model& model, const SurgeryArguments& arguments) {
  if (!arguments.replace_head) return;
  print_head(edit::replace_head(
      model, *arguments.replace_head,
      {.output = arguments.output, .seed = arguments.seed, .init = init_of(arguments)}));
  for (const std::string_view key : {kClassesNote, kNamesNote}) {  // they name the old classes
    std::erase_if(model.metadata, [&](const auto& entry) { return entry.first == key; });
  }
}

/// "WHERE=LAYERS"
void insert(Model& model, const SurgeryArguments& arguments, const std::string& assignment,
            bool is_after) {
  const char* const option = is_after ? "--insert-after" : "--insert-before";
  const std::size_t at = assignment.find('=');
  if (at == assignment.npos) {
    fail(ErrorKind::argument, option, " '", assignment, "': wanted WHERE=LAYERS");
  }
  const std::string where = edit::find_cut(model, option, assignment.substr(0, at));
  edit::InsertOptions options{.seed = arguments.seed, .init = init_of(arguments)};
  (is_after ? options.after : options.before) = where;
  edit::insert(model, parse_layers(assignment.substr(at + 1)), options);
}

void append(Model& model, const SurgeryArguments& arguments) {
  if (arguments.append.empty()) {
    if (!arguments.after.empty()) {
      fail(ErrorKind::argument, "--after '", arguments.after,
           "' says where layers are appended; --append must say which");
    }
    return;
  }
  edit::AppendOptions options{.seed = arguments.seed, .init = init_of(arguments)};
  if (!arguments.after.empty()) {
    options.after = edit::find_cut(model, "--after", arguments.after);
  }
  edit::append(model, parse_layers(arguments.append), options);
}

void join(Model& model, const SurgeryArguments& arguments) {
  if (arguments.merge.empty()) {
    if (arguments.connect.empty() && arguments.merge_prefix.empty()) return;
    fail(ErrorKind::argument, "--connect and --merge-prefix go with --merge");
  }
  edit::MergeOptions options{.prefix = arguments.merge_prefix};
  for (const std::string& one : arguments.connect) {
    options.connect.push_back(split_pair("--connect", one, "OUT=IN"));
  }
  edit::merge(model, onnx::load(arguments.merge), options);
}

void rename(Model& model, const SurgeryArguments& arguments) {
  for (const std::string& one : arguments.rename) {
    const auto [from, to] = split_pair("--rename", one, "OLD=NEW");
    edit::rename(model, from, to);
  }
  if (!arguments.prefix.empty()) edit::add_prefix(model, arguments.prefix);
}

}  // namespace

void add_cut_arguments(CLI::App& app, SurgeryArguments& arguments) {
  app.add_option("--from", arguments.from, "keep what lies between this value, an input then, ...")
      ->type_name("WHERE");
  app.add_option("--to", arguments.to, "... and this one, an output then; both may be repeated")
      ->type_name("WHERE");
  app.add_option("--truncate", arguments.truncate,
                 "make this the only output: a value, a node, last:N (without the last N layers "
                 "that have weights), or a pattern all of whose matches lead to one value")
      ->type_name("WHERE");
}

void add_operate_arguments(CLI::App& app, SurgeryArguments& arguments) {
  app.add_option("--replace-head", arguments.replace_head,
                 "then give the last layer with weights fresh ones, for N classes")
      ->type_name("N");
  app.add_option("--output", arguments.output, "of which output --replace-head takes the head")
      ->type_name("NAME");
  app.add_option("--insert-after", arguments.insert_after,
                 "then put layers between a value and what reads it, like relu1=dropout:0.5")
      ->type_name("WHERE=LAYERS");
  app.add_option("--insert-before", arguments.insert_before,
                 "then put layers between a node and what it is applied to")
      ->type_name("WHERE=LAYERS");
  app.add_option("--append", arguments.append, "then add layers, like flatten,linear:10")
      ->type_name("LAYERS");
  app.add_option("--after", arguments.after,
                 "behind which value: an output gives its place to the layers, any other stays and "
                 "one more output comes; else the only output")
      ->type_name("WHERE");
  app.add_option("--init", arguments.init,
                 "how new weights start, but of layers that say init=; see below")
      ->type_name("INIT");
  add_seed_argument(app, arguments.seed, "of new weights");
  app.add_option("--merge", arguments.merge, "then put another model behind this one")
      ->type_name("FILE");
  app.add_option("--connect", arguments.connect,
                 "which output of this model is which input of that; else those of equal names, or "
                 "the only ones")
      ->type_name("OUT=IN");
  app.add_option("--merge-prefix", arguments.merge_prefix, "put this before that model's names")
      ->type_name("TEXT");
  app.add_option("--rename", arguments.rename, "then give a value another name")
      ->type_name("OLD=NEW");
  app.add_option("--prefix", arguments.prefix,
                 "then put this before all names, inputs and outputs too")
      ->type_name("TEXT");
}

bool is_empty(const SurgeryArguments& arguments) {
  return arguments.from.empty() && arguments.to.empty() && arguments.truncate.empty() &&
         !arguments.replace_head && arguments.insert_after.empty() &&
         arguments.insert_before.empty() && arguments.append.empty() && arguments.after.empty() &&
         arguments.merge.empty() && arguments.connect.empty() && arguments.merge_prefix.empty() &&
         arguments.rename.empty() && arguments.prefix.empty();
}

void cut(Model& model, const SurgeryArguments& arguments) {
  if (!arguments.from.empty() && arguments.to.empty()) {
    fail(ErrorKind::argument, "--from says where the part begins; --to must say where it ends");
  }
  const auto place = [&](const char* option, const std::string& where) {
    return edit::find_cut(model, option, where);
  };
  if (!arguments.to.empty()) {
    std::vector<std::string> from;
    for (const std::string& where : arguments.from) from.push_back(place("--from", where));
    std::vector<std::string> to;
    for (const std::string& where : arguments.to) to.push_back(place("--to", where));
    // What becomes an input must have a type, which few files say.
    edit::infer_types_of(model, from);
    edit::extract(model, from, to);
  }
  if (!arguments.truncate.empty()) {
    edit::truncate(model, place("--truncate", arguments.truncate));
  }
}

void operate(Model& model, const SurgeryArguments& arguments) {
  replace_head(model, arguments);
  for (const std::string& one : arguments.insert_after) insert(model, arguments, one, true);
  for (const std::string& one : arguments.insert_before) insert(model, arguments, one, false);
  append(model, arguments);
  join(model, arguments);
  rename(model, arguments);
}

}  // namespace graft::cli
