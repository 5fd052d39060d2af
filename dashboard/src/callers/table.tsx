/** Table of callers. */

import type { JSX } from "preact";
import type { Caller } from "../api/types.ts";
import { formatTime } from "../format.ts";
import { hrefOf } from "../route.ts";
import { Key } from "../ui/key.tsx";
import { expiryOf, lastUseText, utc } from "./words.ts";

interface CallerTableProps {
  readonly callers: readonly Caller[];
  readonly isChangeable: boolean;
  /** Clock of the service, in milliseconds. */
  readonly now: number;
  readonly onChange: (caller: Caller) => void;
  readonly onRevoke: (caller: Caller) => void;
}

export function CallerTable({ callers, ...rest }: CallerTableProps): JSX.Element {
  return (
    <section class="panel" aria-label="Callers">
      <div class="table-wrap">
        <table class="table callers-table">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">It may</th>
              <th scope="col">Namespace</th>
              <th scope="col">Certificate</th>
              <th scope="col">Expires (UTC)</th>
              <th scope="col">Last use</th>
              <th scope="col">Created</th>
              {rest.isChangeable && (
                <th scope="col">
                  <span class="visually-hidden">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {callers.map((caller) => (
              <Row key={caller.caller_id} caller={caller} {...rest} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

type RowProps = Omit<CallerTableProps, "callers"> & { readonly caller: Caller };

function Row({ caller, isChangeable, now, onChange, onRevoke }: RowProps): JSX.Element {
  return (
    <tr>
      <td data-label="Name">
        <Key text={caller.name} href={hrefOf("history", { target: caller.name })} />
      </td>
      <td data-label="It may">
        <span class="caller-badges">
          {caller.rights.map((right) => (
            <span key={right} class="badge">
              {right}
            </span>
          ))}
        </span>
      </td>
      <td data-label="Namespace">
        <CellText text={caller.namespace} />
      </td>
      <td data-label="Certificate">
        <CellText text={caller.certificate} />
      </td>
      <td data-label="Expires">
        <ExpiryCell expiresAt={caller.expires_at} now={now} />
      </td>
      <td data-label="Last use">
        <Time text={lastUseText(caller.last_used_at, now)} at={caller.last_used_at} />
      </td>
      <td data-label="Created">
        <span>
          <Time text={caller.created_at.slice(0, 10)} at={caller.created_at} /> by <Key text={caller.created_by} />
        </span>
      </td>
      {isChangeable && (
        <td class="caller-actions">
          <button type="button" class="button" aria-label={`Change ${caller.name}`} onClick={() => onChange(caller)}>
            Change…
          </button>
          <button
            type="button"
            class="button danger"
            aria-label={`Revoke ${caller.name}`}
            onClick={() => onRevoke(caller)}
          >
            Revoke…
          </button>
        </td>
      )}
    </tr>
  );
}

const KINDS = { soon: "badge warning", expired: "badge denied" } as const;

function ExpiryCell({ expiresAt, now }: { readonly expiresAt: string | null; readonly now: number }): JSX.Element {
  const { text, kind } = expiryOf(expiresAt, now);
  if (expiresAt === null) return <span class="muted">{text}</span>;
  return (
    <span>
      <span class={kind === "later" ? undefined : KINDS[kind as keyof typeof KINDS]}>{text}</span>
      <span class="caller-date muted small">{formatTime(expiresAt).slice(0, 16)}</span>
    </span>
  );
}

function Time({ text, at }: { readonly text: string; readonly at: string | null }): JSX.Element {
  if (at === null) return <span class="muted">{text}</span>;
  return (
    <time dateTime={at} title={utc(at)}>
      {text}
    </time>
  );
}

function CellText({ text }: { readonly text: string | null }): JSX.Element {
  return text === null ? <span class="muted">–</span> : <Key text={text} />;
}
