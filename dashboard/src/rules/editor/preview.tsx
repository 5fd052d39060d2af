/** Preview: effect of the edited rule on recent requests, beside that of the rule in force. */

import type { JSX } from "preact";
import type { Figures, PreviewAnswer } from "../../api/types.ts";
import { formatCount } from "../../format.ts";
import { hrefOf } from "../../route.ts";
import { Notice } from "../../ui/notice.tsx";
import type { CheckState } from "./check.ts";
import "./preview.css";
import { Key } from "../../ui/key.tsx";

/** `2026-08-01T12:00:32.570984Z` is `12:00:32`. */
function clock(time: string): string {
  return time.slice(11, 19);
}

interface PreviewProps {
  readonly check: CheckState;
  /** The rule in force, if there is one: subjects link to its buckets. */
  readonly ruleId: number | undefined;
}

export function Preview({ check, ruleId }: PreviewProps): JSX.Element {
  const { preview, previewProblem, isCurrent, problem } = check;
  // A read-only token cannot save, but its preview is current.
  const isRefused = problem !== undefined && problem.status !== 403;
  const isOld = !isCurrent || isRefused || previewProblem !== undefined;
  return (
    <section class="preview" aria-label="Preview">
      <div class="row preview-head">
        <h3>Preview</h3>
        <button type="button" class="button quiet small" onClick={check.again}>
          Refresh
        </button>
      </div>
      {previewProblem !== undefined && <Notice kind="warning">{previewProblem.detail}</Notice>}
      {preview === undefined ? (
        <p class="muted">{problem === undefined ? "Loading…" : "Available when the rule is valid."}</p>
      ) : (
        <div class={isOld ? "stack preview-stale" : "stack"}>
          <Outcome preview={preview} ruleId={ruleId} isOld={isOld} />
        </div>
      )}
    </section>
  );
}

interface OutcomeProps {
  readonly preview: PreviewAnswer;
  readonly ruleId: number | undefined;
  /** True if it is of an older form. */
  readonly isOld: boolean;
}

function Outcome({ preview, ruleId, isOld }: OutcomeProps): JSX.Element {
  const { before } = preview;
  if (preview.requests === 0) {
    return (
      <>
        <p>No recent requests. The preview uses those of the last minutes.</p>
        <Notes preview={preview} />
      </>
    );
  }
  const most = Math.max(preview.applies, before?.applies ?? 0);
  return (
    <>
      <p class="small muted">
        Based on the last {formatCount(preview.requests)} requests
        {preview.from !== null && preview.to !== null && `, ${clock(preview.from)} to ${clock(preview.to)} UTC`}.
      </p>
      {most > 0 && <Bar title={isOld ? "Before the last edit" : "Edited rule"} figures={preview} most={most} />}
      {most > 0 && before !== null && <Bar title="Rule in force" figures={before} most={most} />}
      <p class="small">{deniedWords(preview)}</p>
      {preview.top.some((subject) => subject.denied > 0) && <Top figures={preview} ruleId={ruleId} />}
      <Notes preview={preview} />
    </>
  );
}

function deniedWords(figures: Figures): string {
  if (figures.applies === 0) return "The rule applies to none of them.";
  if (figures.denied === 0) return "No request would be denied.";
  const first = figures.first_denied_at === null ? "" : `, the first at ${clock(figures.first_denied_at)} UTC`;
  return `${formatCount(figures.subjects_denied)} of ${formatCount(figures.subjects)} ${
    figures.subjects === 1 ? "subject" : "subjects"
  } would be denied${first}.`;
}

interface BarProps {
  readonly title: string;
  readonly figures: Figures;
  /** Value of the whole width. */
  readonly most: number;
}

function Bar({ title, figures, most }: BarProps): JSX.Element {
  const share = (count: number) => ({ width: `${(100 * count) / most}%` });
  return (
    <div class="outcome">
      <div class="outcome-words">
        <span>{title}</span>
        <span class="outcome-counts">
          <span class="granted-count">
            <span aria-hidden="true">✓</span> {formatCount(figures.allowed)} allowed
          </span>{" "}
          <span class={figures.denied > 0 ? "denied-count" : "muted"}>
            <span aria-hidden="true">✕</span> {formatCount(figures.denied)} denied
          </span>
        </span>
      </div>
      <div class="outcome-bar" aria-hidden="true">
        <span class="outcome-allowed" style={share(figures.allowed)} />
        <span class="outcome-denied" style={share(figures.denied)} />
      </div>
    </div>
  );
}

function Top({ figures, ruleId }: { readonly figures: Figures; readonly ruleId: number | undefined }): JSX.Element {
  const denied = figures.top.filter((subject) => subject.denied > 0);
  return (
    <table class="table top-subjects">
      <thead>
        <tr>
          <th scope="col">Most denied</th>
          <th scope="col" class="number">
            Requests
          </th>
          <th scope="col" class="number">
            Denied
          </th>
        </tr>
      </thead>
      <tbody>
        {denied.map(({ subject, requests, denied }) => (
          <tr key={subject}>
            <td>
              <Key text={subject} href={ruleId === undefined ? undefined : hrefOf("live", { rule: ruleId, subject })} />
            </td>
            <td class="number">{formatCount(requests)}</td>
            <td class="number denied-count">{formatCount(denied)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Notes({ preview }: { readonly preview: PreviewAnswer }): JSX.Element {
  return (
    <>
      {preview.note !== null && <Notice kind="info">{preview.note}</Notice>}
      {preview.left_out > 0 && (
        <p class="small muted">
          {formatCount(preview.left_out)} requests since the start are not included: too long, or too many at once.
        </p>
      )}
      <p class="small muted">
        Simulated with full buckets, for this rule alone, active and enforced. No tokens are spent.
      </p>
    </>
  );
}
