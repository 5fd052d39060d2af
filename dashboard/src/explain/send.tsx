/** Sends the request as a real check and shows the raw answer. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Answer, request } from "../api/client.ts";
import { isRefusal } from "../api/refusal.ts";
import { CallerRefusal } from "../caller-refusal.tsx";
import { formatCount } from "../format.ts";
import { Copy } from "../ui/copy.tsx";
import { curlOf } from "../ui/curl.ts";
import { asProblem } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { prettyOf, resultOf, type SentRequest } from "./check-result.ts";
import type { Body } from "./request.ts";

/** Requests sent by the second button. */
const MANY = 10;
/** The most answers kept; older ones are dropped. */
const SENT_MAX = 20;

interface SenderProps {
  /** The body to send; undefined while the form is invalid. */
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
      // In sequence, so that they are shown in the order of their decisions.
      for (let time = 0; time < times; time += 1) {
        const answer = await request("POST", "/v1/check", { body, isData: true });
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
      <h2 id="explain-send">Send the request</h2>
      <p class="muted small">
        Sends a real <code>POST /v1/check</code>: an allowed request spends tokens, a denied one is recorded as a
        violation. A denial is in the body, with status 200; <code>/v1/authorize</code> answers 429 instead.
      </p>
      <div class="row">
        <button type="button" class="button primary" disabled={body === undefined || isSending} onClick={() => send(1)}>
          Send
        </button>
        <button type="button" class="button" disabled={body === undefined || isSending} onClick={() => send(MANY)}>
          Send {MANY} times
        </button>
        {body !== undefined && (
          <Copy text={() => curlOf("POST", `${location.origin}/v1/check`, JSON_HEADERS, body)}>Copy as curl</Copy>
        )}
      </div>
      {problem !== undefined && <Notice kind="error">{problem}</Notice>}
      {requests.length > 0 && (
        <fieldset class="explain-sent" aria-label="Answers, oldest first">
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
      {selected !== undefined && isRefusal(selected.answer.status) && <CallerRefusal status={selected.answer.status} />}
      {selected !== undefined && <RawAnswer id={selected.id} answer={selected.answer} />}
    </section>
  );
}

const JSON_HEADERS = { "content-type": "application/json" };

/** Status, headers and body of an answer; only the white space of JSON is changed. */
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
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard. */}
      <section class="explain-raw" tabIndex={0} aria-label="Raw answer">
        <pre class="key">
          {head.join("\n")}
          {"\n\n"}
          {prettyOf(answer.text)}
        </pre>
      </section>
    </div>
  );
}
