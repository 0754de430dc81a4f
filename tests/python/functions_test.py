"""Losses and optimizers as functions of Python."""
import unittest

from needed import needed

with needed():
    import numpy as np

import graft
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


if __name__ == "__main__":
    unittest.main()
