// Cuts a trained model, puts a new head on what it learned, and trains only the head.
//
//   transfer MODEL VALUE OUT [DATA [SAMPLES]]      VALUE: the last one to keep; see graft inspect
#include <graft/data.h>
#include <graft/edit.h>
#include <graft/onnx.h>
#include <graft/train.h>

#include <cstdio>
#include <string>

using namespace graft;

namespace {

void transfer(const std::string& in, const std::string& value, const std::string& out,
              const std::string& spec, std::int64_t samples) {
  const auto train_data = first_samples(open_data(spec, Split::train), samples);
  DataLoader loader(train_data, {.batch = 64, .shuffle = true, .seed = 7});
  DataLoader test_loader(first_samples(open_data(spec, Split::test), samples), {.batch = 500});

  Model model = onnx::load(in);
  edit::truncate(model, value);  // all that follows the value goes
  edit::append(
      model, {Flatten{}, Linear{.name = "head.1", .out = 64, .seed = 1}, Relu{.name = "head.relu"},
              Linear{.name = "head.2", .out = train_data->info().classes, .seed = 2}});

  // Only what the new layers hold trains. The other way round would be `.freeze = "conv.*"`.
  Trainer trainer(
      model, {.loss = cross_entropy(), .optimizer = AdamW{.lr = 1e-3F}, .trainable = "head.*"});
  std::printf("training %lld numbers:",
              static_cast<long long>(trainer.train_step().parameter_count()));
  for (const std::string& name : trainer.train_step().parameter_names()) {
    std::printf(" %s", name.c_str());
  }
  std::printf("\n");
  ProgressBar bar;
  trainer.fit(loader, {.epochs = 1, .on_step = [&](const Progress& progress) {
                         bar.show(progress);
                         return true;
                       }});
  bar.clear();
  std::printf("test accuracy %.2f %%\n", trainer.evaluate(test_loader).accuracy.value() * 100.0);
  onnx::save(model, out);
  std::printf("wrote %s\n", out.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: transfer MODEL VALUE OUT [DATA [SAMPLES]]\n");
    return 1;
  }
  try {
    transfer(argv[1], argv[2], argv[3], argc > 4 ? argv[4] : "fashion-mnist",
             argc > 5 ? std::stoll(argv[5]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transfer: %s\n", error.what());
    return 1;
  }
}
