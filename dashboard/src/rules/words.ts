/** Texts that describe rules. */

import type { ModeName, Rule } from "../api/types.ts";
import { formatCount, formatWait } from "../format.ts";
import { placeholders } from "../ui/pattern.ts";
import { formOf, type Quota, quotaOfForm, type RuleForm } from "./form.ts";
import { endpointOf, groupWords, joinWords } from "./pattern.ts";
import { perWords, timeWords } from "./time.ts";

/** Part of a sentence; `isKey` marks text chosen by users. */
export interface Part {
  readonly text: string;
  readonly isKey: boolean;
}

const word = (text: string): Part => ({ text, isKey: false });
const key = (text: string): Part => ({ text, isKey: true });

/** The sentence as plain text. */
export function plain(parts: readonly Part[]): string {
  return parts.map((part) => part.text).join("");
}

/** Columns that decide which requests a rule is for. */
type Matching = Pick<Rule, "key_pattern" | "conditions"> & Partial<Pick<Rule, "path">>;

/** The conditions: `endpoint is /login and method is not GET`. Empty for all requests. */
export function matchParts(rule: Matching): Part[] {
  const endpoint = endpointOf(rule.key_pattern);
  const conditions: [string, string][] = Object.entries(rule.conditions);
  if (endpoint !== undefined) conditions.unshift(["endpoint", endpoint]);
  return conditions.flatMap(([attribute, text], index) => [
    ...(index === 0 ? [] : [word(" and ")]),
    word(attribute === "endpoint" && rule.path === "folded" ? "folded endpoint " : `${attribute} `),
    ...conditionParts(text),
  ]);
}

/** Grouping and conditions: `Each IP address, where endpoint is /login`. */
export function summaryParts(rule: Matching): Part[] {
  const match = matchParts(rule);
  const counted = word(sentenceCase(groupWords(rule.key_pattern)));
  return match.length === 0 ? [counted] : [counted, word(", where "), ...match];
}

/** A condition: `is /api/** but not /api/login or /api/me`. */
function conditionParts(text: string): Part[] {
  const [first = "", ...rest] = text.startsWith("!") ? ["", text.slice(1)] : splitOnce(text, " !");
  const exceptions = rest.flatMap((except) => except.split("|"));
  const parts: Part[] = first === "" ? [word("is not ")] : [word("is "), key(first)];
  if (exceptions.length > 0 && first !== "") parts.push(word(" but not "));
  exceptions.forEach((except, index) => {
    if (index > 0) parts.push(word(index === exceptions.length - 1 ? " or " : ", "));
    parts.push(key(except));
  });
  return parts;
}

function splitOnce(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + mark.length)];
}

/** The quota of a rule: `burst 50, refilling 10 per second`, or `no limit`. */
export function quotaWords(rule: Rule): string {
  if (rule.mode === "unlimited") return "no limit";
  const quota = quotaOfForm(formOf(rule));
  return quota === undefined ? "" : quotaText(rule, quota);
}

/** A quota: `burst 50, refilling 10 per second`. Windows have no capacity. */
export function quotaText(
  { algorithm, refill }: Pick<Rule, "algorithm" | "refill">,
  { tokens, capacity, period }: Omit<Quota, "periodMicros">,
): string {
  const rate = `${count(tokens)} per ${perWords(period)}`;
  switch (algorithm) {
    case "token_bucket":
      return refill === "interval"
        ? `burst ${count(capacity)}, ${count(tokens)} more every ${perWords(period)}`
        : `burst ${count(capacity)}, refilling ${rate}`;
    case "fixed_window":
      return `${rate}, by the clock`;
    case "sliding_window":
      return `${count(tokens)} in any ${perWords(period)}`;
    case "sliding_counter":
      return `about ${count(tokens)} in any ${perWords(period)}`;
    case "leaky_bucket":
      return `${rate}, ${count(capacity)} in the queue`;
  }
}

/** Formats a bigint; those of valid rules are below 2^53. */
function count(number: bigint): string {
  return formatCount(Number(number));
}

/** Treatment of requests beyond the quota. */
export const MODE_WORDS: Record<ModeName, string> = {
  enforce: "denied beyond that",
  shadow: "only recorded beyond that",
  unlimited: "not limited",
};

/** The effect of a form in whole sentences; empty while the quota is incomplete. */
export function meaningOf(form: RuleForm): string {
  const who = sentenceCase(groupWords(form.keyPattern));
  const left = uncountedWords(form);
  if (form.mode === "unlimited") return `${who} may send any number of requests${replacedWords(form)}.${left}`;
  const quota = quotaOfForm(form);
  if (quota === undefined) return "";
  const beyond = form.mode === "shadow" ? " Requests beyond that are allowed and recorded as violations." : "";
  return `${who} ${admits(form, quota)}${beyond}${left}`;
}

function admits(form: RuleForm, quota: Quota): string {
  const { tokens, capacity, period } = quota;
  const per = perWords(period);
  switch (form.algorithm) {
    case "token_bucket": {
      const then =
        form.refill === "interval" ? `${count(tokens)} more at the end of every ${per}` : `${count(tokens)} per ${per}`;
      return `may send ${count(capacity)} at once, then ${then}; an empty bucket is full again after ${formatWait(fullMs(form, quota))}.`;
    }
    case "fixed_window":
      return `may send ${count(tokens)} per ${per} by the clock, and across a window boundary up to ${count(tokens * 2n)} in the same time.`;
    case "sliding_window":
      return `may send ${count(tokens)} in any ${per}, exactly: every request is logged.`;
    case "sliding_counter":
      return `may send about ${count(tokens)} in any ${per}, estimated from two counters.`;
    case "leaky_bucket":
      return `may send ${count(tokens)} per ${per} at an even rate; up to ${count(capacity)} wait in the queue${queueWords(form)}.`;
  }
}

function queueWords(form: RuleForm): string {
  return form.maxWait.trim() === "" ? "" : `, at most ${timeWords({ amount: form.maxWait, unit: form.maxWaitUnit })}`;
}

/** Milliseconds from empty to full, rounded up. */
export function fullMs(form: Pick<RuleForm, "refill">, { tokens, capacity, periodMicros }: Quota): number {
  const micros =
    form.refill === "interval"
      ? ceilDivide(capacity, tokens) * periodMicros
      : ceilDivide(capacity * periodMicros, tokens);
  return Number(ceilDivide(micros, 1000n));
}

function ceilDivide(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

function replacedWords(form: RuleForm): string {
  const names = form.replaces.split("\n").filter((name) => name !== "");
  return names.length === 0 ? "" : `, and rules named ${joinWords(names)} do not apply`;
}

/** A reminder that requests without the attributes are not counted. */
function uncountedWords(form: RuleForm): string {
  const names = placeholders(form.keyPattern);
  return names.length === 0 ? "" : ` Requests without ${joinWords(names, "or")} are not counted.`;
}

function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
