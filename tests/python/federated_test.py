"""Parameters as one vector, and deltas: what federated training exchanges."""
import unittest

import numpy as np
from nets import fit, samples, trainer

import graft
from graft import federated


class Flat(unittest.TestCase):
    def test_is_what_a_trainer_changes(self):
        t = trainer()
        flat = federated.FlatParameters(t)
        self.assertEqual(flat.names, list(t.parameters))
        start = flat.get()
        self.assertEqual(start.dtype, np.float32)
        self.assertEqual(len(flat), start.size)
        np.testing.assert_array_equal(
            start, np.concatenate([array.ravel() for array in t.parameters.values()]))
        fit(t, samples(), epochs=2)
        np.testing.assert_array_equal(flat.delta(start), flat.get() - start)
        self.assertGreater(np.abs(flat.delta(start)).max(), 0)

    def test_a_trainer_goes_on_from_what_is_set(self):
        t = trainer()
        flat = federated.FlatParameters(t)
        before, start = t.evaluate(samples()).loss, flat.get()
        fit(t, samples(), epochs=2)
        after, trained = t.evaluate(samples()).loss, flat.get()
        self.assertLess(after, before)
        flat.set(start.astype(np.float64))
        self.assertEqual(t.evaluate(samples()).loss, before)
        flat.set(trained)
        self.assertEqual(t.evaluate(samples()).loss, after)

    def test_holds_running_statistics_unless_they_are_left_out(self):
        def made():
            model = graft.new("mlp", (4,), 4, seed=1).append(
                graft.BatchNorm("norm"), graft.Linear("head", 2, seed=2))
            return graft.Trainer(model, optimizer=graft.Adam(lr=0.02))

        t, other = made(), made()
        flat, theirs = federated.FlatParameters(t), federated.FlatParameters(other)
        self.assertIn("norm.running_var", flat.names)
        parameters = federated.FlatParameters(t, statistics=False)
        self.assertEqual(parameters.names, list(t.parameters))
        other.evaluate(samples())  # what it has planned must see what is set
        fit(t, samples(), epochs=2)
        theirs.set(flat.get())
        self.assertEqual(other.evaluate(samples()).loss, t.evaluate(samples()).loss)

    def test_another_model_is_refused(self):
        flat = federated.FlatParameters(trainer())
        with self.assertRaisesRegex(graft.Error, r"found f32\[3\], wanted f32\["):
            flat.set(np.zeros(3, np.float32))


class Deltas(unittest.TestCase):
    def test_are_clipped_noised_and_packed(self):
        delta = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
        short = federated.clipped(delta, 0.5)
        self.assertAlmostEqual(float(np.linalg.norm(short)), 0.5, places=5)
        noisy = federated.noised(short, 0.1, seed=3)
        self.assertAlmostEqual(float((noisy - short).std()), 0.1, places=2)
        numbers, scales = federated.packed(delta, seed=4)
        self.assertEqual((numbers.dtype, numbers.shape, scales.shape), (np.int8, (1000,), (4,)))
        np.testing.assert_allclose(federated.unpacked(numbers, scales), delta,
                                   atol=float(scales.max()) * 1.001)
        with self.assertRaisesRegex(graft.Error, "number 7 of the delta is nan"):
            delta[7] = np.nan
            federated.clipped(delta, 1)

    def test_of_clients_average_to_what_all_data_make(self):
        """One step of SGD on halves, averaged, is one step on all."""
        x, y = samples(64)

        def trained(x, y):
            t = trainer(optimizer=graft.SGD(lr=0.1))
            flat = federated.FlatParameters(t)
            start = flat.get()
            t.step(x, y)
            return flat.delta(start)

        mean = (trained(x[:32], y[:32]) + trained(x[32:], y[32:])) / 2
        np.testing.assert_allclose(mean, trained(x, y), atol=1e-6)


if __name__ == "__main__":
    unittest.main()
