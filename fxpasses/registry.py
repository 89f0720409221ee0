"""Passes and pipelines by name.

    @register_pass("acme.drop-dropout", before=["remove-async-asserts"])
    @dataclass(frozen=True)
    class DropDropout(Pass):
        \"\"\"Remove dropout from a program that is done training.\"\"\"

        targets = (torch.ops.aten.dropout.default,)

        def run(self, editor):
            for node in editor.find(*self.targets):
                editor.replace(node, node.args[0])

A pass is known by its name and never by the object: ordering, pipelines, saved programs and bug
reports all carry names. Installed packages add passes through the entry point `fxpasses.passes`;
they are loaded the first time a name is asked for that is not built in.
"""

from __future__ import annotations

import dataclasses
import inspect
import logging
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from torch._ops import HigherOrderOperator, OpOverload

from fxpasses import options, text
from fxpasses.errors import DuplicatePass, InvalidPass, UnknownPass
from fxpasses.operators import refuse_no_operator

if TYPE_CHECKING:
    from fxpasses.editor import Editor

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Pass:
    """A transformation of one region at a time. Subclasses are frozen dataclasses.

    Class attributes:
        name, aliases, before, after, requires, conflicts: set by `register_pass`.
        targets: the operators without which the pass has nothing to do; regions that call none
            of them are skipped. Empty means that the pass looks at every region.
        counts_rewrites: whether it asks the editor before each rewrite; another pass counts as
            one rewrite for each region that it works on.
    """

    name: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ()
    requires: ClassVar[tuple[str, ...]] = ()
    conflicts: ClassVar[tuple[str, ...]] = ()
    targets: ClassVar[tuple[OpOverload | HigherOrderOperator, ...]] = ()
    counts_rewrites: ClassVar[bool] = False

    def __post_init__(self) -> None:
        options.check(self, self.name or type(self).__name__)

    def run(self, editor: Editor) -> None:
        """Rewrite the editor's region; every change goes through `editor`."""
        raise InvalidPass(f"{type(self).__name__} does not define run(editor)")

    def __str__(self) -> str:
        return self.name + options.print_options(self)

    @classmethod
    def check_definition(cls) -> None:
        """Refuse a class that could not work; called when it is registered.

        Raises:
            InvalidPass: saying what is missing.
        """
        if not isinstance(cls.targets, tuple):
            raise InvalidPass(f"{cls.__name__}.targets is no tuple of operators: {cls.targets!r}")
        for target in cls.targets:
            refuse_no_operator(target)
        if option := options.unsupported(cls):
            raise InvalidPass(
                f"{cls.__name__} cannot have the option {option}; the types of options are bool, "
                "int, float, str, OpOverload, a Literal of words, tuple[TYPE, ...], TYPE | None"
            )

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(cls) or "").split("\n", 1)[0]


P = TypeVar("P", bound=type[Pass])


class Registry:
    """Names of passes to their classes, and names of pipelines to their texts."""

    def __init__(self) -> None:
        self._passes: dict[str, type[Pass]] = {}
        self._aliases: dict[str, str] = {}
        self._plugins_loaded = False
        self.pipelines: dict[str, str] = {}
        self.broken_plugins: dict[str, str] = {}

    def add(self, cls: type[Pass]) -> None:
        """Register `cls` under its name and aliases.

        Raises:
            DuplicatePass: another definition holds one of the names; both places are given.
        """
        for name in (cls.name, *cls.aliases):
            held = self._passes.get(self._aliases.get(name, name))
            if held is not None and _definition(held) != _definition(cls):
                raise DuplicatePass(
                    f"pass {name!r} is defined twice: {_place(held)} and {_place(cls)}"
                )
            if name in self.pipelines:
                raise DuplicatePass(f"{name!r} names a pipeline already ({_place(cls)})")
        self._passes[cls.name] = cls
        self._aliases.update(dict.fromkeys(cls.aliases, cls.name))

    def add_pipeline(self, name: str, steps: str) -> None:
        """Name a pipeline's text, so that other texts can start from it.

        Raises:
            DuplicatePass: a pass or a different pipeline has that name.
        """
        passes = self._passes.keys() | self._aliases.keys()
        if name in passes or self.pipelines.get(name, steps) != steps:
            raise DuplicatePass(f"{name!r} is taken")
        self.pipelines[name] = steps

    def get(self, name: str, wanted_by: str = "") -> type[Pass]:
        """The pass called `name`, by its own name or an alias.

        Raises:
            UnknownPass: with the nearest known name.
        """
        if name not in self._passes and name not in self._aliases:
            self.load_plugins()
        found = self._passes.get(self._aliases.get(name, name))
        if found is None:
            raise UnknownPass(name, [*self._passes, *self.pipelines], wanted_by)
        return found

    def names(self) -> list[str]:
        """The names of every pass, plugins included, sorted."""
        self.load_plugins()
        return sorted(self._passes)

    def load_plugins(self) -> None:
        """Import what installed packages offer; one that fails is logged and left out."""
        if self._plugins_loaded:
            return
        self._plugins_loaded = True
        for entry in entry_points(group="fxpasses.passes"):
            try:
                entry.load()
            except Exception as error:  # noqa: BLE001  # a plugin that raises must not take us down
                self.broken_plugins[entry.name] = f"{type(error).__name__}: {error}"
                logger.warning("plugin %s (%s) is left out: %s", entry.name, entry.value, error)


registry = Registry()


def register_pass(
    name: str,
    *,
    before: Iterable[str] = (),
    after: Iterable[str] = (),
    requires: Iterable[str] = (),
    conflicts: Iterable[str] = (),
    aliases: Iterable[str] = (),
    into: Registry = registry,
) -> Callable[[P], P]:
    """Register a frozen dataclass that is a `Pass` under `name`.

    Args:
        name: lower-case words joined by dashes; plugins prefix theirs, as in "acme.fuse-rope".
        before: passes that must come later, where the pipeline holds them.
        after: passes that must come earlier, where the pipeline holds them.
        requires: passes that the pipeline must hold, earlier.
        conflicts: passes that the pipeline must not hold.
        aliases: former names, still understood.
        into: the registry to enter; the package's own unless a test brings another.

    Raises:
        InvalidPass: not a frozen dataclass derived from `Pass`, or a bad name.
        DuplicatePass: the name is taken.
    """

    def register(cls: P) -> P:
        _check_shape(cls, name)
        constraints = {"before": before, "after": after, "requires": requires}
        for keyword, names in {**constraints, "conflicts": conflicts, "aliases": aliases}.items():
            if isinstance(names, str):
                raise InvalidPass(f"{name!r}: {keyword}={names!r} is a name; give a list of names")
        cls.check_definition()
        cls.name, cls.aliases = name, tuple(aliases)
        cls.before, cls.after = tuple(before), tuple(after)
        cls.requires, cls.conflicts = tuple(requires), tuple(conflicts)
        into.add(cls)
        return cls

    return register


def _check_shape(cls: Any, name: str) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Pass)):
        raise InvalidPass(f"{name!r}: {cls!r} does not derive from fxpasses.Pass")
    if "__dataclass_fields__" not in vars(cls):
        raise InvalidPass(
            f"{name!r}: put @dataclass(frozen=True) on {cls.__name__}, under @register_pass"
        )
    if not text.is_name(name):
        raise InvalidPass(f"{name!r} cannot name a pass: use lower-case words joined by dashes")


def _definition(cls: type[Pass]) -> tuple[str, str]:
    """What stays the same when a notebook cell runs again or a module is reloaded."""
    return cls.__module__, cls.__qualname__


def _place(cls: type[Pass]) -> str:
    try:
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return f"{cls.__module__}.{cls.__qualname__}"
