// A loss of one's own: the focal loss, which turns from what is easy to what is hard.
//
//   own_loss [DATA [SAMPLES]]      DATA: fashion-mnist (default), mnist:DIR, ...
#include <graft/data.h>
#include <graft/layers.h>
#include <graft/loss.h>
#include <graft/train.h>

#include <cstdio>
#include <string>

using namespace graft;

namespace {

/// Mean of (1 - p)^gamma * -log(p), where p is the probability of the right class (Lin et al.,
/// arXiv 1708.02002). Logits [N,C] against class indices [N].
Loss focal_loss(double gamma) {
  const auto formula = [gamma](const Expr& logits, const Expr& target) {
    const Expr log_p = call("LogSoftmax", {logits}, {{"axis", 1}});
    const Expr nll =
        call("NegativeLogLikelihoodLoss", {log_p, target}, {{"reduction", "none"}});  // [N]
    return reduce_mean(pow(1.0 - exp(-nll), gamma) * nll, {}, false);
  };
  return custom_loss("focal", formula, Targets::classes);  // classes: checked, with an accuracy
}

void train(const std::string& spec, std::int64_t samples) {
  DataLoader loader(first_samples(open_data(spec, Split::train), samples),
                    {.batch = 64, .shuffle = true, .seed = 7});
  DataLoader test_loader(first_samples(open_data(spec, Split::test), samples), {.batch = 500});
  Model model = make_net("lenet", {1, 28, 28}, /*classes=*/10);
  Trainer trainer(model, {.loss = focal_loss(2.0), .optimizer = AdamW{.lr = 1e-3F}});
  const EpochReport epoch = trainer.fit(loader).front();
  const Evaluation test = trainer.evaluate(test_loader);
  std::printf("focal loss %.4f, test accuracy %.2f %%\n", epoch.loss, *test.accuracy * 100.0);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "fashion-mnist", argc > 2 ? std::stoll(argv[2]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_loss: %s\n", error.what());
    return 1;
  }
}
