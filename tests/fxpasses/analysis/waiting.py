"""Operators that make the host wait for a GPU, and operators that do not.

Each entry is an operator and its operands, which are named: `tensors(device)` makes them. The same
table is read by the analysis, which needs no GPU, and compared with what a GPU really does.
"""

from types import SimpleNamespace

import torch

aten = torch.ops.aten


def tensors(device):
    """The operands of the entries; `h` and its like stay on the host."""
    generator = torch.Generator().manual_seed(7)

    def floats(*shape):
        # `Tensor.to` asks for a torch that is built for the device, even of fake tensors.
        return aten._to_copy(torch.randn(shape, generator=generator), device=device)

    square = floats(3, 3)
    return SimpleNamespace(
        x=floats(4, 3),
        y=floats(4, 3),
        v=floats(3),
        one=floats(),
        mask=floats(4, 3) > 0,
        rows=floats(4) > 0,
        bytes=(floats(4) > 0).to(torch.uint8),
        n=torch.tensor([0, 2, 1, 1], device=device),
        places=torch.tensor([[0, 2, 1]], device=device),
        many=torch.arange(64, device=device),
        a=square @ square.T + 3 * torch.eye(3, device=device),
        p=floats(5).abs() + 0.1,
        image=floats(1, 3, 8, 8),
        kernel=floats(2, 3, 3, 3),
        heads=floats(1, 2, 4, 8),
        batch=floats(2, 3, 3),
        flag=torch.tensor(True, device=device),
        whole=torch.tensor(2, device=device),
        h=torch.tensor(2.0),
        hn=torch.tensor([0, 2, 1]),
        hx=torch.ones(4, 3),
    )


def entry(name, operands, **kwargs):
    """An operator by its name, with a function from the tensors to its operands."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default"), operands, kwargs


CPU = torch.device("cpu")

WAITS = [
    entry("index.Tensor", lambda t: (t.x, [t.mask])),
    entry("index.Tensor", lambda t: (t.x, [t.rows, None])),
    entry("index.Tensor", lambda t: (t.x, [t.bytes])),
    entry("index.Tensor", lambda t: (t.x, [t.hn])),
    entry("index_put", lambda t: (t.x, [t.mask], t.one)),
    entry("index_put", lambda t: (t.x, [t.mask], t.h, True)),
    entry("index_put", lambda t: (t.x, [t.n], t.h)),
    entry("index_put_", lambda t: (t.x, [t.rows], t.v)),
    entry("nonzero", lambda t: (t.x,)),
    entry("argwhere", lambda t: (t.x,)),
    entry("where", lambda t: (t.mask,)),
    entry("masked_select", lambda t: (t.x, t.mask)),
    entry("combinations", lambda t: (t.v,)),
    entry("_unique2", lambda t: (t.n,)),
    entry("unique_consecutive", lambda t: (t.n,)),
    entry("unique_dim", lambda t: (t.x, 0)),
    entry("_local_scalar_dense", lambda t: (t.one,)),
    entry("item", lambda t: (t.one,)),
    entry("is_nonzero", lambda t: (t.flag,)),
    entry("equal", lambda t: (t.x, t.y)),
    entry("allclose", lambda t: (t.x, t.y)),
    entry("bincount", lambda t: (t.n,)),
    entry("histc", lambda t: (t.x, 4)),
    entry("one_hot", lambda t: (t.n,)),
    entry("isin.Tensor_Tensor", lambda t: (t.n, t.many)),
    entry("multinomial", lambda t: (t.p, 1)),
    entry("normal.Tensor_Tensor", lambda t: (t.p, t.p)),
    entry("normal.float_Tensor", lambda t: (0.0, t.p)),
    entry("repeat_interleave.Tensor", lambda t: (t.n,)),
    entry("repeat_interleave.self_Tensor", lambda t: (t.x, t.n, 0)),
    entry("masked_fill.Tensor", lambda t: (t.x, t.mask, t.one)),
    entry("masked_fill_.Tensor", lambda t: (t.x, t.mask, t.one)),
    entry("index_fill.int_Tensor", lambda t: (t.x, 0, t.n, t.one)),
    entry("_to_copy", lambda t: (t.x,), device=CPU),
    entry("to.device", lambda t: (t.x, CPU, torch.float32)),
    entry("copy_", lambda t: (t.hx, t.x)),
    entry("copy_", lambda t: (t.x, t.hx)),
    entry("where.self", lambda t: (t.mask, t.h, t.x)),
    entry("linalg_cholesky", lambda t: (t.a,)),
    entry("linalg_cholesky_ex", lambda t: (t.a,), check_errors=True),
    entry("linalg_inv", lambda t: (t.a,)),
    entry("linalg_solve", lambda t: (t.a, t.a)),
    entry("linalg_eigh", lambda t: (t.a,)),
    entry("linalg_svd", lambda t: (t.a,)),
]

UNARY = """
abs neg sin cos tan exp log sqrt rsqrt reciprocal sigmoid tanh relu gelu silu floor ceil round sign
isnan isinf isfinite logical_not erf log1p expm1 square clone alias detach zeros_like ones_like
empty_like rand_like randn_like sum mean amax amin any all var.correction prod argmax argmin t
count_nonzero median nanmedian
"""
BINARY = """
add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum pow.Tensor_Tensor atan2 fmod.Tensor
remainder.Tensor eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or
logical_xor floor_divide isclose dist mse_loss cosine_similarity
"""
NO_WAITS = [
    *[entry(name, lambda t: (t.x,)) for name in UNARY.split()],
    *[entry(name, lambda t: (t.x, t.y)) for name in BINARY.split()],
    entry("add.Tensor", lambda t: (t.x, t.h)),
    entry("mul.Scalar", lambda t: (t.x, 2)),
    entry("clamp", lambda t: (t.x, -1, 1)),
    entry("where.self", lambda t: (t.mask, t.x, t.y)),
    entry("where.ScalarOther", lambda t: (t.mask, t.x, 1.0)),
    entry("masked_fill.Scalar", lambda t: (t.x, t.mask, 1.0)),
    entry("masked_fill.Tensor", lambda t: (t.x, t.mask, t.h)),
    entry("masked_scatter", lambda t: (t.x, t.mask, t.y)),
    entry("index_put", lambda t: (t.x, [t.mask], t.h)),
    entry("index_put_", lambda t: (t.x, [t.rows], t.h)),
    entry("index_put", lambda t: (t.x, [t.n], t.v)),
    entry("index_put", lambda t: (t.x, [t.n], t.v, True)),
    entry("index.Tensor", lambda t: (t.x, [t.n])),
    entry("index_select", lambda t: (t.x, 0, t.n)),
    entry("index_add", lambda t: (t.x, 0, t.n, t.y)),
    entry("index_copy", lambda t: (t.x, 0, t.n, t.y)),
    entry("index_fill.int_Scalar", lambda t: (t.x, 0, t.n, 1.0)),
    entry("gather", lambda t: (t.x, 0, t.places)),
    entry("scatter.value", lambda t: (t.v, 0, t.n, 1.0)),
    entry("take", lambda t: (t.x, t.n)),
    entry("embedding", lambda t: (t.x, t.n)),
    entry("repeat_interleave.self_int", lambda t: (t.x, 2, 0)),
    entry("repeat_interleave.self_Tensor", lambda t: (t.x, t.n, 0), output_size=4),
    entry("nonzero_static", lambda t: (t.x,), size=4),
    entry("histc", lambda t: (t.x, 4, -3, 3)),
    entry("one_hot", lambda t: (t.n, 3)),
    entry("isin.Tensor_Tensor", lambda t: (t.n, t.n)),
    entry("multinomial", lambda t: (t.p, 3, True)),
    entry("bernoulli.p", lambda t: (t.p, 0.5)),
    entry("normal.Tensor_float", lambda t: (t.p, 1.0)),
    entry("native_dropout", lambda t: (t.x, 0.5, True)),
    entry("view", lambda t: (t.x, [3, 4])),
    entry("reshape", lambda t: (t.x, [-1])),
    entry("permute", lambda t: (t.x, [1, 0])),
    entry("transpose.int", lambda t: (t.x, 0, 1)),
    entry("expand", lambda t: (t.v, [4, 3])),
    entry("slice.Tensor", lambda t: (t.x, 0, 1, 3)),
    entry("select.int", lambda t: (t.x, 0, 1)),
    entry("unsqueeze", lambda t: (t.x, 0)),
    entry("cat", lambda t: ([t.x, t.y],)),
    entry("stack", lambda t: ([t.x, t.y],)),
    entry("split.Tensor", lambda t: (t.x, 2)),
    entry("roll", lambda t: (t.x, [1], [0])),
    entry("flip", lambda t: (t.x, [0])),
    entry("tril", lambda t: (t.x,)),
    entry("constant_pad_nd", lambda t: (t.x, [1, 1])),
    entry("sum.dim_IntList", lambda t: (t.x, [0])),
    entry("cumsum", lambda t: (t.x, 0)),
    entry("cumprod", lambda t: (t.x, 0)),
    entry("sort", lambda t: (t.x,)),
    entry("topk", lambda t: (t.x, 2)),
    entry("argsort", lambda t: (t.x,)),
    entry("max.dim", lambda t: (t.x, 0)),
    entry("searchsorted.Tensor", lambda t: (t.many, t.n)),
    entry("bucketize.Tensor", lambda t: (t.n, t.many)),
    entry("_softmax", lambda t: (t.x, 1, False)),
    entry("_log_softmax", lambda t: (t.x, 1, False)),
    entry("native_layer_norm", lambda t: (t.x, [3], t.v, t.v, 1e-5)),
    entry("mm", lambda t: (t.a, t.a)),
    entry("addmm", lambda t: (t.v, t.x, t.a)),
    entry("bmm", lambda t: (t.batch, t.batch)),
    entry("linear", lambda t: (t.x, t.a)),
    entry(
        "convolution", lambda t: (t.image, t.kernel, None, [1, 1], [0, 0], [1, 1], False, [0], 1)
    ),
    entry("max_pool2d", lambda t: (t.image, [2, 2])),
    entry("avg_pool2d", lambda t: (t.image, [2, 2])),
    entry("upsample_nearest2d", lambda t: (t.image, [4, 4])),
    entry("upsample_bilinear2d", lambda t: (t.image, [4, 4], False)),
    entry("scaled_dot_product_attention", lambda t: (t.heads, t.heads, t.heads)),
    entry("linalg_cholesky_ex", lambda t: (t.a,)),
    entry("linalg_inv_ex", lambda t: (t.a,)),
    entry("_to_copy", lambda t: (t.x,), dtype=torch.float64),
    entry("_to_copy", lambda t: (t.x,), device=CPU, non_blocking=True),
    entry("copy_", lambda t: (t.x, t.y)),
    entry("arange", lambda t: (5,), device="cuda"),
    entry("full", lambda t: ([3], 1.0), device="cuda"),
    entry("_assert_async", lambda t: (t.flag,)),
    entry("add_.Tensor", lambda t: (t.x, t.y)),
    entry("fill_.Scalar", lambda t: (t.x, 1.0)),
]


def label(each):
    operator, _, kwargs = each
    return " ".join([str(operator), *kwargs])
