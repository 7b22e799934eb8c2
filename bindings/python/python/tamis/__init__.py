"""Approximate-membership filters, which tell whether a key is in a set.

"No" is certain; "yes" is wrong with a small probability that you choose.

>>> import tamis
>>> seen = tamis.Filter(capacity=1_000_000, fpr=0.01)
>>> seen.update(["alice", "bob"])
>>> "alice" in seen
True
>>> seen.contains_many(["bob", "carol"])
[True, False]

A key is text, bytes, a whole number, an IP address, a path, or a tuple of two to four of these, and
means what it means in Rust, in the program ``tamis`` and in files: 42 is one key whether it is an
``int``, a ``numpy.int32`` or Rust's ``42u8``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from tamis import _tamis
from tamis._tamis import Filter, Iblt, __version__
from tamis.errors import (
    BuildError,
    DecodeError,
    FullError,
    MergeError,
    TamisError,
    UnsupportedError,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import BinaryIO

    from typing_extensions import Self

__all__ = [
    "Advice",
    "BuildError",
    "Choice",
    "Counter",
    "DecodeError",
    "Filter",
    "FullError",
    "Iblt",
    "Kind",
    "Map",
    "MergeError",
    "TamisError",
    "UnsupportedError",
    "Window",
    "__version__",
    "advise",
    "build",
    "kinds",
    "load",
    "open",
]


_F = TypeVar("_F", bound=Filter)


class Counter(Filter):
    """Counts how often each key came, as far as its kind can tell: never too low.

    >>> import tamis
    >>> visits = tamis.Counter(capacity=1000)
    >>> visits.update(["alice", "bob", "alice"])
    >>> visits["alice"], visits["bob"], visits["carol"]
    (2, 1, 0)

    Counts end at ``count_limit``. The kind ``counting`` lets keys leave again. Options are those
    of :class:`Filter`.
    """

    __slots__ = ()
    _needs = "count"
    # Keys are not kept. Without this, Python would ask for the count of 0, of 1, and so on.
    __iter__ = None
    __reversed__ = None

    def __new__(
        cls,
        capacity: int | None = None,
        fpr: float = 0.01,
        keys: Iterable[Any] | None = None,
        *,
        kind: str = "counting_minimal",
        **options: Any,
    ) -> Self:
        """Make a counter for so many distinct keys."""
        made = super().__new__(cls, kind, capacity, fpr, keys, **options)
        return _checked(made, cls._needs)

    def __getitem__(self, key: object) -> int:
        """How often the key came."""
        return self.count(key)


class Window(Filter):
    """Remembers the last keys: the last ``capacity`` insertions, or those of the last seconds.

    >>> import tamis
    >>> lately = tamis.Window(1000, seconds=60)
    >>> lately.add("alice")
    >>> lately.advance(100.0)
    >>> lately.advance(130.0)
    >>> "alice" in lately
    True
    >>> lately.advance(230.0)
    >>> "alice" in lately
    False

    Options are those of :class:`Filter`, and ``seconds`` for a window of time.
    """

    __slots__ = ()
    _needs = "window"

    def __new__(
        cls,
        capacity: int | None = None,
        fpr: float = 0.01,
        keys: Iterable[Any] | None = None,
        *,
        kind: str = "sliding",
        **options: Any,
    ) -> Self:
        """Make a window of so many insertions, or of ``seconds=`` with room for so many."""
        made = super().__new__(cls, kind, capacity, fpr, keys, **options)
        return _checked(made, cls._needs)

    def touch(self, key: object) -> bool:
        """Whether the key is in the window; from now on it is, with a whole window before it."""
        return self._touch(key)

    def advance(self, seconds: float) -> None:
        """Tell the time, in seconds since a start of your choice.

        The first reading is the origin: what the window holds by then came at that moment. An
        earlier one than the last is ignored. A window of insertions has no clock, and says so.
        """
        if self.seconds is None:
            message = "this window counts insertions; make one of time by `seconds=`"
            raise UnsupportedError(message)
        self._advance(seconds)

    def make_room(self) -> None:
        """Forget the oldest part of a window of time early, where it is full."""
        self._make_room()

    @property
    def seconds(self) -> float | None:
        """The length of a window of time; ``None`` where insertions are counted."""
        return self._clock()[0]

    @property
    def now(self) -> float | None:
        """The time that the window was last told, also after a load; ``None`` before that."""
        return self._clock()[1]

    @property
    def covered(self) -> float | None:
        """How far back from the clock answers reach, in seconds."""
        return self._clock()[2]


class Map(Filter):
    """A fixed map from keys to whole numbers below 2**64 that stores no keys.

    >>> import tamis
    >>> ports = tamis.Map({"http": 80, "https": 443})
    >>> ports["https"]
    443
    >>> ports.get("gopher", "none")
    'none'

    A key that was not given has some value with the probability ``fpr``. The values of the kind
    ``perfect`` can be changed: ``ports["http"] = 8080``. Options are those of :class:`Filter`.
    """

    __slots__ = ()
    _needs = "map"
    # Keys are not kept. Without this, Python would ask for the value of 0, of 1, and so on.
    __iter__ = None
    __reversed__ = None

    def __new__(
        cls,
        pairs: Mapping[Any, int] | Iterable[tuple[Any, int]],
        fpr: float = 0.01,
        *,
        kind: str = "bloomier",
        **options: Any,
    ) -> Self:
        """Make the map of a mapping, or of pairs of key and value."""
        listed: Iterable[Any] = getattr(pairs, "items", lambda: pairs)()
        keys, values = [], []
        for pair in listed:
            key, value = pair
            keys.append(key)
            values.append(value)
        return cls._from_pairs(keys, values, kind, fpr, **options)

    @classmethod
    def from_columns(
        cls, keys: Any, values: Any, fpr: float = 0.01, *, kind: str = "bloomier", **options: Any
    ) -> Self:
        """Make the map of keys and their values, each a list, an array or a column."""
        return cls._from_pairs(keys, values, kind, fpr, **options)

    def __getitem__(self, key: object) -> int:
        """Look up the value of a key; ``KeyError`` where the key is certainly not in the map."""
        value = self._get(key)
        if value is None:
            raise KeyError(key)
        return value

    @overload
    def get(self, key: object) -> int | None: ...
    @overload
    def get(self, key: object, default: int) -> int: ...
    @overload
    def get(self, key: object, default: object) -> object: ...
    def get(self, key: object, default: object = None) -> object:
        """Look up the value of a key, or take the default."""
        value = self._get(key)
        return default if value is None else value

    def get_many(self, keys: Any) -> Any:
        """Look up many keys. Answers come as the keys did, missing ones as null."""
        return self._get_many(keys)

    def __setitem__(self, key: object, value: int) -> None:
        """Change the value of a member, in a map of the kind ``perfect``."""
        if not self._set(key, value):
            if key in self:
                message = f"{value} has more bits than the values that the map was built with"
                raise ValueError(message)
            raise KeyError(key)


def _checked(made: _F, capability: str) -> _F:
    """Return the filter, if its kind has the capability that its class is for."""
    if capability not in made.can:
        able = ", ".join(f"`{kind.name}`" for kind in kinds() if capability in kind.can)
        message = f"a `{made.kind}` cannot {capability}; kinds that can: {able}"
        raise UnsupportedError(message)
    return made


def _class_for(made: Filter) -> type[Filter]:
    """Choose the class whose methods suit a filter that was opened."""
    if "window" in made.can:
        return Window
    if "map" in made.can:
        return Map
    return Filter


def build(
    keys: Any,
    kind: str = "auto",
    capacity: int | None = None,
    fpr: float = 0.01,
    **options: Any,
) -> Filter:
    """Build the filter of a set of keys: the same file as the program's ``tamis build`` makes.

    Options are those of :class:`Filter`.

    >>> import tamis
    >>> words = tamis.build(["tamis", "sieve", "strainer"], fpr=0.001)
    >>> words.kind, len(words)
    ('ribbon_bumped', 3)
    """
    return Filter.build(keys, kind, capacity, fpr, **options)


def open(  # noqa: A001
    path: str | os.PathLike[str] | BinaryIO,
    *,
    mmap: bool = False,
    verify: bool = True,
    secret: str | bytes | None = None,
    key: Callable[[Any], Any] | None = None,
) -> Filter:
    """Open a filter's file; see :meth:`Filter.open`. Of a window or a map it makes that class."""
    made = Filter.open(path, mmap=mmap, verify=verify, secret=secret, key=key)
    return made._as(_class_for(made))  # noqa: SLF001


def load(
    data: Any,
    *,
    verify: bool = True,
    secret: str | bytes | None = None,
    key: Callable[[Any], Any] | None = None,
) -> Filter:
    """Open a filter from the bytes of its file; see :meth:`Filter.load`."""
    made = Filter.load(data, verify=verify, secret=secret, key=key)
    return made._as(_class_for(made))  # noqa: SLF001


@dataclass(frozen=True)
class Kind:
    """What is known of a kind of filter."""

    #: The name in configurations, in the program and in files.
    name: str
    #: The number in files.
    id: int
    #: What it is good for, in one line.
    about: str
    #: Kinds of one family share an idea.
    family: str
    #: Whether it is one to choose today, and not one of the literature.
    core: bool
    #: What its filters can do beside lookups.
    can: frozenset[str]
    #: How many copies of a key are told apart; 0 where it does not count.
    copies: int
    #: Its parameters, each with what it changes.
    params: dict[str, str]


def kinds() -> list[Kind]:
    """All kinds of filters.

    >>> import tamis
    >>> [kind.name for kind in tamis.kinds() if kind.core and "remove" in kind.can][:2]
    ['tinyset_removable', 'cuckoo']
    """
    return [Kind(**{**kind, "can": frozenset(kind["can"])}) for kind in _tamis._kinds()]  # noqa: SLF001


@dataclass(frozen=True)
class Choice:
    """A kind that can do all that is needed."""

    kind: str
    #: What to build it with, as the program's ``--kind`` takes it.
    config: str
    nbytes: float
    bits_per_key: float
    #: The rate to expect with all keys in.
    fpr: float
    why: str


@dataclass(frozen=True)
class Advice:
    """The kinds for a need, the best first."""

    choices: list[Choice]
    #: The others, each with what it lacks.
    refused: dict[str, str]
    #: Why a filter may be the wrong tool, or the wish beyond reach.
    warnings: list[str]


def advise(
    keys: int,
    fpr: float = 0.01,
    *,
    fixed: bool = False,
    remove: bool = False,
    copies: int = 0,
    merge: bool = False,
    halve: bool = False,
    map: bool = False,  # noqa: A002
    grow: bool = False,
    window: bool = False,
    most_bytes: int | None = None,
    hit_rate: float | None = None,
    miss_cost: float = 1.0,
    key_bytes: float | None = None,
    prefer: Literal["balance", "space", "speed"] = "balance",
    all: bool = False,  # noqa: A002
) -> Advice:
    """Rank the kinds for what you need.

    >>> import tamis
    >>> tamis.advise(1_000_000, 0.001, remove=True).choices[0].kind
    'tinyset_removable'
    """
    wishes = {
        "fixed": fixed,
        "remove": remove,
        "copies": copies,
        "merge": merge,
        "halve": halve,
        "map": map,
        "grow": grow,
        "window": window,
        "most_bytes": most_bytes,
        "hit_rate": hit_rate,
        "miss_cost": miss_cost,
        "key_bytes": key_bytes,
        "prefer": prefer,
        "all": all,
    }
    told = _tamis._advise(keys, fpr, wishes)  # noqa: SLF001
    return Advice(
        [Choice(**choice) for choice in told["choices"]],
        dict(told["refused"]),
        list(told["warnings"]),
    )
