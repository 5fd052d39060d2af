/** Log of requests, newest first. */

import type { JSX } from "preact";
import { formatCount, formatWait } from "../format.ts";
import type { Exchange } from "./exchange.ts";
import { LOG_MAX } from "./model.ts";
import { OUTCOMES } from "./words.ts";

interface LogProps {
  readonly log: readonly Exchange[];
  /** True to show the client: there are several. */
  readonly hasNames: boolean;
}

export function Log({ log, hasNames }: LogProps): JSX.Element {
  return (
    <section class="panel pg-log" aria-labelledby="pg-log">
      <div class="pg-panel-head">
        <h2 id="pg-log">Requests</h2>
        {log.length > 0 && <span class="muted small">last {LOG_MAX}</span>}
      </div>
      {log.length === 0 ? (
        <p class="muted small">No requests yet.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard.
        <section class="table-wrap pg-scroll" tabIndex={0} aria-label="Last requests">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Time</th>
                {hasNames && <th scope="col">Client</th>}
                <th scope="col">Answer</th>
                <th scope="col" class="number">
                  Left
                </th>
                <th scope="col" class="number">
                  Retry after
                </th>
              </tr>
            </thead>
            <tbody>
              {log.map((exchange) => (
                <LogRow key={exchange.id} exchange={exchange} hasName={hasNames} />
              ))}
            </tbody>
          </table>
        </section>
      )}
    </section>
  );
}

function LogRow({ exchange, hasName }: { exchange: Exchange; hasName: boolean }): JSX.Element {
  const { sentAt, laneName, outcome, answer, decision } = exchange;
  const { kind, sign, word } = OUTCOMES[outcome];
  return (
    <tr>
      <td class="pg-time">{timeOfDay(sentAt)}</td>
      {hasName && <td class="pg-of-lane">{laneName}</td>}
      <td>
        <span class={`badge ${kind}`}>
          {sign} {word}
        </span>{" "}
        <span class="muted small">{answer?.status}</span>
      </td>
      <td class="number">{decision === undefined ? "–" : formatCount(decision.remaining)}</td>
      <td class="number">{decision?.retry_after_ms ? formatWait(decision.retry_after_ms) : "–"}</td>
    </tr>
  );
}

/** Local time: `21:04:05.123`. */
function timeOfDay(ms: number): string {
  const time = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":");
  return `${clock}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}
