// Runs a model on several threads at the same time, on memory of its own, and gives it other
// weights.
//
//   serve MODEL [OTHER [THREADS]]      OTHER: a file of the same net, whose weights are taken
#include <graft/onnx.h>
#include <graft/session.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace graft;

namespace {

/// Each thread has memory and a run of its own; the weights are there once.
double serve(Session& session, const Shape& shape, int threads) {
  std::vector<BoundRun> runs;
  for (int i = 0; i < threads; ++i)
    runs.push_back(session.bind({Tensor::zeros(DType::f32, shape)}));
  const auto work = [](BoundRun& run, int number) {
    for (float& pixel : run.inputs().front().values<float>()) {
      pixel = static_cast<float>(number) / 10.0F;  // where a camera would write
    }
    run.run();
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back(work, std::ref(runs[static_cast<std::size_t>(i)]), i);
  }
  for (std::thread& worker : workers) worker.join();
  double sum = 0;
  for (const BoundRun& run : runs) {
    for (const float score : run.outputs().front().values<const float>()) sum += score;
  }
  return sum;
}

std::map<std::string, Tensor> weights_of(const Model& model) {
  std::map<std::string, Tensor> weights;
  for (const Value* value : model.graph().initializers()) {
    if (value->initializer().dtype() == DType::f32 && value->initializer().rank() > 0) {
      weights[value->name()] = value->initializer();
    }
  }
  return weights;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) fail(ErrorKind::argument, "usage: serve MODEL [OTHER [THREADS]]");
  const int threads = argc > 3 ? std::atoi(argv[3]) : 4;
  const Model model = onnx::load(argv[1]);
  Session session(model, {.weights_change = true});
  std::vector<std::int64_t> dims;
  for (const Dim& dim : model.graph().inputs().front()->type().shape->dims()) {
    dims.push_back(dim.is_known() ? dim.value() : 1);
  }
  std::printf("%d runs at a time: %.6f\n", threads, serve(session, Shape(dims), threads));
  if (argc > 2) {
    session.set_weights(weights_of(onnx::load(argv[2])));
    std::printf("with other weights: %.6f\n", serve(session, Shape(dims), threads));
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "serve: %s\n", error.what());
  return 1;
}
