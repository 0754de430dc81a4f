"""A Flower server: sends an ONNX model to clients, averages what they train, measures and saves it."""
import graft
from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    settings = context.run_config
    model = graft.load(settings["model"])
    trainer = graft.Trainer(model)
    flat = graft.federated.FlatParameters(trainer)

    def measure(number: int, arrays: ArrayRecord) -> MetricRecord:
        flat.set(arrays.to_numpy_ndarrays()[0])
        found = trainer.evaluate(settings["held-back"])
        print(f"round {number}: loss {found.loss:.4f}, accuracy {found.accuracy:.4f}", flush=True)
        return MetricRecord({"loss": found.loss, "accuracy": found.accuracy})

    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=settings["clients"],
                      min_available_nodes=settings["clients"])
    result = strategy.start(
        grid=grid, num_rounds=settings["rounds"], initial_arrays=ArrayRecord([flat.get()]),
        train_config=ConfigRecord({"model": model.to_bytes(), "lr": settings["lr"]}),
        evaluate_fn=measure)
    flat.set(result.arrays.to_numpy_ndarrays()[0])
    model.save(settings["out"])
