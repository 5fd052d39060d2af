/** What is sent, from all clients at the same moment. */

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
      {/* Of a scenario it is said beside the scenario. */}
      {model.notSent > 0 && model.scenario === "" && (
        <p class="small pg-not-sent" role="status">
          {notSentWords(model)}
        </p>
      )}
    </section>
  );
}

export function notSentWords({ notSent }: PlaygroundModel): string {
  return `${formatCount(notSent)} not sent: ${IN_FLIGHT_MAX} were under way, or the page was held up.`;
}

/** What came of the last request, for those who cannot see it; not while requests go out by themselves. */
function lastWords({ log: [last], isSteady, playing }: PlaygroundModel): string {
  if (last === undefined || isSteady || playing !== undefined) return "";
  const left = last.decision === undefined ? "" : `, ${formatCount(last.decision.remaining)} left`;
  return `${last.laneName}: ${OUTCOMES[last.outcome].word}${left}`;
}

/** More clients, or one under several algorithms. */
export function LaneButtons({ model }: { readonly model: PlaygroundModel }): JSX.Element {
  return (
    <>
      <button type="button" class="button" disabled={model.states.length >= LANES_MAX} onClick={() => model.addLane()}>
        + Client
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
