/** Subject panel: buckets, actions, overrides and violations of one subject of a rule. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Rule, RuleList } from "../../api/types.ts";
import { EmbeddedHistory } from "../../history/embedded.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useLoad } from "../../ui/load.ts";
import { Notice } from "../../ui/notice.tsx";
import { otherPlaceholders, subjectAttribute } from "../../ui/pattern.ts";
import { usePoll } from "../../ui/poll.ts";
import { isPseudonym } from "../../ui/pseudonym.ts";
import { visible } from "../../ui/visible.ts";
import { Actions } from "./actions.tsx";
import { type BucketState, loadBuckets, othersOf, placeOf } from "./buckets.ts";
import { OtherBuckets, RuleName, TheBucket } from "./levels.tsx";
import { OverrideTable } from "./override-table.tsx";
import { listOverrides } from "./overrides.ts";
import { recordedSearch, searchesOf } from "./violation-search.ts";
import "./subject.css";
import { PlaceholderFields } from "./placeholder-fields.tsx";
import { LastViolations } from "./violations.tsx";

/** Polling intervals of the buckets, and of the rest. */
const BUCKETS_EVERY_MS = 1500;
const REST_EVERY_MS = 5000;
/** The largest page of rules; those beyond it are not searched. */
const RULES_MAX = 1000;

interface SubjectPanelProps {
  readonly ruleId: number;
  readonly subject: string;
  /** Known values of other placeholders. */
  readonly known?: Readonly<Record<string, string>>;
  readonly onClose: () => void;
}

/** Modal dialog, open as long as it is rendered. */
export function SubjectPanel({ ruleId, subject, known = {}, onClose }: SubjectPanelProps): JSX.Element {
  const rule = useLoad((signal) => call<Rule>("GET", `/v1/rules/${ruleId}`, { signal }), [ruleId]);
  const attribute = rule.value && subjectAttribute(rule.value.key_pattern);
  const title = (
    <>
      <span class="subject-kind">{rule.value === undefined || attribute !== undefined ? attribute : "shared"}</span>{" "}
      <span class="key subject-name" title={visible(subject)}>
        {subject === "" ? "(empty)" : visible(subject)}
      </span>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="subject">
        {rule.problem !== undefined && rule.value === undefined && (
          <Notice kind="error">
            Rule {ruleId}: {rule.problem.detail}
          </Notice>
        )}
        {rule.value !== undefined &&
          (isPseudonym(subject, attribute) ? (
            <PseudonymContent rule={rule.value} attribute={attribute} subject={subject} />
          ) : (
            <Content rule={rule.value} subject={subject} known={known} />
          ))}
      </div>
    </Dialog>
  );
}

interface PseudonymProps {
  readonly rule: Rule;
  readonly attribute: string | undefined;
  readonly subject: string;
}

/** Content for a pseudonym. There are no actions: they would apply to another subject. */
function PseudonymContent({ rule, attribute, subject }: PseudonymProps): JSX.Element {
  const search = recordedSearch(rule, attribute, subject);
  return (
    <>
      <Notice kind="warning">
        This is a pseudonym from the audit: a hash, a network, or a truncated text. It does not identify a bucket, so
        there are no bucket and no actions to show.
      </Notice>
      <RuleName rule={rule} />
      {search !== undefined && <LastViolations searches={[search]} own={search} isLoaded changes={0} />}
      <SubjectHistory subject={subject} changes={0} />
    </>
  );
}

interface ContentProps {
  readonly rule: Rule;
  readonly subject: string;
  readonly known: Readonly<Record<string, string>>;
}

function Content({ rule, subject, known }: ContentProps): JSX.Element {
  const ruleId = rule.rule_id ?? 0;
  const [values, setValues] = useState(known);
  const rules = useLoad((signal) => call<RuleList>("GET", "/v1/rules", { query: { limit: RULES_MAX }, signal }), []);
  const place = placeOf(rule, values);
  const places = [place, ...othersOf(rule, rules.value?.rules ?? []).map((other) => placeOf(other, {}))];
  const buckets = usePoll<BucketState[]>((signal) => loadBuckets(places, subject, signal), BUCKETS_EVERY_MS, [
    rules.value,
    JSON.stringify(place.further),
  ]);
  const [first, ...others] = buckets.value ?? [];
  // As the service normalises it: an address has several spellings.
  const name = first?.bucket?.subject ?? subject;
  const overrides = usePoll((signal) => listOverrides(name, undefined, signal), REST_EVERY_MS, [name]);
  const [changes, setChanges] = useState(0);
  const changed = () => {
    buckets.refresh();
    overrides.refresh();
    setChanges((changes) => changes + 1);
  };
  const attribute = subjectAttribute(rule.key_pattern);
  const isAboutIt = (id: number) => id === ruleId || places.some(({ rule }) => rule.rule_id === id);
  const hasMore = attribute !== undefined && rules.value !== undefined && rules.value.next !== null;
  const rulesSeen = hasMore ? rules.value?.rules.length : undefined;
  const its = overrides.value?.filter(({ rule_id }) => isAboutIt(rule_id));
  const further = otherPlaceholders(rule.key_pattern);
  return (
    <>
      {further.length > 0 && <PlaceholderFields names={further} values={values} onChange={setValues} />}
      <TheBucket rule={rule} state={first} missing={place.missing} />
      <Actions
        rule={rule}
        subject={name}
        further={place.further}
        isComplete={place.missing.length === 0}
        override={its?.find(({ rule_id }) => rule_id === ruleId)}
        onChanged={changed}
      />
      <OtherBuckets others={others} total={places.length - 1} rulesSeen={rulesSeen} subject={subject} />
      <OverrideTable overrides={its} problem={overrides.problem} onChanged={changed} />
      <LastViolations
        own={first && searchesOf([first])[0]}
        searches={searchesOf(buckets.value ?? [])}
        isLoaded={buckets.value !== undefined}
        changes={changes}
      />
      <SubjectHistory subject={name} changes={changes} />
    </>
  );
}

function SubjectHistory({ subject, changes }: { readonly subject: string; readonly changes: number }): JSX.Element {
  return (
    <EmbeddedHistory
      title="History"
      query={{ subject }}
      changes={changes}
      empty="No acts on this subject are recorded."
    />
  );
}
