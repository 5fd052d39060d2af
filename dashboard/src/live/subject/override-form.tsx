/** Form of an override: a quota, no limit, or a block. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../../api/client.ts";
import { serviceAheadMs } from "../../api/clock.ts";
import type { Override, OverrideKind, Rule, SetOverride } from "../../api/types.ts";
import { formatTime } from "../../format.ts";
import { Field } from "../../ui/field.tsx";
import { asProblem } from "../../ui/load.ts";
import { Notice } from "../../ui/notice.tsx";
import { visible } from "../../ui/visible.ts";
import { useFocus } from "./focus.ts";
import { type Outcome, problemText } from "./outcome.tsx";
import { Conflict, type OverrideBody, setOverride } from "./overrides.ts";
import { numberOrText, overrideText, periodText, textOrNothing, untilText } from "./words.ts";

export type OverrideFormKind = OverrideKind;

interface OverrideFormProps {
  readonly kind: OverrideFormKind;
  readonly rule: Rule;
  readonly subject: string;
  /** True if the bucket is shared by all requests. */
  readonly isShared: boolean;
  /** The existing override when the form is opened. */
  readonly override: Override | undefined;
  /** True if the form starts from that override, with its remaining time. */
  readonly isLoaded: boolean;
  readonly onClose: () => void;
  readonly onDone: (outcome: Outcome) => void;
  /** Called when the override was changed meanwhile. */
  readonly onConflict: () => void;
  /** Called to start from the override that another user set. */
  readonly onLoad: (override: Override) => void;
}

interface Values {
  readonly tokens: string;
  readonly period: string;
  readonly burst_capacity: string;
  readonly expires_in: string;
  readonly reason: string;
}

/** Default expiry, so that an override set in a hurry does not stay. */
const EXPIRES_IN = "1 hour";
/** Fields that show their own errors; others are shown below the form. */
const QUOTA_FIELDS = ["tokens", "period", "burst_capacity"];
const FIELDS = ["expires_in", "reason"];

export function OverrideForm(props: OverrideFormProps): JSX.Element {
  const { kind, rule, subject, isShared, override, onClose, onDone, onConflict } = props;
  const [values, setValues] = useState(() => initialValues(rule, override, props.isLoaded));
  const [problem, setProblem] = useState<Problem>();
  const [conflict, setConflict] = useState<Conflict>();
  const [isBusy, setBusy] = useState(false);
  const first = useFocus<HTMLInputElement>();
  // The override as it was when the form was opened, to detect concurrent changes.
  const [read, setRead] = useState(override);

  const send = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const set = await setOverride(rule.rule_id ?? 0, subject, bodyOf(kind, values), read);
      onDone(outcomeOf(set));
    } catch (thrown) {
      setBusy(false);
      if (thrown instanceof Conflict) {
        setConflict(thrown);
        setRead(thrown.now);
        onConflict();
      } else {
        setProblem(asProblem(thrown));
      }
    }
  };
  const fields = kind === "quota" ? [...QUOTA_FIELDS, ...FIELDS] : FIELDS;
  const isOfField = problem?.field !== undefined && fields.includes(problem.field);
  const input = (name: keyof Values, label: string, hint?: string) => (
    <Field label={label} hint={hint} error={problem?.field === name ? problem.detail : undefined}>
      {(input) => (
        <input
          {...input}
          ref={name === fields[0] ? first : null}
          class="input"
          value={values[name]}
          onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
  return (
    <form class="form" onSubmit={send}>
      <p>{whatWillHappen(kind, rule, isShared)}</p>
      {kind === "quota" && (
        <div class="form-fields">
          {input("tokens", "Tokens")}
          {input("period", "Per", "1s, 1 minute, 1 day")}
          {input("burst_capacity", "Burst", "Most at once; empty: that of the rule")}
        </div>
      )}
      <div class="form-fields">
        {input("expires_in", "Expires in", "30 minutes, 2 hours, 7 days; empty: never")}
        {input("reason", "Reason", "Shown with the override")}
      </div>
      {conflict !== undefined && <ConflictNotice conflict={conflict} onLoad={props.onLoad} />}
      {problem !== undefined && !isOfField && <Notice kind="error">{problemText(problem)}</Notice>}
      <div class="row">
        <button type="submit" class={kind === "quota" ? "button primary" : "button danger"} disabled={isBusy}>
          {submitText(kind, isShared, read !== undefined)}
        </button>
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

interface ConflictNoticeProps {
  readonly conflict: Conflict;
  readonly onLoad: (override: Override) => void;
}

function ConflictNotice({ conflict: { now, isFirst }, onLoad }: ConflictNoticeProps): JSX.Element {
  if (now === undefined) {
    return <Notice kind="warning">The override was deleted meanwhile. Submit again to set it anew.</Notice>;
  }
  return (
    <Notice kind="warning">
      <div class="row">
        <span>
          The override was {isFirst ? "set" : "changed"} meanwhile: it is now {overrideText(now)},{" "}
          {untilText(now.expires_at)}, by {visible(now.created_by)} at {formatTime(now.created_at)} UTC. Nothing was
          changed. Submit again to replace it.
        </span>
        <button type="button" class="button" onClick={() => onLoad(now)}>
          Load it
        </button>
      </div>
    </Notice>
  );
}

/** Initial values: those of the override, or else of the rule. */
function initialValues(rule: Rule, override: Override | undefined, isLoaded: boolean): Values {
  return {
    tokens: String(override?.tokens ?? rule.tokens),
    period: periodText(override?.period ?? rule.period),
    burst_capacity: override?.burst_capacity == null ? "" : String(override.burst_capacity),
    expires_in: isLoaded && override !== undefined ? remainingText(override.expires_at) : EXPIRES_IN,
    reason: override?.reason ?? "",
  };
}

/** Remaining time in whole minutes, rounded up; empty if it does not expire. */
function remainingText(expiresAt: string | null): string {
  if (expiresAt === null) return "";
  const minutes = Math.ceil((Date.parse(expiresAt) - Date.now() - serviceAheadMs()) / 60_000);
  return periodText(Math.max(1, minutes) * 60);
}

function bodyOf(kind: OverrideFormKind, values: Values): OverrideBody {
  const what =
    kind === "quota"
      ? {
          tokens: numberOrText(values.tokens),
          period: textOrNothing(values.period),
          burst_capacity: numberOrText(values.burst_capacity),
        }
      : { [kind]: true };
  return { ...what, expires_in: textOrNothing(values.expires_in), reason: textOrNothing(values.reason) };
}

function outcomeOf(set: SetOverride): Outcome {
  const what = {
    quota: `Override set: ${overrideText(set)}`,
    unlimited: "Unlimited: this rule no longer limits the subject",
    blocked: "Blocked: this rule denies every request of the subject",
  }[set.kind];
  const note = set.note === null ? "" : ` Note: ${set.note}.`;
  return {
    kind: set.note === null ? "ok" : "warning",
    text: `${what}, ${untilText(set.expires_at)}.${note}`,
    takesFocus: set.kind === "blocked",
  };
}

function whatWillHappen(kind: OverrideFormKind, rule: Rule, isShared: boolean): string {
  const whose = isShared ? "all clients, which share this bucket" : "this subject";
  if (kind === "blocked") return `Rule ${rule.rule_id} will deny every request of ${whose}, effective at once.`;
  if (kind === "unlimited")
    return `Rule ${rule.rule_id} will no longer limit ${whose}, effective at once. Other rules still apply.`;
  return `This quota replaces that of rule ${rule.rule_id} for ${whose}, effective at once. Spent tokens stay spent.`;
}

function submitText(kind: OverrideFormKind, isShared: boolean, isThere: boolean): string {
  if (kind === "blocked") return isShared ? "Block all clients" : "Block";
  if (kind === "unlimited") return "Remove the limit";
  return isThere ? "Replace override" : "Set override";
}
