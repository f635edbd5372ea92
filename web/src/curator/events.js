// The events of a ledger in words.
import { plural, showAmount } from "../format.js";

const bill = (of) =>
  Object.entries(of)
    .map(([payer, cost]) => `${payer} ${showAmount(cost)}`)
    .join(", ");

/** What a curator did, after their name. */
const ACTIONS = {
  begin: () => "began the dataset",
  adopt: () => "adopted the ledger",
  recover: () => "recovered the ledger",
  "issue-token": (subject) => `issued a token to ${subject}`,
  "revoke-token": (subject) => `revoked the token of ${subject}`,
  "add-analyst": (subject) => `added ${subject}`,
  "remove-analyst": (subject) => `removed ${subject}`,
  "close-round": () => "closed a round",
  pause: () => "paused the dataset",
  resume: () => "resumed the dataset",
};

/** Each kind of event that is not secret: its name, and what happened. */
const KINDS = {
  begun: ["begun", () => "The dataset was begun."],
  opened: ["opened", (of) => `Opened with epsilon ${showAmount(of.epsilon.replace(/\/1$/, ""))}; neighbouring tables: ${of.neighbours}.`],
  granted: ["granted", (of) => `${of.payer} was granted a share of ${showAmount(of.share)}.`],
  left: ["left", (of) => `${of.payer} left.`],
  roundclosed: ["round closed", (of) => `A round was closed: what ${of.payers.join(", ")} had left is spent for all.`],
  configured: ["configured", () => "The service started with these settings."],
  charged: ["charged", (of) => `Charged: ${bill(of.bill)}.`],
  released: ["released", (of) => `Released ${plural(of.values.length + of.rest, "number")} for event ${of.charge}.`],
  exceeded: ["exceeded", (of) => `A test of the sparse vector of event ${of.charge} was positive.`],
  asked: ["asked", (of) => `${of.analyst} asked${of.pay ? "" : " for free"}: ${of.question.sql}`],
  answered: ["answered", (of) => `Question ${of.asked} was answered (${plural(of.answers.length, "number")}).`],
  answeredfree: ["answered free", (of) => `Question ${of.asked} was answered for free (${plural(of.size, "number")}).`],
  refused: ["refused", (of) => `Question ${of.asked} was refused: ${of.message}`],
  turn: ["turn", (of) => `Turn of ${plural(of.asked.length, "question")}.`],
  done: ["done", (of) => `${of.analyst} is done for now.`],
  curatoraction: ["curator", (of) => `${of.curator || "The command line"} ${ACTIONS[of.action]?.(of.subject) ?? of.action}.`],
  recovered: ["recovered", (of) => `Recovered: ${bill(of.bill)} was booked as spent.`],
  sourcechanged: ["source changed", () => "The source has changed: answers from here on mix several states of it."],
};

export const kindName = (kind) => KINDS[kind]?.[0] ?? kind;

/** What happened, in words. */
export const summary = ({ kind, content }) => KINDS[kind]?.[1](content) ?? kind;
