"""The ordered list of rules, with the reason for each place. The order is the only order: where several rules have a
finding about one node, the first that can rewrite it does, and what is left of the node is looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence

from padfix.config.settings import is_named
from padfix.errors import UsageError, suggestion
from padfix.rules.asymmetric_padding import AsymmetricPadding
from padfix.rules.base import Rule
from padfix.rules.computed_constant import ComputedConstant
from padfix.rules.conflicting_padding import ConflictingPadding
from padfix.rules.decided_body import DecidedBody
from padfix.rules.dynamic_same_padding import DynamicSamePadding
from padfix.rules.empty_resize_scales import EmptyResizeScales
from padfix.rules.foreign_operator import ForeignOperator
from padfix.rules.implicit_same_padding import ImplicitSamePadding
from padfix.rules.implicit_transpose_padding import ImplicitTransposePadding
from padfix.rules.implicit_valid_padding import ImplicitValidPadding
from padfix.rules.legacy_opset import LegacyOpset
from padfix.rules.legacy_resize import LegacyResize
from padfix.rules.legacy_upsample import LegacyUpsample
from padfix.rules.meaningless_operator import MeaninglessOperator
from padfix.rules.misread_producer import MisreadProducer
from padfix.rules.model_function import ModelFunction
from padfix.rules.opset_too_new import OpsetTooNew
from padfix.rules.removed_resize_mode import RemovedResizeMode
from padfix.rules.resize_runtime_slip import ResizeRuntimeSlip
from padfix.rules.runtime_contradicts_spec import RuntimeContradictsSpec
from padfix.rules.separate_pad import SeparatePad
from padfix.rules.sparse_constant import SparseConstant
from padfix.rules.stale_shapes import StaleShapes
from padfix.rules.unproven_model import UnprovenModel
from padfix.rules.unsupported_operator import UnsupportedOperator
from padfix.rules.unsupported_pad import UnsupportedPad
from padfix.rules.unsupported_resize import UnsupportedResize
from padfix.rules.unsupported_window import UnsupportedWindow
from padfix.rules.zero_pad_before_max_pool import ZeroPadBeforeMaxPool

UNPROVEN_MODEL = UnprovenModel()

RULES: tuple[Rule, ...] = (
    # What the node means comes first: as long as auto_pad stands, there are no pads that another rule could move.
    # These five never have a finding about one node together; known sizes come before unknown ones for the reader.
    ImplicitSamePadding(),
    DynamicSamePadding(),
    ImplicitValidPadding(),
    ConflictingPadding(),
    ImplicitTransposePadding(),
    # Where explicit pads go. The two want opposite things, and the target's style of pads lets only one of them speak.
    AsymmetricPadding(),
    SeparatePad(),
    # After SeparatePad: a Pad that can be folded into its pool is no longer there for a runtime to fuse wrongly.
    ZeroPadBeforeMaxPool(),
    # Resizes, by age: an Upsample becomes a Resize, and a Resize names its coordinates.
    LegacyUpsample(),
    LegacyResize(),
    # A mode that is no more comes before the inputs: what becomes a Gather has none to leave out.
    RemovedResizeMode(),
    # Once the inputs of a Resize are those of today, what is left empty among them can go.
    EmptyResizeScales(),
    # What the target objects to: after the rules that give the node the form of today, which may be all that it needs.
    UnsupportedWindow(),
    UnsupportedPad(),
    UnsupportedResize(),
    UnsupportedOperator(),
    # What it writes is of ONNX's own domain, for the rules above to judge.
    ForeignOperator(),
    # It is about nodes that no other rule is about; behind them, because they may leave constants to be computed.
    ComputedConstant(),
    # What runtimes are known to get wrong: after all rules that give the node another form, so that a node that is
    # rewritten anyway is not reported, or padded apart, for a slip of the form that goes.
    ResizeRuntimeSlip(),
    RuntimeContradictsSpec(),
    # What no rule can rewrite, because it has no meaning: convert ends before it asks any rule.
    MeaninglessOperator(),
    # What is no node. Functions and bodies, whose nodes take the place of calls and holders before any rule is asked.
    ModelFunction(),
    DecidedBody(),
    # What the model declares: the opset decides how all the nodes are read, declared shapes nothing at all,
    # nor does the producer.
    LegacyOpset(),
    OpsetTooNew(),
    StaleShapes(),
    MisreadProducer(),
    SparseConstant(),
    # What no graph can say: whether a report proves the file. Only a gate asks it.
    UNPROVEN_MODEL,
)


def require_known(words: Sequence[str]) -> None:
    """Raise :class:`UsageError` for the first word that is not the code, family or name of a rule."""
    for word in words:
        if not any(is_named(rule.code, rule.name, word) for rule in RULES):
            known = [name for rule in RULES for name in (rule.code, rule.name)]
            raise UsageError(
                f"No rule is called {word!r}.", f"{suggestion(word, known)} A family is a prefix such as PF1."
            )
