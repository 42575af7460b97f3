"""Qwen3 decoders at batch 1 as tops text, with the grids that the published counts of MPK, table 2, follow from."""

WORKERS = 128
DIM = 128  # of a head
VOCABULARY = 151936


def features_grid(size: int) -> int:
    """Tasks of a fused projection."""
    if size / 96 > 400:
        return size // 256
    return 96 if size % 96 == 0 else 64


def tensor(*shape: int, element: str = "bf16") -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


class Program:
    """Text of one function, an operator a call; each returns the name of its result."""

    def __init__(self, layers: int, hidden: int, heads: int, kv_heads: int):
        self.layers, self.hidden, self.heads, self.kv_heads = layers, hidden, heads, kv_heads
        self.lines: list[str] = []
        self.row = tensor(1, hidden)

    def op(self, name: str, operands: dict[str, str], result: str, grid: tuple[int, ...], **attributes: str) -> str:
        number = f"%r{len(self.lines)}"
        attributes["grid"] = f"array<i64: {', '.join(map(str, grid))}>"
        listed = ", ".join(f"{key} = {value}" for key, value in attributes.items())
        count = result.count("tensor<")
        self.lines.append(
            f"{number}{f':{count}' if count > 1 else ''} = tops.{name} {', '.join(operands)} {{{listed}}} : "
            f"({', '.join(operands.values())}) -> {result}"
        )
        return number

    def weight(self, *shape: int) -> dict[str, str]:
        name = f"%w{len(self.lines)}"
        self.lines.append(f'{name} = tops.weight "{name[1:]}" : {tensor(*shape)}')
        return {name: tensor(*shape)}

    def norm(self, x: str) -> str:
        return self.op("rms_norm", {x: self.row} | self.weight(self.hidden), self.row, (1,), epsilon="1.0e-06 : f64")

    def linear(self, x: str, inner: int, out: int, parts: int, residual: str = "") -> str:
        operands = {x: tensor(1, inner)} | self.weight(out, inner)
        return self.op("linear", operands | ({residual: self.row} if residual else {}), tensor(1, out), (1, parts))

    def attention_block(self, x: str, layer: int, out_parts: int) -> str:
        """x + output projection of attention of the normed x."""
        qkv = (self.heads + 2 * self.kv_heads) * DIM
        projected = self.linear(self.norm(x), self.hidden, qkv, features_grid(qkv))
        caches = {f"%{name}{layer}": self.cache for name in "kv"}
        where = {"%pages": tensor(1, 4, element="i32"), "%positions": tensor(1, element="i32")}
        attended = self.op(
            "attention",
            {projected: tensor(1, qkv)} | caches | where,
            tensor(1, self.heads * DIM),
            (1, self.kv_heads),
            heads=f"{self.heads} : i64",
            rope_base="1.0e+06 : f64",
            rope_style='"halves"',
        )
        return self.linear(attended, self.heads * DIM, self.hidden, out_parts, x)

    @property
    def cache(self) -> str:
        return f"memref<4x{self.kv_heads}x16x{DIM}xbf16>"

    def embedding(self) -> str:
        operands = {"%token": tensor(1, element="i32")} | self.weight(VOCABULARY, self.hidden)
        return self.op("embedding", operands, self.row, (1, 1))

    def finished(self, x: str) -> str:
        """The text of the function, with the tail that turns the last x into a token."""
        logits = self.linear(self.norm(x), self.hidden, VOCABULARY, WORKERS)
        largest, index = tensor(1, WORKERS), tensor(1, WORKERS, element="i32")
        parts = self.op(
            "argmax_partial",
            {logits: tensor(1, VOCABULARY)},
            f"({largest}, {index})",
            (1, WORKERS),
            parts=f"{WORKERS} : i64",
        )
        token = tensor(1, element="i32")
        reduced = self.op("argmax_reduce", {f"{parts}#0": largest, f"{parts}#1": index}, token, (1,))
        arguments = [f"%token : {token}", f"%pages : {tensor(1, 4, element='i32')}", f"%positions : {token}"]
        arguments += [f"%{name}{layer} : {self.cache}" for layer in range(self.layers) for name in "kv"]
        body = "\n  ".join([*self.lines, f"func.return {reduced} : {token}"])
        return f"func.func @model({', '.join(arguments)}) -> {token} {{\n  {body}\n}}\n"


def dense_model(layers: int, hidden: int, intermediate: int, heads: int, kv_heads: int) -> str:
    program = Program(layers, hidden, heads, kv_heads)
    x = program.embedding()
    for layer in range(layers):
        x = program.attention_block(x, layer, hidden // 64)
        gate_up = features_grid(2 * intermediate)
        both = program.linear(program.norm(x), hidden, 2 * intermediate, gate_up)
        gated = program.op("silu_mul", {both: tensor(1, 2 * intermediate)}, tensor(1, intermediate), (1, gate_up // 2))
        x = program.linear(gated, intermediate, hidden, hidden // 64, x)
    return program.finished(x)


def expert_model(
    layers: int, hidden: int, intermediate: int, heads: int, kv_heads: int, experts: int, chosen: int
) -> str:
    """A layer's experts: gate-up 10 groups of experts x 12 blocks of columns, silu by slot, down 8 x 16."""
    program = Program(layers, hidden, heads, kv_heads)
    choice, share = tensor(1, chosen, element="i32"), tensor(1, chosen, element="f32")
    slots = {width: tensor(chosen, width) for width in (2 * intermediate, intermediate, hidden)}
    x = program.embedding()
    for layer in range(layers):
        x = program.attention_block(x, layer, hidden // 128)
        normed = program.norm(x)
        logits = program.linear(normed, hidden, experts, 1)
        picked = program.op(
            "topk_softmax", {logits: tensor(1, experts)}, f"({share}, {choice})", (1,), k=f"{chosen} : i64"
        )
        which = {f"{picked}#1": choice}
        both = program.op(
            "expert_linear",
            {normed: program.row} | program.weight(experts, 2 * intermediate, hidden) | which,
            slots[2 * intermediate],
            (10, 12),
        )
        gated = program.op("silu_mul", {both: slots[2 * intermediate]}, slots[intermediate], (chosen, 1))
        down = program.op(
            "expert_linear",
            {gated: slots[intermediate]} | program.weight(experts, hidden, intermediate) | which,
            slots[hidden],
            (8, 16),
        )
        operands = {down: slots[hidden], f"{picked}#0": share, x: program.row}
        x = program.op("expert_sum", operands, program.row, (1, hidden // 256))
    return program.finished(x)


QWEN3_1_7B = {"layers": 28, "hidden": 2048, "intermediate": 6144, "heads": 16, "kv_heads": 8}
QWEN3_8B = {"layers": 36, "hidden": 4096, "intermediate": 12288, "heads": 32, "kv_heads": 8}
QWEN3_30B_A3B = {
    "layers": 48,
    "hidden": 2048,
    "intermediate": 768,
    "heads": 32,
    "kv_heads": 4,
    "experts": 128,
    "chosen": 8,
}
