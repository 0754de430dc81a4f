#include "tools/graft/report_page.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "graft/version.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/html.h"
#include "tools/graft/net_drawing.h"

namespace graft::cli {
namespace {

constexpr const char* kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;padding:0 16px 48px;max-width:1240px;color:#222;background:#fff}
h1{font-size:24px;margin:24px 0 4px}h2{font-size:18px;margin:28px 0 8px;border-bottom:1px solid #ddd}h3{font-size:15px;margin:16px 0 4px}
p{margin:4px 0}.note{color:#a33}.scroll{overflow:auto;max-width:100%}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:16px}
.flow{display:flex;flex-wrap:wrap;gap:16px}.flow>*{flex:1 1 340px;min-width:0}
table{border-collapse:collapse;font-size:13px}td,th{padding:2px 8px;border:1px solid #e2e2e2;text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{background:#f5f5f5;font-weight:600;white-space:nowrap}td.number{text-align:right}tr.differs td{background:#fff6dc}
table.confusion td{text-align:right;min-width:26px;padding:2px 4px}table.confusion th{font-weight:400;white-space:nowrap}
svg text{font:11px system-ui,sans-serif;fill:#333}svg .op{font-weight:600;font-size:12px}
svg.chart{width:100%;max-width:600px}.grid{stroke:#e6e6e6}.node{fill:#eef4fa;stroke:#7aa5cc}.edge{fill:none;stroke:#999}
.pictures{display:flex;flex-wrap:wrap;gap:8px}.pictures figure{margin:0;width:92px;font-size:11px;line-height:1.25;overflow-wrap:anywhere}
.pictures img{width:84px;height:84px;object-fit:contain;image-rendering:pixelated;background:#000}
.net-frame{max-height:480px;overflow:auto;border:1px solid #e2e2e2}
pre{font-size:11px;overflow:auto;max-height:480px;background:#fafafa;border:1px solid #e2e2e2;padding:8px;margin:0})";

std::string number_text(double value) {
  return std::isnan(value) ? "" : fixed(value, 4);
}

/// Rows of a name and a cell a run; those whose cells differ are marked.
class Comparison {
 public:
  explicit Comparison(std::span<const RunSection> sections) {
    html_ = "<div class=\"scroll\"><table><tr><th></th>";
    for (const RunSection& section : sections) {
      html_ += "<th>" + escaped(section.run.name) + "</th>";
    }
    html_ += "</tr>";
  }
  void row(const std::string& name, const std::vector<std::string>& cells) {
    const bool differs = std::ranges::any_of(cells, [&](const auto& c) { return c != cells[0]; });
    html_ += text(differs ? "<tr class=\"differs\">" : "<tr>", "<th>", escaped(name), "</th>");
    for (const std::string& cell : cells) html_ += "<td>" + escaped(cell) + "</td>";
    html_ += "</tr>";
  }
  std::string html() const { return html_ + "</table></div>"; }

 private:
  std::string html_;
};

/// A row for each member that config.json has in its object `part`, in the order in which they come
/// up.
void add_rows(std::span<const RunSection> sections, const std::string& part, Comparison& table) {
  std::vector<std::string> names;
  for (const RunSection& section : sections) {
    const auto object = section.run.config.find(part);
    if (object == section.run.config.end() || !object->is_object()) continue;
    for (const auto& [name, value] : object->items()) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    std::vector<std::string> cells;
    for (const RunSection& section : sections) cells.push_back(section.run.entry(part, name));
    table.row(name, cells);
  }
}

std::string results(std::span<const RunSection> sections) {
  Comparison table(sections);
  for (const char* measure : {"validation_accuracy", "validation_loss", "accuracy", "loss"}) {
    std::vector<std::string> cells;
    for (const RunSection& section : sections) {
      cells.push_back(number_text(section.run.last(measure)));
    }
    table.row(text("last ", measure), cells);
  }
  std::vector<std::string> epochs;
  std::vector<std::string> seconds;
  for (const RunSection& section : sections) {
    const Curve times = section.run.curve("seconds");
    double total = 0.0;
    for (const auto& [epoch, time] : times.points) total += time;
    epochs.push_back(std::to_string(times.points.size()));
    seconds.push_back(fixed(total, 1));
  }
  table.row("epochs", epochs);
  table.row("seconds", seconds);
  return "<h2>Results</h2>" + table.html();
}

std::string curves(std::span<const RunSection> sections) {
  std::vector<Chart> charts;
  for (const RunSection& section : sections) {
    for (const std::string& measure : section.run.measures()) {
      Curve curve = section.run.curve(measure);
      if (curve.points.empty()) continue;
      if (sections.size() > 1) curve.name = section.run.name + ' ' + curve.name;
      add_curve(measure, std::move(curve), charts);
    }
  }
  std::string html = "<h2>Curves</h2><div class=\"charts\">";
  for (const Chart& chart : charts) html += "<div>" + svg_chart(chart) + "</div>";
  return html + "</div>";
}

std::string settings(std::span<const RunSection> sections) {
  Comparison said(sections);
  add_rows(sections, "settings", said);
  Comparison machine(sections);
  std::vector<std::string> versions;
  for (const RunSection& section : sections) versions.push_back(section.run.version());
  machine.row("graft", versions);
  add_rows(sections, "machine", machine);
  return "<div class=\"flow\"><div><h2>Settings</h2>" + said.html() +
         "</div><div><h2>Machine</h2>" + machine.html() + "</div></div>";
}

std::string class_name(const RunSection& section, std::int64_t index) {
  const std::vector<std::string>& names = section.class_names;
  const auto place = static_cast<std::size_t>(index);
  return place < names.size() ? names[place] : std::to_string(index);
}

/// What would not fit a page as a table is a list of what is confused most.
std::string confusions(const RunSection& section) {
  const ConfusionMatrix& found = section.judgement->confusion;
  std::vector<std::pair<std::int64_t, std::pair<std::int64_t, std::int64_t>>> all;
  for (std::int64_t truth = 0; truth < found.classes(); ++truth) {
    for (std::int64_t guess = 0; guess < found.classes(); ++guess) {
      const std::int64_t count = found.count(truth, guess);
      if (truth != guess && count > 0) all.push_back({count, {truth, guess}});
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &decltype(all)::value_type::first);
  constexpr std::size_t kMost = 30;
  if (all.size() > kMost) all.resize(kMost);
  std::string html = "<table><tr><th>class</th><th>taken for</th><th>samples</th></tr>";
  for (const auto& [count, pair] : all) {
    html += text("<tr><td>", escaped(class_name(section, pair.first)), "</td><td>",
                 escaped(class_name(section, pair.second)), "</td><td class=\"number\">", count,
                 "</td></tr>");
  }
  return html + "</table>";
}

std::string matrix(const RunSection& section) {
  const ConfusionMatrix& found = section.judgement->confusion;
  std::string html = "<div class=\"scroll\"><table class=\"confusion\"><tr><th></th>";
  for (std::int64_t c = 0; c < found.classes(); ++c) {
    html += "<th>" + escaped(class_name(section, c)) + "</th>";
  }
  html += "</tr>";
  for (std::int64_t truth = 0; truth < found.classes(); ++truth) {
    std::int64_t row = 0;
    for (std::int64_t guess = 0; guess < found.classes(); ++guess) row += found.count(truth, guess);
    html += "<tr><th>" + escaped(class_name(section, truth)) + "</th>";
    for (std::int64_t guess = 0; guess < found.classes(); ++guess) {
      const std::int64_t count = found.count(truth, guess);
      const double share = row == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(row);
      html += text("<td style=\"background:rgba(", truth == guess ? "43,138,62" : "217,84,30", ',',
                   fixed(std::sqrt(share) * 0.8, 2), ")\">", count, "</td>");
    }
    html += "</tr>";
  }
  return html + "</table></div>";
}

std::string judged(const RunSection& section) {
  if (!section.judgement) return {};
  const ConfusionMatrix& found = section.judgement->confusion;
  std::int64_t right = 0;
  for (std::int64_t c = 0; c < found.classes(); ++c) right += found.count(c, c);
  constexpr std::int64_t kLargestTable = 30;
  return text("<h3>Confusion matrix</h3><p>", escaped(section.data_name), ": ", with_commas(right),
              " of ", with_commas(section.judgement->samples),
              " right. A row is a class, a column what it was taken for.</p>",
              found.classes() <= kLargestTable ? matrix(section) : confusions(section));
}

std::string pictures(const RunSection& section) {
  if (!section.judgement || section.judgement->worst.empty()) return {};
  const DatasetInfo& info = section.data->info();
  const Shape& shape = info.inputs.front().shape;
  const bool is_picture = info.inputs.front().dtype == DType::f32 && shape.rank() == 3 &&
                          (shape[0] == 1 || shape[0] == 3);
  if (!is_picture) return {};
  const Batch one = make_batch(info, 1);
  std::string html = "<h3>Wrong, and sure of it</h3><div class=\"pictures\">";
  for (const Mistake& mistake : section.judgement->worst) {
    const SampleRow row(one, 0);
    section.data->read(mistake.index, row);
    html += text("<figure><img alt=\"sample ", mistake.index, "\" src=\"",
                 picture_uri(row.input<float>(), shape[0], shape[1], shape[2]), "\"><br>",
                 escaped(class_name(section, mistake.truth)), "<br>taken for ",
                 escaped(class_name(section, mistake.guess)), ", ", percent(mistake.confidence),
                 "</figure>");
  }
  return html + "</div>";
}

std::string details(const RunSection& section, bool is_one_of_several) {
  std::string html = "<div>";
  if (is_one_of_several) html += "<h2>" + escaped(section.run.name) + "</h2>";
  for (const std::string& note : section.notes) {
    html += "<p class=\"note\">" + escaped(note) + "</p>";
  }
  html += judged(section) + pictures(section);
  if (section.net.graph().node_count() > 0) {
    html += "<h3>Net</h3><div class=\"net-frame\">" + svg_net(section.net.graph()) + "</div>";
  }
  if (!section.profile.empty()) {
    html += "<h3>Time of a training step</h3><pre>" + escaped(section.profile) + "</pre>";
  }
  return html + "</div>";
}

}  // namespace

std::string report_page(std::span<const RunSection> sections) {
  std::vector<std::string> names;
  for (const RunSection& section : sections) names.push_back(section.run.name);
  const std::string title = joined(names);
  std::string html = text(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>",
      escaped(title), "</title><style>", kStyle, "</style></head><body><h1>", escaped(title),
      "</h1><p>Graft ", kVersion, "</p>");
  html += results(sections) + curves(sections) + "<div class=\"flow\">";
  for (const RunSection& section : sections) html += details(section, sections.size() > 1);
  return html + "</div>" + settings(sections) + "</body></html>\n";
}

}  // namespace graft::cli
