#include "data/spec.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/error.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/mnist.h"

namespace graft {
namespace {

/// To add a form of spec, add a row.
constexpr std::array kSources{
    DataSource{"fashion-mnist", "DIR", true,
               [](const std::string& place, Split split) {
                 return fashion_mnist(split, place.empty() ? kFashionMnistFolder : place);
               }},
    DataSource{"mnist", "DIR", false,
               [](const std::string& place, Split split) { return mnist(place, split); }},
    DataSource{"cifar10", "DIR", false,
               [](const std::string& place, Split split) { return cifar10(place, split); }},
    DataSource{"csv", "FILE", false,
               [](const std::string& place, Split /*split*/) { return csv(place); }},
};

std::string form(const DataSource& source) {
  const std::string place = ":" + std::string(source.place);
  return std::string(source.name) + (source.place_is_optional ? "[" + place + "]" : place);
}

}  // namespace

std::shared_ptr<Dataset> open_dataset(std::string_view spec, Split split,
                                      std::span<const DataSource> more) {
  std::vector<DataSource> sources(kSources.begin(), kSources.end());
  sources.insert(sources.end(), more.begin(), more.end());
  const std::size_t colon = std::min(spec.find(':'), spec.size());
  const std::string place(spec.substr(std::min(colon + 1, spec.size())));
  const auto source = std::ranges::find(sources, spec.substr(0, colon), &DataSource::name);
  if (source == sources.end()) {
    std::string forms;
    for (const DataSource& known : sources) forms += (forms.empty() ? "" : ", ") + form(known);
    fail(ErrorKind::argument, "data spec '", spec, "' is unknown, wanted one of ", forms);
  }
  if (place.empty() && !source->place_is_optional) {
    fail(ErrorKind::argument, "data spec '", spec, "' lacks its ", source->place, ", wanted ",
         form(*source));
  }
  return source->open(place, split);
}

}  // namespace graft
