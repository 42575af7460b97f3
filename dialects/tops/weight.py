"""Weights: tensors of a model file, placed in the order in which operators read them."""

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from mpkc.dialects.tops.base import Array, expect, expect_float, expect_known, shape_of


@irdl_op_definition
class WeightOp(IRDLOperation):
    """A constant tensor, read from a model file by the names of its sources.

    Several sources are stacked along dimension `dim` (0 where it is not written): each is cut into `groups` blocks
    along it, and block g of every source stands before block g + 1 of any. So a fused q, k, v has
    `[its q heads | k | v]` for each kv head, and a fused gate and up alternates row by row; in the weights of experts
    [experts, out, in] the rows are dimension 1.

        %w = tops.weight "layers.0.q", "layers.0.k", "layers.0.v" {groups = 3 : i64} : tensor<960x576xf32>
    """

    name = "tops.weight"

    sources = prop_def(ArrayAttr[StringAttr])
    groups = opt_prop_def(IntegerAttr)
    dim = opt_prop_def(IntegerAttr)
    result = result_def(TensorType)

    def __init__(self, sources: Sequence[str], type: TensorType[Attribute], groups: int = 1, dim: int = 0):
        properties: dict[str, Attribute] = {"sources": ArrayAttr([StringAttr(name) for name in sources])}
        if groups != 1:
            properties["groups"] = IntegerAttr(groups, i64)
        if dim != 0:
            properties["dim"] = IntegerAttr(dim, i64)
        super().__init__(properties=properties, result_types=[type])

    @property
    def source_names(self) -> tuple[str, ...]:
        return tuple(source.data for source in self.sources)

    @property
    def group_count(self) -> int:
        return self.groups.value.data if self.groups is not None else 1

    @property
    def stacking_dim(self) -> int:
        return self.dim.value.data if self.dim is not None else 0

    @property
    def key(self) -> str:
        """A name for the placed tensor; equal keys are equal tensors of one model."""
        groups, dim = self.group_count, self.stacking_dim
        return "+".join(self.source_names) + (f"/{groups}" if groups > 1 else "") + (f"@{dim}" if dim else "")

    def place(self, load: Callable[[str], Array], out: Array) -> None:
        """Write the tensor into `out` (of the result's shape); `load(name)` gives a source in float32.

        Raises:
            ValueError: where the sources do not have the shape that the result needs.
        """
        sources = [load(name) for name in self.source_names]
        groups, dim = self.group_count, self.stacking_dim
        before, after = out.shape[:dim], out.shape[dim + 1 :]

        def fits(source: Array) -> bool:
            return (
                source.ndim == out.ndim
                and source.shape[:dim] + source.shape[dim + 1 :] == before + after
                and source.shape[dim] % groups == 0
            )

        if not all(map(fits, sources)) or sum(source.shape[dim] for source in sources) != out.shape[dim]:
            shapes = ", ".join(f"{n} {s.shape}" for n, s in zip(self.source_names, sources, strict=True))
            raise ValueError(f"weight of shape {out.shape} in {groups} groups can't be stacked from {shapes}")
        target = out.reshape(*before, groups, -1, *after)
        at = 0
        for source in sources:
            end = at + source.shape[dim] // groups
            target[(slice(None),) * (dim + 1) + (slice(at, end),)] = source.reshape(*before, groups, -1, *after)
            at = end

    def verify_(self) -> None:
        expect_known(self.attributes, "groups", "dim")
        expect(len(self.sources) > 0, "needs the name of at least one source")
        expect_float(self.result.type, "weight")
        rank = self.result.type.get_num_dims()
        shape = shape_of(self.result.type, rank, "weight")
        groups, dim = self.group_count, self.stacking_dim
        expect(groups >= 1, f"groups is {groups}, but must be at least 1")
        expect(0 <= dim < rank, f"dim is {dim}, but the weight has dimensions 0 to {rank - 1}")
        expect(shape[dim] % groups == 0, f"{shape[dim]} rows can't be cut into {groups} equal groups")

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        sources = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_str_literal, parser.parse_str_literal
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        properties: dict[str, Attribute] = {"sources": ArrayAttr([StringAttr(name) for name in sources or []])}
        for name in ("groups", "dim"):
            if name in attributes:
                properties[name] = attributes.pop(name)
        return cls.create(properties=properties, attributes=attributes, result_types=[parser.parse_type()])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.source_names, printer.print_string_literal)
        stacking = {name: attribute for name, attribute in self.properties.items() if name != "sources"}
        printer.print_op_attributes(stacking | self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


def random_weight(op: WeightOp, rng: "np.random.Generator") -> Array:  # quoted: NumPy loads np.random when it is named
    """A float32 tensor of the weight's shape whose products neither vanish nor overflow."""
    shape = op.result.type.get_shape()
    fan_in = shape[-1] if len(shape) > 1 else 1
    return (rng.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)
