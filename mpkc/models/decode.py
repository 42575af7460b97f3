"""The program of one decoding step of a language model."""

from xdsl.dialects.builtin import ModuleOp

from mpkc import tops
from mpkc.models.config import Experts, ModelConfig
from mpkc.models.errors import ModelError
from mpkc.tops import Program, Value


def decode_step(
    config: ModelConfig,
    rows: int = 1,
    context: int | None = None,
    page_size: int = 64,
    layers: int | None = None,
    cache_pages: int | None = None,
) -> ModuleOp:
    """A function @decode: the next token of each of `rows` requests, 8 operators a layer (11 with experts) and 5.

    Its arguments and results are those of a decoding step (docs/tops.md): token and positions [rows], pages
    [rows, context / page_size], then keys and values [cache pages, kv heads, page_size, head_dim] of each layer; the
    next token [rows] and the logits [rows, vocabulary]. Weights have their canonical names (docs/models.md).

    Args:
        context: positions that a row's cache holds, rounded up to whole pages; the model's own where it is None.
        layers: the number of layers, counted from the first; all where it is None.
        cache_pages: pages of the cache; enough for all rows where it is None.

    Raises:
        ModelError: where rows, context, page_size or layers is not a number that the model has.
    """
    context = config.context if context is None else context
    layers = config.layers if layers is None else layers
    for name, value, most in (
        ("rows", rows, None),
        ("context", context, config.context),
        ("page_size", page_size, None),
        ("layers", layers, config.layers),
    ):
        if value < 1 or (most is not None and value > most):
            raise ModelError(f"{name} is {value}, expected at least 1{f' and at most {most}' if most else ''}")
    row_pages = -(-context // page_size)
    cache_pages = rows * row_pages if cache_pages is None else cache_pages
    if cache_pages < 1:
        raise ModelError(f"cache_pages is {cache_pages}, expected at least 1")
    return _Step(config, rows, row_pages, (cache_pages, config.kv_heads, page_size, config.head_dim)).build(layers)


class _Step:
    """The step while it is built: its program, its sizes and the arguments that every layer reads."""

    def __init__(self, config: ModelConfig, rows: int, row_pages: int, cache: tuple[int, ...]):
        self.config, self.cache = config, cache
        self.program = p = Program("decode", decode=True)
        self.token = p.input("token", (rows,), "i32")
        self.positions = p.input("positions", (rows,), "i32")
        self.pages = p.input("pages", (rows, row_pages), "i32")

    def build(self, layers: int) -> ModuleOp:
        config, table = self.config, (self.config.vocabulary, self.config.hidden)
        embed = self.program.weight("embed", shape=table)
        x = tops.embedding(self.token, embed)
        for layer in range(layers):
            x = self.attention(f"layers.{layer}", x)
            x = self.mixture(f"layers.{layer}", x, config.experts) if config.experts else self.mlp(f"layers.{layer}", x)
        x = self.norm("norm", x)
        logits = tops.linear(x, embed if config.tied_embedding else self.program.weight("lm_head", shape=table))
        largest, index = tops.argmax_partial(logits, parts=1)
        self.program.returns(tops.argmax_reduce(largest, index), logits)
        return self.program.module()

    def norm(self, name: str, x: Value) -> Value:
        weight = self.program.weight(name, shape=(self.config.hidden,))
        return tops.rms_norm(x, weight, epsilon=self.config.rms_epsilon)

    def attention(self, layer: str, x: Value) -> Value:
        config, p = self.config, self.program
        keys, values = (p.buffer(f"{layer}.{name}", self.cache) for name in ("keys", "values"))
        normed = self.norm(f"{layer}.attn_norm", x)
        qkv_weight = p.weight(
            *(f"{layer}.{name}" for name in "qkv"),
            groups=config.kv_heads,
            shape=(config.q_size + 2 * config.kv_size, config.hidden),
        )
        qkv = tops.linear(normed, qkv_weight)
        norms: list[Value] = []
        if config.qk_norm:
            norms = [p.weight(f"{layer}.{name}", shape=(config.head_dim,)) for name in ("q_norm", "k_norm")]
        attended = tops.attention(
            qkv,
            keys,
            values,
            self.pages,
            self.positions,
            *norms,
            heads=config.heads,
            rope_base=config.rope_base,
            rope_style=config.rope_style,
            epsilon=config.rms_epsilon if config.qk_norm else None,
        )
        return tops.linear(attended, p.weight(f"{layer}.o", shape=(config.hidden, config.q_size)), residual=x)

    def mlp(self, layer: str, x: Value) -> Value:
        hidden, inner, p = self.config.hidden, self.config.intermediate, self.program
        normed = self.norm(f"{layer}.mlp_norm", x)
        gate_up = p.weight(f"{layer}.gate", f"{layer}.up", groups=inner, shape=(2 * inner, hidden))
        down = p.weight(f"{layer}.down", shape=(hidden, inner))
        return tops.linear(tops.silu_mul(tops.linear(normed, gate_up)), down, residual=x)

    def mixture(self, layer: str, x: Value, experts: Experts) -> Value:
        hidden, inner, p = self.config.hidden, experts.intermediate, self.program
        normed = self.norm(f"{layer}.mlp_norm", x)
        router = tops.linear(normed, p.weight(f"{layer}.router", shape=(experts.count, hidden)))
        weights, chosen = tops.topk_softmax(router, k=experts.active, renormalize=True)
        gate_up = p.weight(
            f"{layer}.expert_gate", f"{layer}.expert_up", groups=inner, dim=1, shape=(experts.count, 2 * inner, hidden)
        )
        down = p.weight(f"{layer}.expert_down", shape=(experts.count, hidden, inner))
        slots = tops.silu_mul(tops.expert_linear(normed, gate_up, chosen))
        return tops.expert_sum(tops.expert_linear(slots, down, chosen), weights, residual=x)
