#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "autograd/joint_loss.h"
#include "autograd/loss_settings.h"
#include "core/base/error.h"

namespace graft {
namespace {

/// What is read so far, for errors.
struct Setting {
  std::string_view loss;
  std::string_view key;
  std::string_view value;
};

[[noreturn]] void refuse(const Setting& setting, std::string_view wanted) {
  fail(ErrorKind::argument, "loss ", setting.loss, ": ", setting.key, "='", setting.value,
       "', wanted ", wanted);
}

template <class T>
T parse(const Setting& setting, std::string_view part, std::string_view wanted) {
  T number{};
  const char* const end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, number);
  if (error != std::errc() || stop != end) refuse(setting, wanted);
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(number)) refuse(setting, wanted);
  }
  return number;
}

float number(const Setting& setting, const SettingRange& range) {
  const auto found = parse<float>(setting, setting.value, range.wanted);
  if (!range.holds(found)) refuse(setting, range.wanted);
  return found;
}

/// What stands before the first separator; both are taken from the text.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::vector<float> weights(const Setting& setting) {
  constexpr std::string_view kWanted = "numbers of at least 0, joined by ','";
  std::vector<float> numbers;
  std::string_view rest = setting.value;
  do {
    numbers.push_back(parse<float>(setting, take_part(rest, ','), kWanted));
    if (numbers.back() < 0.0F) refuse(setting, kWanted);
  } while (!rest.empty());
  return numbers;
}

struct Key {
  std::string_view name;
  std::string_view form;
  /// Losses that have it.
  std::string_view losses;
  void (*set)(Loss& loss, const Setting& setting);
  bool (*differs)(const Loss& loss, const Loss& other);
};

template <auto Member>
bool differs(const Loss& loss, const Loss& other) {
  return loss.*Member != other.*Member;
}

constexpr std::string_view kClasses = " cross_entropy token_cross_entropy nll arcface ";

constexpr std::array<Key, 13> kKeys{{
    {"label_smoothing", "NUMBER", " cross_entropy token_cross_entropy ",
     [](Loss& loss, const Setting& setting) { loss.label_smoothing = number(setting, kBelowOne); },
     differs<&Loss::label_smoothing>},
    {"ignore_index", "CLASS", kClasses,
     [](Loss& loss, const Setting& setting) {
       loss.ignore_index = parse<std::int64_t>(setting, setting.value, "a whole number");
     },
     differs<&Loss::ignore_index>},
    {"weights", "W,W,...", kClasses,
     [](Loss& loss, const Setting& setting) { loss.class_weights = weights(setting); },
     differs<&Loss::class_weights>},
    {"pos_weight", "W[,W...]", " bce_with_logits ",
     [](Loss& loss, const Setting& setting) { loss.pos_weight = weights(setting); },
     differs<&Loss::pos_weight>},
    {"alpha", "NUMBER", " focal ",
     [](Loss& loss, const Setting& setting) { loss.alpha = number(setting, kToOne); },
     differs<&Loss::alpha>},
    {"gamma", "NUMBER", " focal ",
     [](Loss& loss, const Setting& setting) { loss.gamma = number(setting, kFromZero); },
     differs<&Loss::gamma>},
    {"temperature", "NUMBER", " kl ",
     [](Loss& loss, const Setting& setting) { loss.temperature = number(setting, kAboveZero); },
     differs<&Loss::temperature>},
    {"delta", "NUMBER", " huber ",
     [](Loss& loss, const Setting& setting) { loss.delta = number(setting, kAboveZero); },
     differs<&Loss::delta>},
    {"margin", "NUMBER", " arcface triplet ",
     [](Loss& loss, const Setting& setting) {
       loss.margin = number(setting, loss.name == "arcface" ? kAngle : kFromZero);
     },
     differs<&Loss::margin>},
    {"scale", "NUMBER", " arcface ",
     [](Loss& loss, const Setting& setting) { loss.scale = number(setting, kAboveZero); },
     differs<&Loss::scale>},
    {"blank", "CLASS", " ctc ",
     [](Loss& loss, const Setting& setting) {
       loss.blank = parse<std::int64_t>(setting, setting.value, "a class index");
       if (loss.blank < 0) refuse(setting, "a class index");
     },
     differs<&Loss::blank>},
    {"zero_infinity", "0|1", " ctc ",
     [](Loss& loss, const Setting& setting) {
       if (setting.value != "0" && setting.value != "1") refuse(setting, "0 or 1");
       loss.zero_infinity = setting.value == "1";
     },
     differs<&Loss::zero_infinity>},
    {"reduction", "mean|sum",
     " cross_entropy token_cross_entropy nll mse l1 huber bce_with_logits focal kl arcface "
     "triplet ",
     [](Loss& loss, const Setting& setting) {
       if (setting.value != "mean" && setting.value != "sum") refuse(setting, "mean or sum");
       loss.reduction = setting.value == "sum" ? Reduction::sum : Reduction::mean;
     },
     differs<&Loss::reduction>},
}};

bool has(const Key& key, std::string_view loss) {
  return key.losses.find(" " + std::string(loss) + " ") != std::string_view::npos;
}

std::string usage(std::string_view loss) {
  std::string line(loss);
  for (const Key& key : kKeys) {
    if (has(key, loss)) line += text("[:", key.name, "=", key.form, "]");
  }
  return line;
}

Loss one_from_spec(std::string_view spec) {
  Loss loss = loss_from_name(take_part(spec, ':'));
  while (!spec.empty()) {
    std::string_view value = take_part(spec, ':');
    const bool has_value = value.find('=') != value.npos;
    const std::string_view name = take_part(value, '=');
    const auto* const key = std::ranges::find_if(kKeys, [&](const Key& candidate) {
      return candidate.name == name && has(candidate, loss.name);
    });
    if (key == kKeys.end() || !has_value) {
      fail(ErrorKind::argument, "loss ", loss.name, ": no setting '", name, has_value ? "" : "=",
           "'; wanted ", usage(loss.name));
    }
    key->set(loss, {loss.name, name, value});
  }
  return loss;
}

/// Of OUTPUT=[WEIGHT*]NAME....
LossTerm term_from_spec(std::string_view spec) {
  const std::string_view whole = spec;
  const std::size_t split = spec.find('=');
  if (split == spec.npos || split == 0) {
    fail(ErrorKind::argument, "loss '", whole, "', wanted OUTPUT=LOSS or OUTPUT=WEIGHT*LOSS");
  }
  LossTerm term{.output = std::string(take_part(spec, '='))};
  if (const std::size_t star = spec.find('*'); star != spec.npos) {
    term.weight = parse<float>({term.output, "weight", spec.substr(0, star)}, spec.substr(0, star),
                               "a finite number");
    spec.remove_prefix(star + 1);
  }
  term.loss = one_from_spec(spec);
  return term;
}

/// "cross_entropy:weights=1,2" is one loss, "scores=cross_entropy" a sum of one.
bool names_outputs(std::string_view spec) {
  return spec.substr(0, spec.find(':')).find('=') != spec.npos;
}

}  // namespace

void check_has_settings(const Loss& loss) {
  if (loss.formula) return;
  const Loss usual = loss_from_name(loss.name);
  for (const Key& key : kKeys) {
    if (has(key, loss.name) || !key.differs(loss, usual)) continue;
    fail(ErrorKind::argument, "loss ", loss.name, ": it does not read '", key.name,
         "', which is set; wanted ", usage(loss.name));
  }
}

Loss loss_from_spec(std::string_view spec) {
  constexpr std::string_view kGraph = "graph:";
  if (spec.starts_with(kGraph) && spec.size() > kGraph.size()) {
    return graph_loss(std::string(spec.substr(kGraph.size())));
  }
  if (!names_outputs(spec)) return one_from_spec(spec);
  std::vector<LossTerm> terms;
  while (!spec.empty()) terms.push_back(term_from_spec(take_part(spec, '+')));
  return sum_of(terms);
}

std::vector<std::string> loss_usages() {
  std::vector<std::string> lines;
  for (const std::string& name : loss_names()) lines.push_back(usage(name));
  return lines;
}

}  // namespace graft
