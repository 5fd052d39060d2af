/** How full the buckets of a subject are. */

import type { JSX } from "preact";
import type { Bucket, Rule } from "../../api/types.ts";
import { formatCount, formatWait } from "../../format.ts";
import { hrefOf, useRoute } from "../../route.ts";
import { Key } from "../../ui/key.tsx";
import { Notice } from "../../ui/notice.tsx";
import { visible } from "../../ui/visible.ts";
import { byOf, liveHref } from "../address.ts";
import { Level } from "../level.tsx";
import { BUCKETS_MAX, type BucketState } from "./buckets.ts";
import { quotaText } from "./words.ts";

interface TheBucketProps {
  readonly rule: Rule;
  readonly state: BucketState | undefined;
  readonly missing: readonly string[];
}

/** That of the rule that the panel is about. */
export function TheBucket({ rule, state, missing }: TheBucketProps): JSX.Element {
  return (
    <section class="the-bucket" aria-label="Its bucket">
      <RuleName rule={rule} />
      {missing.length > 0 && (
        <Notice kind="info">Say which {visible(missing.join(" and "))}, and its bucket is shown.</Notice>
      )}
      {state?.problem !== undefined && <Notice kind="error">{state.problem.detail}</Notice>}
      {missing.length === 0 && state?.bucket !== undefined && <BigLevel bucket={state.bucket} />}
    </section>
  );
}

function BigLevel({ bucket }: { readonly bucket: Bucket }): JSX.Element {
  const { limit, remaining, reset_after_ms, override } = bucket;
  // What it holds means nothing while nobody asks it.
  if (isOff(override)) return <OverrideNote override={override} />;
  return (
    <div class="big-level">
      <div class="big-level-figures">
        <span>
          <b class={remaining === 0 ? "is-denied" : ""}>{formatCount(remaining)}</b> of {formatCount(limit)} tokens left
        </span>
        <span class="muted">{reset_after_ms === 0 ? "full" : `full in ${formatWait(reset_after_ms)}`}</span>
      </div>
      <Level share={limit === 0 ? 0 : remaining / limit} isLeft />
      <OverrideNote override={override} />
    </div>
  );
}

function isOff(override: Bucket["override"]): boolean {
  return override === "blocked" || override === "unlimited";
}

function OverrideNote({ override }: { readonly override: Bucket["override"] }): JSX.Element | null {
  if (override === "blocked") return <p class="is-denied">✗ Blocked: every request is denied; tokens do not count.</p>;
  if (override === "unlimited")
    return <p class="is-allowed">✓ Unlimited: this rule denies nothing; tokens do not count.</p>;
  if (override === "quota") return <p class="muted small">By an override, and not by the rule's own quota.</p>;
  return null;
}

interface OtherBucketsProps {
  readonly others: readonly BucketState[];
  /** How many there are, with those that are not looked into. */
  readonly total: number;
  /** If there are more rules than were looked through: how many were. */
  readonly rulesSeen: number | undefined;
  readonly subject: string;
}

/** Those of other rules about the same attribute. */
export function OtherBuckets({ others, total, rulesSeen, subject }: OtherBucketsProps): JSX.Element | null {
  if (others.length === 0 && rulesSeen === undefined) return null;
  return (
    <section aria-labelledby="others-heading">
      <h3 id="others-heading">Under other rules</h3>
      <ul class="other-buckets">
        {others.map((state) => (
          <OtherBucket key={state.rule.rule_id} state={state} subject={subject} />
        ))}
      </ul>
      {total > others.length && (
        <p class="muted small">
          {total - others.length} more rules are about it; {BUCKETS_MAX} buckets are looked into at once.
        </p>
      )}
      {rulesSeen !== undefined && (
        <p class="muted small">
          Only the first {formatCount(rulesSeen)} rules were looked through; others may be about it, too.
        </p>
      )}
    </section>
  );
}

function OtherBucket({ state, subject }: { readonly state: BucketState; readonly subject: string }): JSX.Element {
  const { params } = useRoute();
  const { rule, bucket, problem, missing } = state;
  const href = liveHref(byOf(params), { ruleId: rule.rule_id ?? 0, subject, known: {} });
  return (
    <li class="other-bucket">
      <div class="other-bucket-name">
        <RuleName rule={rule} />
      </div>
      {bucket !== undefined && (
        <div class="other-bucket-level">
          {isOff(bucket.override) ? <OverrideNote override={bucket.override} /> : <SmallLevel bucket={bucket} />}
        </div>
      )}
      {problem !== undefined && <div class="small is-denied">{problem.detail}</div>}
      {missing.length > 0 && <div class="small muted">also by {visible(missing.join(", "))}: open it to say which</div>}
      <a class="button" href={href} aria-label={`Open its bucket under rule ${rule.rule_id}`}>
        Open
      </a>
    </li>
  );
}

function SmallLevel({ bucket }: { readonly bucket: Bucket }): JSX.Element {
  const { limit, remaining, reset_after_ms, override } = bucket;
  return (
    <>
      <Level share={limit === 0 ? 0 : remaining / limit} isLeft />
      <div class="small">
        {formatCount(remaining)} of {formatCount(limit)}
        {reset_after_ms > 0 && `, full in ${formatWait(reset_after_ms)}`}
        {override !== null && <span class="badge">{override}</span>}
      </div>
    </>
  );
}

/** Which rule it is, and what it says. */
export function RuleName({ rule }: { readonly rule: Rule }): JSX.Element {
  const conditions = Object.entries(rule.conditions);
  return (
    <div class="rule-name">
      <div class="row">
        <span>
          rule{" "}
          <a href={hrefOf("rules", { rule: rule.rule_id ?? undefined })}>
            {rule.rule_id} <Key text={rule.key_pattern} />
          </a>
        </span>
        {rule.plan !== null && <span class="badge key">plan {visible(rule.plan)}</span>}
        {rule.mode !== "enforce" && <span class={`badge ${rule.mode}`}>{rule.mode}</span>}
        {!rule.is_active && <span class="badge warning">switched off</span>}
      </div>
      <div class="muted small">
        {rule.mode === "unlimited" ? "no limit" : quotaText(rule)}
        {conditions.map(([name, glob]) => (
          <span key={name}>
            ; <Key text={name} /> <Key text={glob} />
          </span>
        ))}
      </div>
    </div>
  );
}
