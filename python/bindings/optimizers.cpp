#include <graft/error.h>
#include <graft/optimizer.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "python/bindings/bindings.h"
#include "python/bindings/expressions.h"

namespace graft::python {
namespace {

void bind_sgd(nb::module_& module) {
  nb::class_<SGD>(module, "SGD", "Stochastic gradient descent, as torch.optim.SGD.")
      .def(
          "__init__",
          [](SGD* self, float lr, float momentum, float dampening, float weight_decay,
             bool nesterov) {
            new (self) SGD{lr, momentum, dampening, weight_decay, nesterov};
          },
          nb::arg("lr") = SGD{}.lr, nb::arg("momentum") = 0.0F, nb::arg("dampening") = 0.0F,
          nb::arg("weight_decay") = 0.0F, nb::arg("nesterov") = false)
      .def_rw("lr", &SGD::lr)
      .def_rw("momentum", &SGD::momentum)
      .def_rw("dampening", &SGD::dampening)
      .def_rw("weight_decay", &SGD::weight_decay)
      .def_rw("nesterov", &SGD::nesterov);
}

/// Adam and AdamW, which differ in their default decay.
template <class Kind>
void bind_adam(nb::module_& module, const char* name, const char* doc) {
  nb::class_<Kind>(module, name, doc)
      .def(
          "__init__",
          [](Kind* self, float lr, float beta1, float beta2, float epsilon, float weight_decay) {
            new (self) Kind{lr, beta1, beta2, epsilon, weight_decay};
          },
          nb::arg("lr") = Kind{}.lr, nb::arg("beta1") = Kind{}.beta1,
          nb::arg("beta2") = Kind{}.beta2, nb::arg("epsilon") = Kind{}.epsilon,
          nb::arg("weight_decay") = Kind{}.weight_decay)
      .def_rw("lr", &Kind::lr)
      .def_rw("beta1", &Kind::beta1)
      .def_rw("beta2", &Kind::beta2)
      .def_rw("epsilon", &Kind::epsilon)
      .def_rw("weight_decay", &Kind::weight_decay);
}

void bind_rmsprop(nb::module_& module) {
  nb::class_<RMSprop>(module, "RMSprop", "Hinton's, as torch.optim.RMSprop.")
      .def(
          "__init__",
          [](RMSprop* self, float lr, float alpha, float epsilon, float weight_decay,
             float momentum, bool centered) {
            new (self) RMSprop{lr, alpha, epsilon, weight_decay, momentum, centered};
          },
          nb::arg("lr") = RMSprop{}.lr, nb::arg("alpha") = RMSprop{}.alpha,
          nb::arg("epsilon") = RMSprop{}.epsilon, nb::arg("weight_decay") = 0.0F,
          nb::arg("momentum") = 0.0F, nb::arg("centered") = false)
      .def_rw("lr", &RMSprop::lr)
      .def_rw("alpha", &RMSprop::alpha)
      .def_rw("epsilon", &RMSprop::epsilon)
      .def_rw("weight_decay", &RMSprop::weight_decay)
      .def_rw("momentum", &RMSprop::momentum)
      .def_rw("centered", &RMSprop::centered);
}

void bind_adagrad(nb::module_& module) {
  nb::class_<Adagrad>(module, "Adagrad", "Duchi, Hazan and Singer, 2011, as torch.optim.Adagrad.")
      .def(
          "__init__",
          [](Adagrad* self, float lr, float lr_decay, float epsilon, float weight_decay) {
            new (self) Adagrad{lr, lr_decay, epsilon, weight_decay};
          },
          nb::arg("lr") = Adagrad{}.lr, nb::arg("lr_decay") = 0.0F,
          nb::arg("epsilon") = Adagrad{}.epsilon, nb::arg("weight_decay") = 0.0F)
      .def_rw("lr", &Adagrad::lr)
      .def_rw("lr_decay", &Adagrad::lr_decay)
      .def_rw("epsilon", &Adagrad::epsilon)
      .def_rw("weight_decay", &Adagrad::weight_decay);
}

/// The Python function returns the parameter's new content, or a tuple of it and of each state's.
UpdateFormula update_of(const nb::callable& function) {
  const auto held = shared_owner(function);
  return [held](const Expr& p, const Expr& g, const Expr& lr, const Expr& t,
                const std::vector<Expr>& state) {
    const nb::gil_scoped_acquire lock;
    const Formula values;
    nb::list before;
    for (const Expr& one : state) before.append(values.give(one));
    nb::object result =
        (*held)(values.give(p), values.give(g), values.give(lr), values.give(t), *before);
    if (!nb::isinstance<nb::tuple>(result)) result = nb::make_tuple(result);
    Update update;
    for (nb::handle one : result) {
      Expr content = Formula::take(one, "the optimizer's step");
      if (!update.parameter) {
        update.parameter = content;
      } else {
        update.state.push_back(content);
      }
    }
    return update;
  };
}

void bind_custom(nb::module_& module) {
  nb::class_<CustomOptimizer>(
      module, "CustomOptimizer",
      "An optimizer as a Python function: step(p, g, lr, t, *state) returns the parameter's new "
      "content or, with state, a tuple of it and of each state's; all are GraphValues. State "
      "starts at 0.")
      .def(
          "__init__",
          [](CustomOptimizer* self, const nb::callable& step, float lr,
             std::vector<std::string> state) {
            new (self) CustomOptimizer{lr, std::move(state), update_of(step)};
          },
          nb::arg("step"), nb::arg("lr") = CustomOptimizer{}.lr,
          nb::arg("state") = std::vector<std::string>())
      .def_rw("lr", &CustomOptimizer::lr);
}

void bind_schedules(nb::module_& module) {
  nb::class_<Schedule>(module, "Schedule", "How the learning rate changes over updates.")
      .def("factor", &Schedule::factor, nb::arg("step"), nb::arg("total"),
           "What the base rate is multiplied by in update `step`, from 0, of `total`.");
  module.def("constant_lr", &constant_lr, "The base rate in every update.");
  module.def("step_lr", &step_lr, nb::arg("every"), nb::arg("gamma") = 0.1F,
             "The rate times gamma every `every` updates.");
  module.def("exponential_lr", &exponential_lr, nb::arg("gamma"),
             "The rate times gamma in every update.");
  module.def("cosine_lr", &cosine_lr, nb::arg("floor") = 0.0F,
             "Half a cosine from the base rate to `floor` times it.");
  module.def("one_cycle_lr", &one_cycle_lr, "One rise and one fall over all updates.");
  module.def("with_warmup", &with_warmup, nb::arg("schedule"), nb::arg("updates"),
             "The same schedule after a linear warm-up.");
  module.def("schedule_from_name", &schedule_from_name, nb::arg("name"));
}

}  // namespace

void bind_optimizers(nb::module_& module) {
  bind_sgd(module);
  bind_adam<Adam>(module, "Adam", "Kingma and Ba, 2014; weight decay joins the gradient.");
  bind_adam<AdamW>(module, "AdamW", "Loshchilov and Hutter, 2017: decoupled weight decay.");
  bind_rmsprop(module);
  bind_adagrad(module);
  bind_custom(module);
  bind_schedules(module);
  module.def("optimizer_names", &optimizer_names, "The optimizers that go by name.");
}

}  // namespace graft::python
