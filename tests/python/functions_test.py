"""Losses and optimizers as functions of Python."""
import unittest

from needed import needed

with needed():
    import numpy as np
    from onnx import TensorProto, defs, helper

import graft
from graft._core import takes_integers
from nets import fit, samples, trainer


class Functions(unittest.TestCase):
    def test_a_loss_as_a_function(self):
        x, y = samples()
        target = np.stack([y, 1 - y], 1).astype(np.float32)

        def squared(prediction, target):
            return ((prediction - target) ** 2).mean()

        own, known = trainer(loss=squared), trainer(loss="mse")
        for _ in range(3):
            self.assertAlmostEqual(own.step(x, target), known.step(x, target), places=6)

    def test_a_loss_with_settings(self):
        x, y = samples()
        ignoring = trainer(loss="cross_entropy:ignore_index=1")
        of_class_0 = trainer()
        self.assertAlmostEqual(ignoring.step(x, y), of_class_0.step(x[y == 0], y[y == 0]), places=6)
        with self.assertRaisesRegex(graft.Error, "ignore_index"):
            trainer(loss="mse:ignore_index=1")

    def test_inputs_that_are_integers_are_those_of_the_schemas(self):
        """Of the standard ops whose first input may be floats."""
        for schema in defs.get_all_schemas():
            if schema.domain or schema.deprecated or not schema.inputs:
                continue
            if not any(t.startswith("tensor(float") for t in schema.inputs[0].types):
                continue
            for index, wanted in enumerate(schema.inputs):
                are_integers = bool(wanted.types) and all(t.startswith("tensor(int") for t in wanted.types)
                with self.subTest(f"{schema.name} {wanted.name}"):
                    self.assertEqual(takes_integers(schema.name, index), are_integers)

    def test_operands_are_broadcast_on_either_side(self):
        x, y = samples()
        weights, mix = np.array([1, 3], np.float32), np.eye(len(x), dtype=np.float32)

        def left(prediction, target):
            return ((weights * (mix @ prediction - target)) ** 2).mean()

        def right(prediction, target):
            return (((prediction - target) * weights) ** 2).mean()

        target = np.stack([y, 1 - y], 1).astype(np.float32)
        self.assertAlmostEqual(trainer(loss=left).step(x, target), trainer(loss=right).step(x, target),
                               places=6)

    def value_of(self, formula, prediction, target=None):
        """What a formula of a loss gives for a prediction, by a net that hands its input on."""
        model = graft.parse(identity(prediction.shape[1]))
        t = graft.Trainer(model, loss=formula, optimizer=graft.SGD(lr=0.0), parameters=["w"])
        return t.step(prediction, np.zeros_like(prediction) if target is None else target)

    def test_where_takes_a_number_beside_anything(self):
        x = np.array([[np.inf, 1.0], [np.nan, 2.0]], np.float32)

        def small(prediction, target):
            return graft.ops.where(prediction < 5.0, prediction, 7.0).sum()

        def large(prediction, target):
            return graft.ops.where(prediction < 5.0, np.float32(7), prediction * 0.0 + 1.0).sum()

        self.assertEqual(self.value_of(small, x), 7 + 1 + 7 + 2)
        self.assertEqual(self.value_of(large, np.array([[1.0, 9.0]], np.float32)), 8)
        with self.assertRaisesRegex(graft.Error, "where: found a int and a float, wanted a value"):
            self.value_of(lambda p, t: graft.ops.where(p < 5.0, 1, 2.0).sum(), x)

    def test_a_fraction_beside_integers_is_refused(self):
        x, y = np.ones((2, 2), np.float32), np.array([[1, 2], [3, 4]])

        def times(number):
            return lambda p, t: (p * graft.ops.call("Cast", t * number, to=1)).sum()

        self.assertEqual(self.value_of(times(2.0), x, y), 20)
        for number in (0.5, 1e30, float("nan")):
            with self.assertRaisesRegex(graft.Error, "number .* beside a value of i64.*cast") as caught:
                self.value_of(times(number), x, y)
            self.assertEqual(caught.exception.kind, "type")

    def test_indices_and_axes_stay_integers(self):
        x = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
        call = graft.ops.call
        for wanted, formula in (
            (2 * 7.0, lambda p: call("Gather", p, [1, 1], axis=1).sum()),
            (8.0, lambda p: call("Gather", p, np.array([1], np.int32), axis=np.int64(0)).sum()),
            (3.0, lambda p: call("ReduceSum", call("Gather", p, 0, axis=0), [0], keepdims=np.bool_(False))),
            (5.0, lambda p: call("Reshape", p, [4]).sum() - 6.0),
            (11.0, lambda p: call("ReduceSum", p, [], keepdims=0)),
            (14.0, lambda p: graft.ops.maximum(p, 3).sum()),
            (15.0, lambda p: graft.ops.maximum(p, [3, 4]).sum()),
        ):
            with self.subTest(wanted):
                self.assertEqual(self.value_of(lambda p, t: formula(p), x), wanted)
        with self.assertRaisesRegex(graft.Error, "wanted i64 or i32"):
            self.value_of(lambda p, t: call("Gather", p, [0.5]).sum(), x)

    def test_ops_and_classes(self):
        def focal(logits, target):
            log_p = graft.ops.log_softmax(logits, axis=1)
            nll = graft.ops.call("NegativeLogLikelihoodLoss", log_p, target, reduction="none")
            return ((1.0 - graft.ops.exp(-nll)) ** 2 * nll).mean()

        t = trainer(loss=graft.custom_loss(focal, targets="classes"))
        self.assertIsNotNone(fit(t, samples(), epochs=1)["accuracy"][0])

    def test_several_targets(self):
        x, y = samples()
        one_hot = np.stack([1 - y, y], 1).astype(np.float32)
        model = graft.new("mlp", (4,), 2, seed=1)
        name = model.outputs[0].name

        def both(outputs, targets):
            return ((outputs[0] - targets[0]) ** 2).mean() + ((outputs[0] - targets[1]) ** 2).mean()

        own = graft.Trainer(model, loss=graft.joint_loss(both, [name]))
        text = trainer(loss=f"{name}=mse+{name}=mse", optimizer="adamw")
        for _ in range(3):
            self.assertAlmostEqual(own.step(x, (one_hot, 2 * one_hot)),
                                   text.step(x, (one_hot, 2 * one_hot)), places=5)
        with self.assertRaisesRegex(graft.Error, "has 2 parts, the batch 3 targets"):
            text.step(x, (one_hot, one_hot, one_hot))

    def test_an_optimizer_as_a_function(self):
        def momentum(p, g, lr, t, velocity):
            velocity = velocity * 0.9 + g
            return p - lr * velocity, velocity

        x, y = samples()
        own = trainer(optimizer=graft.CustomOptimizer(momentum, lr=0.1, state=["velocity"]))
        known = trainer(optimizer=graft.SGD(lr=0.1, momentum=0.9))
        for _ in range(4):
            own.step(x, y)
            known.step(x, y)
        for name, parameter in own.parameters.items():
            np.testing.assert_allclose(parameter, known.parameters[name], atol=1e-6)

    def test_what_a_function_raises_comes_out(self):
        def wrong(prediction, target):
            raise ZeroDivisionError("mine")

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            trainer(loss=wrong).step(*samples())
        with self.assertRaises(graft.Error):
            trainer(loss=lambda p, t: 3).step(*samples())

    def test_a_function_may_look_at_the_model(self):
        model = graft.new("mlp", (4,), 2, seed=1)
        seen = []

        def loss(prediction, target):
            seen.append((model.outputs[0].name, len(model.weights)))
            return ((prediction - target) ** 2).mean() + (model.weights["fc1.bias"] ** 2).sum()

        x, y = samples()
        graft.Trainer(model, loss=loss).step(x, np.zeros((len(x), 2), np.float32))
        self.assertEqual(seen[0], ("logits", 6))

    def test_a_kept_value_is_refused(self):
        kept = []

        def keep(prediction, target):
            kept.append(prediction)
            return prediction.mean()

        trainer(loss=keep).step(*samples())
        with self.assertRaisesRegex(graft.Error, "has been built"):
            kept[0] + 1

    def test_every_name_has_an_object(self):
        objects = {name.lower(): getattr(graft, name) for name in graft.__all__}
        for name in [*graft.optimizer_names(), *graft.loss_names()]:
            with self.subTest(name):
                self.assertTrue(callable(objects[name]))
                trainer(**({"loss": name} if name in graft.loss_names() else {"optimizer": name}))


def identity(columns):
    """y = x * w, where w is 1, by the onnx package."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", columns]) for n in "xy")
    w = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


if __name__ == "__main__":
    unittest.main()
