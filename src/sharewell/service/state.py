"""The state of a served dataset: a fold over its ledger, and what works on it.

Every event passes `DatasetState.apply` once: those that the ledger holds when it is opened, and those
that are stored later. So a restart, and a recovery from a failed commit, arrive at the same state.
"""

from __future__ import annotations

import logging
import time
import tomllib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

from sharewell.config.check import Diagnostic
from sharewell.config.config import Config
from sharewell.engine.data_vector import DataVector
from sharewell.engine.in_place import InPlaceData
from sharewell.errors import (
    ConfigError,
    LedgerMissing,
    OverBudget,
    RequestError,
    SharewellError,
    SharingError,
)
from sharewell.gc_tuning import gc_paused
from sharewell.mechanisms.base import Mechanism, is_seed
from sharewell.privacy.curator import KERNEL_EVENTS, Curator
from sharewell.privacy.dry_run import DryCurator
from sharewell.privacy.ledger import (
    Answered,
    AnsweredFree,
    Asked,
    Charged,
    Configured,
    CuratorAction,
    Done,
    Ending,
    Event,
    Granted,
    Ledger,
    Left,
    MemoryLedger,
    Recovered,
    Refused,
    RoundClosed,
    SourceChanged,
    Turn,
)
from sharewell.privacy.noise import Noise
from sharewell.query.sql import normalize_sql
from sharewell.schedulers.base import Scheduler
from sharewell.service.ledger import open_ledger
from sharewell.service.submissions import Submission, Submissions
from sharewell.service.tokens import TokenStore
from sharewell.wire.text import pluralize

_log = logging.getLogger(__name__)


class History:
    """What a ledger says of questions, turns and analysts, up to some event."""

    def __init__(self) -> None:
        #: How many events there are.
        self.count = 0
        self.settings: Configured | None = None
        #: How many entries the collective's stream has: questions that ended, joins and departures.
        self.entries = 0
        #: The last state of the scheduler, and what it must be told since: open questions, and changes.
        self.turn: Turn | None = None
        self.pending: dict[int, Asked | Done | Granted | Left] = {}
        #: Questions that the scheduler has chosen, and that are not answered.
        self.due: dict[int, Asked] = {}
        #: The analysts whom some settings named; others were added while the service ran.
        self.named: set[str] = set()
        #: The ids of tokens and their owners, and whether the dataset is paused, as far as stored.
        self.tokens: dict[str, str] = {}
        self.paused = False
        #: The seeds that were measured: of several, those that differ in their plans.
        self.seeds: list[Mapping[str, Any]] = []
        #: Whether events were lost. What the collective did is not known then.
        self.recovered = False
        #: Whether the source has changed since the first measurement, in place.
        self.source_changed = False
        #: The analysts who said that they are done, and have asked nothing since.
        self.done: set[str] = set()
        #: How many questions each analyst has asked, and the bytes stored of those that cost nothing.
        self.asked: Counter[str] = Counter()
        self.free_bytes: Counter[str] = Counter()
        #: Questions that have not ended.
        self.open: dict[int, Asked] = {}

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """The history of a whole ledger."""
        history = cls()
        for number, event in enumerate(events):
            history.apply(number, event)
        return history

    def apply(self, number: int, event: Event) -> None:
        """Take in one event."""
        self.count = number + 1
        match event:
            case Configured(settings):
                self.settings = event
                self.named |= tomllib.loads(settings["config"]).get("analysts", {}).keys()
            case Recovered():
                self.recovered = True
            case SourceChanged():
                self.source_changed = True
            case CuratorAction(_, "issue-token", name, token):
                self.tokens[token] = name
            case CuratorAction(_, "revoke-token", _, token):
                self.tokens.pop(token, None)
            case CuratorAction(_, "pause" | "resume" as action):
                self.paused = action == "pause"
            case Charged(_, {"measure": measured}) if is_seed(measured):
                if not self.seeds or "plans" in measured:
                    self.seeds.append(measured)
            case Granted() if self.settings is not None:
                self.entries += 1
                self.pending[number] = event
            case Left(payer):
                self.entries += 1
                self.pending[number] = event
                self.done.discard(payer)
            case RoundClosed():
                self.entries += 1
            case Done(analyst):
                self.pending[number] = event
                self.done.add(analyst)
            case Asked(_, analyst):
                self.open[number] = self.pending[number] = event
                self.asked[analyst] += 1
                self.done.discard(analyst)
            case Turn(chosen):
                self.turn = event
                self.due |= {each: self.open[each] for each in chosen}
                self.pending = {n: e for n, e in self.open.items() if n not in self.due}
            case Answered(asked) | AnsweredFree(asked) | Refused(asked):
                question = self.open.pop(asked)
                self.due.pop(asked, None)
                self.pending.pop(asked, None)
                self.free_bytes[question.analyst] += _free_bytes(question, event)
                self.entries += not isinstance(event, Refused) or event.code == OverBudget.code


def _free_bytes(asked: Asked, ending: Ending) -> int:
    """What is stored of a question that cost nothing; 0 for one that was paid for."""
    if isinstance(ending, Answered):
        return 0
    length = ending.length if isinstance(ending, AnsweredFree) else len(ending.message)
    return sum(len(text.encode()) for text in asked.question.values()) + length


@dataclass(frozen=True)
class PublicState:
    """The state at one moment, without data: any thread computes quotes and budgets from it."""

    mechanism: Mechanism
    #: How many questions each analyst has asked, the bytes stored of those that cost nothing, and how
    #: many are not answered yet.
    asked: Mapping[str, int]
    free_bytes: Counter[str]
    waiting: Mapping[str, int]
    #: The analysts who are done: they said so, and no question of theirs waits.
    done: frozenset[str]
    #: How many entries the collective's stream has.
    entries: int


Item = TypeVar("Item")


class TurnQueue(Generic[Item]):
    """Items of several analysts, taken from each in turn: a long line of one delays no other's.

    >>> queue = TurnQueue()
    >>> for analyst, item in [("ben", 1), ("ben", 2), ("ben", 3), ("ann", 4)]:
    ...     queue.put(analyst, item)
    >>> [queue.pop() for _ in range(queue.waiting)]
    [1, 4, 2, 3]
    """

    def __init__(self) -> None:
        # The first is next.
        self._lines: dict[str, deque[Item]] = {}
        #: The number of items.
        self.waiting = 0

    def put(self, analyst: str, item: Item) -> None:
        """Add an item at the end of its analyst's line."""
        self._lines.setdefault(analyst, deque()).append(item)
        self.waiting += 1

    def pop(self) -> Item:
        """Take the first item of the analyst whose turn it is; the others come before their next."""
        analyst = next(iter(self._lines))
        line = self._lines.pop(analyst)
        item = line.popleft()
        if line:
            self._lines[analyst] = line
        self.waiting -= 1
        return item

    def remove(self, analyst: str) -> list[Item]:
        """Take all items of an analyst."""
        line = list(self._lines.pop(analyst, ()))
        self.waiting -= len(line)
        return line


class DatasetState:
    """The curator, the mechanism, the scheduler and the history of one dataset."""

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        data: DataVector | InPlaceData,
        noise: Noise,
        submissions: Submissions,
    ) -> None:
        #: With the seed that the ledger holds.
        self.config = config
        self.history = History()
        self.scheduler: Scheduler[Submission] = config.scheduler()
        self._submissions = submissions
        self._is_restored = False
        self._ended: list[Ending] = []
        self._snapshot: Mechanism | None = None
        with gc_paused():
            self.curator = Curator(
                data,
                config.budget,
                {},
                neighbours=config.neighbours,
                noise=noise,
                ledger=ledger,
                observer=self.apply,
            )
            before = self.history.settings
            if before is not None:
                require_same_settings(before, config)
            decided = config.decided().make.signed_rows if before is None else before.signed_rows
            settings = Configured({"config": config.text}, decided)
            self.curator.admit(config.shares)
            if self.history.settings != settings:
                self.curator.record([settings])
            self._is_restored = True
            make = config.make.with_seed(self.history.seeds, config.domain).with_signed_rows(decided)
            self.config = replace(config, make=make)
            self._report_removed()
            self.mechanism: Mechanism = make(self.curator)
        submissions.restore(self.history.open)
        #: Questions that had their turn and are not answered yet, to be answered first.
        self.due = deque([self._submissions.numbered(number) for number in self.history.due])
        #: Large questions that wait while smaller ones are answered, where no scheduler orders them.
        self.large: TurnQueue[Submission] = TurnQueue()
        self.refuse_withdrawn(self._restore_scheduler())

    def _report_removed(self) -> None:
        """Log which analysts are in the file no more and still hold a share."""
        total = self.config.budget.total
        for name in self.curator.payers:
            if name in self.history.named and name not in self.config.shares:
                part = self.curator.share(name) / total
                _log.warning(
                    "%s is no longer in %s and still holds %s of the budget. To remove them for good, "
                    "run `sharewell analysts remove %s`.",
                    *(name, self.config.path, part, name),
                )

    def apply(self, number: int, event: Event) -> None:
        """Take in one event, read or stored."""
        self.history.apply(number, event)
        if not self._is_restored:
            return
        if isinstance(event, Asked):
            self._submissions.store(number, event)
        elif isinstance(event, Ending):
            self._ended.append(event)
        elif isinstance(event, KERNEL_EVENTS):
            self._snapshot = None

    def settle(self) -> None:
        """Give the answers stored since the last time to those who wait for them."""
        ended, self._ended = self._ended, []
        for event in ended:
            self._submissions.end(event)

    def public(self) -> PublicState:
        """The public state as of now; the mechanism is copied only if it may have changed."""
        if self._snapshot is None:
            self._snapshot = self.mechanism.snapshot()
        waiting = Counter(asked.analyst for asked in self.history.open.values())
        asked, free_bytes = self.history.asked.copy(), self.history.free_bytes.copy()
        done = frozenset(self.history.done - waiting.keys())
        return PublicState(self._snapshot, asked, free_bytes, waiting, done, self.history.entries)

    def record_access(self, store: TokenStore, curators: Mapping[str, str]) -> None:
        """Store what has changed in the access file, which commands change while the service runs.

        `curators` says who is changing the token of a name, or for "" whether the dataset is paused.
        """
        access, known = store.read(), self.history.tokens
        now = {token_id: record.owner.name for token_id, record in access.records.items()}
        changes = [("revoke-token", known[each], each) for each in known if each not in now]
        changes += [("issue-token", now[each], each) for each in now if each not in known]
        if access.paused != self.history.paused:
            changes.append(("pause" if access.paused else "resume", "", ""))
        events = [
            CuratorAction(curators.get(name, ""), action, name, token) for action, name, token in changes
        ]
        if events:
            self.curator.record(events)

    def note_done(self, analyst: str) -> None:
        """Take in that an analyst has no more questions for now."""
        self.mechanism.require(analyst)
        # Repeated, it says nothing new, and takes no room in the ledger.
        if analyst not in self.history.done:
            self.curator.record([Done(analyst)])
        self.scheduler.done(analyst)

    def join(self, analyst: str, share: Fraction, by: str) -> None:
        """Admit a new analyst; here and below, `by` names the curator who does it."""
        # The scheduler first: what it refuses must not be in the ledger, which could not be opened.
        self.scheduler.join(analyst)
        try:
            self.mechanism.join(analyst, share)
        except BaseException:
            self.scheduler.leave(analyst)
            raise
        self.curator.record([CuratorAction(by, "add-analyst", analyst)])

    def leave(self, analyst: str, *, donate: bool, by: str) -> None:
        """Let an analyst leave, and refuse their questions that wait."""
        self.mechanism.leave(analyst, donate=donate)
        due = [submission for submission in self.due if submission.analyst == analyst]
        self.due = deque([submission for submission in self.due if submission.analyst != analyst])
        queued = [entry.item for entry in self.scheduler.leave(analyst)]
        self.refuse_withdrawn(due + self.large.remove(analyst) + queued)
        self.curator.record([CuratorAction(by, "remove-analyst", analyst)])

    def close_round(self, by: str) -> tuple[tuple[str, ...], Fraction]:
        """Spend what those who are done have left on the seed: who they are, and what it cost."""
        declared = self.public().done
        done = tuple([analyst for analyst in self.curator.payers if analyst in declared])
        if not done:
            raise SharingError(
                "No analyst is done.", hint="Analysts say so with `sharewell done` or session.done()."
            )
        request = self.mechanism.closing_request(done)
        if request is None:
            raise SharingError(
                f"The analysts who are done ({', '.join(done)}) have too little left to measure with.",
                hint="Nothing was spent.",
            )
        self.mechanism.close_round(done)
        self.curator.record([CuratorAction(by, "close-round")])
        return done, request.cost

    def refuse_withdrawn(self, withdrawn: list[Submission]) -> None:
        """Refuse questions that were queued when their analyst left."""
        events = [
            submission.fail(
                RequestError(f"{submission.analyst} has left.", hint="Queued questions are withdrawn.")
            )[0]
            for submission in withdrawn
        ]
        if events:
            self.curator.record(events)

    def _restore_scheduler(self) -> list[Submission]:
        """Bring the scheduler to where it was; returns the questions of analysts who have left."""
        scheduler, turn = self.scheduler, self.history.turn
        withdrawn: list[Submission] = []
        if turn and turn.scheduler.get("scheduler") == scheduler.name:
            scheduler.restore(turn.scheduler, time.monotonic())
        elif turn:
            # The settings name another scheduler by now: it begins with the current analysts.
            for analyst in self.mechanism.analysts:
                if analyst not in scheduler.analysts:
                    scheduler.join(analyst)
            for analyst in scheduler.analysts:
                if analyst not in self.mechanism.analysts:
                    scheduler.leave(analyst)
        for number, event in list(self.history.pending.items()):
            match event:
                case Asked(_, analyst):
                    submission = self._submissions.numbered(number)
                    if analyst in scheduler.analysts:
                        scheduler.submit(analyst, submission)
                    else:
                        withdrawn.append(submission)
                case Done(analyst) if analyst in scheduler.analysts:
                    scheduler.done(analyst)
                case Granted(payer) if payer not in scheduler.analysts:
                    scheduler.join(payer)
                case Left(payer) if payer in scheduler.analysts:
                    withdrawn += [entry.item for entry in scheduler.leave(payer)]
        return withdrawn


def require_same_settings(before: Configured, config: Config) -> None:
    """Refuse settings that would change the meaning of what was promised and stored.

    Another price would break the sharing guarantees, questions are stored with the name of their table,
    and the budget protects what the privacy unit names. All other settings may change between starts.
    """
    then, now = (tomllib.loads(text) for text in (before.settings["config"], config.text))
    name = [tables["dataset"].get("name", "people") for tables in (then, now)]
    if name[0] != name[1]:
        raise _changed("dataset.name", name[0], name[1], "Restore it: questions are stored under it.")
    unit = [tables["dataset"].get("privacy_unit") for tables in (then, now)]
    if unit[0] != unit[1]:
        hint = "Restore it: the budget was spent to protect what it names."
        raise _changed("dataset.privacy_unit", unit[0], unit[1], hint)
    for setting, what in (("view", _view_of), ("tables", _units_of)):
        if what(then) != what(now):
            hint = "Restore it: the budget was spent on the rows of this view."
            raise _changed(
                f"dataset.{setting}" if setting == "view" else setting, what(then), what(now), hint
            )
    old, new = then.get("mechanism", {}), now.get("mechanism", {})
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            hint = "Restore it: the ledger has made promises under it."
            raise _changed(f"mechanism.{key}", old.get(key), new.get(key), hint)


def _view_of(tables: Mapping[str, Any]) -> str | None:
    """The text of a view, without its white space."""
    view = tables["dataset"].get("view")
    return None if view is None else normalize_sql(view)


def _units_of(tables: Mapping[str, Any]) -> dict[str, str] | None:
    """The unit of each table of a view; files may move."""
    return {name: each.get("unit", "public") for name, each in tables.get("tables", {}).items()} or None


def _changed(setting: str, then: object, now: object, hint: str) -> ConfigError:
    was, becomes = ("not set" if value is None else repr(value) for value in (then, now))
    return ConfigError(
        f"{setting} was {was} when the ledger was begun, and is {becomes} now.", hint=hint
    )


def check_ledger(config: Config) -> Iterator[Diagnostic]:
    """Report whether a service could continue with the existing ledger, if there is one."""
    try:
        with open_ledger(config.service.ledger, name=config.name, read_only=True) as ledger:
            copy = MemoryLedger()
            copy.append_many(list(ledger.events()))
        history = History.of(copy.events())
        if history.settings is not None:
            require_same_settings(history.settings, config)
        empty = config.collective.empty
        curator = DryCurator(empty, config.budget, {}, neighbours=config.neighbours, ledger=copy)
        curator.admit(config.shares)
    except LedgerMissing:
        return
    except SharewellError as error:
        yield Diagnostic.from_error(error)
        return
    if history.settings is None:
        return  # Begun, and never served.
    asked = sum(isinstance(event, Asked) for event in copy.events())
    left = curator.unallocated / config.budget.total
    yield Diagnostic(
        "note",
        f"The service continues its ledger: {pluralize(asked, 'question')} "
        f"{'was' if asked == 1 else 'were'} asked, and {left} of the budget is unallocated.",
    )
