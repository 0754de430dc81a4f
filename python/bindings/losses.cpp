#include <graft/error.h>
#include <graft/loss.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <utility>

#include "python/bindings/bindings.h"
#include "python/bindings/expressions.h"

namespace graft::python {
namespace {

constexpr std::array<std::pair<const char*, Targets>, 5> kTargets{{
    {"any", Targets::any},
    {"numbers", Targets::numbers},
    {"classes", Targets::classes},
    {"classes_last", Targets::classes_last},
    {"sequences", Targets::sequences},
}};

Targets targets_of(const std::string& name) {
  std::string valid;
  for (const auto& [known, targets] : kTargets) {
    if (name == known) return targets;
    valid += (valid.empty() ? "" : ", ") + std::string(known);
  }
  fail(ErrorKind::argument, "unknown targets '", name, "'; valid: ", valid);
}

Loss loss_of(const nb::callable& function, const std::string& targets, const std::string& name) {
  const auto held = shared_owner(function);
  const auto formula = [held](const Expr& prediction, const Expr& target) {
    const nb::gil_scoped_acquire lock;
    const Formula values;
    return Formula::take((*held)(values.give(prediction), values.give(target)), "the loss");
  };
  return custom_loss(name, formula, targets_of(targets));
}

Loss joint_of(const nb::callable& function, std::vector<std::string> outputs,
              const std::string& name) {
  const auto held = shared_owner(function);
  const auto formula = [held](const std::vector<Expr>& judged, const std::vector<Expr>& targets) {
    const nb::gil_scoped_acquire lock;
    const Formula values;
    nb::list given;
    for (const Expr& one : judged) given.append(values.give(one));
    nb::list wanted;
    for (const Expr& one : targets) wanted.append(values.give(one));
    return Formula::take((*held)(given, wanted), "the loss");
  };
  return joint_loss(name, std::move(outputs), formula);
}

}  // namespace

void bind_losses(nb::module_& module) {
  nb::class_<Loss>(module, "Loss", "How far predictions are from targets.")
      .def_ro("name", &Loss::name)
      .def("__repr__", [](const Loss& loss) { return "<graft.Loss " + loss.name + ">"; });
  module.def("loss_names", &loss_names, "The losses that go by name.");
  module.def("loss_from_spec", &loss_from_spec, nb::arg("spec"));
  module.def("cross_entropy", &cross_entropy, nb::arg("label_smoothing") = 0.0F,
             "Logits [N,C] or [N,C,d...] against class indices [N] or [N,d...].");
  module.def("token_cross_entropy", &token_cross_entropy,
             "Logits [B,T,C] against class indices [B,T].");
  module.def("nll", &nll, "Log-probabilities [N,C] or [N,C,d...] against class indices.");
  module.def("mse", &mse, "The mean of squared differences.");
  module.def("l1", &l1, "The mean of absolute differences.");
  module.def("huber", &huber, nb::arg("delta") = 1.0F,
             "A parabola up to a difference of `delta`, a line beyond.");
  module.def("bce_with_logits", &bce_with_logits, "Logits against probabilities.");
  module.def("focal", &focal, nb::arg("alpha") = 0.25F, nb::arg("gamma") = 2.0F,
             "Logits against 0 and 1: binary cross entropy, less of what is predicted well.");
  module.def("dice", &dice, "Logits [N,...] against masks of 0 and 1: 1 minus their overlap.");
  module.def("kl", &kl, nb::arg("temperature") = 1.0F,
             "Logits [N,C] against a teacher's logits: the divergence of their distributions.");
  module.def("arcface", &arcface, nb::arg("margin") = 0.5F, nb::arg("scale") = 64.0F,
             "Cosines [N,C] against class indices [N]: the angle of the right class counts as "
             "`margin` larger.");
  module.def("triplet", &triplet, nb::arg("margin") = 1.0F,
             "Embeddings [N,D] against labels [N]: the farthest sample of the same label shall be "
             "`margin` nearer than the nearest of another one.");
  module.def("ctc", &ctc, nb::arg("blank") = 0, nb::arg("zero_infinity") = false,
             "Log-probabilities [T,B,C] against label sequences [B,L].");
  module.def("custom_loss", &loss_of, nb::arg("function"), nb::arg("targets") = "any",
             nb::arg("name") = "custom",
             "A loss as a Python function of prediction and target, both GraphValues, that returns "
             "a scalar one. It is called for each plan that is made, not for each step. `targets` "
             "is \"any\", \"numbers\", \"classes\", \"classes_last\" or \"sequences\": class "
             "indices are checked before a step, and give an accuracy.");
  module.def("joint_loss", &joint_of, nb::arg("function"), nb::arg("outputs"),
             nb::arg("name") = "joint",
             "A loss over several outputs of the model, as a Python function of two lists, those "
             "outputs and the targets of a batch, which are given as a tuple.");
  module.def("graph_loss", &graph_loss, nb::arg("output"),
             "A loss that the model computes itself, in this output of one number. The inputs that "
             "only the loss reads take the targets.");
}

}  // namespace graft::python
