"""The service of one dataset: what analysts and curators can do with it."""

from __future__ import annotations

import itertools
import logging
import math
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from sharewell import wire
from sharewell.cancellation import cancelled_by
from sharewell.config.config import Config
from sharewell.engine.data_vector import DataVector
from sharewell.engine.in_place import InPlaceData
from sharewell.errors import (
    LedgerError,
    NotFound,
    OverBudget,
    Paused,
    PrivacyError,
    RequestError,
    SharewellError,
    SharingError,
    StorageFull,
    UnknownPayer,
)
from sharewell.privacy.budget import amount
from sharewell.privacy.ledger import Asked, QuestionLedger
from sharewell.privacy.noise import ExactNoise, Noise
from sharewell.query.sql import STATEMENTS, compile_sql, normalize_sql
from sharewell.query.sql.rewrite import count_people
from sharewell.query.statement import Statement
from sharewell.service import quotes, results, serialization
from sharewell.service.answers import estimate_seconds, require_exact, would_buy
from sharewell.service.certificate_worker import CertificateWorker
from sharewell.service.ledger import DurableLedger, open_ledger
from sharewell.service.lifecycle import open_dataset, require_new_source
from sharewell.service.release_slots import slot_start
from sharewell.service.sessions import SessionStore
from sharewell.service.state import DatasetState
from sharewell.service.submissions import Submission, Submissions, key_reused, overloaded
from sharewell.service.tokens import Principal, TokenStore, check_name, id_of
from sharewell.service.worker import Worker
from sharewell.sharing.certificate import Report

_log = logging.getLogger(__name__)

#: The longest idempotency key.
MAX_KEY_LENGTH = 200
#: The most entries on a page.
MAX_PAGE = 1_000
#: What keys of this process are made from.
_KEYS, _KEY_SECRET = itertools.count(), secrets.token_bytes(32)
#: How often a quote that waits for its turn checks whether it was cancelled, in seconds.
CANCEL_POLL = 0.2
#: Up to this many numbers, and terms that they add up, a question takes little work.
LIGHT, LIGHT_TERMS = 100, 1000


class DatasetService:
    """One dataset: its questions, its analysts, its ledger and its tokens; safe from many threads.

    A question is stored before anything is done for it, a charge before the data is touched, and an
    answer before it is given away. Submitted again with the same key, a question has the same answer.
    Two analysts who ask the same new question at the same moment pay for it once.

    Privacy: everything released went through the curator, and its charge was stored before. All else
    comes from the configuration and from the ledger without its secret events.
    """

    def __init__(
        self,
        config: Config,
        ledger: QuestionLedger,
        tokens: TokenStore | None = None,
        *,
        data: DataVector | InPlaceData | None = None,
        noise: Noise | None = None,
        certificate: bool = True,
        tick: float = 0.05,
        release_every: float = 0.0,
    ) -> None:
        noise = ExactNoise() if noise is None else noise
        if not noise.exact:
            raise PrivacyError(
                "A service needs exact noise.", hint="Seeded noise is for studies on synthetic data."
            )
        self.config = config
        self.name = config.name
        self.ledger = ledger
        self.tokens = TokenStore(config.service.access) if tokens is None else tokens
        self.sessions = SessionStore(self.tokens)
        self._close_ledger: Callable[[], None] = lambda: None
        #: Until when changes are shown, on the monotonic clock; newer ones are in the next slot.
        self.slot_start = partial(slot_start, release_every)
        limits = config.service
        self._compile = partial(compile_sql, domain=config.domain, table=config.name)
        self._compile_new = partial(
            self._compile, most=limits.most_numbers, max_bytes=limits.max_sql_bytes
        )
        self._submissions = Submissions(
            ledger,
            self._compile,
            most_waiting=limits.most_waiting,
            max_seconds_waiting=limits.max_seconds_waiting,
            release_every=release_every,
        )
        #: Held while a quote is computed: one of each analyst at a time.
        self._quoting: defaultdict[str, Lock] = defaultdict(Lock)
        #: The curator who is changing the access of a name, or for "" of all.
        self._acting: dict[str, str] = {}
        data = config.data() if data is None else data
        self._worker = Worker(
            self._submissions,
            lambda: DatasetState(config, ledger, data, noise, self._submissions),
            self._follow,
            tick=tick,
            release_every=release_every,
        )
        self._certificate: CertificateWorker | None = None
        state = self._worker.state
        self._info = serialization.dataset_info(config, state.mechanism)
        if certificate and not state.history.recovered:
            self._certificate = CertificateWorker(
                state.config, ledger, state.history.entries, release_every=release_every
            )
        self._worker.start()

    @classmethod
    def open(
        cls,
        config: Config,
        *,
        wait: float = 0.0,
        temporary: bool = False,
        release_every: float = 0.0,
    ) -> DatasetService:
        """Open ledger, data and tokens as configured; `wait` seconds at most for the last writer to go.

        The dataset must have been begun. With `temporary`, ledger and tokens are made for this time
        only: the budget starts anew, which is sound on made-up rows alone, and refused where the source
        was begun. With `release_every`,
        budgets and quotes change at the boundaries of release slots only: for clients that may learn
        nothing from the clock.
        """
        service = config.service
        with ExitStack() as opened:
            if temporary:
                require_new_source(config)
                folder = Path(opened.enter_context(TemporaryDirectory(prefix="sharewell-")))
                tokens = TokenStore(folder / "access.json")
                ledger = open_ledger(folder / "ledger.sqlite", create=True)
                _log.warning("%s has a temporary ledger: its budget starts anew each time.", config.name)
            else:
                tokens = TokenStore(service.access)
                ledger = open_dataset(config, wait=wait)
            opened.callback(ledger.close)
            dataset = cls(
                config,
                ledger,
                tokens,
                certificate=service.certificate,
                tick=service.tick,
                release_every=release_every,
            )
            dataset._close_ledger = opened.pop_all().close
            return dataset

    def authenticate(self, token: str = "", *, session: str = "") -> Principal | None:
        """The owner of a token or of a browser's session; None also for curators no longer named."""
        found = self.tokens.authenticate(token) if token else self.sessions.owner(session)
        if found and found.role == "curator" and found.name not in self.config.service.curators:
            return None
        return found

    def sign_in(self, *, token: str = "", code: str = "") -> str | None:
        """Begin a session with a token or a sign-in code: its secret; None if it is not accepted."""
        if token:
            token_id = id_of(token) if self.authenticate(token) else None
        else:
            token_id = self.sessions.redeem(code)
        return self.sessions.begin(token_id) if token_id and self.tokens.owner(token_id) else None

    # Analysts

    def dataset(self) -> wire.DatasetInfo:
        """What is public about the dataset."""
        return self._info.model_copy(update={"paused": self.tokens.read().paused})

    def quote(
        self, analyst: str, sql: str, *, cancelled: Callable[[], bool] = lambda: False
    ) -> wire.Quote:
        """What a statement would cost, and its expected standard errors; spends nothing.

        It is computed on what was published in the last release slot, so that no question waits for it.
        It ends early, within a block of many groups too, once `cancelled` says that its client is gone.
        """

        def check() -> None:
            if cancelled():
                raise RequestError("The quote was cancelled.", hint="Ask for it again.")

        statement = self._compile_new(self._count_people(sql))
        mechanism = self._worker.published.get().mechanism
        mechanism.require(analyst)
        estimate_seconds(mechanism, statement, self.config.service, pay=True)
        require_exact(mechanism, statement, analyst)
        turn = self._quoting[analyst]
        while not turn.acquire(timeout=CANCEL_POLL):
            check()
        try:
            with cancelled_by(check):
                return quotes.quote(mechanism, statement, analyst, self.config.population)
        finally:
            turn.release()

    def find_light(self, sql: str, analyst: str) -> Statement | None:
        """The statement of a question that takes little work for sure: compiled before, to few numbers.

        A question that meets a limit is looked up in the ledger, which may take longer.
        """
        limits = self.config.service
        if 4 * len(sql) > limits.max_sql_bytes or not self._submissions.has_room(analyst):
            return None
        if self._worker.published.get().free_bytes[analyst] >= limits.max_free_bytes:
            return None
        statement = STATEMENTS.get(normalize_sql(sql), self.config.domain, self.name)
        if statement is None or statement.size > min(LIGHT, limits.most_numbers):
            return None
        work = sum(map(len, statement.forms)) + sum(statement.computed)
        return statement if work <= LIGHT_TERMS else None

    def submit(
        self,
        analyst: str,
        sql: str,
        *,
        statement: Statement | None = None,
        pay: bool = True,
        key: str | None = None,
        deadline: float = math.inf,
    ) -> Submission:
        """Submit a question; a key that was used before gives the submission of that time.

        `statement` is what `find_light` has found. A question that is not taken up until the deadline,
        on the monotonic clock, is refused before it is stored.
        """
        if self.tokens.read().paused:
            raise paused(self.name)
        if time.monotonic() > deadline:
            raise overloaded()
        text = sql if statement else self._count_people(sql)
        question = {"sql": statement.text if statement else normalize_sql(text)}
        if text != sql:
            question["written"] = normalize_sql(sql)
        if key is not None:
            _check_key(key)
        asked = Asked(_random_key() if key is None else key, analyst, question, pay)
        submission = None if key is None else self._submissions.find(analyst, key)
        if submission is None:
            try:
                statement = statement or self._compile_new(text)
                submission = self._submit_new(asked, statement, deadline, has_new_key=key is None)
            except SharewellError:
                if key is None:
                    raise
                # A question of the past is found by its key, whatever the limits are by now.
                with suppress(LedgerError):
                    submission = self._submissions.recall(analyst, key)
                if submission is None:
                    raise
        if not submission.is_same_as(asked):
            raise key_reused(asked.key)
        return submission

    def _count_people(self, sql: str) -> str:
        """Write COUNT(*) for the number of people, which is the number of rows if each has one."""
        config = self.config
        if config.privacy_unit is None:
            return sql
        return count_people(
            sql, config.privacy_unit, config.max_rows_per_person, config.domain, config.name
        )

    def _submit_new(
        self, asked: Asked, statement: Statement, deadline: float, *, has_new_key: bool
    ) -> Submission:
        """Submit a question whose key is not in memory, if it is within the limits."""
        analyst, pay, limits = asked.analyst, asked.pay, self.config.service
        # As published: the worker may change the mechanism meanwhile, and a refusal must not tell when a
        # question was answered.
        public = self._worker.published.get()
        mechanism, stored = public.mechanism, public.free_bytes[analyst]
        self._worker.state.mechanism.require(analyst)
        seconds = estimate_seconds(mechanism, statement, limits, pay=pay)
        if pay:
            require_exact(mechanism, statement, analyst)
        if stored >= limits.max_free_bytes and not (pay and would_buy(mechanism, statement, analyst)):
            raise StorageFull(
                f"{stored:,} bytes of free questions of {analyst} are stored; the limit is "
                f"{limits.max_free_bytes:,}.",
                hint="Paid questions, and known keys, are still answered. Your curator can raise "
                "service.max_free_bytes.",
            )
        new = Submission(
            asked,
            self._compile,
            statement,
            seconds=seconds,
            deadline=deadline,
            has_new_key=has_new_key,
        )
        return self._worker.submit(new)

    def ask(
        self,
        analyst: str,
        sql: str,
        *,
        pay: bool = True,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Submission:
        """Submit a question, and wait for the answer."""
        return self.submit(analyst, sql, pay=pay, key=key).wait(timeout)

    def submission(self, analyst: str, number: int) -> Submission:
        """One of an analyst's questions, by its number."""
        with suppress(NotFound):
            found = self._submissions.numbered(number)
            if found.analyst == analyst and found.ready_at <= self.slot_start():
                return found
        raise NotFound(
            f"{analyst} has no question {number}.", hint="List the questions to see their numbers."
        )

    def describe(self, submission: Submission) -> wire.Ticket:
        """The state of a question as published; raises the refusal of one that was never stored."""
        number, key, analyst = submission.number, submission.key, submission.analyst
        ticket = partial(wire.Ticket, number=number, key=key, sql=submission.written, pay=submission.pay)
        if submission.done_at > self.slot_start():
            before = [each for each in self._submissions.pending(analyst) if 0 <= each.number < number]
            return ticket(state="waiting", position=len(before))
        outcome = submission.outcome()
        if not isinstance(outcome, Exception):
            answer = results.result(submission.statement, outcome, pay=submission.pay)
            return ticket(state="answered", answer=answer)
        if not submission.stored:
            # Its number will be that of another question.
            raise outcome
        return ticket(state="refused", problem=serialization.problem(outcome))

    def questions(self, analyst: str, after: int = -1, limit: int = 100) -> wire.QuestionPage:
        """A page of an analyst's questions, oldest first, with no more numbers than one may have."""
        _require_page(after, limit)
        tickets: list[wire.Ticket] = []
        numbers, most, published = 0, self.config.service.most_numbers, self.slot_start()
        for submission in self._submissions.of(analyst, after):
            if submission.ready_at > published:
                continue
            outcome = submission.outcome() if submission.done else ()
            numbers += 0 if isinstance(outcome, Exception) else len(outcome)
            if tickets and (len(tickets) == limit or numbers > most):
                return wire.QuestionPage(tickets=tuple(tickets), next=tickets[-1].number)
            tickets.append(self.describe(submission))
        return wire.QuestionPage(tickets=tuple(tickets), next=None)

    def budget(self, analyst: str) -> wire.BudgetStatus:
        """An analyst's share, and what is left of it."""
        return serialization.budget_status(self.config, self._worker.published.get(), analyst)

    def done(self, analyst: str) -> None:
        """Declare that an analyst has no more questions for now, so that no rotation waits for them."""
        if self.tokens.read().paused:
            raise paused(self.name)
        self._worker.run(analyst, lambda state: state.note_done(analyst), changes=False)

    def certificate(
        self, analyst: str | None = None, *, up_to_date: bool = False
    ) -> wire.CertificateReport:
        """The fairness certificate of one analyst, or with None of all; `up_to_date` waits for it."""
        return serialization.certificate_report(self.report(up_to_date=up_to_date), analyst)

    def report(self, *, up_to_date: bool = False) -> Report:
        """The certificate's figures as published; `behind` says how many entries they do not cover.

        With `up_to_date`, it waits until they cover all that has happened.
        """
        if self._worker.state.history.recovered:
            raise RequestError("There is no certificate: the ledger has lost events.")
        if self._worker.state.history.source_changed:
            raise RequestError("There is no certificate: the source has changed.")
        if self._certificate is None:
            raise RequestError(
                "The certificate is disabled.", hint="Set service.certificate = true in sharewell.toml."
            )
        if up_to_date:
            self._certificate.wait()
            self._worker.published.wait()
        return self._certificate.report(self._worker.published.get().entries)

    # Curators

    def events(self, after: int = -1, limit: int = 100) -> wire.EventPage:
        """A page of the ledger, without its secret events."""
        _require_page(after, limit)
        return serialization.event_page(self.ledger, after, limit)  # type: ignore[arg-type]

    def activity(self) -> wire.Activity:
        """The newest questions, each by the source of its answer."""
        return serialization.activity(self.ledger)  # type: ignore[arg-type]

    def settings(self) -> wire.SettingsComparison:
        """How the configuration file differs now from the settings of this start, as in the ledger."""
        return serialization.compare_settings(self.config)

    @property
    def analyst_names(self) -> tuple[str, ...]:
        """The names of the analysts who may ask."""
        return self._worker.state.mechanism.analysts

    def analysts(self) -> wire.AnalystList:
        """The analysts who may ask, and the unallocated budget."""
        public = self._worker.published.latest
        unallocated = public.mechanism.curator.unallocated
        return wire.AnalystList(
            analysts=tuple(
                [
                    serialization.budget_status(self.config, public, analyst)
                    for analyst in public.mechanism.analysts
                ]
            ),
            unallocated=unallocated,
            unallocated_part=unallocated / self.config.budget.total,
        )

    def join(self, newcomer: wire.Newcomer, by: str = "") -> str:
        """Admit a new analyst with a fraction of the whole budget: a token for them.

        Here and below, `by` names the curator who does it, for the ledger.
        """
        name = check_name(newcomer.name)
        similar = {each.casefold(): each for each in self.analyst_names if each != name}
        if name.casefold() in similar:
            raise RequestError(
                f"{name} differs from {similar[name.casefold()]} in case only.",
                hint="Choose another name.",
            )
        if name in self.analyst_names:
            raise SharingError(
                f"{name} is already an analyst.",
                hint="To replace a lost token, issue a new token instead.",
            )
        if name in self.config.service.curators:
            raise RequestError(f"{name} is a curator.", hint="Choose another name for the analyst.")
        part, total = amount(newcomer.share, f"The share of {name}"), self.config.budget.total
        # Checked before it waits for its turn; the kernel refuses what changes in between.
        spare = self._worker.state.curator.unallocated / total
        if part > spare:
            raise OverBudget(
                f"The share of {name} is {part} of the budget, and {spare} is unallocated.",
                hint=f"Grant at most {spare}." if spare else "No more analysts can join.",
            )
        self._worker.run(name, lambda state: state.join(name, part * total, by))
        return self._issue(name, by)

    def leave(self, name: str, donate: bool = False, by: str = "") -> None:
        """Let an analyst leave: queued questions are refused, and their token is revoked."""
        try:
            self._worker.run(name, lambda state: state.leave(name, donate=donate, by=by))
        except UnknownPayer:
            # They may have left before, when the token could not be revoked.
            with suppress(RequestError):
                self.tokens.revoke(name, "analyst")
            raise
        with self._changing_access(name, by):
            self.tokens.revoke(name, "analyst")

    def close_round(self, by: str = "") -> wire.ClosedRound:
        """Spend what the analysts who are done have left on one more measurement of the seed.

        They can still ask, and pay for nothing more. Who is done must not be the reason to close: the
        promise to each analyst holds for a time that would be the same without any other.
        """
        done, cost = self._worker.run("", lambda state: state.close_round(by))
        budget = self.config.budget
        return wire.ClosedRound(
            analysts=done, currency=budget.currency, spent=cost, part=cost / budget.total
        )

    def token(self, name: str, by: str = "") -> str:
        """A new token for an analyst; the former one is revoked."""
        if name not in self.analyst_names:
            raise NotFound(f"Unknown analyst {name!r}.", hint="List the analysts to see their names.")
        return self._issue(name, by)

    def _issue(self, name: str, by: str) -> str:
        with self._changing_access(name, by):
            return self.tokens.issue(name, "analyst")

    @contextmanager
    def _changing_access(self, about: str, by: str) -> Iterator[None]:
        """Store a change of the access file; if that fails now, it is stored with the next question."""
        self._acting[about] = by
        try:
            yield
            with suppress(SharewellError):
                self._worker.run(about, self._follow)
        finally:
            self._acting.pop(about, None)

    def without_token(self) -> list[str]:
        """The names of analysts and curators that have no token yet."""
        known = {(principal.name, principal.role) for principal in self.tokens.holders}
        people = [(name, "analyst") for name in self.analyst_names]
        people += [(name, "curator") for name in self.config.service.curators]
        return [name for name, role in people if (name, role) not in known]

    def probe(self, timeout: float) -> None:
        """Check that the ledger responds; see `DurableLedger.probe`."""
        if isinstance(self.ledger, DurableLedger):
            self.ledger.probe(timeout)

    def waiting(self) -> int:
        """The number of questions that wait, over all analysts."""
        return sum(self._worker.published.get().waiting.values())

    def pause(self, by: str = "") -> None:
        """Accept no more questions until `resume`, also after a restart."""
        with self._changing_access("", by):
            self.tokens.pause()

    def resume(self, by: str = "") -> None:
        """Accept questions again."""
        with self._changing_access("", by):
            self.tokens.resume()

    def close(self) -> None:
        """Finish what was submitted; `open` opened the ledger, and it is closed, too."""
        try:
            self._worker.close()
            if self._certificate:
                self._certificate.close()
        finally:
            self._close_ledger()

    def __enter__(self) -> DatasetService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DatasetService({self.name!r})"

    def _follow(self, state: DatasetState) -> None:
        """Let the certificate follow the ledger, and the ledger the access file."""
        state.record_access(self.tokens, self._acting)
        if self._certificate:
            self._certificate.notify(state.history.entries)


def paused(name: str) -> Paused:
    """The refusal of a question while a dataset is paused."""
    return Paused(f"{name} is paused.", hint="Try again when its curator has resumed it.")


def _random_key() -> str:
    """A new idempotency key; unlike one from the system's generator, it costs no system call."""
    return blake2b(next(_KEYS).to_bytes(8), key=_KEY_SECRET, digest_size=16).hexdigest()


def _check_key(key: str) -> None:
    try:
        if isinstance(key, str) and 0 < len(key) <= MAX_KEY_LENGTH and key.encode():
            return
    except UnicodeEncodeError:
        pass  # half of a surrogate pair
    raise RequestError(f"A key must be a string of 1 to {MAX_KEY_LENGTH} characters of valid Unicode.")


def _require_page(after: int, limit: int) -> None:
    if after < -1 or not 1 <= limit <= MAX_PAGE:
        raise RequestError(
            f"`limit` must be from 1 to {MAX_PAGE:,}, and `after` at least -1.",
            hint="Omit both for the first page, and pass `next` as `after` for each further one.",
        )
