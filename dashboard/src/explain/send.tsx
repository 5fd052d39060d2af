/** Sending the request for real, and seeing exactly what comes back. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Answer, request } from "../api/client.ts";
import { formatCount } from "../format.ts";
import { Copy } from "../ui/copy.tsx";
import { curlOf } from "../ui/curl.ts";
import { asProblem } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { prettyOf, resultOf, type SentRequest } from "./check-result.ts";
import type { Body } from "./request.ts";

/** How many are sent at once by the second button. */
const MANY = 10;
/** More answers than these are not kept: the oldest leave. */
const SENT_MAX = 20;

interface SenderProps {
  /** What to send; undefined while something about it is wrong. */
  readonly body: Body | undefined;
  readonly onSent: () => void;
}

export function Sender({ body, onSent }: SenderProps): JSX.Element {
  const [requests, setRequests] = useState<readonly SentRequest[]>([]);
  const [selectedId, setSelectedId] = useState<number>();
  const [problem, setProblem] = useState<string>();
  const [isSending, setIsSending] = useState(false);
  const lastId = useRef(0);
  const send = async (times: number) => {
    setIsSending(true);
    setProblem(undefined);
    setSelectedId(undefined);
    try {
      // One after the other, so that the order that is shown is the order in which they were decided.
      for (let time = 0; time < times; time += 1) {
        const answer = await request("POST", "/v1/check", { body });
        lastId.current += 1;
        const one = { id: lastId.current, answer };
        setRequests((before) => [...before, one].slice(-SENT_MAX));
        if (answer.status >= 400) break;
      }
    } catch (error) {
      setProblem(asProblem(error).detail);
    } finally {
      setIsSending(false);
      onSent();
    }
  };
  const selected = requests.find(({ id }) => id === selectedId) ?? requests.at(-1);
  return (
    <section class="panel explain-sender" aria-labelledby="explain-send">
      <h2 id="explain-send">Send it</h2>
      <p class="muted small">
        This is <code>POST /v1/check</code>, for real: what is allowed spends tokens, and what is denied is on record. A
        denial is told in the body, with status 200; <code>/v1/authorize</code> tells it with 429.
      </p>
      <div class="row">
        <button type="button" class="button primary" disabled={body === undefined || isSending} onClick={() => send(1)}>
          Send it
        </button>
        <button type="button" class="button" disabled={body === undefined || isSending} onClick={() => send(MANY)}>
          Send it × {MANY}
        </button>
        {body !== undefined && (
          <Copy text={() => curlOf("POST", `${location.origin}/v1/check`, JSON_HEADERS, body)}>Copy as curl</Copy>
        )}
      </div>
      {problem !== undefined && <Notice kind="error">{problem}</Notice>}
      {requests.length > 0 && (
        <fieldset class="explain-sent" aria-label="What was sent, the oldest first">
          {requests.map((one) => (
            <button
              type="button"
              key={one.id}
              class={`explain-dot ${resultOf(one).kind}`}
              aria-pressed={one === selected}
              aria-label={`Answer ${one.id}: ${resultOf(one).word}`}
              onClick={() => setSelectedId(one.id)}
            >
              {resultOf(one).sign}
            </button>
          ))}
        </fieldset>
      )}
      {selected !== undefined && <RawAnswer id={selected.id} answer={selected.answer} />}
    </section>
  );
}

const JSON_HEADERS = { "content-type": "application/json" };

/** The answer as it came, but for the white space of its JSON. */
function RawAnswer({ id, answer }: { readonly id: number; readonly answer: Answer }): JSX.Element {
  const head = [
    `HTTP ${answer.status} ${answer.statusText}`.trim(),
    ...answer.headers.map(([n, value]) => `${n}: ${value}`),
  ];
  return (
    <div class="explain-exact">
      <p class="label" role="status">
        Answer {formatCount(id)}: {resultOf({ id, answer }).word}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so must be reached by keyboard. */}
      <section class="explain-raw" tabIndex={0} aria-label="The exact answer">
        <pre class="key">
          {head.join("\n")}
          {"\n\n"}
          {prettyOf(answer.text)}
        </pre>
      </section>
    </div>
  );
}
