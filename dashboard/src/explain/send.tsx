/** Sending the request for real, and seeing exactly what comes back. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Answer, ask } from "../api/client.ts";
import { formatCount } from "../format.ts";
import { Copy } from "../ui/copy.tsx";
import { curlOf } from "../ui/curl.ts";
import { asProblem } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import type { Body } from "./request.ts";
import { prettyOf, type Sent, signOf } from "./sent.ts";

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
  const [sent, setSent] = useState<readonly Sent[]>([]);
  const [shown, setShown] = useState<number>();
  const [problem, setProblem] = useState<string>();
  const [isSending, setIsSending] = useState(false);
  const lastId = useRef(0);
  const send = async (times: number) => {
    setIsSending(true);
    setProblem(undefined);
    setShown(undefined);
    try {
      // One after the other, so that the order that is shown is the order in which they were decided.
      for (let time = 0; time < times; time += 1) {
        const answer = await ask("POST", "/v1/check", { body });
        lastId.current += 1;
        const one = { id: lastId.current, answer };
        setSent((before) => [...before, one].slice(-SENT_MAX));
        if (answer.status >= 400) break;
      }
    } catch (error) {
      setProblem(asProblem(error).detail);
    } finally {
      setIsSending(false);
      onSent();
    }
  };
  const chosen = sent.find(({ id }) => id === shown) ?? sent.at(-1);
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
      {sent.length > 0 && (
        <fieldset class="explain-sent" aria-label="What was sent, the oldest first">
          {sent.map((one) => (
            <button
              type="button"
              key={one.id}
              class={`explain-dot ${signOf(one).kind}`}
              aria-pressed={one === chosen}
              aria-label={`Answer ${one.id}: ${signOf(one).word}`}
              onClick={() => setShown(one.id)}
            >
              {signOf(one).sign}
            </button>
          ))}
        </fieldset>
      )}
      {chosen !== undefined && <Exact id={chosen.id} answer={chosen.answer} />}
    </section>
  );
}

const JSON_HEADERS = { "content-type": "application/json" };

/** The answer as it came, but for the white space of its JSON. */
function Exact({ id, answer }: { readonly id: number; readonly answer: Answer }): JSX.Element {
  const head = [
    `HTTP ${answer.status} ${answer.statusText}`.trim(),
    ...answer.headers.map(([n, value]) => `${n}: ${value}`),
  ];
  return (
    <div class="explain-exact">
      <p class="label" role="status">
        Answer {formatCount(id)}: {signOf({ id, answer }).word}
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
