/** Controls that send requests from all clients at once. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { formatCount } from "../format.ts";
import { LANES_MAX, RATE_MAX } from "./lane.ts";
import { BURST, IN_FLIGHT_MAX, type PlaygroundModel } from "./model.ts";
import { OUTCOMES } from "./words.ts";

export function Traffic({ model }: { readonly model: PlaygroundModel }): JSX.Element {
  const id = useId();
  return (
    <section class="panel pg-traffic" aria-label="Traffic">
      <div class="pg-send">
        <button type="button" class="button primary" onClick={() => model.send(1)}>
          Send one
        </button>
        <button type="button" class="button" onClick={() => model.send(BURST)}>
          Burst ×{BURST}
        </button>
      </div>
      <div class="pg-steady">
        <label for={id}>
          Steady <output class="pg-rate">{model.rate} per second</output>
        </label>
        <input
          id={id}
          type="range"
          min={0}
          max={RATE_MAX}
          value={model.rate}
          aria-label="Steady rate, requests per second"
          aria-valuetext={`${model.rate} per second`}
          onInput={(event) => model.setRate(Number(event.currentTarget.value))}
        />
        <button
          type="button"
          class="button"
          aria-pressed={model.isSteady}
          onClick={() => (model.isSteady ? model.stopSteady() : model.startSteady(() => document.hidden))}
        >
          {model.isSteady ? "■ Stop" : "▶ Start"}
        </button>
      </div>
      <p class="visually-hidden" role="status">
        {lastWords(model)}
      </p>
      {/* For a scenario, this is shown beside its description. */}
      {model.notSent > 0 && model.scenario === "" && (
        <p class="small pg-not-sent" role="status">
          {notSentWords(model)}
        </p>
      )}
    </section>
  );
}

export function notSentWords({ notSent }: PlaygroundModel): string {
  return `${formatCount(notSent)} not sent: ${IN_FLIGHT_MAX} requests were in flight, or the page was delayed.`;
}

/** Result of the last request for screen readers; empty during steady traffic and scenarios. */
function lastWords({ log: [last], isSteady, playing }: PlaygroundModel): string {
  if (last === undefined || isSteady || playing !== undefined) return "";
  const left = last.decision === undefined ? "" : `, ${formatCount(last.decision.remaining)} left`;
  return `${last.laneName}: ${OUTCOMES[last.outcome].word}${left}`;
}

/** Buttons that add clients, compare algorithms and start over. */
export function LaneButtons({ model }: { readonly model: PlaygroundModel }): JSX.Element {
  return (
    <>
      <button type="button" class="button" disabled={model.states.length >= LANES_MAX} onClick={() => model.addLane()}>
        Add client
      </button>
      <button type="button" class="button" onClick={() => model.compare()}>
        Compare algorithms
      </button>
      <button type="button" class="button" onClick={() => model.startOver()}>
        Start over
      </button>
    </>
  );
}
