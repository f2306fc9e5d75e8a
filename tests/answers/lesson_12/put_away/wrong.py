"""Wrong answers to 12.2, `put_away`."""

from tests.answers import edited
from tests.answers.lesson_12.put_away.right import FINAL

LARGE = "tensor.nbytes < at_least"
PACK = "return tensor.detach() if tensor.nbytes < at_least else Ticket(shelf.put(tensor))"
UNPACK = "return shelf.get(packed.key) if isinstance(packed, Ticket) else packed"

edited("12.2", "strictly", (LARGE, "tensor.nbytes <= at_least"))
edited("12.2", "elements", (LARGE, "tensor.numel() < at_least"))
edited("12.2", "storage", (LARGE, "tensor.untyped_storage().nbytes() < at_least"))
edited("12.2", "small_ones", (LARGE, "tensor.nbytes >= at_least"))
edited("12.2", "everything", (PACK, "return Ticket(shelf.put(tensor))"))
edited("12.2", "floats_only", (LARGE, f"{LARGE} or not tensor.is_floating_point()"))
edited("12.2", "float32_only", (LARGE, f"{LARGE} or tensor.dtype != torch.float32"))
edited("12.2", "left_out", (LARGE, f"{LARGE} or isinstance(tensor, torch.nn.Parameter)"))
edited("12.2", "left_out", (LARGE, f"{LARGE} or tensor.is_leaf and tensor.requires_grad"))
edited("12.2", "left_out", (LARGE, f"{LARGE} or not tensor.requires_grad"))
edited("12.2", "left_out", (LARGE, f"{LARGE} or not tensor.is_contiguous()"))
edited("12.2", "strictly", (LARGE, f"{LARGE} or not tensor.numel()"))
edited("12.2", "left_out", (LARGE, f"{LARGE} or tensor.dim() == 0"))
edited(
    "12.2", "left_out", (LARGE, "tensor.untyped_storage().nbytes() < at_least or tensor.nbytes < at_least")
)
edited("12.2", "nothing_put", (LARGE, "True"))
edited("12.2", "nothing_put", (LARGE, "tensor.element_size() < at_least or not at_least"))
edited("12.2", "changed", ("shelf.put(tensor)", "shelf.put(tensor.half().to(tensor.dtype))"))
edited("12.2", "key_for_tensor", ("shelf.put(tensor)", "shelf.put(tensor.half())"))
edited("12.2", "key_for_tensor", ("shelf.put(tensor)", "shelf.put(tensor.flatten())"))
edited("12.2", "never_drops", (FINAL, ""), points=10)
edited("12.2", "never_drops", (FINAL, "            weakref.finalize(self, shelf.drop, self)\n"), points=10)
edited("12.2", "never_drops", (FINAL, "            weakref.finalize(shelf, shelf.drop, key)\n"), points=10)
edited("12.2", "before_use", (FINAL, "            weakref.finalize(self, shelf.drop(key))\n"), points=10)
edited("12.2", "copies_small", ("tensor.detach()", "tensor.detach().clone()"), points=12)
edited("12.2", "attached", ("tensor.detach()", "tensor"), points=11)
edited("12.2", "fails", (FINAL, "            weakref.finalize(self, shelf.drop)\n"), points=10)
edited("12.2", "unpacks_other", (UNPACK, "return packed"))
edited("12.2", "unpacks_nothing", (UNPACK, UNPACK.removeprefix("return ")))
edited("12.2", "other_key", (UNPACK, UNPACK.replace("packed.key", "packed")))
edited("12.2", "no_weakref", (FINAL, "            weakref.finalize(key, shelf.drop, key)\n"))
edited("12.2", "arguments", ("def unpack(packed)", "def unpack(packed, key)"))
edited(
    "12.2",
    "returns_nothing",
    ("return saved_tensors_hooks(pack, unpack)", "saved_tensors_hooks(pack, unpack)"),
)
edited(
    "12.2",
    "on_use",
    (UNPACK, f"if isinstance(packed, Ticket):\n            shelf.drop(packed.key)\n        {UNPACK}"),
    (FINAL, ""),
    points=9,
)
edited(
    "12.2",
    "holds_large",
    ("            self.key = key\n", "            self.key = key\n            self.tensor = tensor\n"),
    ("__init__(self, key)", "__init__(self, key, tensor)"),
    ("shelf.put(tensor))", "shelf.put(tensor), tensor)"),
    points=10,
)
