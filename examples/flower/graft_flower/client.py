"""A Flower client: trains the server's model on the data that its node has, for an epoch a round."""
import graft
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    config = message.content["config"]
    trainer = graft.Trainer(graft.parse(config["model"]), optimizer=graft.SGD(lr=config["lr"]))
    flat = graft.federated.FlatParameters(trainer)
    flat.set(message.content["arrays"].to_numpy_ndarrays()[0])
    data = graft.Loader(context.node_config["data"], 32, shuffle=True, seed=config["server-round"])
    epoch = trainer.fit(data, verbose=False).epochs[0]
    metrics = MetricRecord({"loss": epoch["loss"], "num-examples": epoch["samples"]})
    answer = RecordDict({"arrays": ArrayRecord([flat.get()]), "metrics": metrics})
    return Message(answer, reply_to=message)
