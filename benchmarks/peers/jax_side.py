"""JAX's side, for the nets that are a few lines in it: jitted steps with donated parameters.

    jax_side.py NET TASK SECONDS THREADS       one JSON line; TASK: train, infer; NET: lenet_b64, lenet_b1, mlp_b128
"""
import json
import os
import sys

from least import least_ms


def sizes(name):
    """Shapes of weights and biases in turn, and of the batch."""
    if name.startswith("lenet"):
        return [(20, 1, 5, 5), (50, 20, 5, 5), (800, 500), (500, 10)], (int(name[7:]), 1, 28, 28)
    return [(784, 2048), (2048, 2048), (2048, 10)], (128, 784)


def forward(parameters, x):
    import jax
    from jax import lax
    from jax import numpy as jnp
    last = len(parameters) - 1
    for i, (w, b) in enumerate(parameters):
        if w.ndim == 4:
            x = lax.conv(x, w, (1, 1), "VALID") + b[:, None, None]
            x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
            continue
        x = x.reshape(x.shape[0], -1) @ w + b
        x = x if i == last else jax.nn.relu(x)
    return x


def loss_of(parameters, x, y):
    import jax
    from jax import numpy as jnp
    return -jnp.take_along_axis(jax.nn.log_softmax(forward(parameters, x)), y[:, None], 1).mean()


def sgd(parameters, state, x, y):
    import jax
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients), state, loss


def adam(parameters, state, x, y):
    import jax
    from jax import numpy as jnp
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    step, first, second = state
    step = step + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    rate = 1e-3 * jnp.sqrt(1 - 0.999 ** step) / (1 - 0.9 ** step)
    parameters = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), parameters, first, second)
    return parameters, (step, first, second), loss


def main():
    name, task, seconds, threads = sys.argv[1:]
    # XLA has no setting for its threads: it takes as many as the processors that it may use.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(threads)])
    import jax
    import numpy as np
    random = np.random.default_rng(0)
    shapes, batch = sizes(name)

    def parameter(shape):
        is_kernel = len(shape) == 4
        fan = shape[1] * 25 if is_kernel else shape[0]
        width = shape[0] if is_kernel else shape[1]
        return (jax.numpy.asarray(random.uniform(-1, 1, shape) / np.sqrt(fan), np.float32),
                jax.numpy.zeros(width, np.float32))
    parameters = [parameter(shape) for shape in shapes]
    x = jax.numpy.asarray(random.standard_normal(batch), np.float32)
    y = jax.numpy.asarray(random.integers(0, 10, batch[0]))
    if task == "infer":
        answer = jax.jit(forward)

        def step():
            answer(parameters, x).block_until_ready()
    else:
        zeros = jax.tree.map(jax.numpy.zeros_like, parameters)
        update = jax.jit(adam if name.startswith("mlp") else sgd, donate_argnums=(0, 1))
        held = [parameters, (jax.numpy.float32(0), zeros, jax.tree.map(jax.numpy.zeros_like, zeros))]

        def step():
            held[0], held[1], loss = update(*held, x, y)
            loss.block_until_ready()
    print(json.dumps({"ms": least_ms(step, float(seconds))}))


if __name__ == "__main__":
    main()
