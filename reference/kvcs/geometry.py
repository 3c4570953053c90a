"""How large one block of one layer is, and in which order its elements lie (kvsp-p0 §6)."""

from __future__ import annotations

from dataclasses import dataclass

from kvcs.descriptor import CLAUSE, ELEMENT_OCTETS, Descriptor, check_descriptor
from kvcs.errors import Defect, DescriptorError, InputError, refuse
from kvcs.names import Component
from kvcs.payload import MAX_DATA_OCTETS

LAYOUTS = ("thd", "htd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The part of a Compatibility Descriptor that fixes sizes.

    `kv_heads` counts the whole model's heads, whatever the parallelism. `layout` is the axis order
    of a section, outermost first: t token, h head, d channel; C order, little-endian, no padding.
    `v_head_dim` 0 means that there is no V section (MLA, reading A21). `scale_dtype` not None
    appends one scale per token and head to each section.

    Raises InputError for a value outside its range.
    """

    layers: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    dtype: str
    block_tokens: int
    layout: str = "thd"
    scale_dtype: str | None = None

    def __post_init__(self) -> None:
        for name in ("layers", "kv_heads", "head_dim", "block_tokens"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.v_head_dim < 0:
            raise InputError(f"v_head_dim is at least 0, not {self.v_head_dim}")
        for dtype in (self.dtype, self.scale_dtype):
            if dtype is not None and dtype not in ELEMENT_OCTETS:
                known = ", ".join(ELEMENT_OCTETS)
                raise InputError(f"unknown dtype {dtype!a}; known: {known}")
        if self.layout not in LAYOUTS:
            raise InputError(f"unknown layout {self.layout!a}; known: {', '.join(LAYOUTS)}")
        if self.octets(Component.KV) > MAX_DATA_OCTETS:
            raise InputError(
                f"K and V of one block have {self.octets(Component.KV)} octets, "
                "more than the 2^32-1 that a KVCS payload can hold"
            )

    @classmethod
    def from_descriptor(cls, descriptor: Descriptor) -> Geometry:
        """The geometry that a kvsp-p0 descriptor states; DescriptorError when it states none."""
        defects = check_descriptor(descriptor)
        if defects:
            raise refuse(DescriptorError, "not a kvsp-p0 Compatibility Descriptor", defects)
        quant = descriptor["quant"]
        if quant is not None and quant["granularity"] != "token_head":
            what = (
                "only granularity 'token_head' has a defined section size, "
                f"not {quant['granularity']!a}"
            )
            where = "$.quant.granularity"
            defect = Defect("descriptor-granularity", CLAUSE, what, where)
            raise refuse(DescriptorError, "no section size", [defect])
        return cls(
            layers=descriptor["layers"],
            kv_heads=descriptor["kv_heads"],
            head_dim=descriptor["head_dim"],
            v_head_dim=descriptor["v_head_dim"],
            dtype=descriptor["dtype"],
            block_tokens=descriptor["block_tokens"],
            layout=descriptor["layout"],
            scale_dtype=None if quant is None else quant["scale_dtype"],
        )

    @property
    def element_octets(self) -> int:
        """Octets of one element."""
        return ELEMENT_OCTETS[self.dtype]

    @property
    def scale_octets(self) -> int:
        """Octets of the scales of one section; 0 without quantisation."""
        if self.scale_dtype is None:
            return 0
        return self.block_tokens * self.kv_heads * ELEMENT_OCTETS[self.scale_dtype]

    def dim(self, component: Component) -> int:
        """Channels per head of the K or the V section."""
        return self.head_dim if component is Component.K else self.v_head_dim

    def octets(self, component: Component) -> int:
        """Exact raw Data Length of one block of one layer (KVCS-4-15, KVCS-4-16, KVCS-9-1).

        K has 16 x 8 x 128 x 2 = 32768 octets for 16 tokens, 8 heads, 128 channels of bf16; KV is
        K and V in sum. A V section without channels is empty.
        """
        if component is Component.KV:
            return self.octets(Component.K) + self.octets(Component.V)
        if self.dim(component) == 0:
            return 0
        elements = self.block_tokens * self.kv_heads * self.dim(component)
        return elements * self.element_octets + self.scale_octets

    def blocks(self, tokens: int) -> int:
        """Complete blocks in that many tokens; the partial last one does not count (KVCS-4-11)."""
        return tokens // self.block_tokens
