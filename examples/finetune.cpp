// Loads a model from any exporter, trains all of it a little further, saves it.
//
//   finetune MODEL OUT [DATA [SAMPLES]]      DATA: fashion-mnist (default), mnist:DIR, npz:FILE,
//   ...
#include <graft/data.h>
#include <graft/onnx.h>
#include <graft/train.h>

#include <cstdio>
#include <string>

using namespace graft;

namespace {

void finetune(const std::string& in, const std::string& out, const std::string& spec,
              std::int64_t samples) {
  Model model = onnx::load(in);
  DataLoader loader(first_samples(open_data(spec, Split::train), samples),
                    {.batch = 64, .shuffle = true, .seed = 7});
  DataLoader test_loader(first_samples(open_data(spec, Split::test), samples), {.batch = 500});

  // A tenth of the rate that a fresh net would get: what was learned should move, not go.
  Trainer trainer(model, {.loss = cross_entropy(),
                          .optimizer = SGD{.lr = 0.005F, .momentum = 0.9F},
                          .clip = {.norm = 1.0F},
                          .schedule = cosine_lr()});
  const double before = trainer.evaluate(test_loader).accuracy.value();
  ProgressBar bar;
  trainer.fit(loader, {.epochs = 1, .on_step = [&](const Progress& progress) {
                         bar.show(progress);
                         return true;
                       }});
  bar.clear();
  const double after = trainer.evaluate(test_loader).accuracy.value();
  std::printf("test accuracy %.2f %% -> %.2f %%\n", before * 100.0, after * 100.0);
  onnx::save(model, out);
  std::printf("wrote %s\n", out.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: finetune MODEL OUT [DATA [SAMPLES]]\n");
    return 1;
  }
  try {
    finetune(argv[1], argv[2], argc > 3 ? argv[3] : "fashion-mnist",
             argc > 4 ? std::stoll(argv[4]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finetune: %s\n", error.what());
    return 1;
  }
}
