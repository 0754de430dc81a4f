// Trains low-rank adapters (LoRA) beside the layers of a model, writes them alone, and puts them
// into the weights.
//
//   adapters MODEL ADAPTERS [PATTERN [DATA [SAMPLES]]]      PATTERN: of names of layers (all)
#include <graft/data.h>
#include <graft/edit.h>
#include <graft/onnx.h>
#include <graft/train.h>

#include <cstdio>
#include <string>

using namespace graft;

namespace {

double accuracy(const Model& model, DataLoader& data) {
  return Evaluator(model, {.loss = cross_entropy()}).run(data).accuracy.value() * 100.0;
}

void adapt(const std::string& in, const std::string& out, const std::string& pattern,
           const std::string& spec, std::int64_t samples) {
  Model model = onnx::load(in);
  DataLoader images(first_samples(open_data(spec, Split::train), samples),
                    {.batch = 32, .shuffle = true, .seed = 7});
  DataLoader held_back(first_samples(open_data(spec, Split::test), samples), {.batch = 500});

  const double before = accuracy(model, held_back);
  const edit::LoraReport report =
      edit::add_lora(model, {.pattern = pattern, .rank = 4, .alpha = 8.0, .seed = 1});
  Trainer trainer(model, {.loss = cross_entropy(), .optimizer = AdamW{.lr = 3e-3F}});
  std::printf("%zu layers, %lld numbers to train\n", report.adapted.size(),
              static_cast<long long>(trainer.train_step().parameter_count()));
  trainer.fit(images, {.epochs = 1});
  std::printf("test accuracy %.2f %% -> %.2f %%\n", before, accuracy(model, held_back));

  save_lora(model, out);
  edit::merge_lora(model);
  std::printf("merged: %.2f %%\n", accuracy(model, held_back));

  Model again = onnx::load(in);
  edit::apply_lora(again, load_lora(out));
  std::printf("applied from %s: %.2f %%\n", out.c_str(), accuracy(again, held_back));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: adapters MODEL ADAPTERS [PATTERN [DATA [SAMPLES]]]\n");
    return 1;
  }
  try {
    adapt(argv[1], argv[2], argc > 3 ? argv[3] : ".*", argc > 4 ? argv[4] : "fashion-mnist",
          argc > 5 ? std::stoll(argv[5]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "adapters: %s\n", error.what());
    return 1;
  }
}
