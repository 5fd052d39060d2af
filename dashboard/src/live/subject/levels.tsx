/** Levels of a subject's buckets. */

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

/** The bucket of the panel's rule. */
export function TheBucket({ rule, state, missing }: TheBucketProps): JSX.Element {
  return (
    <section class="the-bucket" aria-label="Bucket">
      <RuleName rule={rule} />
      {missing.length > 0 && <Notice kind="info">Enter {visible(missing.join(" and "))} to see the bucket.</Notice>}
      {state?.problem !== undefined && <Notice kind="error">{state.problem.detail}</Notice>}
      {missing.length === 0 && state?.bucket !== undefined && <BigLevel bucket={state.bucket} />}
    </section>
  );
}

function BigLevel({ bucket }: { readonly bucket: Bucket }): JSX.Element {
  const { limit, remaining, reset_after_ms, override } = bucket;
  // The level does not matter while an override turns the bucket off.
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
  if (override === "blocked")
    return <p class="is-denied">✗ Blocked: every request is denied; tokens are not counted.</p>;
  if (override === "unlimited")
    return <p class="is-allowed">✓ Unlimited: this rule denies nothing; tokens are not counted.</p>;
  if (override === "quota") return <p class="muted small">The quota is that of an override.</p>;
  return null;
}

interface OtherBucketsProps {
  readonly others: readonly BucketState[];
  /** Number of other rules, including those whose buckets are not loaded. */
  readonly total: number;
  /** Number of rules searched, if there are more. */
  readonly rulesSeen: number | undefined;
  readonly subject: string;
}

/** Buckets of other rules with the same subject attribute. */
export function OtherBuckets({ others, total, rulesSeen, subject }: OtherBucketsProps): JSX.Element | null {
  if (others.length === 0 && rulesSeen === undefined) return null;
  return (
    <section aria-labelledby="others-heading">
      <h3 id="others-heading">Buckets of other rules</h3>
      <ul class="other-buckets">
        {others.map((state) => (
          <OtherBucket key={state.rule.rule_id} state={state} subject={subject} />
        ))}
      </ul>
      {total > others.length && (
        <p class="muted small">
          {total - others.length} more rules apply to this subject; only {BUCKETS_MAX} buckets are shown.
        </p>
      )}
      {rulesSeen !== undefined && (
        <p class="muted small">Only the first {formatCount(rulesSeen)} rules were searched; others may apply, too.</p>
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
      {missing.length > 0 && (
        <div class="small muted">also by {visible(missing.join(", "))}: open it to enter a value</div>
      )}
      <a class="button" href={href} aria-label={`Open the bucket of rule ${rule.rule_id}`}>
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

/** Number, pattern, quota and conditions of a rule. */
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
        {!rule.is_active && <span class="badge warning">inactive</span>}
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
