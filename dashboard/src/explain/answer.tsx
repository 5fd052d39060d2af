/** The explanation: verdict, rules that apply, and rules that do not. */

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Explained, Explanation, Overridden } from "../api/types.ts";
import { formatCount, formatWait } from "../format.ts";
import { hrefOf } from "../route.ts";
import { perWords, timeOf } from "../rules/time.ts";
import { Key } from "../ui/key.tsx";
import { Notice } from "../ui/notice.tsx";
import { visible } from "../ui/visible.ts";
import { holdingOf, outcomeOf } from "./verdict.ts";

/** The most rules that do not apply before their list is folded. */
const UNFOLDED_MAX = 12;
/** Interval of the countdowns. */
const TICK_MS = 200;

interface AnswerProps {
  readonly explanation: Explanation;
  /** When it arrived, by `performance.now()`. */
  readonly at: number;
  /** True if the form is empty. */
  readonly isBlank: boolean;
}

export function Answer({ explanation, at, isBlank }: AnswerProps): JSX.Element {
  const applied = explanation.rules.filter((rule) => rule.applies);
  const isWaiting = applied.some((rule) => (rule.reset_after_ms ?? 0) > 0);
  const passed = usePassed(at, isWaiting);
  // There may be a thousand rules: they are not rendered again for every tick of a countdown.
  const others = useMemo(() => <Others explanation={explanation} />, [explanation]);
  return (
    <>
      {isBlank ? <Blank isAllowed={explanation.allowed} /> : <Headline explanation={explanation} passed={passed} />}
      {explanation.degraded === true && (
        <Notice kind="warning">The store does not answer: some rules are decided by their on_error.</Notice>
      )}
      {explanation.hints.map((hint) => (
        <Notice key={hint} kind="warning">
          {visible(hint)}
        </Notice>
      ))}
      {applied.length > 0 && (
        <section class="panel" aria-labelledby="explain-applied">
          <h2 id="explain-applied">{applied.length === 1 ? "1 rule applies" : `${applied.length} rules apply`}</h2>
          <ul class="explain-tiers">
            {applied.map((rule) => (
              <TierRow key={rule.rule_id} rule={rule} cost={explanation.cost} passed={passed} />
            ))}
          </ul>
        </section>
      )}
      {others}
    </>
  );
}

/** Milliseconds since `at`; counts only during a wait. */
function usePassed(at: number, isWaiting: boolean): number {
  const [now, setNow] = useState(at);
  useEffect(() => {
    setNow(performance.now());
    if (!isWaiting) return undefined;
    const timer = setInterval(() => setNow(performance.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [at, isWaiting]);
  return Math.max(0, now - at);
}

/** Shown while the form is empty: a verdict on an empty request would look like a success. */
function Blank({ isAllowed }: { readonly isAllowed: boolean }): JSX.Element {
  return (
    <div class="explain-verdict blank">
      <span class="explain-sign" aria-hidden="true">
        ?
      </span>
      <div>
        <p class="explain-word" role="status">
          Enter a request
        </p>
        <p>A request without attributes would be {isAllowed ? "allowed" : "denied"} now. The rules below show why.</p>
      </div>
    </div>
  );
}

function Headline({
  explanation,
  passed,
}: {
  readonly explanation: Explanation;
  readonly passed: number;
}): JSX.Element {
  const outcome = outcomeOf(explanation);
  const isAllowed = outcome.kind === "allowed";
  return (
    <div class={`explain-verdict ${isAllowed ? "allowed" : "denied"}`}>
      <span class="explain-sign" aria-hidden="true">
        {isAllowed ? "✓" : "✕"}
      </span>
      <div>
        {/* Screen readers announce the verdict when it changes, but not every tick of the countdown below. */}
        <p class="explain-word" role="status">
          {isAllowed ? "Would be allowed" : "Would be denied"}
          {"rule" in outcome && <span class="visually-hidden"> by rule {outcome.rule.rule_id}</span>}
        </p>
        {outcome.kind === "allowed" && (
          <p>{outcome.counted === 0 ? "No rule applies, so nothing is counted." : "No tokens were spent."}</p>
        )}
        {outcome.kind === "unknown" && <p>The store does not answer, and the rules deny in that case (on_error).</p>}
        {"rule" in outcome && (
          <p>
            by <RuleLink rule={outcome.rule} />
            {outcome.kind === "denied" && (
              <>
                ; try again in{" "}
                <strong class="explain-wait">{formatWait(Math.max(0, outcome.retryAfterMs - passed))}</strong>
              </>
            )}
            {outcome.kind === "never" && <>: {whyNever(outcome.rule, explanation.cost)}</>}
          </p>
        )}
      </div>
    </div>
  );
}

/** The reason why waiting does not help. */
function whyNever(rule: Explained, cost: number): string {
  if (rule.override?.kind === "blocked") return "an override blocks the subject";
  return `the cost of ${formatCount(cost)} is above the limit of ${formatCount(rule.limit ?? 0)}`;
}

function RuleLink({ rule }: { readonly rule: Explained }): JSX.Element {
  return (
    <a href={hrefOf("rules", { rule: rule.rule_id })}>
      rule {rule.rule_id}, <Key text={rule.key_pattern} />
    </a>
  );
}

interface TierProps {
  readonly rule: Explained;
  readonly cost: number;
  readonly passed: number;
}

function TierRow({ rule, cost, passed }: TierProps): JSX.Element {
  const isAgainst = rule.would_allow === false;
  const kind = !isAgainst ? "allowed" : rule.mode === "shadow" ? "shadow" : "denied";
  return (
    <li class={`explain-tier ${kind}`}>
      <div class="explain-tier-head">
        <span class={`badge ${kind}`}>{wordOf(rule)}</span>
        <a href={hrefOf("rules", { rule: rule.rule_id })}>
          Rule {rule.rule_id} <Key text={rule.key_pattern} />
        </a>
        {rule.plan !== null && (
          <span class="badge">
            plan <Key text={rule.plan} />
          </span>
        )}
        {rule.mode !== "enforce" && <span class={rule.mode === "shadow" ? "badge shadow" : "badge"}>{rule.mode}</span>}
        {rule.override !== null && <span class="badge warning">override: {overrideOf(rule.override)}</span>}
      </div>
      <Bucket rule={rule} cost={cost} passed={passed} />
    </li>
  );
}

/** The decision of one rule. */
function wordOf(rule: Explained): string {
  if (rule.would_allow !== false) return "✓ would grant";
  return rule.mode === "shadow" ? "◌ would deny (shadow)" : "✕ would deny";
}

function overrideOf(override: Overridden): string {
  if (override.kind !== "quota") return override.kind;
  const quota = `${formatCount(override.tokens ?? 0)} per ${perWords(timeOf(override.period ?? 0))}`;
  return override.burst_capacity === null ? quota : `${quota}, capacity ${formatCount(override.burst_capacity)}`;
}

function Bucket({ rule, cost, passed }: TierProps): JSX.Element {
  const holding = holdingOf(rule, passed);
  return (
    <>
      <div class="explain-bucket">
        <span>
          <span class="muted small">Bucket</span>{" "}
          {rule.bucket_key !== null && (
            <Key
              isClamped
              text={rule.bucket_key}
              href={rule.subject ? hrefOf("live", { rule: rule.rule_id, subject: rule.subject }) : undefined}
            />
          )}
        </span>
        <Figures rule={rule} cost={cost} passed={passed} />
      </div>
      {holding !== undefined && (
        <div class="explain-level" aria-hidden="true">
          <div style={{ width: `${holding.level * 100}%` }} />
        </div>
      )}
    </>
  );
}

function Figures({ rule, cost, passed }: TierProps): JSX.Element {
  if (rule.override?.kind === "blocked") return <p class="small">every request of this subject is denied</p>;
  const holding = holdingOf(rule, passed);
  if (holding === undefined) return <p class="small muted">no limit: nothing is counted</p>;
  const { limit, remaining, fullIn, enoughIn } = holding;
  return (
    <dl class="explain-figures">
      {rule.would_allow === false && (
        <Figure
          name={`enough for cost ${formatCount(cost)}`}
          value={enoughIn === null ? "never" : `in ${formatWait(enoughIn)}`}
        />
      )}
      {fullIn > 0 && <Figure name="full in" value={formatWait(fullIn)} />}
      <Figure name="left" value={`${formatCount(remaining)} of ${formatCount(limit)}`} />
    </dl>
  );
}

function Figure({ name, value }: { readonly name: string; readonly value: string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** The rules that do not apply, with reasons. The list is not rendered while it is folded. */
function Others({ explanation }: { readonly explanation: Explanation }): JSX.Element | null {
  const rules = explanation.rules.filter((rule) => !rule.applies);
  const [isOpen, setIsOpen] = useState(rules.length <= UNFOLDED_MAX);
  const count = rules.length + explanation.more;
  if (count === 0) return null;
  return (
    <section class="panel" aria-labelledby="explain-others">
      <h2 id="explain-others">{count === 1 ? "1 rule does not apply" : `${formatCount(count)} rules do not apply`}</h2>
      <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary>Reasons</summary>
        {isOpen && <Reasons rules={rules} more={explanation.more} />}
      </details>
    </section>
  );
}

function Reasons({ rules, more }: { readonly rules: readonly Explained[]; readonly more: number }): JSX.Element {
  return (
    <>
      <ul class="explain-others">
        {rules.map((rule) => (
          <li key={rule.rule_id}>
            <a href={hrefOf("rules", { rule: rule.rule_id })}>
              Rule {rule.rule_id} <Key text={rule.key_pattern} />
            </a>
            <Reason text={rule.reason} />
          </li>
        ))}
      </ul>
      {more > 0 && <p class="muted small">{formatCount(more)} more are not shown.</p>}
    </>
  );
}

/** Shows the parts between backticks, which are chosen by users, as keys. */
function Reason({ text }: { readonly text: string }): JSX.Element {
  const parts = text.split("`");
  return (
    <span class="explain-reason">{parts.map((part, index) => (index % 2 === 1 ? <Key text={part} /> : part))}</span>
  );
}
