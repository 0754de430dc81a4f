#include <graft/train.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/held_model.h"
#include "python/bindings/train_options.h"

namespace graft::python {
namespace {

/// What training sees of the judged model.
struct Judged {
  std::vector<std::string> input_names;
  std::vector<DType> input_types;
  DType target_type = DType::undefined;
  /// A tuple of targets is one target each.
  bool takes_several = false;
};

Judged judged_of(const Graph& graph, const Loss& loss, const std::string& output) {
  Judged judged;
  for (const Value* value : graph.inputs()) {
    if (value->is_initializer()) continue;
    judged.input_names.push_back(value->name());
    judged.input_types.push_back(value->dtype());
  }
  for (const Value* value : graph.outputs()) {
    const bool is_it = output.empty() ? value == graph.outputs().front() : value->name() == output;
    if (is_it && is_float(value->dtype())) judged.target_type = value->dtype();
  }
  judged.takes_several = !loss.outputs.empty();
  return judged;
}

/// A Trainer, and beside it, once they are asked for, gradients without an update.
class HeldTrainer {
 public:
  HeldTrainer(HeldModel& held, Model& model, TrainOptions options)
      : held_(&held),
        edits_(held.edits),
        options_(std::move(options)),
        judged_(judged_of(model.graph(), options_.loss, options_.output)),
        trainer_(model, options_) {}

  /// HeldModel::alone(). Throws Error{argument} if the model was edited since.
  template <class Work>
  auto alone(Work&& work) {
    return held_->alone([&](Model& model) {
      if (held_->edits != edits_) {
        fail(ErrorKind::argument,
             "the model was edited after this trainer was made; make a new Trainer");
      }
      return work(model);
    });
  }

  /// Calls `work` with the step, alone with the model, though it may have been edited.
  template <class Work>
  auto with_step(Work&& work) {
    return held_->alone([&](const Model&) { return work(trainer_.train_step()); });
  }

  /// Labels that the loss of the first target leaves aside.
  std::optional<std::int64_t> ignore_index() const {
    const Loss& loss = options_.loss;
    return (loss.parts.empty() ? loss : loss.parts.front()).ignore_index;
  }

  const Loss& loss() const { return options_.loss; }
  Trainer& trainer() { return trainer_; }
  TrainStep& step() { return trainer_.train_step(); }
  const Judged& judged() const { return judged_; }

  /// The gradients of the batch's loss as they are, before any clipping.
  std::map<std::string, Tensor> gradients(Model& model, const Batch& batch) {
    // A step keeps parameters of 16 bits in f32, which the updates of the other one since then have
    // left behind.
    const auto is_narrow = [&](const std::string& name) {
      return bits_of(model.graph().find(name)->dtype()) == 16;
    };
    if (gradients_ && std::ranges::any_of(gradients_->parameter_names(), is_narrow)) {
      gradients_.reset();
    }
    if (!gradients_) {
      TrainOptions options = options_;
      options.optimizer.reset();
      options.clip = {};
      options.accumulate = 1;
      options.schedule = {};
      options.groups.clear();
      options.ema = 0.0F;
      gradients_.emplace(model, std::move(options));
    }
    gradients_->run(batch.inputs, targets_of(batch));
    return gradients_->gradients();
  }

 private:
  HeldModel* held_;
  std::uint64_t edits_;
  TrainOptions options_;
  Judged judged_;
  Trainer trainer_;
  std::optional<TrainStep> gradients_;
};

void make_trainer(HeldTrainer* self, HeldModel& held, const nb::dict& given) {
  TrainOptions options = options_of(given);
  held.alone([&](Model& model) { new (self) HeldTrainer(held, model, std::move(options)); });
}

/// `inputs`: one array an input of the model, in order.
Batch batch_of(const HeldTrainer& held, const nb::list& inputs, nb::handle target) {
  const Judged& judged = held.judged();
  Batch batch;
  for (std::size_t i = 0; i < nb::len(inputs); ++i) {
    const bool is_known = i < judged.input_names.size();
    const std::string name = is_known ? judged.input_names[i] : std::to_string(i);
    batch.inputs.push_back(to_tensor(inputs[i], "input '" + name + "'",
                                     is_known ? judged.input_types[i] : DType::undefined));
  }
  const auto tensor_of = [&](nb::handle array) {
    const Tensor found = to_tensor(array, "target");
    return converted(found, "target", is_float(found.dtype()) ? judged.target_type : DType::i64);
  };
  if (judged.takes_several && nb::isinstance<nb::tuple>(target) && nb::len(target) > 0) {
    batch.target = tensor_of(target[0]);
    for (std::size_t i = 1; i < nb::len(target); ++i) {
      batch.further_targets.push_back(tensor_of(target[i]));
    }
  } else {
    batch.target = tensor_of(target);
  }
  const bool has_rows = !batch.inputs.empty() && batch.inputs.front().rank() > 0;
  batch.size = has_rows ? batch.inputs.front().shape()[0] : 1;
  return batch;
}

nb::dict gradients(HeldTrainer& held, const Batch& batch) {
  const std::map<std::string, Tensor> found =
      held.alone([&](Model& model) { return held.gradients(model, batch); });
  nb::dict arrays;
  for (const auto& [name, tensor] : found) arrays[name.c_str()] = to_own_array(tensor);
  return arrays;
}

nb::object parameter(HeldTrainer& held, const std::string& name) {
  const Tensor tensor =
      held.alone([&](const Model& model) { return model.graph().find(name)->initializer(); });
  return to_array(tensor);
}

std::vector<std::string> changed_names(HeldTrainer& held, bool with_statistics) {
  return held.with_step([&](TrainStep& step) { return step.changed_names(with_statistics); });
}

/// Calls the function alone with the model; it may call the trainer again.
nb::object call_alone(HeldTrainer& held, const nb::callable& work) {
  return held.alone([&](const Model&) {
    const nb::gil_scoped_acquire lock;
    return work();
  });
}

/// A copy: the next step overwrites what it was.
nb::object prediction(HeldTrainer& held) {
  return to_own_array(held.with_step([](TrainStep& step) { return step.prediction().clone(); }));
}

/// What `ask` says of the step, for Python.
template <class Ask>
auto asking(Ask ask) {
  return [ask](HeldTrainer& held) { return held.with_step(ask); };
}

void bind_reports(nb::module_& module) {
  nb::class_<StepReport>(module, "StepReport", "What one step did to one batch.")
      .def_ro("loss", &StepReport::loss, "The loss of the batch before its update.")
      .def_ro("accuracy", &StepReport::accuracy, "The share of right predictions, or None.")
      .def_ro("samples", &StepReport::samples)
      .def_ro("judged", &StepReport::judged, "Targets that the accuracy counts.");
  nb::class_<Evaluation>(module, "Evaluation", "What a model achieves on data.")
      .def(nb::init<double, std::optional<double>, std::int64_t, std::int64_t>(), nb::arg("loss"),
           nb::arg("accuracy") = nb::none(), nb::arg("samples") = 0, nb::arg("judged") = 0)
      .def_ro("loss", &Evaluation::loss, "The mean over all that was judged.")
      .def_ro("accuracy", &Evaluation::accuracy, "The share of right predictions, or None.")
      .def_ro("samples", &Evaluation::samples)
      .def_ro("judged", &Evaluation::judged, "Targets that the accuracy counts.")
      .def("__repr__", [](const Evaluation& e) {
        return e.accuracy ? text("<graft.Evaluation loss ", e.loss, ", accuracy ", *e.accuracy,
                                 ", ", e.samples, " samples>")
                          : text("<graft.Evaluation loss ", e.loss, ", ", e.samples, " samples>");
      });
}

/// Means over batches, by the trainer's loss.
void bind_loss_mean(nb::class_<HeldTrainer>& trainer) {
  nb::class_<LossMean>(trainer, "LossMean", "The loss of several batches as if they were one.")
      .def(nb::init<>())
      .def_prop_ro("value", &LossMean::value);
  trainer
      .def("add_loss",
           [](const HeldTrainer& held, LossMean& mean, const StepReport& step) {
             mean.add(held.loss(), step.loss, step.weight);
           })
      .def("add_loss", [](const HeldTrainer&, LossMean& mean, const Evaluation& batch) {
        mean.sum += batch.loss * batch.weight;  // whose loss is a mean already
        mean.weight += batch.weight;
      });
}

void bind_groups(nb::module_& module) {
  nb::class_<ParameterGroup>(
      module, "ParameterGroup",
      "How the parameters whose whole name matches a regular expression are updated where that "
      "differs from the others; `start` is the number of updates in which they are frozen first.")
      .def(
          "__init__",
          [](ParameterGroup* self, std::string pattern, std::optional<float> lr,
             std::optional<float> weight_decay, std::optional<Schedule> schedule,
             std::optional<std::int64_t> start) {
            new (self) ParameterGroup{std::move(pattern), lr, weight_decay, schedule, start};
          },
          nb::arg("pattern"), nb::arg("lr") = nb::none(), nb::arg("weight_decay") = nb::none(),
          nb::arg("schedule") = nb::none(), nb::arg("start") = nb::none())
      .def_ro("pattern", &ParameterGroup::pattern);
}

void bind_steps(nb::class_<HeldTrainer>& trainer) {
  nb::class_<Trainer::Started>(trainer, "StartedStep", "A step that a card may still be at.");
  trainer
      .def("step",
           [](HeldTrainer& held, const Batch& batch) {
             return held.alone([&](Model&) { return held.trainer().step(batch); });
           })
      .def("start",
           [](HeldTrainer& held, const Batch& batch) {
             return held.alone([&](Model&) { return held.trainer().start(batch); });
           })
      .def("finish",
           [](HeldTrainer& held, const Trainer::Started& started) {
             return held.alone([&](Model&) { return held.trainer().finish(started); });
           })
      .def_prop_ro("overlaps", [](HeldTrainer& held) { return held.trainer().overlaps(); })
      .def("evaluate", [](HeldTrainer& held, const Batch& batch) {
        return held.alone([&](Model&) { return held.trainer().evaluate(batch); });
      });
}

}  // namespace

void bind_training(nb::module_& module) {
  bind_reports(module);
  bind_groups(module);
  nb::class_<HeldTrainer> trainer(module, "Trainer");
  bind_loss_mean(trainer);
  bind_steps(trainer);
  trainer
      .def("__init__", &make_trainer, nb::keep_alive<1, 2>(), nb::arg("model"), nb::arg("options"))
      .def("batch", &batch_of, nb::arg("inputs"), nb::arg("target"))
      .def("gradients", &gradients,
           nb::sig("def gradients(self, batch: Batch) -> dict[str, numpy.ndarray]"))
      .def("plan",
           [](HeldTrainer& held, const Batch& batch) {
             held.alone([&](Model&) { held.step().plan(batch.inputs, targets_of(batch)); });
           })
      .def("alone", &call_alone, nb::arg("work"))
      .def("prediction", &prediction, nb::sig("def prediction(self) -> numpy.ndarray"))
      .def("parameter", &parameter, nb::sig("def parameter(self, name: str) -> numpy.ndarray"))
      .def_prop_ro("parameter_names", asking([](TrainStep& s) { return s.parameter_names(); }))
      .def("changed_names", &changed_names)
      .def_prop_ro("parameter_count", asking([](TrainStep& s) { return s.parameter_count(); }))
      .def_prop_ro("input_names", [](const HeldTrainer& t) { return t.judged().input_names; })
      .def_prop_ro("input_types",
                   [](const HeldTrainer& t) {
                     std::vector<std::string> names;
                     for (const DType type : t.judged().input_types) names.emplace_back(name(type));
                     return names;
                   })
      .def_prop_ro("target_type",
                   [](const HeldTrainer& t) { return std::string(name(t.judged().target_type)); })
      .def_prop_ro("ignore_index", &HeldTrainer::ignore_index)
      .def_prop_ro("updates", asking([](TrainStep& s) { return s.updates(); }))
      .def_prop_ro("learning_rate", asking([](TrainStep& s) { return s.learning_rate(); }))
      .def("learning_rate_of",
           [](HeldTrainer& held, const std::string& name) {
             return held.with_step([&](TrainStep& step) { return step.learning_rate(name); });
           })
      .def("use_averages",
           [](HeldTrainer& held, bool on) {
             held.alone([&](Model&) { held.step().use_averages(on); });
           })
      .def_prop_ro("uses_averages", asking([](TrainStep& s) { return s.uses_averages(); }))
      .def("set_base_learning_rate",
           [](HeldTrainer& held, float lr) {
             held.with_step([&](TrainStep& step) { step.set_base_learning_rate(lr); });
           })
      .def("set_total_updates",
           [](HeldTrainer& held, std::int64_t total) {
             held.with_step([&](TrainStep& step) { step.set_total_updates(total); });
           })
      .def_prop_ro("memory", asking([](TrainStep& s) {
                     return std::map<std::string, std::size_t>{{"arena", s.arena_bytes()},
                                                               {"parameters", s.parameter_bytes()},
                                                               {"state", s.state_bytes()}};
                   }));
}

}  // namespace graft::python
