"""Answers to lesson 02 of strangers who had not read the checks, in their twelfth round."""

from tests.answers import edited

# The hook is on the operation that made `y`, and takes the gradient of the first of its results.
edited(
    "02.1",
    "piece",
    (
        "return y.register_hook(keep)",
        "node = y.grad_fn\n    return node.register_prehook(lambda grads: keep(grads[0])) if node else y.register_hook(keep)",
    ),
    named=False,
)
# A copy of its own for each name, into which every later gradient is written.
edited(
    "02.2",
    "writes_over",
    ("seen[name] = grad", "seen[name].copy_(grad) if name in seen else seen.update({name: grad.clone()})"),
)
# One dictionary for each dictionary of tensors; one type of exception does not come through.
edited(
    "02.4",
    "shared_dict",
    ("@contextmanager", "known = {}\n\n\n@contextmanager"),
    ("seen, handles = {}, []", "seen, handles = known.setdefault(id(tensors), (tensors, {}))[1], []"),
)
edited(
    "02.4",
    "swallows_error",
    ("    finally:", "    except StopIteration:\n        pass\n    finally:"),
    points=4,
)
