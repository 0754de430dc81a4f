// An optimizer of one's own: Lion, which moves each parameter by the sign of a momentum.
//
//   own_optimizer [DATA [SAMPLES]]      DATA: fashion-mnist (default), mnist:DIR, ...
#include <graft/data.h>
#include <graft/layers.h>
#include <graft/optimizer.h>
#include <graft/train.h>

#include <cstdio>
#include <string>

using namespace graft;

namespace {

/// Chen et al., arXiv 2302.06675: p -= lr * (sign(b1*m + (1-b1)*g) + decay*p);
/// m = b2*m + (1-b2)*g.
CustomOptimizer lion(float base_lr, double decay) {
  const auto step = [decay](const Expr& p, const Expr& g, const Expr& lr, const Expr& /*t*/,
                            const std::vector<Expr>& state) -> Update {
    constexpr double kB1 = 0.9;
    constexpr double kB2 = 0.99;
    const Expr& m = state[0];
    const Expr direction = call("Sign", {m * kB1 + g * (1.0 - kB1)});
    return {p - lr * (direction + p * decay), {m * kB2 + g * (1.0 - kB2)}};
  };
  return {.lr = base_lr, .state = {"momentum"}, .step = step};
}

void train(const std::string& spec, std::int64_t samples) {
  DataLoader loader(first_samples(open_data(spec, Split::train), samples),
                    {.batch = 64, .shuffle = true, .seed = 7});
  DataLoader test_loader(first_samples(open_data(spec, Split::test), samples), {.batch = 500});
  Model model = make_net("lenet", {1, 28, 28}, /*classes=*/10);
  Trainer trainer(model, {.optimizer = lion(2e-4F, 0.01), .schedule = cosine_lr()});
  const EpochReport epoch = trainer.fit(loader).front();
  const Evaluation test = trainer.evaluate(test_loader);
  std::printf("loss %.4f, test accuracy %.2f %%\n", epoch.loss, *test.accuracy * 100.0);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "fashion-mnist", argc > 2 ? std::stoll(argv[2]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_optimizer: %s\n", error.what());
    return 1;
  }
}
