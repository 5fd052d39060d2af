/** The last request of a client and its raw answer. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { currentToken } from "../session.ts";
import { Copy } from "../ui/copy.tsx";
import { type Exchange, pretty } from "./exchange.ts";
import { takeBody } from "./lane.ts";
import type { PlaygroundModel } from "./model.ts";
import { takeCurl } from "./take.ts";
import { OUTCOMES } from "./words.ts";

/** Headers about the limit, which are highlighted. */
const LIMIT_HEADERS = /^(retry-after|(x-)?ratelimit)/;

export function Response({ model }: { readonly model: PlaygroundModel }): JSX.Element {
  const id = useId();
  const [chosen, setChosen] = useState(0);
  const { states } = model;
  const state = states.find((state) => state.id === chosen) ?? states[0]!;
  // Before the first request: the one that would be sent.
  const body = state.last?.body ?? takeBody(model.keyOf(state), state.lane, state.lane.cost);
  const curl = takeCurl(location.origin, body);
  return (
    <section class="panel pg-response" aria-labelledby={`${id}-title`}>
      <div class="pg-panel-head">
        <h2 id={`${id}-title`}>Response</h2>
        {states.length > 1 && (
          <select
            class="input pg-of"
            aria-label="Response of"
            value={String(state.id)}
            onChange={(event) => setChosen(Number(event.currentTarget.value))}
          >
            {states.map(({ id, lane }) => (
              <option key={id} value={String(id)}>
                {lane.name}
              </option>
            ))}
          </select>
        )}
      </div>
      {state.last === undefined ? (
        <p class="muted small">Send a request to see the status, headers and body of the answer.</p>
      ) : (
        <ExchangeDetails exchange={state.last} />
      )}
      <div class="pg-panel-head">
        <h3>Request</h3>
        <Copy text={() => curl}>Copy as curl</Copy>
      </div>
      <figure class="pg-code" aria-label="Request as curl">
        <pre>{curl}</pre>
      </figure>
      {currentToken() !== "" && (
        <p class="muted small">
          Your token is not part of the command. If the service requires callers, add{" "}
          <code>-H 'authorization: Bearer …'</code>.
        </p>
      )}
    </section>
  );
}

function ExchangeDetails({ exchange }: { readonly exchange: Exchange }): JSX.Element {
  const { answer, outcome } = exchange;
  const { kind, sign, word } = OUTCOMES[outcome];
  if (answer === undefined) return <p>The service did not answer.</p>;
  return (
    <>
      <p class="pg-status">
        <span class={`badge ${kind}`}>
          {sign} {word}
        </span>{" "}
        <strong data-testid="status">
          {answer.status} {answer.statusText}
        </strong>{" "}
        <span class="muted small">in {exchange.tookMs.toFixed(exchange.tookMs < 10 ? 1 : 0)} ms</span>
      </p>
      <figure class="pg-code" aria-label="Response headers">
        <pre>
          {answer.headers.map(([name, value]) => (
            <div key={name} class={LIMIT_HEADERS.test(name) ? "telling" : undefined}>
              {name}: {value}
            </div>
          ))}
        </pre>
      </figure>
      <figure class="pg-code" aria-label="Response body">
        <pre>{pretty(answer.text)}</pre>
      </figure>
    </>
  );
}
