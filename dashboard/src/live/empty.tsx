/** Empty state: how to send the first requests. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import { isRefusal } from "../api/refusal.ts";
import { CallerRefusal } from "../caller-refusal.tsx";
import { hrefOf } from "../route.ts";
import { Copy } from "../ui/copy.tsx";
import { asProblem } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { showToast } from "../ui/toasts.tsx";
import { SAMPLE_ADDRESS, SAMPLE_REQUESTS, sendSample } from "./sample.ts";

export function Empty(): JSX.Element {
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const send = async () => {
    setSending(true);
    setProblem(undefined);
    try {
      const { allowed, denied } = await sendSample();
      showToast(`Sent ${allowed + denied} requests: ${allowed} allowed, ${denied} denied.`);
    } catch (thrown) {
      setProblem(asProblem(thrown));
    }
    setSending(false);
  };
  const curl = `curl -H 'content-type: application/json' -d '{"user_id": "ann", "plan": "free", "endpoint": "/search"}' ${location.origin}/v1/check`;
  return (
    <section class="panel" aria-labelledby="empty-heading">
      <div>
        <h2 id="empty-heading">No requests in the last two minutes</h2>
        <p class="muted">
          Requests appear here as soon as they are checked. Try the <a href={hrefOf("playground")}>playground</a>, check
          a request from a terminal, or send sample requests.
        </p>
      </div>
      <div class="empty-curl">
        <pre class="mono">{curl}</pre>
        <Copy text={() => curl}>Copy</Copy>
      </div>
      <div class="row">
        <button type="button" class="button primary" disabled={isSending} onClick={send}>
          {isSending ? "Sending…" : `Send ${SAMPLE_REQUESTS} sample requests`}
        </button>
        <span class="muted small empty-note">
          From the users <code>ann</code> and <code>bob</code>, and from {SAMPLE_ADDRESS} to <code>/login</code>. They
          are real: they spend tokens of these three and of the shared tiers.
        </span>
      </div>
      {problem !== undefined &&
        (isRefusal(problem.status) ? (
          <CallerRefusal status={problem.status} />
        ) : (
          <Notice kind="error">{problem.detail}</Notice>
        ))}
    </section>
  );
}
